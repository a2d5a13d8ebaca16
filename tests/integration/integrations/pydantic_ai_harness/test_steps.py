"""The contract of the step store, with real agents on scripted models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.step_persistence import (
    ContinuableSnapshot,
    RunRecord,
    StepEvent,
    StepPersistence,
    StepStore,
    ToolEffectRecord,
    continue_run,
)

from locus_mysql import Database
from locus_mysql.errors import CorruptCheckpoint, InvalidInput
from locus_mysql.inspection import Inspector
from locus_mysql.integrations.pydantic_ai_harness import PydanticStepStore

from ...conftest import MakeConfig
from ...proxy import WireProxy
from .conftest import MakeSteps

pytestmark = pytest.mark.kept_tables("transcripts")

RunSQL = Callable[..., Any]


def asked(text: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(content=text)])


def snapshot(messages: list[ModelMessage], number: int = 0, **fields: Any) -> ContinuableSnapshot:
    return ContinuableSnapshot(run_id="r", step_index=number, messages=messages, **fields)


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Look something up, then answer with the number of messages."""
    if len(messages) % 4 == 1:
        return ModelResponse(parts=[ToolCallPart("office", {"city": "Leiden"})])
    return ModelResponse(parts=[TextPart(content=f"{len(messages)} messages")])


async def test_an_agent_continues_a_run_in_another_process(make_steps: MakeSteps) -> None:
    def agent(store: PydanticStepStore) -> Agent[None, str]:
        made = Agent(FunctionModel(scripted), capabilities=[StepPersistence(store=store, agent_name="guide")])

        @made.tool_plain
        def office(city: str) -> str:
            return f"At the canal of {city}."

        return made

    assert isinstance(make_steps(), StepStore)
    first = await agent(make_steps()).run("Where?", conversation_id="c")
    other = make_steps()
    (run,) = await other.list_runs(conversation_id="c")
    messages = await continue_run(other, run_id=run.run_id)
    assert messages == first.all_messages()
    second = await agent(other).run("And its door?", message_history=messages, conversation_id="c")
    assert second.output == "7 messages"
    runs = await make_steps().list_runs(conversation_id="c")
    assert [one.agent_name for one in runs] == ["guide", "guide"]
    kinds = [event.kind for event in await other.list_events(run_id=runs[1].run_id)]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_completed")
    assert kinds.count("tool_call_completed") == 1
    assert await other.list_unresolved_tool_effects(run_id=runs[1].run_id) == []


class Killed(BaseException):
    """Ends a run like a signal."""


async def test_a_tool_call_that_was_killed_is_unresolved(make_steps: MakeSteps) -> None:
    store = make_steps()
    agent = Agent(FunctionModel(scripted), capabilities=[StepPersistence(store=store, run_id="r")])

    @agent.tool_plain
    def office(city: str) -> str:
        raise Killed

    with pytest.raises(Killed):
        await agent.run("Where?")
    (effect,) = await make_steps().list_unresolved_tool_effects(run_id="r")
    assert effect.tool_name == "office"
    with pytest.raises(ValueError, match="single-shot"):
        await agent.run("Where?")


async def test_a_run_is_registered_once(make_steps: MakeSteps) -> None:
    stores = make_steps(), make_steps()
    mine, other = (RunRecord(run_id="r", registration_id=one) for one in ("1", "2"))
    await stores[0].append_event(StepEvent(run_id="r", kind="run_started", step_index=0))
    assert await stores[0].get_run(run_id="r") is None
    assert await stores[0].list_runs() == []
    outcomes = await asyncio.gather(*(store.register_run(mine) for store in stores), return_exceptions=True)
    assert outcomes == [None, None]
    with pytest.raises(ValueError, match="already in the store"):
        await stores[1].register_run(other)
    assert await stores[1].get_run(run_id="r") == mine
    assert len(await stores[1].list_events(run_id="r")) == 1


