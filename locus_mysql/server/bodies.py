"""What a request brings along: its body, read within limits, and its query."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import Request

from .limits import Limits
from .problems import Problem, invalid

M = TypeVar("M", bound=BaseModel)

#: The largest form that a page sends.
FORM_BYTES = 65_536


class ClientGone(Exception):
    """The client closed the connection before it had sent the whole request; nobody waits for an answer."""


def check_no_body(request: Request) -> None:
    """Refuse a body where none belongs."""
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise Problem(400, "unexpected_body", f"A {request.method} request has no body here.", close=True)


async def read_body(
    request: Request, media_type: str, limit: int, limits: Limits, hold: Callable[[int], None]
) -> bytes:
    """The whole body of a request.

    Args:
        request: The request.
        media_type: What the body must be.
        limit: How large it may be.
        limits: How long it may take.
        hold: Told of every piece's size; raises `Problem` if there is no place for it.

    Raises:
        Problem: It is of another kind, too large, or too slow.
        ClientGone: It ended before its end.
    """
    given, _, parameters = request.headers.get("content-type", "").partition(";")
    if given.strip().lower() != media_type:
        raise Problem(
            415, "unsupported_media_type", f"The body must be {media_type}; say so in Content-Type.", close=True
        )
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if "charset=" in charset and "charset=utf-8" not in charset:
        raise Problem(415, "unsupported_media_type", "The body must be UTF-8.", close=True)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "unsupported_encoding", "The body must not be compressed.", close=True)
    too_large = Problem(413, "body_too_large", f"The body is larger than {limit} bytes.", close=True)
    declared = request.headers.get("content-length", "0")
    if int(declared) > limit:
        raise too_large
    pieces, size = [], 0
    try:
        async with asyncio.timeout(limits.body_s):
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                piece = message.get("body", b"")
                size += len(piece)
                if size > limit:
                    raise too_large
                hold(len(piece))
                pieces.append(piece)
                if not message.get("more_body", False):
                    return b"".join(pieces)
    except TimeoutError:
        raise Problem(
            408, "body_too_slow", f"The body did not arrive within {limits.body_s:g} s.", close=True
        ) from None


def json_of(body: bytes) -> Any:
    """A body as JSON.

    Raises:
        Problem: It is not JSON as RFC 8259 has it, in UTF-8, of at most 200 levels.
    """
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise Problem(400, "not_json", f"The body is not JSON: {error}.") from None


def parsed(model: type[M], given: object, what: str) -> M:
    """Input as a model.

    Raises:
        Problem: It is not of the model's form; says where, and never repeats what was given.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(str(part)[:50] for part in problem["loc"])
        raise invalid(f"{what}{f', {place}' if place else ''}: {problem['msg']}.") from None


def query_of(request: Request) -> dict[str, str]:
    """The query of a request, whose names are all different.

    Raises:
        Problem: It cannot be read, or a name stands in it twice.
    """
    text = request.scope.get("query_string", b"").decode("latin-1")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=50) if text else []
    except ValueError:
        raise invalid("The query is not UTF-8, percent-encoded, or has too many fields.") from None
    query = dict(pairs)
    if len(query) < len(pairs):
        raise invalid("A name stands twice in the query.")
    return query
