"""Encodes, compares and ranks embeddings of any kind. No I/O; results do not depend on NumPy.

Imports no other module of memories, so that memU's family can use it as well. Begin with `coding`, which
also scores; `matrix` ranks many embeddings in memory.
"""
