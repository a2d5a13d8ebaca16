"""An asynchronous connection on top of a blocking one, whose calls run in a dedicated thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from ...config import ConnectionOptions, Endpoint
from ...dialect.statement import Statement
from ..interface import ConnectionLost, Result
from .adapter import GOODBYE_S
from .blocking import SyncAdapter
from .sockets import ResponsiveTimeout

_T = TypeVar("_T")
_Job: TypeAlias = tuple["Future[Any]", Callable[[], Any]]


class Worker:
    """A thread that makes one call after another.

    Not a `ThreadPoolExecutor`, because the interpreter waits at its exit for the threads of those, even for one that
    hangs in a socket.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=_work, args=(self._jobs,), name=name, daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[], _T]) -> Future[_T]:
        """Queue a call; calls are made one after another.

        Raises:
            ConnectionLost: The thread is gone, because this process was forked from the one that had it.
        """
        if not self._thread.is_alive():
            raise ConnectionLost("The connection's thread has ended.")
        future: Future[_T] = Future()
        self._jobs.put((future, call))
        return future

    def stop(self) -> None:
        """End the thread after the calls submitted so far, without waiting for it."""
        self._jobs.put(None)

    def __del__(self) -> None:
        self.stop()


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        future, call = job
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call())
            except BaseException as error:  # the caller handles any exception
                future.set_exception(error)
        del job, future, call  # nothing is kept while waiting


class ThreadedConnection:
    """`interface.AsyncConnection` on top of a `SyncAdapter`. Any event loop may use it, one at a time."""

    def __init__(self, worker: Worker, blocking: SyncAdapter) -> None:
        self._worker = worker
        self._blocking = blocking
        self.server_version = blocking.server_version
        self.max_allowed_packet = blocking.max_allowed_packet
        self.traffic = blocking.traffic
        self.read_only = blocking.read_only
        self.supports_group_commit = blocking.supports_group_commit
        self.endpoint = blocking.endpoint

    @classmethod
    async def open(
        cls, adapter: type[SyncAdapter], config: ConnectionOptions, endpoint: Endpoint
    ) -> ThreadedConnection:
        """Connect in a new thread."""
        worker = Worker(f"locus-mysql {endpoint}")
        attempts: list[SyncAdapter] = []
        opening = worker.submit(lambda: adapter.open(config, endpoint, attempts.append))
        try:
            async with ResponsiveTimeout(config.connect_timeout_s):
                blocking = await asyncio.wrap_future(opening)
        except BaseException as error:
            for attempt in attempts:
                attempt.interrupt()
            opening.add_done_callback(_abort_late)
            if isinstance(error, TimeoutError):
                raise ConnectionLost(
                    f"Cannot connect to MySQL at {endpoint}: no answer within the time limit.",
                    connecting=True,
                ) from None
            raise
        return cls(worker, blocking)

    @property
    def closed(self) -> bool:
        """Return whether the connection must not be used again."""
        return self._blocking.closed

    async def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """Send the statements in the connection's thread."""
        return await self._call(lambda: self._blocking.execute(statements))

    async def ping(self) -> None:
        """Raise `ConnectionLost` if the server does not answer."""
        await self._call(self._blocking.ping)

    async def close(self) -> None:
        """Send COM_QUIT and close, in the connection's thread."""
        try:
            if not self.closed:
                with suppress(Exception):
                    async with asyncio.timeout(GOODBYE_S):
                        await asyncio.wrap_future(self._worker.submit(self._blocking.close))
        finally:
            self.abort()

    def abort(self) -> None:
        """Drop the socket at once; the thread closes what is left when its call has ended."""
        self._blocking.interrupt()
        with suppress(ConnectionLost):
            self._worker.submit(self._blocking.abort)
        self._worker.stop()

    async def _call(self, call: Callable[[], _T]) -> _T:
        if self.closed:
            raise ConnectionLost(f"The connection to MySQL at {self._blocking.endpoint} is closed.")
        try:
            async with asyncio.timeout(self._blocking.limit_s):
                return await asyncio.wrap_future(self._worker.submit(call))
        except TimeoutError:
            self.abort()
            raise ConnectionLost(
                f"Lost the connection to MySQL at {self._blocking.endpoint}: no answer within the time limit.",
                timed_out=True,
            ) from None
        except Exception:
            raise
        except BaseException:
            self.abort()
            raise


def _abort_late(opening: Future[SyncAdapter]) -> None:
    """Drop a connection that was opened after its task had given up."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().abort()
