"""After the first use, a call takes one round trip, counted on the wire for each driver and side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from .conftest import EACH_WAY, AnyStore, MakeConfig, OpenStore
from .proxy import WireProxy

State = dict[str, Any]
Call = Callable[[AnyStore], Awaitable[Any]]

each_way = pytest.mark.parametrize("side", EACH_WAY)
pytestmark = pytest.mark.slow


def state_of(turns: int) -> State:
    return {"turns": turns, "messages": [{"content": f"walrus {turn} " * 50} for turn in range(turns)]}


async def round_trips(proxy: WireProxy, call: Awaitable[Any]) -> tuple[int, Any]:
    with proxy.counting() as count:
        outcome = await call
    assert count.connections == 0
    return count.round_trips, outcome


#: Each call with its expected result, on a thread of nine checkpoints, "c1" to "c9".
CALLS: dict[str, tuple[Call, Any]] = {
    "save to a new thread": (lambda s: s.save("new", state_of(1), "n1"), "n1"),
    "save to a known thread": (lambda s: s.save("thread", state_of(10), "c10"), "c10"),
    "save with metadata": (lambda s: s.save("thread", state_of(10), "c10", {"k": "v"}), "c10"),
    "save under an existing id": (lambda s: s.save("thread", state_of(11), "c4"), "c4"),
    "save under the newest id": (lambda s: s.save("thread", state_of(11), "c9"), "c9"),
    "save another state": (lambda s: s.save("thread", {"other": 1}, "c10"), "c10"),
    "exists": (lambda s: s.exists("thread"), True),
    "exists by id": (lambda s: s.exists("thread", "c1"), True),
    "delete a checkpoint": (lambda s: s.delete("thread", "c4"), True),
    "delete the newest": (lambda s: s.delete("thread", "c9"), True),
    "delete nothing": (lambda s: s.delete("absent"), False),
    "delete a thread": (lambda s: s.delete("thread"), True),
    "list_checkpoints": (lambda s: s.list_checkpoints("thread", 2), ["c9", "c8"]),
    "list_threads": (lambda s: s.list_threads(pattern="thr*"), ["thread"]),
    "count": (lambda s: s.count("*"), 2),
    "copy_thread": (lambda s: s.copy_thread("thread", "copy"), True),
    "load": (lambda s: s.load("thread"), state_of(9)),
    "load by id": (lambda s: s.load("thread", "c7"), state_of(7)),
    "load nothing": (lambda s: s.load("absent"), None),
}

#: Calls whose results are only checked not to be empty.
LOOKS: dict[str, Call] = {
    "get_metadata": lambda s: s.get_metadata("thread"),
    "get_metadata by id": lambda s: s.get_metadata("thread", "c3"),
    "query_by_metadata": lambda s: s.query_by_metadata("turn", 3),
    "search": lambda s: s.search("walrus"),
    "history": lambda s: s.history("thread"),
    "list_with_metadata": lambda s: s.list_with_metadata(),
    "get_disk_usage": lambda s: s.get_disk_usage("thread"),
    "health_check": lambda s: s.health_check(),
}


async def filled(store: AnyStore) -> AnyStore:
    await store.save("other", {"small": 1})
    for turn in range(1, 10):
        await store.save("thread", state_of(turn), f"c{turn}", {"turn": turn})
    return store


@each_way
async def test_each_call_of_a_store_is_one_round_trip(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    counts = {}
    for what, (call, expected) in CALLS.items():
        store = await filled(open_store(side, config=through_proxy()))
        counts[what], outcome = await round_trips(proxy, call(store))
        assert outcome == expected, what
        for thread in ("new", "copy", "thread"):
            await store.delete(thread)
        await store.close()
    store = await filled(open_store(side, config=through_proxy()))
    for what, look in LOOKS.items():
        counts[what], outcome = await round_trips(proxy, look(store))
        assert outcome, what
    # If there is nothing to delete, a guard of the transaction fails, and a second round trip ends it.
    assert counts == {**dict.fromkeys(counts, 1), "delete nothing": 2}


@each_way
async def test_a_save_without_an_id_is_one_round_trip(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    store = open_store(side, config=through_proxy(ttl_s=3600, keep_checkpoints=3))
    await store.health_check()
    counts = [(await round_trips(proxy, store.save("thread", state_of(turn))))[0] for turn in range(12)]
    assert counts == [1] * 12


@each_way
async def test_a_store_that_never_saw_a_thread_needs_one_round_trip_too(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    await filled(open_store(side, config=through_proxy()))
    calls: list[Call] = [
        lambda s: s.load("thread"),
        lambda s: s.load("thread", "c5"),
        lambda s: s.save("thread", state_of(10), "c10"),
        lambda s: s.delete("thread", "c2"),
        lambda s: s.copy_thread("thread", "copy"),
    ]
    for call in calls:
        stranger = open_store(side, config=through_proxy())
        await stranger.health_check()
        assert (await round_trips(proxy, call(stranger)))[0] == 1


@each_way
async def test_a_load_after_another_process_saved_is_two_round_trips_at_most(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    store = await filled(open_store(side, config=through_proxy()))
    other = open_store(side, config=through_proxy())
    await other.save("thread", state_of(20))
    count, loaded = await round_trips(proxy, store.load("thread"))
    assert loaded == state_of(20)
    assert count <= 2
    assert (await round_trips(proxy, store.load("thread")))[0] == 1


@each_way
async def test_where_two_processes_take_turns_each_call_is_one_round_trip(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    stores = [open_store(side, config=through_proxy()) for _ in range(2)]
    counts = []
    for turn in range(1, 9):
        store = stores[turn % 2]
        await store.health_check()
        count, loaded = await round_trips(proxy, store.load("thread"))
        assert loaded == (state_of(turn - 1) if turn > 1 else None)
        counts += [count, (await round_trips(proxy, store.save("thread", state_of(turn))))[0]]
    assert max(counts[8:]) == 1
    assert max(counts) <= 2


@each_way
async def test_a_save_after_another_process_saved_is_three_round_trips_at_most(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    """They are the packet that relies on cached data, the rollback, and the packet that reads."""
    store = await filled(open_store(side, config=through_proxy()))
    other = open_store(side, config=through_proxy())
    await other.save("thread", state_of(10))
    count, name = await round_trips(proxy, store.save("thread", state_of(11)))
    assert count <= 3
    assert (await round_trips(proxy, store.save("thread", state_of(12))))[0] == 1
    assert await other.load("thread", name) == state_of(11)
    assert await other.load("thread") == state_of(12)


@each_way
async def test_each_call_of_a_backend_is_one_round_trip(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    backend = open_store(side, "backend", config=through_proxy())
    await backend.save("thread", state_of(3), metadata={"k": 1})
    calls: dict[str, Call] = {
        "save": lambda b: b.save("thread", state_of(4), metadata={"k": 1}),
        "save anew": lambda b: b.save("other", state_of(1)),
        "save under an id": lambda b: b.save("thread", state_of(5), "c5", {"k": 1}),
        "load": lambda b: b.load("thread"),
        "exists": lambda b: b.exists("thread"),
        "list_threads": lambda b: b.list_threads(),
        "count": lambda b: b.count(),
        "copy_thread": lambda b: b.copy_thread("thread", "copy"),
        "get_metadata": lambda b: b.get_metadata("thread"),
        "query_by_metadata": lambda b: b.query_by_metadata("k", 1),
        "search": lambda b: b.search("walrus"),
        "search_data": lambda b: b.search_data("turns", 5),
        "list_with_metadata": lambda b: b.list_with_metadata(),
        "delete": lambda b: b.delete("thread"),
    }
    counts = {}
    for what, call in calls.items():
        counts[what], outcome = await round_trips(proxy, call(backend))
        assert outcome, what
    assert counts == dict.fromkeys(counts, 1)


@pytest.mark.parametrize("way", ["async", "sync"])
async def test_an_iteration_of_a_locus_turn_is_one_round_trip(
    through_proxy: MakeConfig, proxy: WireProxy, way: str
) -> None:
    """Includes a turn's provisional saves, the save at its end, and the deletion of the provisional ones."""
    from locus.core.messages import Message
    from locus.core.state import AgentState

    from locus_mysql.integrations.locus.agent_states import ITERATION_CHECKPOINTS_KEY
    from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer, SyncMySQLCheckpointer

    kind = MySQLCheckpointer if way == "async" else SyncMySQLCheckpointer
    saver = AnyStore(kind(through_proxy()))
    state = AgentState().with_message(Message.user("walrus " * 500))
    await saver.save(state, "thread")
    counts = []
    provisional: list[str] = []
    for iteration in range(5):
        state = state.with_message(Message.assistant(f"iteration {iteration} " * 100))
        marked = state.with_metadata(ITERATION_CHECKPOINTS_KEY, [*provisional, f"i{iteration}"])
        count, name = await round_trips(proxy, saver.save(marked, "thread", f"i{iteration}"))
        provisional.append(name)
        counts.append(count)
    counts.append((await round_trips(proxy, saver.save(state, "thread")))[0])
    for name in provisional:
        count, deleted = await round_trips(proxy, saver.delete("thread", name))
        assert deleted
        counts.append(count)
    count, loaded = await round_trips(proxy, saver.load("thread"))
    counts.append(count)
    await saver.close()
    assert loaded.messages == state.messages
    assert counts == [1] * len(counts)


@each_way
async def test_the_first_use_makes_the_tables_and_the_next_process_only_looks_at_them(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    counts = {}
    for ddl_mode, most in (("create", 7), ("create", 5), ("validate", 5), ("off", 4)):
        store = open_store(side, config=through_proxy(ddl_mode=ddl_mode))
        with proxy.counting() as count:
            await store.save("thread", state_of(1))
        counts[ddl_mode] = (count.round_trips, most)
    assert all(count <= most for count, most in counts.values()), counts


@each_way
async def test_without_pipeline_each_statement_is_a_round_trip_and_the_outcome_is_the_same(
    open_store: OpenStore, through_proxy: MakeConfig, proxy: WireProxy, side: str
) -> None:
    for what, (call, expected) in CALLS.items():
        store = await filled(open_store(side, config=through_proxy(pipeline=False)))
        with proxy.counting() as count:
            assert await call(store) == expected, what
        assert count.round_trips == count.commands, what
        if what.startswith(("save", "delete", "copy")):
            assert count.round_trips >= 4, what
        for thread in ("new", "copy", "thread"):
            await store.delete(thread)
        await store.close()
