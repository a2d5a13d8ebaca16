"""The statements of thread states (the families `agents`, `dicts` and `current`), and their tables.

Imports of the family only `ThreadKey`. Begin with `tables`, then `dialect`, which has the pieces that the statements
share; `saving` and `loading` have those of each turn.
"""
