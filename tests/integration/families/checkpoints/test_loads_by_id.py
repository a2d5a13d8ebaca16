"""Loads of the newest checkpoint by its id use the cached state only while the server still has it (ADR 0290)."""

from __future__ import annotations

from typing import Any

import pytest

from ...conftest import EACH_WAY
from .conftest import Make
from .turns import state_of

pytestmark = pytest.mark.kept_tables("dicts")

OLDER, NEWEST = state_of("plum"), state_of("plum", "fig")


def hits(store: Any) -> int:
    """Return the number of loads that used a cached state."""
    count: int = store.store.database.stats().cache_hits
    return count


async def test_a_checkpoint_that_its_own_process_pruned_is_not_loaded_from_the_cache(make_store: Make) -> None:
    store = make_store(keep_checkpoints=1)
    await store.save("t", NEWEST, "newest")
    assert await store.load("t", "newest") == NEWEST
    await store.save("t", state_of("pear"), "third")
    assert await store.load("t", "newest") is None
    assert await store.load("t", "third") == state_of("pear")


@pytest.mark.parametrize("side", EACH_WAY)
@pytest.mark.parametrize("options", [{}, {"pipeline": False}], ids=["as usual", "without pipeline"])
async def test_a_loaded_checkpoint_is_cached_if_it_is_the_newest(make_store: Make, options: dict[str, Any]) -> None:
    saver, reader = make_store(), make_store(**options)
    await saver.save("t", OLDER, "older")
    await saver.save("t", NEWEST, "newest")
    for name, state, cached in (("older", OLDER, 0), ("newest", NEWEST, 1)):
        assert await reader.load("t", name) == state
        assert await reader.load("t", name) == state
        assert hits(reader) == cached
    assert await reader.load("t") == NEWEST
    assert hits(reader) == 2


async def test_an_id_that_other_processes_keep_replacing_takes_one_round_trip(make_store: Make) -> None:
    saver, reader = make_store(), make_store()
    for turn in range(6):
        await saver.save("t", {"turn": turn}, "latest")
        before = reader.store.database.stats().round_trips
        assert await reader.load("t", "latest") == {"turn": turn}
        trips = reader.store.database.stats().round_trips - before
        if turn > 1:  # the first load creates the tables; the second one finds that another process writes
            assert trips == 1


async def test_a_cached_checkpoint_that_is_gone_is_looked_for_at_once_the_next_time(make_store: Make) -> None:
    store, other = make_store(), make_store()
    await store.save("t", OLDER, "older")
    await store.save("t", NEWEST, "newest")
    assert await store.load("t", "newest") == NEWEST
    assert await other.delete("t", "newest")
    for expected in (2, 1):
        before = store.store.database.stats().round_trips
        assert await store.load("t", "newest") is None
        assert store.store.database.stats().round_trips - before == expected


async def test_a_changed_loaded_state_does_not_change_the_cached_one(make_store: Make) -> None:
    store = make_store()
    await store.save("t", NEWEST, "newest")
    for _ in range(2):
        loaded = await store.load("t", "newest")
        assert loaded == NEWEST
        loaded["messages"].append("more")
