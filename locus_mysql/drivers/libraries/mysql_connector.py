"""MySQL Connector/Python: asynchronous and blocking, both in pure Python.

Why the blocking side does not use the C extension: measured (Connector 26.10, MySQL 9.7 on the same machine,
median of 300) it saves 0.06 ms in a packet of five small statements (0.04 against 0.11 ms; over TLS 0.07
against 0.13) and 0.1 ms in a 60 KB write over TLS (0.28 against 0.38). But it would need a second way to set up TLS; no
other thread could abort its calls; it has no socket to read results from; and where Python comes with an OpenSSL before
3.2 (Debian 12), it cannot be imported at all. What looked like the pure side's slowness was Nagle's algorithm, which
Connector/Python leaves on: 44 ms for each 60 KB write over TLS. `sockets.configure` switches it off.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ...config import ConnectionOptions, Endpoint
from ...errors import ConfigError
from ..interface import AsyncConnection, SyncConnection
from ..wire.adapter import Adapter
from ..wire.awaited import AsyncAdapter
from ..wire.blocking import SyncAdapter
from ..wire.deadlines import connect


class BlockingConnection(SyncAdapter):
    """A blocking connection of Connector/Python."""

    def log_in(self) -> None:
        """See `SyncAdapter.log_in`."""
        from ..login.mysql_connector_hooks import blocking_class

        config, endpoint = self.config, self.endpoint
        self.library = library = blocking_class()()
        _hook_in(self)
        library.open_socket = lambda: connect(endpoint, self.connected_by)
        library.connect(
            host=endpoint.host,
            port=endpoint.port,
            unix_socket=endpoint.unix_socket,
            user=config.user,
            password=config.password_text,
            database=config.database,
            client_flags=_client_flags(config),
            conn_attrs={"program_name": "locus-mysql"},
            allow_local_infile=False,
        )
        del library.open_socket
        _hook_out(self)

    def discard(self) -> None:
        """See `SyncAdapter.discard`."""
        if self.library is not None:
            self.library._socket.close_connection()

    def socket(self) -> Any:
        """See `Adapter.socket`."""
        return getattr(getattr(self.library, "_socket", None), "sock", None)


class AwaitedConnection(AsyncAdapter):
    """A connection of Connector/Python's asynchronous side."""

    @classmethod
    def load(cls) -> None:
        """See `AsyncAdapter.load`."""
        from ..login.mysql_connector_hooks import awaited_class

        awaited_class()

    async def log_in(self) -> None:
        """See `AsyncAdapter.log_in`."""
        from ..login.mysql_connector_hooks import awaited_class

        config, endpoint = self.config, self.endpoint
        self.library = library = awaited_class()(
            host=endpoint.host,
            port=endpoint.port,
            unix_socket=endpoint.unix_socket,
            user=config.user,
            password=config.password_text,
            database=config.database,
            client_flags=_client_flags(config),
            conn_attrs={"program_name": "locus-mysql"},
            allow_local_infile=False,
            connection_timeout=None,  # `AsyncAdapter` limits connecting
        )
        _hook_in(self)
        await library.connect()
        _hook_out(self)

    def discard(self) -> None:
        """See `AsyncAdapter.discard`."""
        if self.library is not None:
            self.library._socket = None

    def transport(self) -> Any:
        """See `AsyncAdapter.transport`."""
        writer = getattr(getattr(self.library, "_socket", None), "_writer", None)
        return None if writer is None else writer.transport


class MySQLConnectorDriver:
    """The driver ``mysql-connector``."""

    name = "mysql-connector"
    library = "mysql.connector"

    def connect(self, config: ConnectionOptions, endpoint: Endpoint) -> SyncConnection:
        """See `interface.Driver.connect`."""
        return BlockingConnection.open(config, endpoint)

    async def connect_async(self, config: ConnectionOptions, endpoint: Endpoint) -> AsyncConnection:
        """See `interface.Driver.connect_async`."""
        return await AwaitedConnection.open(config, endpoint)


def _hook_in(adapter: Adapter) -> None:
    library = adapter.library
    library.check_greeting, library.check_login, library.private = (
        adapter.check_greeting,
        partial(_check_login, adapter),
        adapter.private,
    )
    library.tls, library.tls_host = adapter.tls, adapter.endpoint.host


def _check_login(adapter: Adapter, plugin: str) -> None:
    adapter.check_login(plugin)
    if plugin == "sha256_password" and adapter.tls is None:
        raise ConfigError(
            f"User {adapter.config.user!r} logs in by sha256_password, for which Connector/Python needs TLS: set "
            "ssl_mode to REQUIRED. Or use another driver=, or let the account use caching_sha2_password."
        )


def _hook_out(adapter: Adapter) -> None:
    """Remove the hooks, which would prevent the connection from being freed at once."""
    library = adapter.library
    del library.check_greeting, library.check_login
    library._authenticator = None


def _client_flags(config: ConnectionOptions) -> int:
    from mysql.connector.constants import ClientFlag

    flags = ClientFlag.get_default() & ~(ClientFlag.FOUND_ROWS | ClientFlag.LOCAL_FILES | ClientFlag.MULTI_STATEMENTS)
    return int(flags | ClientFlag.MULTI_STATEMENTS if config.pipeline else flags)
