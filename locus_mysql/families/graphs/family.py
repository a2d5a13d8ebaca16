"""The family of graphs' checkpoints: `GRAPHS`, with the declaration of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.sql import Dialect
from ...dialect.statement import fill
from ...records.maintenance import Upkeep
from ...records.tables import Owner, Part, Row, Sealed, Tables
from ..family import DeclaredFamily
from .statements import threads
from .statements.tables import ThreadKey, graph_dialect

if TYPE_CHECKING:
    from ..inspection.changes import OwnerChanges
    from ..inspection.owners import OwnerThreads

#: The time of the last save of a thread; see `LAG_S`.
_WRITTEN = """GREATEST(o.updated_at, COALESCE((SELECT c.created_at
                              FROM `{}` c
                             WHERE c.tenant = o.tenant AND c.thread_id = o.thread_id
                             ORDER BY c.seq DESC LIMIT 1), o.updated_at))"""


def _removing(
    sql: Dialect, tenant: str, token: bytes, owners: Sequence[Row]
) -> tuple[list[Statement], list[Statement]]:
    """Return the statements that remove all of threads; the tokens of their saves are recorded."""
    keys = [ThreadKey(tenant, row["thread_id"]) for row in owners]
    return [], [one(sql, key) for key in keys for one in (threads.RECORD_ALL, *threads.DELETE_ALL)]


@lru_cache(maxsize=16)
def tables(table_prefix: str) -> Tables:
    """Return the tables with a prefix.

    A save that only adds a checkpoint changes nothing in the thread's row, so threads are compared by all their rows. A
    part is bound to its thread only, as it may move to another table; checkpoints name the checksums of their parts.
    """
    sql = graph_dialect(table_prefix)
    return Tables(
        sql.schema,
        sql.names,
        Owner(
            "threads",
            key=("thread_id",),
            noun="thread",
            epoch=("epoch",),
            fresh=(("epoch", 8),),
            named="thread_id",
            written=_WRITTEN.format(sql.names["checkpoints"]),
            recent="updated_at",
            idles=True,
            turns=("thread_id",),
            about="o.last_seq",
        ),
        (
            Part(
                "checkpoints",
                key=("thread_id", "ns_key", "seq"),
                sealed=(
                    Sealed("payload", "payload", row=("checkpoint_key", "parent_key", "needs", "metadata")),
                    Sealed("chunk", "chunk"),
                ),
                noun="checkpoint",
                title="checkpoint_id",
                counted="hidden = 0",
                size=sql.pieces["ROW_BYTES"],
                at="created_at",
                beside=fill("{PARTS_OF_ROW}", sql.pieces),
            ),
            Part("parts", key=("thread_id", "part"), sealed=(Sealed("chunk", "chunk"),), noun="part of a value"),
            Part(
                "writes",
                key=("thread_id", "checkpoint_key", "task_key", "idx"),
                sealed=(Sealed("payload", "write", row=("checkpoint_key", "task_id", "idx", "channel", "task_path")),),
                noun="write",
                title="task_id",
            ),
        ),
        removing=partial(_removing, sql),
        restores=True,
    )


class GraphFamily(DeclaredFamily):
    """Checkpoints of graphs, as LangGraph's savers keep them."""

    name = "graphs"
    title = "Graphs"
    users = "MySQLCheckpointSaver, and LangGraph's savers"
    unit = "checkpoint"
    vacuumed_by_age = True

    def declaration(self, config: MySQLConfig) -> Tables:
        """See `DeclaredFamily.declaration`."""
        return tables(config.table_prefix)

    def upkeep(self, config: MySQLConfig) -> Upkeep:
        """Return what is special about the upkeep."""
        from .operations import GraphOperations

        return GraphOperations(config).removing

    def inspection(self, config: MySQLConfig) -> OwnerThreads:
        """Return the object that reads the tenant's threads for the inspector and the API."""
        from .inspection.threads import GraphThreads

        return GraphThreads(config)

    def changes(self, config: MySQLConfig) -> OwnerChanges:
        """Return the object that copies and deletes threads for the inspector, the API and ``rm``; None without."""
        from .inspection.threads import GraphChanges

        return GraphChanges(config)


GRAPHS = GraphFamily()
