"""The endpoints of the JSON API: `api_endpoints`."""

from __future__ import annotations

from ..routing import Endpoint
from . import memories, threads, working


def api_endpoints(*, vacuum: bool = False) -> list[Endpoint]:
    """All of them.

    Args:
        vacuum: Whether old checkpoints can be removed.
    """
    return [*threads.ENDPOINTS, *([threads.VACUUM] if vacuum else []), *memories.ENDPOINTS, *working.ENDPOINTS]
