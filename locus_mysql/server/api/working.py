"""Working memory: what a session has in hand: variables, the state of its task, notes, checkpoints.

A session begins with the first write to it; one that is not there is empty. Reading over HTTP does not prolong a
session, as a token that may only read changes nothing; each write does, and ``touch``.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.working.calls import INT_LEAST, INT_MOST
from ...families.working.memory import WorkingMemory
from ...families.working.records import TaskState
from ...families.working.values import MISSING, TTL_LIMIT_S
from ...inspection.records import Page, SessionRow
from ..answers import answer
from ..problems import not_found
from ..routing import Endpoint
from ..services import services_of, tenant_of
from .families import check_kept, is_there
from .models import (
    WITHOUT_NUL,
    Answer,
    Body,
    CheckpointId,
    Cursor,
    Deleted,
    Gone,
    Json,
    Limit,
    NextCursor,
    Query,
    SessionId,
    Time,
)

FAMILY: Final = "working"

#: Variables in one request.
VARIABLES_LIMIT = 1_000

_TTL = Annotated[float | None, Field(gt=0, le=TTL_LIMIT_S)]
_KEY = Annotated[str, Field(min_length=1, max_length=512, pattern=WITHOUT_NUL)]
_INT_64 = Annotated[int, Field(ge=INT_LEAST, le=INT_MOST)]


class BeginsQuery(Query):
    """How long a session lives."""

    session_ttl_seconds: Annotated[
        _TTL,
        Field(
            description="If this write begins the session: it expires when it was not written to for so many seconds. "
            "Left out: it stays until it is ended."
        ),
    ] = None


class SessionsQuery(Query):
    """Which sessions to list."""

    pattern: Annotated[
        str,
        Field(max_length=512, description="A glob: * stands for any text, ? for one character, all else for itself."),
    ] = "*"
    limit: Limit = 50
    cursor: Cursor = None


class ListedSession(Answer):
    """A session in a list."""

    session_id: SessionId
    created_at: Annotated[Time | None, Field(description="When it began, as far as that is known.")]
    updated_at: Annotated[Time | None, Field(description="When it was last written to, as far as that is known.")]
    expires_at: Annotated[Time | None, Field(description="When it ends by itself; null if never.")]
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
    """How long the session lives from now on."""

    ttl_seconds: Annotated[_TTL, Field(description="From now on; null: as long as it had.")] = None


class Touched(Answer):
    """Whether there was a session to touch."""

    touched: bool


class VariablesQuery(Query):
    """Which variables."""

    pattern: Annotated[
        str,
        Field(max_length=512, description="A glob: * stands for any text, ? for one character, all else for itself."),
    ] = "*"


class VariableKeys(Answer):
    """Keys of variables, in order by code point."""

    keys: list[str]


class Variables(Answer):
    """Variables, in the order of their keys by code point."""

    variables: dict[str, Json]


class NewVariables(Body):
    """Variables to set, all or none."""

    variables: Annotated[dict[_KEY, Json], Field(max_length=VARIABLES_LIMIT)]
    ttl_seconds: Annotated[_TTL, Field(description="They expire after so many seconds; null: with the session.")] = None


class Variable(Answer):
    """A variable."""

    value: Json


class NewVariable(Body):
    """A variable to set."""

    value: Json
    ttl_seconds: Annotated[_TTL, Field(description="It expires after so many seconds; null: with the session.")] = None


class Done(Answer):
    """That it is done."""

    ok: bool = True


class Increment(Body):
    """What to add."""

    by: _INT_64 = 1


class Sum(Answer):
    """The sum."""

    value: _INT_64


class CompareAndSet(Body):
    """What to set if the variable is as expected."""

    expected: Annotated[
        Json, Field(description="The value that it must have; left out: there must be none. null is a value.")
    ] = None
    value: Json


class WasSet(Answer):
    """Whether it was as expected, and so was set."""

    set: bool


class TimeToLive(Answer):
    """How long a variable has."""

    expires_in_s: Annotated[float | None, Field(description="null if it does not expire by itself, or is not there.")]


class ScratchpadQuery(Query):
    """Which notes."""

    last: Annotated[int | None, Field(ge=0, le=2**31, description="Only so many of the last.")] = None


class Scratchpad(Answer):
    """Notes, oldest first."""

    notes: list[str]


class Note(Body):
    """A note to add behind all others."""

    content: str


class NewSessionCheckpoint(Body):
    """A checkpoint of the session as it is now."""

    label: Annotated[str | None, Field(max_length=1_000, description="What to call it.")] = None


class CheckpointMade(Answer):
    """The id of a checkpoint."""

    checkpoint_id: CheckpointId


class Restored(Answer):
    """What the session was before."""

    undo_id: Annotated[CheckpointId, Field(description="A checkpoint of it: restoring that one undoes this.")]


class SessionCheckpoint(Answer):
    """A checkpoint of a session."""

    checkpoint_id: CheckpointId
    label: str | None
    created_at: Time
    keys: Annotated[int, Field(ge=0, description="Variables in it.")]
    scratchpad_entries: Annotated[int, Field(ge=0, description="Notes in it.")]
    size_bytes: Annotated[int, Field(ge=0, description="What the session took then.")]


class SessionCheckpoints(Answer):
    """Checkpoints, newest first."""

    checkpoints: list[SessionCheckpoint]


def _session(request: Request) -> WorkingMemory:
    """The session that a request is about."""
    begins = getattr(request.state, "query", None)
    ttl_seconds = begins.session_ttl_seconds if isinstance(begins, BeginsQuery) else None
    return services_of(request).working(tenant_of(request), request.path_params["session_id"], ttl_seconds)


async def list_sessions(request: Request) -> Response:
    """A page of the caller's sessions."""
    asked: SessionsQuery = request.state.query
    inspector = services_of(request).inspector(tenant_of(request))
    page: Page[SessionRow] = Page([])
    if await is_there(request, FAMILY):
        page = await inspector.sessions(limit=asked.limit, cursor=asked.cursor, pattern=asked.pattern)
    listed = [
        {
            "session_id": row.session_id,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
            "expires_at": row.expires_at,
            "keys": row.variables,
            "size_bytes": row.size_bytes,
        }
        for row in page.items
    ]
    return answer({"sessions": listed, "cursor": page.cursor})


