"""Opening, sending, failing and closing with a library that blocks; an adapter adds how it does a step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

from ..config import MySQLConfig
from ..dialect.statement import Statement
from . import session
from .adapter import Adapter, as_loss
from .base import Endpoint, Result
from .failures import translate
from .sockets import configure, guard_at_fork, shut
from .tls import NoTLSOffered, no_tls, tls_attempts


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
                results = [result for packet in connection.packets(session.SETUP) for result in connection.send(packet)]
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
            self.send_ping()
        except Exception as error:
            self.abort()
            raise as_loss(error, self.endpoint) from None

    def close(self) -> None:
        """See `base.SyncConnection.close`."""
        if not self.closed:
            self.closed = True
            with suppress(Exception):
                self.say_goodbye()
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
        return [result for packet in packets for result in self.send(packet)]

    @abstractmethod
    def log_in(self) -> None:
        """Connect and authenticate within ``connect_timeout_s``; call `judge` in between."""

    @abstractmethod
    def send(self, packet: bytes) -> list[Result]:
        """Run one packet of statements and read every result."""

    @abstractmethod
    def send_ping(self) -> None:
        """One COM_PING."""

    @abstractmethod
    def say_goodbye(self) -> None:
        """Send COM_QUIT."""

    @abstractmethod
    def discard(self) -> None:
        """Close the socket without another word, and leave the library nothing to clean up."""
