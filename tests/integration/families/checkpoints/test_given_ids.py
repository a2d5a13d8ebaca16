"""Saves under an id that the caller gives (ADR 0281), and saves that expect a checkpoint."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from locus_mysql import NO_CHECKPOINT, SyncCheckpointStore
from locus_mysql.errors import Conflict, InvalidInput

from ...conftest import EACH_WAY
from ...proxy import WireProxy
from ...test_concurrent_writers import DEADLINE_S
from .conftest import Make
from .turns import held, state_of

pytestmark = [pytest.mark.kept_tables("dicts"), pytest.mark.both_sides]

#: Options that change the statements of a save, or how they are sent.
OPTIONS: dict[str, dict[str, Any]] = {
    "as usual": {},
    "without pipeline": {"pipeline": False},
    "without cache": {"cache_bytes": 0},
    "with expiry": {"ttl_s": 600},
}


async def at_once(store: Any, *saves: tuple[Any, ...]) -> list[Any]:
    """Run saves of one store at the same time; return their results or errors in order."""
    if not isinstance(store.store, SyncCheckpointStore):
        return await asyncio.gather(*(store.save(*arguments) for arguments in saves), return_exceptions=True)
    barrier = threading.Barrier(len(saves))

    def run(arguments: tuple[Any, ...]) -> Any:
        barrier.wait(DEADLINE_S)
        return store.store.save(*arguments)

    with ThreadPoolExecutor(len(saves)) as threads:
        begun = [threads.submit(run, arguments) for arguments in saves]
        return [one.exception(DEADLINE_S) or one.result() for one in begun]


@pytest.mark.parametrize("side", EACH_WAY)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
@pytest.mark.parametrize("knows", [True, False], ids=["loaded before", "unknown thread"])
async def test_a_checkpoint_that_another_process_saved_moves_to_the_new_state(
    make_store: Make, options: dict[str, Any], knows: bool
) -> None:
    store, other = make_store(**options), make_store(**options)
    await other.save("t", state_of("a"), "first", {"kind": "old"})
    await other.save("t", state_of("a", "b"), "second")
    if knows:
        assert await store.load("t") == state_of("a", "b")
    for turn in ("c", "d"):  # refused first; then known
        state = state_of("a", "b", turn)
        assert await store.save("t", state, "first", {"kind": turn}) == "first"
        for reader in (store, other, make_store(**options)):
            assert await reader.list_checkpoints("t") == ["first", "second"]
            assert await reader.load("t") == await reader.load("t", "first") == state
            assert await reader.load("t", "second") == state_of("a", "b")
            assert [one["checkpoint_id"] for one in await reader.query_by_metadata("kind", turn)] == ["first"]
            assert await reader.query_by_metadata("kind", "old") == []


@pytest.mark.parametrize("side", EACH_WAY)
@pytest.mark.parametrize("pipeline", [True, False], ids=["grouped", "each alone"])
async def test_refused_ids_undo_no_save_that_travels_with_them(make_store: Make, pipeline: bool) -> None:
    """Twelve saves share one connection: half of their ids exist in their threads, saved by another process."""
    store, other = make_store(pool_size=1, pipeline=pipeline), make_store()
    for number in range(0, 12, 2):
        await other.save(f"t{number:02}", state_of("old"), "c")
    await store.health_check()
    saves = [(f"t{number:02}", state_of("old", str(number)), "c") for number in range(12)]
    assert await at_once(store, *saves) == ["c"] * 12
    for thread_id, state, _ in saves:
        for reader in (store, other):
            assert await reader.load(thread_id) == state
            assert await reader.list_checkpoints(thread_id) == ["c"]


async def test_a_new_id_costs_no_more_than_none_and_a_refused_one_a_round_trip(
    make_store: Make, proxy: WireProxy
) -> None:
    store = make_store(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    await store.save("t", state_of("a"))
    with proxy.counting() as without:
        await store.save("t", state_of("a", "b"))
    with proxy.counting() as given:
        await store.save("t", state_of("a", "b", "c"), "given")
    assert given.round_trips == without.round_trips == 1
    assert given.bytes_sent < without.bytes_sent + 200
    await make_store().save("t", state_of("a", "b", "c"), "of another")
    await store.load("t")
    for expected in (3, 1):  # the packet that is refused, ROLLBACK, and the replacement
        with proxy.counting() as count:
            await store.save("t", state_of("a", "b", "c", "d"), "of another")
        assert count.round_trips == expected


async def test_an_id_that_was_loaded_is_replaced_at_once(make_store: Make, proxy: WireProxy) -> None:
    """As in a short-lived process that loads a checkpoint by its id, and saves the next state under it."""
    await make_store().save("t", state_of("a"), "latest")
    store = make_store(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    assert await store.load("t", "latest") == state_of("a")
    await store.load("t")
    with proxy.counting() as count:
        await store.save("t", state_of("a", "b"), "latest")
    assert count.round_trips == 1
    assert await make_store().list_checkpoints("t") == ["latest"]
    assert await make_store().load("t") == state_of("a", "b")


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
