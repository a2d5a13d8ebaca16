"""The family of working memory: `WORKING`."""

from __future__ import annotations

from ...config import MySQLConfig
from ...records.tables import Tables
from ..family import DeclaredFamily, InspectorPage
from .tables import tables


class WorkingFamily(DeclaredFamily):
    """See `Family`."""

    name = "working"
    title = "Working memory"
    users = "WorkingMemory"
    holds_threads = False
    unit = "entry"
    page = InspectorPage("sessions", "Sessions")

    def declaration(self, config: MySQLConfig) -> Tables:
        """See `DeclaredFamily.declaration`."""
        return tables(config.table_prefix)


WORKING = WorkingFamily()
