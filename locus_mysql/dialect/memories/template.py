"""What the statements of this family share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ..statement import Statement
from ..template import Statements

T = TypeVar("T")

#: At most this many rows are named by one statement. So there are few texts of statements, which are remembered.
ROWS_PER_STATEMENT = 100

#: What stands for pieces that several statements share: an item that has not expired, for the alias ``i``; the server's
#: clock in microseconds; what an item's row is read as; what an embedding is read as, for the alias ``v``, whose
#: checksum then covers all but the digest, which need not be read.
SHARED = {
    "LIVE": "(i.expires_at IS NULL OR i.expires_at > UTC_TIMESTAMP(6))",
    "CLOCK": "TIMESTAMPDIFF(MICROSECOND, '2000-01-01', UTC_TIMESTAMP(6))",
    "EMBEDDING": "v.path, v.item_key, v.place, v.embedding, v.checksum ^ COALESCE(CRC32(v.digest), 0)",
    "COLUMNS": "i.path, i.item_key, i.value, i.metadata, i.version, i.created_at, i.updated_at, i.expires_at,"
    " i.checksum",
}


class MemoryStatements(Statements):
    """Base of the classes that hold statements: fills in table names and shared pieces.

    Args:
        tables: The quoted names, by their role.
    """

    def __init__(self, tables: Mapping[str, str]) -> None:
        super().__init__(tables)
        self._names.update(SHARED)

    def over_keys(
        self, template: str, tenant: str, keys: Sequence[tuple[bytes, bytes]], at_once: int = ROWS_PER_STATEMENT
    ) -> tuple[Statement, ...]:
        """A statement about items by their paths and keys, for as many of them as one may name."""
        return tuple(
            Statement(
                self._text(template.replace("<keys>", ", ".join(["(%s, %s, %s)"] * len(some)))),
                tuple(param for path, key in some for param in (tenant, path, key)),
            )
            for some in portions(keys, at_once)
        )


def portions(rows: Sequence[T], at_once: int = ROWS_PER_STATEMENT) -> list[Sequence[T]]:
    """Rows, as many at a time as a statement may name."""
    return [rows[start : start + at_once] for start in range(0, len(rows), at_once)]
