"""The family of graphs' checkpoints: `GRAPHS`."""

from __future__ import annotations

from ...config import MySQLConfig
from ...records.tables import Tables
from ..family import Maintenance, TableFamily
from ..inspection.sources import ThreadChanges, ThreadSource
from .tables import tables


class GraphFamily(TableFamily):
    """See `Family`."""

    name = "graphs"
    title = "Graphs"
    users = "MySQLCheckpointSaver, and LangGraph's savers"
    unit = "checkpoint"
    vacuumed_by_age = True

    def tables(self, config: MySQLConfig) -> Tables:
        """See `TableFamily.tables`."""
        return tables(config.table_prefix)

    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """See `Family.maintenance`."""
        from .operations import GraphMaintenance

        return GraphMaintenance(config)

    def inspection(self, config: MySQLConfig) -> ThreadSource:
        """See `Family.inspection`."""
        from .inspection.threads import GraphThreads

        return GraphThreads(config)

    def changes(self, config: MySQLConfig) -> ThreadChanges:
        """See `Family.changes`."""
        from .inspection.threads import GraphChanges

        return GraphChanges(config)


GRAPHS = GraphFamily()
