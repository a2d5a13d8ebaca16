"""The SQL of long-term memory: items found by key, by field, by word and by meaning.

Begin with `tables`, which also names them; `items` and `vectors` have the statements, `filters` compiles callers'
filters. A statement that only one module of the family uses stands in that module.
"""
