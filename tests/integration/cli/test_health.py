"""The commands `health` and `vacuum --dry-run`, also for programs, and what health says of servers of other vendors."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql import MySQLConfig, SyncCheckpointStore, SyncMemoryStore
from locus_mysql.cli import maintenance
from locus_mysql.cli.main import main
from locus_mysql.engine import logs
from locus_mysql.errors import UnsupportedServer
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore

from ..commands import dsn_of
from ..conftest import MakeConfig
from ..proxy import WireProxy, with_version

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


VITESS = "8.0.30-Vitess"


@pytest.fixture
def vitess(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> Iterator[MySQLConfig]:
    """Yield a configuration of a server that introduces itself as Vitess."""
    monkeypatch.setattr(logs, "_warned", set())
    (endpoint,) = make_config().endpoints
    with WireProxy(endpoint.host, endpoint.port, with_version(VITESS)) as proxy:
        yield make_config(host="127.0.0.1", port=proxy.port)


def test_vitess_is_warned_of_at_the_first_connection(vitess: MySQLConfig, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "locus_mysql.connections"):
        for _ in range(2):
            with SyncCheckpointStore(vitess) as store:
                store.save("t", {"a": 1})
    (record,) = caplog.records
    assert "the server is Vitess, on which nothing was tested" in record.getMessage()


def test_health_says_that_the_server_is_vitess(
    vitess: MySQLConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with SyncCheckpointStore(vitess) as store:
        store.save("t", {"a": 1})
    # The server behind the proxy is MySQL, so the test replaces its VERSION() with that of Vitess.
    found = maintenance.warning_about
    monkeypatch.setattr(maintenance, "warning_about", lambda version: found(VITESS))
    assert main(["health", "--dsn", dsn_of(vitess)]) == 0
    assert "warning  the server is Vitess, on which nothing was tested" in capsys.readouterr().out


def test_health_says_why_tidb_is_refused(make_config: MakeConfig, capsys: pytest.CaptureFixture[str]) -> None:
    (endpoint,) = make_config().endpoints
    with WireProxy(endpoint.host, endpoint.port, with_version("8.0.11-TiDB-v8.5.3")) as proxy:
        config = make_config(host="127.0.0.1", port=proxy.port)
        assert main(["health", "--dsn", dsn_of(config)]) == 1
        assert "The server is TiDB (8.0.11-TiDB-v8.5.3), which lacks statements" in capsys.readouterr().err
        with SyncCheckpointStore(config) as store, pytest.raises(UnsupportedServer, match="JSON_TABLE"):
            store.save("t", {})
