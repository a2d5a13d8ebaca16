"""Sockets with a deadline that slowly arriving bytes do not prolong."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from time import monotonic

import pytest

from locus_mysql.config import Endpoint
from locus_mysql.drivers.wire.sockets import BoundedSocket, connect

LIMIT_S, NEVER_S = 0.2, 3.0


@pytest.fixture
def pair() -> Iterator[tuple[BoundedSocket, socket.socket]]:
    one, other = socket.socketpair()
    bounded = BoundedSocket(fileno=one.detach())
    with bounded, other:
        yield bounded, other


def test_a_bounded_socket_requires_a_deadline(pair: tuple[BoundedSocket, socket.socket]) -> None:
    with pytest.raises(TimeoutError):
        pair[0].send(b"x")


def test_a_timeout_is_set_again_only_when_the_deadline_requires_it(pair: tuple[BoundedSocket, socket.socket]) -> None:
    bounded, _ = pair
    bounded.deadline = monotonic() + 1000
    bounded.shorten_wait()
    first = bounded.gettimeout()
    bounded.shorten_wait()
    assert first is not None
    assert bounded.gettimeout() == first
    assert 1000 <= first <= 1010
    bounded.deadline = monotonic() + 100
    bounded.shorten_wait()
    assert 99 < (bounded.gettimeout() or 0) <= 101
    bounded.deadline = monotonic() + 1000
    bounded.shorten_wait()
    assert 999 < (bounded.gettimeout() or 0) <= 1010


def test_the_error_of_a_closed_port_has_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with connect(Endpoint("127.0.0.1", port), monotonic() + 10) as sock:
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    with pytest.raises(ConnectionRefusedError):
        connect(Endpoint("127.0.0.1", port), monotonic() + 10)
    with pytest.raises(FileNotFoundError):
        connect(Endpoint("localhost", 1, "/nowhere/mysqld.sock"), monotonic() + 10)
