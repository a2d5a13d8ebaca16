"""Code shared by the stores of all families. Imports `engine` and the layers below, and no family.

Begin with `database`, the connections that stores share, then `stores`, which turns operations into methods of
public classes. `telemetry` has logs and spans; the other modules are named after their content.
"""
