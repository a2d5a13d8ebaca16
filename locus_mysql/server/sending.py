"""How an answer is sent: in pieces if it is large, and so that its client gets it if its body was not read."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Send

from .bodies import drain

#: Of a larger body, a piece of this size is sent when the client has read what was sent before.
PIECE_BYTES = 262_144


def in_pieces(send: Send) -> Send:
    """Sends large bodies piece by piece. A server writes all that it is given, and only then waits for its client.

    So it is known whether a client goes on reading, however long the whole takes; and until it has, who asked is still
    there to have it counted.
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
        if response.status_code != 408:  # which was waited for already
            await drain(request)
        await send({"type": "http.response.body"})

    await response(request.scope, request.receive, send_and_drain)
