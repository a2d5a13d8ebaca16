"""Base classes of stores of memories: they run operations on the engine, and embed texts between operations."""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Generator, Sequence
from typing import Any, Protocol, TypeVar, cast

from ...engine.operation import Operation
from ...runtime.generators import drive_awaited, drive_blocking, name_of, named
from ...runtime.stores import AsyncStore, HasSchema, SyncStore
from .embedding import EmbedFunction, EmbedTexts, Procedure, embed_awaited, embed_blocking
from .namespaces import path_of
from .operations import EmbeddedPage, MemoryOperations
from .statements.dialect import ItemKey, Range
from .statements.filters import ItemFilter

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
