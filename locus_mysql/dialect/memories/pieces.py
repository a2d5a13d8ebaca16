"""The base class of this family's statements, and the pieces of SQL that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from ..statement import Statement
from ..template import Statements, places

T = TypeVar("T")

#: The most rows that one statement names. So there are few texts of statements, which are remembered.
ROWS_PER_STATEMENT = 100

#: The pieces that several statements share: the condition that an item has not expired, for the alias ``i``; the
#: server's clock in microseconds; the columns of an item; and the columns of an embedding, for the alias ``v``, with
#: the checksum of all but the digest, which need not be read.
PIECES = {
    "LIVE": "(i.expires_at IS NULL OR i.expires_at > UTC_TIMESTAMP(6))",
    "CLOCK": "TIMESTAMPDIFF(MICROSECOND, '2000-01-01', UTC_TIMESTAMP(6))",
    "EMBEDDING": "v.path, v.item_key, v.place, v.embedding, v.checksum ^ COALESCE(CRC32(v.digest), 0)",
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
                self._text(template, keys=places(len(some), "(%s, %s, %s)"), **pieces),
                tuple(param for path, key in some for param in (tenant, path, key)),
            )
            for some in portions(keys, at_once)
        )


def portions(rows: Sequence[T], at_once: int = ROWS_PER_STATEMENT) -> list[Sequence[T]]:
    """Divide rows into parts of at most ``at_once``."""
    return [rows[start : start + at_once] for start in range(0, len(rows), at_once)]
