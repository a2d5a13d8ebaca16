"""`RawClient`: sends raw bytes as requests, including malformed ones."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

#: The timeout of a response in seconds, sufficient on a busy machine.
PATIENCE_S = 120.0


@dataclass
class RawAnswer:
    """A raw response."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def code(self) -> str:
        """Return the code of the error, after checking that it is JSON and has a request id."""
        error = json.loads(self.body)["error"]
        assert set(error) == {"code", "message", "request_id"}
        assert self.headers["content-type"] == "application/json"
        assert error["request_id"] == self.headers["x-request-id"]
        return str(error["code"])


class RawClient:
    """A connection to a service.

    Args:
        url: The base of its URLs.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.host = f"{parts.hostname}:{parts.port}"
        self.socket = socket.create_connection((parts.hostname, parts.port), PATIENCE_S)
        self._left = b""

    def send(self, data: bytes) -> None:
        """Send bytes unchanged, except that HOST is replaced by the service's host."""
        self.socket.sendall(data.replace(b"HOST", self.host.encode()))

    def post(self, path: str, body: bytes, *headers: str) -> RawAnswer:
        """Send a complete request."""
        head = [f"POST {path} HTTP/1.1", f"Host: {self.host}", f"Content-Length: {len(body)}", *headers]
        if not any(one.lower().startswith("content-type") for one in headers):
            head.append("Content-Type: application/json")
        self.socket.sendall("\r\n".join([*head, "", ""]).encode("latin-1") + body)
        return self.answer()

    def request(self, method: str, path: str, *headers: str) -> RawAnswer:
        """Send a request without a body."""
        self.socket.sendall("\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {self.host}", *headers, "", ""]).encode())
        return self.answer(head_only=method == "HEAD")

    def answer(self, *, head_only: bool = False) -> RawAnswer:
        """Return the next response, skipping those with status 100."""
        while True:
            while b"\r\n\r\n" not in self._left:
                self._more()
            head, _, self._left = self._left.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            status = int(first.split(" ")[1])
            if status != 100:
                break
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        size = 0 if head_only else int(headers.get("content-length", "0"))
        while len(self._left) < size:
            self._more()
        body, self._left = self._left[:size], self._left[size:]
        return RawAnswer(status, headers, body)

    def is_closed(self) -> bool:
        """Wait for the service to close the connection; False if it sends something instead."""
        try:
            return not self._left and self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _more(self) -> None:
        piece = self.socket.recv(65536)
        if not piece:
            raise EOFError(f"The service closed the connection after {self._left!r}.")
        self._left += piece

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def state(**fields: Any) -> bytes:
    """The body of a save."""
    return json.dumps({"checkpoint_id": "c", "thread_id": "t", "state": {"messages": []}, **fields}).encode()
