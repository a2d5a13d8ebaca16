"""How a page is made: its template, its links, its headers; and the page that says what went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..problems import Problem
from ..services import services_of
from . import texts
from .static import version_of

#: Nothing from other hosts, no script or style within a page, no frames; forms and connections lead here only.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
)

#: Characters of a value that is written over several lines; a longer one takes too long.
MOST_INDENTED = 1_000_000

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # A form's page must be known by its origin, as its sending is checked by that.
    "Referrer-Policy": "same-origin",
}

#: What explains itself to people, by the code of its problem: the heading.
HEADINGS = {
    "not_found": "Nothing is there",
    "database_unavailable": "The database is away",
    "not_set_up": "The service cannot use its database",
    "damaged": "Something stored is damaged",
    "invalid_input": "That cannot be looked for",
    "form_not_ours": "This form is out of date",
    "read_only": "Only looking is allowed",
    "thread_exists": "There is such a thread already",
    "conflict": "Somebody was faster",
}


class Links:
    """Makes links to pages, wherever the application is mounted.

    Args:
        request: The request that is answered.
    """

    def __init__(self, request: Request) -> None:
        self.root = quote(request.scope.get("root_path", "").rstrip("/"))

    def __call__(self, path: str, **query: object) -> str:
        """A link; what is None or empty is left out of its query."""
        given = {name: text for name, value in query.items() if (text := "" if value is None else str(value))}
        return self.root + path + (f"?{urlencode(given)}" if given else "")

    def static(self, name: str) -> str:
        """A link to a file beside the pages, which is another one when the file is."""
        return self(f"/static/{name}", v=version_of(name))

    def thread(self, family: str, thread_id: str, **query: object) -> str:
        """A link to a thread."""
        return self("/inspect/thread", family=family, thread=thread_id, **query)


@cache
def environment() -> Environment:
    """The templates. Every value is escaped: what is stored is text, and never more than that."""
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(texts.FILTERS)
    made.globals.update(families=texts.FAMILIES)
    return made


def compile_templates() -> None:
    """Make all pages ready to be rendered: to compile one takes a tenth of a second, when it is first needed."""
    made = environment()
    for name in made.list_templates(["html"]):
        made.get_template(name)


def page(request: Request, template: str, status: int = 200, **values: object) -> Response:
    """A page.

    Args:
        request: The request.
        template: The name of its template.
        status: Its status.
        values: What the template needs.
    """
    caller = request.state.caller
    services = services_of(request)
    shown = {
        "link": Links(request),
        "path": request.scope["path"],
        "caller": caller,
        "form_secret": getattr(request.state, "form_secret", ""),
        "signed_in": bool(getattr(request.state, "signed_in", None) and request.state.signed_in.nonce),
        "may_write": bool(services.allow_writes and caller and caller.may_write),
        "section": "",
        **values,
    }
    text = environment().get_template(template).render(shown)
    # A half of a pair, which a stored text may hold, has no bytes of its own.
    return Response(text.encode("utf-8", "replace"), status, headers=HEADERS, media_type="text/html")


def explained_as_page(request: Request, problem: Problem, request_id: str) -> Response:
    """What went wrong, for people. Who has not signed in is asked to."""
    if problem.status == 401 and wants_data(request):
        return Response(json.dumps({"error": problem.code}), 401, headers=HEADERS, media_type="application/json")
    if problem.status == 401:
        links = Links(request)
        onward = ""
        if request.method in {"GET", "HEAD"}:
            query = request.scope.get("query_string", b"").decode("latin-1")
            onward = links(quote(request.scope["path"].removeprefix(request.scope.get("root_path", ""))))
            onward += f"?{query}" if query else ""
        return RedirectResponse(links("/login", next=onward), 303, headers=HEADERS)
    response = page(
        request,
        "problem.html",
        problem.status,
        heading=HEADINGS.get(problem.code, "Something went wrong" if problem.status >= 500 else "That does not work"),
        problem=problem,
        request_id=request_id,
    )
    response.headers.update(problem.headers)
    return response


def wants_data(request: Request) -> bool:
    """Whether a script asks, which can do nothing with a page."""
    return str(request.scope["path"]).endswith((".json", "/events"))


def downloaded(value: Mapping[str, Any], name: str) -> Response:
    """A value as a file of JSON: over several lines, if it does not get much longer by that."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= MOST_INDENTED:
        indented = texts.pretty(value, 4 * len(text) + 1)
        text = indented if len(indented) <= 4 * len(text) else text
    quoted = quote(name, safe="")
    return Response(
        text.encode("utf-8", "backslashreplace"),
        headers={**HEADERS, "Content-Disposition": f"attachment; filename*=UTF-8''{quoted}"},
        media_type="application/json",
    )
