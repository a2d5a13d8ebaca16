"""Finds items by key, by field and by word, and reads whole ones. Generators that do no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from ...dialect import Statement
from ...dialect.words import parts_of
from ...engine.logs import DAMAGE
from ...engine.operation import Batch, Operation, Outdated, fetch
from ...engine.retry import Backoff, next_page
from ...errors import CorruptCheckpoint, DecryptionFailed, InvalidInput
from ...runtime.sealing import NO_WORDS
from ...runtime.server_rows import readable
from .arguments import begins_with, ends_with, labels_of, literal_start, path_of
from .records import Hits, MemoryItem, Namespace, hit_of, item_of, unreadable
from .sealed_items import ItemTables, SealedItems
from .statements import items, vectors
from .statements.filters import ItemFilter, only_valid_json
from .statements.items import ItemRow, KeyRow, WholeItemRow, find_words, get_items, list_items
from .statements.tables import ItemKey, ItemPlace, PathRow, Range, of_tenant
from .statements.vectors import ModelEmbeddingRow

T = TypeVar("T")

#: Returns the filter to use instead of another one.
AdaptFilter: TypeAlias = Callable[[ItemFilter], ItemFilter]

#: A search by word first indexes at most this many new texts.
MAX_INDEXED = 100_000

#: The number of namespaces, or of items to be checked in this process, that one statement reads.
PAGE_SIZE = 1_000

#: A limit above the number of hits of any search.
_ALL = 1_000_000_000


@dataclass(slots=True)
class EmbeddedItem:
    """An item.

    Args:
        row: Its row, with the value opened.
        embeddings: The model and the number of bytes of each embedding.
        is_damaged: Whether the value or an embedding is damaged.
    """

    row: WholeItemRow
    embeddings: list[tuple[int, int]]
    is_damaged: bool = False

    @property
    def key(self) -> ItemKey:
        """Its path and key."""
        return (self.row.path, self.row.key)


class ReadingOperations(ItemTables):
    """Finds items."""

    def get(
        self, tenant: str, keys: Sequence[ItemKey], *, refresh: bool = False
    ) -> Operation[dict[ItemKey, MemoryItem]]:
        """Return items by their keys, without those that do not exist. One round trip.

        Args:
            tenant: The tenant.
            keys: Paths and keys.
            refresh: Whether to restart the time to live of the items. Ignored by a store that only inspects.
        """
        keys = list(dict.fromkeys(keys))
        refreshing = self.refresh(tenant, keys) if refresh and not self.config.read_only else ()
        queries = get_items(self.sql, tenant, keys)
        results = yield Batch((*refreshing, *queries), atomic=False)
        return {
            (row.path, row.key): item_of(tenant, row, self._sealed) for query in queries for row in results.rows(query)
        }

    def refresh(self, tenant: str, keys: Sequence[ItemKey]) -> tuple[Statement, ...]:
        """Return the statements that restart the time to live of items."""
        return tuple(items.REFRESH(self.sql, keys=some) for some in of_tenant(tenant, keys))

    def list_keys(self, tenant: str, path: bytes, limit: int, offset: int) -> Operation[list[str]]:
        """Return the keys of a namespace, in their order. One round trip."""
        rows = yield from fetch(items.KEYS(self.sql, tenant=tenant, path=path, limit=limit, offset=offset))
        return list(readable(lambda row: _decoded_key(path, row), rows))

    def count(self, tenant: str, where: Range, filter: ItemFilter) -> Operation[int]:
        """Count items. One round trip, or one for each 1,000 items if the filter has checks."""
        return (yield from self.excluding_invalid_json(lambda adapt: self._count(tenant, where, adapt(filter))))

    def newest(self, tenant: str, where: Range, filter: ItemFilter, limit: int, offset: int) -> Operation[Hits]:
        """Return items, most recently written first. One round trip, or one for 1,000 items if there are checks."""
        if filter.checks:
            rows = (yield from self._list_checked(tenant, where, filter, offset + limit))[offset:]
        else:
            rows = yield from fetch(list_items(self.sql, tenant, where, filter, limit, offset=offset))
        return Hits(readable(partial(hit_of, tenant, sealed=self._sealed), rows))

    def words(
        self, tenant: str, where: Range, filter: ItemFilter, query: str, limit: int, offset: int = 0
    ) -> Operation[Hits]:
        """Return items that contain words of a query, best first. One round trip, or more if the filter has checks.

        Raises:
            InvalidInput: The store has no full-text index.
        """
        if self._sealed.is_on:
            raise InvalidInput(NO_WORDS)
        if not self.config.search:
            raise InvalidInput("The store has no full-text index (search=False). Search by meaning, or by fields.")
        parts = parts_of(query)
        if not parts:
            return Hits()
        inspects = self.config.read_only
        page = partial(find_words, self.sql, tenant, where, filter, parts, inspects=inspects)
        indexing = () if inspects else (items.INDEX_PENDING(self.sql, limit=MAX_INDEXED, pieces={"locking": ""}),)
        if filter.checks:
            if indexing:
                yield Batch(indexing)
            # At once: a score depends on all hits, so pages would shift when one is deleted.
            found = yield from fetch(page(_ALL))
            rows = [row for row in found if filter.admits(row.value, row.metadata)][offset : offset + limit]
        else:
            find = page(limit, offset=offset)
            results = yield Batch((*indexing, find), atomic=False)
            rows = results.rows(find)
        return Hits(readable(partial(hit_of, tenant, sealed=self._sealed), rows))

    def list_namespaces(
        self,
        tenant: str,
        prefixes: Sequence[Sequence[str]] = (),
        suffixes: Sequence[Sequence[str]] = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Operation[list[Namespace]]:
        """Return the namespaces with items that match all prefixes and suffixes, in their order, cut to a depth.

        One round trip for each 1,000 namespaces that begin with the longest literal prefix.
        """
        start = max((literal_start(prefix) for prefix in prefixes), key=len, default=())
        where = Range(path_of(start, empty=True, what="Prefix"))
        found: dict[Namespace, None] = {}
        pieces, after = {"range": where.condition("s")}, b""
        while len(found) < offset + limit:
            page = items.NAMESPACES(
                self.sql, tenant=tenant, after=after, limit=PAGE_SIZE, pieces=pieces, **where.params
            )
            rows = yield from fetch(page)
            for labels in readable(_decoded_labels, rows):
                if all(begins_with(labels, prefix) for prefix in prefixes) and all(
                    ends_with(labels, suffix) for suffix in suffixes
                ):
                    found[labels if max_depth is None else labels[:max_depth]] = None
            if len(rows) < PAGE_SIZE:
                break
            after = next_page(after, rows[-1].path)
        return list(found)[offset : offset + limit]

    def embedding(self, tenant: str, key: ItemKey) -> Operation[list[bytes]]:
        """Return the embeddings of an item as 32-bit floats; none if the item does not exist. One round trip.

        Raises:
            CorruptCheckpoint: One was changed, or moved from another place.
        """
        place = ItemPlace(tenant, *key)
        version, embeddings = items.VERSION(self.sql, place), vectors.OF_ITEM(self.sql, place)
        results = yield Batch((version, embeddings), atomic=False)
        if results.row(version) is None:
            return []
        return [self._sealed.open_embedding(tenant, row)[1] for row in results.rows(embeddings)]

    def page_of_embedded(
        self, tenant: str, where: Range, after: ItemKey | None, limit: int
    ) -> Operation[list[EmbeddedItem]]:
        """Return items with their embeddings after a key, in the order of their paths and keys. One round trip."""
        rows = yield from fetch(items.page_of_items(self.sql, tenant, where, after, limit))
        return _embedded(self._sealed, tenant, rows)

    def embedded_at(self, tenant: str, keys: Iterable[ItemKey]) -> Operation[list[EmbeddedItem]]:
        """Return those of some items that exist. One round trip."""
        queries = tuple(items.AT(self.sql, keys=some) for some in of_tenant(tenant, list(keys)))
        results = yield Batch(queries, atomic=False)
        return _embedded(self._sealed, tenant, (row for query in queries for row in results.rows(query)))

    def excluding_invalid_json(self, ask: Callable[[AdaptFilter], Operation[T]]) -> Operation[T]:
        """Run an operation with its filters; if it fails because an item is not JSON, run it without such items.

        Args:
            ask: Returns the operation. Must pass each of its filters through the function that it is given.
        """
        try:
            return (yield from ask(lambda filter: filter))
        # the server's error "Invalid JSON text"; guards of writes cause it too, but a read has no guard
        except Outdated:
            DAMAGE.warning("An item was left out of a result: it is not JSON, because it was changed by hand.")
            return (yield from ask(only_valid_json))

    def _count(self, tenant: str, where: Range, filter: ItemFilter) -> Operation[int]:
        if filter.checks:
            return len((yield from self._list_checked(tenant, where, filter, None)))
        pieces, params = {"range": where.condition("i"), "filter": filter.sql}, {**where.params, **filter.params}
        ((count,),) = yield from fetch(items.COUNT(self.sql, tenant=tenant, pieces=pieces, **params))
        return count

    def _list_checked(
        self, tenant: str, where: Range, filter: ItemFilter, limit: int | None
    ) -> Operation[list[ItemRow]]:
        """Return items that pass a filter's checks, most recently written first.

        One round trip for each 1,000 items that the server finds.
        """
        rows: list[ItemRow] = []
        last: ItemRow | None = None
        backoff = Backoff("A page of items ended where the page before it had ended")
        while limit is None or len(rows) < limit:
            found = yield from fetch(list_items(self.sql, tenant, where, filter, PAGE_SIZE, after=last))
            rows += [row for row in found if filter.admits(row.value, row.metadata)]
            if len(found) < PAGE_SIZE:
                break
            last = found[-1]
            backoff.compare(last)
        return rows[:limit]


def _embedded(sealed: SealedItems, tenant: str, rows: Iterable[WholeItemRow]) -> list[EmbeddedItem]:
    found: dict[ItemKey, EmbeddedItem] = {}
    for row in rows:
        key = (row.path, row.key)
        item = found.get(key)
        try:
            if item is None:
                item = found[key] = EmbeddedItem(row, [])
                value = sealed.open_value(tenant, key, row.value, row.metadata, row.seal)
                item.row = row._replace(value=value)
            if row.embedding is not None and row.number is not None and row.model is not None:
                _, raw = sealed.open_embedding(tenant, ModelEmbeddingRow(*key, row.number, row.embedding, row.model))
                item.embeddings.append((row.model, len(raw)))
        except DecryptionFailed:
            raise
        except CorruptCheckpoint:
            found[key].is_damaged = True
    return list(found.values())


def _decoded_key(path: bytes, row: KeyRow) -> str:
    try:
        return row.key.decode()
    except UnicodeDecodeError:
        raise unreadable(path, row.key) from None


def _decoded_labels(row: PathRow) -> Namespace:
    try:
        return labels_of(row.path)
    except UnicodeDecodeError:
        raise CorruptCheckpoint(f"Namespace {row.path!r} cannot be read: it is not UTF-8. Delete its items.") from None
