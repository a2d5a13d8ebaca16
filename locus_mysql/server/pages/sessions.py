"""Pages of working memory: the list of sessions, and a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from ...families.inspection.records import Page, SessionRow
from ...families.working.family import WORKING
from ..problems import not_found
from .common import inspector_of
from .query_parameters import SessionQuery, SessionsQuery, as_glob
from .rendering import page
from .tree import hits, tree

#: The statuses of threads that look like those of tasks.
_LOOKS = {"waiting": "waiting", "failed": "failed", "cancelled": "failed", "completed": "done"}

#: Number of sessions on a page.
ON_A_PAGE = 100


class Task(NamedTuple):
    """A task.

    Args:
        title: Its id.
        status: Its status in words.
        look: The status of a thread that looks like it.
        percent: Its progress, from 0 to 100; None if unknown.
        steps: Its steps in words; empty if unknown.
        description: What is being done.
        error: Why it failed or was cancelled.
    """

    title: str
    status: str
    look: str
    percent: int | None
    steps: str
    description: str
    error: str


def task_of(state: Mapping[str, Any] | None) -> Task | None:
    """Return the task in a stored state; None without one, or for a state that is not a task."""
    if state is None or not isinstance(state.get("task_id"), str) or not isinstance(state.get("status"), str):
        return None
    status, progress = state["status"], state.get("progress")
    known = isinstance(progress, int | float) and not isinstance(progress, bool) and 0 <= progress <= 1
    step, total = state.get("current_step"), state.get("total_steps")
    steps = ""
    if isinstance(step, int) and step >= 0:
        steps = f"step {step} of {total}" if isinstance(total, int) else f"step {step}" if step else ""
    description, error = state.get("description"), state.get("error")
    return Task(
        title=state["task_id"],
        status=status[:40],
        look=_LOOKS.get(status, "unfinished"),
        percent=round(100 * float(progress)) if known and progress is not None else None,
        steps=steps,
        description=description if isinstance(description, str) else "",
        error=error if isinstance(error, str) else "",
    )


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
