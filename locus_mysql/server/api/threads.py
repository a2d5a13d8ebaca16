"""Endpoints of threads beyond saving and loading: lists, histories, metadata, search, copies, and removal by age."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.inspection.records import ThreadRow
from ...integrations.locus.family import AGENTS
from ..bodies import answer, value_of
from ..problems import not_found
from ..routing import Endpoints
from ..services import services_of, tenant_of
from .models import (
    Answer,
    Body,
    CheckpointId,
    Cursor,
    Damage,
    Limit,
    Metadata,
    NextCursor,
    QueryParameters,
    ThreadId,
    Time,
)


class ThreadsQuery(QueryParameters):
    """The query of a list of threads."""

    pattern: Annotated[
        str,
        Field(max_length=512, description="A glob: * stands for any text, ? for one character, all else for itself."),
    ] = "*"
    limit: Limit = 50
    cursor: Cursor = None


class Thread(Answer):
    """A thread in a list."""

    thread_id: ThreadId
    created_at: Annotated[Time, Field(description="When the thread was first saved.")]
    updated_at: Annotated[Time, Field(description="When the thread was last saved.")]
    checkpoints: Annotated[int, Field(ge=0, description="The number of its checkpoints.")]
    size_bytes: Annotated[int, Field(ge=0, description="Its size in the database in bytes, without indexes.")]
    checkpoint_id: Annotated[str | None, Field(description="Its newest checkpoint.")]
    metadata: Annotated[Metadata, Field(description="The metadata of the newest checkpoint.")]
    damage: Damage


class Threads(Answer):
    """Threads, most recently saved first."""

    threads: list[Thread]
    cursor: NextCursor


class HistoryQuery(QueryParameters):
    """The query of a history."""

    limit: Limit = 100
    cursor: Cursor = None


class HistoryEntry(Answer):
    """A checkpoint in its thread's history."""

    checkpoint_id: CheckpointId
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


class SearchQuery(QueryParameters):
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


class PairQuery(QueryParameters):
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


ENDPOINTS = Endpoints(AGENTS)

#: Only offered with the option `vacuum`, as callers cannot restore what it removes.
VACUUM = Endpoints(AGENTS)


@ENDPOINTS.add("GET", "/threads", query=ThreadsQuery, answer=Threads, without_tables={"threads": [], "cursor": None})
def list_threads(request: Request) -> Response:
    """List threads."""
    asked: ThreadsQuery = request.state.query
    inspector = services_of(request).inspector(tenant_of(request))
    page = inspector.threads(AGENTS.name, limit=asked.limit, cursor=asked.cursor, pattern=asked.pattern)
    return answer({"threads": [_thread(row) for row in page.items], "cursor": page.cursor})


@ENDPOINTS.add("GET", "/threads/{thread_id}", answer=Thread, without_tables="thread")
def get_thread(request: Request) -> Response:
    """Describe a thread."""
    inspector = services_of(request).inspector(tenant_of(request))
    row = inspector.thread(AGENTS.name, request.path_params["thread_id"])
    if row is None:
        raise not_found("thread")
    return answer(_thread(row))


@ENDPOINTS.add("GET", "/threads/{thread_id}/history", query=HistoryQuery, answer=History, without_tables="thread")
def get_history(request: Request) -> Response:
    """List a thread's checkpoints, each with its parent."""
    asked: HistoryQuery = request.state.query
    inspector = services_of(request).inspector(tenant_of(request))
    thread_id = request.path_params["thread_id"]
    page = inspector.history(AGENTS.name, thread_id, limit=asked.limit, cursor=asked.cursor)
    if not page.items and not inspector.thread(AGENTS.name, thread_id):
        raise not_found("thread")
    entries = [
        {
            "checkpoint_id": row.checkpoint_id,
            "parent_id": row.parent_id,
            "created_at": row.created_at,
            "size_bytes": row.size_bytes,
            "metadata": row.metadata,
            "damage": row.damage,
        }
        for row in page.items
    ]
    return answer({"checkpoints": entries, "cursor": page.cursor})


@ENDPOINTS.add(
    "GET", "/threads/{thread_id}/metadata", query=MetadataQuery, answer=CheckpointInfo, without_tables="checkpoint"
)
def get_metadata(request: Request) -> Response:
    """Get a checkpoint's metadata."""
    asked: MetadataQuery = request.state.query
    threads = services_of(request).threads(tenant_of(request))
    info = threads.get_metadata(request.path_params["thread_id"], asked.checkpoint_id)
    if info is None:
        raise not_found("checkpoint")
    return answer(_info(info))


@ENDPOINTS.add("POST", "/threads/{thread_id}/copy", body=Copy, answer=Copied, without_tables="thread")
def copy_thread(request: Request) -> Response:
    """Copy a thread with all its checkpoints."""
    wanted: Copy = request.state.body
    threads = services_of(request).threads(tenant_of(request))
    if not threads.copy_thread(request.path_params["thread_id"], wanted.to):
        raise not_found("thread")
    return answer({"thread_id": wanted.to})


@ENDPOINTS.add("GET", "/search", query=SearchQuery, answer=SearchHits, without_tables={"hits": []})
def search(request: Request) -> Response:
    """Search conversations by words."""
    asked: SearchQuery = request.state.query
    threads = services_of(request).threads(tenant_of(request))
    return answer({"hits": threads.search(asked.q, asked.limit)})


@ENDPOINTS.add("GET", "/metadata", query=PairQuery, answer=Checkpoints, without_tables={"checkpoints": []})
def query_metadata(request: Request) -> Response:
    """Find checkpoints by their metadata."""
    asked: PairQuery = request.state.query
    threads = services_of(request).threads(tenant_of(request))
    value = value_of(asked.value)
    found = threads.query_by_metadata(asked.key, value, asked.limit)
    return answer({"checkpoints": [_info(info) for info in found]})


@VACUUM.add("POST", "/vacuum", body=Vacuum, answer=Vacuumed, without_tables={"removed": 0})
def vacuum(request: Request) -> Response:
    """Remove old threads, and old checkpoints of the others."""
    wanted: Vacuum = request.state.body
    threads = services_of(request).threads(tenant_of(request))
    return answer({"removed": threads.vacuum(wanted.older_than_days)})


def _thread(row: ThreadRow) -> dict[str, Any]:
    return {
        "thread_id": row.thread_id,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "checkpoints": row.checkpoints,
        "size_bytes": row.size_bytes,
        "checkpoint_id": row.checkpoint_id,
        "metadata": row.metadata,
        "damage": row.damage,
    }


def _info(info: Any) -> dict[str, Any]:
    return {name: info[name] for name in ("thread_id", "checkpoint_id", "metadata", "created_at")}
