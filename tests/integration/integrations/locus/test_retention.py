"""Retention: old exchanges are dropped at saves and by a purge, and only the newest checkpoints are kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from locus.agent import Agent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.retention import MESSAGE_TIME_KEY, RetainedCheckpointer
from locus.testing import ScriptedModel

from locus_mysql import MySQLCheckpointer, SyncMySQLCheckpointer
from locus_mysql.errors import ConfigError, InvalidInput

from ...conftest import MakeConfig
from .agents import a_state, again, contents
from .conftest import RunSQL

pytestmark = pytest.mark.kept_tables("agents")


def stamped(content: str, days_ago: float) -> Message:
    moment = datetime.now(UTC) - timedelta(days=days_ago)
    return Message.user(content).model_copy(update={"metadata": {MESSAGE_TIME_KEY: moment.isoformat()}})


class TestRetention:
    async def test_old_exchanges_are_dropped_at_every_save(
        self, make_checkpointer: Callable[..., MySQLCheckpointer]
    ) -> None:
        async with make_checkpointer(message_retention=timedelta(days=30)) as one:
            state = a_state().with_message(stamped("old", 31)).with_message(stamped("recent", 29))
            await one.save(state.with_message(Message.user("new")), "t")
            loaded = await one.load("t")
            assert contents(loaded) == ["recent", "new"]
            assert loaded is not None
            assert all(MESSAGE_TIME_KEY in message.metadata for message in loaded.messages)

    async def test_a_message_keeps_the_stamp_of_its_first_save(
        self, make_checkpointer: Callable[..., MySQLCheckpointer]
    ) -> None:
        async with make_checkpointer(stamp_messages=True) as one:
            state = a_state("first")
            await one.save(state, "t", "a")
            await one.save(state.with_message(Message.user("second")), "t", "b")
            before, after = await one.load("t", "a"), await one.load("t", "b")
            assert before is not None
            assert after is not None
            assert before.messages[0].metadata == after.messages[0].metadata
            assert MESSAGE_TIME_KEY not in state.messages[0].metadata

    async def test_purging_rewrites_every_checkpoint_that_holds_an_old_exchange(
        self, make_checkpointer: Callable[..., MySQLCheckpointer], sql: RunSQL
    ) -> None:
        async with make_checkpointer(stamp_messages=True) as one:
            state = a_state().with_message(stamped("old secret " + "x" * 3_000, 31))
            await one.save(state, "t", "a", {"n": 1})
            state = state.with_message(stamped("recent apple " + "x" * 3_000, 5))
            await one.save(state, "t", "b", {"n": 2})
            await one.save(state.with_message(Message.user("new")), "t", "c")
            await one.save(a_state("untouched"), "other")
            times = sql("SELECT checkpoint_id, created_at FROM locus_checkpoints ORDER BY thread_id, seq")
            assert await one.purge_messages(timedelta(days=30)) == 3
            assert [len(contents(await one.load("t", name))) for name in "abc"] == [0, 1, 2]
            assert await one.list_checkpoints("t") == ["c", "b", "a"]
            assert [entry["parent_id"] for entry in await one.history("t")] == ["b", "a", None]
            assert (await one.query_by_metadata("n", 2))[0]["checkpoint_id"] == "b"
            assert times == sql("SELECT checkpoint_id, created_at FROM locus_checkpoints ORDER BY thread_id, seq")
            assert await one.search("secret") == []
            assert [hit["checkpoint_id"] for hit in await one.search("apple")] == ["b"]
            assert await one.purge_messages(timedelta(days=30)) == 0
            await one.save(state.with_message(Message.user("newer")), "t", "d")
            assert await one.load("t", "d") is not None

    @pytest.mark.parametrize("by", ["itself", "another process"])
    async def test_a_process_that_has_the_newest_checkpoint_cached_loads_what_a_purge_left(
        self, make_checkpointer: Callable[..., MySQLCheckpointer], by: str
    ) -> None:
        async with make_checkpointer(stamp_messages=True) as one, make_checkpointer(stamp_messages=True) as other:
            state = a_state().with_message(stamped("old secret", 31)).with_message(stamped("recent", 5))
            await one.save(state, "t", "newest")
            assert len(contents(await one.load("t", "newest"))) == 2
            assert await (one if by == "itself" else other).purge_messages(timedelta(days=30)) == 1
            for _ in range(2):
                assert contents(await one.load("t", "newest")) == ["recent"]

    async def test_messages_stamped_by_locus_own_wrapper_are_found(self, checkpointer: MySQLCheckpointer) -> None:
        then = datetime.now(UTC) - timedelta(days=40)
        wrapped = RetainedCheckpointer(checkpointer, clock=lambda: then)
        state = AgentState(run_id="r").with_message(Message.system("be kind")).with_message(Message.user("old"))
        await wrapped.save(state, "t")
        await checkpointer.save(a_state("no stamp"), "other")
        assert await checkpointer.purge_messages(timedelta(days=41)) == 0
        assert await checkpointer.purge_messages(timedelta(days=39)) == 1
        assert contents(await checkpointer.load("t")) == []
        assert contents(await checkpointer.load("other")) == ["no stamp"]

    def test_messages_stamped_by_others_are_found_without_a_loop_too(self, make_config: MakeConfig) -> None:
        with SyncMySQLCheckpointer(make_config(driver="pymysql")) as one:
            for stamp in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "yesterday", "2020-01-01T00:00:00"):
                message = Message.user("x").model_copy(update={"metadata": {MESSAGE_TIME_KEY: stamp}})
                one.save(a_state().with_message(message), stamp)
            assert one.purge_messages(timedelta(days=30)) == 2
            assert contents(one.load("0001-01-01T00:00:00+14:00")) == []
            assert contents(one.load("yesterday")) == ["x"]

    async def test_purging_one_thread_leaves_others_and_other_tenants_alone(
        self, make_checkpointer: Callable[..., MySQLCheckpointer]
    ) -> None:
        async with make_checkpointer(stamp_messages=True) as one:
            state = a_state().with_message(stamped("old", 31)).with_message(stamped("new", 1))
            for tenant in ("a", "b"):
                with one.tenant_scope(tenant):
                    for name in ("t", "u", "v"):
                        await one.save(state, name)
            with one.tenant_scope("a"):
                assert await one.purge_messages(timedelta(days=30), thread_id="t") == 1
                assert contents(await one.load("t")) == ["new"]
                assert contents(await one.load("u")) == ["old", "new"]
                assert await one.purge_messages(timedelta(days=30), batch=1) == 2
            with one.tenant_scope("b"):
                assert contents(await one.load("t")) == ["old", "new"]

    async def test_purging_a_thread_with_deleted_bases_and_iteration_saves_keeps_it_whole(
        self, make_checkpointer: Callable[..., MySQLCheckpointer], sql: RunSQL
    ) -> None:
        async with make_checkpointer(stamp_messages=True) as one:
            state = a_state().with_message(stamped("old", 31))
            for turn in range(1, 10):
                state = state.with_message(stamped(f"turn {turn} " + "x" * 800, 20 - turn))
                await one.save(state, "t", str(turn))
            pending = state.with_message(Message.user("pending")).with_metadata("_locus_iteration_checkpoints", ["p"])
            await one.save(pending, "t", "p")
            for turn in (1, 2, 4, 8):
                await one.delete("t", str(turn))
            assert await one.purge_messages(timedelta(days=30)) == 6
            for turn in (3, 5, 6, 7, 9):
                assert len(contents(await one.load("t", str(turn)))) == turn
            assert contents(await one.load("t"))[-1] == "pending"

    @pytest.mark.parametrize("bad", [timedelta(0), timedelta(days=-1)])
    async def test_an_age_that_is_none_is_refused(self, checkpointer: MySQLCheckpointer, bad: timedelta) -> None:
        with pytest.raises(InvalidInput, match="positive"):
            await checkpointer.purge_messages(bad)

    def test_contradicting_options_are_refused(self) -> None:
        with pytest.raises(ConfigError, match="positive"):
            MySQLCheckpointer(message_retention=timedelta(0))
        with pytest.raises(ConfigError, match="stamps"):
            MySQLCheckpointer(message_retention=timedelta(days=1), stamp_messages=False)


class TestKeepingTheNewest:
    async def test_iteration_saves_do_not_push_out_finished_turns(
        self, make_checkpointer: Callable[..., MySQLCheckpointer], sql: RunSQL
    ) -> None:
        async with make_checkpointer(keep_checkpoints=2) as one:
            agent = again(Agent(model=ScriptedModel([])), one)
            for _ in range(3):
                await again(agent, one).arun("add", thread_id="t")
            assert len(await one.list_checkpoints("t")) == 2
