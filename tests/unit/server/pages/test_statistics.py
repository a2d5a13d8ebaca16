"""Small charts of numbers."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from locus_mysql.families.inspection.records import Turn
from locus_mysql.server.pages.statistics import BARS_HEIGHT, HEIGHT, WIDTH, bar_chart, lines_of, nice_end

AT = datetime(2026, 11, 22, tzinfo=UTC)


def turn(confidence: float | None, tokens: int | None = None) -> Turn:
    return Turn("c", AT, confidence, tokens, None)


def test_a_line_stays_within_its_chart_and_has_a_summary() -> None:
    (line,) = lines_of([turn(0.0), turn(1.0), turn(0.25), turn(-3.0), turn(7.5)])

    assert all(0 <= point.x <= WIDTH and 0 <= point.y <= HEIGHT for point in line.points)
    assert line.last == "7.50"
    assert "from" not in line.summary
    assert "first 0.00, last 7.50, least -3.00, most 7.50" in line.summary


def test_numbers_that_no_chart_can_show_are_left_out() -> None:
    turns = [turn(value, 10**400 if value else 5) for value in (0.5, float("nan"), float("inf"), 0.25, 10**400)]
    (line,) = lines_of(turns)
    assert [point.label for point in line.points] == ["0.50", "0.25"]
    assert lines_of([turn(None, tokens) for tokens in (10**400, 10**300, -(10**19), 7)]) == []


def test_bars_stand_at_their_days_on_an_axis_of_thirty_days() -> None:
    values = {"2026-11-01": 5, "2026-11-03": 10, "2026-11-04": 0, "2026-09-01": 99}

    chart = bar_chart("Saves", values, date(2026, 11, 30), str)

    first, second = chart.bars
    assert (first.height * 2, first.label) == (second.height, "2026-11-01: 5")
    assert second.x - first.x == pytest.approx(2 * WIDTH / 30)
    assert (chart.first, chart.last, chart.scale) == (date(2026, 11, 1), date(2026, 11, 30), ("10", "5", "0"))
    assert chart.summary == "Saves, 2026-11-01 to 2026-11-30: 15 in all, most on 2026-11-03: 10."
    assert chart.total == "15"
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH and bar.y + bar.height == BARS_HEIGHT for bar in chart.bars)


@pytest.mark.parametrize(
    ("value", "end"), [(0, 1), (1, 1), (3, 4), (7, 8), (10, 10), (11, 20), (99, 100), (4_001, 6_000)]
)
def test_an_axis_ends_at_a_round_number(value: int, end: int) -> None:
    assert nice_end(value) == end
