"""Inspection of long-term memories and working sessions. It renews, sweeps and writes no rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from math import log
from typing import Any

import pytest

from locus_mysql import MemoryStore
from locus_mysql.config import MySQLConfig
from locus_mysql.errors import InvalidInput
from locus_mysql.inspection.inspector import Inspector
from locus_mysql.working import TaskState, WorkingMemory

RunSql = Callable[..., tuple[Any, ...]]

TABLES = ("memory_items", "memory_scopes", "memory_ledger")

MEANINGS = {"tea": [1.0, 0.0], "coffee": [0.8, 0.6], "trains": [0.0, 1.0]}


def embed(texts: list[str]) -> list[list[float]]:
    """Return embeddings that distinguish a few words."""
    return [next((meaning for word, meaning in MEANINGS.items() if word in text), [0.1, 0.1]) for text in texts]


@pytest.fixture
async def inspector(config: MySQLConfig) -> AsyncIterator[Inspector]:
    async with Inspector(config, embed=embed, dims=2) as inspector:
        yield inspector


@pytest.fixture
async def store(config: MySQLConfig) -> AsyncIterator[MemoryStore]:
    async with MemoryStore(config, embed=embed, dims=2) as store:
        yield store


def contents(run_sql: RunSql, config: MySQLConfig, *tables: str) -> list[tuple[Any, ...]]:
    return [run_sql(f"SELECT * FROM {config.database}.locus_{table}") for table in tables]


@pytest.mark.kept_tables("memories")
async def test_namespaces_and_items_are_browsed_by_pages(store: MemoryStore, inspector: Inspector) -> None:
    for user in ("ada", "bob", "grace"):
        for number in range(3):
            await store.put(("users", user), f"k{number}", {"n": number, "text": "long " * 100})
    await store.put(("other",), "k", None, metadata={"a": 1})
    first = await inspector.namespaces(limit=3)
    rest = await inspector.namespaces(limit=3, cursor=first.cursor)
    assert [(row.namespace, row.items) for row in (*first.items, *rest.items)] == [
        (("other",), 1),
        (("users", "ada"), 3),
        (("users", "bob"), 3),
        (("users", "grace"), 3),
    ]
    assert [row.namespace for row in (await inspector.namespaces(("users", "bob"))).items] == [("users", "bob")]
    page = await inspector.items(("users", "ada"), limit=2)
    more = await inspector.items(("users", "ada"), limit=2, cursor=page.cursor)
    assert [row.key for row in (*page.items, *more.items)] == ["k0", "k1", "k2"]
    assert page.items[0].preview.startswith('{"n":0,"text":"long long')
    assert len(page.items[0].preview) < page.items[0].size_bytes
    view = await inspector.item(("other",), "k")
    assert view is not None
    assert (view.value, view.metadata, view.embeddings, view.dims) == (None, {"a": 1}, 0, None)
    assert await inspector.item(("other",), "none") is None
    with pytest.raises(InvalidInput, match="cursor"):
        await inspector.items(("users", "ada"), cursor="nonsense")


@pytest.mark.kept_tables
async def test_items_are_found_by_word_and_by_meaning(
    store: MemoryStore, inspector: Inspector, config: MySQLConfig, run_sql: RunSql
) -> None:
    await store.put(("users", "ada"), "drink", "She likes green tea.")
    await store.put(("users", "bob"), "drink", "He likes coffee.")
    await store.put(("notes",), "n", "All trains are late.")
    async with MemoryStore(config.model_copy(update={"tenant": "other"})) as other:
        await other.put(("users", "eve"), "drink", "coffee")
    before = contents(run_sql, config, *TABLES)
    by_meaning = await inspector.search_memories("tea", limit=2)
    assert [hit.item.namespace for hit in by_meaning] == [("users", "ada"), ("users", "bob")]
    assert by_meaning[0].score == pytest.approx(1.0)
    for indexed in (False, True):
        if indexed:
            assert await store.search(query="coffee", way="word")
        (by_word,) = await inspector.search_memories("coffee", ("users",), way="word")
        assert (by_word.item.namespace, by_word.item.preview) == (("users", "bob"), '"He likes coffee."')
        hits = await inspector.search_memories("coffee likes", way="word")
        assert [(hit.item.namespace[-1], hit.score) for hit in hits] == [
            ("bob", 1.0),
            ("ada", log(2) / (log(2) + log(3))),
        ]
        assert await inspector.search_memories("coffee", ("notes",), way="word") == []
        assert await inspector.search_memories("%", way="word") == []
        if not indexed:
            assert contents(run_sql, config, *TABLES) == before
    async with Inspector(config) as plain:
        assert [hit.item.key for hit in await plain.search_memories("trains")] == ["n"]
        with pytest.raises(InvalidInput, match="needs an embedding"):
            await plain.search_memories("trains", way="meaning")


@pytest.mark.kept_tables("memories")
async def test_a_look_at_an_item_does_not_refresh_it(
    store: MemoryStore, inspector: Inspector, config: MySQLConfig, run_sql: RunSql
) -> None:
    await store.put(("a",), "k", {"v": 1}, ttl_s=3_600)
    before = contents(run_sql, config, *TABLES)
    view = await inspector.item(("a",), "k")
    assert view is not None
    assert view.item.expires_at is not None
    await inspector.items(("a",))
    await inspector.namespaces()
    assert contents(run_sql, config, *TABLES) == before


@pytest.mark.kept_tables("memories")
async def test_a_damaged_item_breaks_no_list(
    store: MemoryStore, inspector: Inspector, config: MySQLConfig, run_sql: RunSql
) -> None:
    await store.put(("a",), "k", {"v": 1})
    await store.put(("a",), "l", {"v": 1})
    run_sql(
        f"UPDATE {config.database}.locus_memory_items SET value = '{{', metadata = '[', item_key = 0xFF "
        "WHERE item_key = 'k'"
    )
    page = await inspector.items(("a",))
    assert [row.key for row in page.items] == ["l", "\ufffd"]
    run_sql(f"UPDATE {config.database}.locus_memory_items SET item_key = 'm' WHERE item_key = 0xFF")
    view = await inspector.item(("a",), "m")
    assert view is not None
    assert view.value == "<damaged JSON, 1 byte>"
    assert "damaged" in view.metadata


@pytest.mark.kept_tables("working")
async def test_a_session_is_shown_whole(config: MySQLConfig, inspector: Inspector) -> None:
    async with WorkingMemory("s/1", config) as memory:
        await memory.set("city", "Bonn")
        await memory.set("gone", 1)
        await memory.delete("gone")
        await memory.append_scratchpad("one")
        await memory.append_scratchpad("two")
        await memory.set_task_state(TaskState(task_id="book", total_steps=3).start())
        await memory.create_checkpoint("before")
        view = await inspector.session("s/1")
        stats = await memory.stats()
    assert view is not None
    assert (view.variables, view.scratchpad) == ({"city": "Bonn"}, ["one", "two"])
    assert view.task_state is not None
    assert view.task_state["task_id"] == "book"
    assert [checkpoint["label"] for checkpoint in view.checkpoints] == ["before"]
    assert (view.session.variables, view.session.size_bytes) == (stats.keys, stats.size_bytes)
    assert await inspector.session("none") is None


@pytest.mark.kept_tables("working")
async def test_a_look_at_a_session_neither_renews_nor_uses_nor_sweeps_it(
    config: MySQLConfig, inspector: Inspector, run_sql: RunSql
) -> None:
    tables = ("working_sessions", "working_entries", "working_checkpoints", "working_history", "working_ledger")
    async with WorkingMemory("s", config, session_ttl_s=3_600) as memory:
        await memory.set("a", 1)
        await memory.set("b", 2, ttl_s=1_000)
    async with WorkingMemory("over", config, session_ttl_s=3_600) as memory:
        await memory.set("a", 1)
    run_sql(
        f"UPDATE {config.database}.locus_working_sessions SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND "
        "WHERE session_id = 'over'"
    )
    run_sql(
        f"UPDATE {config.database}.locus_working_entries SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND "
        "WHERE name = 'b'"
    )
    before = contents(run_sql, config, *tables)
    for _ in range(3):
        assert [row.session_id for row in (await inspector.sessions()).items] == ["s"]
        view = await inspector.session("s")
        assert view is not None
        assert (view.variables, view.session.expires_at is not None) == ({"a": 1}, True)
        assert await inspector.session("over") is None
    assert contents(run_sql, config, *tables) == before


@pytest.mark.kept_tables("working")
async def test_sessions_are_browsed_by_pages(config: MySQLConfig, inspector: Inspector, run_sql: RunSql) -> None:
    for name in ("a", "b/%_", "c"):
        async with WorkingMemory(name, config) as memory:
            await memory.set("v", name)
    first = await inspector.sessions(limit=2)
    rest = await inspector.sessions(limit=2, cursor=first.cursor)
    assert [row.session_id for row in (*first.items, *rest.items)] == ["a", "b/%_", "c"]
    assert [row.session_id for row in (await inspector.sessions(pattern="*%_")).items] == ["b/%_"]
    run_sql(f"UPDATE {config.database}.locus_working_sessions SET stamp = 18446744073709551615 WHERE session_id = 'c'")
    run_sql(f"UPDATE {config.database}.locus_working_entries SET value = '{{'")
    assert len((await inspector.sessions()).items) == 3
    view = await inspector.session("a")
    assert view is not None
    assert view.variables == {"v": "<damaged: its checksum is wrong>"}
