"""LangGraph's long-term memory on MySQL: `AsyncMySQLStore` and `MySQLStore`."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self, Unpack, cast

from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig

from ...config import ENVIRONMENT, Keywords
from ...engine.logs import HOUSEKEEPING, loggable
from ...engine.loops import settled
from ...errors import ConfigError
from ...families.memories.embedding import EmbedTexts
from ...families.memories.store import AsyncMemories, SyncMemories
from ...runtime.database import Where, description_of, share
from ...runtime.stores import awaited_method, blocking_method
from .store_operations import StoreOperations
from .store_options import sweep_interval_s, without_foreign

#: How often expired items are deleted by default, in minutes.
SWEEP_INTERVAL_MINUTES = 5

SWEEP_FAILED = "Deleting expired items failed (%s). The next attempt is in %s s."


class StoreLoopUnavailable(ConfigError, asyncio.InvalidStateError):
    """A synchronous method of the asynchronous store was called in its event loop, or while no loop was running."""


class _AsyncItems(AsyncMemories[StoreOperations]):
    setup = awaited_method(StoreOperations.setup)
    batch = awaited_method(StoreOperations.batch)
    sweep_all = awaited_method(StoreOperations.sweep_all)

    async def embed_texts(self, texts: EmbedTexts) -> Sequence[Any]:
        embeddings = cast(Any, self._operations.embeddings)
        if not texts.query:
            return cast(Sequence[Any], await embeddings.aembed_documents(texts.texts))
        return await asyncio.gather(*(embeddings.aembed_query(text) for text in texts.texts))


class _SyncItems(SyncMemories[StoreOperations]):
    setup = blocking_method(StoreOperations.setup)
    batch = blocking_method(StoreOperations.batch)
    sweep_all = blocking_method(StoreOperations.sweep_all)

    def embed_texts(self, texts: EmbedTexts) -> Sequence[Any]:
        embeddings = cast(Any, self._operations.embeddings)
        if not texts.query:
            return cast(Sequence[Any], embeddings.embed_documents(texts.texts))
        return [embeddings.embed_query(text) for text in texts.texts]


class _ItemStore(BaseStore):
    """What both stores share; the arguments are those of `AsyncMySQLStore`."""

    supports_ttl = True
    _make_items: ClassVar[type[_AsyncItems | _SyncItems]]

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        self.ttl_config = ttl
        self.index_config = index
        database, config, owned = share(type(self), where, options)
        operations = StoreOperations(config, index, ttl)
        self.embeddings = operations.embeddings
        self._items: Any = self._make_items(operations, database, owned=owned)
        self._begin()

    def _begin(self) -> None:
        """Prepare what only one side has."""

    def __repr__(self) -> str:
        config = self._items.config
        return f"{type(self).__name__}({description_of(config)}, tenant={config.tenant!r})"

    def tenant_scope(self, tenant: str) -> AbstractContextManager[None]:
        """Calls inside ``with store.tenant_scope("acme"):``, and in tasks started inside it, belong to this tenant."""
        scope: AbstractContextManager[None] = self._items.tenant_scope(tenant)
        return scope

    def _sweep_interval_s(self, minutes: float | None) -> float:
        return sweep_interval_s(self.ttl_config, minutes, SWEEP_INTERVAL_MINUTES)


class AsyncMySQLStore(_ItemStore):
    """LangGraph's store for event loops: items in namespaces, searched by field and ranked by meaning or by word.

    With an ``index``, a query ranks items by meaning: the score is the cosine (or the metric that ``distance_type``
    names: ``inner_product``, ``l2``), and of several vectors of an item the nearest counts. Without an index it ranks
    them by the words of the query that they contain. Items without a vector or such a word come last, newest first,
    with the score None. Expired items are never returned, whatever ``omit_expired`` is.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        index: ``dims``, ``embed``, ``fields`` and ``model`` of the vectors. Keys of LangGraph's other stores, such as
            ``ann_index_config``, have no effect; a log message names them.
        ttl: ``default_ttl`` and ``sweep_interval_minutes`` in minutes, ``refresh_on_read``.
        options: Options of `MySQLConfig`.

    Example:
        ```python
        async with AsyncMySQLStore(dsn="mysql://user:password@localhost/app") as store:
            await store.aput(("users", "ada"), "tea", {"likes": "green tea"})
            (found,) = await store.asearch(("users",), filter={"likes": "green tea"})
            assert found.key == "tea"
        ```
    """

    _make_items = _AsyncItems
    _items: _AsyncItems

    def _begin(self) -> None:
        self._sweeper: asyncio.Task[None] | None = None
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    @classmethod
    @contextlib.asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **options: Unpack[Keywords],
    ) -> AsyncIterator[Self]:
        """Open a store for an ``async with`` block, which closes it; the arguments are those of the class.

        Keywords of LangGraph's other stores (``pool_config``, ``pipeline``) have no effect; a log message names them.
        """
        async with cls(conn_string, index=index, ttl=ttl, **without_foreign(options)) as store:
            yield store

    async def setup(self) -> None:
        """Create missing tables. The first call of any other method does the same."""
        await self._items.setup()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads first, in one round trip where possible, then the writes in one transaction.

        Of several writes of one key the last counts.

        Returns:
            A result for each operation, in their order.
        """
        self._loop = asyncio.get_running_loop()
        return await self._items.batch(ops)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """`abatch` from another thread than the event loop's.

        Raises:
            StoreLoopUnavailable: This is the event loop's thread, which would wait for itself; or no loop runs.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self._loop is not None and self._loop.is_running():
                return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()
            raise StoreLoopUnavailable(
                "AsyncMySQLStore has no running event loop. Use it in one first, or use MySQLStore."
            ) from None
        raise StoreLoopUnavailable(
            "A synchronous call in an event loop would block it: await abatch, aget, aput and so on."
        )

    async def sweep_ttl(self) -> int:
        """Delete expired items of the tenant; return their number."""
        return await self._items.sweep_all()

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> asyncio.Task[None]:
        """Delete expired items at an interval, until `stop_ttl_sweeper`.

        Args:
            sweep_interval_minutes: The interval; by default that of ``ttl``, or 5 minutes.
        """
        if self._sweeper is None or self._sweeper.done():
            interval_s = self._sweep_interval_s(sweep_interval_minutes)
            self._sweeper = asyncio.create_task(self._sweep(interval_s), name="locus-mysql-ttl-sweeper")
        return self._sweeper

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; return whether it has stopped within a timeout in seconds."""
        if self._sweeper is None:
            return True
        self._sweeper.cancel()
        await asyncio.wait([self._sweeper], timeout=timeout)
        stopped = self._sweeper.done()
        if stopped:
            self._sweeper = None
        return stopped

    async def close(self) -> None:
        """Stop the sweeper and close the connections; the next call opens new ones."""
        await self.stop_ttl_sweeper()
        await self._items.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await settled(self.close())

    async def _sweep(self, interval_s: float) -> None:
        while True:
            await asyncio.sleep(interval_s)
            try:
                await self.sweep_ttl()
            except Exception as error:
                HOUSEKEEPING.warning(SWEEP_FAILED, loggable(error), interval_s)


