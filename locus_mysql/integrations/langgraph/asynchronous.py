"""LangGraph's checkpointer for event loops: `AsyncMySQLSaver`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...families.graphs.base import AsyncGraphs
from ...runtime.database import Database, share
from ...runtime.stores import awaited
from .delegation import from_other_threads
from .errors import LoopUnavailable
from .operations import LangGraphOperations
from .saver import GraphSaver

T = TypeVar("T")


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
            for found in await self._run(listing.next_page()):
                yield found

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
