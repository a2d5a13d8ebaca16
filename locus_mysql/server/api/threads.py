"""Endpoints of threads: those for ``locus.memory.backends.HTTPCheckpointer``, then those for the threads of any family.

httpx removes dot segments from a path, as RFC 3986 requires, and a dot cannot be escaped: for the thread ``.`` it
requests ``/threads/checkpoints``, and for ``..`` ``/checkpoints``. So these paths exist as well. Checkpoints with such
ids are refused, as no client could request them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, TypeAlias
from uuid import uuid4

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.registry import families, find_family
from ...integrations.locus.agent_states import AGENTS
from ..bodies import answer, answer_text, value_of
from ..problems import Problem, existing, invalid, not_found
from ..routing import Endpoints
from ..services import read, stores_of
from .models import (
    WITHOUT_NUL,
    Answer,
    Body,
    CheckpointId,
    Cursor,
    Damage,
    Gone,
    Json,
    Limit,
    Metadata,
    NextCursor,
    Pattern,
    ThreadId,
    Time,
    answer_with,
    fields_of,
    gone,
)

#: The largest number of ids in an answer. A larger limit is reduced to it, as Locus' client would take an error for a
#: thread without checkpoints.
MOST_LISTED = 100_000

#: The paths of a thread's checkpoints, with the thread's id where the path cannot contain it.
_PLACES: tuple[tuple[str, dict[str, str]], ...] = (
    ("/threads/{thread_id}/checkpoints", {}),
    ("/threads/checkpoints", {"thread_id": "."}),
    ("/checkpoints", {"thread_id": ".."}),
)

ENDPOINTS = Endpoints(AGENTS)

#: Only offered with the option `vacuum`, as callers cannot restore what it removes.
VACUUM = Endpoints(AGENTS)

#: What is described of ids; those of a body are checked when they are used.
_ID: dict[str, Any] = {"minLength": 1, "maxLength": 128}


class NewCheckpoint(BaseModel):
    """A state to save. Unknown fields are ignored."""

    model_config = ConfigDict(strict=True)

    checkpoint_id: Annotated[str, Field(description="a random one if left out", json_schema_extra=_ID)] | None = None
    thread_id: Annotated[str, Field(description="the same as in the path")] | None = None
    created_at: Annotated[str, Field(description="ignored: the service uses the database's clock")] | None = None
    parent_id: (
        Annotated[
            str, Field(description="the parent checkpoint; if left out, the thread's newest", json_schema_extra=_ID)
        ]
        | None
    ) = None
    state: dict[str, Any]
    metadata: Annotated[dict[str, Any], Field(description="at most 65,536 bytes as JSON")] | None = None


Saved = answer_with("Saved", "The id of the new checkpoint.", checkpoint_id=str)
State = answer_with("State", "A checkpoint's state.", state=dict[str, Any])
Listing = answer_with("Listing", "The ids of a thread's checkpoints, newest first.", checkpoints=list[str])


def whole_number(value: object) -> object:
    """Parse a limit in a query. A larger number is reduced to the largest allowed."""
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit()):
            raise ValueError("must be a whole number")
        return min(int(value[:20]), MOST_LISTED)
    return value


def save(request: Request, thread_id: str, body: NewCheckpoint) -> Response:
    """Save a state as the newest checkpoint of a thread.

    A repeated request with the same content changes nothing and gets the same answer.
    """
    if body.thread_id is not None and body.thread_id != thread_id:
        raise Problem("thread_mismatch", "The path and the body name different threads. Nothing was saved.")
    if body.checkpoint_id in {".", ".."}:
        raise invalid("A checkpoint's id cannot be '.' or '..' here, because no path can contain it.")
    threads = stores_of(request).threads
    checkpoint_id = uuid4().hex if body.checkpoint_id is None else body.checkpoint_id
    prepared = threads.prepared(body.state, checkpoint_id, body.metadata, body.parent_id)
    return answer({"checkpoint_id": threads.save_once(thread_id, prepared)})


def load(request: Request, thread_id: str, checkpoint_id: str) -> Response:
    """Get the state of a checkpoint."""
    text = existing(stores_of(request).threads.load_text(thread_id, checkpoint_id), "checkpoint")
    return answer_text(b'{"state":%b}' % text)


def list_checkpoints(
    request: Request,
    thread_id: str,
    limit: Annotated[int, Field(ge=0, description="the maximum number of ids"), BeforeValidator(whole_number)] = 10,
) -> Response:
    """List the ids of a thread's checkpoints, newest first. An unknown thread has none."""
    return answer({"checkpoints": stores_of(request).threads.list_checkpoints(thread_id, limit)})