async def get_session(request: Request) -> Response:
    """What a session holds."""
    session = _session(request)
    if not await is_there(request, FAMILY):
        return answer({"keys": 0, "size_bytes": 0, "scratchpad_entries": 0, "checkpoints": 0, "expires_in_s": None})
    stats = await session.stats()
    return answer(
        {
            "keys": stats.keys,
            "size_bytes": stats.size_bytes,
            "scratchpad_entries": stats.scratchpad_entries,
            "checkpoints": stats.checkpoints,
            "expires_in_s": stats.expires_in_s,
        }
    )


async def end_session(request: Request) -> Response:
    """Remove a session."""
    session = _session(request)
    if not (await is_there(request, FAMILY) and await session.end()):
        raise not_found("session")
    return answer({"deleted": True})


async def touch_session(request: Request) -> Response:
    """Give a session its whole time again."""
    wanted: Touch = request.state.body
    session = _session(request)
    return answer({"touched": await is_there(request, FAMILY) and await session.touch(wanted.ttl_seconds)})


async def list_keys(request: Request) -> Response:
    """The keys of a session's variables."""
    asked: VariablesQuery = request.state.query
    session = _session(request)
    return answer({"keys": await session.list_keys(asked.pattern) if await is_there(request, FAMILY) else []})


async def get_variables(request: Request) -> Response:
    """All variables of a session."""
    session = _session(request)
    return answer({"variables": await session.get_all() if await is_there(request, FAMILY) else {}})


async def set_variables(request: Request) -> Response:
    """Set variables, all or none."""
    wanted: NewVariables = request.state.body
    session = _session(request)
    await check_kept(request, FAMILY)
    await session.set_many(wanted.variables, wanted.ttl_seconds)
    return answer({"ok": True})


async def clear_variables(request: Request) -> Response:
    """Delete all variables of a session."""
    session = _session(request)
    return answer({"deleted": await session.clear() if await is_there(request, FAMILY) else 0})


async def get_variable(request: Request) -> Response:
    """The value of a variable."""
    session, key = _session(request), request.path_params["key"]
    value = await session.get(key, MISSING) if await is_there(request, FAMILY) else MISSING
    if value is MISSING:
        raise not_found("variable")
    return answer({"value": value})


