"""Two writers of one thread with Locus' runtime: every choice of ``on_conflict``, and turns."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest
from locus.agent import Agent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.testing import ScriptedModel, text, tool_call
from locus.tools import tool

from locus_mysql import MySQLCheckpointer, SyncMySQLCheckpointer, ThreadBranched
from locus_mysql.errors import ConfigError, Conflict, ThreadBusy
from locus_mysql.families.checkpoints.preconditions import NO_CHECKPOINT
from locus_mysql.integrations.locus.runs import STAMP_KEY

from ...conftest import MakeConfig, Opening
from ...proxy import WireProxy

pytestmark = pytest.mark.kept_tables("agents")

NINE = 9

#: A checkpointer of either side, whose methods are all awaited.
Make: TypeAlias = Callable[..., Any]


@pytest.fixture
def make(opening: Opening, side: str) -> Make:
    """Return ``make(on_conflict=…, **options)``: another checkpointer, like that of another process."""
    kinds = (MySQLCheckpointer, SyncMySQLCheckpointer)
    return lambda on_conflict="raise", **options: opening(side, kinds, on_conflict=on_conflict, **options)


def texts_of(state: AgentState | None) -> list[str | None]:
    assert state is not None
    return [message.content for message in state.messages if message.role.value == "user"]


def saying(state: AgentState | None, *words: str) -> AgentState:
    """Return a state that continues another one, like a new turn of Locus' runtime."""
    before = state or AgentState()
    new = AgentState(messages=before.messages, metadata=before.metadata)
    for word in words:
        new = new.with_message(Message.user(word))
    return new


class Meeting(ScriptedModel):
    """A model that answers when all parties of a barrier have sent a request."""

    def __init__(self, turns: list[Any], barrier: asyncio.Barrier) -> None:
        super().__init__(turns)
        self._barrier = barrier

    async def complete(self, *args: Any, **options: Any) -> Any:
        if self._barrier.parties > 1 and not self.calls_seen:
            await self._barrier.wait()
        self.calls_seen = True
        return await super().complete(*args, **options)

    calls_seen = False


@tool
def note(words: str) -> str:
    """Note something."""
    return f"noted {words}"


async def nine_turns(checkpointers: list[MySQLCheckpointer], *, tools: bool, keep: bool = False) -> list[Any]:
    """Run nine turns that all load the thread before one of them saves, and return the outcome of each."""
    barrier = asyncio.Barrier(NINE)

    async def turn(number: int) -> Any:
        script = [tool_call("note", words=str(number)), text("done")] if tools else [text("done")]
        agent = Agent(
            model=Meeting(script, barrier),
            tools=[note],
            checkpointer=checkpointers[number % len(checkpointers)],
            keep_iteration_checkpoints=keep,
        )
        return await agent.arun(f"turn {number}", thread_id="t")

    return await asyncio.gather(*map(turn, range(NINE)), return_exceptions=True)


each_thread = pytest.mark.parametrize(
    ("begun", "tools"), [(False, False), (True, True)], ids=["new, without tools", "begun, with tools"]
)


@pytest.fixture
async def three(make_config: MakeConfig) -> AsyncIterator[Callable[[str], list[MySQLCheckpointer]]]:
    made: list[MySQLCheckpointer] = []

    def make_three(on_conflict: Any) -> list[MySQLCheckpointer]:
        made.extend(MySQLCheckpointer(make_config(driver="pymysql"), on_conflict=on_conflict) for _ in range(3))
        return made

    yield make_three
    for one in made:
        await one.close()


@each_thread
async def test_of_nine_turns_at_once_one_is_saved_and_the_others_raise(three: Any, begun: bool, tools: bool) -> None:
    checkpointers = three("raise")
    first = await checkpointers[0].save(saying(None, "first"), "t") if begun else None
    outcomes = await nine_turns(checkpointers, tools=tools)
    conflicts = [one for one in outcomes if isinstance(one, Conflict)]
    assert len(conflicts) == NINE - 1
    assert {one.expected for one in conflicts} == {first}
    assert len(await checkpointers[0].list_checkpoints("t", 100)) == 1 + begun
    (won,) = [number for number, one in enumerate(outcomes) if not isinstance(one, Conflict)]
    assert texts_of(await checkpointers[1].load("t")) == [*(["first"] if begun else []), f"turn {won}"]


