"""The family of working memory: `WORKING`."""

from __future__ import annotations

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...records.tables import Tables
from ..family import DeclaredFamily, InspectorPage
from ..inspection.item_records import Growth
from .tables import tables


class WorkingFamily(DeclaredFamily):
    """See `Family`."""

    name = "working"
    title = "Working memory"
    users = "WorkingMemory"
    page = InspectorPage("sessions", "Sessions")

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`."""
        return (tables(config.table_prefix),)

    def growth(self, config: MySQLConfig) -> Operation[Growth]:
        """See `ShowsGrowth`."""
        from .inspection import Sessions

        return Sessions(config).growth()


WORKING = WorkingFamily()
