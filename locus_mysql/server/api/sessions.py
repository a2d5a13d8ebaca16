"""Endpoints of working memory's sessions: their lives, task states, notes and checkpoints.

A session begins with the first write to it; an unknown session reads as empty. Reads over HTTP do not extend a
session's life, as a token for reading changes nothing; writes and ``touch`` do.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.working.family import WORKING
from ...families.working.records import TaskState
from ...families.working.store import SyncWorkingMemory
from ...runtime.arguments import TTL_LIMIT_S
from ..bodies import answer
from ..problems import not_found
from ..routing import Endpoints
from ..services import stores_of
from .models import (
    Answer,
    Body,
    CheckpointId,
    Cursor,
    Deleted,
    Gone,
    Limit,
    NextCursor,
    QueryParameters,
    SessionId,
    Time,
    fields_of,
)

#: The path of a session.
SESSION = "/sessions/{session_id}"

#: A time to live, in seconds.
TTL = Annotated[float | None, Field(gt=0, le=TTL_LIMIT_S)]

#: The content of a session that has not begun.
NO_SESSION = {"keys": 0, "size_bytes": 0, "scratchpad_entries": 0, "checkpoints": 0, "expires_in_s": None}

ENDPOINTS = Endpoints(WORKING)

_CHECKPOINT = f"{SESSION}/checkpoints/{{checkpoint_id}}"


class BeginsQuery(QueryParameters):
    """The query that sets a session's time to live."""

    session_ttl_s: Annotated[
        TTL,
        Field(
            description="If this write begins the session: the seconds without a write after which it expires. If "
            "left out, it stays until it is ended."
        ),
    ] = None


class SessionsQuery(QueryParameters):
    """The query of a list of sessions."""

    pattern: Annotated[
        str,
        Field(max_length=512, description="A glob: * stands for any text, ? for one character, all else for itself."),
    ] = "*"
    limit: Limit = 50
    cursor: Cursor = None


class ListedSession(Answer):
    """A session in a list."""

    session_id: SessionId
    created_at: Annotated[Time | None, Field(description="When the session began, if known.")]
    updated_at: Annotated[Time | None, Field(description="When the session was last written to, if known.")]
    expires_at: Annotated[Time | None, Field(description="When the session expires; null if never.")]
    keys: Annotated[int, Field(ge=0, description="Variables.")]
    size_bytes: Annotated[int, Field(ge=0, description="Bytes of variables, task state and notes.")]


class Sessions(Answer):
    """Sessions, in the order of their ids."""

    sessions: list[ListedSession]
    cursor: NextCursor


class Session(Answer):
    """What a session holds."""

    keys: Annotated[int, Field(ge=0, description="Variables, without expired ones.")]
    size_bytes: Annotated[int, Field(ge=0, description="Bytes of variables, task state and notes.")]
    scratchpad_entries: Annotated[int, Field(ge=0)]
    checkpoints: Annotated[int, Field(ge=0)]
    expires_in_s: Annotated[
        float | None, Field(description="Seconds until it expires unless it is used; null if it does not.")
    ]


class Touch(Body):
    """The new time to live of a session."""

    ttl_s: Annotated[TTL, Field(description="The new time to live, from now on; null: the previous one.")] = None


class Touched(Answer):
    """Whether the session existed."""

    touched: bool


class Done(Answer):
    """Confirms a write."""

    ok: bool = True


def session_of(request: Request) -> SyncWorkingMemory:
    """Return the session of a request."""
    begins = getattr(request.state, "query", None)
    ttl_s = begins.session_ttl_s if isinstance(begins, BeginsQuery) else None
    return stores_of(request).working(request.path_params["session_id"], ttl_s)


@ENDPOINTS.add(
    "GET", "/sessions", query=SessionsQuery, answer=Sessions, without_tables={"sessions": [], "cursor": None}
)
def list_sessions(request: Request) -> Response:
    """List sessions."""
    asked: SessionsQuery = request.state.query
    page = stores_of(request).inspector.sessions(limit=asked.limit, cursor=asked.cursor, pattern=asked.pattern)
    listed = [fields_of(ListedSession, {**asdict(row), "keys": row.variables}) for row in page.items]
    return answer({"sessions": listed, "cursor": page.cursor})


@ENDPOINTS.add("GET", SESSION, answer=Session, without_tables=NO_SESSION)
def get_session(request: Request) -> Response:
    """Describe a session."""
    return answer(fields_of(Session, session_of(request).stats()))


@ENDPOINTS.add("DELETE", SESSION, answer=Gone, without_tables="session")
def end_session(request: Request) -> Response:
    """End a session and delete its content."""
    if not session_of(request).end():
        raise not_found("session")
    return answer({"deleted": True})


