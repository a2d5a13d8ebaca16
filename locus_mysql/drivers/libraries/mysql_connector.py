"""MySQL Connector/Python: asynchronous and blocking, both in pure Python.

Why the blocking side does not use the C extension: measured (Connector 26.10, MySQL 9.7 on the same machine,
median of 300) it saves 0.06 ms in a packet of five small statements (0.04 against 0.11 ms; over TLS 0.07
against 0.13) and 0.1 ms in a 60 KB write over TLS (0.28 against 0.38). But it would need a second way to set up TLS; no
other thread could abort its calls; it has no socket to read results from; and where Python comes with an OpenSSL before
3.2 (Debian 12), it cannot be imported at all. What looked like the pure side's slowness was Nagle's algorithm, which
Connector/Python leaves on: 44 ms for each 60 KB write over TLS. `sockets.configure` switches it off.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from ...config import ConnectionOptions
from ...errors import ConfigError
from ..interface import LibraryDriver
from ..login import (
    CACHING_SHA2,
    FULL_LOGIN,
    REQUEST_PUBLIC_KEY,
    encrypt_password,
    imported_once,
)
from ..wire.adapter import Adapter
from ..wire.awaited import AsyncAdapter
from ..wire.blocking import SyncAdapter
from ..wire.sockets import connect
from .pymysql import CLIENT_SSL

#: If this capability were set, each query would have to begin with its attributes; `protocol_commands.query` sends
#: none.
_QUERY_ATTRIBUTES = 1 << 27

_AUTH_SWITCH, _AUTH_MORE_DATA = 0xFE, 0x01


class BlockingConnection(SyncAdapter):
    """A blocking connection of Connector/Python."""

    def log_in(self) -> None:
        """Log in with the library, on a socket with a deadline."""
        config, endpoint = self.config, self.endpoint
        self.library = library = blocking_class()()
        _hook_in(self)
        library.open_socket = lambda: connect(endpoint, self.connected_by)
        library.connect(
            **self.address,
            password=config.password_text,
            database=config.database,
            client_flags=_client_flags(config),
            conn_attrs={"program_name": "locus-mysql"},
            allow_local_infile=False,
        )
        del library.open_socket
        _hook_out(self)

    def discard(self) -> None:
        """Detach the library, so that it cleans up nothing."""
        if self.library is not None:
            self.library._socket.close_connection()

    def socket(self) -> Any:
        """Return the library's socket; None while there is none."""
        return getattr(getattr(self.library, "_socket", None), "sock", None)


