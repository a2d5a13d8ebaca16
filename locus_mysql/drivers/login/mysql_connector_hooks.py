"""Connector/Python's connections, with hooks for what their options cannot express.

- The server's greeting is checked, and TLS decided, between its greeting and the login.
- The blocking side logs in on our socket, which has a deadline.
- TLS uses our context, with the host name, which the asynchronous side leaves out, and on Unix sockets too.
- Without TLS, a full ``caching_sha2_password`` login encrypts the password with the server's public key.
  Without the hook, Connector/Python sends it in clear text, and is then refused.
- Queries have no attributes.
- Nothing is sent after the login; `session.setup` does that in one round trip.

The classes are made on first use, because their base classes are the library's.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

from .imports import imported_once
from .unencrypted_login import (
    CACHING_SHA2,
    FULL_LOGIN,
    REQUEST_PUBLIC_KEY,
    encrypt_password,
)

#: If this capability were set, each query would have to begin with its attributes; `protocol_commands.query` sends
#: none.
_QUERY_ATTRIBUTES = 1 << 27

_AUTH_SWITCH, _AUTH_MORE_DATA = 0xFE, 0x01


def _blocking_authenticator() -> Any:
    """`mysql.connector.authentication.MySQLAuthenticator` with our hooks."""
    from mysql.connector.authentication import MySQLAuthenticator
    from mysql.connector.protocol import MySQLProtocol

    class Authenticator(MySQLAuthenticator):  # type: ignore[misc,unused-ignore]  # of Any if not installed
        nonce: bytes
        private: bool
        check_login: Callable[[str], None]

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
    from mysql.connector.constants import ClientFlag

    authenticator_class = _blocking_authenticator()

    class Connection(MySQLConnection):  # type: ignore[misc,unused-ignore]  # of Any if not installed
        check_greeting: Callable[[str, bool], None]
        check_login: Callable[[str], None]
        tls: ssl.SSLContext | None
        tls_host: str
        private: bool
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
            self._client_flags &= ~_QUERY_ATTRIBUTES
            greeting: Any = self._handshake
            self.check_greeting(
                _text(greeting["server_version_original"]), bool(greeting["capabilities"] & ClientFlag.SSL)
            )
            _use_tls_blocking(self._socket, self.tls, self.tls_host)
            self.check_login(greeting["auth_plugin"])
            self._authenticator = authenticator = authenticator_class()
            authenticator.nonce = bytes(greeting["auth_data"])
            authenticator.private, authenticator.check_login = self.private, self.check_login

        def _post_connection(self) -> None:
            pass

    return Connection


def _awaited_authenticator() -> Any:
    """`mysql.connector.aio.authentication.MySQLAuthenticator` with our hooks."""
    from mysql.connector.aio.authentication import MySQLAuthenticator
    from mysql.connector.aio.protocol import MySQLProtocol

    class Authenticator(MySQLAuthenticator):  # type: ignore[misc,unused-ignore]  # of Any if not installed
        nonce: bytes
        private: bool
        check_login: Callable[[str], None]

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
    from mysql.connector.constants import ClientFlag

    authenticator_class = _awaited_authenticator()

    class Connection(MySQLConnection):  # type: ignore[misc,unused-ignore]  # of Any if not installed
        check_greeting: Callable[[str, bool], None]
        check_login: Callable[[str], None]
        tls: ssl.SSLContext | None
        tls_host: str
        private: bool

        async def _do_handshake(self) -> None:
            self._ssl_disabled = self.tls is None
            await super()._do_handshake()
            self._client_flags &= ~_QUERY_ATTRIBUTES
            greeting: Any = self._handshake
            self.check_greeting(
                _text(greeting["server_version_original"]), bool(greeting["capabilities"] & ClientFlag.SSL)
            )
            _use_tls_awaited(self._socket, self.tls, self.tls_host)
            sock: Any = self._socket
            sock.close_connection = _leave_to_adapter
            self.check_login(greeting["auth_plugin"])
            self._authenticator = authenticator = authenticator_class()
            authenticator.nonce = bytes(greeting["auth_data"])
            authenticator.private, authenticator.check_login = self.private, self.check_login

        async def _post_connection(self) -> None:
            pass

    return Connection


async def _leave_to_adapter() -> None:
    """Do nothing after a failed login: the adapter drops the transport.

    The library's own waits for the end of a stream, which does not come after a failed TLS handshake.
    """


def _asks_for_password(strategy: Any, pkt: bytes) -> bool:
    return strategy.name == CACHING_SHA2 and pkt[4] == _AUTH_MORE_DATA and bytes(pkt[5:]) == FULL_LOGIN


def _use_tls_blocking(sock: Any, tls: ssl.SSLContext | None, host: str) -> None:
    def switch_to_ssl(context: ssl.SSLContext, *_: object) -> None:
        sock.sock = context.wrap_socket(sock.sock, server_hostname=host)

    sock.build_ssl_context = lambda **_: tls
    sock.switch_to_ssl = switch_to_ssl


def _use_tls_awaited(sock: Any, tls: ssl.SSLContext | None, host: str) -> None:
    async def switch_to_ssl(context: ssl.SSLContext) -> None:
        await sock._writer.start_tls(context, server_hostname=host)

    sock.build_ssl_context = lambda **_: tls
    sock.switch_to_ssl = switch_to_ssl


def _text(version: str | bytes) -> str:
    return version if isinstance(version, str) else version.decode("latin-1")
