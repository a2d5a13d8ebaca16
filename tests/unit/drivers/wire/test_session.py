"""Servers are accepted or refused by the version in their greeting; the settings and the state of a session."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.drivers.interface import Result
from locus_mysql.drivers.wire import session
from locus_mysql.drivers.wire.session import check_server_version, is_read_only, setup
from locus_mysql.engine.logs import warning_about
from locus_mysql.errors import UnsupportedServer


@pytest.mark.parametrize(
    "text",
    [
        "8.0.19",
        "8.0.36-0ubuntu0.22.04.1",
        "8.4.3",
        "9.7.4-2",
        "10.0.1",
        "26.7.0",
        "26.10.1-commercial",
        "8.0.28-google",
        "8.0.35-27",  # Percona Server
        "8.0.mysql_aurora.3.05.2",
        "8.0.30-Vitess",
    ],
)
def test_mysql_8_0_19_and_its_kin_are_accepted(text: str) -> None:
    check_server_version(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5.5.5-10.11.6-MariaDB-1:10.11.6", r"^MariaDB 10\.11\.6 is not MySQL"),
        ("11.4.2-MariaDB-ubu2404", r"^MariaDB 11\.4\.2 is not MySQL"),
        ("5.7.44-log", r"^MySQL 5\.7\.44 is too old; 8\.0\.19 or later"),
        ("5.7.mysql_aurora.2.11.1", r"^MySQL 5\.7 is too old"),
        ("8.0.18", r"^MySQL 8\.0\.18 is too old"),
        ("8.0.11-TiDB-v7.5.0", r"^The server is TiDB .*lacks .* JSON_TABLE .*docs/servers\.md.*OceanBase"),
        ("5.7.25-TiDB-v6.1.0", r"^The server is TiDB"),
        ("nonsense", "'nonsense', which is no MySQL version"),
        ("", "'', which is no MySQL version"),
    ],
)
def test_unsupported_servers_are_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(UnsupportedServer, match=message):
        check_server_version(text)


@pytest.mark.parametrize("text", ["8.0.30-Vitess", "5.7.9-vitess-12.0.6"])
def test_a_warning_says_what_vitess_refuses(text: str) -> None:
    assert "Vitess, on which nothing was tested" in str(warning_about(text))


@pytest.mark.parametrize("text", ["8.0.19", "9.7.4-2", "8.0.35-27", "5.7.25-OceanBase seekdb-v1.4.0.0"])
def test_there_is_no_warning_about_mysql_and_oceanbase(text: str) -> None:
    assert warning_about(text) is None


@pytest.mark.parametrize(
    ("row", "read_only"), [((1_048_576, 1), True), ((1_048_576, "1"), True), ((1_048_576, 0), False)]
)
def test_a_session_knows_whether_its_server_takes_writes(row: tuple[Any, ...], read_only: bool) -> None:
    assert is_read_only([Result((row,))]) == read_only


@pytest.mark.parametrize(
    ("options", "limit_ms"),
    [({}, 60_000), ({"read_timeout_s": 0.3}, 1_000), ({"select_timeout_s": 0.25, "read_timeout_s": 9}, 250)],
)
def test_a_session_limits_its_reads(options: dict[str, Any], limit_ms: int) -> None:
    (limited,) = [one for one in setup(MySQLConfig(**options)) if "max_execution_time" in one.sql]
    assert f"max_execution_time = {limit_ms}" in limited.sql


def test_oceanbase_gets_its_variant() -> None:
    assert session.variant([Result([("5.7.25-OceanBase-v4.3.5.3", "OceanBase 4.3.5.3")])]) is OCEANBASE


def test_an_old_mysql_with_the_same_greeting_is_refused() -> None:
    with pytest.raises(UnsupportedServer, match=r"5\.7\.25 is too old"):
        session.variant([Result([("5.7.25", "MySQL Community Server (GPL)")])])


def test_a_session_on_oceanbase_limits_every_statement() -> None:
    config = MySQLConfig(database="app", select_timeout_s=2.5)
    (limit,) = [one for one in session.setup(config, OCEANBASE) if "ob_query_timeout" in one.sql]
    assert "@@SESSION.ob_query_timeout = 2500000" in limit.sql
    assert not any("ob_query_timeout" in one.sql for one in session.setup(config))
