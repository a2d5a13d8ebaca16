"""Features of the family of transcripts: counts, vacuum, export, import, and inspection."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore
from locus_mysql.inspection import Inspector

from ...commands import Succeed

pytestmark = pytest.mark.kept_tables("transcripts")

KEY = TranscriptKey("test", "project", "session")
ODD = TranscriptKey("test", "", "a/b~c", "sub/agent")


def said(role: str, text: str) -> NewItem:
    return NewItem({"type": role, "message": {"role": role, "content": text}, "timestamp": "2026-01-02T03:04:05Z"})


@pytest.fixture
def store(config: MySQLConfig) -> Any:
    """Two transcripts, one of which has unusual names and values."""
    with SyncTranscriptStore(config) as store:
        store.append(ODD, [NewItem({"x": float("inf"), "y": "\ud800", "z": 2**70}, "😀"), NewItem(None)])
        conversation = [said("user", "Where is the Amsterdam office?"), said("assistant", "At the canal.")]
        store.append(KEY, conversation, header=Header({"title": "Offices"}, "tag", "ada"))
        yield store


async def test_the_inspector_shows_a_transcript_as_a_conversation(store: Any, config: MySQLConfig) -> None:
    async with Inspector(config) as inspector:
        assert await inspector.families() == ["transcripts"]
        page = await inspector.threads("transcripts", limit=1)
        assert [one.thread_id for one in page.items] == ["test/project/session"]
        rest = await inspector.threads("transcripts", limit=5, cursor=page.cursor)
        assert [one.thread_id for one in rest.items] == ["test//a~1b~0c/sub~1agent"]
        assert rest.cursor is None
        view = await inspector.state("transcripts", "test/project/session")
        assert view is not None
        assert [(one.role, one.text) for one in view.messages] == [
            ("user", "Where is the Amsterdam office?"),
            ("assistant", "At the canal."),
        ]
        assert view.messages[0].at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        assert view.state["state"] == {"title": "Offices"}
        odd = await inspector.state("transcripts", "test//a~1b~0c/sub~1agent")
        assert odd is not None
        assert odd.state["messages"][0]["z"] == 2**70
        (row,) = (await inspector.history("transcripts", "test/project/session")).items
        assert row.checkpoint_id == view.checkpoint.checkpoint_id
        assert await inspector.state("transcripts", "test/project/none") is None
        assert await inspector.thread("transcripts", "no such id") is None


def test_the_command_line_lists_shows_and_deletes_transcripts(store: Any, succeed: Succeed) -> None:
    store.append(KEY._replace(part="sub"), [said("user", "And the other one?")])
    assert "test/project/session/sub" in succeed("threads", "--family", "transcripts")
    shown = succeed("show", "test/project/session", "--family", "transcripts")
    assert "Where is the Amsterdam office?" in shown
    succeed("rm", "test/project/session", "--family", "transcripts", "--yes")
    assert [one.key for one in store.list_transcripts("test", parts=True)] == [ODD]
