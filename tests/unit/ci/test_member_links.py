"""The network between members of a private group: forwarded by pairs of members, and cut for one of them."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ci.member_links import MemberLinks, user_of

PATIENCE_S = 10.0
GREETING = b"greeting"


def login(number: int) -> bytes:
    return b"\0" * 36 + user_of(number).encode() + b"\0rest"


class Members:
    """Three listening sockets, and the proxies in front of them."""

    def __init__(self) -> None:
        self.listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        self.links = MemberLinks(listener.getsockname()[1] for listener in self.listeners)

    def connect(self, source: int, target: int) -> tuple[socket.socket, socket.socket]:
        """Log in as one member at another; return both ends after the login."""
        client = socket.create_connection(("127.0.0.1", self.links.ports[target - 1]), PATIENCE_S)
        self.listeners[target - 1].settimeout(PATIENCE_S)
        server, _ = self.listeners[target - 1].accept()
        server.settimeout(PATIENCE_S)
        server.sendall(GREETING)
        assert client.recv(100) == GREETING
        client.sendall(login(source))
        return client, server

    def close(self) -> None:
        """Close all."""
        self.links.close()
        for listener in self.listeners:
            listener.close()


@pytest.fixture
def members() -> Iterator[Members]:
    made = Members()
    yield made
    made.close()


def test_packets_pass_in_both_directions_and_an_end_reaches_the_other_side(members: Members) -> None:
    client, server = members.connect(1, 2)
    assert server.recv(100) == login(1)
    client.sendall(b"question")
    assert server.recv(100) == b"question"
    server.sendall(b"answer")
    assert client.recv(100) == b"answer"
    client.close()
    assert server.recv(100) == b""


@pytest.mark.parametrize(("source", "target"), [(1, 2), (2, 1)])
def test_a_cut_keeps_packets_of_a_member_back_and_lets_those_of_the_others_pass(
    members: Members, source: int, target: int
) -> None:
    (client, server), (other_client, other_server) = members.connect(source, target), members.connect(2, 3)
    assert server.recv(100) == login(source)
    assert other_server.recv(100) == login(2)
    members.links.cut(frozenset({1}))
    for one in (client, server):
        one.sendall(b"late")
    other_client.sendall(b"passes")
    assert other_server.recv(100) == b"passes"
    for one in (client, server):
        one.settimeout(0.05)
        with pytest.raises(TimeoutError):
            one.recv(100)
        one.settimeout(PATIENCE_S)
    members.links.cut(frozenset())
    assert (client.recv(100), server.recv(100)) == (b"late", b"late")


def test_a_cut_refuses_new_connections_of_the_member(members: Members) -> None:
    members.links.cut(frozenset({1}))
    for source, target in ((1, 2), (2, 1)):
        client, server = members.connect(source, target)
        assert client.recv(100) == server.recv(100) == b""
    client, server = members.connect(3, 2)
    assert server.recv(100) == login(3)
