"""Servers are accepted or refused by the version in their greeting; the state of a session."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.drivers.interface import Result, ServerSession
from locus_mysql.drivers.wire.session import check_server_version, session_of, warning_about
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
        ("8.0.11-TiDB-v7.5.0", r"^The server is TiDB .*lacks .* JSON_TABLE .*docs/scaling\.md.*OceanBase"),
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
    ("row", "session"),
    [
        ((1_048_576, 7, "uuid", 1), ServerSession(7, "uuid", read_only=True)),
        ((1_048_576, 7, "uuid", 0), ServerSession(7, "uuid", read_only=False)),
        ((1_048_576, 0, "", 0), None),
        ((1_048_576,), None),
    ],
)
def test_a_session_is_known_by_its_server_unless_a_proxy_hides_it(
    row: tuple[Any, ...], session: ServerSession | None
) -> None:
    assert session_of([Result((row,))]) == session
