"""Endpoints of threads: those for ``locus.memory.backends.HTTPCheckpointer``, then those for the threads of any family.

httpx removes dot segments from a path, as RFC 3986 requires, and a dot cannot be escaped: for the thread ``.`` it
requests ``/threads/checkpoints``, and for ``..`` ``/checkpoints``. So these paths exist as well. Checkpoints with such
ids are refused, as no client could request them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any
from uuid import uuid4

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.registry import families, find_family
from ...integrations.locus.agent_states import AGENTS
from ..bodies import answer, answer_text, value_of
from ..problems import Problem, invalid, not_found
from ..routing import Endpoint, Endpoints
from ..services import stores_of
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
    QueryParameters,
    ThreadId,
    Time,
    fields_of,
)

#: The largest number of ids in an answer. A larger limit is reduced to it, as Locus' client would take an error for a
#: thread without checkpoints.
MOST_LISTED = 100_000

#: Prefixes of the paths of a thread's checkpoints, with the thread's id where the path cannot contain it.
_PLACES = (("/threads/{thread_id}/checkpoints", None), ("/threads/checkpoints", "."), ("/checkpoints", ".."))

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


class Saved(BaseModel):
    """The id of the new checkpoint."""

    checkpoint_id: str


class State(BaseModel):
    """A checkpoint's state."""

    state: dict[str, Any]


class Listing(BaseModel):
    """The ids of a thread's checkpoints, newest first."""

    checkpoints: list[str]


def whole_number(value: object) -> object:
    """Parse a limit in a query. A larger number is reduced to the largest allowed."""
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit()):
            raise ValueError("must be a whole number")
        return min(int(value[:20]), MOST_LISTED)
    return value


class HowMany(BaseModel):
    """The query of a list."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Field(ge=0, description="the maximum number of ids"), BeforeValidator(whole_number)] = 10


def locus_endpoints() -> list[Endpoint]:
    """Return all of these endpoints."""
    endpoints = []
    for path, thread_id in _PLACES:
        one = f"{path}/{{checkpoint_id}}"
        endpoints += [
            Endpoint(
                "POST", path, _of(thread_id, save), "write", "Save a state as the newest checkpoint of a thread",
                body=NewCheckpoint, answer=Saved,
            ),
            Endpoint(
                "GET", path, _of(thread_id, list_checkpoints), "read", "List the ids of a thread's checkpoints, "
                                                                       "newest first",
                query=HowMany, answer=Listing, family=AGENTS, without_tables={"checkpoints": []},
            ),
            Endpoint(
                "DELETE", path, _of(thread_id, delete), "write", "Delete a thread", answer=Gone,
                family=AGENTS, without_tables="thread",
            ),
            Endpoint(
                "GET", one, _of(thread_id, load), "read", "Get the state of a checkpoint", answer=State,
                family=AGENTS, without_tables="checkpoint",
            ),
            Endpoint(
                "DELETE", one, _of(thread_id, delete), "write", "Delete a checkpoint", answer=Gone,
                family=AGENTS, without_tables="checkpoint",
            ),
        ]  # fmt: skip
    return endpoints


def _of(thread_id: str | None, handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Return a handler for a path that means this thread without naming it."""
    if thread_id is None:
        return handler

    def handle(request: Request) -> Response:
        request.path_params["thread_id"] = thread_id
        return handler(request)

    return handle


def save(request: Request) -> Response:
    """Save a state. A repeated request with the same content changes nothing and gets the same answer."""
    new: NewCheckpoint = request.state.body
    thread_id = request.path_params["thread_id"]
    if new.thread_id is not None and new.thread_id != thread_id:
        raise Problem("thread_mismatch", "The path and the body name different threads. Nothing was saved.")
    if new.checkpoint_id in {".", ".."}:
        raise invalid("A checkpoint's id cannot be '.' or '..' here, because no path can contain it.")
    threads = stores_of(request).threads
    checkpoint_id = uuid4().hex if new.checkpoint_id is None else new.checkpoint_id
    prepared = threads.prepared(new.state, checkpoint_id, new.metadata, new.parent_id)
    return answer({"checkpoint_id": threads.save_once(thread_id, prepared)})


def load(request: Request) -> Response:
    """Return the state of a checkpoint, as it was saved."""
    text = stores_of(request).threads.load_text(request.path_params["thread_id"], request.path_params["checkpoint_id"])
    if text is None:
        raise not_found("checkpoint")
    return answer_text(b'{"state":%b}' % text)


def list_checkpoints(request: Request) -> Response:
    """Return the ids of a thread's checkpoints; none for an unknown thread."""
    thread_id, limit = request.path_params["thread_id"], request.state.query.limit
    return answer({"checkpoints": stores_of(request).threads.list_checkpoints(thread_id, limit)})


