"""The network between the members of a private group, which can be cut: `MemberLinks`.

Each member announces the address of a proxy to the others, and logs in there under a name of its own, so that a proxy
knows which two members each connection links. For this, the group uses MySQL's own protocol between its members
(``group_replication_communication_stack=MYSQL``), without TLS.

https://dev.mysql.com/doc/refman/9.7/en/group-replication-connection-security.html
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable

_CHUNK_BYTES = 1 << 16

#: Place of the user's name in the first packet of a client: after the header, the capabilities, the largest packet, the
#: character set, and 23 reserved bytes ("Protocol::HandshakeResponse41" in MySQL's source documentation).
_NAME_AT = 4 + 4 + 4 + 1 + 23


def user_of(number: int) -> str:
    """The user under which a member logs in to the others."""
    return f"member_{number}"


class MemberLinks:
    """Proxies in front of the members, which forward the traffic between them.

    Args:
        ports: The port of each member on 127.0.0.1; they are numbered from 1.
    """

    def __init__(self, ports: Iterable[int]) -> None:
        self._links: list[_Link] = []
        self._lock = threading.Lock()
        self._cut: frozenset[int] = frozenset()
        #: The ports of the proxies.
        self.ports: list[int] = []
        self._listeners: list[socket.socket] = []
        for number, port in enumerate(ports, 1):
            listener = socket.create_server(("127.0.0.1", 0))
            self._listeners.append(listener)
            self.ports.append(listener.getsockname()[1])
            threading.Thread(target=self._accept, args=(listener, number, port), daemon=True).start()

    def cut(self, members: frozenset[int]) -> None:
        """Cut these members off from all others, and connect the others again.

        Open connections stay open, but forward no more data. New ones are refused, as a member that waits for an answer
        to its login does nothing else meanwhile.
        """
        with self._lock:
            self._cut = members
            for link in self._links:
                link.pass_on(not members & link.members)

    def close(self) -> None:
        """Close all connections, and stop accepting new ones."""
        for listener in self._listeners:
            listener.close()
        with self._lock:
            for link in self._links:
                link.close()

    def _accept(self, listener: socket.socket, number: int, port: int) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._connect, args=(client, number, port), daemon=True).start()

    def _connect(self, client: socket.socket, number: int, port: int) -> None:
        """Forward a connection to a member, as soon as its first packet identifies the other member."""
        with contextlib.suppress(OSError):
            server = socket.create_connection(("127.0.0.1", port))
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(server.recv(_CHUNK_BYTES))
            login = client.recv(_CHUNK_BYTES)
            name = login[_NAME_AT:].split(b"\0", 1)[0].decode()
            if not name.startswith("member_"):  # it was closed without a login
                server.close()
                client.close()
                return
            link = _Link(client, server, frozenset({number, int(name.removeprefix("member_"))}))
            with self._lock:
                self._links = [one for one in self._links if not one.closed]
                refused = bool(self._cut & link.members)
                if not refused:
                    self._links.append(link)
            if refused:
                link.close()
            else:
                link.forward(login)
            return
        client.close()


class _Link:
    """A connection between two members."""

    def __init__(self, client: socket.socket, server: socket.socket, members: frozenset[int]) -> None:
        self.members = members
        self.closed = False
        self._client = client
        self._server = server
        self._passing = threading.Event()
        self._passing.set()

    def pass_on(self, passing: bool) -> None:
        """Forward packets, or hold them back."""
        (self._passing.set if passing else self._passing.clear)()

    def close(self) -> None:
        """Close both sides."""
        self.closed = True
        self._passing.set()
        for one in (self._client, self._server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def forward(self, first: bytes) -> None:
        """Forward these bytes of the client, and all that follow in both directions."""
        threading.Thread(target=self._pump, args=(self._server, self._client, b""), daemon=True).start()
        self._pump(self._client, self._server, first)

    def _pump(self, source: socket.socket, target: socket.socket, data: bytes) -> None:
        with contextlib.suppress(OSError):
            while not self.closed:
                data = data or source.recv(_CHUNK_BYTES)
                if not data:
                    break
                self._passing.wait()
                target.sendall(data)
                data = b""
        self._passing.wait()  # a cut link does not forward the end of a connection either
        self.close()
