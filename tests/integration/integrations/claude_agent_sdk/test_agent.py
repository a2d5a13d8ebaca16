"""Agents of the SDK: its own CLI with a scripted model and our session store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import get_session_messages_from_store, list_sessions_from_store, project_key_for_directory

from examples.claude.agent_worker import turn, without_own_settings
from examples.claude.scripted_model import ScriptedModel
from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore

from ...conftest import MakeConfig

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("transcripts")]


@pytest.fixture(autouse=True)
def no_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the settings and the account of a CLI that the user may have installed."""
    for name in os.environ.keys() - without_own_settings(os.environ).keys():
        monkeypatch.delenv(name)


async def test_a_session_is_resumed_from_the_store_by_a_program_without_its_files(
    make_config: MakeConfig, driver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, homes = tmp_path / "work", (tmp_path / "one", tmp_path / "two")
    for folder in (work, *homes):
        folder.mkdir()
    with ScriptedModel().serving() as model:
        async with ClaudeSessionStore(make_config(driver=driver)) as store:
            sent = _recorded(store, monkeypatch)
            first = await turn(store, str(homes[0]), model.url, str(work), "I am Ada.", None)
            session = first.session_id
            key: Any = {"project_key": project_key_for_directory(str(work)), "session_id": session}
            assert await store.load(key) == sent
        async with ClaudeSessionStore(make_config(driver=driver)) as other:
            before = await other.load(key) or []
            second = await turn(other, str(homes[1]), model.url, str(work), "Who am I?", session)
            assert (second.session_id, second.result) == (session, "I have heard 4 messages.")
            entries = await other.load(key) or []
            assert entries[: len(before)] == before
            messages = await get_session_messages_from_store(other, session, str(work))
            said = [_text(one.message) for one in messages]
            assert next(text for text in said if "I " in text).endswith("I am Ada.")
            assert said[-1] == "I have heard 4 messages."
            (listed,) = await list_sessions_from_store(other, str(work))
            assert listed.session_id == session
    assert model.heard == [2, 4]


def _recorded(store: ClaudeSessionStore, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that collects every entry that the SDK sends to the store."""
    sent: list[Any] = []
    append = store.append

    async def recording(key: Any, entries: Any) -> None:
        sent.extend(entries)
        await append(key, entries)

    monkeypatch.setattr(store, "append", recording)
    return sent


def _text(message: Any) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