@ENDPOINTS.add("POST", f"{SESSION}/touch", body=Touch, answer=Touched, without_tables={"touched": False})
def touch_session(request: Request) -> Response:
    """Restart a session's time to live."""
    wanted: Touch = request.state.body
    return answer({"touched": session_of(request).touch(wanted.ttl_s)})


class ScratchpadQuery(QueryParameters):
    """The query that selects notes."""

    last: Annotated[int | None, Field(ge=0, le=2**31, description="Only this many of the newest notes.")] = None


class Scratchpad(Answer):
    """Notes, oldest first."""

    notes: list[str]


class Note(Body):
    """A note to append."""

    content: str


@ENDPOINTS.add("GET", f"{SESSION}/task", answer=TaskState, without_tables="task state")
def get_task(request: Request) -> Response:
    """Get the state of the task."""
    task: TaskState | None = session_of(request).get_task_state()
    if task is None:
        raise not_found("task state")
    return answer(task)


@ENDPOINTS.add("PUT", f"{SESSION}/task", query=BeginsQuery, body=TaskState, answer=Done)
def set_task(request: Request) -> Response:
    """Set the state of the task."""
    session_of(request).set_task_state(request.state.body)
    return answer({"ok": True})


@ENDPOINTS.add("DELETE", f"{SESSION}/task", answer=Gone, without_tables="task state")
def delete_task(request: Request) -> Response:
    """Remove the state of the task."""
    session = session_of(request)
    if session.get_task_state() is not None:
        session.set_task_state(None)
        return answer({"deleted": True})
    raise not_found("task state")


@ENDPOINTS.add("GET", f"{SESSION}/scratchpad", query=ScratchpadQuery, answer=Scratchpad, without_tables={"notes": []})
def get_scratchpad(request: Request) -> Response:
    """Get the notes."""
    asked: ScratchpadQuery = request.state.query
    return answer({"notes": session_of(request).get_scratchpad(asked.last)})


@ENDPOINTS.add("POST", f"{SESSION}/scratchpad", query=BeginsQuery, body=Note, answer=Done)
def append_scratchpad(request: Request) -> Response:
    """Add a note."""
    wanted: Note = request.state.body
    session_of(request).append_scratchpad(wanted.content)
    return answer({"ok": True})


@ENDPOINTS.add("DELETE", f"{SESSION}/scratchpad", answer=Deleted, without_tables={"deleted": 0})
def clear_scratchpad(request: Request) -> Response:
    """Remove all notes."""
    return answer({"deleted": session_of(request).clear_scratchpad()})


class NewSessionCheckpoint(Body):
    """A checkpoint to create of the session."""

    label: Annotated[str | None, Field(max_length=1_000, description="A label for the checkpoint.")] = None


class CheckpointMade(Answer):
    """The id of a checkpoint."""

    checkpoint_id: CheckpointId


class Restored(Answer):
    """The checkpoint of the state before the restore."""

    undo_id: Annotated[
        CheckpointId,
        Field(description="A checkpoint of the session before the restore; restoring it undoes this restore."),
    ]


class SessionCheckpoint(Answer):
    """A checkpoint of a session."""

    checkpoint_id: CheckpointId
    label: str | None
    created_at: Time
    keys: Annotated[int, Field(ge=0, description="The number of variables in it.")]
    scratchpad_entries: Annotated[int, Field(ge=0, description="The number of notes in it.")]
    size_bytes: Annotated[int, Field(ge=0, description="The size of the session then, in bytes.")]


class SessionCheckpoints(Answer):
    """Checkpoints, newest first."""

    checkpoints: list[SessionCheckpoint]


@ENDPOINTS.add("GET", f"{SESSION}/checkpoints", answer=SessionCheckpoints, without_tables={"checkpoints": []})
def list_checkpoints(request: Request) -> Response:
    """List a session's checkpoints."""
    found = session_of(request).list_checkpoints()
    return answer({"checkpoints": found})


@ENDPOINTS.add("POST", f"{SESSION}/checkpoints", query=BeginsQuery, body=NewSessionCheckpoint, answer=CheckpointMade)
def create_checkpoint(request: Request) -> Response:
    """Create a checkpoint of a session."""
    wanted: NewSessionCheckpoint = request.state.body
    return answer({"checkpoint_id": session_of(request).create_checkpoint(wanted.label)})


@ENDPOINTS.add("POST", f"{_CHECKPOINT}/restore", answer=Restored, without_tables="checkpoint")
def restore_checkpoint(request: Request) -> Response:
    """Restore a session from a checkpoint."""
    return answer({"undo_id": session_of(request).restore_checkpoint(request.path_params["checkpoint_id"])})


@ENDPOINTS.add("DELETE", _CHECKPOINT, answer=Gone, without_tables="checkpoint")
def delete_checkpoint(request: Request) -> Response:
    """Delete a session's checkpoint."""
    if not session_of(request).delete_checkpoint(request.path_params["checkpoint_id"]):
        raise not_found("checkpoint")
    return answer({"deleted": True})
