"""Ending statements whose connection was dropped: `SessionKiller`.

A server notices a disconnected client only when it next sends something to it. Until then a search through a large
table continues, possibly for minutes, and wastes locks and a processor. So another connection ends the session by its
id. A server never reuses an id, and the dropped connection is not used again, so no other call is affected. The
server's UUID shows that it is the same server, and not another one behind the same address.
"""

from __future__ import annotations

import asyncio
import sys
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
    ServerSession,
)
from .at_fork import reset_at_fork
from .commands import Close, CommandGenerator, Execute
from .logs import CONNECTIONS, loggable
from .loops import run_awaited, run_blocking
from .passwords import open_connection
from .servers import ServerConnection, with_brief_limits

#: Maximum time that closing a pool waits for the last statements to be ended, in seconds.
FINISH_S = 3.0

_SERVER = Statement("SELECT @@server_uuid")


class _Abandoned(NamedTuple):
    """A session whose connection was dropped."""

    endpoint: Endpoint
    session: ServerSession


def leaves_a_statement(error: BaseException) -> bool:
    """Check whether the server may still work for a connection that was dropped because of this error."""
    if isinstance(error, ConnectionLost):
        return error.timed_out and not error.connecting
    return isinstance(error, ReadLimitReached) or not isinstance(error, Exception)


class SessionKiller:
    """Ends sessions in a thread, which exists only while there are sessions to end.

    Pools of an event loop use a thread too, because a loop that is being closed, or is busy, would let the statements
    continue.

    Args:
        config: How to connect.
        driver: Opens the connections that end sessions.
    """

    def __init__(self, config: ConnectionOptions, driver: Driver) -> None:
        self._config = config
        self._driver = driver
        self.reset_in_child()
        reset_at_fork(self)

    def reset_in_child(self) -> None:
        """Forget the sessions that the parent is ending."""
        # Reentrant, because the garbage collector may end an abandoned call of a task, which calls `end`, while the
        # same thread holds the lock.
        self._lock = threading.RLock()
        self._abandoned: deque[_Abandoned] = deque()
        self._thread: threading.Thread | None = None

    def end(self, dropped: ServerConnection) -> None:
        """End the session of a connection that was dropped; returns at once."""
        session: ServerSession | None = getattr(dropped.connection, "session", None)
        if session is None:  # an external driver, or a proxy that hides the session's number
            return
        if sys.is_finalizing():  # a thread that is started now never runs, and Python 3.11 waits for it for ever
            return
        thread = threading.Thread(target=self._work, name="locus-mysql session killer", daemon=True)
        with self._lock:
            self._abandoned.append(_Abandoned(dropped.endpoint, session))
            if self._thread is not None:
                return
            self._thread = thread  # before it starts, as `end` may be called again meanwhile
            try:
                thread.start()
            except BaseException as error:
                self._thread = None
                if not isinstance(error, RuntimeError):  # else the interpreter is about to end
                    raise

    def finish(self, patience_s: float = FINISH_S) -> None:
        """Wait until all sessions are ended, for at most a few seconds."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(patience_s)

    async def finish_async(self) -> None:
        """Like `finish`, in a task."""
        if self._thread is not None:
            await asyncio.to_thread(self.finish)

    def _work(self) -> None:
        while (endpoint := self._next_endpoint()) is not None:
            steps = self._end_all(endpoint)
            try:
                if getattr(self._driver, "blocks", True):
                    run_blocking(steps)
                else:
                    asyncio.run(run_awaited(steps))
            except Exception as error:
                dropped = self._drop_all(endpoint)
                CONNECTIONS.info(
                    "Abandoned sessions at %s could not be ended (%d): %s.", endpoint, dropped, loggable(error)
                )

    def _next_endpoint(self) -> Endpoint | None:
        with self._lock:
            if self._abandoned:
                return self._abandoned[0].endpoint
            self._thread = None
            return None

    def _end_all(self, endpoint: Endpoint) -> CommandGenerator[None]:
        connection = yield from open_connection(self._driver, with_brief_limits(self._config), endpoint)
        try:
            (found,) = yield Execute(connection, (_SERVER,))
            server = str(found.rows[0][0])
            while (session := self._take_next(endpoint)) is not None:
                if session.server == server:
                    with suppress(DriverError):  # usually because it has ended already
                        yield Execute(connection, (_kill(session),))
        except BaseException:
            connection.abort()
            raise
        yield Close(connection)

    def _take_next(self, endpoint: Endpoint) -> ServerSession | None:
        with self._lock:
            # Of a copy, as `end` may append meanwhile; only this thread removes any.
            for index, one in enumerate(list(self._abandoned)):
                if one.endpoint == endpoint:
                    del self._abandoned[index]
                    return one.session
        return None

    def _drop_all(self, endpoint: Endpoint) -> int:
        count = 0
        while self._take_next(endpoint) is not None:
            count += 1
        return count


def _kill(session: ServerSession) -> Statement:
    return Statement(f"KILL {session.number:d}")
