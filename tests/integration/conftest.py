"""Fixtures of all integration tests: a real MySQL server, and a schema of its own for each test."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pymysql
import pytest

from locus_mysql.config import MySQLConfig

from .proxy import WireProxy

MakeConfig: TypeAlias = Callable[..., MySQLConfig]


@pytest.fixture(scope="session")
def server_dsn() -> str:
    """The server to test on; its user may create schemas and users."""
    dsn = os.environ.get("LOCUS_MYSQL_TEST_DSN")
    if not dsn:
        pytest.fail("There is no MySQL server to test on: run ci/test or set LOCUS_MYSQL_TEST_DSN.", pytrace=False)
    return dsn


@pytest.fixture(scope="session")
def server(server_dsn: str) -> Iterator[pymysql.Connection[Any]]:
    """An administrator's connection, to prepare and to look."""
    config = MySQLConfig(dsn=server_dsn)
    (endpoint,) = config.endpoints
    connection = pymysql.connect(
        host=endpoint.host,
        port=endpoint.port,
        unix_socket=endpoint.unix_socket,
        user=config.user,
        password=config.password.get_secret_value().encode(),
        autocommit=True,
    )
    yield connection
    connection.close()


@pytest.fixture
def run_sql(server: pymysql.Connection[Any]) -> Callable[..., tuple[Any, ...]]:
    """Run one statement as the administrator: ``run_sql(sql, *params)`` gives the rows."""

    def run(sql: str, *params: Any) -> tuple[Any, ...]:
        with server.cursor() as cursor:
            cursor.execute(sql, params or None)
            return cursor.fetchall()

    return run


@pytest.fixture
def database(run_sql: Callable[..., object]) -> Iterator[str]:
    """A new, empty schema."""
    name = f"locus_test_{secrets.token_hex(8)}"
    run_sql(f"CREATE DATABASE {name}")
    yield name
    run_sql(f"DROP DATABASE {name}")


@pytest.fixture
def make_config(server_dsn: str, database: str) -> MakeConfig:
    """``make_config(**options)``: for the test's schema; options win over the server's DSN."""
    server = MySQLConfig(dsn=server_dsn)
    given = {name: getattr(server, name) for name in server.model_fields_set}

    def make(**options: Any) -> MySQLConfig:
        address = {"host", "port", "hosts", "unix_socket"}
        if options.keys() & address:
            return MySQLConfig(**{"database": database, **_without(given, address), **options})
        return MySQLConfig(**{**given, "database": database, **options})

    return make


def _without(options: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


@pytest.fixture
def proxy(server_dsn: str) -> Iterator[WireProxy]:
    """A proxy before the server: ``make_config(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")``."""
    (endpoint, *_) = MySQLConfig(dsn=server_dsn).endpoints
    with WireProxy(endpoint.host, endpoint.port) as running:
        yield running
