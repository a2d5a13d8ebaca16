"""The SQL of working memory (the family `working`): variables, task states, notes and checkpoints of sessions.

Imports only `locus_mysql.dialect`. Begin with `tables`, then `statements`.
"""
