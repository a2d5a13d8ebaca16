"""What all adapters share, whether their library blocks (`blocking`) or is awaited (`awaited`)."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ...config import ConnectionOptions, Endpoint
from ...dialect.statement import Statement
from ..failures import ends_connection, translate
from ..interface import ConnectionLost, Result
from ..login.plain_login import check_plugin
from ..login.tls import NoTLSOffered
from . import session
from .literals import packets
from .results import ProtocolSurprise
from .sockets import file_descriptor

#: Longest wait for a goodbye to be sent, in seconds. Nothing is lost if it is not.
GOODBYE_S = 1.0

#: Enough to ask a server for its own ``max_allowed_packet``, in bytes; the least it can be set to.
_PACKET_UNTIL_KNOWN = 1024


class Adapter(ABC):
    """A connection of one library, whether its calls are awaited or not."""

    #: The library's connection object.
    library: Any = None

    def __init__(self, config: ConnectionOptions, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
        self.server_version = ""
        self.max_allowed_packet = _PACKET_UNTIL_KNOWN
        self.closed = False
        self.config = config
        self.endpoint = endpoint
        self.tls = tls
        #: Longest times, in seconds: to send one packet, to hear its whole answer, and for a call of however many.
        self.write_s, self.read_s = config.write_timeout_s, config.read_timeout_s
        self.limit_s = self.write_s + self.read_s

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

    def check_login(self, plugin: str) -> None:
        """Go on or not, by the way to log in that the server proposes or asks for. Adapters call it before they answer.

        Raises:
            ConfigError: It wants the password itself, and may not have it.
        """
        check_plugin(plugin, self.config, self.endpoint, self.tls)

    def fileno(self) -> int:
        """The descriptor of the socket, or -1."""
        return file_descriptor(self.socket())

    @abstractmethod
    def socket(self) -> Any:
        """The socket, or None while there is none."""

    def packets(self, statements: Sequence[Statement]) -> list[bytes]:
        """The statements as one query packet; as one each without ``pipeline``, or if together they are too large."""
        if self.closed:
            raise ConnectionLost(f"The connection to MySQL at {self.endpoint} is closed.")
        return packets(statements, pipeline=self.config.pipeline, limit_bytes=self.max_allowed_packet)

    def check_results(self, statements: Sequence[Statement], results: list[Result]) -> list[Result]:
        """The results, if there is one for each statement, of its shape: else they might be other statements'."""
        if len(results) != len(statements):
            self.abort()
            raise ConnectionLost(
                f"{len(statements)} statements brought {len(results)} results; the connection was dropped."
            )
        for statement, result in zip(statements, results, strict=False):
            if statement.brings_rows is (result.columns == 0):  # None is neither
                self.abort()
                raise ConnectionLost(
                    f"A statement that brings {'' if statement.brings_rows else 'no '}rows was answered "
                    f"{'without' if statement.brings_rows else 'with'} them; the connection was dropped."
                )
        return results

    def check_pong(self, results: list[Result]) -> None:
        """See that a ping was answered by nothing but a word."""
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
    """What a failed ping means: also an error that the server sent, such as that it shuts down."""
    failure = translate(error, endpoint)
    return failure if isinstance(failure, ConnectionLost) else ConnectionLost(f"MySQL at {endpoint}: {failure}.")
