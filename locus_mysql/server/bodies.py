"""Reading bodies and queries of requests, within limits; and JSON responses."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Collection
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json
from starlette.requests import Request
from starlette.responses import Response

from .limits import Limits
from .problems import Problem, invalid

M = TypeVar("M", bound=BaseModel)

#: The largest number of fields in a query: the labels of the longest namespace, and some other fields.
FIELDS_LIMIT = 550

#: The largest total size of a request's headers, in bytes.
HEADERS_BYTES = 32_768

#: The largest form that a page sends, in bytes.
FORM_BYTES = 65_536

#: Messages for callers who know neither Python nor this package's classes.
_WORDS = dict.fromkeys(("dict_type", "model_type"), "Input should be an object")

#: Size of a body, in bytes, above which it is read only when the request's turn has come.
LARGE_BYTES = 131_072

#: Seconds for which the rest of a refused request is read, so that its client receives the answer.
DRAIN_S = 2.0


class ClientGone(Exception):
    """The client closed the connection, so no caller waits for an answer."""


def has_body(request: Request) -> bool:
    """Return whether a request announces a body."""
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


def announces_large(request: Request) -> bool:
    """Return whether the body of a request may be large."""
    return has_body(request) and int(request.headers.get("content-length", LARGE_BYTES + 1)) > LARGE_BYTES


def check_head(request: Request) -> None:
    """Refuse huge headers, and a request whose length two servers could parse differently (request smuggling)."""
    if sum(len(name) + len(value) for name, value in request.scope["headers"]) > HEADERS_BYTES:
        raise Problem("headers_too_large", f"The headers are larger than {HEADERS_BYTES} bytes.")
    lengths = request.headers.getlist("content-length")
    codings = request.headers.getlist("transfer-encoding")
    if (lengths and codings) or len(lengths) > 1 or len(codings) > 1:
        raise Problem("malformed_request", "The length of the body is given more than once.")
    if lengths and not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) < 20):
        raise Problem("malformed_request", "The length of the body is not a number.")


async def drain(request: Request) -> None:
    """Read and discard the rest of a refused body. If the connection were closed, the answer might be lost."""
    if "100-continue" in request.headers.get("expect", "").lower():
        return  # the client sends its body only after "100 Continue"
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            while (message := await request.receive())["type"] == "http.request" and message.get("more_body", False):
                pass


def check_no_body(request: Request) -> None:
    """Refuse a body where the endpoint takes none."""
    if has_body(request):
        raise Problem("unexpected_body", f"This endpoint takes no body with {request.method}.")


async def read_body(request: Request, media_type: str, limit: int, limits: Limits) -> bytes:
    """Read the whole body of a request.

    Args:
        request: The request.
        media_type: The required media type.
        limit: The largest size in bytes.
        limits: The limits, among them the longest time for reading it.

    Raises:
        Problem: The body is of another type, too large, or too slow.
        ClientGone: The connection was closed before the end of the body.
    """
    given, _, parameters = request.headers.get("content-type", "").partition(";")
    if given.strip().lower() != media_type:
        raise Problem("unsupported_media_type", f"The body must be {media_type}; say so in Content-Type.")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if "charset=" in charset and "charset=utf-8" not in charset:
        raise Problem("unsupported_media_type", "The body must be UTF-8.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem("unsupported_encoding", "The body must not be compressed.")
    declared = int(request.headers.get("content-length", "0"))
    too_large = Problem("body_too_large", f"The body is larger than {limit} bytes.")
    if declared > limit:
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
                pieces.append(piece)
                if not message.get("more_body", False):
                    request.state.body_ended = True
                    return b"".join(pieces)
    except TimeoutError:
        raise Problem("body_too_slow", f"The body did not arrive within {limits.body_s:g} s.") from None


def json_of(body: bytes, limits: Limits) -> Any:
    """Parse a body as JSON. If an object has a name twice, the last one counts.

    Raises:
        Problem: The body is not JSON by RFC 8259 in UTF-8 with at most 200 levels, or holds too many values.
    """
    # Counts those within texts as well, which is cheaper than parsing.
    if body.count(b"[") + body.count(b"{") > limits.values or body.count(b",") > 10 * limits.values:
        what = f"{limits.values} lists and objects, or than {10 * limits.values} commas"
        raise Problem("body_too_large", f"The body holds more than {what}.")
    try:
        return from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        raise Problem("not_json", f"The body is not JSON: {error}.") from None


def parsed(model: type[M], given: object, what: str) -> M:
    """Validate input as a model.

    Raises:
        Problem: The input does not fit the model. The message names the field and never quotes the input.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
        path = ".".join(str(part)[:50] for part in problem["loc"])
        known = ""
        if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            known = f" Known: {', '.join(sorted(model.model_fields))}."
        words = _WORDS.get(problem["type"], problem["msg"])
        raise invalid(f"{what}{f', {path}' if path else ''}: {words}.{known}") from None


def query_of(request: Request, lists: Collection[str] = ()) -> dict[str, Any]:
    """Parse the query of a request.

    Args:
        request: The request.
        lists: Names that may occur more than once; their values are lists of texts, all others texts.

    Raises:
        Problem: The query cannot be parsed, or another name occurs twice.
    """
    text = request.scope.get("query_string", b"").decode("latin-1")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=FIELDS_LIMIT) if text else []
    except ValueError:
        raise invalid("The query is not UTF-8, percent-encoded, or has too many fields.") from None
    query: dict[str, Any] = {name: [] for name, _ in pairs if name in lists}
    for name, value in pairs:
        if name in lists:
            query[name].append(value)
        elif name in query:
            raise invalid("The query contains a name twice.")
        else:
            query[name] = value
    return query


def value_of(text: str) -> Any:
    """Return the value of a query parameter: parsed JSON if it is valid JSON, else the text."""
    try:
        return json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return text


def _no_json(constant: str) -> None:
    raise ValueError(constant)


def answer(value: Any, status: int = 200) -> Response:
    """Return a response with a value as JSON: dicts, lists, dataclasses, models; times as ISO 8601 text.

    ``NaN`` and infinities, which a stored state may hold, are written as in JavaScript.
    """
    return answer_text(to_json(value, inf_nan_mode="constants"), status)


def answer_text(text: bytes, status: int = 200) -> Response:
    """Return a response with a text that is JSON already."""
    return Response(text, status, media_type="application/json")
