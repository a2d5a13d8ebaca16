"""The families of thread states, `DICTS` and `CURRENT`, with the declaration of their tables.

That of Locus agents is in ``integrations/locus``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.statement import fill
from ...dialect.words import Parser
from ...records.maintenance import Upkeep
from ...records.tables import Owner, Part, Row, Seal, Sealed, Tables
from ...runtime.sealing import Sealing
from ..family import DeclaredFamily
from .statements import removing
from .statements.tables import BASE_ROW, PIECES, CheckpointDialect, Kind, ThreadKey, checkpoint_dialect

if TYPE_CHECKING:
    from ..inspection.changes import OwnerChanges
    from ..inspection.owners import OwnerThreads
    from .store import StoreOperations


def _seal(sealing: Sealing, row: Row) -> int | None:
    """Return the seal of a checkpoint's row; None for a row whose id was removed."""
    from .records import row_seal

    if row["checkpoint_id"] is None:
        return None
    return row_seal(sealing, row["checkpoint_id"], row["token"], row["metadata"])


def _removing(
    sql: CheckpointDialect, tenant: str, token: bytes, threads: Sequence[Row]
) -> tuple[list[Statement], list[Statement]]:
    """Return the statements that remove checkpoints; the tokens of their saves, which may be repeated, are recorded."""
    keys = [ThreadKey(tenant, row["thread_id"]) for row in threads]
    return [], [one(sql, key) for key in keys for one in (removing.RECORD_ALL, removing.DELETE_ALL)]


@lru_cache(maxsize=64)
def tables(table_prefix: str, kind: Kind, *, search: bool, search_parser: Parser) -> Tables:
    """Return the tables of one kind of states.

    The token identifies a row in its seal, as it is chosen before the server assigns the seq.
    """
    sql = checkpoint_dialect(table_prefix, kind, search=search, search_parser=search_parser)
    names = sql.names
    return Tables(
        sql.schema,
        names,
        Owner(
            "threads",
            key=("thread_id",),
            noun="thread",
            version=("version",),
            named="thread_id",
            updated="updated_at",
            recent="updated_at",
            idles=True,
            turns=("thread_id",),
            about="o.last_seq - o.first_seq + 1",
        ),
        (
            Part(
                "checkpoints",
                key=("thread_id", "seq"),
                sealed=(
                    Sealed(
                        "payload",
                        "payload",
                        row=("token",),
                        base=fill(BASE_ROW, {"table": names["checkpoints"]}),
                        cleared=("search_text", "pending_text", "unindexed"),
                    ),
                ),
                seals=(Seal("seal", _seal),),
                noun="checkpoint",
                title="checkpoint_id",
                since=("seq", "first_seq"),
                counted="checkpoint_id IS NOT NULL",
                size=PIECES["SIZE"],
                at="created_at",
            ),
        ),
        removing=partial(_removing, sql),
        restores=True,
    )


class CheckpointFamily(DeclaredFamily):
    """The tables of one kind of thread states. See `Family`.

    Args:
        kind: What the states are. It is the family's name, too.
        title: The family's name on pages.
        users: The public classes that use the tables.
    """

    unit = "checkpoint"
    vacuumed_by_age = True

    def __init__(self, kind: Kind, title: str, users: str) -> None:
        self.kind = kind
        self.name = kind
        self.title = title
        self.users = users

    def declaration(self, config: MySQLConfig) -> Tables:
        """See `DeclaredFamily.declaration`."""
        return tables(config.table_prefix, self.kind, search=config.search, search_parser=config.search_parser)

    def upkeep(self, config: MySQLConfig) -> Upkeep:
        """Return what is special about the upkeep."""
        from .maintenance import CheckpointUpkeep
        from .statements.tables import checkpoint_dialect

        return CheckpointUpkeep(
            checkpoint_dialect(
                config.table_prefix, self.kind, search=config.search, search_parser=config.search_parser
            ),
            config.ttl_s,
        )

    def inspection(self, config: MySQLConfig) -> OwnerThreads:
        """Return the object that reads the tenant's threads for the inspector and the API."""
        from .inspection import CheckpointThreads

        return CheckpointThreads(config, self.kind)

    def changes(self, config: MySQLConfig) -> OwnerChanges:
        """Return the object that copies and deletes threads for the inspector, the API and ``rm``; None without."""
        from .inspection import CheckpointChanges

        return CheckpointChanges(self.operations(config))

    def operations(self, config: MySQLConfig) -> StoreOperations:
        """Return the operations on states, each of which is a dict."""
        from .store import StoreOperations

        return StoreOperations(config, self.kind)


DICTS = CheckpointFamily("dicts", "Plain states", "CheckpointStore")

CURRENT = CheckpointFamily("current", "Current states", "MySQLBackend")
