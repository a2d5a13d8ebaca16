"""What a request brings along: its body, read within limits, and its query."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Collection
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import Request

from ..runtime.bounded_executor import BoundedExecutor
from .limits import Limits
from .problems import Problem, invalid

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

#: The most fields that a query has: the labels of the longest namespace, and some more.
FIELDS_LIMIT = 550

#: The largest headers of a request, all together.
HEADERS_BYTES = 32_768

#: The largest form that a page sends.
FORM_BYTES = 65_536

#: What those are told who know neither Python nor our classes.
_WORDS = dict.fromkeys(("dict_type", "model_type"), "Input should be an object")

#: What a larger body needs, to be parsed and encoded, takes so long that others must not wait for it.
LARGE_BYTES = 500_000

#: Where it is done: in one thread, as two would wait for Python's lock in turn, and others for both.
LARGE = BoundedExecutor("locus-mysql bodies", threads=1)

#: How long what is left of a refused request is taken in, so that its client gets to read why, in seconds.
DRAIN_S = 2.0


class ClientGone(Exception):
    """The client closed the connection before it had sent the whole request; nobody waits for an answer."""


def has_body(request: Request) -> bool:
    """Whether a request announces a body."""
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


def check_head(request: Request) -> None:
    """Refuse huge headers, and a request that two servers could see end at different places (request smuggling)."""
    if sum(len(name) + len(value) for name, value in request.scope["headers"]) > HEADERS_BYTES:
        raise Problem(431, "headers_too_large", f"The headers are larger than {HEADERS_BYTES} bytes.")
    lengths = request.headers.getlist("content-length")
    codings = request.headers.getlist("transfer-encoding")
    if (lengths and codings) or len(lengths) > 1 or len(codings) > 1:
        raise Problem(400, "malformed_request", "The length of the body is given more than once.")
    if lengths and not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) < 20):
        raise Problem(400, "malformed_request", "The length of the body is no number.")


async def drain(request: Request) -> None:
    """Take in what is left of a body that nobody wants. Were the connection closed, the answer might be lost."""
    if "100-continue" in request.headers.get("expect", "").lower():
        return  # the client waits with its body
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            while (message := await request.receive())["type"] == "http.request" and message.get("more_body", False):
                pass


def check_no_body(request: Request) -> None:
    """Refuse a body where none belongs."""
    if has_body(request):
        raise Problem(400, "unexpected_body", f"A {request.method} request has no body here.")


async def read_body(
    request: Request, media_type: str, limit: int, limits: Limits, hold: Callable[[int], None]
) -> bytes:
    """The whole body of a request.

    Args:
        request: The request.
        media_type: What the body must be.
        limit: How large it may be.
        limits: How long it may take.
        hold: Given the size that the request announces, else that of every piece; raises `Problem` if there is no
            place for it.

    Raises:
        Problem: It is of another kind, too large, or too slow.
        ClientGone: It ended before its end.
    """
    given, _, parameters = request.headers.get("content-type", "").partition(";")
    if given.strip().lower() != media_type:
        raise Problem(415, "unsupported_media_type", f"The body must be {media_type}; say so in Content-Type.")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if "charset=" in charset and "charset=utf-8" not in charset:
        raise Problem(415, "unsupported_media_type", "The body must be UTF-8.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "unsupported_encoding", "The body must not be compressed.")
    declared = int(request.headers.get("content-length", "0"))
    too_large = Problem(413, "body_too_large", f"The body is larger than {limit} bytes.")
    if declared > limit:
        raise too_large
    hold(declared)
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
                if not declared:
                    hold(len(piece))
                pieces.append(piece)
                if not message.get("more_body", False):
                    request.state.body_ended = True
                    request.state.body_bytes = size
                    return b"".join(pieces)
    except TimeoutError:
        raise Problem(408, "body_too_slow", f"The body did not arrive within {limits.body_s:g} s.") from None


async def aside(request: Request, work: Callable[..., T], *arguments: object) -> T:
    """Call a function that takes longer the larger the request's body is; of a large one, in a thread.

    Of what takes long each step keeps Python's lock, parsing and encoding above all. So others wait for the longest
    step, instead of for all of them.
    """
    if request.state.body_bytes <= LARGE_BYTES:
        return work(*arguments)
    return await LARGE.run(work, *arguments)


def json_of(body: bytes, limits: Limits) -> Any:
    """A body as JSON. Of names that an object has twice, the last counts.

    Raises:
        Problem: It is not JSON as RFC 8259 has it, in UTF-8, of at most 200 levels; or it holds too many values.
    """
    if body.count(b"[") + body.count(b"{") > limits.values:  # in texts, too; that takes no time to find out
        raise Problem(413, "body_too_large", f"The body holds more than {limits.values} lists and objects.")
    try:
        return from_json(body, allow_inf_nan=False, cache_strings="keys")
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
        known = ""
        if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            known = f" Known are: {', '.join(sorted(model.model_fields))}."
        words = _WORDS.get(problem["type"], problem["msg"])
        raise invalid(f"{what}{f', {place}' if place else ''}: {words}.{known}") from None


def query_of(request: Request, lists: Collection[str] = ()) -> dict[str, Any]:
    """The query of a request.

    Args:
        request: The request.
        lists: Names that may stand in it more than once; each has a list of texts. All others have a text.

    Raises:
        Problem: It cannot be read, or another name stands in it twice.
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
            raise invalid("A name stands twice in the query.")
        else:
            query[name] = value
    return query


def value_of(text: str) -> Any:
    """What a value in a query means: JSON if it is some, else the text."""
    try:
        return json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return text


def _no_json(constant: str) -> None:
    raise ValueError(constant)