class AwaitedConnection(AsyncAdapter):
    """A connection of Connector/Python's asynchronous side."""

    @classmethod
    def load(cls) -> None:
        """Import the library."""
        awaited_class()

    async def log_in(self) -> None:
        """Log in with the library."""
        config = self.config
        self.library = library = awaited_class()(
            **self.address,
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
        """Detach the library, so that it cleans up nothing."""
        if self.library is not None:
            self.library._socket = None

    def transport(self) -> Any:
        """Return the library's transport; None while there is none."""
        writer = getattr(getattr(self.library, "_socket", None), "_writer", None)
        return None if writer is None else writer.transport


DRIVER = LibraryDriver("mysql-connector", BlockingConnection.open, AwaitedConnection.open)


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


class _LoginHooks:
    """Our attributes of an authenticator."""

    nonce: bytes
    private: bool
    check_login: Callable[[str], None]


class _Hooks:
    """Our attributes of a connection, and what it does after the server's greeting."""

    check_greeting: Callable[[str, bool], None]
    check_login: Callable[[str], None]
    tls: ssl.SSLContext | None
    tls_host: str
    private: bool

    def after_greeting(self: Any, authenticator: _LoginHooks, switch: Callable[[Any, str], Callable[..., Any]]) -> None:
        """Check the server, prepare TLS, and replace the library's authenticator."""
        self._client_flags &= ~_QUERY_ATTRIBUTES
        greeting, sock, tls = self._handshake, self._socket, self.tls
        self.check_greeting(_text(greeting["server_version_original"]), bool(greeting["capabilities"] & CLIENT_SSL))
        sock.build_ssl_context, sock.switch_to_ssl = lambda **_: tls, switch(sock, self.tls_host)
        self.check_login(greeting["auth_plugin"])
        self._authenticator, authenticator.nonce = authenticator, bytes(greeting["auth_data"])
        authenticator.private, authenticator.check_login = self.private, self.check_login


def _blocking_authenticator() -> Any:
    """`mysql.connector.authentication.MySQLAuthenticator` with our hooks."""
    from mysql.connector.authentication import MySQLAuthenticator
    from mysql.connector.protocol import MySQLProtocol

    class Authenticator(_LoginHooks, MySQLAuthenticator):  # type: ignore[misc,unused-ignore]  # of Any if not installed
        def _handle_server_response(self, sock: Any, pkt: bytes) -> Any:
            if pkt[4] == _AUTH_SWITCH and len(pkt) > 5:
                plugin, nonce = MySQLProtocol.parse_auth_switch_request(pkt)
                self.check_login(plugin)
                if plugin == CACHING_SHA2 and not self.private:
                    self.nonce = bytes(nonce)
                    self._switch_auth_strategy(plugin)
                    strategy: Any = self._auth_strategy
                    pkt = strategy.auth_switch_response(sock, nonce, **self._plugin_config)
            if not self.private and _asks_for_password(self._auth_strategy, pkt):
                sock.send(REQUEST_PUBLIC_KEY)
                public_key = bytes(sock.recv()[5:])
                sock.send(encrypt_password(self._passwords[1], self.nonce, public_key))
                pkt = bytes(sock.recv())
            return super()._handle_server_response(sock, pkt)

    return Authenticator


@imported_once
def blocking_class() -> Any:
    """`mysql.connector.connection.MySQLConnection` with our hooks."""
    from mysql.connector.connection import MySQLConnection

    authenticator_class = _blocking_authenticator()

    class Connection(_Hooks, MySQLConnection):  # type: ignore[misc,unused-ignore]  # of Any if not installed
        open_socket: Callable[[], Any]

        def _get_connection(self) -> Any:
            carrier: Any = super()._get_connection()

            def open_connection() -> None:
                del carrier.open_connection  # it would prevent the connection from being freed at once
                carrier.sock = self.open_socket()

            carrier.open_connection = open_connection
            return carrier

        def _do_handshake(self) -> None:
            self._ssl_disabled = self.tls is None
            super()._do_handshake()
            self.after_greeting(authenticator_class(), _switch_blocking)

        def _post_connection(self) -> None:
            pass

    return Connection


def _awaited_authenticator() -> Any:
    """`mysql.connector.aio.authentication.MySQLAuthenticator` with our hooks."""
    from mysql.connector.aio.authentication import MySQLAuthenticator
    from mysql.connector.aio.protocol import MySQLProtocol

    class Authenticator(_LoginHooks, MySQLAuthenticator):  # type: ignore[misc,unused-ignore]  # of Any if not installed
        async def _handle_server_response(self, sock: Any, pkt: bytes) -> Any:
            if pkt[4] == _AUTH_SWITCH and len(pkt) > 5:
                plugin, nonce = MySQLProtocol.parse_auth_switch_request(pkt)
                self.check_login(plugin)
                if plugin == CACHING_SHA2 and not self.private:
                    self.nonce = bytes(nonce)
                    self._switch_auth_strategy(plugin)
                    strategy: Any = self._auth_strategy
                    pkt = await strategy.auth_switch_response(sock, nonce, **self._plugin_config)
            if not self.private and _asks_for_password(self._auth_strategy, pkt):
                await sock.write(REQUEST_PUBLIC_KEY)
                public_key = bytes((await sock.read())[5:])
                await sock.write(encrypt_password(self._passwords[1], self.nonce, public_key))
                pkt = bytes(await sock.read())
            return await super()._handle_server_response(sock, pkt)

    return Authenticator


@imported_once
def awaited_class() -> Any:
    """`mysql.connector.aio.connection.MySQLConnection` with our hooks."""
    from mysql.connector.aio.connection import MySQLConnection

    authenticator_class = _awaited_authenticator()

    class Connection(_Hooks, MySQLConnection):  # type: ignore[misc,unused-ignore]  # of Any if not installed
        async def _do_handshake(self) -> None:
            self._ssl_disabled = self.tls is None
            await super()._do_handshake()
            sock: Any = self._socket
            sock.close_connection = _leave_to_adapter
            self.after_greeting(authenticator_class(), _switch_awaited)

        async def _post_connection(self) -> None:
            pass

    return Connection


async def _leave_to_adapter() -> None:
    """Do nothing after a failed login: the adapter drops the transport.

    The library's own waits for the end of a stream, which does not come after a failed TLS handshake.
    """


def _asks_for_password(strategy: Any, pkt: bytes) -> bool:
    return strategy.name == CACHING_SHA2 and pkt[4] == _AUTH_MORE_DATA and bytes(pkt[5:]) == FULL_LOGIN


def _switch_blocking(sock: Any, host: str) -> Callable[..., Any]:
    def switch_to_ssl(context: ssl.SSLContext, *_: object) -> None:
        sock.sock = context.wrap_socket(sock.sock, server_hostname=host)

    return switch_to_ssl


def _switch_awaited(sock: Any, host: str) -> Callable[..., Any]:
    async def switch_to_ssl(context: ssl.SSLContext) -> None:
        await sock._writer.start_tls(context, server_hostname=host)

    return switch_to_ssl


def _text(version: str | bytes) -> str:
    return version if isinstance(version, str) else version.decode("latin-1")
