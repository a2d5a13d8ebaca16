"""Blocking sockets whose waits all end by one deadline, even if data arrives in small pieces.

A socket's own time-out restarts with every piece that arrives, so it never ends a wait for a server that sends a
byte from time to time. Therefore the libraries log in on one of these sockets, and `blocking` continues to use it.
"""

from __future__ import annotations

import socket
import ssl
from time import monotonic
from typing import TYPE_CHECKING, Any

from ...config import Endpoint
from .sockets import configure

#: The value of a new time-out, and the largest one that is not replaced, as multiples of the remaining time.
_SET, _MOST = 1.005, 1.01

if TYPE_CHECKING:
    _Socket = socket.socket
else:
    _Socket = object


class _Bounded(_Socket):
    """The methods of a socket whose waits end at its deadline, whatever time-out a library sets."""

    #: The time at which waits fail, by the monotonic clock; it must be set before the first wait.
    deadline: float = 0.0

    def shorten_wait(self) -> None:
        """Set the time-out of the next call to the time left until the deadline, or up to a hundredth more.

        Each change is a system call. Thanks to the margin, calls in quick succession need none.

        Raises:
            TimeoutError: The deadline has passed.
        """
        left = self.deadline - monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        timeout = self.gettimeout()
        if timeout is None or not left <= timeout <= _MOST * left:
            self.settimeout(_SET * left)

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """As in `socket.socket`."""
        self.shorten_wait()
        return super().recv(buflen, flags)

    def recv_into(self, *args: Any) -> int:
        """As in `socket.socket`."""
        self.shorten_wait()
        return super().recv_into(*args)

    def send(self, *args: Any, **options: Any) -> int:
        """As in `socket.socket`; gevent, which replaces that class, has one argument more."""
        self.shorten_wait()
        return super().send(*args, **options)

    def sendall(self, *args: Any) -> None:
        """As in `socket.socket`, whose time-out covers the whole call. With TLS it consists of many calls of `send`."""
        self.shorten_wait()
        super().sendall(*args)


class BoundedSocket(_Bounded, socket.socket):
    """A socket whose waits end at its deadline."""


class BoundedTLSSocket(_Bounded, ssl.SSLSocket):
    """The same with TLS. Small sends and all receives bypass some layers of `ssl.SSLSocket`."""

    def recv_into(self, *args: Any) -> int:
        """As in `socket.socket`."""
        if len(args) != 1 or self._sslobj is None:  # type: ignore[attr-defined]  # of SSLSocket, which typeshed hides
            return super().recv_into(*args)
        self.shorten_wait()
        return self.read(len(args[0]), args[0])  # type: ignore[return-value]  # with a buffer it returns the number of bytes

    def sendall(self, *args: Any) -> None:
        """As in `socket.socket`; each call of `send` shortens the wait."""
        data = args[0]
        sent = self.send(data)
        if sent < len(data):
            super().sendall(memoryview(data)[sent:], *args[1:])


class BoundedContext(ssl.SSLContext):
    """A context whose blocking sockets are bounded. For asyncio, which creates none, it is an ordinary context."""

    sslsocket_class = BoundedTLSSocket

    def wrap_socket(self, sock: socket.socket, *args: Any, **options: Any) -> ssl.SSLSocket:
        """As of `ssl.SSLContext`, with the deadline of the socket, which bounds the handshake too."""
        if not isinstance(sock, BoundedSocket):
            return super().wrap_socket(sock, *args, **options)
        deadline = sock.deadline
        sock.shorten_wait()
        wrapped: Any = super().wrap_socket(sock, *args, **options)
        wrapped.__class__ = self.sslsocket_class  # eventlet, which replaces `ssl.SSLContext`, does not look at that
        wrapped.deadline = deadline
        return wrapped  # type: ignore[no-any-return]


def connect(endpoint: Endpoint, deadline: float) -> BoundedSocket:
    """Return a socket that was connected before the deadline, which stays in force.

    Args:
        endpoint: The server. If the host has several addresses, each is tried until one answers. The time of the
            system's resolver is not limited here.
        deadline: A time of the monotonic clock.

    Raises:
        OSError: No address answered.
    """
    if endpoint.unix_socket is not None:
        return _connect_to(socket.AF_UNIX, endpoint.unix_socket, deadline)
    failure: OSError | None = None
    for family, _, _, _, address in socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM):
        try:
            return _connect_to(family, address, deadline)
        except OSError as error:
            failure = failure or error
    raise failure or OSError(f"{endpoint.host} has no address")


def _connect_to(family: int, address: Any, deadline: float) -> BoundedSocket:
    sock = BoundedSocket(family, socket.SOCK_STREAM)
    try:
        sock.deadline = deadline
        sock.shorten_wait()
        sock.connect(address)
        configure(sock)
    except BaseException:
        sock.close()
        raise
    return sock
