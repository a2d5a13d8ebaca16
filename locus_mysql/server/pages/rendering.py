"""Rendering pages: templates, links, headers, time zones, static files, and the page that explains an error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, tzinfo
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo, available_timezones

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...families.family import HasInspectorPage
from ...families.registry import families, find_family
from ..problems import Problem, existing
from ..routing import Endpoints, LenientQuery
from ..services import services_of
from . import texts

#: Nothing from other hosts, no inline scripts or styles, no frames; forms and connections only to this service.
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

#: Characters of the longest value that is indented. Indenting a longer one takes too long.
MOST_INDENTED = 1_000_000

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # The browser must send the origin of a form's page, as the service checks it.
    "Referrer-Policy": "same-origin",
}

#: Headings of error pages, by the code of the problem.
HEADINGS = {
    "not_found": "Not found",
    "database_unavailable": "The database cannot be reached",
    "not_set_up": "The service cannot use its database",
    "damaged": "Stored data is damaged",
    "invalid_input": "This search is not possible",
    "form_not_ours": "This form is no longer valid",
    "read_only": "This inspector is read-only",
    "thread_exists": "The thread exists already",
    "conflict": "The thread was changed meanwhile",
}

FILE_TYPES = {
    "style.css": "text/css",
    "pages.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}

#: A link contains a digest of its file, so the answer never changes.
_FILE_KEPT = "public, max-age=31536000, immutable"

PAGES = Endpoints(base=LenientQuery)

#: The name of the cookie, and the seconds that the browser keeps it: a year.
ZONE_COOKIE, ZONE_KEPT_S = "locus_mysql_zone", 365 * 86_400

#: The name of UTC, which needs no cookie.
NO_ZONE = "UTC"


class NavigationEntry(NamedTuple):
    """A link at the top of each page; ``section`` is the value of pages that belong to it."""

    section: str
    path: str
    title: str


class Links:
    """Makes links to pages, wherever the application is mounted.

    Args:
        request: The current request.
    """

    def __init__(self, request: Request) -> None:
        self.root = quote(request.scope.get("root_path", "").rstrip("/"))

    def __call__(self, path: str, **query: object) -> str:
        """Return a link. Values that are None or empty are left out of its query."""
        given = {name: text for name, value in query.items() if (text := "" if value is None else str(value))}
        return self.root + path + (f"?{urlencode(given)}" if given else "")

    def static(self, name: str) -> str:
        """Return a link to a static file, with a digest of its content."""
        return self(f"/static/{name}", v=version_of(name))

    def thread(self, family: str, thread_id: str, **query: object) -> str:
        """Return a link to a thread."""
        return self("/inspect/thread", family=family, thread=thread_id, **query)


@cache
def environment() -> Environment:
    """Return the templates. Every value is escaped, as stored texts must never act as HTML."""
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(texts.FILTERS)
    made.globals.update(title_of=lambda family: find_family(family).title, navigation=navigation)
    made.globals.update(unit_of=lambda family: find_family(family).unit)
    return made


def navigation() -> list[NavigationEntry]:
    """Return the entries of the navigation: the pages of threads, those of single families, and the statistics."""
    pages = [family.page for family in families() if isinstance(family, HasInspectorPage)]
    return [
        NavigationEntry("threads", "/", "Threads"),
        NavigationEntry("search", "/inspect/search", "Search"),
        NavigationEntry("metadata", "/inspect/metadata", "Metadata"),
        *(NavigationEntry(one.name, f"/inspect/{one.name}", one.title) for one in pages),
        NavigationEntry("statistics", "/inspect/statistics", "Statistics"),
    ]


def compile_templates() -> None:
    """Compile all templates beforehand. Compiling one on its first use would take a tenth of a second."""
    made = environment()
    for name in made.list_templates(["html"]):
        made.get_template(name)


def page(request: Request, template: str, status: int = 200, **values: object) -> Response:
    """Return a page.

    Args:
        request: The request.
        template: The name of its template.
        status: Its status.
        values: The values for the template.
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
        "query": getattr(request.state, "query", None),
        "zone": getattr(request.state, "zone", NO_ZONE),
        "here_query": request.scope.get("query_string", b"").decode("latin-1"),
        **values,
    }
    chosen = texts.ZONE.set(zone_of(request))
    try:
        text = environment().get_template(template).render(shown)
    finally:
        texts.ZONE.reset(chosen)
    # A lone surrogate, which a stored text may contain, cannot be encoded.
    return Response(text.encode("utf-8", "replace"), status, headers=HEADERS, media_type="text/html")


def explained_as_page(request: Request, problem: Problem, request_id: str) -> Response:
    """Return the page that explains a problem. Users who have not signed in get the form to sign in."""
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
        heading=HEADINGS.get(
            problem.code, "Something went wrong" if problem.status >= 500 else "The request is not valid"
        ),
        problem=problem,
        request_id=request_id,
    )
    response.headers.update(problem.headers)
    return response


def wants_data(request: Request) -> bool:
    """Return whether a script sent the request, which cannot use a page."""
    return str(request.scope["path"]).endswith((".json", "/events"))


def downloaded(value: Mapping[str, Any], name: str) -> Response:
    """Return a value as a JSON file, indented unless that makes it much longer."""
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


@cache
def content_of(name: str) -> bytes:
    """Return a file's content."""
    return files(__package__).joinpath("static", name).read_bytes()


@cache
def version_of(name: str) -> str:
    """Return a digest of a file."""
    return hashlib.sha256(content_of(name)).hexdigest()[:16]


@PAGES.add("GET", "/static/{name}", access="open")
async def static_file(request: Request, name: str, v: str = "") -> Response:
    """A static file."""
    media_type = existing(FILE_TYPES.get(name), "file")
    kept = _FILE_KEPT if v == version_of(name) else "no-cache"
    return Response(content_of(name), headers={"Cache-Control": kept}, media_type=media_type)


@cache
def zones() -> tuple[str, ...]:
    """Return the names of the time zones that this machine knows, UTC first."""
    known = sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return (NO_ZONE, *known)


@cache
def zone_named(name: str) -> tzinfo:
    """Return a time zone; UTC for a name that `zones` does not contain."""
    return ZoneInfo(name) if name != NO_ZONE and name in zones() else UTC


def name_of_zone(request: Request) -> str:
    """Return the name of the time zone in a request's cookie; that of UTC without a valid one."""
    given = request.cookies.get(ZONE_COOKIE, "")
    return given if given in zones() else NO_ZONE


def zone_of(request: Request) -> tzinfo:
    """Return the time zone of a request, which signing in has read from its cookie."""
    return zone_named(getattr(request.state, "zone", NO_ZONE))
