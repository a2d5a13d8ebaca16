"""Other vendors' servers, detected by greeting and version, are refused or lead to a warning."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from locus_mysql import SyncCheckpointStore
from locus_mysql.cli import main as cli
from locus_mysql.cli import maintenance
from locus_mysql.config import MySQLConfig
from locus_mysql.engine import logs
from locus_mysql.errors import UnsupportedServer

from ..commands import dsn_of
from ..conftest import MakeConfig
from ..proxy import WireProxy, with_version

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
    assert cli.main(["health", "--dsn", dsn_of(vitess)]) == 0
    assert "warning  the server is Vitess, on which nothing was tested" in capsys.readouterr().out


def test_health_says_why_tidb_is_refused(make_config: MakeConfig, capsys: pytest.CaptureFixture[str]) -> None:
    (endpoint,) = make_config().endpoints
    with WireProxy(endpoint.host, endpoint.port, with_version("8.0.11-TiDB-v8.5.3")) as proxy:
        config = make_config(host="127.0.0.1", port=proxy.port)
        assert cli.main(["health", "--dsn", dsn_of(config)]) == 1
        assert "The server is TiDB (8.0.11-TiDB-v8.5.3), which lacks statements" in capsys.readouterr().err
        with SyncCheckpointStore(config) as store, pytest.raises(UnsupportedServer, match="JSON_TABLE"):
            store.save("t", {})
