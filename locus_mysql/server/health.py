"""``GET /health``: reports whether the service can work."""

from __future__ import annotations

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from .json_responses import answer
from .routing import Authenticate, Endpoint
from .services import services_of


class Healthy(BaseModel):
    """The answer of a healthy service: its database answers and accepts writes."""

    status: str = "ok"


def health_endpoints(authenticate: Authenticate | None = None) -> list[Endpoint]:
    """Return the endpoint.

    Args:
        authenticate: Identifies the caller of a request that brings a token. Locus' client checks its service's health
            before a turn; with a revoked token its next load would look like an empty thread.
    """

    async def health(request: Request) -> Response:
        """Check that the database answers and accepts writes, and that a token that is sent is valid."""
        if authenticate is not None and "authorization" in request.headers:
            authenticate(request)
        await services_of(request).health_probe.check()
        return answer({"status": "ok"})

    summary = "Check that the database responds and accepts writes, and that the token, if one is sent, is valid"
    return [Endpoint("GET", "/health", health, "open", summary, answer=Healthy)]
