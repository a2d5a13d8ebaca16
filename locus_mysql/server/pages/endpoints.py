"""The pages: `page_endpoints`."""

from __future__ import annotations

from ..routing import Endpoint


def page_endpoints() -> list[Endpoint]:
    """All of them."""
    return []
