"""The endpoints of the JSON API: `api_endpoints`."""

from __future__ import annotations

from ..routing import Endpoint


def api_endpoints() -> list[Endpoint]:
    """All of them."""
    return []
