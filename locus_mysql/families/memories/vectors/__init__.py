"""Encodes, compares and caches embeddings of any kind. No I/O; results do not depend on NumPy.

Imports no other module of memories, so that memU's family can use it as well. Begin with `coding`, then `scoring`;
`table` ranks many embeddings in memory, `cache` keeps the tables.
"""
