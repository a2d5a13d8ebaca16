"""The declaration of the tables of working memory: `tables`."""

from __future__ import annotations

from functools import lru_cache

from ...records.tables import Owner, Part, Row, Seal, Sealed, Tables
from ...runtime.sealing import Sealing
from .statements.tables import table_names, value_identity, working_schema

#: The columns of a checkpoint that its checksum covers, in this order.
COVERED = ("checkpoint_id", "stamp", "label", "variables", "notes", "size_bytes")


def checkpoint_checksum(sealing: Sealing, row: Row) -> int:
    """Return the checksum of the row of a checkpoint; ``sealing`` is that of the session."""
    return sealing.checksum("checkpoint", *(row[one] for one in COVERED))


_VALUE = Sealed(
    "value",
    "value",
    row=("kind", "name", "version"),
    identity=lambda row: value_identity(row["kind"], row["name"], row["version"]),
)


@lru_cache(maxsize=16)
def tables(table_prefix: str) -> Tables:
    """Return the tables with a prefix."""
    return Tables(
        working_schema(table_prefix),
        table_names(table_prefix),
        Owner(
            "sessions",
            key=("session_id",),
            noun="session",
            version=("stamp",),
            id="sid",
            named="session_id",
            turns=("session_id",),
            stamp="stamp",
            written="TIMESTAMPADD(MICROSECOND, o.stamp, '1970-01-01')",
            totals=(("size_bytes", "{byte}"),),
        ),
        (
            Part("entries", key=("sid", "kind", "name"), sealed=(_VALUE,), noun="entry", title="name"),
            Part("history", key=("sid", "kind", "name", "version"), sealed=(_VALUE,), noun="entry", title="name"),
            Part(
                "checkpoints",
                key=("sid", "checkpoint_id"),
                seals=(Seal("checksum", checkpoint_checksum),),
                noun="checkpoint",
                title="checkpoint_id",
            ),
        ),
    )
