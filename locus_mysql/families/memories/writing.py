"""Writes and deletes items. Generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.moving import KeptRow
from ...dialect.memories.ranges import Range
from ...dialect.memories.vectors import VectorRow
from ...dialect.memories.writing import ItemRow
from ...engine.logs import HOUSEKEEPING, loggable
from ...engine.operation import Batch, Operation, Outdated, fetch, one_in
from ...engine.retry import Backoff
from ...errors import InvalidInput, LocusMySQLError, VersionConflict
from ...runtime.ledger import affected_rows
from .namespaces import labels_of
from .sealed_items import SealedItems
from .vectors.coding import Coded
from .vectors.stored import verified_embeddings

#: The path and key of an item.
ItemKey: TypeAlias = tuple[bytes, bytes]

#: The embeddings of an item, each with the digest of its text if it is of a text.
Vectors: TypeAlias = Sequence[tuple[bytes | None, Coded]]

#: One in this many writes is followed by housekeeping.
HOUSEKEEPING_EVERY = 64

#: The number of items, texts and namespaces that one housekeeping handles.
HOUSEKEEPING_ITEMS = 64

#: The maximum number of items of a batch, which is one transaction.
BATCH_LIMIT = 10_000

#: A write of more items is not sent together with the writes of other calls, which would wait for it.
SHORT_WRITE = 8

#: How long the rows of removed embeddings are kept for caches, in microseconds.
REMOVED_KEPT_US = 3_600_000_000

#: The number of such rows that one transaction deletes.
REMOVED_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to write, checked.

    Args:
        row: The item's row.
        vectors: The embeddings, each with the digest of its text if it is of a text.
        if_version: The version that the stored item must have; 0 for no item; None for any.
    """

    row: ItemRow
    vectors: Vectors = field(default_factory=tuple)
    if_version: int | None = None

    @property
    def key(self) -> ItemKey:
        """Path and key."""
        return (self.row.path, self.row.key)


def vector_row(key: ItemKey, number: int, digest: bytes | None, coded: Coded, *, expires: bool) -> VectorRow:
    """Return the row of an embedding of an item; see `VectorRow`."""
    return VectorRow(*key, number, digest, coded.embedding, coded.sig, coded.model, expires)


