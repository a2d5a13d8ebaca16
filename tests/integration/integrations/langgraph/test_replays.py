"""Replays of graphs with subgraphs are correct for any order in which their checkpoints arrive.

LangGraph stores checkpoints in the background, so a subgraph's may arrive before that of the graph that calls it. Here
they always arrive first.
"""

from __future__ import annotations

import operator
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from locus_mysql.integrations.langgraph import AsyncMySQLSaver, MySQLSaver

from ....waiting import DEADLINE_S, until
from ...conftest import EACH_WAY, MakeConfig
from .graphs import Running

pytestmark = pytest.mark.kept_tables("graphs")

each_way = pytest.mark.parametrize("side", EACH_WAY)

#: Checkpoints that a subgraph of one node stores in a turn: its input, before the node, after it.
CHECKPOINTS = 3


class Arrivals:
    """Decides which checkpoints of a graph wait until its subgraphs have stored theirs.

    Args:
        subgraphs: Number of subgraphs that a turn calls.
    """

    def __init__(self, subgraphs: int) -> None:
        self._subgraphs = subgraphs
        self._held: frozenset[int] = frozenset()
        self._stored: Counter[str] = Counter()
        self._changed = threading.Condition()

    def hold(self, *steps: int) -> None:
        """From now on, the graph's checkpoints of these steps wait for those of its subgraphs."""
        with self._changed:
            self._held, self._stored = frozenset(steps), Counter()

    def stored(self, ns: str) -> None:
        with self._changed:
            self._stored[ns] += 1
            self._changed.notify_all()

    def waits(self, ns: str, metadata: Any) -> bool:
        return not ns and metadata["step"] in self._held

    @property
    def all_stored(self) -> bool:
        return sum(count >= CHECKPOINTS for count in self._stored.values()) >= self._subgraphs

    def wait(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.all_stored, DEADLINE_S)


class LateSaver(MySQLSaver):
    """Stores checkpoints of the graph itself after those of its subgraphs."""

    arrivals: Arrivals

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        ns = config["configurable"]["checkpoint_ns"]
        if self.arrivals.waits(ns, metadata):
            self.arrivals.wait()
        stored = super().put(config, checkpoint, metadata, new_versions)
        if ns:
            self.arrivals.stored(ns)
        return stored


class LateAsyncSaver(AsyncMySQLSaver):
    """The same as `LateSaver`, for event loops."""

    arrivals: Arrivals

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        ns = config["configurable"]["checkpoint_ns"]
        if self.arrivals.waits(ns, metadata):
            await until(lambda: self.arrivals.all_stored, "the subgraphs' checkpoints")
        stored = await super().aput(config, checkpoint, metadata, new_versions)
        if ns:
            self.arrivals.stored(ns)
        return stored


class Trail(TypedDict):
    trail: Annotated[list[str], operator.add]


class Results(TypedDict):
    results: Annotated[list[str], operator.add]


def with_subgraphs(names: list[str], seen: dict[str, list[list[str]]]) -> StateGraph[Any, Any, Any, Any]:
    """Return a graph: a node, then parallel subgraphs that keep their state and record what they start from."""
    builder = StateGraph(Results)
    builder.add_node("first", lambda state: {"results": ["first"]})
    builder.add_edge(START, "first")
    for name in names:

        def step(state: Trail, name: str = name) -> dict[str, Any]:
            seen[name].append(list(state["trail"]))
            return {"trail": [name]}

        subgraph = StateGraph(Trail)
        subgraph.add_node("step", step)
        subgraph.add_edge(START, "step")
        builder.add_node(name, subgraph.compile(checkpointer=True))
        builder.add_edge("first", name)
    return builder


async def before(running: Running, *nodes: str) -> list[Any]:
    """Return the configs of the states whose next nodes are these, newest first."""
    return [state.config for state in await running.history() if set(state.next) == set(nodes)]


async def with_saver(
    make_config: MakeConfig, side: str, subgraphs: int, test: Callable[[Any], Awaitable[None]]
) -> None:
    driver, _, way = side.rpartition("-")
    saver: Any = (LateAsyncSaver if way == "async" else LateSaver)(make_config(driver=driver))
    saver.arrivals = Arrivals(subgraphs)
    try:
        await test(saver)
    finally:
        closing = saver.close()
        if closing is not None:
            await closing


@each_way
async def test_a_replay_from_before_a_subgraphs_first_call_starts_the_subgraph_again(
    make_config: MakeConfig, side: str
) -> None:
    async def replay(saver: Any) -> None:
        seen: dict[str, list[list[str]]] = {"a": []}
        run = Running(with_subgraphs(["a"], seen).compile(checkpointer=saver))
        for input_step in (-1, 3):
            saver.arrivals.hold(input_step + 2)  # the checkpoint from which the subgraph is called
            await run({"results": []})
        assert seen["a"] == [[], ["a"]]
        second, first = await before(run, "a")
        for config, state in ((first, []), (second, ["a"])):
            saver.arrivals.hold()
            seen["a"].clear()
            await run(None, config)
            assert seen["a"] == [state]

    await with_saver(make_config, side, 1, replay)


@each_way
async def test_subgraphs_side_by_side_each_go_on_from_their_state_before_the_replayed_checkpoint(
    make_config: MakeConfig, side: str
) -> None:
    async def replay(saver: Any) -> None:
        seen: dict[str, list[list[str]]] = {"a": [], "b": []}
        run = Running(with_subgraphs(["a", "b"], seen).compile(checkpointer=saver))
        for input_step in (-1, 3):
            saver.arrivals.hold(input_step + 1, input_step + 2)  # before the first node, and before the subgraphs
            await run({"results": []})
        assert seen == {"a": [[], ["a"]], "b": [[], ["b"]]}
        second, first = await before(run, "first")
        saver.arrivals.hold()
        for config, length in ((second, 1), (first, 0)):
            for states in seen.values():
                states.clear()
            await run(None, config)
            assert seen == {"a": [["a"] * length], "b": [["b"] * length]}
        await run({"results": []})  # continues from the state of the last replay
        assert seen == {"a": [[], ["a"]], "b": [[], ["b"]]}

    await with_saver(make_config, side, 2, replay)
