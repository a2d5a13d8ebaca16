"""The checkpointer with real Locus agents and a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from locus.agent import Agent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory import registry
from locus.memory.checkpointer import BaseCheckpointer
from locus.memory.retention import MESSAGE_TIME_KEY, RetainedCheckpointer
from locus.testing import ScriptedModel, text, tool_call
from locus.tools import tool

from locus_mysql import (
    MySQLCheckpointer,
    MySQLConfig,
    SyncMySQLCheckpointer,
    mysql_checkpointer,
    register,
)
from locus_mysql.errors import ConfigError, InvalidInput, TenantUnknown, ThreadExists

from ...conftest import MakeConfig
from ...connecting import connect
from ...drivers_under_test import ASYNC_DRIVERS
from ...soundness import assert_sound

pytestmark = pytest.mark.kept_tables("agents")

RunSQL = Callable[..., Any]


@pytest.fixture
def make_checkpointer(make_config: MakeConfig) -> Callable[..., MySQLCheckpointer]:
    """Return ``make_checkpointer(driver=…, **options)``, with options of the checkpointer and of its configuration."""
    own = set(inspect.signature(MySQLCheckpointer).parameters)

    def make(**options: Any) -> MySQLCheckpointer:
        config = make_config(**{name: value for name, value in options.items() if name not in own})
        return MySQLCheckpointer(config, **{name: value for name, value in options.items() if name in own})

    return make


@pytest.fixture
async def checkpointer(make_checkpointer: Callable[..., MySQLCheckpointer]) -> AsyncIterator[MySQLCheckpointer]:
    async with make_checkpointer() as one:
        yield one


@pytest.fixture
def sql(server_dsn: str, database: str) -> Iterator[RunSQL]:
    """Yield a function that runs statements in the test's schema; check afterwards that its tables are sound."""
    connection = connect(MySQLConfig(dsn=server_dsn), database)

    def run(statement: str, *params: Any) -> tuple[Any, ...]:
        with connection.cursor() as cursor:
            cursor.execute(statement, params or None)
            return cursor.fetchall()

    yield run
    if run("SHOW TABLES LIKE 'locus\\_checkpoints'"):
        assert_sound(connection)
    connection.close()


def a_state(*contents: str, **fields: Any) -> AgentState:
    state = AgentState(run_id="run", **fields)
    for content in contents:
        state = state.with_message(Message.user(content))
    return state


def contents(state: AgentState | None) -> list[str | None]:
    assert state is not None
    return [message.content for message in state.messages if message.role.value != "system"]


class TestAgents:
    @pytest.mark.parametrize("driver", ASYNC_DRIVERS)
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

    def test_run_sync_twice_uses_two_event_loops(self, make_checkpointer: Callable[..., MySQLCheckpointer]) -> None:
        checkpointer = make_checkpointer()
        agent = Agent(model=ScriptedModel([text("one"), text("two")]), checkpointer=checkpointer)
        assert agent.run_sync("1", thread_id="t").text == "one"
        assert agent.run_sync("2", thread_id="t").text == "two"
        assert asyncio.run(read_and_close(checkpointer, "t")) == ["1", "one", "2", "two"]

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


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def again(agent: Agent, checkpointer: MySQLCheckpointer) -> Agent:
    """Return an agent that runs the same script from its beginning."""
    return Agent(
        model=ScriptedModel([tool_call("add", a=1, b=2), tool_call("add", a=3, b=4, call_id="second"), text("7")]),
        tools=[add],
        checkpointer=checkpointer,
        checkpoint_every_n_iterations=1,
    )


