"""Fixtures of tests of the HTTP service: the application, called without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import httpx
import pytest

from locus_mysql import Database
from locus_mysql.server.application import create_app

from ..conftest import MakeConfig

OpenClient: TypeAlias = Callable[..., httpx.AsyncClient]


@pytest.fixture
async def open_client(make_config: MakeConfig) -> AsyncIterator[OpenClient]:
    """``open_client(headers=…, store={…}, **options)``: a client of a new service in the test's schema.

    ``store`` are options of `MySQLConfig`, all others of `create_app`.
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
    """A client that may do everything, without a token."""
    return open_client()
