"""Finding items by key, by field and by word, as generators that do no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar, cast

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.filters import Condition, of_json
from ...dialect.memories.ranges import Range
from ...drivers.interface import Row
from ...engine.logs import DAMAGE
from ...engine.operation import Batch, Operation, Outdated
from ...errors import CorruptCheckpoint, InvalidInput
from ...runtime.answers import decodes_rows
from ...runtime.damage import readable
from ...runtime.words import parts_of
from .namespaces import begins_with, ends_with, labels_of, literal_start, path_of
from .records import (
    WRONG_EMBEDDING,
    Hits,
    MemoryHit,
    MemoryItem,
    Namespace,
    hit_of,
    item_of,
    unreadable,
)
from .vectors.stored import sound_embeddings
from .writing import ItemKey

T = TypeVar("T")

#: Makes of a condition another one that is asked in its place.
Guard: TypeAlias = Callable[[Condition], Condition]

#: A search indexes at most so many texts first.
PENDING_LIMIT = 100_000

#: Namespaces, and items that must be checked here, are listed in pages of this size.
_PAGE = 1_000


class ReadingOperations:
    """What finds items without their embeddings.

    Args:
        config: The options.
        sql: The statements.
    """

    def __init__(self, config: MySQLConfig, sql: MemoryDialect) -> None:
        self.config = config
        self.sql = sql

    def get(
        self, tenant: str, keys: Sequence[ItemKey], *, refresh: bool = False
    ) -> Operation[dict[ItemKey, MemoryItem]]:
        """Items by their keys; those that are not there are left out. One round trip.

        Args:
            tenant: Whose.
            keys: Their paths and keys.
            refresh: Whether those that expire are given their whole time again; not if nothing is to be written.
        """
        keys = list(dict.fromkeys(keys))
        refreshing = self.sql.writing.refresh(tenant, keys) if refresh and self.config.reads != "inspect" else ()
        results = yield Batch((*refreshing, *self.sql.reading.get(tenant, keys)), atomic=False)
        rows = [row for result in results[len(refreshing) :] for row in result.rows]
        return {(cast(bytes, row[0]), cast(bytes, row[1])): item_of(tenant, row) for row in rows}

    def list_keys(self, tenant: str, path: bytes, limit: int, offset: int) -> Operation[list[str]]:
        """Keys of a namespace, in their order. One round trip."""
        (found,) = yield Batch.of(self.sql.reading.keys(tenant, path, limit, offset))
        return list(readable(lambda row: _key_of(path, cast(bytes, row[0])), found.rows))

    def count(self, tenant: str, where: Range, condition: Condition) -> Operation[int]:
        """How many items there are. One round trip."""
        return (yield from self.past_damage(lambda guard: self._count(tenant, where, guard(condition))))

    def newest(self, tenant: str, where: Range, condition: Condition, limit: int, offset: int) -> Operation[Hits]:
        """Items, most recently written first. One round trip."""
        rows = yield from _admitted(partial(self.sql.reading.list, tenant, where, condition), condition, limit, offset)
        return Hits(MemoryHit(item, None) for item in readable(partial(item_of, tenant), rows))

    def words(
        self, tenant: str, where: Range, condition: Condition, query: str, limit: int, offset: int = 0
    ) -> Operation[Hits]:
        """Items that hold words of a query, best first. One round trip.

        Raises:
            InvalidInput: The store has no full-text index.
        """
        if not self.config.search:
            raise InvalidInput("The store has no full-text index (search=False). Search by meaning, or by fields.")
        parts = parts_of(query)
        if not parts:
            return Hits()
        find = self.sql.reading.words(tenant, where, condition, query, parts, limit, offset)
        if condition.checks:
            if self.config.reads != "inspect":
                yield Batch.of(self.sql.writing.index_pending(PENDING_LIMIT))
            finding = partial(self.sql.reading.words, tenant, where, condition, query, parts)
            rows = yield from _admitted(finding, condition, limit, offset)
            return Hits(readable(partial(hit_of, tenant), rows))
        if self.config.reads == "inspect":  # what has been indexed by others is found
            (found,) = yield Batch.of(find)
        else:
            _, found = yield Batch((self.sql.writing.index_pending(PENDING_LIMIT), find), atomic=False)
        return Hits(readable(partial(hit_of, tenant), found.rows))

    def list_namespaces(
        self,
        tenant: str,
        prefixes: Sequence[Sequence[str]] = (),
        suffixes: Sequence[Sequence[str]] = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Operation[list[Namespace]]:
        """Namespaces with items in them that fit all of these, in their order, cut to a depth.

        A round trip for each 1,000 that begin as the prefix with the most labels before a wildcard.
        """
        start = max((literal_start(prefix) for prefix in prefixes), key=len, default=())
        where = Range(path_of(start, empty=True, what="Prefix"))
        found: dict[Namespace, None] = {}
        after = b""
        while len(found) < offset + limit:
            (page,) = yield Batch.query(self.sql.reading.namespaces(tenant, where, after, _PAGE))
            for labels in readable(lambda row: _labels_of(cast(bytes, row[0])), page.rows):
                if all(begins_with(labels, prefix) for prefix in prefixes) and all(
                    ends_with(labels, suffix) for suffix in suffixes
                ):
                    found[labels if max_depth is None else labels[:max_depth]] = None
            if len(page.rows) < _PAGE:
                break
            after = cast(bytes, page.rows[-1][0])
        return list(found)[offset : offset + limit]

    def embedding(self, tenant: str, key: ItemKey) -> Operation[list[bytes]]:
        """The embeddings of an item that is there, as 32-bit floats. One round trip.

        Raises:
            CorruptCheckpoint: The checksum of one is wrong.
        """
        item, vectors = yield Batch(
            (self.sql.reading.version(tenant, *key), self.sql.vectors.of_item(tenant, *key)), atomic=False
        )
        if not item.rows:
            return []
        if len(sound := sound_embeddings(tenant, vectors.rows)) < len(vectors.rows):
            raise unreadable(*key, WRONG_EMBEDDING)
        return [embedding for _, embedding in sound]

    def past_damage(self, asking: Callable[[Guard], Operation[T]]) -> Operation[T]:
        """Ask for conditions; where that fails because an item is no JSON, ask for them of all other items.

        Args:
            asking: Asks for conditions, after it has given each to the function that it is given.
        """
        try:
            return (yield from asking(lambda condition: condition))
        except Outdated:  # "Invalid JSON text", by which guards fail too; but what only reads has none
            DAMAGE.warning("An item that is no JSON, as somebody changed it by hand, was left out of an answer.")
            return (yield from asking(of_json))

    def _count(self, tenant: str, where: Range, condition: Condition) -> Operation[int]:
        if condition.checks:
            listing = partial(self.sql.reading.list, tenant, where, condition)
            return len((yield from _admitted(listing, condition, None, 0)))
        (found,) = yield Batch.query(self.sql.reading.count(tenant, where, condition))
        return cast(int, found.rows[0][0])


def _admitted(
    page: Callable[[int, int], Statement], condition: Condition, limit: int | None, offset: int
) -> Operation[Sequence[Row]]:
    """Rows that fulfil a condition. One round trip, or one for each 1,000 that the server can only narrow.

    Args:
        page: The statement for a limit and an offset.
        condition: What the rows must fulfil.
        limit: The most rows to return; None for all.
        offset: Rows to skip.
    """
    if not condition.checks:
        (found,) = yield Batch.of(page(cast(int, limit), offset))
        return found.rows
    rows: list[Row] = []
    start = 0
    while limit is None or len(rows) < offset + limit:
        (found,) = yield Batch.of(page(_PAGE, start))
        rows += [row for row in found.rows if condition.admits(cast(str, row[2]), cast("str | None", row[3]))]
        start += _PAGE
        if len(found.rows) < _PAGE:
            break
    return rows[offset:] if limit is None else rows[offset : offset + limit]


def _key_of(path: bytes, key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise unreadable(path, key) from None


@decodes_rows
def _labels_of(path: bytes) -> Namespace:
    try:
        return labels_of(path)
    except UnicodeDecodeError:
        raise CorruptCheckpoint(f"Namespace {path!r} cannot be read: it is no UTF-8. Delete its items.") from None
