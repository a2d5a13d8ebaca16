"""Copying over HTTP: to and from this package's service, and from one with only the endpoints of Locus' client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from locus.core.messages import Message
from locus.memory.backends.http import HTTPCheckpointer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from locus_mysql import Database, copy_threads
from locus_mysql.config import MySQLConfig
from locus_mysql.errors import Unavailable, UsageError
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer
from locus_mysql.integrations.locus.transfer.locations import Location
from locus_mysql.server.application import create_app

from ..conftest import MakeConfig
from ..server.running import running
from .conftest import contents, conversation, kept, save_all

pytestmark = pytest.mark.kept_tables("agents")

HOSTILE = ["a/b", "100%", "a?b=c#d", "ünï ☃", "%2F", "..", "."]


@pytest.fixture
def service(make_config: MakeConfig) -> Iterator[str]:
    """A service of the tenant "served"."""
    database = Database(make_config(driver="pymysql", tenant="served"))
    with running(create_app(database, inspector=False)) as url:
        yield url
    database.close()


async def test_into_a_service_and_out_of_it_nothing_is_lost(
    service: str, config: MySQLConfig, make_config: MakeConfig
) -> None:
    client = HTTPCheckpointer(service)
    back = make_config(tenant="back")
    async with MySQLCheckpointer(config) as source, MySQLCheckpointer(back) as target:
        for thread in HOSTILE:
            await save_all(source, thread, conversation(3))
        report = await copy_threads(source, client, verify=True)
        assert (report.copied, report.verified, report.complete) == (21, 21, True)
        assert (await copy_threads(source, client)).present == 21
        earlier = await client.load("a/b", "cp-0")
        assert earlier is not None
        served = make_config(tenant="served")
        async with MySQLCheckpointer(served) as behind:
            loaded = await behind.load("a/b", "cp-0")
            assert loaded is not None
            await behind.save(loaded.with_message(Message.user("another way")), "a/b", "branch")
        report = await copy_threads(client, target, verify=True)
        assert (report.copied, report.verified, report.complete) == (22, 22, True)
        for thread in HOSTILE:
            assert await contents(target, thread) == await contents(client, thread)
            if thread not in {".", ".."}:
                assert await kept(back, thread) == await kept(served, thread)
        again = await copy_threads(client, target)
        assert (again.copied, again.present) == (0, 22)
    await client.close()


def test_a_name_with_user_and_password_becomes_authentication() -> None:
    address = Location("https://agent:s%40cret@example.org/api", {"timeout": 3})
    client: Any = address.checkpointer()
    assert (client.base_url, client.auth, client.timeout) == ("https://example.org/api", ("agent", "s@cret"), 3)
    assert "cret" not in address.shown


@pytest.fixture
def plain_service() -> Iterator[str]:
    """A service with the endpoints that Locus' client requests, which fails for some checkpoints."""
    kept_here: dict[str, dict[str, Any]] = {}

    async def one(request: Request) -> JSONResponse:
        found = kept_here.get(request.path_params["thread"], {}).get(request.path_params["checkpoint"])
        if found is None or found["checkpoint_id"] == "cp-1":
            return JSONResponse({}, 500)
        return JSONResponse({"state": found["state"]})

    async def several(request: Request) -> JSONResponse:
        thread = kept_here.setdefault(request.path_params["thread"], {})
        if request.method == "POST":
            body = await request.json()
            thread[body["checkpoint_id"]] = body
            return JSONResponse({"checkpoint_id": body["checkpoint_id"]})
        return JSONResponse([*thread][::-1][: int(request.query_params["limit"])])

    async def health(request: Request) -> JSONResponse:
        return JSONResponse({})

    routes = [
        Route("/threads/{thread}/checkpoints", several, methods=["GET", "POST"]),
        Route("/threads/{thread}/checkpoints/{checkpoint}", one),
        Route("/health", health),
    ]
    with running(Starlette(routes=routes)) as url:
        yield url


async def test_threads_of_another_service_must_be_named_and_gaps_are_reported(
    plain_service: str, config: MySQLConfig
) -> None:
    client = HTTPCheckpointer(plain_service)
    states = conversation(3)
    await save_all(client, "t", states)
    reported: list[str] = []
    async with MySQLCheckpointer(config) as target:
        with pytest.raises(UsageError, match="--thread"):
            await copy_threads(client, target)
        report = await copy_threads(client, target, threads=["t"], notify=reported.append)
        assert (report.copied, report.left_out, report.complete) == (2, 1, False)
        assert report.not_given == {"metadata", "the times of checkpoints"}
        assert [one for one, _ in await contents(target, "t")] == ["cp-0", "cp-2"]
        assert "'cp-1' of thread 't' was left out: the source lists it and gives no state" in reported[0]
    await client.close()


async def test_a_service_that_is_away_is_not_taken_for_an_empty_one(config: MySQLConfig) -> None:
    client = HTTPCheckpointer("http://127.0.0.1:1", timeout=5)
    async with MySQLCheckpointer(config) as target:
        for source, to in ((client, target), (target, client)):
            with pytest.raises(Unavailable, match="does not answer"):
                await copy_threads(source, to, threads=["t"])
    await client.close()