async def set_variable(request: Request) -> Response:
    """Set a variable."""
    wanted: NewVariable = request.state.body
    session = _session(request)
    await check_kept(request, FAMILY)
    await session.set(request.path_params["key"], wanted.value, wanted.ttl_seconds)
    return answer({"ok": True})


async def delete_variable(request: Request) -> Response:
    """Delete a variable."""
    session, key = _session(request), request.path_params["key"]
    if not (await is_there(request, FAMILY) and await session.delete(key)):
        raise not_found("variable")
    return answer({"deleted": True})


async def get_ttl(request: Request) -> Response:
    """How long a variable has."""
    session, key = _session(request), request.path_params["key"]
    return answer({"expires_in_s": await session.ttl(key) if await is_there(request, FAMILY) else None})


async def increment(request: Request) -> Response:
    """Add to a whole number."""
    wanted: Increment = request.state.body
    session = _session(request)
    await check_kept(request, FAMILY)
    return answer({"value": await session.increment(request.path_params["key"], wanted.by)})


async def compare_and_set(request: Request) -> Response:
    """Set a variable if it is as expected."""
    wanted: CompareAndSet = request.state.body
    expected: Any = wanted.expected if "expected" in wanted.model_fields_set else MISSING
    session = _session(request)
    await check_kept(request, FAMILY)
    return answer({"set": await session.compare_and_set(request.path_params["key"], expected, wanted.value)})


async def get_task(request: Request) -> Response:
    """The state of a session's task."""
    session = _session(request)
    task: TaskState | None = await session.get_task_state() if await is_there(request, FAMILY) else None
    if task is None:
        raise not_found("task state")
    return answer(task)


async def set_task(request: Request) -> Response:
    """Keep the state of a session's task."""
    session = _session(request)
    await check_kept(request, FAMILY)
    await session.set_task_state(request.state.body)
    return answer({"ok": True})


async def delete_task(request: Request) -> Response:
    """Remove the state of a session's task."""
    session = _session(request)
    if await is_there(request, FAMILY) and await session.get_task_state() is not None:
        await session.set_task_state(None)
        return answer({"deleted": True})
    raise not_found("task state")


async def get_scratchpad(request: Request) -> Response:
    """The notes of a session."""
    asked: ScratchpadQuery = request.state.query
    session = _session(request)
    return answer({"notes": await session.get_scratchpad(asked.last) if await is_there(request, FAMILY) else []})


async def append_scratchpad(request: Request) -> Response:
    """Add a note."""
    wanted: Note = request.state.body
    session = _session(request)
    await check_kept(request, FAMILY)
    await session.append_scratchpad(wanted.content)
    return answer({"ok": True})


async def clear_scratchpad(request: Request) -> Response:
    """Remove all notes of a session."""
    session = _session(request)
    return answer({"deleted": await session.clear_scratchpad() if await is_there(request, FAMILY) else 0})


async def list_checkpoints(request: Request) -> Response:
    """The checkpoints of a session."""
    session = _session(request)
    found = await session.list_checkpoints() if await is_there(request, FAMILY) else []
    return answer({"checkpoints": found})


async def create_checkpoint(request: Request) -> Response:
    """Keep a session as it is now."""
    wanted: NewSessionCheckpoint = request.state.body
    session = _session(request)
    await check_kept(request, FAMILY)
    return answer({"checkpoint_id": await session.create_checkpoint(wanted.label)})


async def restore_checkpoint(request: Request) -> Response:
    """Make a session what it was."""
    session, checkpoint_id = _session(request), request.path_params["checkpoint_id"]
    if not await is_there(request, FAMILY):
        raise not_found("checkpoint")
    return answer({"undo_id": await session.restore_checkpoint(checkpoint_id)})


async def delete_checkpoint(request: Request) -> Response:
    """Delete a checkpoint of a session."""
    session, checkpoint_id = _session(request), request.path_params["checkpoint_id"]
    if not (await is_there(request, FAMILY) and await session.delete_checkpoint(checkpoint_id)):
        raise not_found("checkpoint")
    return answer({"deleted": True})


