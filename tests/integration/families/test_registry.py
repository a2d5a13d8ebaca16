"""A toy family that is only registered gets every feature of families, on a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from locus_mysql import Database, MySQLConfig
from locus_mysql.cli import main as cli
from locus_mysql.errors import SchemaMismatch
from locus_mysql.families.registry import register_family, unregister_family
from locus_mysql.inspection import Inspector
from locus_mysql.server.application import create_app
from locus_mysql.server.dispatching import Admission, Dispatcher
from locus_mysql.server.limits import Limits
from locus_mysql.server.routing import Endpoint, Group
from locus_mysql.server.tokens import Caller

from ..cli.test_main import dsn_of
from ..conftest import MakeConfig
from ..server.test_api_threads import code
from .toys import ToyFamily, ToyOperations

Run = Callable[..., str]


@pytest.fixture
def config(make_config: MakeConfig) -> Iterator[MySQLConfig]:
    """Register the family and yield the configuration of a new schema."""
    register_family(ToyFamily())
    yield make_config(driver="pymysql")
    unregister_family("toys")


@pytest.fixture
def run(config: MySQLConfig, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command, which must succeed, and returns its output."""
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))

    def run(*arguments: str) -> str:
        assert cli.main(arguments) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


def fill(config: MySQLConfig) -> None:
    """Store a ball and a broken car."""
    toys = ToyOperations(config)
    with Database(config) as database:
        database.synchronous.run(toys.put("ball"), toys.schema, "create")
        database.synchronous.run(toys.put("car", broken=True), toys.schema, "create")


def test_its_tables_are_created_by_the_first_write_and_checked_before_a_read(
    config: MySQLConfig, run_sql: Callable[..., Any]
) -> None:
    toys = ToyOperations(config)
    with Database(config) as database, pytest.raises(SchemaMismatch, match="schema --family toys"):
        database.synchronous.run(toys.count(True, False), toys.schema, "validate")
    fill(config)
    run_sql(f"ALTER TABLE {config.database}.locus_toys COMMENT = 'locus-mysql: toys layout 9'")
    with Database(config) as database, pytest.raises(SchemaMismatch, match=r"'locus_toys' .* has layout 9"):
        database.synchronous.run(toys.count(True, False), toys.schema, "validate")


def test_its_tables_are_printed_for_a_migration_and_granted(config: MySQLConfig, run: Run) -> None:
    printed = run("schema", "--family", "toys")
    assert printed.startswith("CREATE TABLE IF NOT EXISTS `locus_toys` (")
    assert printed in run("schema")
    grant, of_wheels, of_ledger = run("grants", "--family", "toys", "--database", "app").splitlines()
    assert of_wheels == grant.replace("locus_toys", "locus_toy_wheels")
    assert of_ledger == grant.replace("locus_toys", "locus_toy_ledger")
    assert grant == "GRANT SELECT, INSERT, UPDATE, DELETE ON `app`.`locus_toys` TO 'agent'@'%';"
    assert grant in run("grants", "--database", "app")


def test_health_and_vacuum_cover_it(config: MySQLConfig, run: Run) -> None:
    fill(config)
    lines = "toys     2 of tenant 'default', family toys\nvacuum   removes now, or within an hour: 1 broken toy\n"
    assert run("health", "--family", "toys").endswith(lines)
    assert run("health").endswith(lines)
    assert run("vacuum", "--older-than-days", "1", "--tenant", "acme") == "toys: nothing to remove.\n"
    assert run("vacuum", "--family", "toys") == "Removed 1 broken toy of toys.\n"
    assert run("health").endswith(
        "toys     1 of tenant 'default', family toys\nvacuum   removes now, or within an hour: 0 broken toys\n"
    )


async def test_the_inspector_lists_and_counts_it(config: MySQLConfig) -> None:
    async with Inspector(config) as inspector:
        assert await inspector.families() == []
        fill(config)
        assert await inspector.families() == ["toys"]
        assert [(count.number, count.noun) for count in await inspector.stored("toys")] == [(2, "toys")]


def test_stats_lists_and_counts_it(config: MySQLConfig, run: Run) -> None:
    fill(config)
    assert run("stats") == run("stats", "--family", "toys") == "Toys\n  2 toys\n"
    assert json.loads(run("stats", "--json")) == {"families": [], "stored": {"toys": {"toys": 2}}}


async def test_the_page_of_statistics_counts_it(config: MySQLConfig) -> None:
    fill(config)
    async with Database(config) as database:
        transport = httpx.ASGITransport(create_app(database))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            page = await client.get("/inspect/statistics")
    assert page.status_code == 200
    assert "Toys</h2>" in page.text
    assert "<dt>Toys</dt><dd>2</dd>" in page.text


def test_a_toy_family_is_exported_and_imported(config: MySQLConfig, run: Run, tmp_path: Path) -> None:
    fill(config)
    file = str(tmp_path / "toys.jsonl")
    run("export", file, "--family", "toys")
    assert run("import", file, "--tenant", "acme") == "Imported 2 rows.\n"
    assert run("import", file, "--tenant", "acme") == "Imported 0 rows, 2 already present.\n"
    copy = ("copy", "--family", "toys", "--from", "mysql", "--to", f"{dsn_of(config)}?tenant=umbrella")
    assert run(*copy) == "Copied 2 rows.\n"
    assert "toys     2 of tenant 'acme', family toys\n" in run("health", "--tenant", "acme")


def test_a_selection_that_the_family_does_not_support_is_refused(config: MySQLConfig, tmp_path: Path, run: Run) -> None:
    fill(config)
    assert cli.main(["export", str(tmp_path / "toys.jsonl"), "--family", "toys", "--since", "2026-01-01"]) == 1


async def test_an_endpoint_of_it_answers_without_its_tables_and_creates_none(
    config: MySQLConfig, run_sql: Callable[..., Any]
) -> None:
    def toys(_: Request) -> Response:
        return JSONResponse({"toys": ["ball"]})

    family = ToyFamily()
    endpoints = [
        Endpoint("GET", "/toys", toys, family=family, without_tables={"toys": []}),
        Endpoint("GET", "/toy", toys, family=family, without_tables="toy"),
        Endpoint("POST", "/toys", toys, family=family),
    ]

    async def asked(config: MySQLConfig) -> list[tuple[int, Any]]:
        async with Database(config) as database:
            app = create_app(database)
            group = Group(endpoints, lambda _: Caller("anyone", config.tenant, may_write=True))
            app.router.routes = [*Dispatcher(Limits(), Admission(2, 2)).routes([group])]
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
                answers = [await client.request(one.method, one.template) for one in endpoints]
        return [(one.status_code, one.json().get("toys") if one.is_success else code(one)) for one in answers]

    assert await asked(config) == [(200, []), (404, "not_found"), (200, ["ball"])]
    assert run_sql(f"SHOW TABLES FROM {config.database}") == ()
    refused = config.model_copy(update={"ddl_mode": "validate"})
    assert await asked(refused) == [(404, "not_kept")] * 3
    fill(config)
    assert await asked(refused) == [(200, ["ball"])] * 3