async def read_and_close(checkpointer: MySQLCheckpointer, thread_id: str) -> list[str | None]:
    try:
        return contents(await checkpointer.load(thread_id))
    finally:
        await checkpointer.close()


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

    async def test_ttl_is_honest(self, make_checkpointer: Callable[..., MySQLCheckpointer], sql: RunSQL) -> None:
        async with make_checkpointer(ttl_s=600) as checkpointer:
            await checkpointer.save(a_state("x"), "t")
            assert await checkpointer.load("t") is not None
            sql("UPDATE locus_threads SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND")
            assert await checkpointer.load("t") is None
            assert await checkpointer.vacuum() == 1

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

    async def test_the_agent_may_save_after_each_iteration(self, checkpointer: MySQLCheckpointer) -> None:
        assert checkpointer.deletes_single_checkpoints is True

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

    def test_the_synchronous_twin_has_the_same_methods(self) -> None:
        own = {name for name in vars(MySQLCheckpointer) if not name.startswith("_")}
        assert own == {name for name in vars(SyncMySQLCheckpointer) if not name.startswith("_")}
        for name in own - {"config", "capabilities"}:
            mine, theirs = getattr(MySQLCheckpointer, name), getattr(SyncMySQLCheckpointer, name)
            assert inspect.signature(mine).parameters == inspect.signature(theirs).parameters, name
            assert not inspect.iscoroutinefunction(theirs)

    def test_the_synchronous_twin_does_the_same_without_an_event_loop(self, make_config: MakeConfig) -> None:
        with SyncMySQLCheckpointer(make_config(driver="pymysql")) as checkpointer:
            state = a_state("an apple")
            first = checkpointer.save(state, "t", metadata={"a": 1})
            assert checkpointer.load("t") == state
            assert checkpointer.list_checkpoints("t") == [first]
            assert checkpointer.search("apple")[0]["checkpoint_id"] == first
            assert checkpointer.query_by_metadata("a", 1)[0]["checkpoint_id"] == first
            with checkpointer.tenant_scope("other"):
                assert checkpointer.load("t") is None
            assert checkpointer.copy_thread("t", "u")
            assert checkpointer.delete("t")
            assert checkpointer.health_check() is True
            assert all(dataclasses.asdict(checkpointer.capabilities).values())

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

    async def test_a_coroutine_of_one_s_own_may_block(self, make_config: MakeConfig) -> None:
        with SyncMySQLCheckpointer(make_config(driver="pymysql")) as checkpointer:
            checkpointer.save(a_state("x"), "t")
            assert contents(checkpointer.load("t")) == ["x"]

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

    async def test_threads_are_listed_page_by_page(self, checkpointer: MySQLCheckpointer) -> None:
        for name in "abcde":
            await checkpointer.save(a_state("x"), name)
        pages = [await checkpointer.list_threads(limit=2, offset=offset) for offset in (0, 2, 4, 6)]
        assert pages == [["e", "d"], ["c", "b"], ["a"], []]

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


