"""The position of arriving checkpoints among a thread's existing ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from locus_mysql.families.checkpoints.transfer import Order

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def order(*there: str) -> Order:
    """A thread with these checkpoints, a minute apart."""
    return Order({one: NOON + timedelta(minutes=n) for n, one in enumerate(there)})


def test_existing_checkpoints_are_recognised_and_later_ones_are_missing() -> None:
    known = order("a", "b")
    assert [known.classify(one, None) for one in ("a", "b", "c", "d")] == ["stored", "stored", "missing", "missing"]


def test_checkpoints_older_than_existing_ones_are_reported() -> None:
    known = order("a", "c")
    assert [known.classify(one, None) for one in ("a", "b", "c", "d")] == ["stored", "behind", "stored", "missing"]


def test_only_later_checkpoints_enter_a_thread_with_other_checkpoints() -> None:
    known = order("x", "y")
    assert known.classify("a", NOON) == "behind"
    assert known.classify("b", None) == "behind"
    assert known.classify("c", NOON + timedelta(minutes=1)) == "missing"


def test_a_written_checkpoint_becomes_the_newest() -> None:
    known = order("x")
    assert known.classify("a", NOON + timedelta(hours=1)) == "missing"
    known.written("a")
    assert known.classify("a", None) == "stored"
    assert known.classify("b", NOON + timedelta(minutes=30)) == "missing"
    known.written("b")
    assert [known.classify(one, None) for one in ("x", "a", "b", "c")] == ["stored", "stored", "stored", "missing"]


def test_a_long_thread_is_not_scanned_for_each_arriving_checkpoint() -> None:
    known = Order({f"{n}": NOON + timedelta(seconds=n % 7) for n in range(100_000)})
    assert {known.classify(f"new {n}", NOON) for n in range(100_000)} == {"behind"}
    assert known.classify("new", NOON + timedelta(seconds=6)) == "missing"


def test_an_empty_thread_takes_all() -> None:
    assert order().classify("a", None) == "missing"
