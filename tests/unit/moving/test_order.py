"""Where checkpoints that come stand among those that a thread has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from locus_mysql.checkpoints.order import Order

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def order(*there: str, by_time: bool = False) -> Order:
    """A thread that has these, a minute apart."""
    return Order({one: NOON + timedelta(minutes=n) for n, one in enumerate(there)}, by_time=by_time)


def test_what_is_there_is_told_and_what_comes_behind_all_of_it_is_missing() -> None:
    known = order("a", "b")
    assert [known.place(one, None) for one in ("a", "b", "c", "d")] == ["there", "there", "missing", "missing"]


def test_what_would_come_behind_newer_ones_is_told() -> None:
    known = order("a", "c")
    assert [known.place(one, None) for one in ("a", "b", "c", "d")] == ["there", "behind", "there", "missing"]


def test_into_a_thread_of_others_nothing_comes_unless_its_time_is_later() -> None:
    assert order("x").place("a", NOON + timedelta(days=1)) == "behind"
    known = order("x", "y", by_time=True)
    assert known.place("a", NOON) == "behind"
    assert known.place("b", None) == "behind"
    assert known.place("c", NOON + timedelta(minutes=1)) == "missing"


def test_what_was_written_is_there_as_the_newest() -> None:
    known = order("x", by_time=True)
    assert known.place("a", NOON + timedelta(hours=1)) == "missing"
    known.written("a", NOON + timedelta(hours=1))
    assert known.place("a", None) == "there"
    assert known.place("b", NOON + timedelta(minutes=30)) == "missing"


def test_an_empty_thread_takes_all() -> None:
    assert order().place("a", None) == "missing"
