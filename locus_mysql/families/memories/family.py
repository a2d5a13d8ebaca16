"""The family of long-term memory: `MEMORIES`."""

from __future__ import annotations

from collections.abc import Sequence

from ...config import MySQLConfig
from ...dialect import Schema
from ...dialect.resealing import SealedColumn
from ...engine.operation import Operation
from ...records.tables import Tables
from ..family import InspectorPage, Maintenance
from ..inspection.item_records import Growth
from .statements.tables import memory_schema


class MemoryFamily:
    """See `Family`."""

    name = "memories"
    title = "Long-term memory"
    users = "MemoryStore, MySQLMemory, and LangGraph's stores"
    holds_threads = False
    vacuumed_by_age = False
    on_request = False
    page = InspectorPage("memories", "Memories")

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""
        return memory_schema(config.table_prefix, search=config.search, search_parser=config.search_parser)

    def encrypted_columns(self, config: MySQLConfig) -> Sequence[SealedColumn]:
        """See `EncryptsColumns.encrypted_columns`."""
        from .tables import tables_of

        return tables_of(config).encrypted_columns()

    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """See `Family.maintenance`."""
        from .maintenance import MemoryMaintenance

        return MemoryMaintenance(config)

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`."""
        from .tables import tables_of

        return (tables_of(config),)

    def inspection(self, config: MySQLConfig) -> None:
        """See `Family.inspection`."""

    def growth(self, config: MySQLConfig) -> Operation[Growth]:
        """See `ShowsGrowth`."""
        from .inspection import Memories

        return Memories(config).growth()

    def changes(self, config: MySQLConfig) -> None:
        """See `Family.changes`."""


MEMORIES = MemoryFamily()
