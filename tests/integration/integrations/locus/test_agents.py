"""Locus agents with a scripted model, whose checkpointer stores their turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from locus.agent import Agent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.testing import ScriptedModel, text, tool_call
from locus.tools import tool

from locus_mysql import MySQLCheckpointer

from .agents import a_state, add, again, contents
from .conftest import RunSQL

pytestmark = pytest.mark.kept_tables("agents")


class TestAgents:
    async def test_a_second_turn_remembers_the_first(
        self, make_checkpointer: Callable[..., MySQLCheckpointer], driver: str, sql: RunSQL
    ) -> None:
        async with make_checkpointer(driver=driver) as checkpointer:
            first = Agent(model=ScriptedModel([text("Hello Ann.")]), checkpointer=checkpointer)
            await first.arun("I am Ann.", thread_id="t")
            model = ScriptedModel([text("You are Ann.")])
            second = Agent(model=model, checkpointer=checkpointer)
            result = await second.arun("Who am I?", thread_id="t")
            assert result.text == "You are Ann."
            assert [message.content for message in model.received_messages[0] if message.role.value != "system"] == [
                "I am Ann.",
                "Hello Ann.",
                "Who am I?",
            ]
            assert len(await checkpointer.list_checkpoints("t")) == 2

    async def test_a_loaded_state_equals_the_saved_one(self, checkpointer: MySQLCheckpointer) -> None:
        agent = Agent(
            model=ScriptedModel([tool_call("add", a=1, b=2), text("3")]), tools=[add], checkpointer=checkpointer
        )
        result = await agent.arun("1 + 2?", thread_id="t")
        loaded = await checkpointer.load("t")
        assert loaded is not None
        assert contents(loaded) == contents(result.state)
        assert loaded.tool_executions[0].result == result.state.tool_executions[0].result
        state = a_state("ä😀", "x" * 5_000, confidence=0.5)
        await checkpointer.save(state, "u")
        assert await checkpointer.load("u") == state

    async def test_iteration_saves_are_deleted_at_the_end_of_a_turn(
        self, checkpointer: MySQLCheckpointer, sql: RunSQL
    ) -> None:
        agent = Agent(
            model=ScriptedModel([tool_call("add", a=1, b=2), tool_call("add", a=3, b=4, call_id="second"), text("7")]),
            tools=[add],
            checkpointer=checkpointer,
            checkpoint_every_n_iterations=1,
        )
        for turn in range(3):
            agent = agent if turn == 0 else again(agent, checkpointer)
            await agent.arun("add", thread_id="t")
            assert len(await checkpointer.list_checkpoints("t", 100)) == turn + 1
        assert sql("SELECT COUNT(*) FROM locus_checkpoints") == ((3,),)

    def test_asyncio_run_twice_uses_two_event_loops(self, make_checkpointer: Callable[..., MySQLCheckpointer]) -> None:
        checkpointer = make_checkpointer()
        agent = Agent(model=ScriptedModel([text("one"), text("two")]), checkpointer=checkpointer)
        assert asyncio.run(agent.arun("1", thread_id="t")).text == "one"
        assert asyncio.run(agent.arun("2", thread_id="t")).text == "two"
        assert asyncio.run(read_and_close(checkpointer, "t")) == ["1", "one", "2", "two"]

    async def test_a_crashed_turn_is_continued_without_repeating_the_finished_call(
        self, make_checkpointer: Callable[..., MySQLCheckpointer], sql: RunSQL
    ) -> None:
        calls: list[str] = []

        @tool
        def charge(order: str) -> str:
            """Charge an order."""
            calls.append(order)
            return f"charged {order}"

        class Crash(BaseException):
            """Simulates SIGKILL."""

        class CrashingModel(ScriptedModel):
            async def complete(self, *args: Any, **kwargs: Any) -> Any:
                if self.call_count == 1:
                    await before.close()
                    before.save = before.delete = never  # type: ignore[assignment,method-assign]
                    raise Crash
                return await super().complete(*args, **kwargs)

        async def never(*_: Any, **__: Any) -> Any:
            """Raise, because a killed process saves and deletes nothing."""
            raise Crash

        options: dict[str, Any] = {"tools": [charge], "checkpoint_every_n_iterations": 1}
        before = make_checkpointer()
        crashing = Agent(model=CrashingModel([tool_call("charge", order="o1")]), checkpointer=before, **options)
        with pytest.raises(Crash):
            await crashing.arun("charge o1", thread_id="t")
        await before.close()
        async with make_checkpointer() as after:
            agent = Agent(model=ScriptedModel([text("done")]), checkpointer=after, **options)
            events = [event async for event in agent.continue_turn("t")]
            assert events
            assert calls == ["o1"]
            assert [message.role.value for message in (await after.load("t")).messages].count("tool") == 1
            assert contents(await after.load("t"))[-1] == "done"
            assert len(await after.list_checkpoints("t")) == 1
        assert sql("SELECT COUNT(*) FROM locus_checkpoints") == ((1,),)

    async def test_history_update_and_fork(self, checkpointer: MySQLCheckpointer) -> None:
        agent = Agent(model=ScriptedModel([text("one"), text("two"), text("forked")]), checkpointer=checkpointer)
        await agent.arun("1", thread_id="t")
        (first,) = await checkpointer.list_checkpoints("t")
        await agent.arun("2", thread_id="t")
        history = await agent.get_state_history("t")
        assert [contents(state) for _, state in history] == [["1", "one", "2", "two"], ["1", "one"]]
        edited = await agent.update_state("t", messages=[Message.user("note")], metadata={"k": 1})
        assert contents(await checkpointer.load("t", edited)) == ["1", "one", "2", "two", "note"]
        assert contents(await checkpointer.load("t", first)) == ["1", "one"]
        forked = await agent.fork("t", first, new_thread_id="fork")
        await agent.arun("3", thread_id=forked)
        assert contents(await checkpointer.load("fork")) == ["1", "one", "3", "forked"]
        assert contents(await checkpointer.load("t"))[-1] == "note"
        info = (await checkpointer.query_by_metadata("forked_from", "t"))[0]
        assert info["thread_id"] == "fork"

    async def test_a_long_conversation_takes_little_space_and_few_rows_to_load(
        self, checkpointer: MySQLCheckpointer, sql: RunSQL
    ) -> None:
        """Saves as Locus does: a load, a save after each iteration, a final save, then deletes."""
        state: AgentState = a_state()
        whole = 0
        for turn in range(64):
            state = await checkpointer.load("t") or state
            pending: list[str] = []
            for iteration in range(2):
                state = state.with_message(Message.user(f"{turn}.{iteration} " + "word " * 100))
                pending = [*pending, f"p{turn}.{iteration}"]
                saved = state.with_metadata("_locus_iteration_checkpoints", pending)
                await checkpointer.save(saved, "t", pending[-1])
            await checkpointer.save(state, "t", f"turn{turn}")
            whole += len(str(state.to_checkpoint()))
            for name in pending:
                assert await checkpointer.delete("t", name)
        assert sql("SELECT COUNT(*) FROM locus_checkpoints") == ((64,),)
        assert await checkpointer.get_disk_usage("t") < whole / 8
        bases = dict(sql("SELECT seq, base_seq FROM locus_checkpoints"))
        for row in bases:
            length = 1
            while bases[row] != row:
                row, length = bases[row], length + 1
            assert length <= 8


async def read_and_close(checkpointer: MySQLCheckpointer, thread_id: str) -> list[str | None]:
    try:
        return contents(await checkpointer.load(thread_id))
    finally:
        await checkpointer.close()
