"""`/health` looks at tables and privileges, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.server import monitoring

from ..conftest import MakeConfig
from .conftest import OpenClient

RunSql = Callable[..., Any]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "KEPT_S", 0.0)
    monkeypatch.setattr(monitoring, "TABLES_KEPT_S", 0.0)


async def test_a_database_without_tables_is_healthy_and_one_with_half_of_them_is_not(
    open_client: OpenClient, make_config: MakeConfig, run_sql: RunSql
) -> None:
    client = open_client()
    assert (await client.get("/health")).status_code == 200
    saved = await client.post("/threads/t/checkpoints", json={"state": {"n": 1}})
    assert saved.status_code == 200
    assert (await client.get("/health")).status_code == 200
    database = make_config().database
    run_sql(f"ALTER TABLE {database}.locus_threads COMMENT = 'locus-mysql: agents layout 9'")
    assert (await client.get("/health")).status_code >= 500
    run_sql(f"DROP TABLE {database}.locus_threads")
    assert (await client.get("/health")).status_code >= 500
    run_sql(f"DROP TABLE {database}.locus_checkpoints, {database}.locus_ledger")
    assert (await client.get("/health")).status_code == 200


async def test_an_account_that_may_not_delete_is_reported(
    open_client: OpenClient, make_config: MakeConfig, run_sql: RunSql
) -> None:
    await open_client().post("/threads/t/checkpoints", json={"state": {"n": 1}})
    database = make_config().database
    user = f"u{database[-12:]}"
    run_sql(f"CREATE USER '{user}'@'%%' IDENTIFIED BY 'secret-Pass1'")
    try:
        for table in ("threads", "checkpoints", "ledger"):
            run_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.locus_{table} TO '{user}'@'%%'")
        client = open_client(store={"user": user, "password": "secret-Pass1"})
        assert (await client.get("/health")).status_code == 200
        run_sql(f"REVOKE DELETE ON {database}.locus_checkpoints FROM '{user}'@'%%'")
        refused = await client.get("/health")
        assert refused.status_code >= 500
        assert "ok" not in refused.text
    finally:
        run_sql(f"DROP USER '{user}'@'%%'")
