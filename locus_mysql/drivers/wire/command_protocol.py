"""Commands and answers on an asyncio transport, once a library has logged in on it.

The transport writes received data directly into the buffer that the answer is read from, and wakes the task once, when
the answer is complete. Asyncio's streams wake it for every piece, and a library that reads packets from streams even
more often.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ..interface import Result, Traffic
from .protocol_commands import Command
from .receive_buffer import ReceiveBuffer
from .results import ResultReader, why_unexpected

#: Over TLS, asyncio does not report when a command was sent. A command up to this size counts as sent at once; a larger
#: one has one limit for sending it and for its answer.
_SENT_AT_ONCE_BYTES = 65_536


class CommandProtocol(asyncio.BufferedProtocol):
    """Takes a transport over from the library that opened it.

    Args:
        transport: Logged in, with no command under way.
        loop: The event loop it belongs to.
        unread: Checks whether data has arrived that the event loop has not read yet.
        traffic: Counts the bytes sent and received.
        write_s: Limit for sending a command, in seconds.
        read_s: Limit for its whole answer, in seconds from when it was sent.
    """

    def __init__(
        self,
        transport: Any,
        loop: asyncio.AbstractEventLoop,
        unread: Callable[[], object],
        traffic: Traffic,
        *,
        write_s: float,
        read_s: float,
    ) -> None:
        self._transport = transport
        self._traffic = traffic
        self._write_s = write_s
        self._read_s = read_s
        self._sending = False
        self._reports_sending = transport.get_extra_info("ssl_object") is None
        self._deadline = 0.0
        # One timer for all calls, as most end long before their limit; it is set again if it fires early.
        self._limit_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._loop = loop
        self._unread = unread
        self._reader: ResultReader | None = None
        self._answered: asyncio.Future[None] | None = None
        self._lost = ""
        self._buffer = ReceiveBuffer()
        transport.set_protocol(self)
        transport.set_write_buffer_limits(
            high=1, low=0
        )  # so that `resume_writing` is called as soon as everything has been sent

    async def call(self, command: Command, deadline: float) -> list[Result]:
        """Send a command and wait for its answer.

        Args:
            command: The command.
            deadline: Latest time to wait for, by the event loop's clock.

        Raises:
            ErrorPacket: The server answered with an error.
            OSError: The connection is lost, the time limit has passed (`TimeoutError`), or the answer is malformed
                (`ProtocolSurprise`).
        """
        if not self._lost and self._unread():
            self._refuse("the server closed the connection, or sent unexpected data")
        if self._lost:
            raise ConnectionResetError(self._lost)
        self._reader = reader = ResultReader(command.answer_number)
        self._answered = answered = self._loop.create_future()
        self._deadline = deadline
        try:
            self._transport.write(command.wire)
            self._traffic.round_trips += 1
            self._traffic.sent_bytes += len(command.wire)
            if self._sending:
                self._wait(self._write_s)
            elif self._reports_sending or len(command.wire) <= _SENT_AT_ONCE_BYTES:
                self._wait(self._read_s)
            else:
                self._wait(self._write_s + self._read_s)
            await answered
        finally:
            if not self._loop.is_closed():  # else this fails, in place of what ends an abandoned call
                answered.cancel()  # else it would log a failure that came together with the task's cancellation
            self._reader = self._answered = None
        return reader.results

    def send(self, command: Command) -> None:
        """Send a command that has no answer."""
        self._transport.write(command.wire)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Called by the transport before it writes received data into the buffer."""
        return self._buffer.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Called by the transport after it has written received data into the buffer."""
        reader = self._reader
        if reader is None:
            # For example, the server's notice that it closes an idle connection.
            self._refuse(why_unexpected(bytes(self._buffer.room()[:nbytes])))
            return
        self._traffic.received_bytes += nbytes
        try:
            complete = self._buffer.received(nbytes, reader)
        except Exception as error:
            self._end(error)
        else:
            if complete:
                self._end(None)

    def pause_writing(self) -> None:
        """Called by the transport when it could not send everything at once."""
        self._sending = True

    def resume_writing(self) -> None:
        """Called by the transport when it has sent everything: the limit for the answer begins."""
        self._sending = False
        if self._reader is not None:
            self._wait(self._read_s)

    def eof_received(self) -> None:
        """Called by the transport when the server has closed its side; the transport then closes."""
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the transport when it was closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._lost = self._lost or (str(exc) if exc else "") or "the server closed the connection"
        self._end(ConnectionResetError(self._lost))

    def _wait(self, limit_s: float) -> None:
        """Fail after this many seconds, or at the command's deadline."""
        self._limit_at = limit_at = min(self._loop.time() + limit_s, self._deadline)
        if self._timer is None or self._timer.when() > limit_at:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._limit_at, self._check_limit)

    def _check_limit(self) -> None:
        self._timer = None
        if self._reader is None:
            return
        if self._loop.time() < self._limit_at:
            self._set_timer()
        else:
            self._end(TimeoutError())

    def _end(self, failure: Exception | None) -> None:
        self._reader = None
        if self._answered is None or self._answered.done():
            return
        if failure is None:
            self._answered.set_result(None)
        else:
            self._answered.set_exception(failure)

    def _refuse(self, reason: str) -> None:
        """Drop the connection, because unexpected data would be taken for an answer."""
        self._lost = self._lost or reason
        self._transport.abort()
