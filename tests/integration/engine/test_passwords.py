"""A function as the password: the account's password changes while connections are open."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql.errors import AuthenticationFailed

from ..conftest import EACH_WAY, MakeConfig, OpenStore


@pytest.fixture
def account(run_sql: Callable[..., Any], database: str) -> Iterator[str]:
    user = f"locus_{secrets.token_hex(8)}"
    run_sql(f"CREATE USER {user} IDENTIFIED BY 'first'")
    run_sql(f"GRANT ALL ON {database}.* TO {user}")
    yield user
    run_sql(f"DROP USER {user}")


@pytest.mark.parametrize("side", EACH_WAY)
async def test_new_connections_use_the_new_password_and_open_ones_continue(
    make_config: MakeConfig, open_store: OpenStore, run_sql: Callable[..., Any], account: str, side: str
) -> None:
    password, calls = "first", 0

    def token() -> str:
        nonlocal calls
        calls += 1
        return password

    async def token_async() -> str:
        await asyncio.sleep(0)
        return token()

    function = token_async if side.endswith("async") else token
    config = make_config(user=account, password=function, ssl_mode="REQUIRED", retry_deadline_s=5.0)
    store = open_store(side, config=config)
    await store.save("t", {"n": 1})
    assert calls == 1
    run_sql(f"ALTER USER {account} IDENTIFIED BY 'second'")
    await store.save("t", {"n": 2})  # on the open connection
    assert calls == 1
    for (session,) in run_sql("SELECT ID FROM performance_schema.processlist WHERE USER = %s", account):
        run_sql(f"KILL {session}")
    with pytest.raises(AuthenticationFailed, match="refused user"):
        await store.load("t")
    password = "second"
    assert await store.load("t") == {"n": 2}
