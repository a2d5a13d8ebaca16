"""What all adapters share: opening, sending, failing and closing. Each adds how its library does a step."""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

from ..config import MySQLConfig
from ..dialect.statement import Statement
from . import session
from .base import ConnectionLost, Endpoint, Result
from .failures import ends_connection, translate
from .literals import render
from .sockets import abort_transport, configure, file_descriptor, guard_at_fork, shut
from .tls import NoTLSOffered, no_tls, tls_attempts

#: Longest wait for a goodbye to be sent, in seconds. Nothing is lost if it is not.
_GOODBYE_S = 1.0


class Adapter(ABC):
    """A connection of one library, whether its calls are awaited or not."""

    #: The library's connection object.
    library: Any = None

    def __init__(self, config: MySQLConfig, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
        self.server_version = ""
        self.max_allowed_packet = 0
        self.closed = False
        self.config = config
        self.endpoint = endpoint
        self.tls = tls

    def judge(self, server_version: str, offers_tls: bool) -> None:
        """Go on or not, by the server's greeting. Adapters call it before they log in.

        Raises:
            UnsupportedServer: See `session.check_server_version`.
            NoTLSOffered: TLS is wanted in this attempt, and the server has none.
        """
        session.check_server_version(server_version)
        self.server_version = server_version
        if self.tls is not None and not offers_tls:
            raise NoTLSOffered

    @property
    def private(self) -> bool:
        """Whether nobody on a network can read what is sent."""
        return self.tls is not None or self.endpoint.unix_socket is not None

    def fileno(self) -> int:
        """The descriptor of the socket, or -1."""
        return file_descriptor(self.socket())

    @abstractmethod
    def socket(self) -> Any:
        """The socket, or None while there is none."""

    def _packets(self, statements: Sequence[Statement]) -> list[bytes]:
        if self.closed:
            raise ConnectionLost(f"The connection to MySQL at {self.endpoint} is closed.")
        if self.config.pipeline:
            return [render(statements)] if statements else []
        return [render([statement]) for statement in statements]

    def _check_count(self, statements: Sequence[Statement], results: list[Result]) -> list[Result]:
        if len(results) != len(statements):
            self.abort()
            raise ConnectionLost(
                f"{len(statements)} statements brought {len(results)} results; the connection was dropped."
            )
        return results

    def _failure(self, error: Exception) -> Exception:
        """The exception to raise; the connection is dropped if nothing more can be sent on it."""
        failure = translate(error, self.endpoint)
        if ends_connection(failure):
            self.abort()
        return failure

    @abstractmethod
    def abort(self) -> None:
        """Drop the socket at once; never raises."""


class SyncAdapter(Adapter):
    """Base of the adapters of libraries that block."""

    @classmethod
    def open(
        cls, config: MySQLConfig, endpoint: Endpoint, started: Callable[[Self], object] | None = None
    ) -> Self:
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
                results = [
                    result
                    for packet in connection._packets(session.SETUP)
                    for result in connection.send(packet)
                ]
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
        packets = self._packets(statements)
        try:
            results = self._send_each(packets)
        except Exception as error:
            raise self._failure(error) from None
        except BaseException:
            self.abort()
            raise
        return self._check_count(statements, results)

    def ping(self) -> None:
        """See `base.SyncConnection.ping`."""
        try:
            self._packets(())
            self.send_ping()
        except Exception as error:
            self.abort()
            raise _as_loss(error, self.endpoint) from None

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


class AsyncAdapter(Adapter):
    """Base of the adapters of libraries on asyncio. One belongs to the event loop that opened it."""

    def __init__(self, config: MySQLConfig, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
        super().__init__(config, endpoint, tls)
        self._loop = asyncio.get_running_loop()
        # Neither libraries nor asyncio limit a packet's sending apart from its answer: one limit for both.
        self._limit_s = config.write_timeout_s + config.read_timeout_s

    @classmethod
    async def open(cls, config: MySQLConfig, endpoint: Endpoint) -> Self:
        """Connect, log in and set the session up."""
        for tls in tls_attempts(config, endpoint):
            connection = cls(config, endpoint, tls)
            try:
                async with asyncio.timeout(config.connect_timeout_s):
                    await connection.log_in()
                    configure(connection.socket())
                    guard_at_fork(connection)
                    results = await connection._send_each(connection._packets(session.SETUP))
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

    async def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """See `base.AsyncConnection.execute`."""
        packets = self._packets(statements)
        self._check_loop()
        try:
            async with asyncio.timeout(self._limit_s):
                results = await self._send_each(packets)
        except Exception as error:
            raise self._failure(error) from None
        except (
            BaseException
        ):  # also a cancelled task: the answer is on its way and would be taken for the next one's
            self.abort()
            raise
        return self._check_count(statements, results)

    async def ping(self) -> None:
        """See `base.AsyncConnection.ping`."""
        self._packets(())
        self._check_loop()
        try:
            async with asyncio.timeout(self._limit_s):
                await self.send_ping()
        except Exception as error:
            self.abort()
            raise _as_loss(error, self.endpoint) from None
        except BaseException:
            self.abort()
            raise

    async def close(self) -> None:
        """See `base.AsyncConnection.close`."""
        polite = not self.closed and asyncio.get_running_loop() is self._loop
        transport = self.transport()
        try:
            self.closed = True
            if polite:
                with suppress(Exception):
                    async with asyncio.timeout(_GOODBYE_S):
                        await self.say_goodbye()
        finally:
            abort_transport(transport, self._loop)
            self.abort()

    def abort(self) -> None:
        """See `base.AsyncConnection.abort`."""
        self.closed = True
        with suppress(Exception):
            abort_transport(self.transport(), self._loop)
            self.discard()

    def socket(self) -> Any:
        """The socket as asyncio shows it, or None while there is none."""
        transport = self.transport()
        return None if transport is None else transport.get_extra_info("socket")

    async def _send_each(self, packets: Sequence[bytes]) -> list[Result]:
        results = []
        for packet in packets:
            results += await self.send(packet)
        return results

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            self.abort()
            raise ConnectionLost(
                f"The connection to MySQL at {self.endpoint} belongs to another event loop and was dropped."
            )

    @abstractmethod
    def transport(self) -> Any:
        """The asyncio transport in use, or None while there is none."""

    @abstractmethod
    async def log_in(self) -> None:
        """Connect and authenticate; call `judge` in between."""

    @abstractmethod
    async def send(self, packet: bytes) -> list[Result]:
        """Run one packet of statements and read every result."""

    @abstractmethod
    async def send_ping(self) -> None:
        """One COM_PING."""

    @abstractmethod
    async def say_goodbye(self) -> None:
        """Send COM_QUIT."""

    @abstractmethod
    def discard(self) -> None:
        """Leave the library nothing to clean up; the transport was aborted."""


def _as_loss(error: Exception, endpoint: Endpoint) -> ConnectionLost:
    """What a failed ping means: also an error that the server sent, such as that it shuts down."""
    failure = translate(error, endpoint)
    return (
        failure if isinstance(failure, ConnectionLost) else ConnectionLost(f"MySQL at {endpoint}: {failure}.")
    )
