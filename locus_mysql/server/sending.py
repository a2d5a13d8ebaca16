"""Sending answers: large ones in pieces, and answers to requests whose body was not read."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Send

from .bodies import drain

#: Size of a piece, in bytes. The next piece is sent when the client has read the one before.
PIECE_BYTES = 262_144


def in_pieces(send: Send) -> Send:
    """Return a send function that sends large bodies in pieces. A server buffers a whole body before it waits.

    So the service detects whether a client continues to read, and the answer counts against the quota until it is sent.
    """

    async def send_pieces(message: Message) -> None:
        body, more = message.get("body", b""), message.get("more_body", False)
        if len(body) <= PIECE_BYTES:
            await send(message)
            return
        for at in range(0, len(body), PIECE_BYTES):
            end = at + PIECE_BYTES
            await send({"type": "http.response.body", "body": body[at:end], "more_body": more or end < len(body)})

    return send_pieces


async def send_and_close(request: Request, response: Response, send: Send) -> None:
    """Answer a request whose body was not read to its end, and close the connection."""
    response.headers["Connection"] = "close"

    async def send_and_drain(message: Message) -> None:
        if message["type"] != "http.response.body" or message.get("more_body", False):
            await send(message)
            return
        await send({**message, "more_body": True})
        if response.status_code != 408:  # the body's deadline has passed already
            await drain(request)
        await send({"type": "http.response.body"})

    await response(request.scope, request.receive, send_and_drain)
