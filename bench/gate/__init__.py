"""The gate: figures that do not depend on the machine, measured anew and compared with the accepted ones.

Each module has `figures(dsn)`: figures by name, of which less is better.
"""
