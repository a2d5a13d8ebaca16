"""The SQL of memU's metadata store (the family `memu`): its tables and all statements about its records.

Imports only `locus_mysql.dialect`. Begin with `tables`, then `statements`; `record_filters` compiles callers'
filters.
"""
