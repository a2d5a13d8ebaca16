"""Working memory: variables, task state and notes of the current session, in MySQL, in Redis or in this process.

Only `storages/redis` imports redis-py. Begin with `operations`, generators that yield `calls` to a storage, then
`session`, which has the effect of each command; `statements` has the SQL.
"""
