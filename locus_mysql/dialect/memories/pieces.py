"""The base class of this family's statements, and the pieces of SQL that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from ..statement import Statement
from ..template import Statements, placeholders
from ..variants import OCEANBASE
from ..words import pieces_of

T = TypeVar("T")

WRITE_US = "{US_SINCE_2000}"
WRITTEN_AT = "{NOW}"
WRITTEN_AT_PLUS = "{NOW} + INTERVAL %s MICROSECOND"

# Each evaluation of the clock gives another time there, even in one statement. So the statement that begins a write
# stores its time in the session, as LAST_INSERT_ID, and all items of the write get this one. Thus the order of items
# that were written together is that of their keys.
OCEANBASE.instead_of(WRITE_US, "LAST_INSERT_ID({US_SINCE_2000})")
OCEANBASE.instead_of(WRITTEN_AT, "CAST(TIMESTAMPADD(MICROSECOND, LAST_INSERT_ID(), '2000-01-01') AS DATETIME(6))")
OCEANBASE.instead_of(
    WRITTEN_AT_PLUS, "CAST(TIMESTAMPADD(MICROSECOND, LAST_INSERT_ID() + %s, '2000-01-01') AS DATETIME(6))"
)

#: The maximum number of rows that one statement names. The limit also keeps the number of different texts small, as
#: each is cached.
ROWS_PER_STATEMENT = 100

#: Pieces by name. ``{LIVE_ITEM}``: an item ``i`` has not expired. ``{US_SINCE_2000}`` is the server's clock in
#: microseconds, with which stamps begin. ``{WRITE_US}`` is the same in the statement that begins a write;
#: ``{WRITTEN_AT}`` and ``{WRITTEN_AT_PLUS}`` are the time of that write, and the time a number of microseconds later.
#: ``{COLUMNS}`` are those of an item; ``{EMBEDDING}`` those of an embedding ``v``: its content is NULL if it was
#: removed, and its checksum is without the digest and the model, so that the digest need not be read.
PIECES = {
    **pieces_of("i", "items"),
    "LIVE_ITEM": "(i.expires_at IS NULL OR i.expires_at > UTC_TIMESTAMP(6))",
    "US_SINCE_2000": "TIMESTAMPDIFF(MICROSECOND, '2000-01-01', UTC_TIMESTAMP(6))",
    "NOW": "UTC_TIMESTAMP(6)",
    "WRITE_US": WRITE_US,
    "WRITTEN_AT": WRITTEN_AT,
    "WRITTEN_AT_PLUS": WRITTEN_AT_PLUS,
    "EMBEDDING": "v.path, v.item_key, v.number, IF(v.removed = 0, COALESCE(v.embedding, ''), NULL),"
    " v.checksum ^ COALESCE(CRC32(v.digest), 0) ^ v.model, v.model",
    "COLUMNS": "i.path, i.item_key, i.value, i.metadata, i.version, i.created_at, i.updated_at, i.expires_at,"
    " i.checksum",
}


class CountRow(NamedTuple):
    """A number of rows."""

    total: int


class PathRow(NamedTuple):
    """The path of a namespace."""

    path: bytes


class MemoryStatements(Statements):
    """Base of the classes that hold statements."""

    def over_keys(
        self,
        template: str,
        tenant: str,
        keys: Sequence[tuple[bytes, bytes]],
        at_once: int = ROWS_PER_STATEMENT,
        **pieces: str,
    ) -> tuple[Statement, ...]:
        """Return statements about items, by paths and keys, each for at most ``at_once`` items."""
        return tuple(
            Statement(
                self._text(template, keys=placeholders(len(some), "(%s, %s, %s)"), **pieces),
                tuple(param for path, key in some for param in (tenant, path, key)),
            )
            for some in portions(keys, at_once)
        )


def portions(rows: Sequence[T], at_once: int = ROWS_PER_STATEMENT) -> list[Sequence[T]]:
    """Divide rows into parts of at most ``at_once``."""
    return [rows[start : start + at_once] for start in range(0, len(rows), at_once)]
