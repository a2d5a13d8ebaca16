"""Endpoints of working memory's sessions: list, describe, end and extend them.

A session begins with the first write to it; an unknown session reads as empty. Reads over HTTP do not extend a
session's life, as a token for reading changes nothing; writes and ``touch`` do.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.working.family import WORKING
from ...families.working.store import SyncWorkingMemory
from ...families.working.values import TTL_LIMIT_S
from ..json_responses import answer
from ..problems import not_found
from ..routing import Endpoint
from ..services import services_of, tenant_of
from .models import Answer, Body, Cursor, Gone, Limit, NextCursor, QueryParameters, SessionId, Time

#: The path of a session.
SESSION = "/sessions/{session_id}"

#: A time to live, in seconds.
TTL = Annotated[float | None, Field(gt=0, le=TTL_LIMIT_S)]


class BeginsQuery(QueryParameters):
    """The query that sets a session's time to live."""

    session_ttl_seconds: Annotated[
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

    ttl_seconds: Annotated[TTL, Field(description="The new time to live, from now on; null: the previous one.")] = None


class Touched(Answer):
    """Whether the session existed."""

    touched: bool


class Done(Answer):
    """Confirms a write."""

    ok: bool = True


def session_of(request: Request) -> SyncWorkingMemory:
    """Return the session of a request."""
    begins = getattr(request.state, "query", None)
    ttl_seconds = begins.session_ttl_seconds if isinstance(begins, BeginsQuery) else None
    return services_of(request).working(tenant_of(request), request.path_params["session_id"], ttl_seconds)


def list_sessions(request: Request) -> Response:
    """List the caller's sessions, by pages."""
    asked: SessionsQuery = request.state.query
    inspector = services_of(request).inspector(tenant_of(request))
    page = inspector.sessions(limit=asked.limit, cursor=asked.cursor, pattern=asked.pattern)
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


def get_session(request: Request) -> Response:
    """What a session holds."""
    session = session_of(request)
    stats = session.stats()
    return answer(
        {
            "keys": stats.keys,
            "size_bytes": stats.size_bytes,
            "scratchpad_entries": stats.scratchpad_entries,
            "checkpoints": stats.checkpoints,
            "expires_in_s": stats.expires_in_s,
        }
    )


def end_session(request: Request) -> Response:
    """Remove a session."""
    session = session_of(request)
    if not session.end():
        raise not_found("session")
    return answer({"deleted": True})


def touch_session(request: Request) -> Response:
    """Restart a session's time to live."""
    wanted: Touch = request.state.body
    session = session_of(request)
    return answer({"touched": session.touch(wanted.ttl_seconds)})


#: The content of a session that has not begun.
NO_SESSION = {"keys": 0, "size_bytes": 0, "scratchpad_entries": 0, "checkpoints": 0, "expires_in_s": None}


ENDPOINTS = (
    Endpoint(
        "GET",
        "/sessions",
        list_sessions,
        "read",
        "List sessions",
        query=SessionsQuery,
        answer=Sessions,
        family=WORKING,
        without_tables={"sessions": [], "cursor": None},
    ),
    Endpoint(
        "GET",
        SESSION,
        get_session,
        "read",
        "Describe a session",
        answer=Session,
        family=WORKING,
        without_tables=NO_SESSION,
    ),
    Endpoint(
        "DELETE",
        SESSION,
        end_session,
        "write",
        "End a session and delete its content",
        answer=Gone,
        family=WORKING,
        without_tables="session",
    ),
    Endpoint(
        "POST",
        f"{SESSION}/touch",
        touch_session,
        "write",
        "Restart a session's time to live",
        body=Touch,
        answer=Touched,
        family=WORKING,
        without_tables={"touched": False},
    ),
)
