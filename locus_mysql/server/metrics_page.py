"""``GET /metrics``: the state of the service in Prometheus' text format."""

from __future__ import annotations

from typing import Literal, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from .routing import Endpoint
from .services import services_of

#: Who may read the metrics: callers with a token, or everyone.
MetricsAccess: TypeAlias = Literal["token", "open"]

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_endpoint(access: MetricsAccess) -> Endpoint:
    """Return the endpoint.

    Args:
        access: Who may read it.
    """

    async def metrics(request: Request) -> Response:
        """Return the metrics of this worker."""
        return Response(await services_of(request).metrics.text(), media_type=_CONTENT_TYPE)

    summary = "The state of the service in Prometheus' text format"
    return Endpoint("GET", "/metrics", metrics, "open" if access == "open" else "read", summary)
