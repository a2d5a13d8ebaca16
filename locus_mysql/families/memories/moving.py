"""Reads and writes items with all their stored data, for transfers. Generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from ...config import MySQLConfig
from ...engine.operation import Batch, Operation, Outdated, fetch
from ...engine.retry import Backoff
from ...errors import CorruptCheckpoint, DecryptionFailed
from ...records import ledger
from .sealed_items import SealedItems
from .statements import items as of_items
from .statements.dialect import ItemKey, MemoryDialect, Range, Token, of_tenant, portions
from .statements.moving import KEPT, RESTORE, KeptRow, RestoredRow, WholeItemRow, page_of_items
from .statements.vectors import ModelEmbeddingRow, replace_embeddings
from .vectors.coding import decode_vector, encode_vector


class KeptVector(NamedTuple):
    """An embedding of an item.

    Args:
        digest: The digest of its text if it was computed from one.
        raw: 32-bit floats, little-endian.
        model: Its model; see `VectorRow`.
    """

    digest: bytes | None
    raw: bytes
    model: int = 0


@dataclass(frozen=True, slots=True)
class KeptItem:
    """An item with all its stored data.

    Args:
        row: Its row.
        vectors: Its embeddings in order.
        damage: How the row or an embedding is damaged; None if their checksums are right.
    """

    row: KeptRow
    vectors: tuple[KeptVector, ...] = ()
    damage: str | None = None

    @property
    def key(self) -> ItemKey:
        """Its path and key."""
        return (self.row.path, self.row.key)

    @property
    def size_bytes(self) -> int:
        """Approximate number of bytes in a packet."""
        row = self.row
        texts = len(row.value) + len(row.metadata or "") + len(row.text or "")
        return texts + 2 * len(row.path) + 2 * len(row.key) + sum(2 * len(one.raw) for one in self.vectors) + 500


@dataclass(slots=True)
class Restored:
    """The result of `restore`.

    Args:
        written: Number of items that were written.
        present: Number of items that were stored already, identical.
        differing: Items that differ in the tables, and were not replaced.
    """

    written: int = 0
    present: int = 0
    differing: list[ItemKey] = field(default_factory=list)


class MovingOperations:
    """Reads and writes whole items.

    Args:
        config: The options.
        sql: The names of the tables.
    """

    def __init__(self, config: MySQLConfig, sql: MemoryDialect) -> None:
        self.config = config
        self.sql = sql
        self._sealed = SealedItems(config)

    def page(self, tenant: str, where: Range, after: ItemKey | None, limit: int) -> Operation[list[KeptItem]]:
        """Return unexpired items after a position, in the order of their paths and keys. One round trip."""
        rows = yield from fetch(page_of_items(self.sql, tenant, where, after, limit))
        return [item for item, _ in items_of(tenant, rows, self._sealed)]

    def kept(self, tenant: str, keys: Iterable[ItemKey]) -> Operation[list[KeptItem]]:
        """Return those of some items that exist and have not expired. One round trip."""
        found = yield from self._stored(tenant, keys)
        return [item for item, live in found.values() if live]

    def restore(self, tenant: str, items: Sequence[KeptItem], *, overwrite: bool = False) -> Operation[Restored]:
        """Write items, and read them again to compare. May be repeated: stored items are skipped.

        Args:
            tenant: The tenant to store them for.
            items: The items. Of several with the same key, the last is written if ``overwrite`` is set, else the first.
            overwrite: Whether items that differ in the tables are replaced; else they stay unchanged.

        Returns:
            The counts. Items counted as written or present were read back, and are identical.
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
        stored = yield from self._stored(tenant, wanted)
        backoff = Backoff("Other writers changed items while these were copied")
        while True:
            same = {key for key, (item, _) in stored.items() if item == wanted[key]}
            alive = {key for key, (_, live) in stored.items() if live} - same
            missing = [key for key in wanted if key not in same and key not in alive]
            writing = [*missing, *alive] if overwrite else missing
            if not writing:
                break
            try:
                yield from self._write(tenant, [wanted[key] for key in writing], () if overwrite else missing)
            except Outdated:  # another process wrote one of them meanwhile
                yield backoff.pause()
                stored = yield from self._stored(tenant, wanted)
                continue
            stored = yield from self._stored(tenant, wanted)
            written = [key for key in writing if key in stored and stored[key][0] == wanted[key]]
            done.written += len(written)
            done.present += len(same)
            done.differing += [key for key in wanted if key not in same and key not in written]
            return done
        done.present += len(same)
        done.differing += list(alive)
        return done

    def _stored(self, tenant: str, keys: Iterable[ItemKey]) -> Operation[dict[ItemKey, tuple[KeptItem, bool]]]:
        """Return those of these items that are stored, each with whether it has not expired."""
        queries = tuple(KEPT(self.sql, keys=some) for some in of_tenant(tenant, list(keys)))
        results = yield Batch(queries, atomic=False)
        found = items_of(tenant, (row for query in queries for row in results.rows(query)), self._sealed)
        return {item.key: (self._fitting(item), live) for item, live in found}

    def _write(self, tenant: str, items: Sequence[KeptItem], absent: Sequence[ItemKey]) -> Operation[None]:
        token = Token(tenant, os.urandom(16))
        keys = [item.key for item in items]
        vectors = [
            row
            for item in items
            for row in self._sealed.seal_embeddings(
                tenant,
                item.key,
                [(one.digest, encode_vector(decode_vector(one.raw), None, model=one.model)) for one in item.vectors],
                expires=item.row.ttl_us is not None or item.row.expires_at is not None,
            )
        ]
        rows = [self._restored(tenant, item.row) for item in items]
        yield Batch.of(
            of_items.touch(self.sql, token, [path for path, _ in keys]),
            [of_items.GUARD_ABSENT(self.sql, keys=some) for some in of_tenant(tenant, absent)],
            [RESTORE(self.sql, rows=some) for some in portions(rows)],
            replace_embeddings(self.sql, tenant, keys, vectors),
            ledger.RECORD(self.sql, token),
            outcome_query=ledger.FIND(self.sql, token),
        )

    def _restored(self, tenant: str, row: KeptRow) -> RestoredRow:
        value, seal = self._sealed.seal_value(tenant, (row.path, row.key), row.value, row.metadata)
        return RestoredRow(
            *(tenant, row.path, row.key, value, row.metadata, row.version, row.ttl_us, row.embed_paths, row.text),
            *(None if row.text is None else 1, row.created_at, row.updated_at, row.expires_at, seal),
        )

    def _fitting(self, item: KeptItem) -> KeptItem:
        """Return an item as these tables store it: without a full-text index they have no text."""
        return item if self.config.search or item.row.text is None else replace(item, row=replace(item.row, text=None))


