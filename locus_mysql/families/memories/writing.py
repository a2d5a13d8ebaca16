"""Writing and deleting items, as generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.ranges import Range
from ...dialect.memories.vectors import VectorRow
from ...dialect.memories.writing import ItemRow
from ...engine.logs import HOUSEKEEPING, told
from ...engine.operation import Batch, Operation, Outdated
from ...errors import InvalidInput, LocusMySQLError, VersionConflict
from ...runtime.sampling import one_in
from .namespaces import labels_of
from .vectors.coding import Coded
from .vectors.stored import sound_embeddings

#: Path and key of an item.
ItemKey: TypeAlias = tuple[bytes, bytes]

#: One write in so many is followed by some housekeeping.
HOUSEKEEPING_EVERY = 64

#: Housekeeping does at most so much of each kind.
HOUSEKEEPING_ITEMS = 64

#: At most so many items are in one batch: they are one transaction.
BATCH_LIMIT = 10_000

#: For how long codes of removed embeddings are kept for caches, in microseconds.
REMOVED_KEPT_US = 3_600_000_000

#: How many of these one transaction removes.
CODES_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to write, checked.

    Args:
        row: What stands in its row.
        vectors: Its embeddings, each with the digest of its text if it is of a text.
        if_version: The version that it must have; 0 for none; None for any.
    """

    row: ItemRow
    vectors: Sequence[tuple[bytes | None, Coded]] = field(default_factory=tuple)
    if_version: int | None = None

    @property
    def key(self) -> ItemKey:
        """Path and key."""
        return (self.row.path, self.row.key)


