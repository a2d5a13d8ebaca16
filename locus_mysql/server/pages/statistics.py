"""The page of statistics: amounts, growth, and the counters of this process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from ...families.family import Counts, Family, HasInspectorPage
from ...families.inspection.records import Day, Statistics
from ...families.registry import find_family
from ...inspection.blocking import SyncInspector
from ..services import services_of
from . import texts
from .charts import BarChart, bar_chart
from .common import chosen, inspector_of
from .query_parameters import FamilyQuery
from .rendering import page


class OtherFamily(NamedTuple):
    """A family without threads.

    Args:
        title: Its title.
        counts: What the tenant stores in it.
        chart: Its growth; None if it does not count that.
        examined: The number of items in the chart, if these are not all.
        path: The path of its page; None without one.
    """

    title: str
    counts: Counts
    chart: BarChart | None
    examined: int | None
    path: str | None


def statistics_page(request: Request) -> Response:
    """``GET /inspect/statistics``."""
    query: FamilyQuery = request.state.query
    inspector = inspector_of(request)
    stored_families = [find_family(name) for name in inspector.families()]
    existing = [one.name for one in stored_families if one.holds_threads]
    family = chosen(query.family, existing)
    found = None if family is None else inspector.statistics(family)
    today = datetime.now(UTC).date()
    others = [_without_threads(inspector, one, today) for one in stored_families if not one.holds_threads]
    drawings = [] if found is None else _drawings(found, today)
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


def _drawings(found: Statistics, today: date) -> list[BarChart]:
    """Return the charts of threads, checkpoints and bytes by day."""

    def chart(title: str, value: Callable[[Day], int], label: Callable[[int], str]) -> BarChart:
        return bar_chart(title, {day.day: value(day) for day in found.days}, today, label)

    return [
        chart("Threads begun per day", lambda day: day.threads, texts.number),
        chart("Checkpoints saved per day", lambda day: day.checkpoints, texts.number),
        chart("Bytes saved per day", lambda day: day.size_bytes, texts.size),
    ]


def _without_threads(inspector: SyncInspector, family: Family, today: date) -> OtherFamily:
    """Return what is shown of a family without threads."""
    growth = inspector.growth(family.name)
    chart = None
    if growth is not None:
        chart = bar_chart(f"{growth.noun.capitalize()} created per day", dict(growth.days), today, texts.number)
    address = f"/inspect/{family.page.name}" if isinstance(family, HasInspectorPage) else None
    examined = None if growth is None else growth.examined
    return OtherFamily(family.title, inspector.stored(family.name), chart, examined, address)
