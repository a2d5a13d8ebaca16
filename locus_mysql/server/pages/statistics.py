"""How much there is, how it grows, and what this process does."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ..services import services_of
from . import texts
from .charts import bars_of
from .common import chosen, families_of, inspector_of
from .queries import FamilyQuery
from .rendering import page


async def statistics_page(request: Request) -> Response:
    """``GET /inspect/statistics``."""
    query: FamilyQuery = request.state.query
    there = await families_of(request)
    family = chosen(query.family, there)
    found = None if family is None else await inspector_of(request).statistics(family)
    days = () if found is None else found.days
    drawings = [
        (title, bars_of(days, value, told))
        for title, value, told in (
            (
                "Threads begun per day",
                lambda day: day.threads,
                lambda day: f"{day.day}: {texts.plural(day.threads, 'thread')} begun",
            ),
            (
                "Checkpoints saved per day",
                lambda day: day.checkpoints,
                lambda day: f"{day.day}: {texts.plural(day.checkpoints, 'checkpoint')}",
            ),
            (
                "Bytes saved per day",
                lambda day: day.size_bytes,
                lambda day: f"{day.day}: {texts.size(day.size_bytes)}",
            ),
        )
    ]
    return page(
        request,
        "statistics.html",
        section="statistics",
        there=there,
        family=family,
        query=query,
        found=found,
        drawings=drawings,
        process=services_of(request).database.stats(),
    )
