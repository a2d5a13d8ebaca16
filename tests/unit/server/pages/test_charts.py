"""Small charts of numbers."""

from __future__ import annotations

from datetime import UTC, datetime

from locus_mysql.families.inspection.records import Day, Turn
from locus_mysql.server.pages.charts import HEIGHT, WIDTH, bars_of, lines_of

AT = datetime(2026, 11, 22, tzinfo=UTC)


def turn(confidence: float | None, tokens: int | None = None) -> Turn:
    return Turn("c", AT, confidence, tokens, None)


def test_only_values_known_for_two_turns_are_drawn() -> None:
    assert lines_of([turn(0.5, 10), turn(None, 20), turn(None, None)])[0].title == "Tokens"
    assert lines_of([turn(0.5)]) == []
    assert lines_of([]) == []


def test_a_line_stays_within_its_chart_and_has_a_summary() -> None:
    (line,) = lines_of([turn(0.0), turn(1.0), turn(0.25), turn(-3.0), turn(7.5)])

    assert all(0 <= point.x <= WIDTH and 0 <= point.y <= HEIGHT for point in line.points)
    assert line.last == "7.50"
    assert "from" not in line.summary
    assert "first 0.00, last 7.50, least -3.00, most 7.50" in line.summary


def test_bars_stand_where_their_days_are() -> None:
    days = [Day("2026-11-01", 1, 5, 10), Day("2026-11-03", 0, 10, 20)]

    first, last = bars_of(days, lambda day: day.checkpoints, lambda day: day.day)

    assert last.x - first.x == 2 * (first.width + 2)
    assert (first.height * 2, first.label) == (last.height, "2026-11-01")
    assert bars_of(days, lambda day: day.threads, lambda day: day.day)[1].height == 0
    assert bars_of([], lambda day: day.threads, lambda day: day.day) == []
