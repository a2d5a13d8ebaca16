"""Calls follow the new primary after a freeze, crash or switchover, and no acknowledged save is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from .conftest import EVERY_SIDE, GROUP_TAKES_S, Group, Member, Store

OpenStore = Callable[..., Store]

#: Calls that wait for an old primary end within this time after another was elected, in seconds.
FOLLOWED_WITHIN_S = 10.0

#: More than a few calls take, and less than any timeout, in seconds.
OF_NO_TIME_OUT_S = 5.0


def state_of(turns: int) -> dict[str, Any]:
    return {"turns": turns, "messages": [f"turn {turn}" for turn in range(turns)]}


async def call_many(store: Store, side: str) -> float:
    """Save the second turn of three threads and load two others concurrently; return when the last call ended."""

    async def check(call: Awaitable[Any], expected: Any) -> float:
        assert await call == expected
        return time.monotonic()

    saves = (check(store.save(f"{side} {number}", state_of(2), "second"), "second") for number in range(3))
    loads = (check(store.load(f"{side} {number}"), state_of(1)) for number in (3, 4))
    return max(await asyncio.gather(*saves, *loads))


def wait_until_another_is_elected(group: Group, old: Member) -> tuple[Member, float]:
    """Return the new primary and the time of its election."""
    end = time.monotonic() + GROUP_TAKES_S
    while time.monotonic() < end:
        for member in group.members:
            if member is not old and member.view().get(member.port, ("", ""))[1] == "PRIMARY":
                return member, time.monotonic()
        time.sleep(0.1)
    raise AssertionError("no other primary was elected")


@pytest.mark.parametrize(
    ("way", "pinged"), [("freeze", False), ("freeze", True), ("kill", False)], ids=["frozen", "frozen idle", "killed"]
)
async def test_calls_follow_the_elected_primary_when_the_old_one_falls_silent(
    group: Group, open_store: OpenStore, way: str, pinged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = group.primary()
    # A deadline that a slow machine's election does not miss; the default is 30 s.
    stores = {side: open_store(side, old, *group.secondaries(), retry_deadline_s=90) for side in EVERY_SIDE}
    for side, store in stores.items():  # several connections each: at most some may time out
        await asyncio.gather(*(store.save(f"{side} {number}", state_of(1), "first") for number in range(5)))
    if pinged:
        monkeypatch.setattr("locus_mysql.engine.pool.PING_AFTER_S", 0.0)
    getattr(old, way)()
    election = asyncio.create_task(asyncio.to_thread(wait_until_another_is_elected, group, old))
    ended = await asyncio.gather(*(call_many(store, side) for side, store in stores.items()))
    new, elected = await election
    waited = {side: end - elected for side, end in zip(stores, ended, strict=True)}
    assert max(waited.values()) < FOLLOWED_WITHIN_S, waited
    for side, store in stores.items():
        fresh = open_store(side, new)
        began = time.monotonic()
        for either in (store, fresh):
            assert await either.list_checkpoints(f"{side} 0") == ["second", "first"]
            assert await either.load(f"{side} 2") == state_of(2)
            assert await either.list_checkpoints(f"{side} 4") == ["first"]
        assert time.monotonic() - began < OF_NO_TIME_OUT_S
        await fresh.close()
    old.thaw()
    for side, store in stores.items():
        assert await store.load(f"{side} 0") == state_of(2)
        await store.save(f"{side} 0", state_of(3), "third")
        assert (await open_once(open_store, side, new, f"{side} 0")) == state_of(3)
        began = time.monotonic()
        await store.close()
        assert time.monotonic() - began < OF_NO_TIME_OUT_S


async def open_once(open_store: OpenStore, side: str, member: Member, thread_id: str) -> Any:
    """Return the state that a new process loads through this member."""
    store = open_store(side, member)
    try:
        return await store.load(thread_id)
    finally:
        await store.close()


async def test_with_a_frozen_primary_a_store_closes_at_once_and_a_new_process_finds_the_new_primary(
    group: Group, open_store: OpenStore
) -> None:
    old, others = group.primary(), group.secondaries()
    idle = {side: open_store(side, old, *others) for side in EVERY_SIDE}
    for store in idle.values():
        await store.save("thread", state_of(1))
        await asyncio.gather(*(store.load("thread") for _ in range(4)))
    old.freeze()
    for side, store in idle.items():
        began = time.monotonic()
        await store.close()
        assert time.monotonic() - began < OF_NO_TIME_OUT_S, side
    new, _ = wait_until_another_is_elected(group, old)
    assert new in others
    stores = {side: open_store(side, old, *others, connect_timeout_s=2.0) for side in EVERY_SIDE}

    async def first_call(store: Store) -> float:
        began = time.monotonic()
        assert await store.load("thread") == state_of(1)
        return time.monotonic() - began

    took = await asyncio.gather(*(first_call(store) for store in stores.values()))
    assert max(took) < 2.0 + OF_NO_TIME_OUT_S, dict(zip(stores, took, strict=True))
    for store in stores.values():
        await store.close()
