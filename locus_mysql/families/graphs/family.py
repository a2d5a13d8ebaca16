"""The family of graphs' checkpoints: `GRAPHS`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config import MySQLConfig
from ...records.maintenance import Upkeep
from ...records.tables import Tables
from ..family import DeclaredFamily
from .tables import tables

if TYPE_CHECKING:
    from ..inspection.owners import OwnerChanges, OwnerThreads


class GraphFamily(DeclaredFamily):
    """See `Family`."""

    name = "graphs"
    title = "Graphs"
    users = "MySQLCheckpointSaver, and LangGraph's savers"
    unit = "checkpoint"
    vacuumed_by_age = True

    def declaration(self, config: MySQLConfig) -> Tables:
        """See `DeclaredFamily.declaration`."""
        return tables(config.table_prefix)

    def upkeep(self, config: MySQLConfig) -> Upkeep:
        """See `DeclaredFamily.upkeep`."""
        from .operations import GraphOperations

        return GraphOperations(config).removing

    def inspection(self, config: MySQLConfig) -> OwnerThreads:
        """See `Family.inspection`."""
        from .inspection.threads import GraphThreads

        return GraphThreads(config)

    def changes(self, config: MySQLConfig) -> OwnerChanges:
        """See `Family.changes`."""
        from .inspection.threads import GraphChanges

        return GraphChanges(config)


GRAPHS = GraphFamily()