def items_of(tenant: str, rows: Iterable[WholeItemRow], sealed: SealedItems) -> list[tuple[KeptItem, bool]]:
    """Return the items in rows, each with whether it has not expired. An item has a row for each embedding."""
    heads: dict[ItemKey, tuple[KeptRow, bool]] = {}
    vectors: dict[ItemKey, list[KeptVector]] = {}
    damages: dict[ItemKey, str] = {}
    for row in rows:
        key = (row.path, row.key)
        if key not in heads:
            value = row.value
            try:
                value = sealed.open_value(tenant, row)
            except DecryptionFailed:
                raise
            except CorruptCheckpoint:
                damages[key] = "its seal is wrong"
            heads[key] = (_kept_row(row, value), bool(row.live))
        if row.embedding is not None and row.number is not None and row.model is not None:
            try:
                opened = sealed.open_embedding(tenant, ModelEmbeddingRow(*key, row.number, row.embedding, row.model))
            except DecryptionFailed:
                raise
            except CorruptCheckpoint:
                damages.setdefault(key, "the seal of an embedding is wrong")
            else:
                vectors.setdefault(key, []).append(KeptVector(*opened, row.model))
    return [(KeptItem(row, tuple(vectors.get(key, ())), damages.get(key)), live) for key, (row, live) in heads.items()]


def time_text(time: datetime) -> str:
    """Return a time in UTC as MySQL writes it."""
    return time.isoformat(" ", "microseconds")


def _kept_row(row: WholeItemRow, value: str) -> KeptRow:
    return KeptRow(
        path=row.path,
        key=row.key,
        value=value,
        metadata=row.metadata,
        version=row.version,
        ttl_us=row.ttl_us,
        text=row.text,
        created_at=time_text(row.created_at),
        updated_at=time_text(row.updated_at),
        expires_at=None if row.expires_at is None else time_text(row.expires_at),
        embed_paths=row.embed_paths,
    )
