"""`SyncInspector`: the inspector for threads that may block."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from ..config import StoreKeywords
from ..dialect import Schema
from ..engine.bootstrap import DDLMode
from ..engine.operation import Operation
from ..families.memories.embedding import EmbedFunction, EmbedTexts, embed_blocking
from ..runtime.database import Database
from .inspector import Inspector

P = ParamSpec("P")
T = TypeVar("T")


class _Blocking(Inspector):
    """An inspector whose coroutines never wait: what they need is there when they ask for it."""

    async def _send(self, operation: Operation[T], schema: Schema | None = None, ddl_mode: DDLMode = "create") -> T:
        return self.database.synchronous.run(operation, schema, ddl_mode)

    async def _compute(self, work: Callable[..., T], *arguments: Any) -> T:
        return work(*arguments)

    async def _embedded(self, step: EmbedTexts) -> Sequence[Any]:
        assert self._embed is not None  # noqa: S101 - a search asks for it only where there is one
        return embed_blocking(self._embed, step)


def _blocking(
    method: Callable[Concatenate[Inspector, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncInspector, P], T]:
    """Return the blocking form of a method of `Inspector`."""

    def call(self: SyncInspector, /, *args: P.args, **kwargs: P.kwargs) -> T:
        coroutine = method(self._inspector, *args, **kwargs)
        try:
            coroutine.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        raise RuntimeError("A method of the inspector waited for an event loop.")

    call.__doc__ = method.__doc__
    return call


class SyncInspector:
    """`Inspector` with blocking methods, for any thread. The arguments are the same."""

    def __init__(
        self,
        where: Database,
        *,
        embed: EmbedFunction | None = None,
        dims: int | None = None,
        **options: Unpack[StoreKeywords],
    ) -> None:
        self._inspector = _Blocking(where, embed=embed, dims=dims, **options)
        self.embeds = self._inspector.embeds
        self.turns_at_once = self._inspector.turns_at_once

    families = _blocking(Inspector.families)
    threads = _blocking(Inspector.threads)
    thread = _blocking(Inspector.thread)
    previews = _blocking(Inspector.previews)
    history = _blocking(Inspector.history)
    state = _blocking(Inspector.state)
    differences = _blocking(Inspector.differences)
    states = _blocking(Inspector.states)
    search = _blocking(Inspector.search)
    by_metadata = _blocking(Inspector.by_metadata)
    statistics = _blocking(Inspector.statistics)
    stored = _blocking(Inspector.stored)
    growth = _blocking(Inspector.growth)
    changed = _blocking(Inspector.changed)
    namespaces = _blocking(Inspector.namespaces)
    items = _blocking(Inspector.items)
    item = _blocking(Inspector.item)
    search_memories = _blocking(Inspector.search_memories)
    sessions = _blocking(Inspector.sessions)
    session = _blocking(Inspector.session)
