"""LangGraph's checkpointers: `AsyncMySQLSaver` for event loops, and `MySQLSaver`.

A method that one of them derives from its counterpart calls that one by name, so it runs the method of a subclass that
overrides it. Example::

    @in_a_thread(put)
    def aput(self) -> None: ...
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...errors import UsageError
from ...families.graphs.operations import AsyncGraphs, SyncGraphs
from ...runtime.database import Database, share
from ...runtime.stores import Definition, awaited, blocking
from .operations import LangGraphOperations

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., Any])


class LoopUnavailable(UsageError, asyncio.InvalidStateError):
    """A synchronous method of the asynchronous saver was called in its event loop, or while no loop was running."""


class GraphSaver(BaseCheckpointSaver[str]):
    """Base of the savers.

    LangGraph clones a saver to give it another serialiser (`with_allowlist`): the clone gets operations of its own.
    """

    _operations: LangGraphOperations

    @property
    def serde(self) -> SerializerProtocol:
        """Turns values into bytes and back."""
        return self._operations.serde

    @serde.setter
    def serde(self, serde: SerializerProtocol) -> None:
        self._operations = self._operations.with_serde(serde)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the version of a channel that follows ``current``.

        It has the form of LangGraph's own savers, a number of 32 digits and a random fraction that distinguishes
        branches, so that versions of threads that were copied from these continue to rise.
        """
        if current is None:
            number = 0
        elif isinstance(current, str):
            number = int(current.split(".")[0])
        else:
            number = int(current)
        return f"{number + 1:032}.{random.random():016}"  # noqa: S311 - distinguishes branches, protects no secret


class HasLoop(Protocol):
    """A saver that runs calls of other threads in its event loop."""

    def _wait_for(self, call: Coroutine[Any, Any, T]) -> T: ...


def in_a_thread(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[[Definition], Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]]:
    """Replace a definition ``aname`` by the coroutine method that runs ``name`` in a thread."""

    def decorate(definition: Definition) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
        name = definition.__name__.removeprefix("a")

        async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return await asyncio.to_thread(getattr(self, name), *args, **kwargs)

        return _describe(awaited, definition, method, f"`{name}` in a thread.")

    return decorate


def from_other_threads(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[[Definition], Callable[Concatenate[Any, P], T]]:
    """Replace a definition ``name`` by the method that runs ``aname`` in the saver's event loop and waits for it."""

    def decorate(definition: Definition) -> Callable[Concatenate[Any, P], T]:
        name = f"a{definition.__name__}"

        def blocking(self: HasLoop, /, *args: P.args, **kwargs: P.kwargs) -> T:
            call: Coroutine[Any, Any, T] = getattr(self, name)(*args, **kwargs)
            return self._wait_for(call)

        return _describe(blocking, definition, method, f"`{name}`, called from another thread than the event loop's.")

    return decorate


def _describe(derived: M, definition: Definition, method: Callable[..., Any], doc: str) -> M:
    """Give a method the name of its definition and the signature of its counterpart."""
    derived.__name__, derived.__qualname__, derived.__doc__ = definition.__name__, definition.__qualname__, doc
    derived.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]  # inspect.signature reads it
    return derived