def delete(request: Request, thread_id: str, checkpoint_id: str | None) -> Response:
    """Delete a checkpoint. None stands for all of a thread."""
    existed = stores_of(request).threads.delete(thread_id, checkpoint_id)
    return gone(existed, "thread" if checkpoint_id is None else "checkpoint")


#: The endpoints of Locus' client.
LOCUS = Endpoints(AGENTS)
for _path, _thread in _PLACES:
    _one, _whole = f"{_path}/{{checkpoint_id}}", {**_thread, "checkpoint_id": None}
    LOCUS.add("POST", _path, answer=Saved, fixed=_thread, family=None)(save)
    LOCUS.add("GET", _path, answer=Listing, fixed=_thread, without_tables={"checkpoints": []})(list_checkpoints)
    LOCUS.add("DELETE", _path, answer=Gone, fixed=_whole, without_tables="thread", summary="Delete a thread")(delete)
    LOCUS.add("GET", _one, answer=State, fixed=_thread, without_tables="checkpoint")(load)
    LOCUS.add("DELETE", _one, answer=Gone, fixed=_thread, without_tables="checkpoint")(delete)


FamilyName: TypeAlias = Annotated[
    str,
    Field(
        max_length=64,
        description="The family of tables: `GET /families` lists those that exist. Threads of the families that "
        "hold no conversations are their owners: sessions of working memory, items of long-term memory.",
        json_schema_extra=lambda schema: schema.update(enum=[family.name for family in families()]),
    ),
]


class Thread(Answer):
    """A thread in a list."""

    thread_id: Annotated[str, Field(description="Its id; a path, if the key of the family has several parts.")]
    created_at: Annotated[Time, Field(description="When the thread was first saved.")]
    updated_at: Annotated[Time, Field(description="When the thread was last saved.")]
    checkpoints: Annotated[int, Field(ge=0, description="The number of its checkpoints, or of its items.")]
    size_bytes: Annotated[int, Field(ge=0, description="Its size in the database in bytes, without indexes.")]
    checkpoint_id: Annotated[str | None, Field(description="Its newest checkpoint.")]
    metadata: Annotated[Metadata, Field(description="The metadata of the newest checkpoint.")]
    damage: Damage


class HistoryEntry(Answer):
    """A checkpoint in its thread's history."""

    namespace: Annotated[str, Field(description="The checkpoint namespace of a graph; else empty.")]
    checkpoint_id: Annotated[str, Field(min_length=1, description="A checkpoint, or a branch of a transcript.")]
    parent_id: Annotated[
        str | None,
        Field(description="The checkpoint that it continues; null if there is none, or none that still exists."),
    ]
    created_at: Time
    size_bytes: Annotated[int, Field(ge=0, description="The size of its row in the database in bytes.")]
    metadata: Metadata
    damage: Damage


class Call(Answer):
    """A call of a tool, with its result if that is known."""

    call_id: str | None
    name: str
    arguments: Json
    result: str | None
    error: str | None


class StateMessage(Answer):
    """A message of a conversation."""

    role: str
    text: str
    at: Annotated[datetime | None, Field(description="Its time, if the state has one.")]
    tool_calls: list[Call]


class Written(Answer):
    """A write of a graph's task that no checkpoint contains yet."""

    task_id: str
    channel: str
    value: Json


class ThreadState(Answer):
    """A state with its conversation."""

    checkpoint: HistoryEntry
    messages: Annotated[list[StateMessage], Field(description="The conversation, as far as it is recognised.")]
    state: Annotated[dict[str, Any], Field(description="The whole state. A text describes a value that JSON lacks.")]
    writes: list[Written]
    damage: Damage


class CheckpointInfo(Answer):
    """A checkpoint without its state."""

    thread_id: ThreadId
    checkpoint_id: CheckpointId
    metadata: Metadata
    created_at: Time