async def test_a_call_whose_answer_is_lost_is_carried_out_once(make_steps: MakeSteps, proxy: WireProxy) -> None:
    store = make_steps(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", max_snapshots_per_run=2)
    await store.list_runs()
    record = RunRecord(run_id="r", parent_run_id="p")
    effect = ToolEffectRecord(run_id="r", tool_call_id="1", tool_name="mail", status="started")
    done = ToolEffectRecord(run_id="r", tool_call_id="1", tool_name="mail", status="completed")
    calls: list[tuple[Callable[[Any], Any], Any]] = [
        (store.register_run, record),
        (store.append_event, StepEvent(run_id="r", kind="run_started", step_index=0)),
        *((store.save_snapshot, snapshot([asked("a")] * number, number)) for number in range(4)),
        (store.record_tool_effect, effect),
        (store.record_tool_effect, done),
    ]
    for call, value in calls:
        proxy.drop_after_send()
        await call(value)
    assert await store.list_runs(parent_run_id="p") == [record]
    assert len(await store.list_events(run_id="r")) == 1
    assert [one.step_index for one in await store.list_snapshots(run_id="r")] == [2, 3]
    assert await store.get_tool_effect(run_id="r", tool_call_id="1") == done


async def test_writers_beside_each_other_lose_nothing(make_steps: MakeSteps) -> None:
    stores = [make_steps() for _ in range(3)]
    histories = [[asked("shared"), *(asked(f"{index} {number}") for number in range(4))] for index in range(3)]
    saves = [
        store.save_snapshot(snapshot(history[:length], length, idempotency_key=f"{index}-{length}"))
        for index, (store, history) in enumerate(zip(stores, histories, strict=True))
        for length in range(1, 6)
    ]
    await asyncio.gather(*saves)
    found = await stores[0].list_snapshots(run_id="r")
    assert sorted(str(one.idempotency_key) for one in found) == sorted(
        f"{index}-{length}" for index in range(3) for length in range(1, 6)
    )
    for one in found:
        index, _, length = str(one.idempotency_key).partition("-")
        assert one.messages == histories[int(index)][: int(length)]


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_a_snapshot_stores_new_messages_only_in_one_round_trip(
    make_steps: MakeSteps, run_sql: RunSQL, database: str
) -> None:
    store, messages = make_steps(), [asked("x" * 1_000_000)]
    await store.save_snapshot(snapshot(messages))
    for number in range(1, 20):
        messages.append(asked(f"{number}"))
        before = store.database.stats().round_trips
        await store.save_snapshot(snapshot(list(messages), number, state="interrupted"))
        assert store.database.stats().round_trips - before == 1
    ((stored,),) = run_sql(f"SELECT SUM(LENGTH(content)) FROM {database}.locus_transcript_items")
    assert stored < 1_010_000
    other = make_steps()
    await other.save_snapshot(snapshot(messages, 20))
    before = other.database.stats().round_trips
    latest = await other.latest_snapshot(run_id="r")
    assert other.database.stats().round_trips - before == 2
    assert latest is not None
    assert latest.messages == messages
    ((items,),) = run_sql(f"SELECT COUNT(*) FROM {database}.locus_transcript_items")
    assert items == 20 + 21


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_messages_of_removed_snapshots_are_removed(make_steps: MakeSteps, run_sql: RunSQL, database: str) -> None:
    store = make_steps(max_snapshots_per_run=1)
    history = [asked(f"{number}") for number in range(10)]
    await store.save_snapshot(snapshot(history))
    await store.save_snapshot(snapshot([asked("summary"), *history[8:]], 1, state="interrupted"))
    await store.save_snapshot(snapshot([asked("summary"), *history[8:], asked("more")], 2))
    ((items,),) = run_sql(f"SELECT COUNT(*) FROM {database}.locus_transcript_items")
    assert items == 4 + 1
    (kept,) = await store.list_snapshots(run_id="r")
    assert (kept.step_index, len(kept.messages)) == (2, 4)


async def test_a_limit_that_is_none_is_refused(make_config: MakeConfig, driver: str) -> None:
    for limit in (0, -1, 1.5, "2"):
        with pytest.raises(ValueError, match="max_snapshots_per_run"):
            PydanticStepStore(make_config(driver=driver), max_snapshots_per_run=limit)  # type: ignore[arg-type]


async def test_hostile_texts_are_stored_exactly_or_refused(make_steps: MakeSteps) -> None:
    store = make_steps()
    odd = ["a", "A", "a ", "é", "e\u0301", "a/b~c", "%", "'; DROP TABLE x; --", "\U0001f600", "x" * 800]
    when = datetime(2026, 1, 1, 1, 2, 3, 456789, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    for one in odd:
        await store.register_run(RunRecord(run_id=one, conversation_id=one, metadata={one: "\0"}, started_at=when))
        await store.append_event(StepEvent(run_id=one, kind="run_failed", step_index=2**62, error=one + "\0"))
    for one in odd:
        (run,) = await store.list_runs(conversation_id=one)
        assert (run.run_id, run.metadata, run.started_at) == (one, {one: "\0"}, when)
        (event,) = await store.list_events(run_id=one)
        assert (event.error, event.step_index) == (one + "\0", 2**62)
    for bad in ("", "x" * 801, "\0", "\ud800"):
        with pytest.raises(InvalidInput):
            await store.register_run(RunRecord(run_id=bad))
    numbers = [f"{'9' * digits}:x" for digits in (1, 30, 400)]
    for number, key in enumerate(numbers):
        await store.save_snapshot(snapshot([], number, idempotency_key=key))
    assert [one.idempotency_key for one in await make_steps().list_snapshots(run_id="r")] == numbers
    for message in (asked("half \ud800"), ModelRequest(parts=[], metadata={"x": object()})):
        with pytest.raises(InvalidInput):
            await store.save_snapshot(snapshot([message], 9))
    assert len(await store.list_snapshots(run_id="r")) == len(numbers)


async def test_large_messages_are_returned_equal(make_steps: MakeSteps) -> None:
    report = BinaryContent(bytes(range(256)) * 8_000, media_type="application/pdf")
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(content=["Look: \0 \u2028 \U0001f600", report])]),
        ModelResponse(parts=[TextPart(content="word " * 500_000), ToolCallPart("f", '{"n": 1e400}', "id")]),
    ]
    await make_steps().save_snapshot(snapshot(messages))
    latest = await make_steps().latest_snapshot(run_id="r")
    assert latest is not None
    assert latest.messages == messages


