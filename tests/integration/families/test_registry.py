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
from locus_mysql.families.registry import register_family, unregister_family
from locus_mysql.inspection import Inspector
from locus_mysql.server.application import create_app
from locus_mysql.server.dispatching import Admission, Dispatcher
from locus_mysql.server.limits import Limits
from locus_mysql.server.routing import Endpoint, Group
from locus_mysql.server.tokens import Caller

from ..commands import Succeed
from ..conftest import MakeConfig
from ..server.test_api_threads import code
from .toys import ToyFamily, ToyOperations

WHEELS = (b"red", b'{"tyre": "soft"}')


@pytest.fixture
def config(make_config: MakeConfig) -> Iterator[MySQLConfig]:
    """Register the family and yield the configuration of a new schema."""
    register_family(ToyFamily())
    yield make_config(driver="pymysql")
    unregister_family("toys")


def fill(config: MySQLConfig) -> None:
    """Store a ball and a broken car."""
    toys = ToyOperations(config)
    with Database(config) as database:
        database.synchronous.run(toys.put("ball", wheels=WHEELS), toys.schema, "create")
        database.synchronous.run(toys.put("car", broken=True), toys.schema, "create")


def test_its_tables_are_printed_for_a_migration_and_granted(config: MySQLConfig, succeed: Succeed) -> None:
    printed = succeed("schema", "--family", "toys")
    assert printed.startswith("CREATE TABLE IF NOT EXISTS `locus_toys` (")
    assert printed in succeed("schema")
    grant, of_wheels, of_ledger = succeed("grants", "--family", "toys", "--database", "app").splitlines()
    assert of_wheels == grant.replace("locus_toys", "locus_toy_wheels")
    assert of_ledger == grant.replace("locus_toys", "locus_toy_ledger")
    assert grant == "GRANT SELECT, INSERT, UPDATE, DELETE ON `app`.`locus_toys` TO 'agent'@'%';"
    assert grant in succeed("grants", "--database", "app")


async def test_a_damaged_one_breaks_no_list(config: MySQLConfig, run_sql: Callable[..., Any]) -> None:
    fill(config)
    run_sql(f"UPDATE {config.database}.locus_toys SET broken = 0 WHERE name = 'car'")
    async with Inspector(config) as inspector:
        listed = (await inspector.threads("toys")).items
        view = await inspector.state("toys", "car")
    assert {one.thread_id: one.damage is None for one in listed} == {"ball": True, "car": False}
    assert view is not None
    assert "seal" in str(view.damage)


def test_commands_list_show_find_and_remove_it(config: MySQLConfig, succeed: Succeed) -> None:
    fill(config)
    assert [one["thread_id"] for one in json.loads(succeed("threads", "--json"))["threads"]] == ["car", "ball"]
    state = json.loads(succeed("show", "ball", "--json"))["state"]
    assert (state["toy"]["name"], [one["content"] for one in state["wheels"]]) == ("ball", ["red", {"tyre": "soft"}])
    assert [hit["thread_id"] for hit in json.loads(succeed("search", "soft", "--json"))["hits"]] == ["ball"]
    (counted,) = json.loads(succeed("stats", "--json"))["families"]
    assert (counted["threads"], counted["checkpoints"], len(counted["largest"])) == (2, 2, 2)
    assert "2 threads, 2 wheels" in succeed("stats")
    assert json.loads(succeed("rm", "ball", "--yes", "--json"))["deleted"]
    assert [one["thread_id"] for one in json.loads(succeed("threads", "--json"))["threads"]] == ["car"]
    with Database(config) as database:
        toys = ToyOperations(config)
        assert not database.synchronous.run(toys.wheels("ball"), toys.schema, "validate")


def test_a_selection_that_the_family_does_not_support_is_refused(
    config: MySQLConfig, tmp_path: Path, succeed: Succeed
) -> None:
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
