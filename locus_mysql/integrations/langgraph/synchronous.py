"""LangGraph's checkpointer without an event loop: `MySQLSaver`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, Unpack

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
from ...families.graphs.surface import SyncVersions, nothing
from ...runtime.database import Database, share
from .operations import GraphOperations, Listing
from .versioning import next_version


class MySQLSaver(SyncVersions[GraphOperations], BaseCheckpointSaver[str]):
    """Keeps the checkpoints of LangGraph's graphs in MySQL. Safe to share between threads and graphs.

    Its asynchronous methods run the synchronous ones in a thread; in an application with an event loop, use
    `AsyncMySQLSaver`.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        serde: Turns values into bytes and back; LangGraph's own if absent.
        tenant_of: ``(thread_id) -> tenant``, for thread ids that carry it.
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
        BaseCheckpointSaver.__init__(self, serde=serde)
        SyncVersions.__init__(self, GraphOperations(config, tenant_of), database, owned=owned)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, serde: SerializerProtocol | None = None, **options: Unpack[Keywords]
    ) -> Iterator[Self]:
        """A saver for a ``with`` block, which closes it.

        Args:
            conn_string: ``mysql://user:password@host:port/database?option=value``.
            serde: As for the class.
            options: Options of `MySQLConfig`.
        """
        with cls(conn_string, serde=serde, **options) as saver:
            yield saver

    def setup(self) -> None:
        """Make the tables if they are missing. The first call of any method does the same."""
        self._run(nothing())

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint, or the newest of a thread; None if there is none. One round trip."""
        return self._run(self._operations.get_tuple(self.serde, config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
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
            yield from self._run(self._operations.next_page(self.serde, listing))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; returns its config. One round trip."""
        return self._run(self._operations.put(self.serde, config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote at a checkpoint. One round trip."""
        self._run(self._operations.put_writes(self.serde, config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with all its checkpoints and writes. One round trip."""
        self._run(self._operations.delete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs. What others need of them is kept out of sight."""
        self._run(self._operations.delete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all its checkpoints and writes, on the server.

        Raises:
            ThreadExists: The target has checkpoints; nothing was changed.
        """
        self._run(self._operations.copy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the newest checkpoint of each namespace (``keep_latest``), or everything (``delete``).

        What the newest needs of others, for a `DeltaChannel`, is kept out of sight; else it has no parent afterwards.
        The calls of subgraphs go with the checkpoint that called them, but for subgraphs that keep their state.

        Raises:
            TypeError: ``thread_ids`` is one text.
            ValueError: There is no such strategy.
        """
        self._run(self._operations.prune(thread_ids, strategy))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each channel got on the way to a checkpoint since it was last stored whole. Two round trips."""
        return self._run(self._operations.delta_channel_history(self.serde, config, channels))

    def get_next_version(self, current: str | None, channel: None) -> str:
        """The version after another, in the form of LangGraph's own savers."""
        return next_version(current)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`get_tuple` in a thread."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """`list`, each page in a thread."""
        listing = Listing(config, filter, before, limit)
        while not listing.done:
            for found in await asyncio.to_thread(self._run, self._operations.next_page(self.serde, listing)):
                yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`put` in a thread."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """`put_writes` in a thread."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """`delete_thread` in a thread."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """`delete_for_runs` in a thread."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """`copy_thread` in a thread."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`prune` in a thread."""
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """`get_delta_channel_history` in a thread."""
        return await asyncio.to_thread(self.get_delta_channel_history, config=config, channels=channels)
