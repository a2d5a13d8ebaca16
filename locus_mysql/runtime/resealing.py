"""Encrypts stored rows anew, with the active key: `reseal`. In batches, beside running writers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..dialect.resealing import ResealingStatements, RowKey, SealedColumn
from ..encryption import Encryption
from ..engine.operation import Batch, Operation
from ..errors import DecryptionFailed, EncryptionError
from .sealing import Sealing, sealed_by

#: Rows whose keys one statement reads.
PAGE_ROWS = 1_000

#: Rows that one transaction replaces.
BATCH_ROWS = 50


@dataclass(slots=True)
class KeyCounts:
    """Rows of a column by the keys that encrypt them.

    Args:
        rows: The number of rows by the id of the key; None stands for clear text.
        replaced: Rows that were encrypted anew.
        damaged: Messages about rows that cannot be decrypted, and were left as they are.
    """

    rows: Counter[str | None] = field(default_factory=Counter)
    replaced: int = 0
    damaged: list[str] = field(default_factory=list)

    def others(self, active: str) -> int:
        """Return the number of rows that another key encrypts, or none."""
        return self.rows.total() - self.rows[active]


def count_keys(column: SealedColumn) -> Operation[KeyCounts]:
    """Count the rows of a column, of all tenants, by the keys that encrypt them. Changes nothing."""
    counts = KeyCounts()
    statements = ResealingStatements(column)
    after: RowKey | None = ()
    while after is not None:
        page, after = yield from _page(statements, after)
        counts.rows.update(key_id for _, key_id in page)
    return counts


def reseal(
    column: SealedColumn, family: str, encryption: Encryption, progress: Callable[[int], None] = lambda _: None
) -> Operation[KeyCounts]:
    """Encrypt the rows of a column, of all tenants, with the active key where another key or none encrypts them.

    Rows are replaced only if their bytes are those that were read, so writers are not disturbed. It may be stopped and
    started again at any time.

    Args:
        column: The column.
        family: The family's name.
        encryption: The keys.
        progress: Called with the number of rows of each page.

    Raises:
        EncryptionError: A row is encrypted with an unknown key. Rows before it were replaced.
    """
    counts = KeyCounts()
    statements = ResealingStatements(column)
    sealing = Sealing(encryption, family)
    after: RowKey | None = ()
    while after is not None:
        page, after = yield from _page(statements, after)
        stale = [key for key, key_id in page if key_id != encryption.active]
        for start in range(0, len(stale), BATCH_ROWS):
            yield from _replace(column, statements, sealing, stale[start : start + BATCH_ROWS], counts)
        counts.rows.update(key_id for _, key_id in page)
        progress(len(page))
    return counts


def _page(
    statements: ResealingStatements, after: RowKey
) -> Operation[tuple[list[tuple[RowKey, str | None]], RowKey | None]]:
    """Return the next rows that hold something, each as its key and the id of its key; and the last row's key.

    The latter is None after the last page.
    """
    (found,) = yield Batch.of(statements.page(after, PAGE_ROWS))
    rows = []
    for row in found.rows:
        *key, beginning, has_clear_text = row
        # The beginning is too short to hold a nonce and a tag.
        key_id = sealed_by(_bytes(beginning) + bytes(64))
        if beginning or has_clear_text:
            rows.append((tuple(key), None if has_clear_text else key_id))
    last = tuple(found.rows[-1][:-2]) if len(found.rows) == PAGE_ROWS else None
    return rows, last


def _replace(
    column: SealedColumn,
    statements: ResealingStatements,
    sealing: Sealing,
    keys: Sequence[RowKey],
    counts: KeyCounts,
) -> Operation[None]:
    """Encrypt some rows anew."""
    (found,) = yield Batch.of(statements.rows(keys))
    replaced = []
    for key, named, content in _split(column, found.rows):
        tenant, *others = named
        owner, row = others[: len(column.owner)], others[len(column.owner) :]
        what = f"Row {key!r} of table {column.table!r}"
        bound = sealing.of(tenant, *map(_part, owner))
        try:
            clear = content if sealed_by(content) is None else bound.open(content, what, column.name, *map(_part, row))
        except DecryptionFailed as error:
            counts.damaged.append(str(error))
            continue
        sealed = bound.seal(clear, column.name, *map(_part, row))
        replaced.append(statements.replace(key, sealed, hashlib.sha256(content).hexdigest()))
    if replaced:
        results = yield Batch(tuple(replaced))
        counts.replaced += sum(result.affected for result in results)


def _split(column: SealedColumn, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[RowKey, tuple[Any, ...], bytes]]:
    """Yield the parts of rows: the key, the columns that the bytes are bound to, and the bytes."""
    end = len(column.key)
    for row in rows:
        yield tuple(row[:end]), tuple(row[end:-1]), _bytes(row[-1])


def _bytes(value: Any) -> bytes:
    if value is None:
        return b""
    return value.encode() if isinstance(value, str) else bytes(value)


def _part(value: Any) -> str | bytes:
    """Return the value of a column as a part of a row's key."""
    return value if isinstance(value, str | bytes) else str(value)


def no_encryption() -> EncryptionError:
    """Return the error for a call that needs keys."""
    return EncryptionError(
        "Rows cannot be encrypted, as there are no keys: set encryption=Encryption(keys=…, active=…)."
    )
