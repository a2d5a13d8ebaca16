"""Locus' long-term memory on MySQL: `MySQLMemory` and `SyncMySQLMemory`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, Unpack, cast

from locus.memory.store import (
    BaseStore,
    SemanticSearchResult,
    StoreCapabilities,
    StoreCapabilityError,
    StoreItem,
)
from locus.rag.embeddings.base import BaseEmbedding

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...errors import ConfigError, InvalidInput
from ...families.memories.arguments import check_score
from ...families.memories.embedding import (
    EmbeddingOptions,
    EmbedFunction,
    EmbedTexts,
    Procedure,
    embed_awaited,
    embed_blocking,
    name_of_model,
)
from ...families.memories.hashing import HashingEmbedder
from ...families.memories.operations import FrameworkMemories, MemoryOperations
from ...families.memories.puts import STORE_TTL, Put
from ...families.memories.records import MemoryItem
from ...families.memories.store import AsyncMemories, SyncMemories
from ...runtime.database import Where, share
from ...runtime.stores import awaited_method, blocking_method

#: The embedders that the stores accept.
Embedder: TypeAlias = BaseEmbedding | HashingEmbedder


class EmbeddingsNotKept(InvalidInput, StoreCapabilityError):
    """The store was created without an embedder or a dimension, so it stores no embeddings."""

    def __init__(self) -> None:
        StoreCapabilityError.__init__(
            self,
            capability="semantic_search",
            store_class=MySQLMemory.__name__,
            hint="It was made without dimension= or embedder=. Give it one, or call put and search.",
        )


class LocusMemoryOperations(FrameworkMemories):
    """The operations of Locus' stores. Each works on exactly one namespace, without those below it.

    Args:
        config: The options.
        embedder: Embeds stored texts and queries.
        dimension: The width of embeddings; that of the embedder if None.
        model: The name of the embedder's model.
    """

    def __init__(self, config: MySQLConfig, embedder: Embedder | None, dimension: int | None, model: str = "") -> None:
        if embedder is not None:
            if not hasattr(embedder, "dimension"):
                raise ConfigError(
                    f"embedder must be one of Locus' embedders, with a dimension, not {type(embedder).__name__}; "
                    "a plain function serves as MemoryStore(embed=…, dims=…)."
                )
            if dimension is not None and dimension != embedder.dimension:
                raise ConfigError(f"The embedder's embeddings have {embedder.dimension} dimensions, not {dimension}.")
            dimension = embedder.dimension
        self.embedder = embedder
        embed = None if embedder is None else self._documents
        options = EmbeddingOptions(dims=dimension, embed=embed, model=model or _name_of_model(embedder))
        super().__init__(MemoryOperations(config, options))

    @property
    def capabilities(self) -> StoreCapabilities:
        """The capabilities; a search by embedding requires an embedder or a dimension."""
        return StoreCapabilities(
            search=self.config.search or self.embed is not None,
            semantic_search=self.items.dims is not None,
            embedding_dimension=self.items.dims,
            ttl=True,
            list_namespaces=True,
            batch_operations=True,
            transactions=True,
        )

    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Any,
        metadata: dict[str, Any] | None = None,
        *,
        ttl_s: float | str | None = STORE_TTL,
        if_version: int | None = None,
    ) -> Procedure[None]:
        """Store a value; replaces the item under the key. With an embedder, its text is embedded.

        Args:
            namespace: One or more labels, which are non-empty texts without NUL; 1,000 bytes together.
            key: 1 to 1,000 bytes of UTF-8 without NUL.
            value: Any JSON value.
            metadata: A dict of JSON values, at most 65,536 bytes as JSON.
            ttl_s: The item expires after this many seconds; None: never. By default the store's ``ttl_s``.
            if_version: Write only if the item has this version; 0: only if there is no item.

        Raises:
            InvalidInput: An argument cannot be stored exactly.
            VersionConflict: The item has another version; nothing was changed.
        """
        yield from self.items.put(namespace, key, value, metadata=metadata, ttl_s=ttl_s, if_version=if_version)

    def put_with_embedding(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Any,
        embedding: list[float],
        metadata: dict[str, Any] | None = None,
    ) -> Procedure[None]:
        """Store a value with an embedding that the caller provides.

        Raises:
            StoreCapabilityError: The store was created without an embedder or a dimension.
        """
        if embedding is None:
            raise InvalidInput("put_with_embedding needs an embedding; put stores a value without one.")
        self._check_embeddings_are_kept()
        yield from self.items.put(namespace, key, value, metadata=metadata, embedding=embedding)

    def put_batch(self, items: list[tuple[tuple[str, ...], str, Any, dict[str, Any] | None]]) -> Procedure[None]:
        """Store values, all or none: tuples of namespace, key, value and metadata."""
        for item in items:
            if not isinstance(item, tuple | list) or len(item) != 4:
                raise InvalidInput(
                    f"A batch takes tuples of namespace, key, value and metadata, not {_described(item)}; "
                    "without metadata write None."
                )
        yield from self.items.put_batch([Put(namespace, key, value, data) for namespace, key, value, data in items])

    def get(self, namespace: tuple[str, ...], key: str) -> Procedure[Any | None]:
        """Return the value under a key; None if there is none."""
        return (yield from self.items.get(namespace, key))

    def get_item(self, namespace: tuple[str, ...], key: str) -> Procedure[StoreItem | None]:
        """Return the item under a key, with metadata, version and times; None if there is none."""
        item = yield from self.items.get_item(namespace, key)
        return None if item is None else _store_item(item)

    def get_batch(self, keys: list[tuple[tuple[str, ...], str]]) -> Procedure[dict[tuple[tuple[str, ...], str], Any]]:
        """Return values by namespace and key, without missing ones. One round trip."""
        found = yield from self.items.get_batch(keys)
        return {key: item.value for key, item in found.items()}

    def get_embedding(self, namespace: tuple[str, ...], key: str) -> Procedure[list[float] | None]:
        """Return the embedding of an item, the first if it has several; None if there is none."""
        return next(iter((yield from self.items.get_embeddings(namespace, key))), None)

    def exists(self, namespace: tuple[str, ...], key: str) -> Procedure[bool]:
        """Check whether there is an item under a key."""
        return (yield from self.items.exists(namespace, key))

    def delete(self, namespace: tuple[str, ...], key: str) -> Procedure[bool]:
        """Delete an item; returns whether there was one."""
        return (yield from self.items.delete(namespace, key))

    def list_keys(self, namespace: tuple[str, ...], limit: int = 100) -> Procedure[list[str]]:
        """Return the keys of a namespace, in the order of their code points."""
        return (yield from self.items.list_keys(namespace, limit))

    def list_namespaces(
        self, prefix: tuple[str, ...] | None = None, limit: int = 100
    ) -> Procedure[list[tuple[str, ...]]]:
        """Return the namespaces with items that begin with a prefix, in the order of their labels."""
        return (yield from self.items.list_namespaces(prefix or (), limit=limit))

    def clear_namespace(self, namespace: tuple[str, ...]) -> Procedure[int]:
        """Delete all items of a namespace; returns the number of items."""
        return (yield from self.items.clear_namespace(namespace))

    def search(
        self, namespace: tuple[str, ...], query: str | None = None, limit: int = 10
    ) -> Procedure[list[StoreItem]]:
        """Search a namespace, best hits first: by meaning if there is an embedder, else by word.

        Without a query, or with an empty one, the most recently stored items come first.
        """
        hits = yield from self.items.search(namespace, query=query or None, limit=limit, only_here=True)
        return [_store_item(hit.item) for hit in hits]

    def search_many(
        self, namespaces: Sequence[tuple[str, ...]], query: str | None = None, limit: int = 10
    ) -> Procedure[list[list[StoreItem]]]:
        """`search` in each of several namespaces, in the round trips of one search."""
        found = yield from self.items.search_many(namespaces, query=query or None, limit=limit, only_here=True)
        return [[_store_item(hit.item) for hit in hits] for hits in found]

    def search_by_embedding(
        self,
        namespace: tuple[str, ...],
        query_embedding: list[float],
        limit: int = 10,
        threshold: float | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> Procedure[list[SemanticSearchResult]]:
        """Return the items of a namespace that are nearest to an embedding.

        Args:
            namespace: The namespace.
            query_embedding: An embedding of the store's width.
            limit: The maximum number of items to return.
            threshold: The minimum score, from 0 to 1.
            metadata_filter: Conditions on the metadata: values, or operators as in `MemoryStore.search`.

        Returns:
            Best first; the score is (1 + cosine) / 2, the distance 1 - cosine.

        Raises:
            StoreCapabilityError: The store was created without an embedder or a dimension.
        """
        self._check_embeddings_are_kept()
        least = check_score(threshold, "threshold")
        hits = yield from self.items.search(
            namespace,
            embedding=query_embedding,
            metadata_filter=metadata_filter,
            limit=limit,
            min_score=None if least is None else 2 * least - 1,
            only_here=True,
        )
        return [
            SemanticSearchResult(_store_item(hit.item), (1 + cast(float, hit.score)) / 2, 1 - cast(float, hit.score))
            for hit in hits
        ]

    def _check_embeddings_are_kept(self) -> None:
        if self.items.dims is None:
            raise EmbeddingsNotKept()

    async def _documents(self, texts: list[str]) -> list[list[float]]:
        embedder = cast(Embedder, self.embedder)
        at_once = max(1, embedder.capabilities.max_batch_size)
        made: list[list[float]] = []
        for start in range(0, len(texts), at_once):
            made += [result.embedding for result in await embedder.embed_documents(texts[start : start + at_once])]
        return made

    async def _queries(self, texts: list[str]) -> list[list[float]]:
        embedder = cast(Embedder, self.embedder)
        return [(await embedder.embed_query(text)).embedding for text in texts]

    def function_for(self, texts: EmbedTexts) -> EmbedFunction:
        """Return the function that embeds texts."""
        return self._queries if texts.query else cast(EmbedFunction, self.embed)


class _Memory:
    """What both stores have and neither waits for. The arguments are those of `MySQLMemory`."""

    _operations: LocusMemoryOperations

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        embedder: Embedder | None = None,
        dimension: int | None = None,
        model: str = "",
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        operations = LocusMemoryOperations(config, embedder, dimension, model)
        super().__init__(operations, database, owned=owned)  # type: ignore[call-arg]  # of the store

    @property
    def capabilities(self) -> StoreCapabilities:
        """The capabilities of the store."""
        return self._operations.capabilities


class MySQLMemory(_Memory, AsyncMemories[LocusMemoryOperations], BaseStore):
    """Locus' store of long-term memory, in MySQL.

    Works as ``builder.compile(store=…)`` and under ``LLMMemoryManager``.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        embedder: Embeds stored texts and queries, as in Locus' ``PgMemory``. Without one, `search` is by word.
        dimension: The width of embeddings, if the caller provides them.
        model: The name of the model; by default that of the embedder. Embeddings of other models are not compared.
        options: Options of `MySQLConfig`.

    Example:
        ```python
        memory = MySQLMemory(dsn="mysql://user:password@localhost/app")
        await memory.put(("users", "ada"), "theme", {"theme": "dark, as it is easier on the eyes"})
        (found,) = await memory.search(("users", "ada"), "eyes")
        assert found.key == "theme"
        await memory.close()
        ```
    """

    async def embed_texts(self, texts: EmbedTexts) -> Sequence[Any]:
        """Embed texts with the embedder."""
        return await embed_awaited(self._operations.function_for(texts), texts)

    put = awaited_method(LocusMemoryOperations.put)
    put_with_embedding = awaited_method(LocusMemoryOperations.put_with_embedding)
    put_batch = awaited_method(LocusMemoryOperations.put_batch)
    get = awaited_method(LocusMemoryOperations.get)
    get_item = awaited_method(LocusMemoryOperations.get_item)
    get_batch = awaited_method(LocusMemoryOperations.get_batch)
    get_embedding = awaited_method(LocusMemoryOperations.get_embedding)
    exists = awaited_method(LocusMemoryOperations.exists)
    delete = awaited_method(LocusMemoryOperations.delete)
    list_keys = awaited_method(LocusMemoryOperations.list_keys)
    list_namespaces = awaited_method(LocusMemoryOperations.list_namespaces)
    clear_namespace = awaited_method(LocusMemoryOperations.clear_namespace)
    search = awaited_method(LocusMemoryOperations.search)
    search_many = awaited_method(LocusMemoryOperations.search_many)
    search_by_embedding = awaited_method(LocusMemoryOperations.search_by_embedding)


class SyncMySQLMemory(_Memory, SyncMemories[LocusMemoryOperations]):
    """`MySQLMemory` without an event loop: the same methods, blocking, as those of Locus' ``OracleSyncStore``.

    Safe to share between threads. The arguments are those of `MySQLMemory`; an embedder runs in the background loop of
    the process.
    """

    def embed_texts(self, texts: EmbedTexts) -> Sequence[Any]:
        """Embed texts with the embedder."""
        return embed_blocking(self._operations.function_for(texts), texts)

    put = blocking_method(LocusMemoryOperations.put)
    put_with_embedding = blocking_method(LocusMemoryOperations.put_with_embedding)
    put_batch = blocking_method(LocusMemoryOperations.put_batch)
    get = blocking_method(LocusMemoryOperations.get)
    get_item = blocking_method(LocusMemoryOperations.get_item)
    get_batch = blocking_method(LocusMemoryOperations.get_batch)
    get_embedding = blocking_method(LocusMemoryOperations.get_embedding)
    exists = blocking_method(LocusMemoryOperations.exists)
    delete = blocking_method(LocusMemoryOperations.delete)
    list_keys = blocking_method(LocusMemoryOperations.list_keys)
    list_namespaces = blocking_method(LocusMemoryOperations.list_namespaces)
    clear_namespace = blocking_method(LocusMemoryOperations.clear_namespace)
    search = blocking_method(LocusMemoryOperations.search)
    search_many = blocking_method(LocusMemoryOperations.search_many)
    search_by_embedding = blocking_method(LocusMemoryOperations.search_by_embedding)


def _name_of_model(embedder: Embedder | None) -> str:
    """Return the name of an embedder's model. Locus' embedders for OCI and OpenAI have it in their configuration."""
    owners = (embedder, getattr(embedder, "oci_config", None), getattr(embedder, "_config_model", None))
    return next(filter(None, map(name_of_model, owners)), "")


def _described(item: object) -> str:
    """Describe a wrong item of a batch, without quoting it."""
    return f"a tuple of {len(item)}" if isinstance(item, tuple | list) else type(item).__name__


def _store_item(item: MemoryItem) -> StoreItem:
    return StoreItem(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        metadata=item.metadata,
        created_at=item.created_at,
        updated_at=item.updated_at,
        version=item.version,
    )
