"""The servers that a pool's connections lead to: `Servers`, and `OneServer`, the usual case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..config import ConnectionOptions, Endpoint
from ..dialect.server_roles import ROUTER
from ..drivers.interface import Driver, DriverError
from .cluster.topology import LeadsToSecondary
from .commands import Close, CommandGenerator
from .passwords import open_connection
from .pool import ServerConnection

if TYPE_CHECKING:
    from .pool import Pool


class Servers(Protocol):
    """Opens the connections of pools, and notes what their calls find out about the servers."""

    @property
    def current(self) -> Endpoint:
        """The server that calls are sent to, if known; else the first to try."""

    def connect(self, pool: Pool) -> CommandGenerator[ServerConnection]:
        """Open a connection for a pool.

        Raises:
            DriverError: No server was reached, or each refused the connection.
        """

    def left(self, endpoint: Endpoint, error: DriverError) -> bool:
        """Note that a server failed in a call. Return whether all connections to it are to be dropped."""


class OneServer:
    """A single address, which may be MySQL Router's.

    Args:
        config: The options.
        driver: Opens connections.
    """

    def __init__(self, config: ConnectionOptions, driver: Driver) -> None:
        self._config, self._driver = config, driver
        (self.current,) = config.endpoints

    def connect(self, pool: Pool) -> CommandGenerator[ServerConnection]:
        """Open a connection. A server without a group is used without checks, even if it is read-only.

        Raises:
            LeadsToSecondary: The address leads to a secondary of a group, or to a reader of Aurora.
        """
        config, endpoint = self._config, self.current
        connection = yield from open_connection(self._driver, config, endpoint)
        through_router = ROUTER in connection.server_version
        if config.read_only or not (through_router or getattr(connection, "read_only", False)):
            return ServerConnection(connection, endpoint)
        try:
            from .cluster.primary import check_only_server

            return (yield from check_only_server(config, connection, endpoint, through_router=through_router))
        except DriverError:
            yield Close(connection)
            raise
        except BaseException:
            connection.abort()
            raise

    def left(self, endpoint: Endpoint, error: DriverError) -> bool:
        """Return False for a lost connection: the next use of each idle one shows whether the server is up."""
        return isinstance(error, LeadsToSecondary)


def servers_of(config: ConnectionOptions, driver: Driver) -> Servers:
    """Return the servers that the options name."""
    if len(config.endpoints) == 1:
        return OneServer(config, driver)
    from .cluster.primary import Cluster

    return Cluster(config, driver)
