"""Where checkpoints that come stand among those that a thread has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from locus_mysql.families.checkpoints.order import Order

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def order(*there: str) -> Order:
    """A thread that has these, a minute apart."""
    return Order({one: NOON + timedelta(minutes=n) for n, one in enumerate(there)})


def test_what_is_there_is_told_and_what_comes_behind_all_of_it_is_missing() -> None:
    known = order("a", "b")
    assert [known.place(one, None) for one in ("a", "b", "c", "d")] == ["there", "there", "missing", "missing"]


def test_what_would_come_behind_newer_ones_is_told() -> None:
    known = order("a", "c")
    assert [known.place(one, None) for one in ("a", "b", "c", "d")] == ["there", "behind", "there", "missing"]


def test_into_a_thread_of_others_nothing_comes_unless_its_time_is_later() -> None:
    known = order("x", "y")
    assert known.place("a", NOON) == "behind"
    assert known.place("b", None) == "behind"
    assert known.place("c", NOON + timedelta(minutes=1)) == "missing"


def test_what_was_written_is_there_as_the_newest() -> None:
    known = order("x")
    assert known.place("a", NOON + timedelta(hours=1)) == "missing"
    known.written("a")
    assert known.place("a", None) == "there"
    assert known.place("b", NOON + timedelta(minutes=30)) == "missing"
    known.written("b")
    assert [known.place(one, None) for one in ("x", "a", "b", "c")] == ["there", "there", "there", "missing"]


def test_a_long_thread_is_not_gone_through_anew_for_each_that_comes() -> None:
    known = Order({f"{n}": NOON + timedelta(seconds=n % 7) for n in range(100_000)})
    assert {known.place(f"new {n}", NOON) for n in range(100_000)} == {"behind"}
    assert known.place("new", NOON + timedelta(seconds=6)) == "missing"


def test_an_empty_thread_takes_all() -> None:
    assert order().place("a", None) == "missing"
