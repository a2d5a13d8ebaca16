"""Long-term memory: `MemoryStore` and `SyncMemoryStore`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack, cast

from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.filters import condition_of
from ...dialect.memories.ranges import Range
from ...engine.counters import Counters
from ...errors import ConfigError, InvalidInput
from ...runtime.database import Database, share
from .arguments import check_count
from .embedding import EmbedFunction, Procedure, Texts, digest_of
from .maintenance import CaringOperations
from .moving import MovingOperations
from .namespaces import encoded_key, path_of
from .nearest import NearestOperations
from .paths import WHOLE, check_path
from .puts import STORE_TTL, Prepared, Put, dims_needed, prepare
from .reading import ReadingOperations
from .records import Hits, MemoryItem, Namespace
from .searching import Asked, SearchingOperations, Way
from .surface import AsyncMemories, SyncMemories, awaited, blocking
from .vectors.cache import VectorCache, check_cache_bytes
from .vectors.coding import DIMENSIONS_LIMIT, decode_vector, encode_vector, floats_of
from .vectors.scoring import METRICS, Metric, Query
from .writing import ItemKey, NewItem, WritingOperations


class MemoryProcedures:
    """The store's procedures, for one tenant.

    Args:
        config: The options.
        dims: See `MemoryStore`, as the others.
        embed: Embeds texts.
        fields: What is embedded.
        metric: How near is near.
        model: Names the embed function's model.
        vector_cache_bytes: Memory for codes.
    """

    def __init__(
        self,
        config: MySQLConfig,
        *,
        dims: int | None = None,
        embed: EmbedFunction | None = None,
        fields: Sequence[str] = (WHOLE,),
        metric: Metric = "cosine",
        model: str = "",
        vector_cache_bytes: int = 268_435_456,
    ) -> None:
        if dims is not None and (
            isinstance(dims, bool) or not isinstance(dims, int) or not 1 <= dims <= DIMENSIONS_LIMIT
        ):
            raise ConfigError(f"dims must be a whole number from 1 to {DIMENSIONS_LIMIT}, not {dims!r}.")
        if embed is not None and not callable(embed):
            raise ConfigError(
                f"embed must be a function from a list of texts to a list of embeddings, not {type(embed).__name__}; "
                "of an object give the method that does it, such as model.embed_documents."
            )
        if embed is not None and dims is None:
            raise ConfigError("A store with an embed function needs dims, the width of its embeddings.")
        if metric not in METRICS:
            raise ConfigError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}.")
        if isinstance(fields, str):
            raise ConfigError(f"fields must be a list of paths, not one text; write [{fields!r}].")
        if not isinstance(model, str):
            raise ConfigError(
                f"model must be text, the name of the embed function's model, not {type(model).__name__}."
            )
        check_cache_bytes(vector_cache_bytes)
        self.config = config
        self.embed = embed
        self.dims = dims
        self.fields = tuple(check_path(path) for path in fields)
        self.metric: Metric = metric
        self.model = model
        self.sql = MemoryDialect(config.table_prefix, search=config.search, search_parser=config.search_parser)
        self.schema = self.sql.schema
        self.writing = WritingOperations(config, self.sql)
        self.reading = ReadingOperations(config, self.sql)
        self.caring = CaringOperations(self.sql, self.writing)
        self.moving = MovingOperations(config, self.sql)
        self.nearest = NearestOperations(self.sql, VectorCache(vector_cache_bytes))
        self.searching = SearchingOperations(self.reading, self.nearest)
        self.tenant = config.tenant

    def count_in(self, counters: Counters) -> None:
        """See `CountsCache.count_in`."""
        self.nearest.counters = counters

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
        """Write an item whole, in the place of what is under the key.

        Args:
            namespace: One label or more, texts without NUL that are not empty; 1,000 bytes together.
            key: 1 to 1,000 bytes of UTF-8 without NUL; compared by code point, as labels are.
            value: Any JSON value, nested 90 deep at most. What is read is equal to it, in the same order.
            metadata: A dict of JSON values, at most 65,536 bytes as JSON.
            ttl_s: The item expires after this many seconds; None: never. By default as the store's ``ttl_s`` says.
            if_version: Write only if the item has this version; 0: only if there is none.
            text: What is searched by word, and embedded for the path ``$``. By default all texts in the value.
            embedding: An embedding of the item, instead of one by the store's function.
            embeddings: Several: a search then counts the nearest.
            index: False: no embedding by the store's function; a list of paths: of these instead of the store's.

        Returns:
            The item's version: 1 for a new one.

        Raises:
            InvalidInput: An argument cannot be stored exactly, or an embedding has another width than the store's.
            VersionConflict: The item has another version; nothing was changed.
            StateTooLarge: A packet would exceed the server's ``max_allowed_packet``.
        """
        put = Put(namespace, key, value, metadata, ttl_s, if_version, text, embedding, embeddings, index)
        (item,) = yield from self.embedded([self.prepared(put)])
        return cast(int, (yield self.writing.put(self.tenant, item)))

    def put_batch(self, items: Iterable[Put]) -> Procedure[None]:
        """Write items, all or none. Of several with one key the last counts. One round trip, but for embedding.

        Raises:
            InvalidInput: As for `put`; or there are more than 10,000.
            VersionConflict: One of them has another version than its ``if_version``; nothing was changed.
        """
        new = yield from self.embedded([self.prepared(item) for item in items])
        yield self.writing.write(self.tenant, new)

    def write_batch(self, items: Iterable[Put], deleted: Iterable[tuple[Sequence[str], str]]) -> Procedure[int]:
        """Write some items and delete others, all or nothing; returns how many were deleted.

        What is both written and deleted is deleted. One round trip, but for embedding.

        Args:
            items: What to write; of several with one key the last counts.
            deleted: Pairs of namespace and key.

        Raises:
            InvalidInput: As for `put`; or there are more than 10,000 together.
            VersionConflict: One of them has another version than its ``if_version``; nothing was changed.
        """
        gone = self._keys(deleted)
        new = yield from self.embedded([self.prepared(item) for item in items])
        return cast(int, (yield self.writing.write(self.tenant, new, gone)))

    def get(self, namespace: Sequence[str], key: str, default: Any = None, *, refresh: bool = False) -> Procedure[Any]:
        """The value under a key; the default if there is none.

        Args:
            namespace: The item's.
            key: The item's.
            default: Returned if there is no item.
            refresh: Whether an item that expires is given its whole time again.
        """
        item = yield from self.get_item(namespace, key, refresh=refresh)
        return default if item is None else item.value

    def get_item(self, namespace: Sequence[str], key: str, *, refresh: bool = False) -> Procedure[MemoryItem | None]:
        """The item under a key, with metadata, version and times; None if there is none."""
        found = yield self.reading.get(self.tenant, [self._key(namespace, key)], refresh=refresh)
        return next(iter(found.values()), None)

    def get_batch(
        self, keys: Iterable[tuple[Sequence[str], str]], *, refresh: bool = False
    ) -> Procedure[dict[tuple[Namespace, str], MemoryItem]]:
        """Items by namespace and key; what is not there is left out. One round trip.

        Args:
            keys: Pairs of namespace and key.
            refresh: Whether items that expire are given their whole time again.

        Raises:
            InvalidInput: One of them is no pair of a namespace and a key.
        """
        wanted = self._keys(keys)
        if not wanted:
            return {}
        found = yield self.reading.get(self.tenant, wanted, refresh=refresh)
        items = [found[key] for key in dict.fromkeys(wanted) if key in found]
        return {(item.namespace, item.key): item for item in items}

    def exists(self, namespace: Sequence[str], key: str) -> Procedure[bool]:
        """Whether there is an item under a key."""
        return (yield from self.get_item(namespace, key)) is not None

    def delete(self, namespace: Sequence[str], key: str) -> Procedure[bool]:
        """Delete an item; True if there was one."""
        return bool((yield self.writing.write(self.tenant, [], [self._key(namespace, key)])))

    def delete_batch(self, keys: Iterable[tuple[Sequence[str], str]]) -> Procedure[int]:
        """Delete items, all or none; returns how many there were. One round trip.

        Args:
            keys: Pairs of namespace and key.

        Raises:
            InvalidInput: One of them is no pair of a namespace and a key; or there are more than 10,000.
        """
        wanted = self._keys(keys)
        return cast(int, (yield self.writing.write(self.tenant, [], wanted)))

    def list_keys(self, namespace: Sequence[str], limit: int = 100, offset: int = 0) -> Procedure[list[str]]:
        """Keys of exactly this namespace, in the order of their code points."""
        found = yield self.reading.list_keys(
            self.tenant, path_of(namespace), check_count(limit, "limit"), check_count(offset, "offset")
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
        """Namespaces with items in them, in the order of their labels.

        Args:
            prefix: The first labels; ``*`` stands for any one label.
            suffix: The last labels; likewise.
            max_depth: Cut to so many labels; each is then listed once.
            limit: At most this many.
            offset: Leave out this many first.
        """
        for labels, what in ((prefix, "Prefix"), (suffix, "Suffix")):
            path_of(labels, empty=True, what=what)
        depth = None if max_depth is None else check_count(max_depth, "max_depth", 1)
        found = yield self.reading.list_namespaces(
            self.tenant, [prefix], [suffix], depth, check_count(limit, "limit"), check_count(offset, "offset")
        )
        return cast(list[Namespace], found)

    def clear_namespace(self, namespace: Sequence[str]) -> Procedure[int]:
        """Delete all items of exactly this namespace, not of those below; returns how many there were."""
        return cast(int, (yield self.writing.clear(self.tenant, path_of(namespace))))

    def count(self, namespace_prefix: Sequence[str] = (), *, filter: Mapping[str, Any] | None = None) -> Procedure[int]:
        """How many items there are in a namespace and those below it."""
        where = Range(path_of(namespace_prefix, empty=True))
        return cast(int, (yield self.reading.count(self.tenant, where, condition_of(filter, "i.value"))))

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
        """Items of a namespace and those below it: by field, by word, by meaning, or by word and meaning.

        Scores are comparable between calls of one kind. By word: the share of the query's words and phrases (in double
        quotes) that the item holds; a hit holds one at least. By meaning: the cosine, from -1 to 1; the inner product;
        or 1 / (1 + distance), as the store's ``metric`` is. By both: the sum of 1 / (60 + rank) over the two, divided
        by what an item that is first in both would have.

        Args:
            namespace_prefix: The first labels; empty for all namespaces.
            query: Text: embedded by the store's function, if it has one, or searched by word.
            embedding: Asked for by meaning; together with a query, by both.
            filter: What the value must fulfil: ``{"kind": "fact", "age": {"$gte": 3}, "address": {"city": "Bonn"}}``,
                with ``$eq $ne $gt $gte $lt $lte $in $exists``. Numbers compare as numbers.
            metadata_filter: The same of the metadata.
            limit: At most this many.
            offset: Leave out this many first.
            min_score: Leave out hits with a lower score.
            way: ``word``, ``meaning`` or ``hybrid``, where the query could be meant for each.
            exact: Be certain of the best hits by meaning, also where this process has not searched before.
            only_here: Leave out the namespaces below.

        Returns:
            The hits, best first; without query and embedding, most recently written first. Its ``exact`` tells whether
            these are certain to be the best.
        """
        where = Range(path_of(namespace_prefix, empty=not only_here, what="Namespace prefix"), exact=only_here)
        asked = Asked(query, embedding, filter, metadata_filter, limit, offset, min_score, way, exact)
        (hits,) = yield from self._search([where], asked)
        return hits

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
        ranges = [
            Range(path_of(prefix, empty=not only_here, what="Namespace prefix"), exact=only_here)
            for prefix in namespace_prefixes
        ]
        asked = Asked(query, embedding, filter, metadata_filter, limit, offset, min_score, way, exact)
        return (yield from self._search(ranges, asked))

    def get_embeddings(self, namespace: Sequence[str], key: str) -> Procedure[list[list[float]]]:
        """The embeddings of an item, as they are stored; none if there is no item or it has none."""
        found = yield self.reading.embedding(self.tenant, self._key(namespace, key))
        return [decode_vector(raw).tolist() for raw in found]

    def sweep(self, limit: int = 1_000) -> Procedure[int]:
        """Remove items of the tenant that have expired; returns how many. They are found by nobody even before that.

        Every 64th write of a process removes a few of them anyway.
        """
        return cast(int, (yield self.writing.sweep(check_count(limit, "limit"), self.tenant)))

    def query_of(self, embedding: Any) -> Query:
        """An embedding to compare others with."""
        return Query(floats_of(embedding, dims_needed(self.dims), "The query's embedding"), self.metric)

    def _search(self, ranges: Sequence[Range], asked: Asked) -> Procedure[list[Hits]]:
        asked = asked.checked(embeds=self.embed is not None)
        condition = asked.condition  # a filter that cannot be understood is refused before anything is embedded
        near: Query | None = None
        if asked.by_meaning:
            embedding = asked.embedding
            if embedding is None:
                (embedding,) = yield Texts([cast(str, asked.query)], query=True)
            near = self.query_of(embedding)
        return cast(list[Hits], (yield self.searching.search(self.tenant, ranges, asked, condition, near)))

    def prepared(self, put: Put) -> Prepared:
        """An item checked and encoded; see `prepare`."""
        return prepare(put, self.config, dims=self.dims, fields=self.fields, embeds=self.embed is not None)

    def embedded(self, prepared: Sequence[Prepared]) -> Procedure[list[NewItem]]:
        """Items with their embeddings: of texts that have one already, that one; all others in one batch."""
        textual = [item for item in prepared if item.texts]
        known: dict[bytes, bytes] = {}
        if textual:
            keys = list({(item.row.path, item.row.key) for item in textual})
            found = yield self.writing.known_vectors(self.tenant, keys)
            known = {digest: raw for digest, raw in found.items() if len(raw) == 4 * dims_needed(self.dims)}
        digests = {text: digest_of(text, self.model) for item in textual for text in item.texts}
        unknown = [text for text, digest in digests.items() if digest not in known]
        coded = {digest: encode_vector(decode_vector(raw), self.dims) for digest, raw in known.items()}
        if unknown:
            made = yield Texts(unknown)
            for text, vector in zip(unknown, made, strict=True):
                coded[digests[text]] = encode_vector(vector, self.dims, "What the embed function returned")
        return [
            NewItem(
                item.row,
                [
                    *((None, vector) for vector in item.given),
                    *((digests[text], coded[digests[text]]) for text in item.texts),
                ],
                item.if_version,
            )
            for item in prepared
        ]

    def _key(self, namespace: Sequence[str], key: str) -> ItemKey:
        return path_of(namespace), encoded_key(key)

    def _keys(self, pairs: Iterable[tuple[Sequence[str], str]]) -> list[ItemKey]:
        keys: list[ItemKey] = []
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise InvalidInput("Items are named by pairs of namespace and key, such as (('users', 'ada'), 'tea').")
            keys.append(self._key(*pair))
        return keys


class MemoryStore(AsyncMemories[MemoryProcedures]):
    """What agents know for longer than a conversation, in MySQL: found by key, by field, by word and by meaning.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        dims: The width of embeddings, 1 to 16,383; without it there are none.
        embed: Embeds a list of texts; sync (then run in a thread) or async. Called outside of any transaction, once for
            each batch, with texts that changed.
        fields: Paths of what it embeds, such as ``facts[*].text``; ``$`` is the item's text.
        metric: ``cosine``, ``dot`` or ``euclidean``.
        model: Names the function's model: texts are embedded anew if it is another one.
        vector_cache_bytes: Memory for what repeated searches by meaning compare, about 1 byte for each dimension and
            350 bytes for each embedding; what was least recently used goes.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``search`` hold for items; with a
            `Database`, those of a store.

    Example:
        ```python
        async with MemoryStore(dsn="mysql://user:password@localhost/app", dims=3) as store:
            await store.put(("users", "ada"), "tea", {"likes": "green tea"}, embedding=[0.9, 0.1, 0.0])
            await store.put(("users", "ada"), "cat", {"has": "a cat"}, embedding=[0.0, 0.2, 0.9])
            (hit,) = await store.search(("users", "ada"), embedding=[1, 0, 0], limit=1)
            assert hit.item.value == {"likes": "green tea"}
            (hit,) = await store.search(("users",), query="cat")
            assert hit.item.key == "cat"
        ```
    """

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        dims: int | None = None,
        embed: EmbedFunction | None = None,
        fields: Sequence[str] = (WHOLE,),
        metric: Metric = "cosine",
        model: str = "",
        vector_cache_bytes: int = 268_435_456,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        procedures = MemoryProcedures(
            config,
            dims=dims,
            embed=embed,
            fields=fields,
            metric=metric,
            model=model,
            vector_cache_bytes=vector_cache_bytes,
        )
        super().__init__(procedures, database, owned=owned)

    @awaited(MemoryProcedures.put)
    def put(self) -> None: ...
    @awaited(MemoryProcedures.put_batch)
    def put_batch(self) -> None: ...
    @awaited(MemoryProcedures.write_batch)
    def write_batch(self) -> None: ...
    @awaited(MemoryProcedures.get)
    def get(self) -> None: ...
    @awaited(MemoryProcedures.get_item)
    def get_item(self) -> None: ...
    @awaited(MemoryProcedures.get_batch)
    def get_batch(self) -> None: ...
    @awaited(MemoryProcedures.get_embeddings)
    def get_embeddings(self) -> None: ...
    @awaited(MemoryProcedures.exists)
    def exists(self) -> None: ...
    @awaited(MemoryProcedures.delete)
    def delete(self) -> None: ...
    @awaited(MemoryProcedures.delete_batch)
    def delete_batch(self) -> None: ...
    @awaited(MemoryProcedures.list_keys)
    def list_keys(self) -> None: ...
    @awaited(MemoryProcedures.list_namespaces)
    def list_namespaces(self) -> None: ...
    @awaited(MemoryProcedures.clear_namespace)
    def clear_namespace(self) -> None: ...
    @awaited(MemoryProcedures.count)
    def count(self) -> None: ...
    @awaited(MemoryProcedures.search)
    def search(self) -> None: ...
    @awaited(MemoryProcedures.search_many)
    def search_many(self) -> None: ...
    @awaited(MemoryProcedures.sweep)
    def sweep(self) -> None: ...


class SyncMemoryStore(SyncMemories[MemoryProcedures]):
    """`MemoryStore` without an event loop: the same methods, blocking. Safe to share between threads.

    Args:
        where: See `MemoryStore`, as for the others.
        dims: The width of embeddings.
        embed: Embeds a list of texts.
        fields: Paths of what it embeds.
        metric: How near is near.
        model: Names the function's model.
        vector_cache_bytes: Memory for what repeated searches compare.
        options: Options of `MySQLConfig`.
    """

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        dims: int | None = None,
        embed: EmbedFunction | None = None,
        fields: Sequence[str] = (WHOLE,),
        metric: Metric = "cosine",
        model: str = "",
        vector_cache_bytes: int = 268_435_456,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        procedures = MemoryProcedures(
            config,
            dims=dims,
            embed=embed,
            fields=fields,
            metric=metric,
            model=model,
            vector_cache_bytes=vector_cache_bytes,
        )
        super().__init__(procedures, database, owned=owned)

    @blocking(MemoryProcedures.put)
    def put(self) -> None: ...
    @blocking(MemoryProcedures.put_batch)
    def put_batch(self) -> None: ...
    @blocking(MemoryProcedures.write_batch)
    def write_batch(self) -> None: ...
    @blocking(MemoryProcedures.get)
    def get(self) -> None: ...
    @blocking(MemoryProcedures.get_item)
    def get_item(self) -> None: ...
    @blocking(MemoryProcedures.get_batch)
    def get_batch(self) -> None: ...
    @blocking(MemoryProcedures.get_embeddings)
    def get_embeddings(self) -> None: ...
    @blocking(MemoryProcedures.exists)
    def exists(self) -> None: ...
    @blocking(MemoryProcedures.delete)
    def delete(self) -> None: ...
    @blocking(MemoryProcedures.delete_batch)
    def delete_batch(self) -> None: ...
    @blocking(MemoryProcedures.list_keys)
    def list_keys(self) -> None: ...
    @blocking(MemoryProcedures.list_namespaces)
    def list_namespaces(self) -> None: ...
    @blocking(MemoryProcedures.clear_namespace)
    def clear_namespace(self) -> None: ...
    @blocking(MemoryProcedures.count)
    def count(self) -> None: ...
    @blocking(MemoryProcedures.search)
    def search(self) -> None: ...
    @blocking(MemoryProcedures.search_many)
    def search_many(self) -> None: ...
    @blocking(MemoryProcedures.sweep)
    def sweep(self) -> None: ...
