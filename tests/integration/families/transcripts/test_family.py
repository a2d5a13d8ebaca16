"""Features of the family of transcripts: counts, vacuum, export, import, and inspection."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.cli import main as cli
from locus_mysql.errors import InvalidInput, ThreadExists
from locus_mysql.families.registry import find_family
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore
from locus_mysql.inspection import Inspector

from ...cli.test_main import dsn_of
from ...conftest import MakeConfig

pytestmark = pytest.mark.kept_tables("transcripts")

KEY = TranscriptKey("test", "project", "session")
ODD = TranscriptKey("test", "", "a/b~c", "sub/agent")

Run = Callable[..., str]


@pytest.fixture
def config(make_config: MakeConfig) -> MySQLConfig:
    return make_config(driver="pymysql")


@pytest.fixture
def run(config: MySQLConfig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command, which must end with ``code``, and returns its output."""
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))

    def run(*arguments: str, code: int = 0) -> str:
        ended = cli.main(arguments)
        printed = capsys.readouterr()
        assert ended == code, printed.err
        return printed.out if code == 0 else printed.out + printed.err

    return run


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


def test_health_counts_and_vacuum_removes_what_has_expired(
    store: Any, run: Run, run_sql: Callable[..., Any], config: MySQLConfig
) -> None:
    lines = run("health", "--family", "transcripts").splitlines()
    assert re.fullmatch(r"transcripts 2 of tenant 'default' with 4 items and \d+ bytes, family transcripts", lines[-2])
    assert lines[-1].endswith("0 expired transcripts and 2 records of recent writes")
    run_sql(f"UPDATE {config.database}.locus_transcripts SET expires_at = UTC_TIMESTAMP(6) WHERE name = 'session'")
    assert "1 expired transcript and" in run("health", "--family", "transcripts")
    removed = run("vacuum", "--family", "transcripts", "--older-than-days", "1")
    assert removed == "Removed 1 expired transcript of transcripts.\n"
    assert run_sql(f"SELECT COUNT(*) FROM {config.database}.locus_transcript_items") == ((2,),)
    assert store.read(ODD).items[1].content is None


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


async def test_the_inspector_finds_transcripts(store: Any, config: MySQLConfig) -> None:
    async with Inspector(config) as inspector:

        async def found(**filters: Any) -> list[str]:
            return [one.thread_id for one in (await inspector.threads("transcripts", **filters)).items]

        assert await found(pattern="test/project/*") == ["test/project/session"]
        assert await found(pattern="*~1b*") == ["test//a~1b~0c/sub~1agent"]
        assert await found(min_bytes=10**9) == []
        later = datetime.now(UTC) + timedelta(days=1)
        assert await found(saved_after=later) == []
        assert len(await found(saved_before=later)) == 2
        (hit,) = await inspector.search("amsterdam office", family="transcripts")
        assert hit.thread_id == "test/project/session"
        assert await inspector.search("Rotterdam", family="transcripts") == []
        numbers = await inspector.statistics("transcripts")
        assert (numbers.threads, numbers.checkpoints) == (2, 4)
        assert [(day.threads, day.checkpoints) for day in numbers.days] == [(2, 4)]
        assert {one.thread.thread_id for one in numbers.largest} == set(await found())


def test_the_command_line_lists_shows_and_deletes_transcripts(store: Any, run: Run) -> None:
    store.append(KEY._replace(part="sub"), [said("user", "And the other one?")])
    assert "test/project/session/sub" in run("threads", "--family", "transcripts")
    shown = run("show", "test/project/session", "--family", "transcripts")
    assert "Where is the Amsterdam office?" in shown
    run("rm", "test/project/session", "--family", "transcripts", "--yes")
    assert [one.key for one in store.list_transcripts("test", parts=True)] == [ODD]


def test_a_transcript_is_copied_under_another_id(store: Any, config: MySQLConfig) -> None:
    changes = find_family("transcripts").changes(config)
    assert changes is not None

    def copy(source: str, target: str) -> bool:
        return bool(store._run(changes.copy(source, target)))

    assert copy("test/project/session", "test/project/copy")
    copied = store.open(KEY._replace(name="copy"))
    assert [item.content for item in copied[1]] == [item.content for item in store.open(KEY)[1]]
    assert copied[0].header == store.get(KEY).header
    with pytest.raises(ThreadExists):
        copy("test/project/session", "test/project/copy")
    with pytest.raises(InvalidInput, match="is no id of a transcript"):
        copy("test/project/session", "copy")
    assert not copy("test/project/none", "test/project/other")
    with pytest.raises(InvalidInput, match="only be copied as a whole"):
        store._run(changes.branch("test/project/session", "1", "test/project/other"))
