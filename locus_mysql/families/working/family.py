"""The family of working memory: `WORKING`."""

from __future__ import annotations

from collections.abc import Sequence

from ...config import MySQLConfig
from ...dialect import Schema
from ...dialect.resealing import SealedColumn
from ...engine.operation import Operation
from ...records.tables import Tables
from ..family import InspectorPage, Maintenance
from ..inspection.item_records import Growth
from .statements.tables import working_schema
from .tables import tables


class WorkingFamily:
    """See `Family`."""

    name = "working"
    title = "Working memory"
    users = "WorkingMemory"
    holds_threads = False
    vacuumed_by_age = False
    on_request = False
    page = InspectorPage("sessions", "Sessions")

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""
        return working_schema(config.table_prefix)

    def encrypted_columns(self, config: MySQLConfig) -> Sequence[SealedColumn]:
        """See `EncryptsColumns.encrypted_columns`."""
        return tables(config.table_prefix).encrypted_columns()

    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """See `Family.maintenance`."""
        from .maintenance import WorkingMaintenance

        return WorkingMaintenance(config)

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`."""
        return (tables(config.table_prefix),)

    def inspection(self, config: MySQLConfig) -> None:
        """See `Family.inspection`."""

    def growth(self, config: MySQLConfig) -> Operation[Growth]:
        """See `ShowsGrowth`."""
        from .inspection import Sessions

        return Sessions(config).growth()

    def changes(self, config: MySQLConfig) -> None:
        """See `Family.changes`."""


WORKING = WorkingFamily()