async def test_a_database_and_tenants(make_config: MakeConfig, driver: str) -> None:
    async with Database(make_config(driver=driver)) as database:
        mine, other = (PydanticStepStore(database, tenant=tenant) for tenant in ("acme", "other"))
        await mine.register_run(RunRecord(run_id="r", parent_run_id="p"))
        await mine.save_snapshot(snapshot([asked("x")]))
        assert await other.list_runs() == []
        assert await other.list_runs(parent_run_id="p") == []
        assert await other.latest_snapshot(run_id="r") is None


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_a_run_that_was_deleted_can_be_stored_again(
    make_steps: MakeSteps, run_sql: RunSQL, database: str
) -> None:
    store = make_steps(ttl_s=3_600)
    first = snapshot([asked("x")], idempotency_key="5:0:complete")
    await store.save_snapshot(first)
    await store.save_snapshot(first)
    run_sql(f"UPDATE {database}.locus_transcripts SET expires_at = UTC_TIMESTAMP(6)")
    assert await store.latest_snapshot(run_id="r") is None
    await store.save_snapshot(first)
    assert await store.latest_snapshot(run_id="r") == first
    run_sql(f"UPDATE {database}.locus_transcripts SET expires_at = UTC_TIMESTAMP(6) WHERE part = 'messages'")
    with pytest.raises(CorruptCheckpoint, match="missing"):
        await store.latest_snapshot(run_id="r")
    longer = snapshot([asked("x"), asked("y")], 1)
    longer.messages[:1] = first.messages
    await store.save_snapshot(longer)
    assert await store.latest_snapshot(run_id="r") == longer


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_the_inspector_shows_a_run(make_steps: MakeSteps, make_config: MakeConfig) -> None:
    store = make_steps()
    await store.register_run(RunRecord(run_id="r", agent_name="guide", started_at=datetime(2026, 1, 1, tzinfo=UTC)))
    await store.append_event(StepEvent(run_id="r", kind="run_started", step_index=0))
    await store.save_snapshot(snapshot([asked("Where is the office?")]))
    async with Inspector(make_config()) as inspector:
        ids = {row.thread_id for row in (await inspector.threads("transcripts")).items}
        run = await inspector.state("transcripts", "pydantic-ai-steps//r")
        messages = await inspector.state("transcripts", "pydantic-ai-steps//r/messages")
    assert ids == {f"pydantic-ai-steps//r{part}" for part in ("", "/messages", "/snapshots")}
    assert "guide" in str(run)
    assert "run_started" in str(run)
    assert messages is not None
    assert [(one.role, one.text) for one in messages.messages] == [("user", "Where is the office?")]