class MySQLStore(_ItemStore):
    """`AsyncMySQLStore` without an event loop. Safe to share between threads; ``abatch`` runs in one.

    Args:
        where: See `AsyncMySQLStore`, also for the others.
        index: ``dims``, ``embed`` and ``fields`` of the vectors.
        ttl: When items expire.
        options: Options of `MySQLConfig`.
    """

    _make_items = _SyncItems
    _items: _SyncItems

    def _begin(self) -> None:
        self._sweeper: threading.Thread | None = None
        self._stop = threading.Event()

    @classmethod
    @contextlib.contextmanager
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        **options: Unpack[Keywords],
    ) -> Iterator[Self]:
        """Open a store for a ``with`` block, which closes it; the arguments are those of the class.

        Keywords of LangGraph's other stores (``pool_config``, ``pipeline``) have no effect; a log message names them.
        """
        with cls(conn_string, index=index, ttl=ttl, **without_foreign(options)) as store:
            yield store

    def setup(self) -> None:
        """Create missing tables. The first call of any other method does the same."""
        self._items.setup()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: see `AsyncMySQLStore.abatch`."""
        return self._items.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch` in a thread, for graphs that are awaited."""
        return await asyncio.to_thread(self.batch, ops)

    def sweep_ttl(self) -> int:
        """Delete expired items of the tenant; return their number."""
        return self._items.sweep_all()

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> concurrent.futures.Future[None]:
        """Delete expired items at an interval, in a thread, until `stop_ttl_sweeper` or the future is cancelled.

        Args:
            sweep_interval_minutes: The interval; by default that of ``ttl``, or 5 minutes.
        """
        ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        if self._sweeper is not None and self._sweeper.is_alive():
            ended.add_done_callback(lambda future: self._stop.set() if future.cancelled() else None)
            return ended
        self._stop = stop = threading.Event()
        interval_s = self._sweep_interval_s(sweep_interval_minutes)

        def sweep() -> None:
            while not stop.wait(interval_s):
                try:
                    self.sweep_ttl()
                except Exception as error:
                    HOUSEKEEPING.warning(SWEEP_FAILED, loggable(error), interval_s)
            if not ended.done():
                ended.set_result(None)

        ended.add_done_callback(lambda future: stop.set() if future.cancelled() else None)
        self._sweeper = threading.Thread(target=sweep, daemon=True, name="locus-mysql-ttl-sweeper")
        self._sweeper.start()
        return ended

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; return whether it has stopped within a timeout in seconds."""
        self._stop.set()
        if self._sweeper is None:
            return True
        self._sweeper.join(timeout)
        stopped = not self._sweeper.is_alive()
        if stopped:
            self._sweeper = None
        return stopped

    def close(self) -> None:
        """Stop the sweeper and close the connections; the next call opens new ones."""
        self.stop_ttl_sweeper()
        self._items.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
