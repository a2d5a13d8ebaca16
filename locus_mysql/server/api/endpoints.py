"""The endpoints of the JSON API: `api_endpoints`."""

from __future__ import annotations

from ..routing import Endpoint
from . import memories, session_checkpoints, session_notes, session_variables, sessions, threads


def api_endpoints(*, vacuum: bool = False) -> list[Endpoint]:
    """Return all endpoints of the API.

    Args:
        vacuum: Whether old checkpoints can be removed.
    """
    own = (threads.VACUUM,) if vacuum else ()
    working = (
        *sessions.ENDPOINTS,
        *session_variables.ENDPOINTS,
        *session_notes.ENDPOINTS,
        *session_checkpoints.ENDPOINTS,
    )
    return [*threads.ENDPOINTS, *own, *memories.ENDPOINTS, *working]
