"""The statements of thread states (the families `agents`, `dicts` and `current`), and their tables.

Imports only `dialect` and `records`. Begin with `tables`, then `dialect`, which has the pieces that the statements
share; `saving` and `loading` have those of each turn.
"""
