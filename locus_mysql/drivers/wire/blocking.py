"""Connections on a library's socket: opening, sending, failing, closing. Adapters add the login."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Self

from ...config import ConnectionOptions, Endpoint
from ...dialect.statement import Statement
from ..interface import WATCH, Result
from ..login import NoTLSOffered, no_tls, tls_attempts
from . import session
from .adapter import GOODBYE_S, Adapter, as_loss
from .literals import PING, QUIT, Command, query
from .results import ErrorPacket, ReceiveBuffer, ResultReader, why_unexpected
from .sockets import BoundedSocket, guard_at_fork, shut, unread_check

#: Maximum number of bytes read of unsolicited data.
_PIECE_BYTES = 65_536


class SyncAdapter(Adapter):
    """Base of the adapters of libraries that block."""

    #: Deadline for connecting and setting the session up, by the monotonic clock.
    connected_by: float
    _sock: BoundedSocket
    _buffer: ReceiveBuffer
    _unread: Callable[[], object]

    @classmethod
    def open(
        cls, config: ConnectionOptions, endpoint: Endpoint, started: Callable[[Self], object] | None = None
    ) -> Self:
        """Connect, log in and set the session up.

        Args:
            config: How to connect.
            endpoint: The server.
            started: Called with the connection before the first byte is sent, so that another thread can abort it.
        """
        connected_by = monotonic() + config.connect_timeout_s
        for tls in tls_attempts(config, endpoint):
            connection = cls(config, endpoint, tls)
            connection.connected_by = connected_by
            if started is not None:
                started(connection)
            try:
                connection.log_in()
                guard_at_fork(connection)
                connection._sock = connection.socket()
                connection._buffer = ReceiveBuffer()
                connection._unread = unread_check(connection._sock)
                if connection.server_version == session.AMBIGUOUS:
                    connection.variant = session.variant(
                        connection._send_each(connection.packets((session.WHICH,)), connected_by)
                    )
                statements = session.setup(config, connection.variant)
                results = connection._send_each(connection.packets(statements), connected_by)
                connection.check_results(statements, results)
                connection.max_allowed_packet = session.max_allowed_packet(results)
                connection.read_only = session.is_read_only(results)
            except NoTLSOffered:
                connection.abort()
                continue
            except Exception as error:
                failure = connection.login_failure(error)
                connection.abort()
                raise failure from None
            except BaseException:
                connection.abort()
                raise
            return connection
        raise no_tls(config, endpoint)

    def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """Send the statements in one packet, and return a result for each."""
        packets = self.packets(statements)
        try:
            results = self._send_each(packets, monotonic() + self.limit_s)
        except Exception as error:
            raise self.failure(error, statements) from None
        except BaseException:
            self.abort()
            raise
        return self.check_results(statements, results)

    def ping(self) -> None:
        """Raise `ConnectionLost` if the server does not answer."""
        try:
            self.packets(())
            self.check_pong(self._call(PING, monotonic() + self.limit_s))
        except Exception as error:
            self.abort()
            raise as_loss(error, self.endpoint) from None

    def close(self) -> None:
        """Send COM_QUIT and close; never raises."""
        if not self.closed:
            self.closed = True
            with suppress(Exception):
                self._sock.deadline = monotonic() + GOODBYE_S
                self._sock.sendall(QUIT.wire)
        self.abort()

    def abort(self) -> None:
        """Drop the socket at once; never raises, never waits."""
        self.closed = True
        shut(self.socket())
        with suppress(Exception):
            self.discard()

    def interrupt(self) -> None:
        """End a call that another thread is making. That thread closes the socket."""
        self.closed = True
        shut(self.socket())

    def _send_each(self, packets: Sequence[bytes], deadline: float) -> list[Result]:
        if len(packets) == 1:
            return self._call(query(packets[0]), deadline)
        results: list[Result] = []
        for packet in packets:
            try:
                results += self._call(query(packet), deadline)
            except ErrorPacket as error:
                error.statement_index += len(results)
                raise
        return results

    def _call(self, command: Command, deadline: float) -> list[Result]:
        sock, buffer = self._sock, self._buffer
        if self._unread():
            self._refuse_unread()
        watch = WATCH.get()
        if watch is not None:
            watch.begin()
        sent_by = monotonic() + self.write_s
        sock.deadline = sent_by if sent_by < deadline else deadline
        sock.sendall(command.wire)
        traffic = self.traffic
        traffic.round_trips += 1
        traffic.sent_bytes += len(command.wire)
        answered_by = monotonic() + self.read_s
        sock.deadline = answered_by if answered_by < deadline else deadline
        reader = ResultReader(command.answer_number)
        complete = False
        while not complete:
            count = sock.recv_into(buffer.room())
            if not count:
                raise ConnectionResetError("the server closed the connection")
            traffic.received_bytes += count
            if watch is not None:
                watch.received(count)
            complete = buffer.received(count, reader)
        if watch is not None:
            watch.end()
        return reader.results

    def _refuse_unread(self) -> None:
        """Fail because of unread data, which would be taken for the answer to the next command."""
        self._sock.deadline = monotonic() + GOODBYE_S
        raise ConnectionResetError(why_unexpected(self._sock.recv(_PIECE_BYTES)))

    @abstractmethod
    def log_in(self) -> None:
        """Connect by ``connected_by`` with `deadlines.connect`, and log in; call `check_greeting` in between."""

    @abstractmethod
    def discard(self) -> None:
        """Close the socket without sending anything, and detach the library, so that it cleans up nothing."""
