"""The page of statistics: amounts, growth, and the counters of this process."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...families.registry import find_family
from ..services import services_of
from . import texts
from .charts import bars_of
from .common import chosen, inspector_of
from .query_parameters import FamilyQuery
from .rendering import page


async def statistics_page(request: Request) -> Response:
    """``GET /inspect/statistics``."""
    query: FamilyQuery = request.state.query
    inspector = inspector_of(request)
    stored_families = [find_family(name) for name in await inspector.families()]
    existing = [one.name for one in stored_families if one.holds_threads]
    family = chosen(query.family, existing)
    found = None if family is None else await inspector.statistics(family)
    others = [(one.title, await inspector.stored(one.name)) for one in stored_families if not one.holds_threads]
    days = () if found is None else found.days
    drawings = [
        (title, bars_of(days, value, label))
        for title, value, label in (
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
        existing=existing,
        family=family,
        query=query,
        found=found,
        others=others,
        drawings=drawings,
        process=services_of(request).database.stats(),
    )
