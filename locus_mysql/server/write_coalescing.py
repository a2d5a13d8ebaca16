"""`CoalescingTransport`: sends an answer's head and body together."""

from __future__ import annotations

import asyncio
from typing import Any

#: Data beyond this size is sent at once, not buffered.
BUFFER_BYTES = 65_536


class CoalescingTransport:
    """A transport that sends all writes of one turn of the event loop with one system call.

    Uvicorn writes an answer's head and body separately, which nearly always happens in the same turn. On a busy machine
    a second system call costs as much as parsing the request.

    Args:
        transport: The wrapped transport.
        loop: Its event loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data at the end of this turn of the event loop."""
        if len(data) > BUFFER_BYTES:
            self.flush()
            self._transport.write(data)
            return
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(data)
        if len(self._pieces) > 1 and sum(map(len, self._pieces)) > BUFFER_BYTES:
            self.flush()  # an endless answer may never end its turn

    def flush(self) -> None:
        """Send the buffered data."""
        pieces, self._pieces = self._pieces, []
        if pieces and not self._transport.is_closing():
            self._transport.write(b"".join(pieces))

    def close(self) -> None:
        """Send the buffered data, and close the connection."""
        self.flush()
        self._transport.close()
