"""Loads of the newest checkpoint by its id use the cached state only while the server still has it (ADR 0290)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from locus_mysql import CheckpointStore
from locus_mysql.errors import CorruptCheckpoint

from ...conftest import MakeConfig
from ...grouped_writes import BESIDE, Beside, group_writes
from .conftest import EACH_WAY, Make, RunSQL, side_name
from .turns import Held, state_of

pytestmark = pytest.mark.kept_tables("dicts")

#: Checkpoints of a thread, by their ids.
Expected = dict[str, dict[str, Any] | None]

OLDER, NEWEST = state_of("plum"), state_of("plum", "fig")


def hits(store: Any) -> int:
    """Return the number of loads that used a cached state."""
    count: int = store.store.database.stats().cache_hits
    return count


@dataclass(frozen=True)
class Writer:
    """The store that changes a thread, and the fixtures that changes need.

    Args:
        store: The store that changes it.
        make_store: Makes another store.
        expire: Makes the thread expire.
        age: Makes the thread, or its checkpoints up to one, old.
    """

    store: Any
    make_store: Make
    expire: Callable[[str], None]
    age: Callable[..., None]


async def replace_the_newest(writer: Writer) -> Expected:
    await writer.store.save("t", state_of("pear"), "newest")
    return {"older": OLDER, "newest": state_of("pear")}


async def replace_an_older_one(writer: Writer) -> Expected:
    await writer.store.save("t", state_of("pear"), "older")
    return {"older": state_of("pear"), "newest": NEWEST}


async def replace_each_with_the_other_s_state(writer: Writer) -> Expected:
    await writer.store.save("t", OLDER, "newest")
    await writer.store.save("t", NEWEST, "older")
    return {"older": NEWEST, "newest": OLDER}


async def delete_the_newest(writer: Writer) -> Expected:
    assert await writer.store.delete("t", "newest")
    return {"older": OLDER, "newest": None}


async def delete_an_older_one(writer: Writer) -> Expected:
    assert await writer.store.delete("t", "older")
    return {"older": None, "newest": NEWEST}


async def delete_the_newest_and_save_it_again(writer: Writer) -> Expected:
    assert await writer.store.delete("t", "newest")
    await writer.store.save("t", state_of("pear"), "newest")
    return {"older": OLDER, "newest": state_of("pear")}


async def save_and_delete_another_one(writer: Writer) -> Expected:
    await writer.store.save("t", state_of("pear"), "third")
    assert await writer.store.delete("t", "third")
    return {"older": OLDER, "newest": NEWEST, "third": None}


async def delete_the_thread(writer: Writer) -> Expected:
    assert await writer.store.delete("t")
    return {"older": None, "newest": None}


async def delete_the_thread_in_a_turn(writer: Writer) -> Expected:
    async with Held(writer.store, "t"):
        assert await writer.store.delete("t")
    return {"older": None, "newest": None}


async def make_the_thread_anew(writer: Writer) -> Expected:
    assert await writer.store.delete("t")
    await writer.store.save("t", state_of("pear"), "older")
    await writer.store.save("t", state_of("pear", "nut"), "newest")
    return {"older": state_of("pear"), "newest": state_of("pear", "nut")}


async def copy_another_thread_onto_it(writer: Writer) -> Expected:
    await writer.store.save("source", state_of("pear"), "older")
    await writer.store.save("source", state_of("pear", "nut"), "newest")
    assert await writer.store.delete("t")
    assert await writer.store.copy_thread("source", "t")
    return {"older": state_of("pear"), "newest": state_of("pear", "nut")}


async def let_the_thread_expire(writer: Writer) -> Expected:
    writer.expire("t")
    return {"older": None, "newest": None}


async def begin_the_expired_thread_anew(writer: Writer) -> Expected:
    writer.expire("t")
    await writer.store.save("t", state_of("pear"), "third")
    return {"older": None, "newest": None, "third": state_of("pear")}


async def keep_one_checkpoint(writer: Writer) -> Expected:
    await writer.make_store(keep_checkpoints=1).save("t", state_of("pear"), "third")
    return {"older": None, "newest": None, "third": state_of("pear")}


async def vacuum_old_checkpoints(writer: Writer) -> Expected:
    writer.age(40, "t", "older")
    assert await writer.store.vacuum(30) == 1
    return {"older": None, "newest": NEWEST}


async def vacuum_the_idle_thread(writer: Writer) -> Expected:
    writer.age(40, "t")
    assert await writer.store.vacuum(30) == 2
    return {"older": None, "newest": None}


async def forget_the_tenant(writer: Writer) -> Expected:
    assert await writer.store.forget_tenant() == 2
    return {"older": None, "newest": None}


CHANGES: tuple[Callable[[Writer], Awaitable[Expected]], ...] = (
    replace_the_newest,
    replace_an_older_one,
    replace_each_with_the_other_s_state,
    delete_the_newest,
    delete_an_older_one,
    delete_the_newest_and_save_it_again,
    save_and_delete_another_one,
    delete_the_thread,
    delete_the_thread_in_a_turn,
    make_the_thread_anew,
    copy_another_thread_onto_it,
    begin_the_expired_thread_anew,
    vacuum_old_checkpoints,
    vacuum_the_idle_thread,
    forget_the_tenant,
)

#: Changes that the loading store does not make.
CHANGES_ELSEWHERE = (let_the_thread_expire, keep_one_checkpoint)

CASES = [
    *(pytest.param(one, by, id=f"{one.__name__}-{by}") for one in CHANGES for by in ("itself", "another process")),
    *(pytest.param(one, "another process", id=one.__name__) for one in CHANGES_ELSEWHERE),
]


@pytest.mark.parametrize("known", ["saved", "loaded"])
@pytest.mark.parametrize(("change", "by"), CASES)
async def test_a_changed_thread_is_loaded_by_id_as_it_is(
    make_store: Make,
    expire: Callable[[str], None],
    age: Callable[..., None],
    change: Callable[[Writer], Awaitable[Expected]],
    by: str,
    known: str,
) -> None:
    reader, other = make_store(), make_store()
    saver = reader if known == "saved" else other
    await saver.save("t", OLDER, "older")
    await saver.save("t", NEWEST, "newest")
    assert await reader.load("t", "newest") == NEWEST
    before = hits(reader)
    assert await reader.load("t", "newest") == NEWEST
    assert hits(reader) == before + 1  # the state is cached
    writer = Writer(reader if by == "itself" else other, make_store, expire, age)
    expected = await change(writer)
    for _ in range(2):  # the first load caches what it found
        for name, state in reversed(expected.items()):
            assert await reader.load("t", name) == state
    stranger = make_store(cache_bytes=0)
    for name, state in expected.items():
        assert await stranger.load("t", name) == state


async def test_a_checkpoint_that_its_own_process_pruned_is_not_loaded_from_the_cache(make_store: Make) -> None:
    store = make_store(keep_checkpoints=1)
    await store.save("t", NEWEST, "newest")
    assert await store.load("t", "newest") == NEWEST
    await store.save("t", state_of("pear"), "third")
    assert await store.load("t", "newest") is None
    assert await store.load("t", "third") == state_of("pear")


@pytest.mark.parametrize("side", EACH_WAY, ids=side_name)
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


async def test_a_damaged_row_whose_place_is_known_is_refused(make_store: Make, sql: RunSQL) -> None:
    store = make_store(cache_bytes=0)
    await store.save("t", NEWEST, "newest")
    assert await store.load("t") == NEWEST
    sql("UPDATE locus_store_checkpoints SET payload = CONCAT(payload, 'x')")
    with pytest.raises(CorruptCheckpoint):
        await store.load("t")
    sql("UPDATE locus_store_checkpoints SET payload = LEFT(payload, LENGTH(payload) - 1)")
    assert await store.load("t") == NEWEST


async def test_equal_ids_of_threads_and_tenants_are_different_checkpoints(make_store: Make) -> None:
    one, other = make_store(tenant="one"), make_store(tenant="other")
    for store, thread_id in ((one, "t"), (one, "u"), (other, "t")):
        await store.save(thread_id, {"of": [store is one, thread_id]}, "newest")
    for store, thread_id in ((one, "t"), (one, "u"), (other, "t")):
        assert await store.load(thread_id, "newest") == {"of": [store is one, thread_id]}
    await one.delete("t", "newest")
    assert await one.load("t", "newest") is None
    assert await other.load("t", "newest") == {"of": [False, "t"]}
    assert await other.load("u", "newest") is None


async def test_ids_that_differ_only_in_case_or_accents_are_different_checkpoints(make_store: Make) -> None:
    store = make_store()
    for number, name in enumerate(("newest", "Newest", "néwest", "newest ")):
        assert await store.load("t", name) is None
        await store.save("t", {"number": number}, name)
        assert await store.load("t", name) == {"number": number}
    assert await store.load("t", "newest") == {"number": 0}


async def test_a_changed_loaded_state_does_not_change_the_cached_one(make_store: Make) -> None:
    store = make_store()
    await store.save("t", NEWEST, "newest")
    for _ in range(2):
        loaded = await store.load("t", "newest")
        assert loaded == NEWEST
        loaded["messages"].append("more")


@pytest.mark.parametrize("beside", [*BESIDE, None])
async def test_concurrent_saves_and_loads_by_id_return_the_saved_states(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, sql: RunSQL, beside: Beside | None
) -> None:
    """The saves are sent in groups: beside a write of the test, or of each other as there are few connections."""
    if beside is not None:
        group_writes(monkeypatch, beside)
    async with CheckpointStore(make_config(pool_size=2)) as store:
        await store.save("t", {"number": -1}, "shared")

        async def work(number: int) -> None:
            for turn in range(4):
                state = {"number": number, "turn": turn, "text": "x" * 2_000}
                await store.save("t", state, f"own {number}")
                assert await store.load("t", f"own {number}") == state
                await store.save("t", state, "shared")
                found = await store.load("t", "shared")
                assert found["turn"] >= 0
                if number % 3 == 0:
                    assert await store.delete("t", f"own {number}")
                    assert await store.load("t", f"own {number}") is None

        await asyncio.gather(*(work(number) for number in range(8)))
        for number in range(8):
            found = await store.load("t", f"own {number}")
            assert found == (None if number % 3 == 0 else {"number": number, "turn": 3, "text": "x" * 2_000})
        async with CheckpointStore(make_config()) as stranger:
            assert await stranger.load("t", "shared") == await store.load("t", "shared")