def delete(request: Request) -> Response:
    """Delete a checkpoint, or a thread."""
    thread_id, checkpoint_id = request.path_params["thread_id"], request.path_params.get("checkpoint_id")
    if not stores_of(request).threads.delete(thread_id, checkpoint_id):
        raise not_found("thread" if checkpoint_id is None else "checkpoint")
    return answer({"deleted": True})


class FamilyQuery(QueryParameters):
    """The query that names a family."""

    family: Annotated[
        str,
        Field(
            max_length=64,
            description="The family of tables: `GET /families` lists those that exist. Threads of the families that "
            "hold no conversations are their owners: sessions of working memory, items of long-term memory.",
            json_schema_extra=lambda schema: schema.update(enum=[family.name for family in families()]),
        ),
    ] = AGENTS.name


class ThreadsQuery(FamilyQuery):
    """The query of a list of threads."""

    pattern: Annotated[
        str,
        Field(max_length=512, description="A glob: * stands for any text, ? for one character, all else for itself."),
    ] = "*"
    limit: Limit = 50
    cursor: Cursor = None


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


class Threads(Answer):
    """Threads, most recently saved first; those of families without an index of the time, in the order of their ids."""

    threads: list[Thread]
    cursor: NextCursor


class HistoryQuery(FamilyQuery):
    """The query of a history."""

    limit: Limit = 100
    cursor: Cursor = None


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


class History(Answer):
    """A thread's checkpoints, newest first."""

    checkpoints: list[HistoryEntry]
    cursor: NextCursor


class StateQuery(FamilyQuery):
    """The query that names a state."""

    checkpoint_id: Annotated[
        str | None,
        Field(min_length=1, max_length=512, pattern=WITHOUT_NUL, description="The checkpoint; by default the newest."),
    ] = None
    namespace: Annotated[str, Field(max_length=4_096, description="The checkpoint namespace of a graph.")] = ""


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


class MetadataQuery(QueryParameters):
    """The query that names a checkpoint."""

    checkpoint_id: Annotated[
        CheckpointId | None, Field(description="The checkpoint; if left out, the thread's newest.")
    ] = None


class CheckpointInfo(Answer):
    """A checkpoint without its state."""

    thread_id: ThreadId
    checkpoint_id: CheckpointId
    metadata: Metadata
    created_at: Time


class Copy(Body):
    """The target of a copy."""

    to: Annotated[ThreadId, Field(description="The new thread; it must have no checkpoints.")]


class Copied(Answer):
    """The thread to which the copy is written."""

    thread_id: ThreadId


class SearchQuery(FamilyQuery):
    """The query of a search by words."""

    q: Annotated[
        str,
        Field(
            max_length=4_096,
            description="Words. Those of fewer than three letters are not found.",
        ),
    ]
    limit: Annotated[Limit, Field(le=100)] = 10


class SearchHit(Answer):
    """A checkpoint that added a text with at least one of the words."""

    thread_id: ThreadId
    checkpoint_id: CheckpointId
    score: Annotated[float, Field(description="The relevance; comparable within one search only.")]
    snippet: Annotated[str, Field(description="The text around the first of the words.")]
    created_at: Time


class SearchHits(Answer):
    """Hits, best first."""

    hits: list[SearchHit]


class PairQuery(FamilyQuery):
    """The query of a search by metadata: a key and its value."""

    key: Annotated[str, Field(max_length=4_096, description="A top-level name in the metadata.")]
    value: Annotated[
        str,
        Field(
            max_length=4_096,
            description='The value that the metadata must contain, as JSON: 5, true, "5", {"a": 1}. A value that is '
            "not valid JSON counts as text.",
        ),
    ]
    limit: Limit = 100


class Checkpoints(Answer):
    """Checkpoints, newest first."""

    checkpoints: list[CheckpointInfo]


class FamilyEntry(Answer):
    """A family of tables."""

    name: str
    title: str
    unit: Annotated[str, Field(description="What the size of a thread is counted in, such as checkpoint or item.")]


class Families(Answer):
    """The families whose tables exist."""

    families: list[FamilyEntry]


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


class Vacuumed(Answer):
    """The number of removed checkpoints."""

    removed: Annotated[int, Field(ge=0, description="The number of removed checkpoints.")]


def list_families(request: Request) -> Response:
    """List the families whose tables exist."""
    found = [find_family(name) for name in stores_of(request).inspector.families()]
    return answer({"families": [fields_of(FamilyEntry, family) for family in found]})


ENDPOINTS.append(
    Endpoint("GET", "/families", list_families, "read", "List the families of tables that exist", answer=Families)
)


@ENDPOINTS.add("GET", "/threads", query=ThreadsQuery, answer=Threads, without_tables={"threads": [], "cursor": None})
def list_threads(request: Request) -> Response:
    """List threads."""
    asked: ThreadsQuery = request.state.query
    page = stores_of(request).inspector.threads(
        asked.family, limit=asked.limit, cursor=asked.cursor, pattern=asked.pattern
    )
    return answer({"threads": [fields_of(Thread, row) for row in page.items], "cursor": page.cursor})


