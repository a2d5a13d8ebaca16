"""The declaration of the tables of checkpoints: `tables`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from ...dialect import Statement
from ...dialect.template import fill
from ...dialect.words import Parser
from ...records.tables import Owner, Part, Row, Seal, Sealed, Tables
from ...runtime.sealing import Sealing
from .statements import ledger, removing
from .statements.dialect import CheckpointDialect, checkpoint_dialect
from .statements.tables import BASE_ROW, Kind, ThreadKey


def _seal(sealing: Sealing, row: Row) -> int | None:
    """Return the seal of a checkpoint's row; None for a row whose id was removed."""
    from .state_rows import row_seal

    if row["checkpoint_id"] is None:
        return None
    return row_seal(sealing, row["checkpoint_id"], row["token"], row["metadata"])


def _removing(
    sql: CheckpointDialect, tenant: str, token: bytes, threads: Sequence[Row]
) -> tuple[list[Statement], list[Statement]]:
    """Return the statements that remove checkpoints; the tokens of their saves, which may be repeated, are recorded."""
    keys = [ThreadKey(tenant, row["thread_id"]) for row in threads]
    return [], [one(sql, key) for key in keys for one in (ledger.RECORD_ALL, removing.DELETE_ALL)]


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
            unmoved=("turn_token", "turn_until"),
            named="thread_id",
            updated="updated_at",
            recent="updated_at",
            idles=True,
            used_until="turn_until",
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
            ),
        ),
        removing=partial(_removing, sql),
        restores=True,
    )
