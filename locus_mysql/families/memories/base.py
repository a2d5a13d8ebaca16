"""Base classes of stores of memories: they run operations on the engine, and embed texts between operations."""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from typing import Any, Protocol, TypeVar

from ...engine.operation import Operation
from ...runtime.generators import drive_awaited, drive_blocking
from ...runtime.stores import AsyncStore, HasSchema, SyncStore
from .embedding import EmbedFunction, EmbedTexts, embed_awaited, embed_blocking

T = TypeVar("T")


class Embeds(HasSchema, Protocol):
    """Operations of a store, some of which embed texts."""

    @property
    def embed(self) -> EmbedFunction | None:
        """The embed function, if there is one."""


#: The class that holds the operations.
Ops = TypeVar("Ops", bound=Embeds)


class AsyncMemories(AsyncStore[Ops]):
    """Base of stores whose methods are awaited. `_run` runs a `Procedure`."""

    def _run(self, operation: Generator[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return drive_awaited(operation, self._run_step)

    def _run_step(self, step: EmbedTexts | Operation[Any]) -> Coroutine[Any, Any, Any]:
        return self.embed_texts(step) if isinstance(step, EmbedTexts) else super()._run(step)

    async def embed_texts(self, texts: EmbedTexts) -> Sequence[Any]:
        """Embed texts with the store's function."""
        return await embed_awaited(_embed_of(self._operations), texts)


class SyncMemories(SyncStore[Ops]):
    """Base of stores whose methods block. `_run` runs a `Procedure`. Safe to share between threads."""

    def _run(self, operation: Generator[Any, Any, T]) -> T:
        return drive_blocking(operation, self._run_step)

    def _run_step(self, step: EmbedTexts | Operation[Any]) -> Any:
        return self.embed_texts(step) if isinstance(step, EmbedTexts) else super()._run(step)

    def embed_texts(self, texts: EmbedTexts) -> Sequence[Any]:
        """Embed texts with the store's function."""
        return embed_blocking(_embed_of(self._operations), texts)


def _embed_of(operations: Embeds) -> EmbedFunction:
    assert operations.embed is not None  # noqa: S101 - without a function, no operation yields texts to embed
    return operations.embed