@ENDPOINTS.add("GET", "/threads/{thread_id}", query=FamilyQuery, answer=Thread, without_tables="thread")
def get_thread(request: Request) -> Response:
    """Describe a thread."""
    row = stores_of(request).inspector.thread(request.state.query.family, request.path_params["thread_id"])
    if row is None:
        raise not_found("thread")
    return answer(fields_of(Thread, row))


@ENDPOINTS.add("DELETE", "/threads/{thread_id}", query=FamilyQuery, answer=Gone, without_tables="thread")
def delete_thread(request: Request) -> Response:
    """Delete a thread of any family."""
    thread_id = request.path_params["thread_id"]
    if not stores_of(request).change(request.state.query.family, lambda changes: changes.delete(thread_id, None, "")):
        raise not_found("thread")
    return answer({"deleted": True})


@ENDPOINTS.add("GET", "/threads/{thread_id}/history", query=HistoryQuery, answer=History, without_tables="thread")
def get_history(request: Request) -> Response:
    """List a thread's checkpoints, each with its parent."""
    asked: HistoryQuery = request.state.query
    inspector = stores_of(request).inspector
    thread_id = request.path_params["thread_id"]
    page = inspector.history(asked.family, thread_id, limit=asked.limit, cursor=asked.cursor)
    if not page.items and not inspector.thread(asked.family, thread_id):
        raise not_found("thread")
    return answer({"checkpoints": [fields_of(HistoryEntry, row) for row in page.items], "cursor": page.cursor})


@ENDPOINTS.add("GET", "/threads/{thread_id}/state", query=StateQuery, answer=ThreadState, without_tables="checkpoint")
def get_state(request: Request) -> Response:
    """Get a state with its conversation."""
    asked: StateQuery = request.state.query
    view = stores_of(request).inspector.state(
        asked.family, request.path_params["thread_id"], asked.checkpoint_id, namespace=asked.namespace
    )
    if view is None:
        raise not_found("checkpoint")
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


@ENDPOINTS.add(
    "GET", "/threads/{thread_id}/metadata", query=MetadataQuery, answer=CheckpointInfo, without_tables="checkpoint"
)
def get_metadata(request: Request) -> Response:
    """Get the metadata of an agent's checkpoint."""
    asked: MetadataQuery = request.state.query
    info = stores_of(request).threads.get_metadata(request.path_params["thread_id"], asked.checkpoint_id)
    if info is None:
        raise not_found("checkpoint")
    return answer(fields_of(CheckpointInfo, info))


@ENDPOINTS.add(
    "POST", "/threads/{thread_id}/copy", query=FamilyQuery, body=Copy, answer=Copied, without_tables="thread"
)
def copy_thread(request: Request) -> Response:
    """Copy a thread with all its checkpoints."""
    source, wanted = request.path_params["thread_id"], request.state.body
    if not stores_of(request).change(request.state.query.family, lambda changes: changes.copy(source, wanted.to)):
        raise not_found("thread")
    return answer({"thread_id": wanted.to})


@ENDPOINTS.add("GET", "/search", query=SearchQuery, answer=SearchHits, without_tables={"hits": []})
def search(request: Request) -> Response:
    """Search conversations by words."""
    asked: SearchQuery = request.state.query
    stores = stores_of(request)
    if asked.family == AGENTS.name:  # this search moves new texts into the index
        return answer({"hits": stores.threads.search(asked.q, asked.limit)})
    found = stores.inspector.search(asked.q, family=asked.family, limit=asked.limit)
    return answer({"hits": [fields_of(SearchHit, hit) for hit in found]})


@ENDPOINTS.add("GET", "/metadata", query=PairQuery, answer=Checkpoints, without_tables={"checkpoints": []})
def query_metadata(request: Request) -> Response:
    """Find checkpoints by their metadata."""
    asked: PairQuery = request.state.query
    stores, value = stores_of(request), value_of(asked.value)
    if asked.family == AGENTS.name:  # this search is not limited to the newest checkpoints
        infos = stores.threads.query_by_metadata(asked.key, value, asked.limit)
        return answer({"checkpoints": [fields_of(CheckpointInfo, info) for info in infos]})
    found = stores.inspector.by_metadata(asked.key, value, family=asked.family, limit=asked.limit)
    named = [{**asdict(one.checkpoint), "thread_id": one.thread_id} for one in found]
    return answer({"checkpoints": [fields_of(CheckpointInfo, info) for info in named]})


@VACUUM.add("POST", "/vacuum", body=Vacuum, answer=Vacuumed, without_tables={"removed": 0})
def vacuum(request: Request) -> Response:
    """Remove old threads, and old checkpoints of the others."""
    wanted: Vacuum = request.state.body
    return answer({"removed": stores_of(request).threads.vacuum(wanted.older_than_days)})
