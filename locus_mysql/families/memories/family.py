"""The family of long-term memory: `MEMORIES`."""

from __future__ import annotations

from ...config import MySQLConfig
from ...dialect import Schema
from ...engine.operation import Operation
from ...records.maintenance import Upkeep
from ...records.tables import Tables
from ..family import DeclaredFamily, InspectorPage
from ..inspection.item_records import Growth
from .statements.tables import memory_schema


class MemoryFamily(DeclaredFamily):
    """See `Family`."""

    name = "memories"
    title = "Long-term memory"
    users = "MemoryStore, MySQLMemory, and LangGraph's stores"
    page = InspectorPage("memories", "Memories")

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""
        return memory_schema(config.table_prefix, search=config.search, search_parser=config.search_parser)

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`."""
        from .tables import tables_of

        return (tables_of(config),)

    def upkeep(self, config: MySQLConfig) -> Upkeep:
        """See `DeclaredFamily.upkeep`."""
        from .maintenance import MemoryUpkeep

        return MemoryUpkeep(config)

    def growth(self, config: MySQLConfig) -> Operation[Growth]:
        """See `ShowsGrowth`."""
        from .inspection import Memories

        return Memories(config).growth()


MEMORIES = MemoryFamily()
