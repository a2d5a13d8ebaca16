"""The gate: figures that do not depend on the machine, measured and compared with the accepted ones.

Each module has `figures(dsn)`, which returns figures by name; smaller is better. Imports the other modules of
`bench`. Begin with `bench.check`, which runs them, and `accepted`, which compares.
"""