@each_thread
async def test_of_nine_turns_at_once_one_is_saved_and_the_others_to_branches(
    three: Any, begun: bool, tools: bool
) -> None:
    checkpointers = three("branch")
    if begun:
        await checkpointers[0].save(saying(None, "first"), "t")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcomes = await nine_turns(checkpointers, tools=tools)
    assert [one for one in outcomes if isinstance(one, BaseException)] == []
    branches = [one.message.branch for one in caught if isinstance(one.message, ThreadBranched)]
    assert len(set(branches)) == len(branches) == NINE - 1
    found = [texts_of(await checkpointers[0].load(thread))[-1] for thread in ("t", *branches)]
    assert sorted(found) == [f"turn {number}" for number in range(NINE)]
    for thread in branches:
        assert len(await checkpointers[0].list_checkpoints(thread)) == 1  # those of the iterations were deleted
    assert len(await checkpointers[0].list_checkpoints("t", 100)) == 1 + begun
    named = await checkpointers[0].query_by_metadata("branched_from", "t")
    assert {one["thread_id"] for one in named} == set(branches)


@pytest.mark.parametrize("on_conflict", ["raise", "branch"])
@pytest.mark.parametrize("keep", [False, True])
async def test_turns_one_after_another_do_not_conflict(make_config: MakeConfig, on_conflict: Any, keep: bool) -> None:
    config = make_config(driver="pymysql")
    async with (
        MySQLCheckpointer(config, on_conflict=on_conflict) as one,
        MySQLCheckpointer(config, on_conflict=on_conflict) as other,
    ):
        for turn in range(4):
            agent = Agent(
                model=ScriptedModel([tool_call("note", words="a"), tool_call("note", words="b"), text("done")]),
                tools=[note],
                checkpointer=(one, other, one, one)[turn],
                system_prompt=f"Turn {turn}.",
                keep_iteration_checkpoints=keep,
            )
            await agent.arun(f"turn {turn}", thread_id="t", metadata={"turn": turn})
        state = await other.load("t")
        assert texts_of(state) == [f"turn {turn}" for turn in range(4)]
        assert await one.list_threads() == ["t"]
        assert state is not None
        assert state.metadata["turn"] == 3


async def test_the_state_that_is_stored_has_no_stamp(make: Make) -> None:
    one, plain = make("raise"), make("keep")
    await one.save(saying(None, "a"), "t")
    state = await one.load("t")
    assert STAMP_KEY in state.metadata
    await one.save(saying(state, "b"), "t")
    assert (await plain.load("t")).metadata == {}


async def test_two_that_loaded_equal_states_and_save_equal_ones_do_not_both_save(make: Make) -> None:
    one, other = make(), make()
    await one.save(saying(None, "a"), "t")
    mine, theirs = await one.load("t"), await other.load("t")
    await one.save(saying(mine, "the same"), "t")
    with pytest.raises(Conflict):
        await other.save(saying(theirs, "the same"), "t")


async def test_a_run_that_saves_repeatedly_causes_no_conflict(make: Make) -> None:
    one = make()
    state = saying(None, "a")
    for word in "bcd":
        await one.save(state, "t")
        state = state.with_message(Message.user(word))
    state = await one.load("t")
    for word in "xyz":
        state = state.with_message(Message.user(word))
        await one.save(state, "t")
    assert texts_of(await make().load("t")) == ["a", "b", "c", "x", "y", "z"]


async def test_a_state_that_was_shortened_does_not_conflict(make: Make) -> None:
    """A compacted history does not continue the stored history from which it was loaded."""
    one = make()
    await one.save(saying(None, *"abcdef"), "t")
    state = await one.load("t")
    short = state.model_copy(update={"messages": (Message.user("summary"),)})
    await one.save(short, "t")
    assert texts_of(await make().load("t")) == ["summary"]


