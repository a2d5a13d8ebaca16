"""`health --json` and `vacuum --dry-run --json`: for programs, without changes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import MySQLConfig, SyncCheckpointStore, SyncMemoryStore
from locus_mysql.cli.main import main
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore

from ..commands import dsn_of
from ..conftest import MakeConfig

pytestmark = pytest.mark.kept_tables


@pytest.fixture
def config(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> MySQLConfig:
    config = make_config(driver="pymysql")
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    with SyncCheckpointStore(config) as store:
        store.save("old", {"n": 1})
        store.save("new", {"n": 1})
    with SyncMemoryStore(config) as memories:
        memories.put(("a",), "k", 1, ttl_s=0.000001)
    return config


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_health_as_json(config: MySQLConfig, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "health", "--json")
    assert found["server"]["read_only"] is False
    assert found["server"]["answer_ms"] > 0
    by_family = {one["family"]: one for one in found["families"]}
    assert by_family["dicts"]["stored"] == [{"number": 2, "what": "thread"}]
    assert {"number": 1, "what": "expired item"} in by_family["memories"]["unneeded"]


def test_labels_of_any_length_are_in_line(
    make_config: MakeConfig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(driver="pymysql")
    with SyncTranscriptStore(config) as store:
        store.append(TranscriptKey("a", "b", "c"), [NewItem(["x"], "x")])
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    assert main(["health", "--family", "transcripts"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("transcripts 1 of tenant") for line in lines)
    assert len({len(line) - len(line.split(maxsplit=1)[1]) for line in lines}) == 1


def test_after_encryption_was_turned_on_indexes_with_clear_words_are_named_with_the_statement_that_removes_them(
    make_config: MakeConfig,
    run_sql: Callable[..., tuple[Any, ...]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = make_config(driver="pymysql")
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    with SyncMemoryStore(config) as memories:
        memories.put(("a",), "k", {"text": "sesame"})
    assert "encryption" not in str(printed(capsys, "health", "--json", "--family", "memories"))
    monkeypatch.setenv("LOCUS_MYSQL_ENCRYPTION", f"2026-11={base64.b64encode(bytes(range(32))).decode()}")
    (family,) = printed(capsys, "health", "--json", "--family", "memories")["families"]
    (note,) = [one for one in family["notes"] if "clear text" in one]
    assert "'locus_memory_items'" in note
    run_sql(f"USE {config.database}")
    run_sql(note.partition("Remove them: ")[2].rstrip(";"))
    (family,) = printed(capsys, "health", "--json", "--family", "memories")["families"]
    assert not any("clear text" in one for one in family["notes"])
