"""LangGraph's checkpointers: `AsyncMySQLSaver` for event loops, and `MySQLSaver`.

A method that one of them derives from its counterpart calls that one by name, so it runs the method of a subclass that
overrides it. Example::

    aput = in_a_thread(put)
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import random
import threading
from abc import abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar, Concatenate, ParamSpec, Protocol, Self, TypeVar, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from ...config import ENVIRONMENT, Keywords
from ...errors import UsageError
from ...families.graphs.operations import AsyncGraphs, SyncGraphs
from ...runtime.database import Where, share
from ...runtime.stores import awaited_method, blocking_method
from .operations import LangGraphOperations, Listing

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., Any])


class LoopUnavailable(UsageError, asyncio.InvalidStateError):
    """A synchronous method of the asynchronous saver was called in its event loop, or while no loop was running."""


class WritesUnderWay:
    """The calls of ``put_writes`` of a saver that have not ended, by thread: ``put`` waits for those of its thread.

    LangGraph begins both without waiting for the first (its issue 8039): a checkpoint that is stored before the writes
    that led to it would, after a crash, be resumed without them, and their nodes run again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: defaultdict[object, set[concurrent.futures.Future[None]]] = defaultdict(set)

    @contextmanager
    def one_more(self, config: RunnableConfig) -> Iterator[None]:
        """A call is under way during the block."""
        thread, ended = str(config["configurable"]["thread_id"]), concurrent.futures.Future[None]()
        with self._lock:
            self._of[thread].add(ended)
        try:
            yield
        finally:
            with self._lock:
                self._of[thread].discard(ended)
                if not self._of[thread]:
                    del self._of[thread]
            ended.set_result(None)

    def of(self, config: RunnableConfig) -> list[concurrent.futures.Future[None]]:
        """Return those that are under way for a thread."""
        with self._lock:
            return list(self._of.get(str(config["configurable"]["thread_id"]), ()))


class GraphSaver(BaseCheckpointSaver[str]):
    """Base of the savers.

    LangGraph clones a saver to give it another serialiser (`with_allowlist`): the clone gets operations of its own.

    The arguments are those of `AsyncMySQLSaver`.
    """

    _operations: LangGraphOperations

    #: The base that runs the operations.
    _runner: ClassVar[Any]

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        serde: SerializerProtocol | None = None,
        tenant_of: Callable[[str], str] | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        self._writes = WritesUnderWay()
        self._runner.__init__(self, LangGraphOperations(config, tenant_of), database, owned=owned)
        super().__init__(serde=serde)
        self._begin()

    def _begin(self) -> None:
        """Prepare what only one side has."""

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
        listing = Listing(self._operations, config, filter, before, limit)
        while not listing.done:
            yield from self._page(listing)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints; see `list`."""
        listing = Listing(self._operations, config, filter, before, limit)
        while not listing.done:
            for one in await self._apage(listing):
                yield one

    @abstractmethod
    def _page(self, listing: Listing) -> Sequence[CheckpointTuple]: ...

    @abstractmethod
    async def _apage(self, listing: Listing) -> Sequence[CheckpointTuple]: ...


class HasLoop(Protocol):
    """A saver that runs calls of other threads in its event loop."""

    def _wait_for(self, call: Coroutine[Any, Any, T]) -> T: ...


def in_a_thread(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return the coroutine method ``aname`` that runs a method ``name`` in a thread."""
    name = method.__name__

    async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(getattr(self, name), *args, **kwargs)

    return _describe(awaited, f"a{name}", method, f"`{name}` in a thread.")


def from_other_threads(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """Return the method ``name`` that runs a method ``aname`` in the saver's event loop and waits for it.

    Args:
        method: The method, with the name of its operation, ``name``.
    """
    name = f"a{method.__name__}"

    def blocking(self: HasLoop, /, *args: P.args, **kwargs: P.kwargs) -> T:
        call: Coroutine[Any, Any, T] = getattr(self, name)(*args, **kwargs)
        return self._wait_for(call)

    return _describe(blocking, method.__name__, method, f"`{name}`, called from another thread than the event loop's.")


def _describe(derived: M, name: str, method: Callable[..., Any], doc: str) -> M:
    """Give a method a name, and the signature of its counterpart."""
    derived.__name__ = derived.__qualname__ = name
    derived.__doc__ = doc
    derived.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]  # inspect.signature reads it
    return derived


