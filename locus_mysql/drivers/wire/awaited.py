"""Connections on a library's asyncio transport: opening, sending, failing, closing. Adapters add the login."""

from __future__ import annotations

import asyncio
import ssl
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

from ...config import ConnectionOptions, Endpoint
from ...dialect.statement import Statement
from ..failures import translate
from ..interface import ConnectionLost, Result
from ..login.tls import NoTLSOffered, no_tls, tls_attempts, tls_context
from . import session
from .adapter import Adapter, as_loss
from .command_protocol import CommandProtocol
from .protocol_commands import PING, QUIT, query
from .responsive_timeout import ResponsiveTimeout
from .results import ErrorPacket
from .sockets import abort_transport, configure, guard_at_fork, unread_check
from .threaded import Worker


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

        worker = Worker("locus-mysql imports")
        try:
            with suppress(Exception):  # the login raises any exception again
                await asyncio.wrap_future(worker.submit(load))
        finally:
            worker.stop()
        cls._loaded = True

    async def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """See `interface.AsyncConnection.execute`."""
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
        """See `interface.AsyncConnection.ping`."""
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
        """See `interface.AsyncConnection.close`."""
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
        """See `interface.AsyncConnection.abort`."""
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
