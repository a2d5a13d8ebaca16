"""The family of long-term memory: `MEMORIES`."""

from __future__ import annotations

from ...config import MySQLConfig
from ...dialect import Schema
from ...records.maintenance import Upkeep
from ...records.tables import Tables
from ..family import DeclaredFamily, InspectorPage
from .statements.tables import memory_schema


class MemoryFamily(DeclaredFamily):
    """Items of long-term memory with their embeddings."""

    name = "memories"
    title = "Long-term memory"
    users = "MemoryStore, MySQLMemory, and LangGraph's stores"
    holds_threads = False
    unit = "embedding"
    page = InspectorPage("memories", "Memories")

    def schema(self, config: MySQLConfig) -> Schema:
        """Return the tables and their layout version."""
        return memory_schema(config.table_prefix, search=config.search, search_parser=config.search_parser)

    def declaration(self, config: MySQLConfig) -> Tables:
        """Return the declaration of the tables."""
        from .tables import tables_of  # which imports NumPy

        return tables_of(config)

    def upkeep(self, config: MySQLConfig) -> Upkeep:
        """Return what is special about the upkeep."""
        from .maintenance import MemoryUpkeep

        return MemoryUpkeep(config)

    def changes(self, config: MySQLConfig) -> None:
        """Return None: an item is put, changed and deleted by `MemoryStore`, which embeds it."""


MEMORIES = MemoryFamily()
