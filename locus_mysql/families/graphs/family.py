"""The family of graphs' checkpoints: `GRAPHS`."""

from __future__ import annotations

from collections.abc import Sequence

from ...config import MySQLConfig
from ...dialect import Schema
from ...dialect.resealing import SealedColumn
from ...records.tables import Tables
from ..family import Maintenance
from ..inspection.sources import ThreadChanges, ThreadSource
from .statements.tables import graph_schema
from .tables import tables


class GraphFamily:
    """See `Family`."""

    name = "graphs"
    title = "Graphs"
    users = "MySQLCheckpointSaver, and LangGraph's savers"
    holds_threads = True
    vacuumed_by_age = True
    on_request = False

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""
        return graph_schema(config.table_prefix)

    def encrypted_columns(self, config: MySQLConfig) -> Sequence[SealedColumn]:
        """See `EncryptsColumns.encrypted_columns`."""
        return tables(config.table_prefix).encrypted_columns()

    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """See `Family.maintenance`."""
        from .operations import GraphMaintenance

        return GraphMaintenance(config)

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`."""
        return (tables(config.table_prefix),)

    def inspection(self, config: MySQLConfig) -> ThreadSource:
        """See `Family.inspection`."""
        from .inspection.threads import GraphThreads

        return GraphThreads(config)

    def changes(self, config: MySQLConfig) -> ThreadChanges:
        """See `Family.changes`."""
        from .inspection.threads import GraphChanges

        return GraphChanges(config)


GRAPHS = GraphFamily()
