"""Chapter `incident`: what did an agent know at a given time, and what changed since?

Begin with `story`. It runs the package's commands in processes of their own, and shows what they print.
"""
