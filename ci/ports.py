"""TCP ports for private servers: a reserved port belongs to this process until it is released."""

from __future__ import annotations

import socket
import sys

# Sockets that are bound and never listen. While a server restarts, no other process gets its port: Linux picks a bound
# port neither for bind(0) nor for an outgoing connection, and lets a server with SO_REUSEADDR listen on it.
# Without them, servers of parallel tests exchanged ports during a restart: clients saw "Access denied".
_reserved: dict[int, socket.socket] = {}


def reserve_port(wanted: int = 0) -> int:
    """Return a TCP port of 127.0.0.1 on which no process listens, and which no other process receives.

    On systems other than Linux the port is free now, but not reserved.

    Args:
        wanted: A certain port; 0 means any.

    Raises:
        OSError: The wanted port is in use.
        OverflowError: It is not a valid port number.
    """
    reservation = socket.socket()
    try:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind(("127.0.0.1", wanted))
        port: int = reservation.getsockname()[1]
    except BaseException:
        reservation.close()
        raise
    if sys.platform == "linux" and port not in _reserved:
        _reserved[port] = reservation
    else:
        reservation.close()
    return port


def release_port(port: int) -> None:
    """Release a port. Does nothing if it is not reserved."""
    reservation = _reserved.pop(port, None)
    if reservation is not None:
        reservation.close()
