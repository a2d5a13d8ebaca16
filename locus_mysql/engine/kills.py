"""Ending statements whose connection was dropped: `Kills`.

A server notices that a client has left when it next sends it something. A search through a large table goes on until
then, for minutes, and holds locks and a processor for nobody. So another connection ends the session by its number. A
server never gives a number twice, and the dropped connection is used by nobody, so no other call can be hit; that it is
the same server, and not another one behind the same address, is decided by its UUID.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import NamedTuple

from ..config import ConnectionOptions, Endpoint
from ..dialect import Statement
from ..drivers.interface import (
    ConnectionLost,
    Driver,
    DriverError,
    ReadLimitReached,
    Session,
)
from .at_fork import tell_at_fork
from .logs import CONNECTIONS, told
from .members import brief

#: How long closing a pool waits for the last statements to be ended, in seconds.
FINISH_S = 3.0

_SERVER = Statement("SELECT @@server_uuid")


class _Left(NamedTuple):
    """A session that nobody waits for."""

    endpoint: Endpoint
    session: Session


def leaves_a_statement(error: BaseException) -> bool:
    """Whether the server may still be at work for a connection that was dropped because of this error."""
    if isinstance(error, ConnectionLost):
        return error.timed_out and not error.connecting
    return isinstance(error, ReadLimitReached) or not isinstance(error, Exception)


class Kills:
    """Ends sessions in a thread, which exists only while there are some to end.

    It is a thread also for pools of an event loop: a loop that is being closed, or is busy, would leave the statements
    to go on.

    Args:
        config: How to connect.
        driver: Opens the connections that end others.
    """

    def __init__(self, config: ConnectionOptions, driver: Driver) -> None:
        self._config = config
        self._driver = driver
        self.begin_in_child()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """Forget what the parent is ending."""
        self._lock = threading.Lock()
        self._left: deque[_Left] = deque()
        self._thread: threading.Thread | None = None

    def end(self, connection: object) -> None:
        """End the session of a connection that was dropped; returns at once."""
        session: Session | None = getattr(connection, "session", None)
        endpoint: Endpoint | None = getattr(connection, "endpoint", None)
        if session is None or endpoint is None:  # a driver from outside, or a proxy that does not say
            return
        with self._lock:
            self._left.append(_Left(endpoint, session))
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="locus-mysql kills", daemon=True)
                with suppress(RuntimeError):  # the interpreter is about to end
                    thread.start()
                    self._thread = thread

    def finish(self, patience_s: float = FINISH_S) -> None:
        """Wait until all are ended, but not for long."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(patience_s)

    async def finish_async(self) -> None:
        """As `finish`, in a task."""
        if self._thread is not None:
            await asyncio.to_thread(self.finish)

    def _work(self) -> None:
        while (endpoint := self._next_endpoint()) is not None:
            try:
                if getattr(self._driver, "blocks", True):
                    self._end_all(endpoint)
                else:
                    asyncio.run(self._end_all_async(endpoint))
            except Exception as error:
                left = self._take_all(endpoint)
                CONNECTIONS.info("Sessions at %s that nobody waits for go on (%d): %s.", endpoint, left, told(error))

    def _next_endpoint(self) -> Endpoint | None:
        with self._lock:
            if self._left:
                return self._left[0].endpoint
            self._thread = None
            return None

    def _end_all(self, endpoint: Endpoint) -> None:
        connection = self._driver.connect(brief(self._config), endpoint)
        try:
            server = str(connection.execute((_SERVER,))[0].rows[0][0])
            while (session := self._next_at(endpoint)) is not None:
                if session.server == server:
                    with suppress(DriverError):  # mostly that it is gone
                        connection.execute((_kill(session),))
        finally:
            connection.close()

    async def _end_all_async(self, endpoint: Endpoint) -> None:
        connection = await self._driver.connect_async(brief(self._config), endpoint)
        try:
            server = str((await connection.execute((_SERVER,)))[0].rows[0][0])
            while (session := self._next_at(endpoint)) is not None:
                if session.server == server:
                    with suppress(DriverError):
                        await connection.execute((_kill(session),))
        finally:
            await connection.close()

    def _next_at(self, endpoint: Endpoint) -> Session | None:
        with self._lock:
            for one in self._left:
                if one.endpoint == endpoint:
                    self._left.remove(one)
                    return one.session
        return None

    def _take_all(self, endpoint: Endpoint) -> int:
        count = 0
        while self._next_at(endpoint) is not None:
            count += 1
        return count


def _kill(session: Session) -> Statement:
    return Statement(f"KILL {session.number:d}")
