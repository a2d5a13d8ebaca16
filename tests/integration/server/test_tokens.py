"""Authorization by tokens and tenants, and replacing tokens while the service runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from locus.memory.backends import HTTPCheckpointer

from locus_mysql.server import tokens as tokens_module
from locus_mysql.server.application import create_app
from locus_mysql.server.tokens import NewToken, Tokens, new_token

from ..conftest import MakeConfig
from .running import running

pytestmark = pytest.mark.kept_tables("agents")

PATH = "/threads/t/checkpoints"

#: How long the service may take to notice a changed file, in seconds.
PATIENCE_S = 60.0


@pytest.fixture
def made() -> dict[str, NewToken]:
    return {
        "ann": new_token("ann", "acme", "write"),
        "reader": new_token("reader", "acme", "read"),
        "bob": new_token("bob", "bobs", "write"),
    }


@pytest.fixture
def file(made: dict[str, NewToken], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tokens_module, "LOOK_S", 0.0)
    path = tmp_path / "tokens.toml"
    path.write_text("\n".join(one.entry for one in made.values()))
    return path


@pytest.fixture
def url(make_config: MakeConfig, file: Path) -> Iterator[str]:
    with running(create_app(make_config(), tokens=Tokens(path=file))) as base:
        yield base


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, timeout=120) as one:
        yield one


def bearer(token: NewToken | str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token.secret if isinstance(token, NewToken) else token}"}


async def test_health_refuses_a_token_that_is_not_valid(url: str, made: dict[str, NewToken]) -> None:
    for headers, healthy in ((bearer(made["ann"]), True), (bearer("lmt_revoked"), False), ({}, True)):
        async with HTTPCheckpointer(url, timeout=120, headers=headers) as checkpointer:
            assert await checkpointer.health_check() is healthy


async def test_two_authorization_headers_are_none(http: httpx.AsyncClient, made: dict[str, NewToken]) -> None:
    headers = [("Authorization", f"Bearer {made[name].secret}") for name in ("ann", "bob")]
    assert (await http.get(PATH, headers=headers)).status_code == 401


async def test_a_token_is_rolled_while_the_service_runs(
    file: Path, http: httpx.AsyncClient, made: dict[str, NewToken], caplog: pytest.LogCaptureFixture
) -> None:
    async def status(token: NewToken) -> int:
        return (await http.get(PATH, headers=bearer(token))).status_code

    async def becomes(token: NewToken, expected: int) -> None:
        end = time.monotonic() + PATIENCE_S
        while await status(token) != expected:
            assert time.monotonic() < end, f"the answer stays {await status(token)}"
            await asyncio.sleep(0.01)

    caplog.set_level(logging.INFO, "locus_mysql.tokens")
    new = new_token("ann", "acme", "write")
    assert await status(new) == 401
    with file.open("a") as adding:
        adding.write(new.entry)
    await becomes(new, 200)
    assert await status(made["ann"]) == 200
    file.write_text("[[token]\n")  # noqa: ASYNC240 - takes microseconds
    assert await status(new) == 200
    file.unlink()  # noqa: ASYNC240 - as above
    assert await status(new) == 200
    replacing = file.with_suffix(".new")
    replacing.write_text(new.entry)
    replacing.replace(file)
    await becomes(made["ann"], 401)
    assert await status(new) == 200
    assert [record.levelname for record in caplog.records if "stay valid" in record.message] != []
    assert new.secret not in caplog.text


async def test_the_log_names_the_caller_and_the_request_but_no_token(
    http: httpx.AsyncClient, made: dict[str, NewToken], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = await http.get("/threads/PRIVATE/checkpoints", headers=bearer(made["reader"]))
    (line,) = [record.getMessage() for record in caplog.records if record.name == "locus_mysql.requests"]
    assert "GET /threads/{thread_id}/checkpoints 200" in line
    assert f"request {answer.headers['x-request-id']}, caller reader" in line
    assert "PRIVATE" not in line
    assert made["reader"].secret not in caplog.text
