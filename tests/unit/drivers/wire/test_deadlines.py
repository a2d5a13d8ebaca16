"""Sockets with a deadline that slowly arriving bytes do not prolong."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from time import monotonic

import pytest

from locus_mysql.config import Endpoint
from locus_mysql.drivers.wire.deadlines import BoundedContext, BoundedSocket, connect

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


def test_bytes_that_drip_do_not_prolong_it(pair: tuple[BoundedSocket, socket.socket]) -> None:
    bounded, other = pair
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.02):
            other.send(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    start = monotonic()
    bounded.deadline = start + LIMIT_S
    bounded.settimeout(None)  # as a library may do
    with pytest.raises(TimeoutError), bounded.makefile("rb") as stream:
        stream.read(1_000_000)
    assert LIMIT_S <= monotonic() - start < NEVER_S
    over.set()
    thread.join()


def test_sending_ends_with_it(pair: tuple[BoundedSocket, socket.socket]) -> None:
    start = monotonic()
    pair[0].deadline = start + LIMIT_S
    with pytest.raises(TimeoutError):
        pair[0].sendall(bytes(50_000_000))
    assert LIMIT_S <= monotonic() - start < NEVER_S


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


def test_a_handshake_ends_with_it(pair: tuple[BoundedSocket, socket.socket]) -> None:
    context = BoundedContext(ssl.PROTOCOL_TLS_CLIENT)
    start = monotonic()
    pair[0].deadline = start + LIMIT_S
    with pytest.raises(TimeoutError):
        context.wrap_socket(pair[0], server_hostname="db")
    assert monotonic() - start < NEVER_S


def test_the_error_of_a_closed_port_has_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with connect(Endpoint("127.0.0.1", port), monotonic() + 10) as sock:
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    with pytest.raises(ConnectionRefusedError):
        connect(Endpoint("127.0.0.1", port), monotonic() + 10)
    with pytest.raises(FileNotFoundError):
        connect(Endpoint("localhost", 1, "/nowhere/mysqld.sock"), monotonic() + 10)
