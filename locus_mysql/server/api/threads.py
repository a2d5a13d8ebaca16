"""Threads beyond saving and loading: lists, histories, metadata, search, copies, and what grows old."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...inspection.records import CheckpointRow, Page, ThreadRow
from ..answers import answer
from ..bodies import value_of
from ..locus import FAMILY
from ..problems import not_found
from ..routing import Endpoint
from ..services import services_of, tenant_of
from .families import is_there
from .models import (
    Answer,
    Body,
    CheckpointId,
    Cursor,
    Damage,
    Limit,
    Metadata,
    NextCursor,
    Query,
    ThreadId,
    Time,
)


class ThreadsQuery(Query):
    """Which threads to list."""

    pattern: Annotated[
        str,
        Field(max_length=512, description="A glob: * stands for any text, ? for one character, all else for itself."),
    ] = "*"
    limit: Limit = 50
    cursor: Cursor = None


class Thread(Answer):
    """A thread in a list."""

    thread_id: ThreadId
    created_at: Annotated[Time, Field(description="When it was first saved.")]
    updated_at: Annotated[Time, Field(description="When it was last saved.")]
    checkpoints: Annotated[int, Field(ge=0, description="How many it has.")]
    size_bytes: Annotated[int, Field(ge=0, description="What it takes in the database, indexes left out.")]
    checkpoint_id: Annotated[str | None, Field(description="Its newest checkpoint.")]
    metadata: Annotated[Metadata, Field(description="That checkpoint's metadata.")]
    damage: Damage


class Threads(Answer):
    """Threads, most recently saved first."""

    threads: list[Thread]
    cursor: NextCursor


class HistoryQuery(Query):
    """How much of a history."""

    limit: Limit = 100
    cursor: Cursor = None


class HistoryEntry(Answer):
    """A checkpoint in its thread's history."""

    checkpoint_id: CheckpointId
    parent_id: Annotated[str | None, Field(description="What it continues; null if nothing that is still there.")]
    created_at: Time
    size_bytes: Annotated[int, Field(ge=0, description="What its row takes in the database.")]
    metadata: Metadata
    damage: Damage


class History(Answer):
    """A thread's checkpoints, newest first."""

    checkpoints: list[HistoryEntry]
    cursor: NextCursor


class MetadataQuery(Query):
    """Of which checkpoint."""

    checkpoint_id: Annotated[
        CheckpointId | None, Field(description="Of this checkpoint; without it, of the thread's newest.")
    ] = None


class CheckpointInfo(Answer):
    """A checkpoint without its state."""

    thread_id: ThreadId
    checkpoint_id: CheckpointId
    metadata: Metadata
    created_at: Time


class Copy(Body):
    """Where to copy a thread to."""

    to: Annotated[ThreadId, Field(description="The new thread; it must have no checkpoints.")]


class Copied(Answer):
    """Where the copy is."""

    thread_id: ThreadId


class SearchQuery(Query):
    """What to look for in what was said."""

    q: Annotated[
        str,
        Field(
            max_length=4_096,
            description="Words. Those of fewer than three letters, and MySQL's stop words, are not found.",
        ),
    ]
    limit: Annotated[Limit, Field(le=100)] = 10


class SearchHit(Answer):
    """A checkpoint that added a text with some of the words."""

    thread_id: ThreadId
    checkpoint_id: CheckpointId
    score: Annotated[float, Field(description="How well it fits; comparable within one search only.")]
    snippet: Annotated[str, Field(description="The text around the words.")]
    created_at: Time


class SearchHits(Answer):
    """Hits, best first."""

    hits: list[SearchHit]


class PairQuery(Query):
    """Which pair a checkpoint's metadata must have."""

    key: Annotated[str, Field(max_length=4_096, description="A top-level name in the metadata.")]
    value: Annotated[
        str,
        Field(
            max_length=4_096,
            description='What it must contain, as JSON: 5, true, "5", {"a": 1}. What is no JSON counts as text.',
        ),
    ]
    limit: Limit = 100


class Checkpoints(Answer):
    """Checkpoints, newest first."""

    checkpoints: list[CheckpointInfo]


class Vacuum(Body):
    """How old is old."""

    older_than_days: Annotated[
        float,
        Field(
            ge=0,
            le=36_525,
            description="Threads that were not saved to for so long go whole; others lose older checkpoints.",
        ),
    ] = 30.0


class Vacuumed(Answer):
    """How much there was to remove."""

    removed: Annotated[int, Field(ge=0, description="How many checkpoints.")]


