"""Connections on a library's asyncio transport: opening, sending, failing, closing. Adapters add the login."""

from __future__ import annotations

import asyncio
import ssl
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

from ...background_loop import in_thread
from ...config import ConnectionOptions, Endpoint
from ...dialect.statement import Statement
from ..failures import translate
from ..interface import ConnectionLost, Result, Traffic
from ..login import NoTLSOffered, no_tls, tls_attempts, tls_context
from . import session
from .adapter import Adapter, as_loss
from .literals import PING, QUIT, Command, query
from .results import ErrorPacket, ReceiveBuffer, ResultReader, why_unexpected
from .sockets import ResponsiveTimeout, abort_transport, configure, guard_at_fork, unread_check

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


class AsyncAdapter(Adapter):
    """Base of the adapters of libraries on asyncio. One belongs to the event loop that opened it."""

    _protocol: CommandProtocol
    _loaded = False

    def __init__(self, config: ConnectionOptions, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
        super().__init__(config, endpoint, tls)
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, config: ConnectionOptions, endpoint: Endpoint) -> Self:
        """Connect, log in and set the session up."""
        await cls._load_in_thread(config)
        try:
            async with ResponsiveTimeout(config.connect_timeout_s) as limit:
                connection = None
                while connection is None:
                    connection = await cls._try_to_open(config, endpoint, limit)
                return connection
        except TimeoutError as error:
            raise translate(error, endpoint, connecting=True) from None

    @classmethod
    async def _try_to_open(cls, config: ConnectionOptions, endpoint: Endpoint, limit: ResponsiveTimeout) -> Self | None:
        """Return a connection; None if the server dropped the login because the loop was blocked and did not answer."""
        cancelled_before = _cancellations()
        for tls in tls_attempts(config, endpoint):
            connection = cls(config, endpoint, tls)
            try:
                await connection.log_in()
                configure(connection.socket())
                guard_at_fork(connection)
                connection._protocol = CommandProtocol(
                    connection.transport(),
                    connection._loop,
                    unread_check(connection.socket()),
                    connection.traffic,
                    write_s=connection.write_s,
                    read_s=connection.read_s,
                )
                if connection.server_version == session.AMBIGUOUS:
                    connection.variant = session.variant(
                        await connection._send_each(connection.packets((session.WHICH,)))
                    )
                statements = session.setup(config, connection.variant)
                results = await connection._send_each(connection.packets(statements))
                connection.check_results(statements, results)
                connection.max_allowed_packet = session.max_allowed_packet(results)
                connection.read_only = session.is_read_only(results)
            except NoTLSOffered:
                connection.abort()
                continue
            except Exception as error:
                connection._check_cancelled(cancelled_before)
                failure = connection.login_failure(error)
                connection.abort()
                greeted = bool(connection.server_version)
                if greeted and isinstance(failure, ConnectionLost) and limit.was_blocked():
                    return None
                raise failure from None
            except BaseException:
                connection.abort()
                raise
            return connection
        raise no_tls(config, endpoint)

    @classmethod
    async def _load_in_thread(cls, config: ConnectionOptions) -> None:
        """Do slow first-time work in a thread, so that the event loop continues meanwhile."""
        if cls._loaded:
            return

        def load() -> None:
            import encodings.idna  # noqa: F401 - for the names of hosts

            cls.load()
            if config.ssl_mode != "DISABLED":
                tls_context(config)

        with suppress(Exception):  # the login raises any exception again
            await asyncio.wrap_future(in_thread(load, "locus-mysql imports"))
        cls._loaded = True

    async def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """Send the statements in one packet, and return a result for each. A cancelled task drops the connection."""
        packets = self.packets(statements)
        self._check_loop()
        try:
            results = await self._send_each(packets)
        except Exception as error:
            raise self.failure(error, statements) from None
        except (
            BaseException
        ):  # a cancelled task too: the answer will still arrive, and would be taken for that to the next packet
            self.abort()
            raise
        return self.check_results(statements, results)

    async def ping(self) -> None:
        """Raise `ConnectionLost` if the server does not answer."""
        self.packets(())
        self._check_loop()
        try:
            self.check_pong(await self._protocol.call(PING, self._loop.time() + self.limit_s))
        except Exception as error:
            self.abort()
            raise as_loss(error, self.endpoint) from None
        except BaseException:
            self.abort()
            raise

    async def close(self) -> None:
        """Send COM_QUIT and close."""
        polite = not self.closed and asyncio.get_running_loop() is self._loop
        transport = self.transport()
        try:
            self.closed = True
            if polite:
                with suppress(Exception):
                    self._protocol.send(QUIT)
        finally:
            abort_transport(transport, self._loop)
            self.abort()

    def abort(self) -> None:
        """Drop the transport at once, also when the event loop is closed."""
        self.closed = True
        with suppress(Exception):
            abort_transport(self.transport(), self._loop)
            self.discard()

    def socket(self) -> Any:
        """The socket as asyncio shows it, or None while there is none."""
        transport = self.transport()
        return None if transport is None else transport.get_extra_info("socket")

    async def _send_each(self, packets: Sequence[bytes]) -> list[Result]:
        deadline = self._loop.time() + self.limit_s
        if len(packets) == 1:
            return await self._protocol.call(query(packets[0]), deadline)
        results: list[Result] = []
        for packet in packets:
            try:
                results += await self._protocol.call(query(packet), deadline)
            except ErrorPacket as error:
                error.statement_index += len(results)
                raise
        return results

    def _check_cancelled(self, before: int) -> None:
        """Raise `CancelledError` if the task was cancelled, which Connector/Python 9.2 reports as a time-out."""
        if _cancellations() > before:
            self.abort()
            raise asyncio.CancelledError

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            self.abort()
            raise ConnectionLost(
                f"The connection to MySQL at {self.endpoint} belongs to another event loop and was dropped."
            )

    @classmethod
    @abstractmethod
    def load(cls) -> None:
        """Import the library."""

    @abstractmethod
    def transport(self) -> Any:
        """The asyncio transport in use, or None while there is none."""

    @abstractmethod
    async def log_in(self) -> None:
        """Connect and authenticate, without a time limit; call `check_greeting` in between."""

    @abstractmethod
    def discard(self) -> None:
        """Detach the library, so that it cleans up nothing. Called after the transport was aborted."""


def _cancellations() -> int:
    """Return the number of pending cancellations of the running task."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
