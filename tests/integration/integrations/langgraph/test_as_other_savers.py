"""Our savers behave like LangGraph's own savers where LangGraph's base class leaves the behaviour open."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeAlias

import pytest
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import TASKS, _DeltaSnapshot
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from locus_mysql import MySQLCheckpointSaver
from locus_mysql.errors import UsageError
from locus_mysql.integrations.langgraph import AsyncMySQLSaver, AsyncMySQLStore

from ...conftest import EACH_WAY, ONE_OF_EACH, MakeConfig
from .conftest import OpenSaver

pytestmark = pytest.mark.kept_tables("graphs")

Vacuum: TypeAlias = Callable[[], Awaitable[int]]

each_way = pytest.mark.parametrize("side", EACH_WAY)
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


def config_of(ns: str = "", checkpoint_id: str | None = None, thread_id: str = "thread") -> Any:
    named = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, **named}}


def content(checkpoint_id: str, values: dict[str, Any] | None = None, **more: Any) -> Checkpoint:
    made: Any = {**empty_checkpoint(), "id": checkpoint_id, "channel_values": values or {}, **more}
    return made  # type: ignore[no-any-return]


async def ids(saver: BaseCheckpointSaver[Any], config: Any, **options: Any) -> list[str]:
    return [found.checkpoint["id"] async for found in saver.alist(config, **options)]


async def parents(saver: BaseCheckpointSaver[Any], config: Any) -> dict[str, str | None]:
    return {
        found.checkpoint["id"]: found.parent_config and found.parent_config["configurable"]["checkpoint_id"]
        async for found in saver.alist(config)
    }


@pytest.fixture
def vacuum(make_config: MakeConfig, run_sql: Any, database: str) -> Vacuum:
    """Return a function that backdates all checkpoints, but not their threads, and vacuums; it returns the count."""

    async def run() -> int:
        run_sql(f"UPDATE {database}.locus_graph_checkpoints SET created_at = created_at - INTERVAL 40 DAY")
        async with MySQLCheckpointSaver(make_config()) as saver:
            return await saver.vacuum(30)

    return run


#: Namespaces and ids in the order in which the server receives them: the graph's own checkpoints arrive late, and
#: one clock is behind.
ARRIVALS = [("", "01"), ("sub", "04"), ("sub", "05"), ("", "02"), ("", "03"), ("sub", "09"), ("", "08"), ("", "07")]


@each_way
async def test_before_compares_ids_whatever_came_first_and_in_whichever_namespace(
    open_saver: OpenSaver, side: str
) -> None:
    saver, reference = open_saver(side), InMemorySaver()
    for one in (saver, reference):
        for ns, checkpoint_id in ARRIVALS:
            await one.aput(config_of(ns), content(checkpoint_id), {}, {})
        await one.aput(config_of("", thread_id="other"), content("06"), {}, {})
    everything = [
        None,
        {"configurable": {"thread_id": "thread"}},
        config_of(""),
        config_of("sub"),
        config_of("", thread_id="other"),
    ]
    for config in everything:
        for before in ("00", "01", "05", "06", "07", "08", "09", "10"):
            found = await ids(saver, config, before=config_of("", before))
            assert sorted(found) == sorted(await ids(reference, config, before=config_of("", before))), (config, before)
            without_ns: Any = {"configurable": {"checkpoint_id": before}}
            assert await ids(saver, config, before=without_ns) == found
    assert await ids(saver, config_of("sub"), before=config_of("", "08"), limit=1) == ["05"]


@each_way
async def test_the_newest_is_what_the_server_took_last_though_before_compares_ids(
    open_saver: OpenSaver, side: str
) -> None:
    saver, other = open_saver(side), open_saver(side)
    for number, (ns, checkpoint_id) in enumerate(ARRIVALS):
        await (saver, other)[number % 2].aput(config_of(ns), content(checkpoint_id), {}, {})
    newest = await saver.aget_tuple(config_of())
    assert newest == await other.aget_tuple(config_of())
    assert newest.checkpoint["id"] == "07"
    assert await ids(saver, config_of()) == ["07", "08", "03", "02", "01"]
    assert await ids(saver, config_of(), before=newest.config) == ["03", "02", "01"]


@one_of_each
async def test_before_compares_ids_over_many_pages(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    config = config_of()
    for number in range(250):
        config = await saver.aput(config, content(f"{number:03}"), {}, {})
    found = await ids(saver, config_of(), before=config_of("", "230"))
    assert found == [f"{number:03}" for number in range(230)][::-1]
    assert await ids(saver, config_of(), before=config_of("", "230"), limit=120) == found[:120]


@each_way
async def test_a_listing_without_a_thread_lists_all_threads(open_saver: OpenSaver, side: str) -> None:
    saver, reference = open_saver(side), InMemorySaver()
    empty: Any = {}
    for one in (saver, reference):
        for thread_id in ("a", "b"):
            await one.aput(config_of(thread_id=thread_id), content(f"of {thread_id}"), {"source": thread_id}, {})  # type: ignore[typeddict-item]
        for config in (None, empty):
            assert sorted(await ids(one, config)) == ["of a", "of b"]
            assert await ids(one, config, filter={"source": "a"}) == ["of a"]
        for wrong in ({"configurable": {}}, {"configurable": {"checkpoint_ns": ""}}):
            with pytest.raises(KeyError, match="thread_id"):
                await ids(one, wrong)
    if not side.endswith("async"):
        assert len(list(saver.list(empty))) == 2


async def history(saver: BaseCheckpointSaver[Any], config: Any) -> Any:
    (found,) = (await saver.aget_delta_channel_history(config=config, channels=["log"])).values()
    return {"writes": [value for _, _, value in found["writes"]], **{k: v for k, v in found.items() if k == "seed"}}


async def line(saver: Any, values: dict[int, dict[str, Any]], length: int, **metadata: Any) -> list[Any]:
    """Put a sequence of checkpoints, each with a write, some with values."""
    configs: list[Any] = []
    config = config_of()
    for number in range(length):
        at_hand = {**content(f"{number:03}", values.get(number)), "channel_versions": {"log": f"{number:03}.1"}}
        config = await saver.aput(config, at_hand, metadata if number else {}, {"log": f"{number:03}.1"})
        await saver.aput_writes(config, [("log", number)], "task")
        configs.append(config)
    return configs


@each_way
@pytest.mark.parametrize("length", [1, 2, 3, 300])
async def test_the_history_of_a_channel_ends_where_the_chain_of_parents_is_a_cycle(
    open_saver: OpenSaver, side: str, length: int
) -> None:
    saver = open_saver(side)
    configs = await line(saver, {}, length)
    await saver.aput(configs[-1], content("000"), {}, {})  # now the first checkpoint is a child of the last
    tail = await saver.aput(configs[-1], content("tail"), {}, {})
    async with asyncio.timeout(60):
        assert await history(saver, configs[-1]) == {"writes": list(range(length - 1))}
        assert await history(saver, configs[0]) == {"writes": list(range(1, length))}
        assert await history(saver, tail) == {"writes": list(range(length))}
        await saver.aprune(["thread"])
    assert await ids(saver, config_of()) == ["tail"]


@each_way
async def test_checkpoints_kept_by_pruning_have_no_deleted_parent(open_saver: OpenSaver, side: str) -> None:
    saver, other = open_saver(side), open_saver(side)
    for ns in ("", "child:1"):
        config = config_of(ns)
        for number in range(3):
            config = await saver.aput(config, content(f"{number}"), {"run_id": f"run {number}"}, {})  # type: ignore[typeddict-unknown-key]
    await saver.adelete_for_runs(["run 0"])
    for reader in (saver, other):
        assert await parents(reader, config_of()) == {"2": "1", "1": None}
    await saver.aprune(["thread"])
    for reader in (saver, other):
        for ns in ("", "child:1"):
            assert await parents(reader, config_of(ns)) == {"2": None}
            assert (await reader.aget_tuple(config_of(ns))).parent_config is None


@each_way
async def test_a_checkpoint_that_still_needs_its_parent_goes_on_naming_it(open_saver: OpenSaver, side: str) -> None:
    saver, other = open_saver(side), open_saver(side)
    counters: Any = {"counters_since_delta_snapshot": {"log": (1, 1)}}
    configs = await line(saver, {}, 4, **counters)
    await saver.aprune(["thread"])
    for reader in (other, saver):
        assert await ids(reader, config_of()) == ["003"]
        head = await reader.aget_tuple(config_of())
        assert head.parent_config == configs[2]
        assert await history(reader, config_of()) == {"writes": [0, 1, 2]}
    copy = await other.aput(head.parent_config, content("copy"), counters, {})  # as LangGraph forks a checkpoint
    assert await history(saver, copy) == {"writes": [0, 1, 2]}


@each_way
@pytest.mark.parametrize("removal", ["prune", "runs", "vacuum"])
async def test_a_snapshot_without_a_counter_outlives_removals(
    open_saver: OpenSaver, vacuum: Vacuum, side: str, removal: str
) -> None:
    saver, other = open_saver(side), open_saver(side)
    snapshot = _DeltaSnapshot([1, 2, 3] * 99)
    await line(saver, {1: {"log": snapshot, "other": 1}}, 3, run_id="run")
    config = config_of("", "002")
    for number in (3, 4):  # another process continues; checkpoint 000 belongs to no run
        saver, other = other, saver
        config = await saver.aput(config, content(f"{number:03}"), {"run_id": f"run {number}"}, {})  # type: ignore[typeddict-unknown-key]
        await saver.aput_writes(config, [("log", number)], "task")
    if removal == "prune":
        await saver.aprune(["thread"])
    elif removal == "runs":
        await saver.adelete_for_runs(["run", "run 3"])
    else:
        await vacuum()
    for reader in (saver, other):
        assert (await ids(reader, config_of()))[0] == "004"
        assert await history(reader, config_of()) == {"seed": snapshot, "writes": [1, 2, 3]}
    await saver.aput(config, content("005", {"log": ["whole"]}), {}, {"log": "9"})
    await saver.aput(config_of("", "005"), content("006"), {}, {})
    await other.aprune(["thread"])
    assert await history(other, config_of()) == {"writes": []}, (
        "a value that stands whole ends what depends on the snapshot"
    )


@each_way
async def test_a_channel_that_is_counted_and_then_is_not_keeps_nothing(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    await line(saver, {0: {"log": _DeltaSnapshot([1])}}, 1)
    counted: Any = {"counters_since_delta_snapshot": {"log": (1, 1)}}
    await saver.aput(config_of("", "000"), content("001"), counted, {})
    await saver.aput(config_of("", "001"), content("002"), {}, {})  # the graph no longer has this channel
    await saver.aprune(["thread"])
    assert await parents(saver, config_of()) == {"002": None}


@each_way
async def test_wrong_arguments_of_prune_change_nothing(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    for number in range(2):
        await saver.aput(config_of(), content(f"{number}"), {}, {})
    for strategy in ("keep_latest", "delete"):
        with pytest.raises(TypeError, match="not a str"):
            await saver.aprune("thread", strategy=strategy)
    with pytest.raises(ValueError, match="'keep_all': use 'keep_latest'"):
        await saver.aprune(["thread"], strategy="keep_all")
    assert await ids(saver, config_of()) == ["1", "0"]


async def test_a_synchronous_call_in_the_running_loop_raises_what_others_raise(make_config: MakeConfig) -> None:
    async with AsyncMySQLSaver(make_config()) as saver:
        await saver.aput(config_of(), content("0"), {}, {})
        for call in (
            lambda: saver.get_tuple(config_of()),
            lambda: list(saver.list(config_of())),
            lambda: saver.put(config_of(), content("1"), {}, {}),
            lambda: saver.put_writes(config_of("", "0"), [("a", 1)], "task"),
            lambda: saver.delete_thread("thread"),
            lambda: saver.delete_for_runs(["run"]),
            lambda: saver.copy_thread("thread", "copy"),
            lambda: saver.prune(["thread"]),
            lambda: saver.get_delta_channel_history(config=config_of(), channels=["a"]),
        ):
            with pytest.raises(asyncio.InvalidStateError, match=r"await the a.* methods .*aget_state") as raised:
                call()
            assert isinstance(raised.value, UsageError)
        assert await ids(saver, config_of()) == ["0"]
    async with AsyncMySQLStore(make_config()) as store:
        await store.aget(("a",), "b")
        with pytest.raises(asyncio.InvalidStateError, match="await"):
            store.get(("a",), "b")


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def calling(saver: Any, *, asks: bool) -> Any:
    """Return a graph with two subgraphs: one keeps its state; the other does not, and interrupts if ``asks``."""

    def counted(state: State) -> dict[str, Any]:
        return {"log": [f"{len(state['log'])}"]}

    def asked(state: State) -> dict[str, Any]:
        return {"log": [interrupt("?") if asks else "call"]}

    def subgraph(step: Any, checkpointer: bool | None) -> Any:
        return StateGraph(State).add_node("step", step).add_edge(START, "step").compile(checkpointer=checkpointer)

    builder = StateGraph(State)
    builder.add_node("memory", subgraph(counted, True))
    builder.add_node("call", subgraph(asked, None))
    builder.add_edge(START, "memory")
    builder.add_edge("memory", "call")
    return builder.compile(checkpointer=saver)


async def invoke(graph: Any, side: str, given: Any, config: Any, **options: Any) -> Any:
    if side.endswith("async"):
        return await graph.ainvoke(given, config, **options)
    return await asyncio.to_thread(graph.invoke, given, config, **options)


async def namespaces(saver: Any, thread_id: str) -> set[str]:
    config: Any = {"configurable": {"thread_id": thread_id}}
    return {found.config["configurable"]["checkpoint_ns"] async for found in saver.alist(config)}


@each_way
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_calls_of_subgraphs_go_with_the_checkpoint_that_called_them(
    open_saver: OpenSaver, side: str, durability: str
) -> None:
    saver = open_saver(side)
    graph = calling(saver, asks=False)
    pruned, twin = (config_of(thread_id=name) for name in ("pruned", "twin"))
    for _ in range(3):
        for config in (pruned, twin):
            await invoke(graph, side, {"log": ["in"]}, config, durability=durability)
    assert durability == "exit" or len(await namespaces(saver, "pruned")) == 5  # one for each of three calls
    await saver.aprune(["pruned"])
    assert await namespaces(saver, "pruned") == {"", "memory"}
    states = [await invoke(graph, side, {"log": ["in"]}, config, durability=durability) for config in (pruned, twin)]
    assert states[0] == states[1]


def extended(log: list[str], writes: Any) -> list[str]:
    return [*log, *(line for write in writes for line in write)]


class Deltas(TypedDict):
    log: Annotated[list[str], DeltaChannel(extended, snapshot_frequency=3)]


@each_way
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("keep", [1, 3])
async def test_graphs_on_a_saver_that_keeps_few_checkpoints_go_on_like_their_twins(
    open_saver: OpenSaver, side: str, durability: str, keep: int
) -> None:
    savers = [open_saver(side, keep_checkpoints=keep), open_saver(side, tenant="twin")]
    deltas = StateGraph(Deltas)
    deltas.add_node("count", lambda state: {"log": [f"after {len(state['log'])}"]})
    deltas.add_edge(START, "count")
    for turn in range(4):
        found = []
        for saver in savers:
            nested, flat = calling(saver, asks=True), deltas.compile(checkpointer=saver)
            await invoke(nested, side, {"log": ["in"]}, config_of(), durability=durability)
            answered = await invoke(nested, side, Command(resume=f"yes {turn}"), config_of(), durability=durability)
            flat_config = config_of(thread_id="flat")
            grown = await invoke(flat, side, {"log": [f"turn {turn}"]}, flat_config, durability=durability)
            found.append((answered, grown, (await flat.aget_state(flat_config)).values))
        assert found[0] == found[1]
    for thread_id in ("thread", "flat"):
        for ns in ("", "memory"):
            assert len(await ids(savers[0], config_of(ns, thread_id=thread_id))) <= keep
    assert len(await ids(savers[0], config_of())) == min(keep, len(await ids(savers[1], config_of())))
    assert keep > 1 or await namespaces(savers[0], "thread") == {"", "memory"}


@one_of_each
async def test_calls_go_only_with_a_checkpoint_that_was_stored(
    open_saver: OpenSaver, vacuum: Vacuum, side: str
) -> None:
    saver = open_saver(side)
    for ns, checkpoint_id, caller in (
        ("", "1", None), ("", "2", None), ("", "3", None),
        ("call:of-1", "4", "1"), ("call:of-3", "5", "3"), ("call:of-4", "6", "4"), ("call:of-1|inner:x", "7", "1"),
        ("memory", "8", "1"), ("call:odd", "9", "%"), ("call:none", "a", None),
    ):  # fmt: skip
        metadata: Any = {} if caller is None else {"parents": {"": caller}}
        if checkpoint_id == "9":
            metadata["not JSON"] = float("nan")
        await saver.aput(config_of(ns), content(checkpoint_id), metadata, {})
        await saver.aput_writes(config_of(ns, checkpoint_id), [("a", 1)], "task")
    assert await vacuum() == 2
    kept = {"", "call:of-3", "call:of-4", "memory", "call:odd", "call:none"}
    assert await namespaces(saver, "thread") == kept
    await saver.aprune(["thread"])
    assert await namespaces(saver, "thread") == kept


@one_of_each
async def test_the_parent_with_the_sends_of_an_older_checkpoint_stays_named(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    first = await saver.aput(config_of(), content("1", v=1), {}, {})
    second = await saver.aput(first, content("2", v=1), {}, {})
    head = await saver.aput(second, content("3", v=1), {}, {})
    await saver.aput_writes(second, [(TASKS, "send")], "task")
    await saver.aprune(["thread"])
    found = await saver.aget_tuple(head)
    assert found.parent_config == second
    assert found.checkpoint["channel_values"][TASKS] == ["send"]
