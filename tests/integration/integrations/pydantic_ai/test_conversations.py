"""The contract of the conversation store, with real agents on scripted models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    Conversation,
    DeferredToolRequests,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolApproved,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from locus_mysql.errors import CorruptCheckpoint, InvalidInput
from locus_mysql.inspection import Inspector

from ...conftest import MakeConfig
from .conftest import Make

pytestmark = pytest.mark.kept_tables("transcripts")

RunSQL = Callable[..., Any]


def asked(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content=text)])


def entry(number: int, text: str = "text") -> ConversationEntry:
    return ConversationEntry(id=f"e{number}", parent_id=f"e{number - 1}" if number else None, message=asked(text))


def record(head: int | None, conversation_id: str = "c", **fields: Any) -> ConversationRecord:
    return ConversationRecord(conversation_id=conversation_id, head_id=None if head is None else f"e{head}", **fields)


async def test_an_agent_continues_a_conversation_in_another_process(make_store: Make) -> None:
    agent = Agent(TestModel())
    first = await agent.run("Where is the office?", conversation=Conversation(conversation_id="c"))
    assert len(await make_store().save(first, scope="ada")) == 2
    other = make_store()
    loaded = await other.load("c", scope="ada")
    assert loaded == first.conversation
    second = await agent.run("And its door?", conversation=loaded)
    assert len(await other.save(second)) == 2
    final = await make_store().load("c")
    assert final is not None
    assert final.messages == second.all_messages()
    assert final.usage.requests == 2
    assert await make_store().load("c", scope="bob") is None
    assert await make_store(tenant="acme").load("c") is None


async def test_a_run_that_waits_for_approval_is_continued(make_store: Make) -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("delete_file", {"path": "notes.txt"}, "call-1")])
        return ModelResponse(parts=[TextPart(content="Done.")])

    agent = Agent(FunctionModel(answer), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def delete_file(path: str) -> str:
        return f"deleted {path}"

    store = make_store()
    paused = await agent.run("Delete it", conversation=Conversation(conversation_id="c"))
    await store.save(paused)
    loaded = await make_store().load("c")
    assert loaded is not None
    assert loaded.deferred_tool_requests is not None
    (call,) = loaded.deferred_tool_requests.approvals
    results = loaded.deferred_tool_requests.build_results(approvals={call.tool_call_id: ToolApproved()})
    done = await agent.run(conversation=loaded, deferred_tool_results=results)
    assert done.output == "Done."
    await store.save(done)
    again = await store.load("c")
    assert again is not None
    assert again.deferred_tool_requests is None
    assert again.messages == done.all_messages()


async def test_a_deletion_leaves_what_forks_use_and_nothing_else(
    make_store: Make, run_sql: RunSQL, database: str
) -> None:
    def items() -> int:
        ((count,),) = run_sql(f"SELECT COUNT(*) FROM {database}.locus_transcript_items")
        return int(count)

    store = make_store()
    messages: list[ModelMessage] = [asked(str(index)) for index in range(6)]
    await store.save(Conversation(conversation_id="a", messages=messages))
    fork = await store.fork("a", at=2, new_conversation_id="b")
    fork.messages.append(asked("fork"))
    await store.save(fork)
    deep = await store.fork("b", new_conversation_id="c")
    assert items() == 7
    await store.delete("a")
    assert items() == 3
    await store.save(Conversation(conversation_id="a", messages=messages[:1]))
    await store.delete("b")
    assert await store.load("c") == deep
    assert items() == 4
    await store.delete("c")
    assert items() == 1
    await store.delete("a")
    ((left,),) = run_sql(f"SELECT COUNT(*) FROM {database}.locus_transcripts")
    assert (items(), left) == (0, 0)


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_the_last_entries_are_read_alone(make_store: Make, run_sql: RunSQL, database: str) -> None:
    def rows_read() -> int:
        ((rows,),) = run_sql(
            "SELECT COUNT_READ FROM performance_schema.table_io_waits_summary_by_table"
            " WHERE OBJECT_SCHEMA = %s AND OBJECT_NAME = 'locus_transcript_items'",
            database,
        )
        return int(rows)

    store = make_store()
    messages: list[ModelMessage] = [asked(str(index)) for index in range(2_000)]
    await store.save(Conversation(conversation_id="c", messages=messages))
    for process in (store, make_store()):
        await process.load("warm")
        before, trips = rows_read(), process.database.stats().round_trips
        loaded = await process.load("c", limit=20)
        assert loaded is not None
        assert loaded.messages == messages[-20:]
        assert rows_read() - before <= 25
        assert process.database.stats().round_trips - trips == 2
    before = store.database.stats().round_trips
    assert len(await store.load_entries("c") or ()) == 2_000
    assert store.database.stats().round_trips - before == 2


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_a_save_stores_only_what_is_new(make_store: Make) -> None:
    store = make_store()
    await store.save(Conversation(conversation_id="c", messages=[asked("x" * 1_000_000)]))
    loaded = await store.load("c", limit=1)
    assert loaded is not None
    loaded.messages.append(asked("new"))
    before = store.database.stats()
    await store.save(loaded)
    after = store.database.stats()
    assert after.round_trips - before.round_trips == 2


async def test_what_cannot_be_stored_exactly_changes_nothing(make_store: Make) -> None:
    store = make_store()
    await store.save(Conversation(conversation_id="c", messages=[asked("first")]))
    before = await store.load("c")
    for message in (asked("half \ud800"), ModelRequest(parts=[], metadata={"x": object()})):
        loaded = await store.load("c")
        assert loaded is not None
        loaded.messages.append(message)
        with pytest.raises(InvalidInput):
            await store.save(loaded)
        assert await store.load("c") == before


async def test_a_head_that_is_not_stored_is_refused(make_store: Make) -> None:
    store = make_store()
    for head, entries in ((5, []), (5, [entry(5)])):
        with pytest.raises(ConversationConflict):
            await store.write_record(record(head), new_entries=entries, expected_revision=None)
    await store.write_record(record(0), new_entries=[entry(0)], expected_revision=None)
    other = record(None, "other")
    await store.write_record(other, expected_revision=None)
    with pytest.raises(InvalidInput, match="Fork that conversation"):
        await store.write_record(record(0, "other"), expected_revision=other.revision)
    with pytest.raises(ConversationConflict):
        await store.write_record(record(7, "other"), expected_revision=other.revision)
    with pytest.raises(InvalidInput, match="before itself"):
        await store.write_record(
            record(1, "round"),
            new_entries=[ConversationEntry(id="e1", parent_id="e1", message=asked("x"))],
            expected_revision=None,
        )
    assert await store.read_record("other") == other
    assert await store.read_record("round") is None


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_the_inspector_shows_a_conversation(make_store: Make, make_config: MakeConfig) -> None:
    agent = Agent(FunctionModel(_look_up))

    @agent.tool_plain
    def office(city: str) -> str:
        return f"At the canal of {city}."

    await make_store().save(await agent.run("Where?", conversation=Conversation(conversation_id="c")), scope="ada")
    async with Inspector(make_config()) as inspector:
        (row,) = (await inspector.threads("transcripts")).items
        assert row.thread_id == "pydantic-ai//c/entries"
        view = await inspector.state("transcripts", "pydantic-ai//c/entries")
    assert view is not None
    assert [(one.role, one.text) for one in view.messages if one.text] == [("user", "Where?"), ("assistant", "There.")]
    (call,) = [call for one in view.messages for call in one.tool_calls]
    assert (call.name, call.arguments, call.result) == ("office", {"city": "Leiden"}, "At the canal of Leiden.")


def _look_up(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("office", {"city": "Leiden"}, "call-1")])
    return ModelResponse(parts=[TextPart(content="There.")])


async def test_a_fork_that_expires_does_not_take_the_entries_of_its_source_with_it(
    make_store: Make, run_sql: RunSQL, database: str
) -> None:
    store, brief = make_store(), make_store(ttl_s=3_600)
    await store.save(Conversation(conversation_id="c", messages=[asked("x")]))
    fork = await brief.fork("c", new_conversation_id="fork")
    fork.messages.append(asked("y"))
    await brief.save(fork)
    run_sql(f"UPDATE {database}.locus_transcripts SET expires_at = UTC_TIMESTAMP(6) WHERE expires_at IS NOT NULL")
    assert await store.load("fork") is None
    loaded = await store.load("c")
    assert loaded is not None
    assert len(loaded.messages) == 1


async def test_entries_that_follow_each_other_are_no_endless_history(make_store: Make) -> None:
    store = make_store()
    around = [ConversationEntry(id=one, parent_id=other, message=asked(one)) for one, other in (("a", "b"), ("b", "a"))]
    first = record(0)
    await store.write_record(first, new_entries=[entry(0), *around], expected_revision=None)
    second = ConversationRecord(conversation_id="c", head_id="a")
    async with asyncio.timeout(20):
        try:
            await store.write_record(second, expected_revision=first.revision)
        except InvalidInput:
            return
        with pytest.raises(CorruptCheckpoint):
            await store.read_history("a")
