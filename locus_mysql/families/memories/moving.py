"""Reading items whole and writing them as they were, as generators that do no I/O: for export, import, moving over."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import cast

from ...config import MySQLConfig
from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.moving import KeptRow
from ...dialect.memories.ranges import Range
from ...dialect.memories.vectors import VectorRow
from ...dialect.memories.writing import item_checksum
from ...drivers.interface import Row
from ...engine.operation import Batch, Operation, Outdated
from .records import WRONG_CHECKSUM, WRONG_EMBEDDING
from .vectors.coding import decode_vector, encode_vector
from .vectors.stored import is_sound
from .writing import ItemKey


@dataclass(frozen=True, slots=True)
class KeptItem:
    """An item with all that is kept of it, to be written as it is.

    Args:
        row: What stands in its row.
        vectors: Its embeddings in order, as 32-bit floats, little-endian, each with the digest of its text if it is of
            a text.
        damage: Why what was read cannot be what was written; None if nothing speaks against it.
    """

    row: KeptRow
    vectors: tuple[tuple[bytes | None, bytes], ...] = ()
    damage: str | None = None

    @property
    def key(self) -> ItemKey:
        """Path and key."""
        return (self.row.path, self.row.key)

    @property
    def size_bytes(self) -> int:
        """About how much it takes in a packet."""
        row = self.row
        texts = len(row.value) + len(row.metadata or "") + len(row.text or "")
        return texts + 2 * len(row.path) + 2 * len(row.key) + sum(2 * len(raw) for _, raw in self.vectors) + 500


@dataclass(slots=True)
class Restored:
    """What became of items that were to be written as they were.

    Args:
        written: How many were not there, and are now.
        present: How many were there already, the same in all.
        differing: Those that are there as something else, and were left alone.
    """

    written: int = 0
    present: int = 0
    differing: list[ItemKey] = field(default_factory=list)


class MovingOperations:
    """What moves items.

    Args:
        config: The options.
        sql: The statements.
    """

    def __init__(self, config: MySQLConfig, sql: MemoryDialect) -> None:
        self.config = config
        self.sql = sql

    def page(self, tenant: str, where: Range, after: ItemKey | None, limit: int) -> Operation[list[KeptItem]]:
        """Items that have not expired, in the order of their paths and keys, behind one. One round trip."""
        (found,) = yield Batch.of(self.sql.moving.page(tenant, where, after, limit))
        return [item for item, _ in items_of(tenant, found.rows)]

    def restore(self, tenant: str, items: Sequence[KeptItem], *, overwrite: bool = False) -> Operation[Restored]:
        """Write items as they were, and read them again to compare. May be repeated: what is there is passed over.

        Args:
            tenant: Whose.
            items: The items. Of several with one key the last counts if it may overwrite, else the first.
            overwrite: Whether items that are there as something else are written over; else they are left alone.

        Returns:
            What became of them. All that count as written or present were read and are the same in all.
        """
        done = Restored()
        wanted: dict[ItemKey, KeptItem] = {}
        for item in map(self._fitting, items):
            if not overwrite and item.key in wanted:
                if item == wanted[item.key]:
                    done.present += 1
                else:
                    done.differing.append(item.key)
                continue
            wanted[item.key] = item
        there = yield from self._there(tenant, wanted)
        while True:
            same = {key for key, (item, _) in there.items() if item == wanted[key]}
            alive = {key for key, (_, live) in there.items() if live} - same
            missing = [key for key in wanted if key not in same and key not in alive]
            writing = [*missing, *alive] if overwrite else missing
            if not writing:
                break
            try:
                yield from self._write(tenant, [wanted[key] for key in writing], () if overwrite else missing)
            except Outdated:  # somebody wrote one of them meanwhile: look again
                there = yield from self._there(tenant, wanted)
                continue
            there = yield from self._there(tenant, wanted)
            written = [key for key in writing if key in there and there[key][0] == wanted[key]]
            done.written += len(written)
            done.present += len(same)
            done.differing += [key for key in wanted if key not in same and key not in written]
            return done
        done.present += len(same)
        done.differing += list(alive)
        return done

    def _there(self, tenant: str, keys: Iterable[ItemKey]) -> Operation[dict[ItemKey, tuple[KeptItem, bool]]]:
        """Those of these items that are stored, each with whether it has not expired."""
        results = yield Batch(self.sql.moving.kept(tenant, list(keys)), atomic=False)
        found = items_of(tenant, (row for result in results for row in result.rows))
        return {item.key: (self._fitting(item), live) for item, live in found}

    def _write(self, tenant: str, items: Sequence[KeptItem], absent: Sequence[ItemKey]) -> Operation[None]:
        writing, token = self.sql.writing, os.urandom(16)
        keys = [item.key for item in items]
        vectors = [
            VectorRow(
                *item.key,
                place,
                digest,
                *encode_vector(decode_vector(raw), None),
                expires=item.row.ttl_us is not None or item.row.expires_at is not None,
            )
            for item in items
            for place, (digest, raw) in enumerate(item.vectors)
        ]
        yield Batch.named(
            writing.touch(tenant, [path for path, _ in keys], token),
            self.sql.moving.absent(tenant, absent),
            self.sql.moving.restore(tenant, [item.row for item in items]),
            self.sql.vectors.replace(tenant, keys, vectors),
            writing.settle_affected(tenant, token),
            landed=writing.outcome(tenant, token),
        )

    def _fitting(self, item: KeptItem) -> KeptItem:
        """An item as these tables keep it: without a full-text index there is no text to search."""
        return item if self.config.search or item.row.text is None else replace(item, row=replace(item.row, text=None))


def items_of(tenant: str, rows: Iterable[Row]) -> list[tuple[KeptItem, bool]]:
    """Items from rows, of which several stand for one with several embeddings; each with whether it has not expired."""
    heads: dict[ItemKey, tuple[KeptRow, bool]] = {}
    vectors: dict[ItemKey, list[tuple[bytes | None, bytes]]] = {}
    damages: dict[ItemKey, str] = {}
    for row in rows:
        key = (cast(bytes, row[0]), cast(bytes, row[1]))
        if key not in heads:
            heads[key] = (_row_of(row), bool(row[11]))
            if row[8] != item_checksum(tenant, *cast("tuple[bytes, bytes, str, str | None, int]", row[:5])):
                damages[key] = WRONG_CHECKSUM
        embedding = row[13:]
        if embedding[3] is not None:
            vectors.setdefault(key, []).append((cast("bytes | None", row[12]), cast(bytes, embedding[3])))
            if not is_sound(tenant, embedding):
                damages.setdefault(key, WRONG_EMBEDDING)
    return [(KeptItem(row, tuple(vectors.get(key, ())), damages.get(key)), live) for key, (row, live) in heads.items()]


def time_text(time: datetime) -> str:
    """A time in UTC as MySQL writes it."""
    return time.isoformat(" ", "microseconds")


def _row_of(row: Row) -> KeptRow:
    path, key, value, metadata, version, created_at, updated_at, expires_at, _, ttl_us, text = row[:11]
    return KeptRow(
        cast(bytes, path),
        cast(bytes, key),
        cast(str, value),
        cast("str | None", metadata),
        cast(int, version),
        cast("int | None", ttl_us),
        cast("str | None", text),
        time_text(cast(datetime, created_at)),
        time_text(cast(datetime, updated_at)),
        None if expires_at is None else time_text(cast(datetime, expires_at)),
    )