class AsyncMySQLSaver(AsyncGraphs[LangGraphOperations], GraphSaver):
    """Keeps the checkpoints of LangGraph's graphs in MySQL. Any number of graphs can share one.

    Its synchronous methods may be called from other threads than the event loop's, like those of LangGraph's own
    asynchronous savers: they run in the loop in which the saver was created or first used.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        serde: Turns values into bytes and back; by default LangGraph's own serialiser.
        tenant_of: ``(thread_id) -> tenant``, for thread ids that contain the tenant.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.

    Example:
        ```python
        async with AsyncMySQLSaver("mysql://user:password@localhost/app") as saver:
            graph = builder.compile(checkpointer=saver)
            await graph.ainvoke({"messages": [("user", "Hello")]}, {"configurable": {"thread_id": "support/42"}})
        ```
    """

    _blocking_class = "MySQLSaver"

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        serde: SerializerProtocol | None = None,
        tenant_of: Callable[[str], str] | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        AsyncGraphs.__init__(self, LangGraphOperations(config, tenant_of), database, owned=owned)
        GraphSaver.__init__(self, serde=serde)
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, conn_string: str, *, serde: SerializerProtocol | None = None, **options: Unpack[Keywords]
    ) -> AsyncIterator[Self]:
        """Open a saver for an ``async with`` block, which closes it.

        Args:
            conn_string: ``mysql://user:password@host:port/database?option=value``.
            serde: As for the class.
            options: Options of `MySQLConfig`.
        """
        async with cls(conn_string, serde=serde, **options) as saver:
            yield saver

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, newest first, in pages of 100.

        Args:
            config: The thread, and optionally namespace and checkpoint; None or an empty one for all threads, the one
                saved to last first.
            filter: Metadata has to contain this.
            before: Only checkpoints with an id less than this one's, which need not exist. Ids begin with the time of
                the client that created them.
            limit: The maximum number of results.
        """
        listing = self._operations.listing(config, filter, before, limit)
        while not listing.done:
            for one in await self._run(listing.next_page()):
                yield one

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """`alist`, called from another thread than the event loop's."""
        listing = self._operations.listing(config, filter, before, limit)
        while not listing.done:
            yield from self._wait_for(self._run(listing.next_page()))

    @awaited(LangGraphOperations.setup)
    def setup(self) -> None: ...
    @awaited(LangGraphOperations.get_tuple)
    def aget_tuple(self) -> None: ...
    @awaited(LangGraphOperations.put)
    def aput(self) -> None: ...
    @awaited(LangGraphOperations.put_writes)
    def aput_writes(self) -> None: ...
    @awaited(LangGraphOperations.delete_thread)
    def adelete_thread(self) -> None: ...
    @awaited(LangGraphOperations.delete_for_runs)
    def adelete_for_runs(self) -> None: ...
    @awaited(LangGraphOperations.copy_thread)
    def acopy_thread(self) -> None: ...
    @awaited(LangGraphOperations.prune)
    def aprune(self) -> None: ...
    @awaited(LangGraphOperations.get_delta_channel_history)
    def aget_delta_channel_history(self) -> None: ...

    @from_other_threads(aget_tuple)
    def get_tuple(self) -> None: ...
    @from_other_threads(aput)
    def put(self) -> None: ...
    @from_other_threads(aput_writes)
    def put_writes(self) -> None: ...
    @from_other_threads(adelete_thread)
    def delete_thread(self) -> None: ...
    @from_other_threads(adelete_for_runs)
    def delete_for_runs(self) -> None: ...
    @from_other_threads(acopy_thread)
    def copy_thread(self) -> None: ...
    @from_other_threads(aprune)
    def prune(self) -> None: ...
    @from_other_threads(aget_delta_channel_history)
    def get_delta_channel_history(self) -> None: ...

    async def _run(self, operation: Generator[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return await super()._run(operation)

    def _wait_for(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call in the event loop, and wait for it.

        Raises:
            LoopUnavailable: This is the loop's own thread, which would wait for itself forever; or no loop runs.
        """
        loop = self._loop
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if loop is None or loop.is_closed() or not loop.is_running() or running is loop:
            call.close()
            raise LoopUnavailable(
                "The synchronous methods of AsyncMySQLSaver work only from threads beside its running event loop. "
                "Inside the loop await the a… methods (graph.ainvoke, graph.aget_state); without one use MySQLSaver."
            )
        return asyncio.run_coroutine_threadsafe(call, loop).result()


class MySQLSaver(SyncGraphs[LangGraphOperations], GraphSaver):
    """Keeps the checkpoints of LangGraph's graphs in MySQL. Safe to share between threads and graphs.

    Its asynchronous methods run the synchronous ones in a thread; in an application with an event loop, use
    `AsyncMySQLSaver`.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        serde: Turns values into bytes and back; by default LangGraph's own serialiser.
        tenant_of: ``(thread_id) -> tenant``, for thread ids that contain the tenant.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.

    Example:
        ```python
        with MySQLSaver("mysql://user:password@localhost/app") as saver:
            graph = builder.compile(checkpointer=saver)
            graph.invoke({"messages": [("user", "Hello")]}, {"configurable": {"thread_id": "support/42"}})
        ```
    """

    _awaited_class = "AsyncMySQLSaver"

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        serde: SerializerProtocol | None = None,
        tenant_of: Callable[[str], str] | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        SyncGraphs.__init__(self, LangGraphOperations(config, tenant_of), database, owned=owned)
        GraphSaver.__init__(self, serde=serde)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, serde: SerializerProtocol | None = None, **options: Unpack[Keywords]
    ) -> Iterator[Self]:
        """Open a saver for a ``with`` block, which closes it.

        Args:
            conn_string: ``mysql://user:password@host:port/database?option=value``.
            serde: As for the class.
            options: Options of `MySQLConfig`.
        """
        with cls(conn_string, serde=serde, **options) as saver:
            yield saver

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints, newest first, in pages of 100.

        Args:
            config: The thread, and optionally namespace and checkpoint; None or an empty one for all threads, the one
                saved to last first.
            filter: Metadata has to contain this.
            before: Only checkpoints with an id less than this one's, which need not exist. Ids begin with the time of
                the client that created them.
            limit: The maximum number of results.
        """
        listing = self._operations.listing(config, filter, before, limit)
        while not listing.done:
            yield from self._run(listing.next_page())

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """`list`, each page in a thread."""
        listing = self._operations.listing(config, filter, before, limit)
        while not listing.done:
            for one in await asyncio.to_thread(self._run, listing.next_page()):
                yield one

    @blocking(LangGraphOperations.setup)
    def setup(self) -> None: ...
    @blocking(LangGraphOperations.get_tuple)
    def get_tuple(self) -> None: ...
    @blocking(LangGraphOperations.put)
    def put(self) -> None: ...
    @blocking(LangGraphOperations.put_writes)
    def put_writes(self) -> None: ...
    @blocking(LangGraphOperations.delete_thread)
    def delete_thread(self) -> None: ...
    @blocking(LangGraphOperations.delete_for_runs)
    def delete_for_runs(self) -> None: ...
    @blocking(LangGraphOperations.copy_thread)
    def copy_thread(self) -> None: ...
    @blocking(LangGraphOperations.prune)
    def prune(self) -> None: ...
    @blocking(LangGraphOperations.get_delta_channel_history)
    def get_delta_channel_history(self) -> None: ...

    @in_a_thread(get_tuple)
    def aget_tuple(self) -> None: ...
    @in_a_thread(put)
    def aput(self) -> None: ...
    @in_a_thread(put_writes)
    def aput_writes(self) -> None: ...
    @in_a_thread(delete_thread)
    def adelete_thread(self) -> None: ...
    @in_a_thread(delete_for_runs)
    def adelete_for_runs(self) -> None: ...
    @in_a_thread(copy_thread)
    def acopy_thread(self) -> None: ...
    @in_a_thread(prune)
    def aprune(self) -> None: ...
    @in_a_thread(get_delta_channel_history)
    def aget_delta_channel_history(self) -> None: ...
