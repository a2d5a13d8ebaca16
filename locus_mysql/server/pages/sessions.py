"""Pages of working memory: the list of sessions, and a session."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...families.inspection.records import Page, SessionRow
from ...families.working.family import WORKING
from ..problems import not_found
from .common import inspector_of
from .query_parameters import SessionQuery, SessionsQuery, as_glob
from .rendering import page
from .tasks import task_of
from .tree import hits, tree

#: Number of sessions on a page.
ON_A_PAGE = 100


def sessions_page(request: Request) -> Response:
    """``GET /inspect/sessions``."""
    query: SessionsQuery = request.state.query
    inspector = inspector_of(request)
    existing = WORKING.name in inspector.families()
    found: Page[SessionRow] = Page(())
    if existing:
        found = inspector.sessions(limit=ON_A_PAGE, cursor=query.cursor or None, pattern=as_glob(query.q))
    return page(
        request,
        "sessions.html",
        section=WORKING.page.name,
        existing=existing,
        query=query,
        found=found,
        task_of=task_of,
    )


def session_page(request: Request) -> Response:
    """``GET /inspect/session``."""
    query: SessionQuery = request.state.query
    inspector = inspector_of(request)
    found = None
    if WORKING.name in inspector.families():
        found = inspector.session(query.session)
    if found is None:
        raise not_found("session")
    variables = tree(found.variables, query.find)
    return page(
        request,
        "session.html",
        section=WORKING.page.name,
        query=query,
        found=found,
        root=variables,
        current=task_of(found.task_state),
        task=None if found.task_state is None else tree(found.task_state, query.find),
        hits=hits(variables) if query.find else 0,
    )
