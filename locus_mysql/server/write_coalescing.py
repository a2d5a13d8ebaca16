"""Sending an answer's head and body together: `Gathering`."""

from __future__ import annotations

import asyncio
from typing import Any

#: More than this is not gathered, but sent as it comes.
GATHERED_BYTES = 65_536


class Gathering:
    """A transport that sends what is written within one turn of the event loop with one system call.

    Uvicorn writes an answer's head when it begins and its body when that is there, which for nearly all answers here is
    the same moment. On a busy machine a second call costs as much as parsing the request does.

    Args:
        transport: The transport proper, which does all else.
        loop: Its event loop.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send this, soon."""
        if len(data) > GATHERED_BYTES:
            self.flush()
            self._transport.write(data)
            return
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(data)
        if len(self._pieces) > 1 and sum(map(len, self._pieces)) > GATHERED_BYTES:
            self.flush()  # an answer without end must not wait for a turn that it does not give

    def flush(self) -> None:
        """Send what was gathered."""
        pieces, self._pieces = self._pieces, []
        if pieces and not self._transport.is_closing():
            self._transport.write(b"".join(pieces))

    def close(self) -> None:
        """Send what was gathered, and close the connection."""
        self.flush()
        self._transport.close()
