"""`Problem`: an error of the API. It is JSON with a stable code, and reveals nothing internal.

{"error": {"code": "not_found", "message": "There is no such checkpoint.", "request_id": "8f0c…"}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping

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

#: Seconds after which a client may repeat a refused request, unless a better value is known.
RETRY_AFTER_S = 2


class Problem(Exception):
    """A request was refused or failed.

    Args:
        status: The HTTP status.
        code: The error in lower-case words joined by ``_``; stable, for programs.
        message: The error and its remedy, for people.
        headers: Further headers of the answer.
    """

    def __init__(self, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers or {}


def not_found(what: str) -> Problem:
    """Return a 404: nothing exists that the caller may see."""
    return Problem(404, "not_found", f"There is no such {what}.")


def invalid(message: str) -> Problem:
    """Return a 400: the request is invalid."""
    return Problem(400, "invalid_input", message)


def try_later(code: str, message: str, *, status: int = 503, seconds: int = RETRY_AFTER_S) -> Problem:
    """Return a 503: the same request may succeed later."""
    return Problem(status, code, message, headers={"Retry-After": str(seconds)})


#: Errors whose messages may be shown, more specific classes first, with status and code.
_REPORTED: tuple[tuple[type[LocusMySQLError], int, str], ...] = (
    (NotFound, 404, "not_found"),
    (CapacityExceeded, 409, "capacity_exceeded"),
    (VersionConflict, 409, "version_conflict"),
    (ThreadExists, 409, "thread_exists"),
    (CheckpointExists, 409, "checkpoint_exists"),
    (ParentMissing, 409, "parent_missing"),
    (AnswerTooLarge, 400, "answer_too_large"),
    (UsageError, 400, "invalid_input"),
    (Conflict, 409, "conflict"),
    (TurnLost, 409, "turn_lost"),
    (CorruptCheckpoint, 500, "damaged"),
)


def problem_of(error: Exception) -> Problem:
    """Return the problem that reports an error. For an unknown error it has no details."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, StateTooLarge):  # its message names the server
        return Problem(413, "state_too_large", "The data exceeds the database's limit; nothing was written.")
    for kind, status, code in _REPORTED:
        if isinstance(error, kind):
            return Problem(status, code, _words(error))
    if isinstance(error, ThreadBusy):
        return try_later("thread_busy", str(error), status=409)
    if isinstance(error, Unavailable):
        return try_later("database_unavailable", "The database cannot be reached at the moment. Try again.")
    if isinstance(error, ReadOnlyServer):
        return try_later("read_only_database", "The database does not accept writes.")
    if isinstance(error, SetupError):  # its message may name hosts, users and tables
        return try_later(
            "not_set_up", "The service cannot use its database. The service's log has the reason.", seconds=30
        )
    return Problem(500, "internal_error", "Internal error. The service's log has the details under this request id.")


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
