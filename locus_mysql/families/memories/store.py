"""Long-term memory: `MemoryStore` and `SyncMemoryStore`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ...config import ENVIRONMENT, Keywords
from ...runtime.database import Where, share
from ...runtime.stores import awaited_method, blocking_method
from .base import AsyncMemories, SyncMemories
from .embedding import VECTOR_CACHE_BYTES, WHOLE, EmbeddingOptions, EmbedFunction
from .operations import MemoryOperations
from .vectors.scoring import Metric


class MemoryStore(AsyncMemories[MemoryOperations]):
    """Long-term memory of agents in MySQL: items that are found by key, by field, by word and by meaning.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        dims: The width of embeddings, 1 to 16,383; without it the store has no embeddings.
        embed: A function that embeds a list of texts; sync (run in a thread) or async. It is called outside of any
            transaction, once for each batch, with the texts that changed.
        fields: Paths of the texts to embed, such as ``facts[*].text``; ``$`` is the item's text.
        metric: ``cosine``, ``dot`` or ``euclidean``.
        model: The name of the model; by default that which ``embed`` has. Embeddings of other models are not compared.
        vector_cache_bytes: Memory for the LRU cache of repeated searches by meaning, about 1 byte for each dimension
            and 350 bytes for each embedding.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``search`` apply to items; with a
            `Database`, the options of a store.

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
        where: Where = ENVIRONMENT,
        *,
        dims: int | None = None,
        embed: EmbedFunction | None = None,
        fields: Sequence[str] = (WHOLE,),
        metric: Metric = "cosine",
        model: str = "",
        vector_cache_bytes: int = VECTOR_CACHE_BYTES,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        embedding = EmbeddingOptions(dims, embed, fields, metric, model, vector_cache_bytes)
        super().__init__(MemoryOperations(config, embedding), database, owned=owned)

    put = awaited_method(MemoryOperations.put)
    put_batch = awaited_method(MemoryOperations.put_batch)
    write_batch = awaited_method(MemoryOperations.write_batch)
    get = awaited_method(MemoryOperations.get)
    get_item = awaited_method(MemoryOperations.get_item)
    get_batch = awaited_method(MemoryOperations.get_batch)
    get_embeddings = awaited_method(MemoryOperations.get_embeddings)
    exists = awaited_method(MemoryOperations.exists)
    delete = awaited_method(MemoryOperations.delete)
    delete_batch = awaited_method(MemoryOperations.delete_batch)
    list_keys = awaited_method(MemoryOperations.list_keys)
    list_namespaces = awaited_method(MemoryOperations.list_namespaces)
    clear_namespace = awaited_method(MemoryOperations.clear_namespace)
    count = awaited_method(MemoryOperations.count)
    search = awaited_method(MemoryOperations.search)
    search_many = awaited_method(MemoryOperations.search_many)
    sweep = awaited_method(MemoryOperations.sweep)


class SyncMemoryStore(SyncMemories[MemoryOperations]):
    """`MemoryStore` without an event loop: the same methods, blocking. Safe to share between threads.

    Args:
        where: See `MemoryStore`, also for the other arguments.
        dims: The width of embeddings.
        embed: A function that embeds a list of texts.
        fields: Paths of the texts to embed.
        metric: How embeddings are compared.
        model: The name of the function's model.
        vector_cache_bytes: Memory for the cache of repeated searches.
        options: Options of `MySQLConfig`.
    """

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        dims: int | None = None,
        embed: EmbedFunction | None = None,
        fields: Sequence[str] = (WHOLE,),
        metric: Metric = "cosine",
        model: str = "",
        vector_cache_bytes: int = VECTOR_CACHE_BYTES,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        embedding = EmbeddingOptions(dims, embed, fields, metric, model, vector_cache_bytes)
        super().__init__(MemoryOperations(config, embedding), database, owned=owned)

    put = blocking_method(MemoryOperations.put)
    put_batch = blocking_method(MemoryOperations.put_batch)
    write_batch = blocking_method(MemoryOperations.write_batch)
    get = blocking_method(MemoryOperations.get)
    get_item = blocking_method(MemoryOperations.get_item)
    get_batch = blocking_method(MemoryOperations.get_batch)
    get_embeddings = blocking_method(MemoryOperations.get_embeddings)
    exists = blocking_method(MemoryOperations.exists)
    delete = blocking_method(MemoryOperations.delete)
    delete_batch = blocking_method(MemoryOperations.delete_batch)
    list_keys = blocking_method(MemoryOperations.list_keys)
    list_namespaces = blocking_method(MemoryOperations.list_namespaces)
    clear_namespace = blocking_method(MemoryOperations.clear_namespace)
    count = blocking_method(MemoryOperations.count)
    search = blocking_method(MemoryOperations.search)
    search_many = blocking_method(MemoryOperations.search_many)
    sweep = blocking_method(MemoryOperations.sweep)