class Copy(Body):
    """The target of a copy."""

    to: Annotated[ThreadId, Field(description="The new thread; it must have no checkpoints.")]


class SearchHit(Answer):
    """A checkpoint that added a text with at least one of the words."""

    thread_id: ThreadId
    checkpoint_id: CheckpointId
    score: Annotated[float, Field(description="The relevance; comparable within one search only.")]
    snippet: Annotated[str, Field(description="The text around the first of the words.")]
    created_at: Time


class FamilyEntry(Answer):
    """A family of tables."""

    name: str
    title: str
    unit: Annotated[str, Field(description="What the size of a thread is counted in, such as checkpoint or item.")]


class Vacuum(Body):
    """The age of checkpoints to remove."""

    older_than_days: Annotated[
        float,
        Field(
            ge=0,
            le=36_525,
            description="Threads that were not saved for this many days are deleted; others lose only their older "
            "checkpoints.",
        ),
    ] = 30.0


Threads = answer_with(
    "Threads",
    "Threads, most recently saved first; those of families without an index of the time, in the order of their ids.",
    threads=list[Thread],
    cursor=NextCursor,
)
History = answer_with(
    "History", "A thread's checkpoints, newest first.", checkpoints=list[HistoryEntry], cursor=NextCursor
)
Copied = answer_with("Copied", "The thread to which the copy is written.", thread_id=ThreadId)
SearchHits = answer_with("SearchHits", "Hits, best first.", hits=list[SearchHit])
Checkpoints = answer_with("Checkpoints", "Checkpoints, newest first.", checkpoints=list[CheckpointInfo])
Families = answer_with("Families", "The families whose tables exist.", families=list[FamilyEntry])
Vacuumed = answer_with(
    "Vacuumed",
    "The number of removed checkpoints.",
    removed=Annotated[int, Field(ge=0, description="The number of removed checkpoints.")],
)


@ENDPOINTS.add("GET", "/families", answer=Families, family=None)
def list_families(request: Request) -> Response:
    """List the families of tables that exist."""
    found = [find_family(name) for name in read(stores_of(request).inspector.families())]
    return answer({"families": [fields_of(FamilyEntry, family) for family in found]})


