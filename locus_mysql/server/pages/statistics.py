"""The page of statistics: amounts, growth, and the counters of this process; and charts for it and for threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from ...families.family import Family, HasInspectorPage
from ...families.inspection.records import Day, Statistics, Turn
from ...families.registry import find_family
from ...records.maintenance import Counts
from ..routing import Endpoints, LenientQuery
from ..services import BlockingInspector, read, services_of
from . import texts
from .common import chosen, inspector_of
from .rendering import page

PAGES = Endpoints(base=LenientQuery)

#: Size of a chart in its own units. On the page it fills the available width.
WIDTH, HEIGHT, MARGIN = 240.0, 56.0, 6.0

#: Numbers beyond this, and NaN, are not drawn: a stored whole number may be larger than any float.
MOST = 1e18

#: Height of a chart of bars, and the number of its days.
BARS_HEIGHT, DAYS = 80.0, 30


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


@PAGES.add("GET", "/inspect/statistics")
def statistics_page(request: Request, family: str = "") -> Response:
    """The statistics of a family, and of those without threads."""
    inspector = inspector_of(request)
    stored_families = [find_family(name) for name in read(inspector.families())]
    existing = [one.name for one in stored_families if one.holds_threads]
    shown = chosen(family, existing)
    found = None if shown is None else read(inspector.statistics(shown))
    today = datetime.now(UTC).date()
    return page(
        request,
        "statistics.html",
        section="statistics",
        existing=existing,
        family=shown,
        found=found,
        others=[_without_threads(inspector, one, today) for one in stored_families if not one.holds_threads],
        drawings=[] if found is None else _drawings(found, today),
        process=services_of(request).database.stats(),
    )


def _drawings(found: Statistics, today: date) -> list[BarChart]:
    """Return the charts of threads, checkpoints and bytes by day."""

    def chart(title: str, value: Callable[[Day], int], label: Callable[[int], str]) -> BarChart:
        return bar_chart(title, {day.day: value(day) for day in found.days}, today, label)

    unit = find_family(found.family).unit
    return [
        chart("Threads begun per day", lambda day: day.threads, texts.number),
        chart(f"{unit.capitalize()}s saved per day", lambda day: day.checkpoints, texts.number),
        chart("Bytes saved per day", lambda day: day.size_bytes, texts.size),
    ]


def _without_threads(inspector: BlockingInspector, family: Family, today: date) -> OtherFamily:
    """Return what is shown of a family without threads."""
    growth = read(inspector.growth(family.name))
    chart = None
    if growth is not None:
        chart = bar_chart(f"{growth.noun.capitalize()} created per day", dict(growth.days), today, texts.number)
    address = f"/inspect/{family.page.name}" if isinstance(family, HasInspectorPage) else None
    examined = None if growth is None else growth.examined
    return OtherFamily(family.title, read(inspector.stored(family.name)), chart, examined, address)


@dataclass(frozen=True, slots=True)
class Point:
    """A value in a line.

    Attributes:
        x: Distance from the left.
        y: Distance from the top.
        label: The value in words.
        at: Its time.
    """

    x: float
    y: float
    label: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Line:
    """A line chart of a number.

    Attributes:
        title: The name of the number.
        last: Its last value, as text.
        points: Its values.
        summary: The chart in a sentence, for screen readers.
    """

    title: str
    last: str
    points: Sequence[Point]
    summary: str

    @property
    def path(self) -> str:
        """The points in the form of an SVG polyline."""
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of a day.

    Attributes:
        x: Its left edge.
        y: Its top edge.
        width: Its width.
        height: Its height.
        label: Its description in words.
    """

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars over the last 30 days, with axes.

    Attributes:
        title: What it shows.
        bars: The bars, in a drawing of `WIDTH` and `BARS_HEIGHT`.
        scale: The labels of the vertical axis, from the top: the end, the middle and zero.
        first: The first day.
        last: The last day.
        total: The sum of the values, as text.
        summary: The chart in a sentence, for screen readers.
    """

    title: str
    bars: Sequence[Bar]
    scale: tuple[str, str, str]
    first: date
    last: date
    total: str
    summary: str


def lines_of(turns: Sequence[Turn]) -> list[Line]:
    """Return line charts of confidence, tokens, iterations and times, as far as at least two turns have a value."""
    made = [
        _line("Confidence", turns, lambda turn: turn.confidence, lambda value: f"{value:.2f}", (0.0, 1.0)),
        _line("Tokens", turns, lambda turn: turn.tokens, lambda value: texts.number(int(value))),
        _line(
            "Steps" if any(turn.node for turn in turns) else "Iterations",
            turns,
            lambda turn: turn.iterations,
            lambda value: texts.number(int(value)),
        ),
        _line(
            "Seconds",
            turns,
            lambda turn: turn.seconds,
            lambda value: f"{value:.3f}" if value < 1 else f"{value:.1f}",
            (0.0, 0.0),
        ),
    ]
    return [line for line in made if line is not None]


def _line(
    title: str,
    turns: Sequence[Turn],
    value_of: Callable[[Turn], float | None],
    label: Callable[[float], str],
    least_range: tuple[float, float] = (0.0, 1.0),
) -> Line | None:
    values_of = ((turn, value_of(turn)) for turn in turns)
    known = [(turn, float(value)) for turn, value in values_of if value is not None and -MOST < value < MOST]
    if len(known) < 2 or not any(value for _, value in known):
        return None
    values = [value for _, value in known]
    low, high = min(*values, least_range[0]), max(*values, least_range[1] or max(values))
    step = (WIDTH - 2 * MARGIN) / (len(known) - 1)
    points = [
        Point(
            MARGIN + at * step,
            HEIGHT - MARGIN - (value - low) / (high - low) * (HEIGHT - 2 * MARGIN),
            label(value),
            turn.created_at,
        )
        for at, (turn, value) in enumerate(known)
    ]
    summary = (
        f"{title} over {len(known)} checkpoints: first {label(values[0])}, last {label(values[-1])}, "
        f"least {label(min(values))}, most {label(max(values))}."
    )
    return Line(title, label(values[-1]), points, summary)


def bar_chart(
    title: str, values: Mapping[str, int], today: date, label: Callable[[int], str], *, days: int = DAYS
) -> BarChart:
    """Return a chart of values by day.

    Args:
        title: What it shows.
        values: The values by day, as ``2026-11-22``; days without one have none.
        today: The last day.
        label: Formats a value.
        days: The number of days.
    """
    first = today - timedelta(days=days - 1)
    known = {date.fromisoformat(day): value for day, value in values.items()}
    known = {day: value for day, value in known.items() if first <= day <= today}
    top = nice_end(max(known.values(), default=0))
    step = WIDTH / days
    bars = []
    for day, value in sorted(known.items()):
        if value:
            height = max(value / top * BARS_HEIGHT, 1.0)
            x = (day - first).days * step
            bars.append(Bar(x + step * 0.1, BARS_HEIGHT - height, step * 0.8, height, f"{day}: {label(value)}"))
    most = max(known, key=lambda day: known[day], default=None)
    summary = f"{title}, {first} to {today}: " + (
        "none." if most is None else f"{label(sum(known.values()))} in all, most on {most}: {label(known[most])}."
    )
    middle = label(top // 2) if top % 2 == 0 else ""
    return BarChart(title, bars, (label(top), middle, label(0)), first, today, label(sum(known.values())), summary)


def nice_end(value: int) -> int:
    """Return the end of an axis: 1, 2, 4, 6, 8 or 10 times a power of ten, and not below a value."""
    power = 1
    while value > 10 * power:
        power *= 10
    return next(factor * power for factor in (1, 2, 4, 6, 8, 10) if factor * power >= value)
