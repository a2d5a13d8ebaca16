"""The SQL of graphs: every checkpoint of a thread's history, its values, and pending writes.

Begin with `tables`, then `dialect`, which has the pieces that the statements share. Statements that one module uses
stand in that module.
"""
