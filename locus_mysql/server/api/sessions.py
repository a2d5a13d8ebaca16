"""Endpoints of working memory's sessions: their lives, task states, notes and checkpoints.

A session begins with the first write to it; an unknown session reads as empty. Reads over HTTP do not extend a
session's life, as a token for reading changes nothing; writes and ``touch`` do.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, TypeAlias

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.working.family import WORKING
from ...families.working.records import TaskState
from ...families.working.store import SyncWorkingMemory
from ...runtime.arguments import TTL_LIMIT_S
from ..bodies import answer
from ..problems import existing
from ..routing import Endpoints
from ..services import read, stores_of
from .models import (
    Answer,
    Body,
    CheckpointId,
    Cursor,
    Deleted,
    Gone,
    Limit,
    NextCursor,
    Pattern,
    SessionId,
    Time,
    answer_with,
    fields_of,
    gone,
)

#: The path of a session.
SESSION = "/sessions/{session_id}"

#: A time to live, in seconds.
TTL = Annotated[float | None, Field(gt=0, le=TTL_LIMIT_S)]

#: That of a session, in the query of a write.
BeginsTTL: TypeAlias = Annotated[
    TTL,
    Field(
        description="If this write begins the session: the seconds without a write after which it expires. If left "
        "out, it stays until it is ended."
    ),
]

#: The content of a session that has not begun.
NO_SESSION = {"keys": 0, "size_bytes": 0, "scratchpad_entries": 0, "checkpoints": 0, "expires_in_s": None}

ENDPOINTS = Endpoints(WORKING)

_CHECKPOINT = f"{SESSION}/checkpoints/{{checkpoint_id}}"


class ListedSession(Answer):
    """A session in a list."""

    session_id: SessionId
    created_at: Annotated[Time | None, Field(description="When the session began, if known.")]
    updated_at: Annotated[Time | None, Field(description="When the session was last written to, if known.")]
    expires_at: Annotated[Time | None, Field(description="When the session expires; null if never.")]
    keys: Annotated[int, Field(ge=0, description="Variables.")]
    size_bytes: Annotated[int, Field(ge=0, description="Bytes of variables, task state and notes.")]


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


class Done(Answer):
    """Confirms a write."""

    ok: bool = True


Sessions = answer_with(
    "Sessions", "Sessions, in the order of their ids.", sessions=list[ListedSession], cursor=NextCursor
)
Touched = answer_with("Touched", "Whether the session existed.", touched=bool)


def session_of(request: Request, session_id: str, ttl_s: float | None = None) -> SyncWorkingMemory:
    """Return a session of the caller's tenant, with the time to live for one that begins now."""
    return stores_of(request).working(session_id, ttl_s)


@ENDPOINTS.add("GET", "/sessions", answer=Sessions, without_tables={"sessions": [], "cursor": None})
def list_sessions(request: Request, pattern: Pattern = "*", limit: Limit = 50, cursor: Cursor = None) -> Response:
    """List sessions."""
    page = read(stores_of(request).inspector.sessions(limit=limit, cursor=cursor, pattern=pattern))
    listed = [fields_of(ListedSession, {**asdict(row), "keys": row.variables}) for row in page.items]
    return answer({"sessions": listed, "cursor": page.cursor})


@ENDPOINTS.add("GET", SESSION, answer=Session, without_tables=NO_SESSION)
def get_session(request: Request, session_id: str) -> Response:
    """Describe a session."""
    return answer(fields_of(Session, session_of(request, session_id).stats()))


@ENDPOINTS.add("DELETE", SESSION, answer=Gone, without_tables="session")
def end_session(request: Request, session_id: str) -> Response:
    """End a session and delete its content."""
    return gone(session_of(request, session_id).end(), "session")


@ENDPOINTS.add("POST", f"{SESSION}/touch", answer=Touched, without_tables={"touched": False})
def touch_session(request: Request, session_id: str, body: Touch) -> Response:
    """Restart a session's time to live."""
    return answer({"touched": session_of(request, session_id).touch(body.ttl_s)})


class Note(Body):
    """A note to append."""

    content: str


Scratchpad = answer_with("Scratchpad", "Notes, oldest first.", notes=list[str])


@ENDPOINTS.add("GET", f"{SESSION}/task", answer=TaskState, without_tables="task state")
def get_task(request: Request, session_id: str) -> Response:
    """Get the state of the task."""
    return answer(existing(session_of(request, session_id).get_task_state(), "task state"))


