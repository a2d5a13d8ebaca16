"""Saves that expect a checkpoint."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import NO_CHECKPOINT, SyncCheckpointStore
from locus_mysql.errors import Conflict, InvalidInput

from ...proxy import WireProxy
from ...test_concurrent_writers import DEADLINE_S
from .conftest import Make
from .turns import held, state_of

pytestmark = [pytest.mark.kept_tables("dicts"), pytest.mark.both_sides]


@pytest.mark.parametrize("named", [None, "mine", "first"], ids=["anew", "named", "replacing"])
@pytest.mark.parametrize("knows", [True, False], ids=["knows", "does not know"])
async def test_a_save_that_expects_another_checkpoint_saves_nothing_and_names_both(
    make_store: Make, table_contents: Callable[[], Any], named: str | None, knows: bool
) -> None:
    store, other = make_store(), make_store()
    await store.save("t", state_of("a"), "first")
    await (store if knows else other).save("t", state_of("a", "b"), "second")
    before = table_contents()
    with pytest.raises(Conflict) as raised:
        await store.save("t", state_of("a", "c"), named, expected="first")
    assert (raised.value.thread_id, raised.value.expected, raised.value.newest) == ("t", "first", "second")
    assert "'first'" in str(raised.value)
    assert "'second'" in str(raised.value)
    assert table_contents() == before
    await store.save("t", state_of("a", "b", "c"), named, expected="second")


async def test_a_save_that_expects_no_checkpoint_conflicts_with_any(make_store: Make) -> None:
    store = make_store()
    await store.save("t", state_of("a"), "first")
    with pytest.raises(Conflict) as raised:
        await store.save("t", state_of("b"), expected=NO_CHECKPOINT)
    assert (raised.value.expected, raised.value.newest) == (None, "first")


@pytest.mark.parametrize("gone", ["deleted", "expired", "never there"])
async def test_a_save_that_expects_a_checkpoint_of_a_thread_that_is_gone_conflicts(
    make_store: Make, expire: Callable[[str], None], gone: str
) -> None:
    store = make_store()
    if gone != "never there":
        await store.save("t", state_of("a"), "first")
        if gone == "deleted":
            await make_store().delete("t")
        else:
            expire("t")
    with pytest.raises(Conflict) as raised:
        await store.save("t", state_of("a", "b"), expected="first")
    assert raised.value.newest is None
    assert await store.exists("t") is False
    await store.save("t", state_of("a", "b"), "again", expected=NO_CHECKPOINT)
    assert await store.load("t") == state_of("a", "b")


async def test_the_expected_checkpoint_must_be_an_id(store: Any) -> None:
    for wrong in ("", 7, "x" * 129):
        with pytest.raises(InvalidInput):
            await store.save("t", state_of("a"), expected=wrong)


async def test_a_save_that_expects_something_is_one_round_trip(make_store: Make, proxy: WireProxy) -> None:
    store = make_store(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    newest = await store.save("t", state_of("a"))
    async with held(store, "t", lease_s=3600):  # so long that it is not renewed during the test
        for turn in range(3):
            with proxy.counting() as count:
                newest = await store.save("t", state_of("a", *"bcd"[: turn + 1]), expected=newest)
            assert count.round_trips == 1


async def test_of_nine_saves_at_once_that_expect_the_same_one_is_carried_out(make_store: Make) -> None:
    stores = [make_store() for _ in range(3)]
    await stores[0].save("t", state_of("a"), "first")
    outcomes: list[Any] = []

    def save_sync(number: int) -> None:
        try:
            outcomes.append(stores[number % 3].store.save("t", state_of("a", str(number)), expected="first"))
        except Conflict as error:
            outcomes.append(error)

    if isinstance(stores[0].store, SyncCheckpointStore):
        threads = [threading.Thread(target=save_sync, args=(number,)) for number in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
    else:
        outcomes = await asyncio.gather(
            *(stores[n % 3].save("t", state_of("a", str(n)), expected="first") for n in range(9)),
            return_exceptions=True,
        )
    (saved,) = [one for one in outcomes if isinstance(one, str)]
    conflicts = [one for one in outcomes if isinstance(one, Conflict)]
    assert len(conflicts) == 8
    assert {(one.expected, one.newest) for one in conflicts} == {("first", saved)}
    assert await stores[0].list_checkpoints("t") == [saved, "first"]


@pytest.mark.parametrize("command", range(1, 3))
async def test_a_save_whose_answer_was_lost_does_not_conflict_with_itself(
    make_store: Make, proxy: WireProxy, command: int
) -> None:
    store = make_store(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    first = await store.save("t", state_of("a"))
    proxy.drop_after_send(command)
    second = await store.save("t", state_of("a", "b"), expected=first)
    third = await store.save("t", state_of("a", "b", "c"), expected=second)
    assert await store.list_checkpoints("t") == [third, second, first]


async def test_a_save_that_expects_the_newest_checkpoint_is_carried_out(make_store: Make) -> None:
    store, other = make_store(), make_store()
    first = await store.save("t", state_of("a"), expected=NO_CHECKPOINT)
    second = await other.save("t", state_of("a", "b"), expected=first)
    third = await store.save("t", state_of("a", "b", "c"), "third", expected=second)
    assert await other.list_checkpoints("t") == [third, second, first]
