"""The operations of `MemoryStore`, as generators that do no I/O: `MemoryOperations`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ...config import MySQLConfig
from ...errors import InvalidInput
from ...runtime.arguments import check_limit, tenant_of
from ...runtime.database import Database
from .arguments import encoded_key, path_of, searched_text
from .embedding import EmbeddingOptions, EmbedFunction, EmbedTexts, Procedure
from .nearest import NearestOperations
from .puts import STORE_TTL, ItemEncoder, Put, dims_needed
from .reading import EmbeddedItem, ReadingOperations
from .records import Hits, MemoryItem, Namespace
from .sealed_items import SealedItems
from .searching import SearchingOperations, SearchRequest, Way
from .statements.filters import compile_filter
from .statements.tables import ItemKey, Range, dialect_of
from .vectors.coding import QueryVector, decode_vector, finite_floats, floats_of, model_number
from .writing import WritingOperations

#: The number of stored items that are embedded together.
EMBEDDED_AT_ONCE = 64


@dataclass(slots=True)
class EmbeddedPage:
    """The result of embedding a page of items.

    Args:
        examined: The number of items that were read.
        last: The path and key of the last one; None if there are no more.
        embedded: The number of items that were embedded, or would be.
        changed: The number of items that were written meanwhile, and are as they were written.
        damaged: The paths and keys of items that cannot be read.
    """

    examined: int = 0
    last: ItemKey | None = None
    embedded: int = 0
    changed: int = 0
    damaged: list[ItemKey] = field(default_factory=list)


class MemoryOperations:
    """The operations of a store, for one tenant.

    Args:
        config: The options.
        options: The options about embeddings.
    """

    #: The first labels of all items that `embed_page` reads.
    root: Namespace = ()

    def __init__(self, config: MySQLConfig, options: EmbeddingOptions | None = None) -> None:
        self.config = config
        self.options = options or EmbeddingOptions()
        self.sql = dialect_of(config)
        self.schema = self.sql.schema
        self.sealed = SealedItems(config)
        self.writing = WritingOperations(config)
        self.encoder = ItemEncoder(config, self.options, self.writing)
        self.reading = ReadingOperations(config)
        self.nearest = NearestOperations(self.sql, self.options.vector_cache_bytes, self.sealed, self.options.model)
        self.searching = SearchingOperations(self.reading, self.nearest)

    @property
    def tenant(self) -> str:
        """The tenant of the call's items."""
        return tenant_of(self.config)

    @property
    def items(self) -> MemoryOperations:
        """The operations on items: these."""
        return self

    @property
    def embed(self) -> EmbedFunction | None:
        """The embed function, if there is one."""
        return self.options.embed

    @property
    def dims(self) -> int | None:
        """The width of embeddings; None for a store without embeddings."""
        return self.options.dims

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        self.nearest.attach(database, (self.config.table_prefix, self.config.encryption, self.options.dims))

    def put(
        self,
        namespace: Sequence[str],
        key: str,
        value: Any,
        *,
        metadata: Mapping[str, Any] | None = None,
        ttl_s: float | str | None = STORE_TTL,
        if_version: int | None = None,
        text: str | None = None,
        embedding: Any = None,
        embeddings: Sequence[Any] = (),
        index: bool | Sequence[str] = True,
    ) -> Procedure[int]:
        """Write an item; replaces the item under the key.

        Args:
            namespace: One or more labels, which are non-empty texts without NUL; 1,000 bytes together.
            key: 1 to 1,000 bytes of UTF-8 without NUL. Keys and labels compare by code point.
            value: Any JSON value, nested at most 90 deep. It is returned equal, with its keys in the same order.
            metadata: A dict of JSON values, at most 65,536 bytes as JSON.
            ttl_s: The item expires after this many seconds; None: never. By default the store's ``ttl_s``.
            if_version: Write only if the item has this version; 0: only if there is no item.
            text: The text that is searched by word, and embedded for the path ``$``. By default all texts in the value.
            embedding: An embedding of the item, instead of one by the store's function.
            embeddings: Several embeddings of the item; a search counts the nearest.
            index: False: embed nothing; a list of paths: embed the texts at these instead of the store's ``fields``.

        Returns:
            The item's version; 1 for a new item.

        Raises:
            InvalidInput: An argument cannot be stored exactly, or an embedding has another width than the store's.
            VersionConflict: The item has another version; nothing was changed.
            StateTooLarge: A packet would exceed the server's ``max_allowed_packet``.
        """
        put = Put(namespace, key, value, metadata, ttl_s, if_version, text, embedding, embeddings, index)
        (item,) = yield from self.encoder.embed([self.encoder.encode(put)])
        return cast(int, (yield self.writing.put(self.tenant, item)))

    def put_batch(self, items: Iterable[Put]) -> Procedure[None]:
        """Write items, all or none. Of several with one key, the last is written. One round trip, two to embed texts.

        Raises:
            InvalidInput: As for `put`; or there are more than 10,000 items.
            VersionConflict: An item has another version than its ``if_version``; nothing was changed.
        """
        new = yield from self.encoder.embed([self.encoder.encode(item, in_batch=True) for item in items])
        yield self.writing.write(self.tenant, new)

    def write_batch(
        self,
        items: Iterable[Put],
        deleted: Iterable[tuple[Sequence[str], str]],
        absent: Iterable[tuple[Sequence[str], str]] = (),
    ) -> Procedure[int]:
        """Write some items and delete others, all or nothing; returns the number of deleted items.

        An item that is both written and deleted is deleted. One round trip, two to embed texts.

        Args:
            items: The items to write; of several with one key, the last is written.
            deleted: Pairs of namespace and key.
            absent: The same, of items that must not exist.

        Raises:
            InvalidInput: As for `put`; or there are more than 10,000 together.
            VersionConflict: An item has another version than its ``if_version``, or one exists that must be absent;
                nothing was changed.
        """
        new = yield from self.encoder.embed([self.encoder.encode(item, in_batch=True) for item in items])
        return cast(int, (yield self.writing.write(self.tenant, new, self._keys(deleted), self._keys(absent))))

    def get(self, namespace: Sequence[str], key: str, default: Any = None, *, refresh: bool = False) -> Procedure[Any]:
        """Return the value under a key.

        Args:
            namespace: The item's namespace.
            key: The item's key.
            default: Returned if there is no item.
            refresh: Whether to restart the item's time to live.
        """
        item = yield from self.get_item(namespace, key, refresh=refresh)
        return default if item is None else item.value

    def get_item(self, namespace: Sequence[str], key: str, *, refresh: bool = False) -> Procedure[MemoryItem | None]:
        """Return the item under a key, with metadata, version and times; None if there is none."""
        found = yield self.reading.get(self.tenant, [self._key(namespace, key)], refresh=refresh)
        return next(iter(found.values()), None)

    def get_batch(
        self, keys: Iterable[tuple[Sequence[str], str]], *, refresh: bool = False
    ) -> Procedure[dict[tuple[Namespace, str], MemoryItem]]:
        """Return items by namespace and key, without those that do not exist. One round trip.

        Args:
            keys: Pairs of namespace and key.
            refresh: Whether to restart the items' time to live.

        Raises:
            InvalidInput: One is not a pair of a namespace and a key.
        """
        item_keys = self._keys(keys)
        if not item_keys:
            return {}
        found = yield self.reading.get(self.tenant, item_keys, refresh=refresh)
        items = [found[key] for key in dict.fromkeys(item_keys) if key in found]
        return {(item.namespace, item.key): item for item in items}

    def exists(self, namespace: Sequence[str], key: str) -> Procedure[bool]:
        """Check whether there is an item under a key."""
        return (yield from self.get_item(namespace, key)) is not None

    def delete(self, namespace: Sequence[str], key: str) -> Procedure[bool]:
        """Delete an item; returns whether there was one."""
        return bool((yield self.writing.write(self.tenant, [], [self._key(namespace, key)])))

    def delete_batch(self, keys: Iterable[tuple[Sequence[str], str]]) -> Procedure[int]:
        """Delete items, all or none; returns the number of items that existed. One round trip.

        Args:
            keys: Pairs of namespace and key.

        Raises:
            InvalidInput: One is not a pair of a namespace and a key; or there are more than 10,000.
        """
        return cast(int, (yield self.writing.write(self.tenant, [], self._keys(keys))))

    def list_keys(self, namespace: Sequence[str], limit: int = 100, offset: int = 0) -> Procedure[list[str]]:
        """Return the keys of exactly this namespace, in the order of their code points."""
        found = yield self.reading.list_keys(
            self.tenant, path_of(namespace), check_limit(limit, "limit"), check_limit(offset, "offset")
        )
        return cast(list[str], found)

    def list_namespaces(
        self,
        prefix: Sequence[str] = (),
        *,
        suffix: Sequence[str] = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Procedure[list[Namespace]]:
        """Return the namespaces with items, in the order of their labels.

        Args:
            prefix: The first labels; ``*`` stands for any one label.
            suffix: The last labels; ``*`` stands for any one label.
            max_depth: Cut namespaces to this many labels, and list each once.
            limit: The maximum number of namespaces to return.
            offset: The number of namespaces to skip.
        """
        for labels, what in ((prefix, "Prefix"), (suffix, "Suffix")):
            path_of(labels, empty=True, what=what)
        depth = None if max_depth is None else check_limit(max_depth, "max_depth", 1)
        found = yield self.reading.list_namespaces(
            self.tenant, [prefix], [suffix], depth, check_limit(limit, "limit"), check_limit(offset, "offset")
        )
        return cast(list[Namespace], found)

    def clear_namespace(self, namespace: Sequence[str]) -> Procedure[int]:
        """Delete all items of exactly this namespace, not of those below; returns the number of items."""
        return cast(int, (yield self.writing.clear(self.tenant, path_of(namespace))))

    def count(self, namespace_prefix: Sequence[str] = (), *, filter: Mapping[str, Any] | None = None) -> Procedure[int]:
        """Count the items of a namespace and those below it."""
        self.sealed.refuse_value_filter(filter)
        where = Range(path_of(namespace_prefix, empty=True))
        return cast(int, (yield self.reading.count(self.tenant, where, compile_filter(filter, "i.value"))))

    def search(
        self,
        namespace_prefix: Sequence[str] = (),
        *,
        query: str | None = None,
        embedding: Any = None,
        filter: Mapping[str, Any] | None = None,
        metadata_filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        min_score: float | None = None,
        way: Way | None = None,
        exact: bool = False,
        only_here: bool = False,
    ) -> Procedure[Hits]:
        """Search a namespace and those below it: by field, by word, by meaning, or by word and meaning.

        Scores are comparable between calls of one kind. By word: the share of the query's words and phrases (in double
        quotes) that the item contains, at least one; rare ones weigh more. By meaning: the cosine, from -1 to 1; the
        inner product; or 1 / (1 + distance), by the store's ``metric``. By both: the sum of 1 / (60 + rank) over the
        two, divided by the sum of an item that is first in both.

        Args:
            namespace_prefix: The first labels; empty for all namespaces.
            query: A text, which is embedded by the store's function, if it has one, or else searched by word.
            embedding: An embedding to search by meaning; together with a query, to search by both.
            filter: Conditions on the value: ``{"kind": "fact", "age": {"$gte": 3}, "address": {"city": "Bonn"}}``, with
                ``$eq $ne $gt $gte $lt $lte $in $exists``. Numbers compare as numbers.
            metadata_filter: Conditions on the metadata.
            limit: The maximum number of hits to return.
            offset: The number of hits to skip.
            min_score: Leave out hits with a lower score.
            way: ``word``, ``meaning`` or ``hybrid``, if the arguments allow more than one.
            exact: Whether the hits by meaning must be the best for certain, even in the first search of this range by
                this process.
            only_here: Search only this namespace, not those below it.

        Returns:
            The hits, best first; without query and embedding, most recently written first. ``hits.exact`` is True if
            they are the best for certain.
        """
        request = SearchRequest(query, embedding, filter, metadata_filter, limit, offset, min_score, way, exact)
        (hits,) = yield from self._search([namespace_prefix], request, only_here=only_here)
        return hits

    def search_text(self, namespace: Sequence[str], query: str, limit: int) -> Procedure[Hits]:
        """Return the items that fit a text best: by word; with an embed function, by word and meaning.

        Args:
            namespace: The namespace, with those below it.
            query: A text. Without a word in it, nothing is found.
            limit: The maximum number of items.
        """
        words = query.replace('"', " ")  # a quotation mark would begin a phrase
        if not re.search(r"\w", words):
            return Hits([])
        way: Way = "word" if self.embed is None else "hybrid"
        if way == "hybrid" and self.sealed.is_on:  # there is no index of words
            way = "meaning"
        return (yield from self.search(namespace, query=words, way=way, limit=limit))

    def search_many(
        self,
        namespace_prefixes: Iterable[Sequence[str]],
        *,
        query: str | None = None,
        embedding: Any = None,
        filter: Mapping[str, Any] | None = None,
        metadata_filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        min_score: float | None = None,
        way: Way | None = None,
        exact: bool = False,
        only_here: bool = False,
    ) -> Procedure[list[Hits]]:
        """`search` in each of several namespaces, in the round trips of one search."""
        request = SearchRequest(query, embedding, filter, metadata_filter, limit, offset, min_score, way, exact)
        return (yield from self._search(namespace_prefixes, request, only_here=only_here))

    def get_embeddings(self, namespace: Sequence[str], key: str) -> Procedure[list[list[float]]]:
        """Return the stored embeddings of an item; an empty list if there is no item or it has none."""
        found = yield self.reading.embedding(self.tenant, self._key(namespace, key))
        return [decode_vector(raw).tolist() for raw in found]

    def sweep(self, limit: int = 1_000) -> Procedure[int]:
        """Remove expired items of the tenant, which searches no longer find; returns the number of items.

        About one write in 64 also removes a few.
        """
        return cast(int, (yield self.writing.sweep(check_limit(limit, "limit"), self.tenant)))

    def query_vector(self, embedding: Any) -> QueryVector:
        """Return an embedding as a query vector, to which others are compared.

        Raises:
            InvalidInput: The embedding has another width, or is all zeros and the metric is the cosine; or the store
                has no embeddings.
        """
        floats = floats_of if self.options.refuses_zeros else finite_floats
        return QueryVector(floats(embedding, dims_needed(self.dims), "The query's embedding"), self.options.metric)

    def _search(
        self, prefixes: Iterable[Sequence[str]], request: SearchRequest, *, only_here: bool
    ) -> Procedure[list[Hits]]:
        paths = [path_of(prefix, empty=not only_here, what="Namespace prefix") for prefix in prefixes]
        ranges = [Range(path, exact=only_here) for path in paths]
        self.sealed.refuse_value_filter(request.filter)
        request = request.checked(embeds=self.embed is not None)
        filter = request.compiled_filter  # an invalid filter is refused before anything is embedded
        vector: QueryVector | None = None
        if request.by_meaning:
            embedding = request.embedding
            if embedding is None:
                (embedding,) = yield EmbedTexts([cast(str, request.query)], query=True)
            vector = self.query_vector(embedding)
        return cast(list[Hits], (yield self.searching.search(self.tenant, ranges, request, filter, vector)))

    def embed_stored(self, keys: Sequence[tuple[Sequence[str], str]]) -> Procedure[None]:
        """Embed items that have no embedding of the store's model. One round trip if all of them have."""
        if self.embed is None or not keys:
            return
        missing = yield self.writing.items_without(self.tenant, self._keys(keys), model_number(self.options.model))
        for start in range(0, len(missing), EMBEDDED_AT_ONCE):
            items = yield self.reading.embedded_at(self.tenant, missing[start : start + EMBEDDED_AT_ONCE])
            yield from self._embed_items(self.tenant, items, EmbeddedPage())

    def embed_page(
        self, namespace: Sequence[str], after: ItemKey | None, *, tenant: str, dry_run: bool
    ) -> Procedure[EmbeddedPage]:
        """Embed the items of a namespace and those below whose embeddings are missing, or of another model or width.

        Args:
            namespace: The first labels, after those of `root`.
            after: The path and key of the last item of the page before.
            tenant: The tenant.
            dry_run: Whether items are only counted.
        """
        where = Range(path_of((*self.root, *namespace), empty=True))
        items = yield self.reading.page_of_embedded(tenant, where, after, EMBEDDED_AT_ONCE)
        page = EmbeddedPage(examined=len(items), last=items[-1].key if len(items) == EMBEDDED_AT_ONCE else None)
        yield from self._embed_items(tenant, items, page, dry_run=dry_run)
        return page

    def stored_texts(self, value: Any, text: str | None, index: bool | Sequence[str]) -> list[str]:
        """Return the texts of a stored item that are embedded.

        Args:
            value: Its value.
            text: The text that is searched by word, if it was given.
            index: True for the texts at the store's paths, or other paths; see `put`.
        """
        return self.encoder.texts_of(Put((), "", value, text=text, index=index))

    def _embed_items(
        self, tenant: str, items: Sequence[EmbeddedItem], page: EmbeddedPage, *, dry_run: bool = False
    ) -> Procedure[None]:
        model, width = model_number(self.options.model), 4 * dims_needed(self.dims)
        texts: dict[ItemKey, list[str]] = {}
        for item in items:
            if item.is_damaged:
                page.damaged.append(item.key)
            elif not item.embeddings or any(one != (model, width) for one in item.embeddings):
                texts[item.key] = self._texts_in(item)
        stale = [item for item in items if texts.get(item.key)]
        if stale and not dry_run:
            made = yield from self.encoder.embed_texts(text for item in stale for text in texts[item.key])
            found = [(item.row, [made[text] for text in texts[item.key] if text in made]) for item in stale]
            page.embedded = yield self.writing.replace_embeddings(tenant, found)
        elif stale:
            page.embedded = len(stale)
        page.changed = len(stale) - page.embedded

    def _texts_in(self, item: EmbeddedItem) -> list[str]:
        row = item.row
        try:
            value, paths = json.loads(row.value), None if row.embed_paths is None else json.loads(row.embed_paths)
        except ValueError:
            return []
        given = None if row.text is None or row.text == searched_text(value) else row.text
        return [] if paths == [] else self.stored_texts(value, given, True if paths is None else paths)

    def _key(self, namespace: Sequence[str], key: str) -> ItemKey:
        return path_of(namespace), encoded_key(key)

    def _keys(self, pairs: Iterable[tuple[Sequence[str], str]]) -> list[ItemKey]:
        keys: list[ItemKey] = []
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise InvalidInput("Items are named by pairs of namespace and key, such as (('users', 'ada'), 'tea').")
            keys.append(self._key(*pair))
        return keys


class FrameworkMemories:
    """Base of the operations of a framework's store, which keeps its data as items.

    Args:
        items: The operations on items.
    """

    def __init__(self, items: MemoryOperations) -> None:
        self.config, self.items, self.schema = items.config, items, items.schema

    @property
    def embed(self) -> EmbedFunction | None:
        """The embed function, if there is one."""
        return self.items.embed

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        self.items.attach(database)