async def list_threads(request: Request) -> Response:
    """A page of the caller's threads."""
    asked: ThreadsQuery = request.state.query
    inspector = services_of(request).inspector(tenant_of(request))
    page: Page[ThreadRow] = Page([])
    if await is_there(request, FAMILY):
        page = await inspector.threads(FAMILY, limit=asked.limit, cursor=asked.cursor, pattern=asked.pattern)
    return answer({"threads": [_thread(row) for row in page.items], "cursor": page.cursor})


async def get_thread(request: Request) -> Response:
    """One of the caller's threads."""
    inspector = services_of(request).inspector(tenant_of(request))
    there = await is_there(request, FAMILY)
    row = await inspector.thread(FAMILY, request.path_params["thread_id"]) if there else None
    if row is None:
        raise not_found("thread")
    return answer(_thread(row))


async def get_history(request: Request) -> Response:
    """A page of a thread's checkpoints."""
    asked: HistoryQuery = request.state.query
    inspector = services_of(request).inspector(tenant_of(request))
    thread_id = request.path_params["thread_id"]
    page: Page[CheckpointRow] = Page([])
    there = await is_there(request, FAMILY)
    if there:
        page = await inspector.history(FAMILY, thread_id, limit=asked.limit, cursor=asked.cursor)
    if not page.items and not (there and await inspector.thread(FAMILY, thread_id)):
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


async def get_metadata(request: Request) -> Response:
    """The metadata of a checkpoint."""
    asked: MetadataQuery = request.state.query
    threads = services_of(request).threads(tenant_of(request))
    there = await is_there(request, FAMILY)
    info = await threads.get_metadata(request.path_params["thread_id"], asked.checkpoint_id) if there else None
    if info is None:
        raise not_found("checkpoint")
    return answer(_info(info))


async def copy_thread(request: Request) -> Response:
    """Copy a thread to a new one."""
    wanted: Copy = request.state.body
    threads = services_of(request).threads(tenant_of(request))
    there = await is_there(request, FAMILY)
    if not (there and await threads.copy_thread(request.path_params["thread_id"], wanted.to)):
        raise not_found("thread")
    return answer({"thread_id": wanted.to})


async def search(request: Request) -> Response:
    """Find what was said."""
    asked: SearchQuery = request.state.query
    threads = services_of(request).threads(tenant_of(request))
    return answer({"hits": await threads.search(asked.q, asked.limit) if await is_there(request, FAMILY) else []})


async def query_metadata(request: Request) -> Response:
    """Find checkpoints by their metadata."""
    asked: PairQuery = request.state.query
    threads = services_of(request).threads(tenant_of(request))
    value = value_of(asked.value)
    there = await is_there(request, FAMILY)
    found = await threads.query_by_metadata(asked.key, value, asked.limit) if there else []
    return answer({"checkpoints": [_info(info) for info in found]})


async def vacuum(request: Request) -> Response:
    """Remove old checkpoints."""
    wanted: Vacuum = request.state.body
    threads = services_of(request).threads(tenant_of(request))
    there = await is_there(request, FAMILY)
    return answer({"removed": await threads.vacuum(wanted.older_than_days) if there else 0})


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


ENDPOINTS = (
    Endpoint("GET", "/threads", list_threads, summary="List threads", query=ThreadsQuery, answer=Threads),
    Endpoint("GET", "/threads/{thread_id}", get_thread, summary="Describe a thread", answer=Thread),
    Endpoint(
        "GET",
        "/threads/{thread_id}/history",
        get_history,
        summary="List a thread's checkpoints, with what each continues",
        query=HistoryQuery,
        answer=History,
    ),
    Endpoint(
        "GET",
        "/threads/{thread_id}/metadata",
        get_metadata,
        summary="Get a checkpoint's metadata",
        query=MetadataQuery,
        answer=CheckpointInfo,
    ),
    Endpoint(
        "POST",
        "/threads/{thread_id}/copy",
        copy_thread,
        access="write",
        summary="Copy a thread with all its checkpoints",
        body=Copy,
        answer=Copied,
    ),
    Endpoint(
        "GET", "/search", search, summary="Find what was said", query=SearchQuery, answer=SearchHits, runs="apart"
    ),
    Endpoint(
        "GET",
        "/metadata",
        query_metadata,
        summary="Find checkpoints by their metadata",
        query=PairQuery,
        answer=Checkpoints,
        runs="apart",
    ),
)

#: Only where the service is told to offer it: it removes what the caller cannot get back.
VACUUM = Endpoint(
    "POST",
    "/vacuum",
    vacuum,
    access="write",
    summary="Remove old threads, and old checkpoints of the others",
    body=Vacuum,
    answer=Vacuumed,
)
