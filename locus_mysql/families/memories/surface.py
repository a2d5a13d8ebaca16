"""What the public classes share: they run procedures in a database, and embed texts in between."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ...engine.operation import Operation
from ...runtime.generators import drive_awaited, drive_blocking
from ...runtime.methods import Named, dressed, in_place_of_the_definition
from ...runtime.stores import AsyncStore, HasSchema, SyncStore
from .embedding import (
    EmbedFunction,
    Procedure,
    Texts,
    embed_awaited,
    embed_blocking,
)

P = ParamSpec("P")
T = TypeVar("T")


class HasProcedures(HasSchema, Protocol):
    """The procedures of a public class."""

    @property
    def embed(self) -> EmbedFunction | None:
        """Embeds texts."""


O = TypeVar("O", bound=HasProcedures)  # noqa: E741 - what holds the procedures


class AsyncMemories(AsyncStore[O]):
    """Base of classes whose methods are awaited."""

    async def run(self, procedure: Procedure[T]) -> T:
        """Carry out a procedure."""
        return await drive_awaited(procedure, self._answer)

    async def _answer(self, step: Texts | Operation[Any]) -> Any:
        return await (self.embed_texts(step) if isinstance(step, Texts) else self._run(step))

    async def embed_texts(self, texts: Texts) -> Sequence[Any]:
        """Embed texts by the store's function."""
        return await embed_awaited(_embed_of(self._operations), texts)


class SyncMemories(SyncStore[O]):
    """Base of classes whose methods block. Safe to share between threads."""

    def run(self, procedure: Procedure[T]) -> T:
        """Carry out a procedure."""
        return drive_blocking(procedure, self._answer)

    def _answer(self, step: Texts | Operation[Any]) -> Any:
        return self.embed_texts(step) if isinstance(step, Texts) else self._run(step)

    def embed_texts(self, texts: Texts) -> Sequence[Any]:
        """Embed texts by the store's function."""
        return embed_blocking(_embed_of(self._operations), texts)


def awaited(
    procedure: Callable[Concatenate[O, P], Procedure[T]],
) -> Callable[[Named], Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]]:
    """Make of a definition the coroutine method that runs a procedure; see `database.methods`."""

    async def method(self: AsyncMemories[O], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(procedure(self._operations, *args, **kwargs))

    return in_place_of_the_definition(dressed(method, procedure))


def blocking(
    procedure: Callable[Concatenate[O, P], Procedure[T]],
) -> Callable[[Named], Callable[Concatenate[Any, P], T]]:
    """Make of a definition the method that runs a procedure and waits for it; see `database.methods`."""

    def method(self: SyncMemories[O], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(procedure(self._operations, *args, **kwargs))

    return in_place_of_the_definition(dressed(method, procedure))


def _embed_of(procedures: HasProcedures) -> EmbedFunction:
    assert procedures.embed is not None  # noqa: S101 - a procedure asks for embeddings only where there is a function
    return procedures.embed
