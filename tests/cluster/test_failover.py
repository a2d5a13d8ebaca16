"""The primary of a group is frozen, killed or moved: calls follow the new one, and no acknowledged save is missed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import EVERY_SIDE, Group, Member, Store

OpenStore = Callable[..., Store]

every_side = pytest.mark.parametrize("side", EVERY_SIDE)

#: The default of ``retry_deadline_s``; a call that follows the new primary ends within it.
DEADLINE_S = 30.0


def state_of(turns: int) -> dict[str, Any]:
    return {"turns": turns, "messages": [f"turn {turn}" for turn in range(turns)]}


async def save_and_load(store: Store, side: str) -> float:
    """Save the second turn and load it; the seconds that the longest of the two calls took."""
    longest = 0.0
    for call, expected in ((store.save(side, state_of(2), "second"), "second"), (store.load(side), state_of(2))):
        began = time.monotonic()
        assert await call == expected
        longest = max(longest, time.monotonic() - began)
    return longest


async def wait_until_another_is_elected(group: Group, old: Member) -> Member:
    others = [member for member in group.members if member is not old]
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for member in others:
            if member.view().get(member.port, ("", ""))[1] == "PRIMARY":
                return member
        await asyncio.sleep(0.2)
    raise AssertionError("no other primary was elected")


@pytest.mark.parametrize("way", ["freeze", "kill"])
async def test_calls_follow_the_primary_that_is_elected_when_the_old_one_says_no_more(
    group: Group, open_store: OpenStore, way: str
) -> None:
    old = group.primary()
    stores = {side: open_store(side, old, *group.secondaries()) for side in EVERY_SIDE}
    for side, store in stores.items():
        await store.save(side, state_of(1), "first")
    # Each has several connections, so that one that did not drop all of them would pay for each.
    await asyncio.gather(*(store.load(side) for side, store in stores.items() for _ in range(3)))
    getattr(old, way)()
    took = await asyncio.gather(*(save_and_load(store, side) for side, store in stores.items()))
    assert max(took) < DEADLINE_S, dict(zip(stores, took, strict=True))
    print(way, {side: round(seconds, 1) for side, seconds in zip(stores, took, strict=True)})
    new = await wait_until_another_is_elected(group, old)
    for side, store in stores.items():
        began = time.monotonic()
        assert await store.list_checkpoints(side) == ["second", "first"]
        fresh = open_store(side, new)
        assert await fresh.list_checkpoints(side) == ["second", "first"]
        assert time.monotonic() - began < 5
        await fresh.close()
    old.thaw()
    for side, store in stores.items():
        assert await store.load(side) == state_of(2)
        await store.save(side, state_of(3), "third")
        began = time.monotonic()
        await store.close()
        assert time.monotonic() - began < 5