class TestFactory:
    @pytest.fixture
    def place(self, server_dsn: str, database: str) -> dict[str, Any]:
        config = MySQLConfig(dsn=server_dsn)
        (endpoint,) = config.endpoints
        return {
            "host": endpoint.host,
            "port": endpoint.port,
            "user": config.user,
            "password": config.password.get_secret_value(),
            "database": database,
        }

    async def test_the_checkpointer_accepts_the_keywords_of_the_built_in_factory(self, place: dict[str, Any]) -> None:
        async with mysql_checkpointer(**place, max_pool_size=3, driver="pymysql", keep_checkpoints=1) as one:
            assert one.config.pool_size == 3
            await one.save(a_state("x"), "t")
            assert contents(await one.load("t")) == ["x"]

    async def test_the_checkpointer_accepts_a_dsn(self, place: dict[str, Any]) -> None:
        dsn = "mysql://{user}:{password}@{host}:{port}/{database}?driver=aiomysql".format(**place)
        async with mysql_checkpointer(dsn=dsn) as one:
            assert one.config.driver == "aiomysql"
            await one.save(a_state("x"), "t")
            assert await one.exists("t")

    @pytest.mark.parametrize(
        ("option", "advice"),
        [
            ("table_name", "table_prefix"),
            ("min_pool_size", "leave it out"),
            ("charset", "utf8mb4"),
            ("collation", "code point"),
            ("autocommit", "leave it out"),
            ("use_pure", "driver="),
        ],
    )
    def test_options_of_the_built_in_factory_that_make_no_sense_here_are_refused_with_advice(
        self, option: str, advice: str
    ) -> None:
        with pytest.raises(ConfigError, match=advice):
            mysql_checkpointer(host="h", **{option: "value"})

    def test_an_unknown_option_is_refused_without_repeating_values(self) -> None:
        with pytest.raises(ConfigError, match="no such option") as caught:
            mysql_checkpointer(host="h", pasword="hunter2")
        assert "hunter2" not in str(caught.value)

    async def test_locus_finds_it_by_name_once_registered(
        self, place: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(registry, "_CHECKPOINTERS", dict(registry._CHECKPOINTERS))
        register()
        database = place.pop("database")
        async with registry.get_checkpointer("mysql", **place, database=database) as one:  # type: ignore[attr-defined]
            assert isinstance(one, MySQLCheckpointer)
            await one.save(a_state("x"), "t")
        async with registry.get_checkpointer(f"mysql:{database}", **place) as other:  # type: ignore[attr-defined]
            assert other.config.database == database
            assert contents(await other.load("t")) == ["x"]
        assert isinstance(registry.get_checkpointer("mysql"), MySQLCheckpointer)


class TestTenants:
    async def test_fixed_tenants_share_nothing(self, make_checkpointer: Callable[..., MySQLCheckpointer]) -> None:
        async with make_checkpointer(tenant="a") as a, make_checkpointer(tenant="b") as b:
            await a.save(a_state("an apple"), "t", metadata={"k": 1})
            assert await b.load("t") is None
            assert await b.list_threads() == []
            assert await b.search("apple") == []
            assert await b.query_by_metadata("k", 1) == []
            assert not await b.delete("t")
            assert await b.forget_tenant() == 0
            assert await a.exists("t")

    async def test_tenant_of_places_each_thread(self, make_checkpointer: Callable[..., MySQLCheckpointer]) -> None:
        async with make_checkpointer(tenant_of=lambda thread_id: thread_id.split("/")[0]) as one:
            await one.save(a_state("x"), "acme/1")
            await one.save(a_state("y"), "umbrella/1")
            assert one.tenant_for("acme/1") == "acme"
            assert one.tenant_for() == "default"
            assert await one.list_threads() == []
            with one.tenant_scope("acme"):
                assert await one.list_threads() == ["acme/1"]
                assert await one.load("umbrella/1") is None
            with pytest.raises(InvalidInput, match="another tenant"):
                await one.copy_thread("acme/1", "umbrella/2")
            assert await one.copy_thread("acme/1", "acme/2")

    @pytest.mark.parametrize("tenant_of", [lambda _: "", lambda _: None, lambda thread_id: {}[thread_id]])
    async def test_an_id_that_names_no_tenant_fails_every_call(
        self, make_checkpointer: Callable[..., MySQLCheckpointer], tenant_of: Any, run_sql: RunSQL, database: str
    ) -> None:
        async with make_checkpointer(tenant_of=tenant_of) as one:
            for call in (
                one.save(a_state(), "t"),
                one.load("t"),
                one.exists("t"),
                one.delete("t"),
                one.list_checkpoints("t"),
                one.get_metadata("t"),
                one.history("t"),
                one.copy_thread("t", "u"),
                one.get_disk_usage("t"),
                one.purge_messages(timedelta(days=1), thread_id="t"),
            ):
                with pytest.raises(TenantUnknown, match="'t'"):
                    await call
            assert await one.health_check()
        assert run_sql(f"SELECT COUNT(*) FROM {database}.locus_checkpoints") == ((0,),)

    async def test_a_scope_wins_and_holds_in_its_own_tasks_only(
        self, make_checkpointer: Callable[..., MySQLCheckpointer]
    ) -> None:
        async with make_checkpointer(tenant_of=lambda _: "never") as one:
            started = [asyncio.Event() for _ in range(5)]

            async def work(number: int) -> list[str]:
                with one.tenant_scope(f"tenant-{number}"):
                    started[number].set()
                    await asyncio.gather(*(event.wait() for event in started))
                    await one.save(a_state(f"of {number}"), "same")
                    loaded = await asyncio.create_task(one.load("same"))
                    assert contents(loaded) == [f"of {number}"]
                    return await one.list_threads()

            assert await asyncio.gather(*(work(number) for number in range(5))) == [["same"]] * 5
            assert await one.load("same") is None
            with one.tenant_scope("tenant-3"):
                assert await one.forget_tenant() == 1
                assert await one.load("same") is None
            with one.tenant_scope("tenant-4"):
                assert contents(await one.load("same")) == ["of 4"]

    async def test_scopes_nest_and_end_also_after_an_error(
        self, make_checkpointer: Callable[..., MySQLCheckpointer]
    ) -> None:
        one = make_checkpointer(tenant="outer")
        with one.tenant_scope("a"):
            with one.tenant_scope("b"):
                assert one.tenant_for("t") == "b"
            assert one.tenant_for("t") == "a"
            with contextlib.suppress(RuntimeError), one.tenant_scope("b"):
                raise RuntimeError
            assert one.tenant_for("t") == "a"
        assert one.tenant_for("t") == "outer"
        with pytest.raises(InvalidInput), one.tenant_scope(""):
            pass

    async def test_agents_of_two_tenants_do_not_hear_each_other(self, checkpointer: MySQLCheckpointer) -> None:
        models = {}
        for tenant in ("acme", "umbrella"):
            with checkpointer.tenant_scope(tenant):
                for turn in ("first", "second"):
                    models[tenant] = ScriptedModel([text(f"{tenant} {turn}")])
                    agent = Agent(model=models[tenant], checkpointer=checkpointer)
                    await agent.arun(f"{turn} of {tenant}", thread_id="support")
        heard = [message.content for message in models["umbrella"].received_messages[0]]
        assert "first of umbrella" in heard
        assert not any("acme" in str(content) for content in heard)


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

    async def test_without_retention_messages_are_saved_as_they_are(self, checkpointer: MySQLCheckpointer) -> None:
        state = a_state("x")
        await checkpointer.save(state, "t")
        assert await checkpointer.load("t") == state

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
    async def test_only_the_newest_are_kept(self, make_checkpointer: Callable[..., MySQLCheckpointer]) -> None:
        async with make_checkpointer(keep_checkpoints=2) as one:
            for turn in range(6):
                await one.save(a_state(*["word"] * turn), "t", str(turn))
            assert await one.list_checkpoints("t") == ["5", "4"]

    async def test_iteration_saves_do_not_push_out_finished_turns(
        self, make_checkpointer: Callable[..., MySQLCheckpointer], sql: RunSQL
    ) -> None:
        async with make_checkpointer(keep_checkpoints=2) as one:
            agent = again(Agent(model=ScriptedModel([])), one)
            for _ in range(3):
                await again(agent, one).arun("add", thread_id="t")
            assert len(await one.list_checkpoints("t")) == 2


async def test_a_copy_onto_a_thread_with_checkpoints_is_refused(checkpointer: MySQLCheckpointer) -> None:
    await checkpointer.save(a_state("x"), "t")
    await checkpointer.save(a_state("y"), "u")
    with pytest.raises(ThreadExists):
        await checkpointer.copy_thread("t", "u")
    assert contents(await checkpointer.load("u")) == ["y"]


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


async def test_numbers_no_json_has_in_a_state_survive(checkpointer: MySQLCheckpointer) -> None:
    state = a_state("x").with_metadata("big", 10**99).with_metadata("text", "\ud800")
    await checkpointer.save(state, "t")
    loaded = await checkpointer.load("t")
    assert loaded is not None
    assert loaded.metadata["big"] == 10**99
    assert loaded.metadata["text"] == "\ud800"
