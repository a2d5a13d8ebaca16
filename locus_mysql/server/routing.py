"""`Endpoint` and `Router`: find the handler of a request.

A path is split as it was sent, and each segment is decoded separately. So an id may contain slashes, dots, percent
signs and any other character. Frameworks decode the whole path first, and cannot distinguish a slash within an id from
one between two segments.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_origin
from urllib.parse import quote, unquote

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from ..families.family import Family
from .callers import Caller
from .json_responses import answer
from .problems import Problem, explained, invalid, not_found
from .services import services_of

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

#: Identifies the caller of a request, or raises `Problem`.
Authenticate: TypeAlias = Callable[[Request], Caller]

#: Makes the response for a request, a problem and the request's id.
Explain: TypeAlias = Callable[[Request, Problem, str], Response]

#: Where a service with request processes carries out a request: in its own process; in its own process unless the
#: request is large; or in a request process.
Runs: TypeAlias = Literal["event_loop", "unless_large", "subprocess"]

#: The access that an endpoint needs: none, a token, or a token that may write.
Access: TypeAlias = Literal["open", "read", "write"]

_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method on a path, and its handler.

    Args:
        method: ``GET``, ``POST``, ``PUT``, ``PATCH`` or ``DELETE``; ``HEAD`` is answered by ``GET``.
        template: The path, such as ``/threads/{thread_id}/checkpoints``. A name in braces stands for one decoded
            segment: ``request.path_params["thread_id"]``.
        handler: Carries it out. ``request.state.caller`` is the `Caller`, ``request.state.query`` and
            ``request.state.body`` are the query and the body, parsed by their models, ``request.app.state.services`` is
            `Services`. It may raise `Problem` and any `LocusMySQLError`.
        access: The access that the caller needs.
        summary: A one-line summary for the description of the API.
        query: The model of the query; without one, it must be empty.
        body: The model of the JSON body; without one, there must be none. ``"form"``: a form of a page, up to the
            endpoint, as bytes in ``request.state.body``.
        answer: The model, or type, of the answer, for the description of the API.
        runs: Where it is carried out. ``"event_loop"`` is for requests that are always small, or need data
            that only the service's own process has; ``"subprocess"`` for requests that may read or compute much for a
            short answer.
        small_bytes: The largest body that may be carried out in the service's own process, in bytes. One of many values
            may not, whatever its size (`bodies.is_small`).
        family: The family whose tables the endpoint uses; None if it uses no tables, or checks for them itself.
        without_tables: The answer while these tables do not exist: a body for programs; or a noun, such as ``thread``,
            for an answer that it was not found. None for a write that creates them.
    """

    method: str
    template: str
    handler: Handler
    access: Access = "read"
    summary: str = ""
    query: type[BaseModel] | None = None
    body: type[BaseModel] | Literal["form"] | None = None
    answer: Any = None
    runs: Runs = "unless_large"
    small_bytes: int = 65_536
    family: Family | None = None
    without_tables: Mapping[str, Any] | str | None = None
    #: The template's parts.
    segments: Sequence[str] = field(init=False)
    #: Fields of the query that are lists: their names may occur more than once.
    lists: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", self.template.split("/")[1:])
        fields = {} if self.query is None else self.query.model_fields
        lists = frozenset(name for name, one in fields.items() if get_origin(one.annotation) is list)
        object.__setattr__(self, "lists", lists)

    async def respond(self, request: Request) -> Response:
        """Handle a request; while the family's tables do not exist, answer that nothing is stored.

        Raises:
            Problem: The requested object is not found, or the tables do not exist and may not be created.
        """
        if self.family is None or await services_of(request).tables_exist(self.family) or self.without_tables is None:
            return await self.handler(request)
        if isinstance(self.without_tables, str):
            raise not_found(self.without_tables)
        return answer(self.without_tables)


def segments_of(scope: Any) -> list[str]:
    """Return the decoded segments of a request's path, without the path that the application is mounted under.

    Raises:
        Problem: A segment is not percent-encoded UTF-8, or the path does not begin with a slash.
    """
    raw = scope.get("raw_path")
    text = quote(scope["path"]) if raw is None else raw.partition(b"?")[0].decode("latin-1")
    if not text.isascii() or _PERCENT.search(text):
        raise invalid("The path is not percent-encoded: a '%' stands before two hexadecimal digits, or is %25.")
    try:
        segments = [unquote(segment, errors="strict") for segment in text.split("/")]
    except UnicodeDecodeError:
        raise invalid("The path is not UTF-8, percent-encoded.") from None
    if segments[0]:  # not a path; a proxy before this service may have interpreted it differently
        raise not_found("path")
    return segments[_mounted_under(segments, scope.get("root_path", "")) :]


def _mounted_under(segments: Sequence[str], root_path: str) -> int:
    """Return the number of segments before the application's own, including the empty one before the first slash."""
    root = root_path.rstrip("/")
    count = 1
    while count < len(segments) and len("/".join(segments[:count])) < len(root):
        count += 1
    return count if "/".join(segments[:count]) == root else 1


def explained_as_json(_request: Request, problem: Problem, request_id: str) -> Response:
    """Return a problem as JSON, for programs."""
    return explained(problem, request_id)


class Router:
    """A group of endpoints: the API's, or the pages'.

    Args:
        endpoints: The endpoints.
        authenticate: Identifies the caller of a request, or raises `Problem`. Not called for open endpoints.
        explain: Makes the response for a problem, from the request, the problem and the request's id.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        authenticate: Authenticate,
        explain: Explain = explained_as_json,
    ) -> None:
        self.endpoints = list(endpoints)
        #: By the number of segments; those with the fewest names first, as they take precedence.
        self._by_length: dict[int, list[Endpoint]] = {}
        for endpoint in sorted(self.endpoints, key=lambda one: one.template.count("{")):
            self._by_length.setdefault(len(endpoint.segments), []).append(endpoint)
        self.authenticate = authenticate
        self.explain = explain

    def find(self, method: str, segments: Sequence[str]) -> tuple[Endpoint, dict[str, str]] | None:
        """Return the endpoint for a request and its path parameters; None if the path is unknown here.

        Raises:
            Problem: The path exists, but not with this method.
        """
        wanted = "GET" if method == "HEAD" else method
        methods = set()
        for endpoint in self._by_length.get(len(segments), ()):
            if (found := _matched(endpoint.segments, segments)) is not None:
                if endpoint.method == wanted:
                    return endpoint, found
                methods.add(endpoint.method)
        if not methods:
            return None
        allowed = sorted(methods | ({"HEAD"} if "GET" in methods else set()))
        raise Problem(
            405,
            "method_not_allowed",
            f"This path allows: {', '.join(allowed)}.",
            headers={"Allow": ", ".join(allowed)},
        )


def _matched(template: Sequence[str], segments: Sequence[str]) -> dict[str, str] | None:
    """Return the path parameters of a template; None if the segments do not match."""
    found = {}
    for part, segment in zip(template, segments, strict=True):
        if part.startswith("{"):
            found[part[1:-1]] = segment
        elif part != segment:
            return None
    return found
