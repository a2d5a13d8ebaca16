"""Counters of an engine."""

from __future__ import annotations

from locus_mysql.drivers.interface import Traffic
from locus_mysql.engine.counters import Counters


def test_events_are_counted_from_zero_and_again_from_zero_in_a_child() -> None:
    def counted() -> tuple[int, ...]:
        return (
            counters.opened,
            counters.lost,
            counters.retries,
            *(counters.looked_up(cache, hit=hit) for cache in ("one", "other") for hit in (True, False)),
        )

    counters = Counters()
    assert counted() == (0,) * 7
    counters.open_one()
    counters.lose(2)
    counters.retry()
    counters.retry()
    counters.retry()
    for hits, cache in ((4, "one"), (6, "other")):
        for _ in range(hits):
            counters.look_up(cache, hit=True)
        for _ in range(hits + 1):
            counters.look_up(cache, hit=False)
    assert counted() == (1, 2, 3, 4, 5, 6, 7)
    counters.reset_in_child()
    assert counted() == (0,) * 7
    assert counters.total == Traffic()
