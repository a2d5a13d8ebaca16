"""The contract of the memory store, with real agents on scripted models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent, ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.memory import (
    Memory,
    MemoryConflictError,
    MemoryOperation,
    MemoryOperationConflictError,
    MemoryStore,
    MetadataMemoryStore,
    SearchableMemoryStore,
)

from locus_mysql import Database
from locus_mysql.errors import CorruptCheckpoint, InvalidInput
from locus_mysql.inspection import Inspector
from locus_mysql.integrations.pydantic_ai_harness import PydanticMemoryStore, file_operations

from ...conftest import MakeConfig
from ...proxy import WireProxy
from .conftest import MakeMemories

pytestmark = pytest.mark.kept_tables("transcripts")

RunSQL = Callable[..., Any]
PATH = "ada/main/MEMORY.md"


def returned(messages: list[ModelMessage]) -> list[str]:
    """Return the results of tools in a conversation."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def remembering(*calls: ToolCallPart) -> FunctionModel:
    """Return a model that makes tool calls one after the other, then repeats all that it was sent."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        done = len(returned(messages))
        return ModelResponse(parts=[calls[done] if done < len(calls) else TextPart(content=str(messages))])

    return FunctionModel(answer)


async def test_an_agent_remembers_what_it_wrote_in_another_process(make_memories: MakeMemories) -> None:
    write = ToolCallPart("write_memory", {"content": "- Ada drinks green tea."})
    search = ToolCallPart("search_memory", {"query": "TEA"})
    memory = Memory(make_memories(), namespace="ada", write_metadata={"by": "agent"})
    await Agent(remembering(write), capabilities=[memory]).run("I drink green tea.")
    other = make_memories()
    result = await Agent(remembering(search), capabilities=[Memory(other, namespace="ada")]).run("Which tea?")
    assert "- Ada drinks green tea." in str(result.output)
    assert "MEMORY.md" in returned(result.all_messages())[0]
    file = await other.read(PATH, max_chars=100)
    assert file is not None
    assert file.metadata == {"by": "agent"}
    stranger = await Agent(remembering(search), capabilities=[Memory(other, namespace="bob")]).run("Which tea?")
    assert "green" not in str(stranger.output)


async def test_it_is_a_store_of_each_kind(make_memories: MakeMemories) -> None:
    store = make_memories()
    assert isinstance(store, MemoryStore)
    assert isinstance(store, MetadataMemoryStore)
    assert isinstance(store, SearchableMemoryStore)


async def test_a_version_is_never_used_again(make_memories: MakeMemories) -> None:
    store = make_memories()
    seen = set[str | None]()
    version: str | None = None
    for number in range(4):
        version = (await store.write(PATH, "same", expected_version=version)).version
        assert version not in seen
        seen.add(version)
        if number % 2:
            await store.delete(PATH, expected_version=version)
            version = None
    for stale in seen:
        with pytest.raises(MemoryConflictError):
            await store.write(PATH, "stale", expected_version=stale)
    assert await store.read(PATH, max_chars=9) is None


async def test_of_two_writers_one_is_refused(make_memories: MakeMemories) -> None:
    stores = make_memories(), make_memories()
    version = (await stores[0].write(PATH, "", expected_version=None)).version
    for number in range(10):
        calls: list[Any] = [stores[0].write(PATH, f"{number}", expected_version=version)]
        calls.append(stores[1].write(PATH, f"{number}", expected_version=version))
        if number % 2:
            calls.append(make_memories().delete(PATH, expected_version=version))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        (done,) = [one for one in outcomes if not isinstance(one, MemoryConflictError)]
        version = done.version
        file = await stores[0].read(PATH, max_chars=9)
        assert (None if file is None else file.version) == version


async def test_an_operation_is_carried_out_once_by_many_processes(make_memories: MakeMemories) -> None:
    stores = [make_memories() for _ in range(3)]
    operation = MemoryOperation("run:1:call", "write")
    calls = [store.write(PATH, "once", expected_version=None, operation=operation) for store in stores]
    results = await asyncio.gather(*calls)
    assert sorted(one.replayed for one in results) == [False, True, True]
    assert len({one.version for one in results}) == 1
    await stores[0].write(PATH, "later", expected_version=results[0].version)
    # Even when the file has the expected version again, the operation is not repeated.
    deletion = MemoryOperation("run:2:call", "delete")
    missing = [await store.delete("no.md", expected_version=None, operation=deletion) for store in stores]
    assert [one.replayed for one in missing] == [False, True, True]
    created = await stores[0].write("no.md", "x", expected_version=None)
    await stores[0].delete("no.md", expected_version=created.version)
    assert (await stores[1].delete("no.md", expected_version=None, operation=deletion)).replayed
    with pytest.raises(MemoryOperationConflictError):
        await stores[1].write("no.md", "x", expected_version=None, operation=MemoryOperation("run:2:call", "write"))
    assert await stores[0].read("no.md", max_chars=9) is None


async def test_a_call_whose_answer_is_lost_is_carried_out_once(make_memories: MakeMemories, proxy: WireProxy) -> None:
    store = make_memories(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    first = await store.write(PATH, "one", expected_version=None)
    proxy.drop_after_send()
    second = await store.write(PATH, "two", expected_version=first.version, operation=MemoryOperation("1", "a"))
    assert not second.replayed
    file = await store.read(PATH, max_chars=9)
    assert file is not None
    assert (file.content, file.version) == ("two", second.version)
    proxy.drop_after_send()
    assert (await store.delete(PATH, expected_version=second.version, operation=MemoryOperation("2", "b"))).existed
    assert await store.read(PATH, max_chars=9) is None


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_each_call_is_one_round_trip(make_memories: MakeMemories) -> None:
    store = make_memories()
    await store.write("warm.md", "x", expected_version=None)

    async def trips(call: Any) -> int:
        before = store.database.stats().round_trips
        await call
        return store.database.stats().round_trips - before

    assert await trips(store.write(PATH, "x", expected_version=None, operation=MemoryOperation("1", "a"))) == 1
    file = await store.read(PATH, max_chars=9)
    assert file is not None
    assert await trips(store.read(PATH, max_chars=9)) == 1
    assert await trips(store.list_paths("ada/", limit=9)) == 1
    limits = {"limit": 9, "max_files": 9, "max_chars": 99, "max_file_chars": 99}
    assert await trips(store.search("ada/main/", "x", **limits)) == 1
    assert await trips(store.delete(PATH, expected_version=file.version, operation=MemoryOperation("2", "a"))) == 1
    assert await trips(store.get_operation(MemoryOperation("2", "a"))) == 1


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_a_search_reads_the_files_of_its_prefix_only(
    make_memories: MakeMemories, run_sql: RunSQL, database: str
) -> None:
    def rows_read() -> int:
        ((rows,),) = run_sql(
            "SELECT COUNT_READ FROM performance_schema.table_io_waits_summary_by_table"
            " WHERE OBJECT_SCHEMA = %s AND OBJECT_NAME = 'locus_transcripts'",
            database,
        )
        return int(rows)

    store = make_memories()
    for number in range(60):
        await store.write(f"user{number:02}/main/MEMORY.md", "tea", expected_version=None)
    before = rows_read()
    found = await store.search("user33/main/", "tea", limit=9, max_files=1_000, max_chars=99, max_file_chars=99)
    assert [one.path for one in found.matches] == ["user33/main/MEMORY.md"]
    assert await store.list_paths("user33/", limit=1_000) == ["user33/main/MEMORY.md"]
    assert rows_read() - before <= 6


async def test_hostile_texts_are_stored_exactly_or_refused(make_memories: MakeMemories) -> None:
    store = make_memories()
    texts = ["\0 '; DROP TABLE x; -- \\ % \u2028 \U0001f600 e\u0301 \ud800", "", "x" * 5_000_000]
    version = None
    for text in texts:
        version = (
            await store.write("a.md", text, expected_version=version, operation=MemoryOperation(text, ""))
        ).version
        file = await store.read("a.md", max_chars=9_000_000)
        assert file is not None
        assert (file.content, file.operation_id, file.truncated) == (text, text, False)
    for path in ("", "a//b", "/a", "a/../b", "a b", "./a", "a\0", "é", "x" * 201):
        with pytest.raises(ValueError, match="invalid memory path"):
            await store.write(path, "x", expected_version=None)
    with pytest.raises(InvalidInput):  # the framework's own stores have no limit on whole paths
        await store.write("/".join(["x" * 199] * 5), "x", expected_version=None)
    for stale in ("'", "\ud800", "x" * 900, ""):
        with pytest.raises(MemoryConflictError):
            await store.write("a.md", "x", expected_version=stale)
    assert await store.list_paths(limit=9) == ["a.md"]


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_old_receipts_are_removed(make_memories: MakeMemories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_operations, "one_in", lambda count: True)
    monkeypatch.setattr(file_operations, "RECEIPT_TRANSCRIPTS", 1)
    monkeypatch.setattr(file_operations, "RECEIPTS_KEPT", 3)
    store = make_memories()
    operations = [MemoryOperation(str(number), "delete") for number in range(8)]
    for operation in operations:
        await store.delete("a.md", expected_version=None, operation=operation)
    kept = [await store.get_operation(operation) is not None for operation in operations]
    assert kept == [False] * 5 + [True] * 3


async def test_a_database_and_tenants(make_config: MakeConfig, driver: str) -> None:
    async with Database(make_config(driver=driver)) as database:
        mine, other = (PydanticMemoryStore(database, tenant=tenant) for tenant in ("acme", "other"))
        operation = MemoryOperation("1", "a")
        await mine.write(PATH, "x", expected_version=None, operation=operation)
        assert await other.read(PATH, max_chars=9) is None
        assert await other.list_paths(limit=9) == []
        assert await other.get_operation(operation) is None


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_a_file_expires_and_its_receipt_stays(
    make_memories: MakeMemories, run_sql: RunSQL, database: str
) -> None:
    store, operation = make_memories(ttl_s=3_600), MemoryOperation("1", "a")
    await store.write(PATH, "x", expected_version=None, operation=operation)
    run_sql(f"UPDATE {database}.locus_transcripts SET expires_at = UTC_TIMESTAMP(6) WHERE expires_at IS NOT NULL")
    assert await store.read(PATH, max_chars=9) is None
    assert await store.list_paths(limit=9) == []
    assert await store.get_operation(operation) is not None
    assert not (await store.write(PATH, "y", expected_version=None)).existed


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_the_inspector_shows_files(make_memories: MakeMemories, make_config: MakeConfig) -> None:
    store = make_memories()
    await store.write(PATH, "- likes tea", expected_version=None, operation=MemoryOperation("run:1", "a"))
    async with Inspector(make_config()) as inspector:
        ids = [row.thread_id for row in (await inspector.threads("transcripts")).items]
        view = await inspector.state("transcripts", "pydantic-ai-memory//ada~1main~1MEMORY.md")
    assert sum("receipts" in one for one in ids) == 1
    assert "pydantic-ai-memory//ada~1main~1MEMORY.md" in ids
    assert view is not None
    assert "- likes tea" in str(view)


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_a_damaged_file_is_reported(make_memories: MakeMemories, run_sql: RunSQL, database: str) -> None:
    store = make_memories()
    await store.write(PATH, "x", expected_version=None)
    run_sql(f"UPDATE {database}.locus_transcripts SET state = CONCAT(state, 'x')")
    with pytest.raises(CorruptCheckpoint):
        await store.read(PATH, max_chars=9)
