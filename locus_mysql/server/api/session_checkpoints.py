"""Endpoints of a session's checkpoints."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.working.family import WORKING
from ..json_responses import answer
from ..problems import not_found
from ..routing import Endpoint
from .models import Answer, Body, CheckpointId, Gone, Time
from .sessions import SESSION, BeginsQuery, session_of

_CHECKPOINT = f"{SESSION}/checkpoints/{{checkpoint_id}}"


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


def list_checkpoints(request: Request) -> Response:
    """List the checkpoints of a session."""
    session = session_of(request)
    found = session.list_checkpoints()
    return answer({"checkpoints": found})


def create_checkpoint(request: Request) -> Response:
    """Create a checkpoint of a session."""
    wanted: NewSessionCheckpoint = request.state.body
    session = session_of(request)
    return answer({"checkpoint_id": session.create_checkpoint(wanted.label)})


def restore_checkpoint(request: Request) -> Response:
    """Restore a session from a checkpoint."""
    session, checkpoint_id = session_of(request), request.path_params["checkpoint_id"]
    return answer({"undo_id": session.restore_checkpoint(checkpoint_id)})


def delete_checkpoint(request: Request) -> Response:
    """Delete a checkpoint of a session."""
    session, checkpoint_id = session_of(request), request.path_params["checkpoint_id"]
    if not session.delete_checkpoint(checkpoint_id):
        raise not_found("checkpoint")
    return answer({"deleted": True})


ENDPOINTS = (
    Endpoint(
        "GET",
        f"{SESSION}/checkpoints",
        list_checkpoints,
        "read",
        "List a session's checkpoints",
        answer=SessionCheckpoints,
        family=WORKING,
        without_tables={"checkpoints": []},
    ),
    Endpoint(
        "POST",
        f"{SESSION}/checkpoints",
        create_checkpoint,
        "write",
        "Create a checkpoint of a session",
        query=BeginsQuery,
        body=NewSessionCheckpoint,
        answer=CheckpointMade,
        family=WORKING,
    ),
    Endpoint(
        "POST",
        f"{_CHECKPOINT}/restore",
        restore_checkpoint,
        "write",
        "Restore a session from a checkpoint",
        answer=Restored,
        family=WORKING,
        without_tables="checkpoint",
    ),
    Endpoint(
        "DELETE",
        _CHECKPOINT,
        delete_checkpoint,
        "write",
        "Delete a session's checkpoint",
        answer=Gone,
        family=WORKING,
        without_tables="checkpoint",
    ),
)