_SESSION = "/sessions/{session_id}"
_VARIABLE = "/sessions/{session_id}/variables/{key}"
_CHECKPOINT = "/sessions/{session_id}/checkpoints/{checkpoint_id}"

ENDPOINTS = (
    Endpoint("GET", "/sessions", list_sessions, "read", "List sessions", query=SessionsQuery, answer=Sessions),
    Endpoint("GET", _SESSION, get_session, "read", "Describe a session", answer=Session),
    Endpoint("DELETE", _SESSION, end_session, "write", "End a session, with all that it holds", answer=Gone),
    Endpoint(
        "POST",
        f"{_SESSION}/touch",
        touch_session,
        "write",
        "Give a session its whole time again",
        body=Touch,
        answer=Touched,
    ),
    Endpoint(
        "GET",
        f"{_SESSION}/keys",
        list_keys,
        "read",
        "List keys of variables",
        query=VariablesQuery,
        answer=VariableKeys,
    ),
    Endpoint("GET", f"{_SESSION}/variables", get_variables, "read", "Get all variables", answer=Variables),
    Endpoint(
        "PUT",
        f"{_SESSION}/variables",
        set_variables,
        "write",
        "Set variables, all or none",
        query=BeginsQuery,
        body=NewVariables,
        answer=Done,
    ),
    Endpoint("DELETE", f"{_SESSION}/variables", clear_variables, "write", "Delete all variables", answer=Deleted),
    Endpoint("GET", _VARIABLE, get_variable, "read", "Get a variable", answer=Variable),
    Endpoint(
        "PUT", _VARIABLE, set_variable, "write", "Set a variable", query=BeginsQuery, body=NewVariable, answer=Done
    ),
    Endpoint("DELETE", _VARIABLE, delete_variable, "write", "Delete a variable", answer=Gone),
    Endpoint("GET", f"{_VARIABLE}/ttl", get_ttl, "read", "How long a variable has", answer=TimeToLive),
    Endpoint(
        "POST",
        f"{_VARIABLE}/increment",
        increment,
        "write",
        "Add to a whole number; one that is not there counts as 0",
        query=BeginsQuery,
        body=Increment,
        answer=Sum,
    ),
    Endpoint(
        "POST",
        f"{_VARIABLE}/compare-and-set",
        compare_and_set,
        "write",
        "Set a variable if it is as expected",
        query=BeginsQuery,
        body=CompareAndSet,
        answer=WasSet,
    ),
    Endpoint("GET", f"{_SESSION}/task", get_task, "read", "Get the state of the task", answer=TaskState),
    Endpoint(
        "PUT",
        f"{_SESSION}/task",
        set_task,
        "write",
        "Keep the state of the task",
        query=BeginsQuery,
        body=TaskState,
        answer=Done,
    ),
    Endpoint("DELETE", f"{_SESSION}/task", delete_task, "write", "Remove the state of the task", answer=Gone),
    Endpoint(
        "GET",
        f"{_SESSION}/scratchpad",
        get_scratchpad,
        "read",
        "Get the notes",
        query=ScratchpadQuery,
        answer=Scratchpad,
    ),
    Endpoint(
        "POST",
        f"{_SESSION}/scratchpad",
        append_scratchpad,
        "write",
        "Add a note",
        query=BeginsQuery,
        body=Note,
        answer=Done,
    ),
    Endpoint("DELETE", f"{_SESSION}/scratchpad", clear_scratchpad, "write", "Remove all notes", answer=Deleted),
    Endpoint(
        "GET",
        f"{_SESSION}/checkpoints",
        list_checkpoints,
        "read",
        "List a session's checkpoints",
        answer=SessionCheckpoints,
    ),
    Endpoint(
        "POST",
        f"{_SESSION}/checkpoints",
        create_checkpoint,
        "write",
        "Keep a session as it is now",
        query=BeginsQuery,
        body=NewSessionCheckpoint,
        answer=CheckpointMade,
    ),
    Endpoint(
        "POST",
        f"{_CHECKPOINT}/restore",
        restore_checkpoint,
        "write",
        "Make a session what it was",
        answer=Restored,
    ),
    Endpoint("DELETE", _CHECKPOINT, delete_checkpoint, "write", "Delete a session's checkpoint", answer=Gone),
)
