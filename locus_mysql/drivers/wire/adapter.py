"""What all adapters share, whether their library blocks (`blocking`) or is awaited (`awaited`)."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ...config import ConnectionOptions, Endpoint
from ...dialect.statement import Statement
from ..failures import ends_connection, translate
from ..interface import ConnectionLost, Result, Session, Traffic
from ..login.plain_login import check_plugin
from ..login.tls import NoTLSOffered
from . import session
from .literals import packets
from .results import ProtocolSurprise
from .sockets import file_descriptor

#: Longest wait for a goodbye to be sent, in seconds. Nothing is lost if it is not.
GOODBYE_S = 1.0

#: The least that ``max_allowed_packet`` can be set to, in bytes: enough to ask the server for its own.
_PACKET_UNTIL_KNOWN = 1024


class Adapter(ABC):
    """A connection of one library, whether its calls are awaited or not."""

    #: The library's connection object.
    library: Any = None

    def __init__(self, config: ConnectionOptions, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
        self.server_version = ""
        self.max_allowed_packet = _PACKET_UNTIL_KNOWN
        self.closed = False
        self.traffic = Traffic()
        self.session: Session | None = None
        self.config = config
        self.endpoint = endpoint
        self.tls = tls
        #: Longest times in seconds: for sending a packet, for its whole answer, and for a call, however many it sends.
        self.write_s, self.read_s = config.write_timeout_s, config.read_timeout_s
        self.limit_s = self.write_s + self.read_s

    def judge(self, server_version: str, offers_tls: bool) -> None:
        """Decide by the server's greeting whether to go on. Adapters call this before they log in.

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

    def check_login(self, plugin: str) -> None:
        """Decide whether to log in as the server proposes or asks. Adapters call this before they answer.

        Raises:
            ConfigError: The server wants the password itself, and must not have it.
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
        return packets(statements, pipeline=self.config.pipeline, limit_bytes=self.max_allowed_packet)

    def check_results(self, statements: Sequence[Statement], results: list[Result]) -> list[Result]:
        """Return the results if they fit the statements; otherwise they may be the answer to something else."""
        if len(results) != len(statements):
            self.abort()
            raise ConnectionLost(
                f"{len(statements)} statements brought {len(results)} results; the connection was dropped."
            )
        for statement, result in zip(statements, results, strict=False):
            brings_rows = statement.brings_rows
            if brings_rows is (result.columns == 0):  # None is neither
                self.abort()
                raise ConnectionLost(
                    f"A statement that brings {'' if brings_rows else 'no '}rows was answered "
                    f"{'without' if brings_rows else 'with'} them; the connection was dropped."
                )
        return results

    def check_pong(self, results: list[Result]) -> None:
        """Make sure that a ping was answered by a bare OK."""
        if len(results) != 1 or results[0].columns:
            raise ProtocolSurprise("a ping was answered with rows")

    def failure(self, error: Exception) -> Exception:
        """The exception to raise; the connection is dropped if nothing more can be sent on it."""
        failure = translate(error, self.endpoint)
        if ends_connection(failure):
            self.abort()
        return failure

    @abstractmethod
    def abort(self) -> None:
        """Drop the socket at once; never raises."""


def as_loss(error: Exception, endpoint: Endpoint) -> ConnectionLost:
    """The loss of the connection that a failed ping means, also if the server sent an error, as when it shuts down."""
    failure = translate(error, endpoint)
    return failure if isinstance(failure, ConnectionLost) else ConnectionLost(f"MySQL at {endpoint}: {failure}.")