async def test_going_back_to_an_older_checkpoint_is_no_conflict_unless_somebody_saved_since(make: Make) -> None:
    one, other = make(), make()
    first = await one.save(saying(None, "a"), "t")
    await one.save(saying(await one.load("t"), "b"), "t")
    back, late = await one.load("t", first), await one.load("t", first)
    await one.save(saying(back, "c"), "t")
    assert texts_of(await other.load("t")) == ["a", "c"]
    with pytest.raises(Conflict):
        await one.save(saying(late, "d"), "t")


async def test_a_checkpoint_that_was_replaced_under_its_id_is_another(make: Make) -> None:
    one, other = make(), make()
    await one.save(saying(None, "a"), "t", "current")
    mine, theirs = await one.load("t"), await other.load("t")
    await one.save(saying(mine, "b"), "t", "current")
    with pytest.raises(Conflict):
        await other.save(saying(theirs, "c"), "t", "current")


async def test_a_state_that_is_saved_to_another_thread_than_it_was_loaded_from_begins_that(make: Make) -> None:
    one = make()
    await one.save(saying(None, "a"), "t")
    state = await one.load("t")
    await one.save(saying(state, "b"), "u")
    with pytest.raises(Conflict):
        await one.save(saying(state, "c"), "u")
    await one.save(saying(state, "d"), "t")


async def test_a_thread_that_was_deleted_is_not_brought_back(make: Make) -> None:
    one, other = make(), make()
    await one.save(saying(None, "a"), "t")
    state = await one.load("t")
    await other.delete("t")
    with pytest.raises(Conflict):
        await one.save(saying(state, "b"), "t")
    assert await one.exists("t") is False


async def test_a_run_whose_turn_was_saved_to_a_branch_continues_in_the_branch(make: Make) -> None:
    one = make("branch")
    await one.save(saying(None, "a"), "t")
    mine, theirs = await one.load("t"), await one.load("t")
    await one.save(saying(mine, "b"), "t")
    state = saying(theirs, "c")
    with pytest.warns(ThreadBranched) as caught:
        await one.save(state, "t", metadata={"channel": "mail"})
    branch = caught[0].message.branch
    await one.save(state.with_message(Message.user("d")), "t")
    assert texts_of(await one.load(branch)) == ["a", "c", "d"]
    assert texts_of(await one.load("t")) == ["a", "b"]
    (found,) = await one.query_by_metadata("channel", "mail")
    assert found["metadata"] == {"channel": "mail", "branched_from": "t"}


async def test_an_expected_id_overrides_the_option(make: Make) -> None:
    for on_conflict in ("keep", "raise", "branch"):
        one, thread = make(on_conflict), f"thread of {on_conflict}"
        first = await one.save(saying(None, "a"), thread, expected=NO_CHECKPOINT)
        second = await one.save(saying(None, "b"), thread, expected=first)
        with pytest.raises(Conflict) as raised:
            await one.save(saying(None, "c"), thread, expected=first)
        assert (raised.value.expected, raised.value.newest) == (first, second)


async def test_tracking_the_loaded_checkpoint_costs_no_round_trip(make: Make, proxy: WireProxy) -> None:
    one = make("raise", host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    await one.save(saying(None, "a"), "t")
    for word in "bcd":
        with proxy.counting() as count:
            await one.save(saying(await one.load("t"), word), "t")
        assert count.round_trips == 2


async def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(ConfigError, match="on_conflict"):
        MySQLCheckpointer("mysql://user:password@localhost/app", on_conflict="overwrite")  # type: ignore[arg-type]


async def test_a_turn_belongs_to_its_tenant(make: Make) -> None:
    one = make("keep").store
    other = make("keep").store
    if isinstance(one, MySQLCheckpointer):
        with one.tenant_scope("acme"):
            async with one.turn("t"):
                await one.save(saying(None, "a"), "t")
                async with other.turn("t", wait_s=0):
                    pass
                with other.tenant_scope("acme"), pytest.raises(ThreadBusy):
                    async with other.turn("t", wait_s=0):
                        raise AssertionError
    else:
        with one.tenant_scope("acme"), one.turn("t"):
            one.save(saying(None, "a"), "t")
            with other.turn("t", wait_s=0):
                pass
            with other.tenant_scope("acme"), pytest.raises(ThreadBusy), other.turn("t", wait_s=0):
                raise AssertionError