@ENDPOINTS.add("GET", "/threads", answer=Threads, without_tables={"threads": [], "cursor": None})
def list_threads(
    request: Request,
    family: FamilyName = AGENTS.name,
    pattern: Pattern = "*",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List threads."""
    page = read(stores_of(request).inspector.threads(family, limit=limit, cursor=cursor, pattern=pattern))
    return answer({"threads": [fields_of(Thread, row) for row in page.items], "cursor": page.cursor})


@ENDPOINTS.add("GET", "/threads/{thread_id}", answer=Thread, without_tables="thread")
def get_thread(request: Request, thread_id: str, family: FamilyName = AGENTS.name) -> Response:
    """Describe a thread."""
    row = read(stores_of(request).inspector.thread(family, thread_id))
    return answer(fields_of(Thread, existing(row, "thread")))


@ENDPOINTS.add("DELETE", "/threads/{thread_id}", answer=Gone, without_tables="thread")
def delete_thread(request: Request, thread_id: str, family: FamilyName = AGENTS.name) -> Response:
    """Delete a thread of any family."""
    return gone(stores_of(request).change(family, lambda changes: changes.delete(thread_id, None, "")), "thread")


@ENDPOINTS.add("GET", "/threads/{thread_id}/history", answer=History, without_tables="thread")
def get_history(
    request: Request,
    thread_id: str,
    family: FamilyName = AGENTS.name,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """List a thread's checkpoints, each with its parent."""
    inspector = stores_of(request).inspector
    page = read(inspector.history(family, thread_id, limit=limit, cursor=cursor))
    if not page.items:
        existing(read(inspector.thread(family, thread_id)), "thread")
    return answer({"checkpoints": [fields_of(HistoryEntry, row) for row in page.items], "cursor": page.cursor})


@ENDPOINTS.add("GET", "/threads/{thread_id}/state", answer=ThreadState, without_tables="checkpoint")
def get_state(
    request: Request,
    thread_id: str,
    family: FamilyName = AGENTS.name,
    checkpoint_id: Annotated[
        str | None,
        Field(min_length=1, max_length=512, pattern=WITHOUT_NUL, description="The checkpoint; by default the newest."),
    ] = None,
    namespace: Annotated[str, Field(max_length=4_096, description="The checkpoint namespace of a graph.")] = "",
) -> Response:
    """Get a state with its conversation."""
    inspector = stores_of(request).inspector
    view = existing(read(inspector.state(family, thread_id, checkpoint_id, namespace=namespace)), "checkpoint")
    content = {
        "checkpoint": fields_of(HistoryEntry, view.checkpoint),
        "messages": [
            {**fields_of(StateMessage, one), "tool_calls": [fields_of(Call, call) for call in one.tool_calls]}
            for one in view.messages
        ],
        "state": view.state,
        "writes": [fields_of(Written, one) for one in view.writes],
        "damage": view.damage,
    }
    # A stored text may hold lone surrogates, which only escapes can express.
    return answer_text(json.dumps(content, default=lambda value: value.isoformat()).encode())


@ENDPOINTS.add("GET", "/threads/{thread_id}/metadata", answer=CheckpointInfo, without_tables="checkpoint")
def get_metadata(
    request: Request,
    thread_id: str,
    checkpoint_id: Annotated[
        CheckpointId | None, Field(description="The checkpoint; if left out, the thread's newest.")
    ] = None,
) -> Response:
    """Get the metadata of an agent's checkpoint."""
    info = stores_of(request).threads.get_metadata(thread_id, checkpoint_id)
    return answer(fields_of(CheckpointInfo, existing(info, "checkpoint")))


@ENDPOINTS.add("POST", "/threads/{thread_id}/copy", answer=Copied, without_tables="thread")
def copy_thread(request: Request, thread_id: str, body: Copy, family: FamilyName = AGENTS.name) -> Response:
    """Copy a thread with all its checkpoints."""
    if not stores_of(request).change(family, lambda changes: changes.copy(thread_id, body.to)):
        raise not_found("thread")
    return answer({"thread_id": body.to})


@ENDPOINTS.add("GET", "/search", answer=SearchHits, without_tables={"hits": []})
def search(
    request: Request,
    q: Annotated[str, Field(max_length=4_096, description="Words. Those of fewer than three letters are not found.")],
    family: FamilyName = AGENTS.name,
    limit: Annotated[Limit, Field(le=100)] = 10,
) -> Response:
    """Search conversations by words."""
    stores = stores_of(request)
    if family == AGENTS.name:  # this search moves new texts into the index
        return answer({"hits": stores.threads.search(q, limit)})
    found = read(stores.inspector.search(q, family=family, limit=limit))
    return answer({"hits": [fields_of(SearchHit, hit) for hit in found]})


@ENDPOINTS.add("GET", "/metadata", answer=Checkpoints, without_tables={"checkpoints": []})
def query_metadata(
    request: Request,
    key: Annotated[str, Field(max_length=4_096, description="A top-level name in the metadata.")],
    value: Annotated[
        str,
        Field(
            max_length=4_096,
            description='The value that the metadata must contain, as JSON: 5, true, "5", {"a": 1}. A value that is '
            "not valid JSON counts as text.",
        ),
    ],
    family: FamilyName = AGENTS.name,
    limit: Limit = 100,
) -> Response:
    """Find checkpoints by their metadata."""
    stores, wanted = stores_of(request), value_of(value)
    if family == AGENTS.name:  # this search is not limited to the newest checkpoints
        infos = stores.threads.query_by_metadata(key, wanted, limit)
        return answer({"checkpoints": [fields_of(CheckpointInfo, info) for info in infos]})
    found = read(stores.inspector.by_metadata(key, wanted, family=family, limit=limit))
    named = [{**asdict(one.checkpoint), "thread_id": one.thread_id} for one in found]
    return answer({"checkpoints": [fields_of(CheckpointInfo, info) for info in named]})


@VACUUM.add("POST", "/vacuum", answer=Vacuumed, without_tables={"removed": 0})
def vacuum(request: Request, body: Vacuum) -> Response:
    """Remove old threads, and old checkpoints of the others."""
    return answer({"removed": stores_of(request).threads.vacuum(body.older_than_days)})
