"""`Problem`: an error of the API. It is JSON with a stable code, and reveals nothing internal.

{"error": {"code": "not_found", "message": "There is no such checkpoint.", "request_id": "8f0c…"}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from starlette.responses import Response

from ..errors import (
    AnswerTooLarge,
    CapacityExceeded,
    CheckpointExists,
    Conflict,
    CorruptCheckpoint,
    LocusMySQLError,
    NotFound,
    ParentMissing,
    ReadOnlyServer,
    SetupError,
    StateTooLarge,
    ThreadBusy,
    ThreadExists,
    TurnLost,
    Unavailable,
    UsageError,
    VersionConflict,
)

T = TypeVar("T")

#: The errors of the API by code: status, and remedy. Codes are stable.
CODES: dict[str, tuple[int, str]] = {
    "invalid_input": (400, "The request cannot be understood or carried out as it is; correct it."),
    "not_json": (400, "The body is not valid JSON (RFC 8259) in UTF-8, nested at most 200 levels deep."),
    "malformed_request": (400, "The request is not complete and valid HTTP/1.1 (RFC 9112); the connection is closed."),
    "unexpected_body": (400, "The request has a body, but its endpoint takes none."),
    "thread_mismatch": (400, "The path and the body name different threads."),
    "not_authenticated": (401, "The token is missing or not valid."),
    "read_only": (403, "The token may read, but not write."),
    "cross_site": (403, "A page of another site sent the request."),
    "not_found": (404, "The thing does not exist, or belongs to another tenant."),
    "not_kept": (404, "The database lacks the tables for this, and the service may not create them."),
    "method_not_allowed": (
        405,
        "The path does not support this method; the header Allow lists those that it supports.",
    ),
    "body_too_slow": (408, "The body did not arrive in time."),
    "capacity_exceeded": (409, "The working session has reached its limit."),
    "version_conflict": (409, "The item has another version than the write relied on."),
    "thread_exists": (409, "The destination of the copy already has checkpoints."),
    "checkpoint_exists": (409, "A checkpoint with this id and other content exists."),
    "parent_missing": (409, "The thread has no checkpoint of the id that `parent_id` names; nothing was saved."),
    "conflict": (409, "Another client saved to the thread meanwhile. Load it again before you save."),
    "turn_lost": (409, "The turn on the thread is over."),
    "thread_busy": (409, "Another client has the turn on the thread; try again later."),
    "answer_too_large": (400, "The response would exceed the service's limit; request less."),
    "body_too_large": (413, "The body exceeds the service's limit."),
    "state_too_large": (413, "The state exceeds the database's limit."),
    "unsupported_media_type": (415, "The body must be application/json, in UTF-8."),
    "unsupported_encoding": (415, "The body must not be compressed."),
    "wrong_host": (421, "The host name in the request is not one of the service's names."),
    "headers_too_large": (431, "The headers exceed the service's limit."),
    "too_many_requests": (
        429,
        "Too many requests of this tenant are in progress; retry after the seconds in Retry-After.",
    ),
    "damaged": (500, "The stored data is damaged and cannot be read."),
    "internal_error": (500, "Internal error; the service's log has the details under the request id."),
    "busy": (503, "Too many requests are in progress; retry after the seconds in Retry-After."),
    "database_unavailable": (503, "The database cannot be reached; retry after the seconds in Retry-After."),
    "read_only_database": (503, "The database does not accept writes."),
    "not_set_up": (503, "The service cannot use its database; the service's log has the reason."),
    "timeout": (
        503,
        "The request took too long and was abandoned; a write may have been carried out. Repeat the request.",
    ),
}

#: Statuses of errors that only pages have.
_OF_PAGES = {"not_signed_in": 401, "form_not_ours": 403}

#: Seconds after which a client may repeat a refused request, unless a better value is known.
RETRY_AFTER_S = 2


class Problem(Exception):
    """A request was refused or failed.

    Args:
        code: The error in lower-case words joined by ``_``; stable, for programs. It determines the HTTP status.
        message: The error and its remedy, for people.
        headers: Further headers of the answer.
    """

    def __init__(self, code: str, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = _OF_PAGES[code] if code in _OF_PAGES else CODES[code][0]
        self.code = code
        self.message = message
        self.headers = headers or {}


def not_found(what: str) -> Problem:
    """Return a 404: nothing exists that the caller may see."""
    return Problem("not_found", f"There is no such {what}.")


def existing(found: T | None, what: str) -> T:
    """Return what was found.

    Raises:
        Problem: Nothing was.
    """
    if found is None:
        raise not_found(what)
    return found


def invalid(message: str) -> Problem:
    """Return a 400: the request is invalid."""
    return Problem("invalid_input", message)


def try_later(code: str, message: str, *, seconds: int = RETRY_AFTER_S) -> Problem:
    """Return a problem that says when to repeat the request: it may succeed later."""
    return Problem(code, message, headers={"Retry-After": str(seconds)})


#: Errors whose messages may be shown, more specific classes first, with their codes.
_REPORTED: tuple[tuple[type[LocusMySQLError], str], ...] = (
    (NotFound, "not_found"),
    (CapacityExceeded, "capacity_exceeded"),
    (VersionConflict, "version_conflict"),
    (ThreadExists, "thread_exists"),
    (CheckpointExists, "checkpoint_exists"),
    (ParentMissing, "parent_missing"),
    (AnswerTooLarge, "answer_too_large"),
    (UsageError, "invalid_input"),
    (Conflict, "conflict"),
    (TurnLost, "turn_lost"),
    (CorruptCheckpoint, "damaged"),
)


def problem_of(error: Exception) -> Problem:
    """Return the problem that reports an error. For an unknown error it has no details."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, StateTooLarge):  # its message names the server
        return Problem("state_too_large", "The data exceeds the database's limit; nothing was written.")
    for kind, code in _REPORTED:
        if isinstance(error, kind):
            return Problem(code, _words(error))
    if isinstance(error, ThreadBusy):
        return try_later("thread_busy", str(error))
    if isinstance(error, Unavailable):
        return try_later("database_unavailable", "The database cannot be reached at the moment. Try again.")
    if isinstance(error, ReadOnlyServer):
        return try_later("read_only_database", "The database does not accept writes.")
    if isinstance(error, SetupError):  # its message may name hosts, users and tables
        return try_later(
            "not_set_up", "The service cannot use its database. The service's log has the reason.", seconds=30
        )
    return Problem("internal_error", "Internal error. The service's log has the details under this request id.")


def _words(error: LocusMySQLError) -> str:
    """Return an error's message without advice that only applies to Python callers."""
    if not isinstance(error, CapacityExceeded):
        return str(error)
    return (
        f"Nothing was written to the session: it would have {error.used} of {error.limit}, and the limit is "
        f"{error.allowed}. Delete what is not needed, or give variables a time to live."
    )


def explained(problem: Problem, request_id: str) -> Response:
    """Return the response that describes a problem."""
    error = {"code": problem.code, "message": problem.message, "request_id": request_id}
    return Response(
        json.dumps({"error": error}), problem.status, headers=problem.headers, media_type="application/json"
    )
