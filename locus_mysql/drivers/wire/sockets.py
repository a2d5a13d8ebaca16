"""Sockets: options, waits that end by one deadline (also on a busy loop), dropping them, detaching them in a child.

A socket's own time-out restarts with every piece that arrives, so it never ends a wait for a server that sends a
byte from time to time. Therefore blocking libraries log in on a `BoundedSocket`, and `blocking` continues to use it.
"""

from __future__ import annotations

import _socket
import asyncio
import os
import select
import socket
import ssl
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from ...config import Endpoint

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


class SocketOwner(Protocol):
    """The owner of a socket, which a fork must detach."""

    closed: bool

    def fileno(self) -> int:
        """The file descriptor of the socket, or -1."""


def configure(sock: Any) -> None:
    """Send small packets at once, and notice a peer that vanished."""
    if sock is None or sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    with suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def file_descriptor(sock: Any) -> int:
    """The descriptor of a socket; -1 if there is none or it is closed."""
    return -1 if sock is None else int(sock.fileno())


def unread_check(sock: Any) -> Callable[[], object]:
    """Return a function that checks, without waiting, whether a socket has unread data, or its end.

    Args:
        sock: A socket; it must be open whenever the function is called.
    """
    if not hasattr(select, "poll"):
        return lambda: select.select([sock], [], [], 0)[0]
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return partial(poll.poll, 0)


def shut(sock: Any) -> None:
    """End both directions now, which also wakes a thread that waits on the socket. The descriptor stays open."""
    with suppress(OSError, ValueError):
        if isinstance(sock, _socket.socket):
            # Not sock.shutdown(): with TLS that first forgets the cipher, and another thread might then send
            # plain text.
            _socket.socket.shutdown(sock, socket.SHUT_RDWR)
        elif sock is not None:  # a transport's, of which uvloop's cannot be shut down; or one of gevent or eventlet
            with socket.socket(fileno=os.dup(sock.fileno())) as same:
                same.shutdown(socket.SHUT_RDWR)


def abort_transport(transport: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Drop an asyncio transport's socket at once, also when its event loop is closed."""
    if transport is None:
        return
    with suppress(AttributeError):  # a TLS transport that was closed twice no longer has its socket
        shut(transport.get_extra_info("socket"))
    with suppress(Exception):  # also marks a uvloop transport as closed when its loop is closed
        transport.abort()
    if not loop.is_closed():
        return
    # A transport asks its loop to close the socket, and a closed loop refuses: the socket would stay open
    # until it is freed, which then warns. The attributes are asyncio's own (3.11 to 3.14); the transports of
    # other loops have none of them.
    layers: tuple[Any, Any] = (
        transport,
        getattr(getattr(transport, "_ssl_protocol", None), "_transport", None),
    )
    for layer in layers:
        raw = getattr(layer, "_sock", None)
        if raw is not None:
            raw.close()
            layer._sock = None
        for flag in ("_closing", "_closed"):
            if hasattr(layer, flag):
                setattr(layer, flag, True)


_owners: weakref.WeakSet[Any] = weakref.WeakSet()


def guard_at_fork(owner: SocketOwner) -> None:
    """Ensure that a forked child sends nothing on the owner's socket, which it shares with this process.

    In the child the descriptor is made to point to ``/dev/null``. So no clean-up of a library in the child can reach
    the server: Connector/Python shuts the socket down in ``__del__``, and closing an asyncio transport would take the
    parent's socket out of the epoll set, which is shared too.
    """
    _owners.add(owner)


def _disown_sockets() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    try:
        for owner in list(_owners):
            descriptor = owner.fileno()
            owner.closed = True
            if descriptor >= 0:
                os.dup2(nowhere, descriptor, inheritable=False)
    finally:
        os.close(nowhere)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_sockets)


#: The timeout is counted in this number of ticks.
_TICKS = 100


class ResponsiveTimeout:
    """Ends a block of code with `TimeoutError` after some seconds in which the event loop was responsive.

    The limit is divided into a hundred ticks, and a tick that comes late counts once, however late it is. So an idle
    loop ends the block after exactly the limit; a blocked loop takes a hundred turns, in each of which the block can
    continue.

    Args:
        limit_s: The limit, in seconds.
    """

    def __init__(self, limit_s: float) -> None:
        self._tick_s = limit_s / _TICKS
        self._ticks_left = _TICKS
        self._timeout = asyncio.timeout(None)
        self._late = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._timeout.__aenter__()
        self._due = self._loop.time() + self._tick_s
        self._timer = self._loop.call_at(self._due, self._tick)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def expired(self) -> bool:
        """Check whether the limit has passed."""
        return self._timeout.expired()

    def was_blocked(self) -> bool:
        """Check whether the loop was blocked for more than a tick since the block began, or since the last call.

        False once the limit has passed.
        """
        if self._ticks_left and self._is_late():
            self._timer.cancel()
            self._tick()
        blocked, self._late = self._late, False
        return blocked and self._ticks_left > 0

    def _tick(self) -> None:
        if self._is_late():
            self._late = True
            self._due = self._loop.time()
        self._ticks_left -= 1
        if self._ticks_left == 0:
            self._timeout.reschedule(self._due)
            return
        self._due += self._tick_s
        self._timer = self._loop.call_at(self._due, self._tick)

    def _is_late(self) -> bool:
        return self._loop.time() > self._due + self._tick_s
