"""A minimal client of the HTTP service, with low cost: one connection that is kept open."""

from __future__ import annotations

import asyncio
from urllib.parse import quote


class Connection(asyncio.Protocol):
    """A connection that carries one request at a time.

    Args:
        token: The token that each request contains.
    """

    def __init__(self, token: str) -> None:
        self._head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\n".encode()
        self._transport: asyncio.Transport
        self._received = bytearray()
        self._body_at = self._wanted = 0
        self._answer: asyncio.Future[bytes] | None = None
        #: Whether the connection is closed, as the service closes idle ones.
        self.lost = False

    @classmethod
    async def to(cls, port: int, token: str) -> Connection:
        """Connect to a service on this machine."""
        _, connection = await asyncio.get_running_loop().create_connection(lambda: cls(token), "127.0.0.1", port)
        return connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of the open connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Mark the connection as closed."""
        self.lost = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the service closed the connection"))

    def data_received(self, data: bytes) -> None:
        """Receive a part of an answer."""
        self._received += data
        if not self._body_at:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._received[:end].lower()
            at = head.index(b"content-length:") + 15
            self._body_at = end + 4
            self._wanted = self._body_at + int(head[at:].split(b"\r", 1)[0])
        if len(self._received) == self._wanted:
            answer = bytes(self._received)
            self._received.clear()
            body_at, self._body_at = self._body_at, 0
            if self._answer is None or self._answer.done():
                return
            if answer.startswith(b"HTTP/1.1 200 "):
                self._answer.set_result(answer[body_at:])
            else:
                self._answer.set_exception(AssertionError(answer[:500]))

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Send a request and return the body of its answer, whose status must be 200."""
        if self.lost:
            raise ConnectionError("the service closed the connection")
        self._answer = asyncio.get_running_loop().create_future()
        about = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body) if body else b""
        line = f"{method} {path} HTTP/1.1\r\n".encode()
        self._transport.write(b"".join((line, self._head, about, b"\r\n", body)))
        return await self._answer

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


def path_of(thread_id: str, checkpoint_id: str = "") -> str:
    """Return the path of a thread's checkpoints, or of one of them."""
    path = f"/threads/{quote(thread_id, safe='')}/checkpoints"
    return f"{path}/{quote(checkpoint_id, safe='')}" if checkpoint_id else path