class AsyncMySQLSaver(GraphSaver, AsyncGraphs[LangGraphOperations]):
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

    _runner = AsyncGraphs

    def _begin(self) -> None:
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, conn_string: str, *, serde: SerializerProtocol | None = None, **options: Unpack[Keywords]
    ) -> AsyncIterator[Self]:
        """Open a saver for an ``async with`` block, which closes it; the arguments are those of the class."""
        async with cls(conn_string, serde=serde, **options) as saver:
            yield saver

    async def _apage(self, listing: Listing) -> Sequence[CheckpointTuple]:
        return await self._run(listing.next_page())

    def _page(self, listing: Listing) -> Sequence[CheckpointTuple]:
        return self._wait_for(self._apage(listing))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint after the writes of its thread that are under way in this saver; return its config.

        One round trip; another one if this process neither saved nor loaded the parent.
        """
        for ended in self._writes.of(config):
            await asyncio.wrap_future(ended)
        return await self._put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task at a checkpoint, which need not exist yet. One round trip."""
        with self._writes.one_more(config):
            await self._put_writes(config, writes, task_id, task_path)

    setup = awaited_method(LangGraphOperations.setup)
    aget_tuple = awaited_method(LangGraphOperations.get_tuple)
    _put = awaited_method(LangGraphOperations.put)
    _put_writes = awaited_method(LangGraphOperations.put_writes)
    adelete_thread = awaited_method(LangGraphOperations.delete_thread)
    adelete_for_runs = awaited_method(LangGraphOperations.delete_for_runs)
    acopy_thread = awaited_method(LangGraphOperations.copy_thread)
    aprune = awaited_method(LangGraphOperations.prune)
    aget_delta_channel_history = awaited_method(LangGraphOperations.get_delta_channel_history)

    get_tuple = from_other_threads(aget_tuple)
    put = from_other_threads(_put)
    put_writes = from_other_threads(_put_writes)
    delete_thread = from_other_threads(adelete_thread)
    delete_for_runs = from_other_threads(adelete_for_runs)
    copy_thread = from_other_threads(acopy_thread)
    prune = from_other_threads(aprune)
    get_delta_channel_history = from_other_threads(aget_delta_channel_history)

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


class MySQLSaver(GraphSaver, SyncGraphs[LangGraphOperations]):
    """Keeps the checkpoints of LangGraph's graphs in MySQL. Safe to share between threads and graphs.

    Its asynchronous methods run the synchronous ones in a thread; in an application with an event loop, use
    `AsyncMySQLSaver`.

    The arguments are those of `AsyncMySQLSaver`.

    Example:
        ```python
        with MySQLSaver("mysql://user:password@localhost/app") as saver:
            graph = builder.compile(checkpointer=saver)
            graph.invoke({"messages": [("user", "Hello")]}, {"configurable": {"thread_id": "support/42"}})
        ```
    """

    _awaited_class = "AsyncMySQLSaver"

    _runner = SyncGraphs

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, serde: SerializerProtocol | None = None, **options: Unpack[Keywords]
    ) -> Iterator[Self]:
        """Open a saver for a ``with`` block, which closes it; the arguments are those of the class."""
        with cls(conn_string, serde=serde, **options) as saver:
            yield saver

    def _page(self, listing: Listing) -> Sequence[CheckpointTuple]:
        return self._run(listing.next_page())

    async def _apage(self, listing: Listing) -> Sequence[CheckpointTuple]:
        return await asyncio.to_thread(self._page, listing)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint after the writes of its thread that are under way in this saver; return its config.

        One round trip; another one if this process neither saved nor loaded the parent.
        """
        concurrent.futures.wait(self._writes.of(config))
        return self._put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task at a checkpoint, which need not exist yet. One round trip."""
        with self._writes.one_more(config):
            self._put_writes(config, writes, task_id, task_path)

    setup = blocking_method(LangGraphOperations.setup)
    get_tuple = blocking_method(LangGraphOperations.get_tuple)
    _put = blocking_method(LangGraphOperations.put)
    _put_writes = blocking_method(LangGraphOperations.put_writes)
    delete_thread = blocking_method(LangGraphOperations.delete_thread)
    delete_for_runs = blocking_method(LangGraphOperations.delete_for_runs)
    copy_thread = blocking_method(LangGraphOperations.copy_thread)
    prune = blocking_method(LangGraphOperations.prune)
    get_delta_channel_history = blocking_method(LangGraphOperations.get_delta_channel_history)

    aget_tuple = in_a_thread(get_tuple)
    aput = in_a_thread(put)
    aput_writes = in_a_thread(put_writes)
    adelete_thread = in_a_thread(delete_thread)
    adelete_for_runs = in_a_thread(delete_for_runs)
    acopy_thread = in_a_thread(copy_thread)
    aprune = in_a_thread(prune)
    aget_delta_channel_history = in_a_thread(get_delta_channel_history)
