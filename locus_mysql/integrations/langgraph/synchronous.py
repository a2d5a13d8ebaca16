"""LangGraph's checkpointer without an event loop: `MySQLSaver`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...families.graphs.base import SyncGraphs
from ...runtime.database import Database, share
from ...runtime.stores import blocking
from .delegation import in_a_thread
from .operations import LangGraphOperations
from .saver import GraphSaver


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
            for found in await asyncio.to_thread(self._run, listing.next_page()):
                yield found

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
