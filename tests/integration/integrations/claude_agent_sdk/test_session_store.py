"""The contract of the SDK's session store: the SDK's own suite on every driver, and what it does not cover."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from claude_agent_sdk import (
    InMemorySessionStore,
    delete_session_via_store,
    fork_session_via_store,
    get_session_messages_from_store,
    get_subagent_messages_from_store,
    list_sessions_from_store,
    project_key_for_directory,
    rename_session_via_store,
    tag_session_via_store,
)
from claude_agent_sdk.testing import run_session_store_conformance

from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore

from ..conftest import Opened

pytestmark = pytest.mark.kept_tables("transcripts")

Make = Callable[..., ClaudeSessionStore]

KEY: Any = {"project_key": "project", "session_id": "session"}


@pytest.fixture
def make_store(opened: Opened, driver: str) -> Make:
    """Return ``make_store(**options)``."""
    return partial(opened, ClaudeSessionStore, driver=driver)


def said(role: str, text: str, parent: str | None = None, **fields: Any) -> Any:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "type": role,
        "message": {"role": role, "content": text},
        "uuid": str(uuid.uuid4()),
        "timestamp": "2026-11-23T09:00:00.000Z",
        **fields,
    }


async def test_the_sdks_conformance_suite_passes(make_store: Make) -> None:
    tenants = iter(range(1_000))
    await run_session_store_conformance(lambda: make_store(tenant=f"contract {next(tenants)}"))


async def test_entries_with_a_uuid_are_stored_once(make_store: Make) -> None:
    store, other = make_store(), make_store()
    first, second = said("user", "one"), said("assistant", "two")
    title: Any = {"type": "custom-title", "customTitle": "Title"}
    await store.append(KEY, [first, title])
    await other.append(KEY, [first, second])
    await store.append(KEY, [first, second, title])
    await store.append(KEY, [second])
    assert await store.load(KEY) == [first, title, second, title]
    odd: Any = [{"type": "x", "uuid": value} for value in ("", "\0", "y" * 300, "\ud800", 7, None)]
    await store.append(KEY, odd)
    await store.append(KEY, odd)
    stored = await store.load(KEY)
    assert stored is not None
    assert stored[4:] == [*odd, *odd[4:]]


async def test_the_summary_is_that_of_the_store_in_memory(make_store: Make) -> None:
    store, other, reference = make_store(), make_store(), InMemorySessionStore()
    batches = [
        [said("user", "Where is the office?", cwd="/home/ada", gitBranch="main")],
        [said("assistant", "At the canal."), {"type": "custom-title", "customTitle": "Office"}],
        [{"type": "tag", "tag": "work"}, {"type": "custom-title", "customTitle": "The office"}],
    ]
    for number, batch in enumerate(batches):
        await (store, other)[number % 2].append(KEY, batch)
        await reference.append(KEY, batch)
    await store.append(KEY, batches[0])  # already stored, so the summary does not change
    (mine,) = await store.list_session_summaries("project")
    (theirs,) = await reference.list_session_summaries("project")
    assert mine["data"] == theirs["data"]
    assert [{"session_id": "session", "mtime": mine["mtime"]}] == await store.list_sessions("project")


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_a_session_of_10_000_entries_is_loaded_in_one_round_trip(make_store: Make) -> None:
    store = make_store()
    entries = [said("user", f"entry {number}") for number in range(10_000)]
    await store.append(KEY, entries)
    before = store.database.stats().round_trips
    assert await store.load(KEY) == entries
    assert store.database.stats().round_trips - before == 1


async def test_the_sdks_functions_work_on_the_store(make_store: Make) -> None:
    store = make_store()
    directory, session = "/home/ada/project", str(uuid.uuid4())
    key: Any = {"project_key": project_key_for_directory(directory), "session_id": session}
    question = said("user", "Where is the office?", sessionId=session)
    answer = said("assistant", "At the canal.", question["uuid"], sessionId=session)
    await store.append(key, [question, answer])
    await rename_session_via_store(store, session, "The office", directory=directory)
    await tag_session_via_store(store, session, "work", directory=directory)
    (listed,) = await list_sessions_from_store(store, directory=directory)
    assert (listed.session_id, listed.summary, listed.tag) == (session, "The office", "work")
    messages = await get_session_messages_from_store(store, session, directory=directory)
    assert [one.message["content"] for one in messages] == ["Where is the office?", "At the canal."]
    agent = {**key, "subpath": "subagents/agent-7"}
    await store.append(agent, [said("user", "Look it up", isSidechain=True, agentId="7", sessionId=session)])
    assert len(await get_subagent_messages_from_store(store, session, "7", directory=directory)) == 1
    fork = await fork_session_via_store(store, session, directory=directory)
    assert len(await get_session_messages_from_store(store, fork.session_id, directory=directory)) == 2
    await delete_session_via_store(store, session, directory=directory)
    assert [one.session_id for one in await list_sessions_from_store(store, directory=directory)] == [fork.session_id]
    assert await store.load(agent) is None


async def test_a_subpath_of_none_is_the_main_transcript(make_store: Make) -> None:
    store = make_store()
    main: Any = {**KEY, "subpath": None}
    await store.append(main, [said("user", "Where is the office?")])
    await store.append({**KEY, "subpath": "subagents/a"}, [said("user", "x")])
    (summary,) = await store.list_session_summaries("project")
    assert summary["data"]["first_prompt"] == "Where is the office?"
    await store.delete(main)
    assert await store.list_subkeys(KEY) == []


@pytest.mark.parametrize("driver", ["aiomysql"])
async def test_an_append_after_another_process_takes_four_round_trips(make_store: Make) -> None:
    store, other = make_store(), make_store()
    await store.append(KEY, [said("user", "one")])
    await other.append(KEY, [said("user", "two")])
    before = store.database.stats().round_trips
    await store.append(KEY, [said("user", "three")])
    assert store.database.stats().round_trips - before == 4
    new = make_store()
    await new.append(KEY, [said("user", "four")])
    assert await new.load(KEY) == await store.load(KEY)
