"""Messages between the service and its request processes: a JSON object and bytes, each after its length."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

#: The lengths of the object and of the bytes.
_LENGTHS = struct.Struct("!IQ")

#: Number of bytes received at once, at most.
_PIECE_BYTES = 1 << 20


class Ended(Exception):
    """The other end was closed before the whole message arrived."""


async def send(sock: socket.socket, header: dict[str, Any], body: bytes | memoryview = b"") -> None:
    """Send an object and bytes on a non-blocking socket."""
    loop = asyncio.get_running_loop()
    text = json.dumps(header).encode()
    await loop.sock_sendall(sock, _LENGTHS.pack(len(text), len(body)) + text)
    for at in range(0, len(body), _PIECE_BYTES):
        await loop.sock_sendall(sock, memoryview(body)[at : at + _PIECE_BYTES])


async def receive_header(sock: socket.socket) -> tuple[dict[str, Any], int]:
    """Receive the object and the number of bytes that follow it; `receive` reads these.

    Raises:
        Ended: The other end is gone.
    """
    header_bytes, body_bytes = _LENGTHS.unpack(await receive(sock, _LENGTHS.size))
    return json.loads(bytes(await receive(sock, header_bytes))), body_bytes


async def receive(sock: socket.socket, count: int) -> memoryview:
    """Receive a number of bytes.

    Raises:
        Ended: The other end is gone.
    """
    loop = asyncio.get_running_loop()
    buffer = memoryview(bytearray(count))
    have = 0
    while have < count:
        try:
            got = await loop.sock_recv_into(sock, buffer[have : have + _PIECE_BYTES])
        except ConnectionError:
            got = 0
        if not got:
            raise Ended
        have += got
    return buffer
