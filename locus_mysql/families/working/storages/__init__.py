"""The storages of working memory: `in_memory`, `mysql`, `redis`, and `fallback` for outages of another.

Begin with `interface`, then `optimistic`, which MySQL and Redis share; `failover` decides which storage serves.
"""
