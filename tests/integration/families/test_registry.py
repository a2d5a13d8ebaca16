"""A toy family that is only registered gets every feature of families, on a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
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
from ..server.test_pages import checked_page
from .toys import ToyFamily, ToyOperations

Run = Callable[..., str]

WHEELS = (b"red", b'{"tyre": "soft"}')


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
        database.synchronous.run(toys.put("ball", wheels=WHEELS), toys.schema, "create")
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


async def test_the_inspector_lists_and_counts_it(config: MySQLConfig) -> None:
    async with Inspector(config) as inspector:
        assert await inspector.families() == []
        fill(config)
        assert await inspector.families() == ["toys"]
        assert [(count.number, count.noun) for count in await inspector.stored("toys")] == [(2, "toys")]
        first = await inspector.threads("toys", limit=1)
        rest = await inspector.threads("toys", limit=1, cursor=first.cursor)
        assert [(one.thread_id, one.checkpoints) for one in (*first.items, *rest.items)] == [("car", 0), ("ball", 2)]
        assert [one.thread_id for one in (await inspector.threads("toys", pattern="b*")).items] == ["ball"]
        assert [one.thread_id for one in (await inspector.threads("toys", min_bytes=1)).items] == ["ball"]
        (car,) = first.items
        later = car.updated_at
        assert [one.thread_id for one in (await inspector.threads("toys", saved_before=later)).items] == ["ball"]
        assert [one.thread_id for one in (await inspector.threads("toys", saved_after=later)).items] == ["car"]
        view = await inspector.state("toys", "ball")
        assert view is not None
        assert [wheel["content"] for wheel in view.state["wheels"]] == ["red", {"tyre": "soft"}]
        assert await inspector.state("toys", "ball", at=later - timedelta(days=1)) is None
        assert [hit.thread_id for hit in await inspector.search("soft", family="toys")] == ["ball"]
        before = await inspector.changed([("toys", "ball"), ("toys", "none")])
        with Database(config) as database:
            toys = ToyOperations(config)
            database.synchronous.run(toys.put("ball"), toys.schema, "create")
        after = await inspector.changed([("toys", "ball")])
        assert before.keys() == after.keys() == {("toys", "ball")}
        assert before != after


async def test_a_damaged_one_breaks_no_list(config: MySQLConfig, run_sql: Callable[..., Any]) -> None:
    fill(config)
    run_sql(f"UPDATE {config.database}.locus_toys SET broken = 0 WHERE name = 'car'")
    async with Inspector(config) as inspector:
        listed = (await inspector.threads("toys")).items
        view = await inspector.state("toys", "car")
    assert {one.thread_id: one.damage is None for one in listed} == {"ball": True, "car": False}
    assert view is not None
    assert "seal" in str(view.damage)


def test_commands_list_show_find_and_remove_it(config: MySQLConfig, run: Run) -> None:
    fill(config)
    assert [one["thread_id"] for one in json.loads(run("threads", "--json"))["threads"]] == ["car", "ball"]
    assert json.loads(run("show", "ball", "--json"))["state"]["toy"]["name"] == "ball"
    assert [hit["thread_id"] for hit in json.loads(run("search", "soft", "--json"))["hits"]] == ["ball"]
    (counted,) = json.loads(run("stats", "--json"))["families"]
    assert (counted["threads"], counted["checkpoints"], len(counted["largest"])) == (2, 2, 2)
    assert "2 threads, 2 wheels" in run("stats")
    assert json.loads(run("rm", "ball", "--yes", "--json"))["deleted"]
    assert [one["thread_id"] for one in json.loads(run("threads", "--json"))["threads"]] == ["car"]
    with Database(config) as database:
        toys = ToyOperations(config)
        assert not database.synchronous.run(toys.wheels("ball"), toys.schema, "validate")


async def test_pages_and_the_api_list_show_copy_and_remove_it(config: MySQLConfig) -> None:
    fill(config)
    async with Database(config) as database:
        transport = httpx.ASGITransport(create_app(database, allow_writes=True))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            listed = checked_page(await client.get("/?family=toys"))
            assert "ball" in listed.text
            shown = checked_page(await client.get("/inspect/thread?family=toys&thread=ball"))
            assert "soft" in shown.text
            assert "Wheels" in checked_page(await client.get("/inspect/statistics?family=toys")).text
            form = checked_page(await client.get("/inspect/copy?family=toys&thread=ball")).inputs()
            assert (await client.post("/inspect/copy", data={**form, "target": "cube"})).status_code == 303
            of_toys = {"family": "toys"}
            threads = (await client.get("/threads", params=of_toys)).json()["threads"]
            assert {one["thread_id"] for one in threads} == {"ball", "car", "cube"}
            state = (await client.get("/threads/cube/state", params=of_toys)).json()
            assert [wheel["content"] for wheel in state["state"]["wheels"]] == ["red", {"tyre": "soft"}]
            hits = (await client.get("/search", params={**of_toys, "q": "soft"})).json()["hits"]
            assert {hit["thread_id"] for hit in hits} == {"ball", "cube"}
            copied = await client.post("/threads/cube/copy", params=of_toys, json={"to": "die"})
            assert copied.json() == {"thread_id": "die"}
            assert (await client.delete("/threads/cube", params=of_toys)).json() == {"deleted": True}
            assert code(await client.delete("/threads/cube", params=of_toys)) == "not_found"
            form = checked_page(await client.get("/inspect/delete?family=toys&thread=ball")).inputs()
            assert (await client.post("/inspect/delete", data=form)).status_code == 303
            threads = (await client.get("/threads", params=of_toys)).json()["threads"]
            assert {one["thread_id"] for one in threads} == {"car", "die"}


def test_a_toy_family_is_exported_and_imported(config: MySQLConfig, run: Run, tmp_path: Path) -> None:
    fill(config)
    file = str(tmp_path / "toys.jsonl")
    run("export", file, "--family", "toys")
    assert run("import", file, "--tenant", "acme") == "Imported 4 rows.\n"
    assert run("import", file, "--tenant", "acme") == "Imported 0 rows, 4 already present.\n"
    copy = ("copy", "--family", "toys", "--from", "mysql", "--to", f"{dsn_of(config)}?tenant=umbrella")
    assert run(*copy) == "Copied 4 rows.\n"
    assert "toys     2 of tenant 'acme', family toys\n" in run("health", "--tenant", "acme")


def test_a_selection_that_the_family_does_not_support_is_refused(config: MySQLConfig, tmp_path: Path, run: Run) -> None:
    fill(config)
    assert cli.main(["export", str(tmp_path / "toys.jsonl"), "--family", "toys", "--namespace", "box"]) == 1


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
