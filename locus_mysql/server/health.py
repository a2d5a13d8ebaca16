"""``GET /health``: whether the service can do its work."""

from __future__ import annotations

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from .answers import answer
from .routing import Endpoint
from .services import services_of


class Healthy(BaseModel):
    """That the database answers and takes writes."""

    status: str = "ok"


async def health(request: Request) -> Response:
    """Whether the database answers and takes writes."""
    await services_of(request).pulse.check()
    return answer({"status": "ok"})


def health_endpoints() -> list[Endpoint]:
    """The one."""
    summary = "Whether the service can do its work: the database answers and takes writes"
    return [Endpoint("GET", "/health", health, "open", summary, answer=Healthy)]
