"""`Endpoint` and `Group`: the service's requests, and how their errors are explained.

A handler declares what it receives by its signature: names of its path, ``body`` with a model, and others from the
query.

    @ENDPOINTS.add("GET", "/memories/keys", answer=ItemKeys)
    def list_keys(request: Request, namespace: Namespace, limit: Limit = 100) -> Response:

A path is split as it was sent, and each segment is decoded separately. So an id may contain slashes, dots, percent
signs and any other character.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_origin, get_type_hints
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, create_model
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ..families.family import Family
from ..families.registry import find_family
from .bodies import answer
from .problems import Problem, explained, invalid, not_found
from .services import services_of
from .tokens import Caller

#: Carries out a request in a worker thread, or, if it is a coroutine function, in the event loop.
Handler: TypeAlias = Callable[..., Response] | Callable[..., Awaitable[Response]]

H = TypeVar("H", bound=Handler)

#: Identifies the caller of a request, or raises `Problem`.
Authenticate: TypeAlias = Callable[[Request], Caller]

#: Makes the response for a request, a problem and the request's id.
Explain: TypeAlias = Callable[[Request, Problem, str], Response]

#: The access that an endpoint needs: none, a token, or a token that may write.
Access: TypeAlias = Literal["open", "read", "write"]

_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


class StrictQuery(BaseModel):
    """Base of the models of queries: one value for each name, except lists; unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LenientQuery(BaseModel):
    """The same for pages: unknown names are ignored, as chat and mail programs add their own to links."""

    model_config = ConfigDict(extra="ignore", frozen=True)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method on a path, and its handler.

    Args:
        method: ``GET``, ``POST``, ``PUT``, ``PATCH`` or ``DELETE``; ``HEAD`` is answered by ``GET``.
        template: The path, such as ``/threads/{thread_id}/checkpoints``. A name in braces stands for one decoded
            segment.
        handler: Carries it out. Receives the request, and what its signature names: see the module.
            ``request.state.caller`` is the `Caller`, ``request.app.state.services`` is `Services`. It may raise
            `Problem` and any `LocusMySQLError`.
        access: The access that the caller needs.
        summary: A one-line summary for the description of the API.
        form: Whether the body is a form of a page, as bytes in ``request.state.body``.
        answer: The model, or type, of the answer, for the description of the API.
        family: The family whose tables the endpoint uses, if its query does not name another; None if it uses no
            tables, or checks for them itself.
        without_tables: The answer while these tables do not exist: a body for programs; or a noun, such as ``thread``,
            for an answer that it was not found. None for a write that creates them.
        fixed: Arguments of the handler that neither the path nor the query has.
        base: The base of the model of the query.
    """

    method: str
    template: str
    handler: Handler
    access: Access = "read"
    summary: str = ""
    form: bool = False
    answer: Any = None
    family: Family | None = None
    without_tables: Mapping[str, Any] | str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    base: type[BaseModel] = StrictQuery
    #: The model of the query; without one, the query must be empty.
    query: type[BaseModel] | None = field(init=False)
    #: The model of the JSON body; without one, there must be none, or a form.
    body: type[BaseModel] | None = field(init=False)
    #: Fields of the query that are lists: their names may occur more than once.
    lists: frozenset[str] = field(init=False)
    #: The names of the handler's arguments, besides the request.
    names: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        _, *parameters = inspect.signature(self.handler).parameters.values()
        hints = get_type_hints(self.handler, include_extras=True)
        elsewhere = {"body", *re.findall(r"{(\w+)}", self.template), *self.fixed}
        fields: dict[str, Any] = {
            one.name: (hints[one.name], ... if one.default is one.empty else one.default)
            for one in parameters
            if one.name not in elsewhere
        }
        query = create_model("Query", __base__=self.base, **fields) if fields else None
        known = {} if query is None else query.model_fields
        derived = {
            "query": query,
            "body": hints.get("body"),
            "lists": frozenset(name for name, one in known.items() if get_origin(one.annotation) is list),
            "names": [one.name for one in parameters],
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def call(self, request: Request) -> Response | Awaitable[Response]:
        """Call the handler."""
        state = request.state
        given = {**request.path_params, **self.fixed, **dict(state.query or {}), "body": state.body}
        return self.handler(request, **{name: given[name] for name in self.names})

    def respond(self, request: Request) -> Response:
        """Handle a request in a worker thread; while the family's tables do not exist, answer that nothing is stored.

        Raises:
            Problem: The requested object is not found, or the tables do not exist and may not be created.
        """
        family = self.family
        if family is not None and self.query is not None and "family" in self.query.model_fields:
            family = find_family(request.state.query.family)
        if family is None or services_of(request).tables_exist(family) or self.without_tables is None:
            return cast(Response, self.call(request))
        if isinstance(self.without_tables, str):
            raise not_found(self.without_tables)
        return answer(self.without_tables)


class Endpoints(list[Endpoint]):
    """The endpoints of a module. A decorator adds each handler, whose docstring is the summary.

    Args:
        family: The family whose tables they use; see `Endpoint`.
        base: The base of the models of their queries.
    """

    def __init__(self, family: Family | None = None, base: type[BaseModel] = StrictQuery) -> None:
        super().__init__()
        self._defaults = {"family": family, "base": base}

    def add(self, method: str, template: str, **options: Any) -> Callable[[H], H]:
        """Return a decorator that adds an endpoint; see `Endpoint`. By default, only ``GET`` does not need to write."""

        def added(handler: H) -> H:
            derived = {
                "access": "read" if method == "GET" else "write",
                "summary": (handler.__doc__ or "").partition(".")[0],
            }
            self.append(Endpoint(method, template, handler, **{**derived, **self._defaults, **options}))
            return handler

        return added


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


@dataclass(frozen=True, slots=True)
class Group:
    """A group of endpoints: the API's, or the pages'.

    Args:
        endpoints: The endpoints.
        authenticate: Identifies the caller of a request, or raises `Problem`. Not called for open endpoints.
        explain: Makes the response for a problem, from the request, the problem and the request's id.
    """

    endpoints: Sequence[Endpoint]
    authenticate: Authenticate
    explain: Explain = explained_as_json


def explanation(request: Request, problem: Problem) -> Response:
    """Return the response for a problem: as the group of the endpoint explains it, else a page for browsers."""
    group: Group | None = getattr(request.state, "group", None)
    if group is None:
        groups: Sequence[Group] = request.app.state.groups
        group = groups[-1 if "text/html" in request.headers.get("accept", "") else 0]
    return group.explain(request, problem, request.state.request_id)


async def explain_problem(request: Request, problem: Exception) -> Response:
    """Explain a problem; a handler of exceptions."""
    assert isinstance(problem, Problem)  # noqa: S101 - it is registered for these only
    return explanation(request, problem)


async def explain_no_route(request: Request, error: Exception) -> Response:
    """Explain that no endpoint has this path, or this method; a handler of Starlette's exceptions."""
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for these only
    if error.status_code != 405:
        return explanation(request, not_found("path"))
    allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
    message = f"This path allows: {allowed}."
    return explanation(request, Problem("method_not_allowed", message, headers={"Allow": allowed}))


class _Segment(Convertor[str]):
    """A path parameter that is one segment, percent-encoded by `requests`."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


register_url_convertor("segment", _Segment())


def path_of(template: str) -> str:
    """Return the path of Starlette's route for a template."""
    return template.replace("}", ":segment}")
