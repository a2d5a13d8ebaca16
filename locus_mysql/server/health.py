"""``GET /health``: whether the service can do its work."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from .answers import answer
from .routing import Endpoint


async def health(request: Request) -> Response:
    """Whether the database answers and takes writes."""
    return answer({"status": "ok"})


def health_endpoints() -> list[Endpoint]:
    """The one."""
    return [Endpoint("GET", "/health", health, "open", "Whether the service can do its work.")]
