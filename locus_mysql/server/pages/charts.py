"""Small charts: a line over a thread's turns, bars over days. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from ...families.inspection.records import Day, Turn
from . import texts

#: Size of a chart in its own units. On the page it fills the available width.
WIDTH, HEIGHT, MARGIN = 240.0, 56.0, 6.0


@dataclass(frozen=True, slots=True)
class Point:
    """A value in a line.

    Attributes:
        x: Distance from the left.
        y: Distance from the top.
        label: Its description in words.
    """

    x: float
    y: float
    label: str


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


def lines_of(turns: Sequence[Turn]) -> list[Line]:
    """Return line charts of confidence, tokens and iterations, as far as at least two turns have a value."""
    made = [
        _line("Confidence", turns, lambda turn: turn.confidence, lambda value: f"{value:.2f}", (0.0, 1.0)),
        _line("Tokens", turns, lambda turn: turn.tokens, lambda value: texts.number(int(value))),
        _line("Iterations", turns, lambda turn: turn.iterations, lambda value: texts.number(int(value))),
    ]
    return [line for line in made if line is not None]


def _line(
    title: str,
    turns: Sequence[Turn],
    value_of: Callable[[Turn], float | None],
    label: Callable[[float], str],
    least_range: tuple[float, float] = (0.0, 1.0),
) -> Line | None:
    known = [(turn, float(value)) for turn in turns if (value := value_of(turn)) is not None]
    if len(known) < 2 or not any(value for _, value in known):
        return None
    values = [value for _, value in known]
    low, high = min(*values, least_range[0]), max(*values, least_range[1])
    step = (WIDTH - 2 * MARGIN) / (len(known) - 1)
    points = [
        Point(
            MARGIN + at * step,
            HEIGHT - MARGIN - (value - low) / (high - low) * (HEIGHT - 2 * MARGIN),
            f"{label(value)} at {texts.time(turn.created_at)} UTC",
        )
        for at, (turn, value) in enumerate(known)
    ]
    summary = (
        f"{title} over {len(known)} checkpoints: first {label(values[0])}, last {label(values[-1])}, "
        f"least {label(min(values))}, most {label(max(values))}."
    )
    return Line(title, label(values[-1]), points, summary)


def bars_of(days: Sequence[Day], value_of: Callable[[Day], int], label: Callable[[Day], str]) -> list[Bar]:
    """Return a bar for each day, placed between the first and the last."""
    if not days:
        return []
    most = max(1, *map(value_of, days)) if len(days) > 1 else max(1, value_of(days[0]))
    first = date.fromisoformat(days[0].day)
    day_numbers = [(date.fromisoformat(day.day) - first).days for day in days]
    step = min((WIDTH - 2 * MARGIN) / (day_numbers[-1] + 1), 24.0)
    bars = []
    for at, day in zip(day_numbers, days, strict=True):
        height = value_of(day) / most * (HEIGHT - 2 * MARGIN)
        height = max(height, 1.0) if value_of(day) else 0.0
        bars.append(Bar(MARGIN + at * step, HEIGHT - MARGIN - height, max(step - 2, 1.0), height, label(day)))
    return bars