class WritingOperations:
    """Writes and deletes items.

    Args:
        config: The options.
        sql: The statements.
    """

    def __init__(self, config: MySQLConfig, sql: MemoryDialect) -> None:
        self.config = config
        self.sql = sql
        self._sealed = SealedItems(config)

    def put(self, tenant: str, item: NewItem) -> Operation[int]:
        """Write an item; returns its version. One round trip.

        Raises:
            VersionConflict: The item has another version than required.
        """
        token = os.urandom(16)
        outcome = self.sql.ledger.find(tenant, token)
        steps = self._put_steps(tenant, token, [item])
        record = self.sql.ledger.record_version(tenant, token, *item.key)
        try:
            results = yield Batch.of(*steps, record, outcome, outcome_query=outcome, lock=self._lock(tenant, [item]))
        except Outdated:
            raise (yield from self._conflict(tenant, [item])) from None
        (recorded,) = results.rows(outcome)
        if one_in(HOUSEKEEPING_EVERY):
            yield from self._housekeeping(tenant)
        return recorded.outcome or 0

    def write(
        self,
        tenant: str,
        items: Sequence[NewItem],
        deleted: Sequence[ItemKey] = (),
        absent: Sequence[ItemKey] = (),
    ) -> Operation[int]:
        """Write and delete items, all or nothing; returns the number of deleted items. One round trip.

        Of several writes of one item, only the last takes effect. An item that is both written and deleted is deleted.

        Raises:
            VersionConflict: An item has another version than required, or one exists that must be absent; nothing was
                changed.
        """
        gone = list(dict.fromkeys(deleted))
        last = {item.key: item for item in items}
        items = [last[key] for key in last.keys() - set(gone)] if gone else list(last.values())
        if not items and not gone:
            return 0
        if len(items) + len(gone) > BATCH_LIMIT:
            raise InvalidInput(f"The batch has {len(items) + len(gone)} items; the limit is {BATCH_LIMIT}. Divide it.")
        token = os.urandom(16)
        steps = self._put_steps(tenant, token, items, gone, absent)
        writing = self.sql.writing
        ledger = self.sql.ledger
        delete = writing.delete(tenant, gone) if gone else None
        record = (ledger.record(tenant, token),) if delete is None else (delete, ledger.record_affected(tenant, token))
        outcome_query = ledger.find(tenant, token)
        try:
            results = yield Batch.of(*steps, record, outcome_query=outcome_query, lock=self._lock(tenant, items))
        except Outdated:
            if absent:
                raise VersionConflict("An item exists that must be absent. Nothing was changed.") from None
            raise (yield from self._conflict(tenant, items)) from None
        if one_in(HOUSEKEEPING_EVERY):
            yield from self._housekeeping(tenant)
        return 0 if delete is None else affected_rows(results, delete, outcome_query)

    def known_vectors(
        self, tenant: str, keys: Sequence[ItemKey], digests: Collection[bytes]
    ) -> Operation[dict[bytes, bytes]]:
        """Return the sound embeddings of texts that items have, by digest of the text. One round trip.

        Args:
            tenant: The tenant.
            keys: The items.
            digests: The digests of the texts in question, by which keyed digests are recognised.
        """
        queries = self.sql.vectors.known(tenant, keys)
        results = yield Batch(queries, atomic=False)
        rows = [row for query in queries for row in results.rows(query)]
        sealed = self._sealed
        return {
            sealed.digest_of(tenant, row.path, row.key, row.digest, digests): row.embedding
            for row in verified_embeddings(tenant, rows, sealed)
        }

    def items_without(self, tenant: str, keys: Sequence[ItemKey], model: int) -> Operation[list[ItemKey]]:
        """Return those of some items that have no embedding of a model. One round trip."""
        queries = self.sql.vectors.having(tenant, keys, model)
        results = yield Batch(queries, atomic=False)
        having = {(row.path, row.key) for query in queries for row in results.rows(query)}
        return [key for key in keys if key not in having]

    def replace_embeddings(self, tenant: str, items: Sequence[tuple[KeptRow, Vectors]]) -> Operation[int]:
        """Replace the embeddings of items that were read; returns the number of items that were unchanged since.

        One round trip; if an item was changed, one for each, as only those that were changed are left alone.
        """
        token, ledger, sealed = os.urandom(16), self.sql.ledger, self._sealed
        keys = [(row.path, row.key) for row, _ in items]
        rows = [
            vector_row((row.path, row.key), number, digest, coded, expires=(row.ttl_us or row.expires_at) is not None)
            for row, vectors in items
            for number, (digest, coded) in enumerate(vectors)
        ]
        read = [(row.path, row.key, row.version, row.updated_at) for row, _ in items]
        try:
            yield Batch.of(
                self.sql.writing.touch(tenant, [path for path, _ in keys], token),
                self.sql.writing.guard_unchanged(tenant, read),
                self.sql.vectors.replace(tenant, keys, [sealed.vector(tenant, row) for row in rows]),
                ledger.record(tenant, token),
                outcome_query=ledger.find(tenant, token),
            )
        except Outdated:
            if len(items) == 1:
                return 0
            replaced = 0
            for item in items:
                replaced += yield from self.replace_embeddings(tenant, [item])
            return replaced
        return len(items)

    def clear(self, tenant: str, path: bytes) -> Operation[int]:
        """Delete all items of a namespace; returns the number of items. One round trip."""
        writing, token, where = self.sql.writing, os.urandom(16), Range(path, exact=True)
        delete, outcome_query = writing.delete_range_live(tenant, where), self.sql.ledger.find(tenant, token)
        results = yield Batch.of(
            writing.touch(tenant, [path], token),
            delete,
            self.sql.ledger.record_affected(tenant, token),
            writing.delete_range(tenant, where),
            self.sql.vectors.remove_range(tenant, where),
            outcome_query=outcome_query,
        )
        if one_in(HOUSEKEEPING_EVERY):
            yield from self._housekeeping(tenant)
        return affected_rows(results, delete, outcome_query)

    def sweep(self, limit: int = 1_000, tenant: str | None = None) -> Operation[int]:
        """Remove expired items, oldest first; returns the number of items. Searches no longer find them.

        Args:
            limit: The maximum number of items to remove.
            tenant: The tenant; None for all tenants.
        """
        removed, backoff = 0, Backoff("Expired items that were deleted were found again")
        while removed < limit:
            asked = min(500, limit - removed)
            expired = yield from fetch(self.sql.writing.expired(asked, tenant))
            backoff.compare(expired)
            keys: dict[str, list[ItemKey]] = {}
            for owner, path, key in expired:
                keys.setdefault(owner, []).append((path, key))
            for owner, some in keys.items():
                removed += yield from self._remove_expired(owner, some)
            if len(expired) < asked:
                break
        return removed

    def purge_removed(
        self, tenant: str, age_us: int = REMOVED_KEPT_US, limit: int = HOUSEKEEPING_ITEMS
    ) -> Operation[int]:
        """Delete the rows of embeddings that were removed long ago; returns the number of rows.

        Args:
            tenant: The tenant.
            age_us: How long these rows are kept for caches, in microseconds.
            limit: The maximum number of namespaces; of each, up to `REMOVED_AT_ONCE` rows are deleted.
        """
        removed = 0
        for (path,) in (yield from fetch(self.sql.vectors.removed(tenant, age_us, limit))):
            lock, purge = self.sql.vectors.purge(tenant, path, age_us, REMOVED_AT_ONCE)
            removed += (yield Batch.of(lock, purge)).of(purge).affected
        return removed

    def _remove_expired(self, tenant: str, keys: Sequence[ItemKey]) -> Operation[int]:
        writing, token = self.sql.writing, os.urandom(16)
        deletes = writing.delete_expired(tenant, keys)
        touch = writing.touch(tenant, [path for path, _ in keys], token)
        gone = self.sql.vectors.remove_gone(tenant, keys)
        record = self.sql.ledger.record_affected(tenant, token)
        outcome_query = self.sql.ledger.find(tenant, token)
        results = yield Batch((*touch, *deletes, record, *gone), outcome_query)
        if results.earlier_attempt is not None:
            return results.rows(outcome_query)[0].outcome or 0
        return sum(results.of(delete).affected for delete in deletes)

    def _put_steps(
        self,
        tenant: str,
        token: bytes,
        items: Sequence[NewItem],
        deleted: Sequence[ItemKey] = (),
        absent: Sequence[ItemKey] = (),
    ) -> list[Statement | tuple[Statement, ...]]:
        """Return the statements that lock namespaces, check versions, write items and replace their embeddings."""
        writing = self.sql.writing
        rows = [
            self._sealed.vector(
                tenant, vector_row(item.key, number, digest, coded, expires=item.row.ttl_us is not None)
            )
            for item in items
            for number, (digest, coded) in enumerate(item.vectors)
        ]
        keys = [item.key for item in items]
        guards = tuple(
            writing.guard(tenant, *item.key, item.if_version) for item in items if item.if_version is not None
        )
        return [
            writing.touch(tenant, [path for path, _ in (*keys, *deleted, *absent)], token),
            (*guards, *writing.guard_absent(tenant, absent)),
            writing.put(tenant, [self._sealed.item(tenant, item.row) for item in items]),
            self.sql.vectors.replace(tenant, [*keys, *deleted], rows),
        ]

    def _lock(self, tenant: str, items: Sequence[NewItem]) -> tuple[str | bytes, ...]:
        """Return the first namespace that a write locks; nothing for a write of many items."""
        if not 0 < len(items) <= SHORT_WRITE:
            return ()
        return self.sql.names["scopes"], tenant, min(item.key[0] for item in items)

    def _conflict(self, tenant: str, items: Sequence[NewItem]) -> Operation[VersionConflict]:
        """Return the error of a write whose items have other versions than required."""
        relied = [item for item in items if item.if_version is not None]
        queries = tuple(self.sql.reading.version(tenant, *item.key) for item in relied)
        results = yield Batch(queries, atomic=False)
        for item, query in zip(relied, queries, strict=True):
            row = results.row(query)
            version = row.version if row else 0
            if version != item.if_version:
                has = f"has version {version!r}" if version else "does not exist"
                return VersionConflict(
                    f"Item {item.row.key.decode()!r} in {labels_of(item.row.path)!r} {has}; the write relied on "
                    f"{f'version {item.if_version}' if item.if_version else 'no such item'}. Nothing was "
                    "changed. Read it again."
                )
        return VersionConflict("An item had another version when it was written. Nothing was changed. Read it again.")

    def _housekeeping(self, tenant: str) -> Operation[None]:
        """Index some texts, and remove some tokens and expired items.

        The write itself has succeeded by then, so a failure is only logged; a later write tries again.
        """
        statements = [self.sql.ledger.forget_old()]
        if self.config.search:
            statements.append(self.sql.writing.index_pending(HOUSEKEEPING_ITEMS, skip_locked=True))
        try:
            yield Batch(tuple(statements), atomic=False)
            yield from self.sweep(HOUSEKEEPING_ITEMS)
            yield from self.purge_removed(tenant)
        except LocusMySQLError as error:
            HOUSEKEEPING.warning("An item was written, but the housekeeping after it failed: %s.", loggable(error))
