"""The SQL of thread states (the families `agents`, `dicts` and `current`): their tables and all statements about them.

Imports only `locus_mysql.dialect`. Begin with `tables`, then `dialect`, which combines the statements;
`saving` and `loading` have those of each turn.
"""
