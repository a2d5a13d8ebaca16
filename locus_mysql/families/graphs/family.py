"""The family of graphs' checkpoints: `GRAPHS`."""

from __future__ import annotations

from ...config import MySQLConfig
from ...records.maintenance import Upkeep
from ...records.tables import Tables
from ..family import DeclaredFamily
from ..inspection.sources import ThreadChanges, ThreadSource
from .tables import tables


class GraphFamily(DeclaredFamily):
    """See `Family`."""

    name = "graphs"
    title = "Graphs"
    users = "MySQLCheckpointSaver, and LangGraph's savers"
    holds_threads = True
    vacuumed_by_age = True

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`."""
        return (tables(config.table_prefix),)

    def upkeep(self, config: MySQLConfig) -> Upkeep:
        """See `DeclaredFamily.upkeep`."""
        from .operations import GraphOperations

        return GraphOperations(config).removing

    def inspection(self, config: MySQLConfig) -> ThreadSource:
        """See `Family.inspection`."""
        from .inspection.threads import GraphThreads

        return GraphThreads(config)

    def changes(self, config: MySQLConfig) -> ThreadChanges:
        """See `Family.changes`."""
        from .inspection.threads import GraphChanges

        return GraphChanges(config)


GRAPHS = GraphFamily()