class WritingOperations:
    """What changes items.

    Args:
        config: The options.
        sql: The statements.
    """

    def __init__(self, config: MySQLConfig, sql: MemoryDialect) -> None:
        self.config = config
        self.sql = sql

    def put(self, tenant: str, item: NewItem) -> Operation[int]:
        """Write an item; returns its version. One round trip.

        Raises:
            VersionConflict: The item has another version than it must.
        """
        token = os.urandom(16)
        outcome = self.sql.writing.outcome(tenant, token)
        steps = self._put_steps(tenant, token, [item])
        settle = self.sql.writing.settle_version(tenant, token, *item.key)
        try:
            results = yield Batch.named(*steps, settle, outcome, landed=outcome, outcome=outcome)
        except Outdated as refused:
            yield from self._settle_late(refused, tenant, token)
            raise (yield from self._conflict(tenant, [item])) from None
        row = results.landed or results.named("outcome").rows[0]
        yield from self._housekeeping(tenant)
        return cast(int, row[0])

    def write(self, tenant: str, items: Sequence[NewItem], deleted: Sequence[ItemKey] = ()) -> Operation[int]:
        """Write and delete items, all or nothing; returns how many were deleted. One round trip.

        Of several writes of one item the last one counts. An item that is written and deleted is deleted.

        Raises:
            VersionConflict: An item has another version than it must; nothing was changed.
        """
        gone = list(dict.fromkeys(deleted))
        last = {item.key: item for item in items}
        items = [last[key] for key in last.keys() - set(gone)] if gone else list(last.values())
        if not items and not gone:
            return 0
        if len(items) + len(gone) > BATCH_LIMIT:
            raise InvalidInput(f"The batch has {len(items) + len(gone)} items; the limit is {BATCH_LIMIT}. Divide it.")
        token = os.urandom(16)
        steps = self._put_steps(tenant, token, items, gone)
        writing = self.sql.writing
        named: dict[str, Statement] = {}
        if gone:
            named["delete"] = writing.delete(tenant, gone)
            steps.append(named["delete"])
        settle = writing.settle_affected(tenant, token)
        landed = writing.outcome(tenant, token)
        try:
            results = yield Batch.named(*steps, settle, landed=landed, **named)
        except Outdated as refused:
            yield from self._settle_late(refused, tenant, token)
            raise (yield from self._conflict(tenant, items)) from None
        yield from self._housekeeping(tenant)
        if not gone:
            return 0
        return cast(int, results.landed[0]) if results.landed is not None else results.named("delete").affected

    def known_vectors(self, tenant: str, keys: Sequence[ItemKey]) -> Operation[dict[bytes, bytes]]:
        """What items have embeddings of, by digests of texts, but for damaged ones. One round trip."""
        results = yield Batch(self.sql.vectors.known(tenant, keys), atomic=False)
        rows = [row for result in results for row in result.rows]
        return {cast(bytes, row[5]): embedding for row, embedding in sound_embeddings(tenant, rows)}

    def clear(self, tenant: str, path: bytes) -> Operation[int]:
        """Delete all items of a namespace; returns how many there were. One round trip."""
        writing, token, where = self.sql.writing, os.urandom(16), Range(path, exact=True)
        delete = writing.delete_range_live(tenant, where)
        results = yield Batch.named(
            writing.touch(tenant, [path], token),
            delete,
            writing.settle_affected(tenant, token),
            writing.delete_range(tenant, where),
            self.sql.vectors.remove_range(tenant, where),
            landed=writing.outcome(tenant, token),
            delete=delete,
        )
        yield from self._housekeeping(tenant)
        return cast(int, results.landed[0]) if results.landed is not None else results.named("delete").affected

    def sweep(self, limit: int = 1_000, tenant: str | None = None) -> Operation[int]:
        """Remove items that have expired, oldest first; returns how many. They are no longer found anyway.

        Args:
            limit: At most this many.
            tenant: Of this tenant; of all if None.
        """
        removed = 0
        while removed < limit:
            asked = min(500, limit - removed)
            (found,) = yield Batch.of(self.sql.writing.expired(asked, tenant))
            keys: dict[str, list[ItemKey]] = {}
            for owner, path, key in found.rows:
                keys.setdefault(cast(str, owner), []).append((cast(bytes, path), cast(bytes, key)))
            for owner, some in keys.items():
                removed += yield from self._remove_expired(owner, some)
            if len(found.rows) < asked:
                break
        return removed

    def purge_codes(
        self, tenant: str, age_us: int = REMOVED_KEPT_US, limit: int = HOUSEKEEPING_ITEMS
    ) -> Operation[int]:
        """Remove what tells caches of embeddings that were removed long ago; returns of how many.

        Args:
            tenant: Whose.
            age_us: For how long caches are told of embeddings that were removed, in microseconds.
            limit: Of at most so many namespaces, and of up to `CODES_AT_ONCE` embeddings of each.
        """
        (found,) = yield Batch.of(self.sql.vectors.removed(tenant, age_us, limit))
        removed = 0
        for owner, path in found.rows:
            purge = self.sql.vectors.purge(cast(str, owner), cast(bytes, path), age_us, CODES_AT_ONCE)
            removed += (yield Batch(purge))[1].affected
        return removed

    def _remove_expired(self, tenant: str, keys: Sequence[ItemKey]) -> Operation[int]:
        writing, token = self.sql.writing, os.urandom(16)
        deletes = writing.delete_expired(tenant, keys)
        touch = writing.touch(tenant, [path for path, _ in keys], token)
        gone = self.sql.vectors.remove_gone(tenant, keys)
        settle = writing.settle_affected(tenant, token)
        results = yield Batch((*touch, *deletes, settle, *gone), writing.outcome(tenant, token))
        if results.landed is not None:
            return cast(int, results.landed[0])
        return sum(result.affected for result in results[len(touch) : len(touch) + len(deletes)])

    def _put_steps(
        self, tenant: str, token: bytes, items: Sequence[NewItem], deleted: Sequence[ItemKey] = ()
    ) -> list[Statement | tuple[Statement, ...]]:
        """Locking, guarding, writing items and replacing their embeddings."""
        writing = self.sql.writing
        rows = [
            VectorRow(*item.key, place, digest, *coded, expires=item.row.ttl_us is not None)
            for item in items
            for place, (digest, coded) in enumerate(item.vectors)
        ]
        keys = [item.key for item in items]
        guards = tuple(
            writing.guard(tenant, *item.key, item.if_version) for item in items if item.if_version is not None
        )
        return [
            writing.touch(tenant, [path for path, _ in (*keys, *deleted)], token),
            guards,
            writing.put(tenant, [item.row for item in items]),
            self.sql.vectors.replace(tenant, [*keys, *deleted], rows),
        ]

    def _conflict(self, tenant: str, items: Sequence[NewItem]) -> Operation[VersionConflict]:
        """The error of a write that relied on versions that items do not have."""
        relied = [item for item in items if item.if_version is not None]
        results = yield Batch(tuple(self.sql.reading.version(tenant, *item.key) for item in relied), atomic=False)
        for item, result in zip(relied, results, strict=True):
            version = result.rows[0][0] if result.rows else 0
            if version != item.if_version:
                has = f"has version {version!r}" if version else "is not there"
                return VersionConflict(
                    f"Item {item.row.key.decode()!r} in {labels_of(item.row.path)!r} {has}; the write relied on "
                    f"{f'version {item.if_version}' if item.if_version else 'its not being there'}. Nothing was "
                    "changed. Read it again."
                )
        return VersionConflict("An item had another version when it was written. Nothing was changed. Read it again.")

    def _settle_late(self, refused: Outdated, tenant: str, token: bytes) -> Operation[None]:
        """After a write that was refused: make sure that a first try which arrives late is refused too."""
        if refused.fate_unknown:
            writing = self.sql.writing
            yield Batch((writing.settle_affected(tenant, token),), writing.outcome(tenant, token))

    def _housekeeping(self, tenant: str) -> Operation[None]:
        """Now and then: index some text, forget some tokens, remove some of what has expired.

        The write itself has been carried out by then, so a failure is only logged, and another write does what was not
        done.
        """
        if not one_in(HOUSEKEEPING_EVERY):
            return
        statements = [self.sql.writing.forget_settled()]
        if self.config.search:
            statements.append(self.sql.writing.index_pending(HOUSEKEEPING_ITEMS, skip_locked=True))
        try:
            yield Batch(tuple(statements), atomic=False)
            yield from self.sweep(HOUSEKEEPING_ITEMS)
            yield from self.purge_codes(tenant)
        except LocusMySQLError as error:
            HOUSEKEEPING.warning("An item was written, but the housekeeping after it failed: %s.", told(error))
