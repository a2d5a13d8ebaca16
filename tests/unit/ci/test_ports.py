from __future__ import annotations

import socket
import sys

import pytest

from ci.ports import release_port, reserve_port

only_on_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not let a server listen beside it")


@only_on_linux
def test_a_reserved_port_is_given_to_nobody_else_while_no_server_listens() -> None:
    port = reserve_port()
    try:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    finally:
        release_port(port)


def test_a_server_listens_on_a_reserved_port_again_and_again() -> None:
    port = reserve_port()
    try:
        for _ in range(3):
            with (
                socket.create_server(("127.0.0.1", port)),
                socket.create_connection(("127.0.0.1", port)),
                pytest.raises(OSError, match="in use"),
            ):
                reserve_port(port)
            assert reserve_port(port) == port
    finally:
        release_port(port)


def test_a_released_port_is_free() -> None:
    port = reserve_port()
    release_port(port)
    release_port(port)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
