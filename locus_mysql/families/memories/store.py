"""Long-term memory: `MemoryStore` and `SyncMemoryStore`."""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Generator, Sequence
from typing import Any, Protocol, TypeVar, Unpack, cast

from ...config import ENVIRONMENT, Keywords
from ...engine.operation import Operation, drive_awaited, drive_blocking, name_of, named
from ...runtime.database import Where, share
from ...runtime.stores import AsyncStore, HasSchema, Method, Store, SyncStore
from .arguments import path_of
from .embedding import (
    VECTOR_CACHE_BYTES,
    WHOLE,
    EmbeddingOptions,
    EmbedFunction,
    EmbedTexts,
    Procedure,
    embed_awaited,
    embed_blocking,
)
from .operations import EmbeddedPage, MemoryOperations
from .statements.filters import ItemFilter
from .statements.tables import ItemKey, Range
from .vectors.coding import Metric

T = TypeVar("T")


class Embeds(HasSchema, Protocol):
    """Operations of a store, some of which embed texts."""

    @property
    def items(self) -> MemoryOperations:
        """The operations on items."""

    @property
    def embed(self) -> EmbedFunction | None:
        """The embed function, if there is one."""


#: The class that holds the operations.
Ops = TypeVar("Ops", bound=Embeds)


class AsyncMemories(AsyncStore[Ops]):
    """Base of stores whose methods are awaited. `_run` runs a `Procedure`."""

    def _run(self, operation: Generator[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return drive_awaited(operation, lambda step: self._run_step(_named(step, operation)))

    def _run_step(self, step: EmbedTexts | Operation[Any]) -> Coroutine[Any, Any, Any]:
        return self.embed_texts(step) if isinstance(step, EmbedTexts) else super()._run(step)

    async def embed_texts(self, texts: EmbedTexts) -> Sequence[Any]:
        """Embed texts with the store's function."""
        return await embed_awaited(_embed_of(self._operations), texts)


class SyncMemories(SyncStore[Ops]):
    """Base of stores whose methods block. `_run` runs a `Procedure`. Safe to share between threads."""

    def _run(self, operation: Generator[Any, Any, T]) -> T:
        return drive_blocking(operation, lambda step: self._run_step(_named(step, operation)))

    def _run_step(self, step: EmbedTexts | Operation[Any]) -> Any:
        return self.embed_texts(step) if isinstance(step, EmbedTexts) else super()._run(step)

    def embed_texts(self, texts: EmbedTexts) -> Sequence[Any]:
        """Embed texts with the store's function."""
        return embed_blocking(_embed_of(self._operations), texts)


def _named(step: EmbedTexts | Operation[Any], method: object) -> EmbedTexts | Operation[Any]:
    """Return a step with the name of the method that runs it."""
    return step if isinstance(step, EmbedTexts) else named(step, name_of(method))


async def embed_page(
    store: AsyncMemories[Any] | SyncMemories[Any],
    namespace: Sequence[str],
    after: ItemKey | None,
    *,
    tenant: str,
    dry_run: bool,
) -> EmbeddedPage:
    """Embed a page of a store's items; see `MemoryOperations.embed_page`."""
    operations: MemoryOperations = store._operations.items
    page = store._run(operations.embed_page(namespace, after, tenant=tenant, dry_run=dry_run))
    return (await page) if inspect.isawaitable(page) else page


async def count_items(store: AsyncMemories[Any] | SyncMemories[Any], namespace: Sequence[str], *, tenant: str) -> int:
    """Count the items of a namespace and those below it."""
    operations: MemoryOperations = store._operations.items
    where = Range(path_of((*operations.root, *namespace), empty=True))
    count: Any = store._run(_single(operations.reading.count(tenant, where, ItemFilter())))
    return cast(int, (await count) if inspect.isawaitable(count) else count)


def _single(operation: Operation[T]) -> Procedure[T]:
    return (yield operation)  # type: ignore[no-any-return]


def _embed_of(operations: Embeds) -> EmbedFunction:
    assert operations.embed is not None  # noqa: S101 - without a function, no operation yields texts to embed
    return operations.embed


class _Items(Store[MemoryOperations]):
    """Base of both stores: their constructor and their methods."""

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

    put = Method(MemoryOperations.put)
    put_batch = Method(MemoryOperations.put_batch)
    write_batch = Method(MemoryOperations.write_batch)
    get = Method(MemoryOperations.get)
    get_item = Method(MemoryOperations.get_item)
    get_batch = Method(MemoryOperations.get_batch)
    get_embeddings = Method(MemoryOperations.get_embeddings)
    exists = Method(MemoryOperations.exists)
    delete = Method(MemoryOperations.delete)
    delete_batch = Method(MemoryOperations.delete_batch)
    list_keys = Method(MemoryOperations.list_keys)
    list_namespaces = Method(MemoryOperations.list_namespaces)
    clear_namespace = Method(MemoryOperations.clear_namespace)
    count = Method(MemoryOperations.count)
    search = Method(MemoryOperations.search)
    search_many = Method(MemoryOperations.search_many)
    sweep = Method(MemoryOperations.sweep)


class MemoryStore(_Items, AsyncMemories[MemoryOperations]):
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


class SyncMemoryStore(_Items, SyncMemories[MemoryOperations]):
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
