"""Writes and deletes items. Generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...dialect import Statement
from ...engine.operation import Batch, Operation, Outdated, fetch
from ...errors import InvalidInput, VersionConflict
from ...records import ledger
from ...records.maintenance import Maintenance
from ...records.moving import plain
from ...runtime.server_rows import readable
from .arguments import labels_of
from .sealed_items import ItemTables
from .statements import items as of_items
from .statements import vectors as of_vectors
from .statements.items import PutRow, SeenRow, WholeItemRow, touch
from .statements.tables import ItemKey, ItemPlace, Place, Token, of_tenant, owner_of, portions
from .statements.vectors import replace_embeddings
from .tables import tables_of
from .vectors.coding import Coded

#: The embeddings of an item, each with the digest of its text if it is of a text.
Vectors: TypeAlias = Sequence[tuple[bytes | None, Coded]]

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
    """An item to write, checked and encoded.

    Args:
        key: The path of its namespace, and its key.
        value: JSON text.
        metadata: JSON text of an object.
        ttl_us: The time to live in microseconds.
        text: The text that is searched by word.
        embed_paths: JSON text of the paths whose texts are embedded; None for those of the store.
        if_version: The version that the stored item must have; 0 for no item; None for any.
        vectors: The embeddings, each with the digest of its text if it is of a text.
        texts: Texts without duplicates whose embeddings are still to be added to these.
    """

    key: ItemKey
    value: str
    metadata: str | None = None
    ttl_us: int | None = None
    text: str | None = None
    embed_paths: str | None = None
    if_version: int | None = None
    vectors: Vectors = ()
    texts: Sequence[str] = ()


class WritingOperations(ItemTables):
    """Writes and deletes items."""

    def put(self, tenant: str, item: NewItem) -> Operation[int]:
        """Write an item; returns its version. One round trip.

        Raises:
            VersionConflict: The item has another version than required.
        """
        token = Token(tenant, os.urandom(16))
        outcome = ledger.FIND(self.sql, token)
        steps = self._put_steps(token, [item])
        record = of_items.RECORD_VERSION(self.sql, token, path=item.key[0], key=item.key[1])
        try:
            results = yield Batch.of(*steps, record, outcome, outcome_query=outcome, lock=self._lock(tenant, [item]))
        except Outdated:
            raise (yield from self._conflict(tenant, [item])) from None
        (recorded,) = results.rows(outcome)
        yield from ledger.in_passing(lambda: self._housekeeping(tenant))
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
        deleted = list(dict.fromkeys(deleted))
        last = {item.key: item for item in items}
        items = [last[key] for key in last.keys() - set(deleted)] if deleted else list(last.values())
        if not items and not deleted:
            return 0
        if len(items) + len(deleted) > BATCH_LIMIT:
            raise InvalidInput(
                f"The batch has {len(items) + len(deleted)} items; the limit is {BATCH_LIMIT}. Divide it."
            )
        token = Token(tenant, os.urandom(16))
        steps = self._put_steps(token, items, deleted, absent)
        outcome_query = ledger.FIND(self.sql, token)
        delete = None
        record: list[Statement] = [ledger.RECORD(self.sql, token)]
        if deleted:  # a single statement, so that its number of affected rows counts them
            delete = of_items.DELETE(self.sql, keys=[ItemPlace(tenant, *key) for key in deleted])
            record = [delete, ledger.RECORD_AFFECTED(self.sql, token)]
        try:
            results = yield Batch.of(*steps, record, outcome_query=outcome_query, lock=self._lock(tenant, items))
        except Outdated:
            if absent:
                raise VersionConflict("An item exists that must be absent. Nothing was changed.") from None
            raise (yield from self._conflict(tenant, items)) from None
        yield from ledger.in_passing(lambda: self._housekeeping(tenant))
        return 0 if delete is None else ledger.affected_rows(results, delete, outcome_query)

    def known_vectors(self, tenant: str, keys: Sequence[ItemKey]) -> Operation[dict[bytes, bytes]]:
        """Return the undamaged embeddings of texts that items have, by digest of the text. One round trip."""
        queries = tuple(of_vectors.OF_ITEMS(self.sql, keys=some) for some in of_tenant(tenant, keys))
        results = yield Batch(queries, atomic=False)
        rows = [row for query in queries for row in results.rows(query)]
        opened = readable(lambda row: self._sealed.open_embedding(tenant, row), rows)
        return {digest: embedding for digest, embedding in opened if digest is not None}

    def items_without(self, tenant: str, keys: Sequence[ItemKey], model: int) -> Operation[list[ItemKey]]:
        """Return those of some items that have no embedding of a model. One round trip."""
        queries = tuple(of_vectors.HAVING(self.sql, keys=some, model=model) for some in of_tenant(tenant, keys))
        results = yield Batch(queries, atomic=False)
        having = {(row.path, row.key) for query in queries for row in results.rows(query)}
        return [key for key in keys if key not in having]

    def replace_embeddings(self, tenant: str, items: Sequence[tuple[WholeItemRow, Vectors]]) -> Operation[int]:
        """Replace the embeddings of items that were read; returns the number of items that were unchanged since.

        One round trip; if an item was changed, one for each, as only those that were changed are left alone.
        """
        token = Token(tenant, os.urandom(16))
        keys = [(row.path, row.key) for row, _ in items]
        seen = [SeenRow(row.path, row.key, row.version, plain(row.updated_at)) for row, _ in items]
        rows = [
            embedding
            for row, vectors in items
            for embedding in self._sealed.seal_embeddings(
                tenant, (row.path, row.key), vectors, expires=(row.ttl_us or row.expires_at) is not None
            )
        ]
        try:
            yield Batch.of(
                touch(self.sql, token, [path for path, _ in keys]),
                [
                    of_items.GUARD_UNCHANGED(self.sql, seen=some, count=len(some), tenant=tenant)
                    for some in portions(seen)
                ],
                replace_embeddings(self.sql, tenant, keys, rows),
                ledger.RECORD(self.sql, token),
                outcome_query=ledger.FIND(self.sql, token),
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
        token, place = Token(tenant, os.urandom(16)), Place(tenant, path)
        delete, outcome_query = of_items.CLEAR_LIVE(self.sql, place), ledger.FIND(self.sql, token)
        results = yield Batch.of(
            touch(self.sql, token, [path]),
            delete,
            ledger.RECORD_AFFECTED(self.sql, token),
            of_items.CLEAR(self.sql, place),
            of_vectors.CLEAR(self.sql, place),
            of_vectors.CLEAR_SIGNS(self.sql, owner=owner_of(tenant, path)),
            outcome_query=outcome_query,
        )
        yield from ledger.in_passing(lambda: self._housekeeping(tenant))
        return ledger.affected_rows(results, delete, outcome_query)

    def sweep(self, limit: int = 1_000, tenant: str | None = None) -> Operation[int]:
        """Remove expired items, oldest first; returns the number of items. Searches no longer find them.

        Args:
            limit: The maximum number of items to remove.
            tenant: The tenant; None for all tenants.
        """
        return (yield from Maintenance(tables_of(self.config)).remove_expired(limit, tenant))

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
        old: dict[str, Any] = {"tenant": tenant, "age_us": age_us}
        for (path,) in (yield from fetch(of_vectors.REMOVED(self.sql, limit=limit, **old))):
            lock = of_vectors.PURGE_SCOPE(self.sql, path=path, **old)
            purge = of_vectors.PURGE(self.sql, tenant=tenant, path=path, limit=REMOVED_AT_ONCE)
            removed += (yield Batch.of(lock, purge)).of(purge).affected
        return removed

    def _put_steps(
        self,
        token: Token,
        items: Sequence[NewItem],
        deleted: Sequence[ItemKey] = (),
        absent: Sequence[ItemKey] = (),
    ) -> list[list[Statement]]:
        """Return the statements that lock namespaces, check versions, write items and replace their embeddings."""
        sql, tenant = self.sql, token.tenant
        keys = [item.key for item in items]
        rows = [self._put_row(tenant, item) for item in items]
        embeddings = [
            row
            for item in items
            for row in self._sealed.seal_embeddings(tenant, item.key, item.vectors, expires=item.ttl_us is not None)
        ]
        guards = [
            of_items.GUARD(sql, ItemPlace(tenant, *item.key), version=item.if_version)
            for item in items
            if item.if_version is not None
        ]
        return [
            touch(sql, token, [path for path, _ in (*keys, *deleted, *absent)]),
            [*guards, *(of_items.GUARD_ABSENT(sql, keys=some) for some in of_tenant(tenant, absent))],
            [of_items.PUT(sql, rows=some) for some in portions(rows)],
            replace_embeddings(sql, tenant, [*keys, *deleted], embeddings),
        ]

    def _put_row(self, tenant: str, item: NewItem) -> PutRow:
        value, seal = self._sealed.seal_value(tenant, item.key, item.value, item.metadata)
        indexed = item.text, None if item.text is None else 1
        return PutRow(tenant, *item.key, value, item.metadata, item.ttl_us, item.embed_paths, *indexed, seal)

    def _lock(self, tenant: str, items: Sequence[NewItem]) -> tuple[str | bytes, ...]:
        """Return the first namespace that a write locks; nothing for a write of many items."""
        if not 0 < len(items) <= SHORT_WRITE:
            return ()
        return self.sql.names["scopes"], tenant, min(item.key[0] for item in items)

    def _conflict(self, tenant: str, items: Sequence[NewItem]) -> Operation[VersionConflict]:
        """Return the error of a write whose items have other versions than required."""
        relied = [item for item in items if item.if_version is not None]
        queries = tuple(of_items.VERSION(self.sql, ItemPlace(tenant, *item.key)) for item in relied)
        results = yield Batch(queries, atomic=False)
        for item, query in zip(relied, queries, strict=True):
            row = results.row(query)
            version = row.version if row else 0
            if version != item.if_version:
                has = f"has version {version!r}" if version else "does not exist"
                return VersionConflict(
                    f"Item {item.key[1].decode()!r} in {labels_of(item.key[0])!r} {has}; the write relied on "
                    f"{f'version {item.if_version}' if item.if_version else 'no such item'}. Nothing was "
                    "changed. Read it again."
                )
        return VersionConflict("An item had another version when it was written. Nothing was changed. Read it again.")

    def _housekeeping(self, tenant: str) -> Operation[None]:
        """Index some texts, and remove some tokens and expired items."""
        statements = [ledger.FORGET_OLD(self.sql, limit=ledger.FORGOTTEN_AT_ONCE)]
        if self.config.search:
            pieces = {"locking": " FOR UPDATE SKIP LOCKED"}
            statements.append(of_items.INDEX_PENDING(self.sql, limit=HOUSEKEEPING_ITEMS, pieces=pieces))
        yield Batch(tuple(statements), atomic=False)
        yield from self.sweep(HOUSEKEEPING_ITEMS)
        yield from self.purge_removed(tenant)
