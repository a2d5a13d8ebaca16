"""The checkpointer with real Locus agents and a scripted model."""

from __future__ import annotations

import dataclasses
import inspect
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from locus.agent import Agent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.checkpointer import BaseCheckpointer
from locus.memory.retention import RetainedCheckpointer
from locus.testing import ScriptedModel, text

from locus_mysql import MySQLCheckpointer, SyncMySQLCheckpointer
from locus_mysql.errors import ConfigError

from ...conftest import MakeConfig
from .agents import a_state, contents
from .conftest import RunSQL

pytestmark = pytest.mark.kept_tables("agents")


class TestContract:
    async def test_all_eight_capabilities_are_there_and_work(self, checkpointer: MySQLCheckpointer) -> None:
        capabilities = dataclasses.asdict(checkpointer.capabilities)
        assert len(capabilities) == 8
        assert all(capabilities.values())
        first = await checkpointer.save(a_state("an apple"), "t", metadata={"user": "Ann"})
        (hit,) = await checkpointer.search("apple")
        assert hit["thread_id"] == "t"
        assert hit["checkpoint_id"] == first
        assert hit["score"] > 0
        assert "apple" in hit["snippet"]
        (found,) = await checkpointer.query_by_metadata("user", "Ann")
        assert found["checkpoint_id"] == first
        info = await checkpointer.get_metadata("t")
        assert info is not None
        assert info["metadata"] == {"user": "Ann"}
        assert await checkpointer.copy_thread("t", "u")
        assert await checkpointer.list_threads() == ["u", "t"]
        assert await checkpointer.list_threads(pattern="?", limit=1) == ["u"]
        assert [one["metadata"] for one in await checkpointer.list_with_metadata()] == [{"user": "Ann"}] * 2
        assert await checkpointer.list_checkpoints("u") == [first]
        assert await checkpointer.vacuum(0) == 2

    async def test_every_method_of_locus_contract_is_implemented(self) -> None:
        for name, member in inspect.getmembers(BaseCheckpointer):
            if name.startswith("_") or not callable(member):
                continue
            own = getattr(MySQLCheckpointer, name)
            assert own is not member, name
            theirs, ours = inspect.signature(member).parameters, inspect.signature(own).parameters
            for parameter in theirs.values():
                assert ours[parameter.name].default == parameter.default, (name, parameter.name)
            assert list(ours)[: len(theirs)] == list(theirs), name
            assert inspect.iscoroutinefunction(own)

    async def test_more_than_the_contract(self, checkpointer: MySQLCheckpointer) -> None:
        for turn in range(3):
            await checkpointer.save(a_state(*["hello"] * (turn + 1), confidence=0.25), "t", str(turn))
        assert await checkpointer.count("t*") == 1
        (found,) = await checkpointer.search_data("confidence", 0.25)
        assert found["thread_id"] == "t"
        assert [entry["parent_id"] for entry in await checkpointer.history("t")] == ["1", "0", None]
        usage = await checkpointer.get_disk_usage("t")
        assert usage > 0
        assert await checkpointer.get_disk_usage() == usage
        assert await checkpointer.health_check() is True
        assert all(statement.startswith("CREATE TABLE") for statement in checkpointer.ddl())
        assert "password" not in repr(checkpointer)

    async def test_health_is_false_not_an_error_when_there_is_no_server(
        self, make_checkpointer: Callable[..., MySQLCheckpointer]
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        async with make_checkpointer(host="127.0.0.1", port=port, connect_timeout_s=1, retry_deadline_s=0) as one:
            assert await one.health_check() is False

    @pytest.mark.kept_tables  # a new schema: the test checks that no tables were created
    def test_an_agent_refuses_the_synchronous_twin_before_anything_is_done(
        self, make_config: MakeConfig, run_sql: RunSQL, database: str
    ) -> None:
        with SyncMySQLCheckpointer(make_config(driver="pymysql")) as checkpointer:
            for given in (checkpointer, RetainedCheckpointer(checkpointer)):  # type: ignore[arg-type]
                agent = Agent(model=ScriptedModel([text("Hello")]), checkpointer=given)
                with pytest.raises(ConfigError, match="Give the agent a MySQLCheckpointer"):
                    agent.run_sync("Hi", thread_id="t")
            assert run_sql(f"SHOW TABLES FROM {database}") == ()

    async def test_times_are_text_as_with_locus_own_checkpointers(self, checkpointer: MySQLCheckpointer) -> None:
        await checkpointer.save(a_state("pear"), "t", metadata={"b": 1})
        answers = [
            await checkpointer.get_metadata("t"),
            *await checkpointer.query_by_metadata("b", 1),
            *await checkpointer.search("pear"),
            *await checkpointer.search_data("run_id", "run"),
            *await checkpointer.list_with_metadata(),
        ]
        assert len(answers) == 5
        for answer in answers:
            assert answer is not None
            times = [value for name, value in answer.items() if name in {"created_at", "updated_at"}]
            assert times
            assert all(datetime.fromisoformat(value).utcoffset() == timedelta(0) for value in times)

    async def test_locus_retained_checkpointer_wraps_it(self, checkpointer: MySQLCheckpointer) -> None:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        retained = RetainedCheckpointer(checkpointer, timedelta(days=30), clock=lambda: now)
        await retained.save(a_state("old"), "t")
        loaded = await retained.load("t")
        assert loaded is not None
        now += timedelta(days=31)
        await retained.save(loaded.with_message(Message.user("new")), "t")
        assert contents(await checkpointer.load("t")) == ["new"]
        assert contents(await retained.load("t", (await retained.list_checkpoints("t"))[1])) == ["old"]
        assert retained.deletes_single_checkpoints


async def test_system_messages_are_not_searched(checkpointer: MySQLCheckpointer) -> None:
    state = AgentState(run_id="r").with_message(Message.system("be an elephant")).with_message(Message.user("a mouse"))
    await checkpointer.save(state, "t")
    assert await checkpointer.search("elephant") == []
    assert len(await checkpointer.search("mouse")) == 1


async def test_an_unfinished_turn_is_found_once_it_is_finished(checkpointer: MySQLCheckpointer) -> None:
    state = a_state("zebra")
    await checkpointer.save(state.with_metadata("_locus_iteration_checkpoints", ["p"]), "t", "p")
    assert await checkpointer.search("zebra") == []
    await checkpointer.save(state, "t", "final")
    await checkpointer.delete("t", "p")
    assert [hit["checkpoint_id"] for hit in await checkpointer.search("zebra")] == ["final"]
