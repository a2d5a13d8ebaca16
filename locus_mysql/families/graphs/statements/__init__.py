"""The SQL of graphs: every checkpoint of a thread's history, its values, and pending writes.

Begin with `tables`, which also has the pieces that the statements share. Some statements that one module uses stand in
that module.
"""
