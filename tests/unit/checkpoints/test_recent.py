"""What was used most recently is kept, within a limit of bytes."""

from __future__ import annotations

from locus_mysql.checkpoints.recent import Recent


def test_what_was_used_longest_ago_goes_when_the_limit_is_reached() -> None:
    recent: Recent[str] = Recent(100)
    recent.put("a", "A", 40)
    recent.put("b", "B", 40)
    assert recent.get("a") == "A"
    recent.put("c", "C", 40)
    assert [recent.get(key) for key in "abc"] == ["A", None, "C"]


def test_a_value_put_again_takes_the_place_of_the_one_before() -> None:
    recent: Recent[int] = Recent(100)
    for number in range(10):
        recent.put("a", number, 60)
        recent.put("b", number, 40)
    assert (recent.get("a"), recent.get("b")) == (9, 9)


def test_a_value_over_the_limit_is_not_kept_and_drops_only_its_own_key() -> None:
    recent: Recent[int] = Recent(100)
    recent.put("a", 1, 50)
    recent.put("b", 2, 50)
    recent.put("b", 3, 101)
    assert (recent.get("a"), recent.get("b")) == (1, None)


def test_a_limit_of_zero_keeps_nothing() -> None:
    recent: Recent[int] = Recent(0)
    recent.put("a", 1, 1)
    assert recent.get("a") is None
