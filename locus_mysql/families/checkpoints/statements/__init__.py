"""The statements of thread states (the families `agents`, `dicts` and `current`), and their tables.

Imports nothing else of the family. Begin with `tables`, which also has the pieces that the statements share; `saving`
and `loading` have those of each turn.
"""
