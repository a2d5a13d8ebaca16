"""LangGraph's checkpointer for event loops: `AsyncMySQLSaver`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...engine.operation import Operation
from ...families.graphs.surface import AsyncVersions, nothing
from ...runtime.database import Database, share
from .errors import LoopUnavailable
from .operations import GraphOperations, Listing
from .versioning import next_version

T = TypeVar("T")


class AsyncMySQLSaver(AsyncVersions[GraphOperations], BaseCheckpointSaver[str]):
    """Keeps the checkpoints of LangGraph's graphs in MySQL. Any number of graphs can share one.

    Its synchronous methods may be called from other threads than the event loop's, as those of LangGraph's own
    asynchronous savers: they run in the loop in which the saver was made or first used.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        serde: Turns values into bytes and back; LangGraph's own if absent.
        tenant_of: ``(thread_id) -> tenant``, for thread ids that carry it.
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
        BaseCheckpointSaver.__init__(self, serde=serde)
        AsyncVersions.__init__(self, GraphOperations(config, tenant_of), database, owned=owned)
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, conn_string: str, *, serde: SerializerProtocol | None = None, **options: Unpack[Keywords]
    ) -> AsyncIterator[Self]:
        """A saver for an ``async with`` block, which closes it.

        Args:
            conn_string: ``mysql://user:password@host:port/database?option=value``.
            serde: As for the class.
            options: Options of `MySQLConfig`.
        """
        async with cls(conn_string, serde=serde, **options) as saver:
            yield saver

    async def setup(self) -> None:
        """Make the tables if they are missing. The first call of any method does the same."""
        await self._run(nothing())

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint, or the newest of a thread; None if there is none. One round trip."""
        return await self._run(self._operations.get_tuple(self.serde, config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Checkpoints, newest first, read a hundred at a time.

        Args:
            config: The thread, and perhaps namespace and checkpoint; None or an empty one for all threads, the one
                saved to last first.
            filter: Metadata has to contain this.
            before: Only checkpoints with an id less than this one's, which need not exist. Ids carry the time of the
                client that made them.
            limit: At most this many.
        """
        listing = Listing(config, filter, before, limit)
        while not listing.done:
            for found in await self._run(self._operations.next_page(self.serde, listing)):
                yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; returns its config. One round trip."""
        return await self._run(self._operations.put(self.serde, config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote at a checkpoint. One round trip."""
        await self._run(self._operations.put_writes(self.serde, config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread with all its checkpoints and writes. One round trip."""
        await self._run(self._operations.delete_thread(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs. What others need of them is kept out of sight."""
        await self._run(self._operations.delete_for_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all its checkpoints and writes, on the server.

        Raises:
            ThreadExists: The target has checkpoints; nothing was changed.
        """
        await self._run(self._operations.copy_thread(source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the newest checkpoint of each namespace (``keep_latest``), or everything (``delete``).

        What the newest needs of others, for a `DeltaChannel`, is kept out of sight; else it has no parent afterwards.
        The calls of subgraphs go with the checkpoint that called them, but for subgraphs that keep their state.

        Raises:
            TypeError: ``thread_ids`` is one text.
            ValueError: There is no such strategy.
        """
        await self._run(self._operations.prune(thread_ids, strategy))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each channel got on the way to a checkpoint since it was last stored whole. Two round trips."""
        return await self._run(self._operations.delta_channel_history(self.serde, config, channels))

    def get_next_version(self, current: str | None, channel: None) -> str:
        """The version after another, in the form of LangGraph's own savers."""
        return next_version(current)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`aget_tuple`, from another thread."""
        return self._wait_for(self.aget_tuple(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """`alist`, from another thread."""
        listing = Listing(config, filter, before, limit)
        while not listing.done:
            yield from self._wait_for(self._run(self._operations.next_page(self.serde, listing)))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`aput`, from another thread."""
        return self._wait_for(self.aput(config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """`aput_writes`, from another thread."""
        self._wait_for(self.aput_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """`adelete_thread`, from another thread."""
        self._wait_for(self.adelete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """`adelete_for_runs`, from another thread."""
        self._wait_for(self.adelete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """`acopy_thread`, from another thread."""
        self._wait_for(self.acopy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`aprune`, from another thread."""
        self._wait_for(self.aprune(thread_ids, strategy=strategy))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """`aget_delta_channel_history`, from another thread."""
        return self._wait_for(self.aget_delta_channel_history(config=config, channels=channels))

    async def _run(self, operation: Operation[T]) -> T:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return await super()._run(operation)

    def _wait_for(self, call: Coroutine[Any, Any, T]) -> T:
        """Have a call carried out by the event loop, and wait for it.

        Raises:
            LoopUnavailable: This is the loop's own thread, which would wait for itself for ever; or there is no loop.
        """
        loop = self._loop
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if loop is None or loop.is_closed() or not loop.is_running() or running is loop:
            call.close()
            raise LoopUnavailable(
                "The synchronous methods of AsyncMySQLSaver work from threads beside its running event loop only. "
                "Inside the loop await the a… methods (graph.ainvoke, graph.aget_state); without one use MySQLSaver."
            )
        return asyncio.run_coroutine_threadsafe(call, loop).result()
