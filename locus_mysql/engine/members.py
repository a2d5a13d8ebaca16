"""Connections to servers among several, which a pool watches, and what such a pool is told of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..config import ConnectionOptions, Endpoint
from ..dialect import Statement
from ..drivers.interface import AsyncConnection, Driver, Result, SyncConnection
from .topology import BRIEFLY_S, Topology


class SyncMember:
    """A connection to one of several servers."""

    def __init__(self, connection: SyncConnection, endpoint: Endpoint) -> None:
        self.connection = connection
        self.endpoint = endpoint
        self.server_version = connection.server_version
        self.max_allowed_packet = connection.max_allowed_packet
        self.traffic = getattr(connection, "traffic", None)
        self.session = getattr(connection, "session", None)

    @property
    def closed(self) -> bool:
        """See `SyncConnection.closed`."""
        return self.connection.closed

    def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """See `SyncConnection.execute`."""
        return self.connection.execute(statements)

    def ping(self) -> None:
        """See `SyncConnection.ping`."""
        self.connection.ping()

    def close(self) -> None:
        """See `SyncConnection.close`."""
        self.connection.close()

    def abort(self) -> None:
        """See `SyncConnection.abort`."""
        self.connection.abort()

    def interrupt(self) -> None:
        """See `SyncConnection.interrupt`."""
        self.connection.interrupt()


class AsyncMember:
    """As `SyncMember`."""

    def __init__(self, connection: AsyncConnection, endpoint: Endpoint) -> None:
        self.connection = connection
        self.endpoint = endpoint
        self.server_version = connection.server_version
        self.max_allowed_packet = connection.max_allowed_packet
        self.traffic = getattr(connection, "traffic", None)
        self.session = getattr(connection, "session", None)

    @property
    def closed(self) -> bool:
        """See `AsyncConnection.closed`."""
        return self.connection.closed

    async def execute(self, statements: Sequence[Statement]) -> list[Result]:
        """See `AsyncConnection.execute`."""
        return await self.connection.execute(statements)

    async def ping(self) -> None:
        """See `AsyncConnection.ping`."""
        await self.connection.ping()

    async def close(self) -> None:
        """See `AsyncConnection.close`."""
        await self.connection.close()

    def abort(self) -> None:
        """See `AsyncConnection.abort`."""
        self.connection.abort()


Connect: TypeAlias = Callable[[ConnectionOptions, Driver, Topology], SyncConnection]
ConnectAsync: TypeAlias = Callable[[ConnectionOptions, Driver, Topology], Awaitable[AsyncConnection]]
Gone: TypeAlias = Callable[[ConnectionOptions, Driver, Topology, Endpoint], bool]
GoneAsync: TypeAlias = Callable[[ConnectionOptions, Driver, Topology, Endpoint], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Role:
    """Which servers a pool has connections to.

    Args:
        connect: Opens one.
        connect_async: The same, awaited.
        gone: Whether a server that gives no answer is to be left.
        gone_async: The same, awaited.
    """

    connect: Connect
    connect_async: ConnectAsync
    gone: Gone
    gone_async: GoneAsync


def brief(config: ConnectionOptions) -> ConnectionOptions:
    """The options of a connection that is only to ask a server how it is."""
    limits = ("connect_timeout_s", "read_timeout_s", "write_timeout_s")
    return config.model_copy(update={name: min(getattr(config, name), BRIEFLY_S) for name in limits})
