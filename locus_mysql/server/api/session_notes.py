"""Endpoints of a session's task state and of its scratchpad."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.working.family import WORKING
from ...families.working.records import TaskState
from ..json_responses import answer
from ..problems import not_found
from ..routing import Endpoint
from .models import Answer, Body, Deleted, Gone, QueryParameters
from .sessions import SESSION, BeginsQuery, Done, session_of


class ScratchpadQuery(QueryParameters):
    """The query that selects notes."""

    last: Annotated[int | None, Field(ge=0, le=2**31, description="Only this many of the newest notes.")] = None


class Scratchpad(Answer):
    """Notes, oldest first."""

    notes: list[str]


class Note(Body):
    """A note to append."""

    content: str


def get_task(request: Request) -> Response:
    """Return a session's task state."""
    session = session_of(request)
    task: TaskState | None = session.get_task_state()
    if task is None:
        raise not_found("task state")
    return answer(task)


def set_task(request: Request) -> Response:
    """Store a session's task state."""
    session = session_of(request)
    session.set_task_state(request.state.body)
    return answer({"ok": True})


def delete_task(request: Request) -> Response:
    """Remove a session's task state."""
    session = session_of(request)
    if session.get_task_state() is not None:
        session.set_task_state(None)
        return answer({"deleted": True})
    raise not_found("task state")


def get_scratchpad(request: Request) -> Response:
    """Return the notes of a session."""
    asked: ScratchpadQuery = request.state.query
    session = session_of(request)
    return answer({"notes": session.get_scratchpad(asked.last)})


def append_scratchpad(request: Request) -> Response:
    """Add a note."""
    wanted: Note = request.state.body
    session = session_of(request)
    session.append_scratchpad(wanted.content)
    return answer({"ok": True})


def clear_scratchpad(request: Request) -> Response:
    """Remove all notes of a session."""
    session = session_of(request)
    return answer({"deleted": session.clear_scratchpad()})


ENDPOINTS = (
    Endpoint(
        "GET",
        f"{SESSION}/task",
        get_task,
        "read",
        "Get the state of the task",
        answer=TaskState,
        family=WORKING,
        without_tables="task state",
    ),
    Endpoint(
        "PUT",
        f"{SESSION}/task",
        set_task,
        "write",
        "Set the state of the task",
        query=BeginsQuery,
        body=TaskState,
        answer=Done,
        family=WORKING,
    ),
    Endpoint(
        "DELETE",
        f"{SESSION}/task",
        delete_task,
        "write",
        "Remove the state of the task",
        answer=Gone,
        family=WORKING,
        without_tables="task state",
    ),
    Endpoint(
        "GET",
        f"{SESSION}/scratchpad",
        get_scratchpad,
        "read",
        "Get the notes",
        query=ScratchpadQuery,
        answer=Scratchpad,
        family=WORKING,
        without_tables={"notes": []},
    ),
    Endpoint(
        "POST",
        f"{SESSION}/scratchpad",
        append_scratchpad,
        "write",
        "Add a note",
        query=BeginsQuery,
        body=Note,
        answer=Done,
        family=WORKING,
    ),
    Endpoint(
        "DELETE",
        f"{SESSION}/scratchpad",
        clear_scratchpad,
        "write",
        "Remove all notes",
        answer=Deleted,
        family=WORKING,
        without_tables={"deleted": 0},
    ),
)
