"""PyMySQL: blocking; its asynchronous side runs each connection in a thread of its own."""

from __future__ import annotations

from typing import Any

from ...config import ConnectionOptions, Endpoint
from ..interface import AsyncConnection, SyncConnection
from ..login.imports import imported_once
from ..login.pymysql_family import CLIENT_MULTI_STATEMENTS, after_login, before_login
from ..wire.blocking import SyncAdapter
from ..wire.deadlines import connect
from ..wire.threaded import ThreadedConnection


class PyMySQLConnection(SyncAdapter):
    """A connection of PyMySQL."""

    def log_in(self) -> None:
        """See `SyncAdapter.log_in`."""
        config, endpoint = self.config, self.endpoint
        self.library = _connection_class()(
            host=endpoint.host,
            port=endpoint.port,
            unix_socket=endpoint.unix_socket,
            user=config.user,
            password=config.password_text.encode(),  # a str would be sent as Latin-1
            database=config.database,
            charset="utf8mb4",
            client_flag=CLIENT_MULTI_STATEMENTS if config.pipeline else 0,
            autocommit=None,
            local_infile=False,
            program_name="locus-mysql",
            ssl=self.tls,
            ssl_disabled=self.tls is None,
            defer_connect=True,
        )
        self.library._secure = self.private  # PyMySQL finds this out only where it makes the socket itself
        before_login(self.library, self)
        self.library.connect(connect(endpoint, self.connected_by))
        after_login(self.library)

    def discard(self) -> None:
        """See `SyncAdapter.discard`."""
        if self.library is not None:
            self.library._force_close()

    def socket(self) -> Any:
        """See `Adapter.socket`."""
        return None if self.library is None else self.library._sock


@imported_once
def _connection_class() -> Any:
    from pymysql.connections import Connection

    return Connection


class PyMySQLDriver:
    """The driver ``pymysql``."""

    name = "pymysql"

    def connect(self, config: ConnectionOptions, endpoint: Endpoint) -> SyncConnection:
        """See `interface.Driver.connect`."""
        return PyMySQLConnection.open(config, endpoint)

    async def connect_async(self, config: ConnectionOptions, endpoint: Endpoint) -> AsyncConnection:
        """See `interface.Driver.connect_async`."""
        return await ThreadedConnection.open(PyMySQLConnection, config, endpoint)
