"""Chapter `incident`: what did an agent know at a given time, and what changed since?

Begin with `demo`. It runs the package's commands in separate processes, and shows their output.
"""
