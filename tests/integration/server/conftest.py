"""Fixtures of the HTTP service's tests, which call the application without a socket."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeAlias

import httpx
import pymysql
import pytest

from locus_mysql import Database, MySQLConfig
from locus_mysql.server.application import create_app

from ..conftest import MakeConfig

OpenClient: TypeAlias = Callable[..., httpx.AsyncClient]


@pytest.fixture
async def open_client(make_config: MakeConfig) -> AsyncIterator[OpenClient]:
    """Yield ``open_client(headers=…, store={…}, **options)``: a client of a new service in the test's schema.

    ``store`` contains options of `MySQLConfig`; all other options are those of `create_app`.
    """
    opened: list[tuple[httpx.AsyncClient, Database]] = []

    def open_one(
        headers: dict[str, str] | None = None, store: dict[str, Any] | None = None, **options: Any
    ) -> httpx.AsyncClient:
        database = Database(make_config(driver="pymysql", **(store or {})))
        transport = httpx.ASGITransport(create_app(database, **options))
        client = httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)
        opened.append((client, database))
        return client

    yield open_one
    for client, database in opened:
        await client.aclose()
        await database.aclose()


@pytest.fixture
def client(open_client: OpenClient) -> httpx.AsyncClient:
    """Return a client that has all permissions without a token."""
    return open_client()


@pytest.fixture(scope="module")
def shared_config(server_dsn: str, server: pymysql.Connection[Any]) -> Iterator[MySQLConfig]:
    """Yield a configuration of a schema that the tests of a module share, with a service that starts once.

    Each of these tests uses thread ids of its own. Tests that share a service are in one ``xdist_group``.
    """
    name = f"locus_test_{secrets.token_hex(8)}"
    with server.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    yield MySQLConfig(dsn=server_dsn).model_copy(update={"database": name})
    with server.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name}")
