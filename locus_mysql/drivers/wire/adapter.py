"""Base of all adapters, whether their library blocks (`blocking`) or is awaited (`awaited`)."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...config import ConnectionOptions, Endpoint
from ...dialect.statement import Statement, brings_rows
from ...dialect.variants import FamilyRefused, Variant
from ...errors import ConfigError, UnsupportedServer
from ..failures import ends_connection, translate
from ..interface import ConnectionLost, Result, ServerError, Traffic
from ..login import MAX_RSA_PASSWORD_BYTES, NoTLSOffered, check_plugin
from . import session
from .literals import packets
from .results import ErrorPacket, ProtocolSurprise
from .sockets import file_descriptor

#: Longest wait for COM_QUIT to be sent, in seconds. Nothing is lost if it is not sent.
GOODBYE_S = 1.0

#: The ``max_allowed_packet``, in bytes, that is assumed until the server was asked for its own: room for the settings
#: of the session. No server that accepts less could store anything of use.
_PACKET_UNTIL_KNOWN = 4096


class Adapter(ABC):
    """A connection of one library, whether its calls are awaited or not."""

    #: The library's connection object.
    library: Any = None

    def __init__(self, config: ConnectionOptions, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
        self.server_version = ""
        self.max_allowed_packet = _PACKET_UNTIL_KNOWN
        self.closed = False
        self.traffic = Traffic()
        #: Whether the server took no writes when the connection was opened.
        self.read_only = False
        #: The engine's variant of the dialect; None for MySQL.
        self.variant: Variant | None = None
        self.config = config
        self.endpoint = endpoint
        self.tls = tls
        #: Limits in seconds: for sending a packet, for its whole answer, and for a call of any number of packets.
        self.write_s, self.read_s = config.write_timeout_s, config.read_timeout_s
        self.limit_s = self.write_s + self.read_s

    @property
    def address(self) -> dict[str, Any]:
        """Return the arguments of a library's connection that all libraries name alike."""
        one = self.endpoint
        return {"host": one.host, "port": one.port, "unix_socket": one.unix_socket, "user": self.config.user}

    def check_greeting(self, server_version: str, offers_tls: bool) -> None:
        """Check the server's greeting. Adapters call this before they log in.

        Raises:
            UnsupportedServer: See `session.check_server_version`.
            NoTLSOffered: This attempt needs TLS, and the server offers none.
        """
        if server_version != session.AMBIGUOUS:
            session.check_server_version(server_version)
        self.server_version = server_version
        if self.tls is not None and not offers_tls:
            raise NoTLSOffered

    @property
    def private(self) -> bool:
        """Return whether the packets are protected from being read on a network."""
        return self.tls is not None or self.endpoint.unix_socket is not None

    @property
    def supports_group_commit(self) -> bool:
        """Return whether writes of several calls may be sent in one transaction."""
        return self.variant is None or self.variant.supports_group_commit

    def check_login(self, plugin: str) -> None:
        """Decide whether to use an authentication plugin. Adapters call this before they answer the server.

        Raises:
            ConfigError: The plugin sends the password in clear text, and this server must not get it so.
        """
        check_plugin(plugin, self.config, self.endpoint, self.tls)

    def fileno(self) -> int:
        """The descriptor of the socket, or -1."""
        return file_descriptor(self.socket())

    @abstractmethod
    def socket(self) -> Any:
        """The socket, or None while there is none."""

    def packets(self, statements: Sequence[Statement]) -> list[bytes]:
        """The statements as one query packet; as one packet each without ``pipeline``, or if one would be too large."""
        if self.closed:
            raise ConnectionLost(f"The connection to MySQL at {self.endpoint} is closed.")
        if self.variant is not None:
            statements = self._translated(statements, self.variant)
        return packets(statements, pipeline=self.config.pipeline, limit_bytes=self.max_allowed_packet)

    def check_results(self, statements: Sequence[Statement], results: list[Result]) -> list[Result]:
        """Return the results if they fit the statements; otherwise drop the connection, as they answer other ones."""
        if len(results) != len(statements):
            self.abort()
            raise ConnectionLost(
                f"{len(statements)} statements brought {len(results)} results; the connection was dropped."
            )
        for statement, result in zip(statements, results, strict=False):
            expected = brings_rows(statement.sql[:64])  # as `Statement.brings_rows`, without a call for each statement
            if expected is (result.columns == 0):  # None is neither
                self.abort()
                raise ConnectionLost(
                    f"A statement that brings {'' if expected else 'no '}rows was answered "
                    f"{'without' if expected else 'with'} them; the connection was dropped."
                )
        if self.variant is not None:
            rows_of = self.variant.rows
            return [
                replace(result, rows=rows_of(statement, result.rows))
                for statement, result in zip(statements, results, strict=True)
            ]
        return results

    def _translated(self, statements: Sequence[Statement], variant: Variant) -> Sequence[Statement]:
        try:
            return [variant.statement(statement) for statement in statements]
        except FamilyRefused as error:
            raise UnsupportedServer(f"{error} The server is at {self.endpoint}.") from None

    def check_pong(self, results: list[Result]) -> None:
        """Check that a ping was answered by an OK without rows."""
        if len(results) != 1 or results[0].columns:
            raise ProtocolSurprise("a ping was answered with rows")

    def login_failure(self, error: Exception) -> Exception:
        """Return the exception to raise for an error while connecting and logging in."""
        size = len(self.config.password_text.encode())
        if isinstance(error, ValueError) and not self.private and size > MAX_RSA_PASSWORD_BYTES:
            return ConfigError(
                f"The password of user {self.config.user!r} has {size} bytes. Without TLS, no more than "
                f"{MAX_RSA_PASSWORD_BYTES} can be encrypted with an RSA key of 2048 bits, which MySQL makes. Set "
                "ssl_mode to REQUIRED, or choose a shorter password."
            )
        return translate(error, self.endpoint, connecting=True)

    def failure(self, error: Exception, statements: Sequence[Statement] = ()) -> Exception:
        """Return the exception to raise; drop the connection if nothing more can be sent on it.

        Args:
            error: The library's exception, or the error in the answer.
            statements: Those that were sent.
        """
        failure = translate(error, self.endpoint)
        if self.variant is not None and isinstance(failure, ServerError):
            place = error.statement_index if isinstance(error, ErrorPacket) else 0
            failed = statements[place] if place < len(statements) else None
            failure = ServerError(*self.variant.error(failure.errno, failure.message, failed))
        if isinstance(failure, ServerError) and isinstance(error, ErrorPacket):
            failure.statement_index = error.statement_index
        if ends_connection(failure):
            self.abort()
        return failure

    @abstractmethod
    def abort(self) -> None:
        """Drop the socket at once; never raises."""


def as_loss(error: Exception, endpoint: Endpoint) -> ConnectionLost:
    """Return a failed ping as a loss of the connection, also if the server sent an error, as when it shuts down."""
    failure = translate(error, endpoint)
    return failure if isinstance(failure, ConnectionLost) else ConnectionLost(f"MySQL at {endpoint}: {failure}.")