@ENDPOINTS.add("PUT", f"{SESSION}/task", answer=Done)
def set_task(request: Request, session_id: str, body: TaskState, session_ttl_s: BeginsTTL = None) -> Response:
    """Set the state of the task."""
    session_of(request, session_id, session_ttl_s).set_task_state(body)
    return answer({"ok": True})


@ENDPOINTS.add("DELETE", f"{SESSION}/task", answer=Gone, without_tables="task state")
def delete_task(request: Request, session_id: str) -> Response:
    """Remove the state of the task."""
    session = session_of(request, session_id)
    existing(session.get_task_state(), "task state")
    session.set_task_state(None)
    return answer({"deleted": True})


@ENDPOINTS.add("GET", f"{SESSION}/scratchpad", answer=Scratchpad, without_tables={"notes": []})
def get_scratchpad(
    request: Request,
    session_id: str,
    last: Annotated[int | None, Field(ge=0, le=2**31, description="Only this many of the newest notes.")] = None,
) -> Response:
    """Get the notes."""
    return answer({"notes": session_of(request, session_id).get_scratchpad(last)})


@ENDPOINTS.add("POST", f"{SESSION}/scratchpad", answer=Done)
def append_scratchpad(request: Request, session_id: str, body: Note, session_ttl_s: BeginsTTL = None) -> Response:
    """Add a note."""
    session_of(request, session_id, session_ttl_s).append_scratchpad(body.content)
    return answer({"ok": True})


@ENDPOINTS.add("DELETE", f"{SESSION}/scratchpad", answer=Deleted, without_tables={"deleted": 0})
def clear_scratchpad(request: Request, session_id: str) -> Response:
    """Remove all notes."""
    return answer({"deleted": session_of(request, session_id).clear_scratchpad()})


class NewSessionCheckpoint(Body):
    """A checkpoint to create of the session."""

    label: Annotated[str | None, Field(max_length=1_000, description="A label for the checkpoint.")] = None


class SessionCheckpoint(Answer):
    """A checkpoint of a session."""

    checkpoint_id: CheckpointId
    label: str | None
    created_at: Time
    keys: Annotated[int, Field(ge=0, description="The number of variables in it.")]
    scratchpad_entries: Annotated[int, Field(ge=0, description="The number of notes in it.")]
    size_bytes: Annotated[int, Field(ge=0, description="The size of the session then, in bytes.")]


SessionCheckpoints = answer_with(
    "SessionCheckpoints", "Checkpoints, newest first.", checkpoints=list[SessionCheckpoint]
)
CheckpointMade = answer_with("CheckpointMade", "The id of a checkpoint.", checkpoint_id=CheckpointId)
Restored = answer_with(
    "Restored",
    "The checkpoint of the state before the restore.",
    undo_id=Annotated[
        CheckpointId,
        Field(description="A checkpoint of the session before the restore; restoring it undoes this restore."),
    ],
)


@ENDPOINTS.add("GET", f"{SESSION}/checkpoints", answer=SessionCheckpoints, without_tables={"checkpoints": []})
def list_checkpoints(request: Request, session_id: str) -> Response:
    """List a session's checkpoints."""
    return answer({"checkpoints": session_of(request, session_id).list_checkpoints()})


@ENDPOINTS.add("POST", f"{SESSION}/checkpoints", answer=CheckpointMade)
def create_checkpoint(
    request: Request, session_id: str, body: NewSessionCheckpoint, session_ttl_s: BeginsTTL = None
) -> Response:
    """Create a checkpoint of a session."""
    made = session_of(request, session_id, session_ttl_s).create_checkpoint(body.label)
    return answer({"checkpoint_id": made})


@ENDPOINTS.add("POST", f"{_CHECKPOINT}/restore", answer=Restored, without_tables="checkpoint")
def restore_checkpoint(request: Request, session_id: str, checkpoint_id: str) -> Response:
    """Restore a session from a checkpoint."""
    return answer({"undo_id": session_of(request, session_id).restore_checkpoint(checkpoint_id)})


@ENDPOINTS.add("DELETE", _CHECKPOINT, answer=Gone, without_tables="checkpoint")
def delete_checkpoint(request: Request, session_id: str, checkpoint_id: str) -> Response:
    """Delete a session's checkpoint."""
    return gone(session_of(request, session_id).delete_checkpoint(checkpoint_id), "checkpoint")
