"""Sockets of the libraries: their options, dropping them at once, and detaching them in a forked child."""

from __future__ import annotations

import _socket
import asyncio
import os
import select
import socket
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol


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
