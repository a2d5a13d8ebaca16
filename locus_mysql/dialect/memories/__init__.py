"""The SQL of long-term memory (the family `memories`): items found by key, by field, by word and by meaning.

Imports only `locus_mysql.dialect`. Begin with `tables`, then `dialect`, which combines the statements;
`writing` and `reading` have those of items, `vectors` those of embeddings, `filters` compiles callers' filters.
"""
