"""Opening, sending, failing and closing on a library's socket; an adapter adds how its library logs in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

from ..config import MySQLConfig
from ..dialect.statement import Statement
from . import session
from .adapter import GOODBYE_S, Adapter, as_loss
from .base import Endpoint, Result
from .commands import PING, QUIT, Command, query
from .failures import translate
from .results import ResultReader
from .sockets import configure, guard_at_fork, shut
from .tls import NoTLSOffered, no_tls, tls_attempts

#: Most that is read at once; a TLS record has a quarter.
_PIECE_BYTES = 65_536


class SyncAdapter(Adapter):
    """Base of the adapters of libraries that block."""

    @classmethod
    def open(cls, config: MySQLConfig, endpoint: Endpoint, started: Callable[[Self], object] | None = None) -> Self:
        """Connect, log in and set the session up.

        Args:
            config: How.
            endpoint: Where.
            started: Told of the connection before the first byte, so that another thread can abort it.
        """
        for tls in tls_attempts(config, endpoint):
            connection = cls(config, endpoint, tls)
            if started is not None:
                started(connection)
            try:
                connection.log_in()
                configure(connection.socket())
                guard_at_fork(connection)
                results = connection._send_each(connection.packets(session.SETUP))
                connection.max_allowed_packet = session.max_allowed_packet(results)
            except NoTLSOffered:
                connection.abort()
                continue
            except Exception as error:
                failure = translate(error, endpoint, connecting=True)
                connection.abort()
                raise failure from None
            except BaseException:
                connection.abort()
                raise
            return connection
        raise no_tls(config, endpoint)

    def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """See `base.SyncConnection.execute`."""
        packets = self.packets(statements)
        try:
            results = self._send_each(packets)
        except Exception as error:
            raise self.failure(error) from None
        except BaseException:
            self.abort()
            raise
        return self.check_count(statements, results)

    def ping(self) -> None:
        """See `base.SyncConnection.ping`."""
        try:
            self.packets(())
            self._ask(PING)
        except Exception as error:
            self.abort()
            raise as_loss(error, self.endpoint) from None

    def close(self) -> None:
        """See `base.SyncConnection.close`."""
        if not self.closed:
            self.closed = True
            with suppress(Exception):
                self.socket().settimeout(GOODBYE_S)
                self.socket().sendall(QUIT.wire)
        self.abort()

    def abort(self) -> None:
        """See `base.SyncConnection.abort`."""
        self.closed = True
        shut(self.socket())
        with suppress(Exception):
            self.discard()

    def interrupt(self) -> None:
        """End a call that another thread is making. That thread closes the socket."""
        self.closed = True
        shut(self.socket())

    def _send_each(self, packets: Sequence[bytes]) -> list[Result]:
        return [result for packet in packets for result in self._ask(query(packet))]

    def _ask(self, command: Command) -> list[Result]:
        sock, config = self.socket(), self.config
        sock.settimeout(config.write_timeout_s)
        sock.sendall(command.wire)
        sock.settimeout(config.read_timeout_s)
        reader = ResultReader(command.answer_number)
        complete = False
        while not complete:
            piece = sock.recv(_PIECE_BYTES)
            if not piece:
                raise ConnectionResetError("the server closed the connection")
            complete = reader.feed(piece)
        return reader.results

    @abstractmethod
    def log_in(self) -> None:
        """Connect and authenticate within ``connect_timeout_s``; call `judge` in between."""

    @abstractmethod
    def discard(self) -> None:
        """Close the socket without another word, and leave the library nothing to clean up."""
