"""Errors of a server that lacks disk space, is offline or wants TLS: what may pass is waited for, the rest is named."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ci.local_server import LocalServer
from locus_mysql import CheckpointStore, Database, MySQLConfig, SyncCheckpointStore
from locus_mysql.errors import ConfigError, SetupError, Unavailable
from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.working import FallbackStorage, SyncWorkingMemory

from ..conftest import EVERY_SIDE, ONE_OF_EACH, MakeConfig
from ..connecting import connect
from ..drivers.sides import wait_until

OwnSQL = Callable[..., tuple[Any, ...]]
PASSWORD = "s3cr3t-Pa55"
LARGE = {"text": "word " * 20_000}  # more than binlog_cache_size, so the server writes it to its tmpdir
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


class Opened:
    """A database of one side, and its store."""

    def __init__(self, side: str, config: MySQLConfig) -> None:
        driver, _, self._way = side.rpartition("-")
        self.database = Database(config.model_copy(update={"driver": driver}))
        self._store: Any = (CheckpointStore if self._way == "async" else SyncCheckpointStore)(self.database)

    async def call(self, method: str, *args: Any) -> Any:
        call = getattr(self._store, method)
        return await (call(*args) if self._way == "async" else asyncio.to_thread(call, *args))

    async def save_until(self, state: dict[str, Any], remedy: Callable[[], object]) -> None:
        """Save, and remove the obstacle once the save has been tried again."""
        saving = asyncio.ensure_future(self.call("save", "thread", state))
        await asyncio.to_thread(wait_until, lambda: saving.done() or self.database.stats().retries)
        assert not saving.done() or saving.result()  # raises the error of a save that was not repeated
        remedy()
        await saving

    async def close(self) -> None:
        await self.database.aclose() if self._way == "async" else self.database.close()


@contextmanager
def without_tmpdir(server: LocalServer) -> Iterator[Callable[[], object]]:
    """Move the server's ``tmpdir`` away; yield a function that brings it back, as when a full disk has space again."""
    folder = server.data_dir / "tmp"
    elsewhere = folder.with_name("tmp-elsewhere")
    folder.rename(elsewhere)

    def bring_back() -> None:
        if elsewhere.exists():
            elsewhere.rename(folder)

    try:
        yield bring_back
    finally:
        bring_back()


@pytest.fixture
def account(own_sql: OwnSQL) -> Iterator[dict[str, str]]:
    """Yield the options of an ordinary account, which offline mode keeps out."""
    user = f"locus_{secrets.token_hex(8)}"
    own_sql(f"CREATE USER {user} IDENTIFIED BY '{PASSWORD}'")
    own_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON *.* TO {user}")
    yield {"user": user, "password": PASSWORD}
    own_sql(f"DROP USER {user}")


@pytest.fixture
def offline(own_sql: OwnSQL) -> Iterator[Callable[[], object]]:
    """Switch the server's offline mode on; yield a function that switches it off."""

    def end() -> object:
        return own_sql("SET GLOBAL offline_mode = 0")

    own_sql("SET GLOBAL offline_mode = 1")
    yield end
    end()


@one_of_each
async def test_a_write_waits_for_space_in_the_tmpdir_on_a_sound_connection(
    own_server: LocalServer, own_config: MakeConfig, side: str
) -> None:
    opened = Opened(side, own_config(retry_deadline_s=60))
    await opened.call("save", "thread", {"text": ""})
    with without_tmpdir(own_server) as bring_back:
        await opened.save_until(LARGE, bring_back)
    assert await opened.call("load", "thread") == LARGE
    stats = opened.database.stats()
    assert (stats.opened, stats.lost) == (1, 0)
    await opened.close()


@one_of_each
async def test_a_tmpdir_that_stays_full_is_named_in_the_server_s_words(
    own_server: LocalServer, own_config: MakeConfig, side: str
) -> None:
    opened = Opened(side, own_config(retry_deadline_s=0.5))
    await opened.call("save", "thread", {"text": ""})
    with (
        without_tmpdir(own_server),
        pytest.raises(Unavailable, match=r"\[1\] Can't create/write to file .*tmpdir") as caught,
    ):
        await opened.call("save", "thread", LARGE)
    assert "firewall" not in str(caught.value)
    assert await opened.call("load", "thread") == {"text": ""}
    await opened.close()


@one_of_each
async def test_a_call_waits_for_the_end_of_offline_mode(
    own_config: MakeConfig, account: dict[str, str], offline: Callable[[], object], side: str
) -> None:
    opened = Opened(side, own_config(**account, retry_deadline_s=60))
    await opened.save_until({"n": 1}, offline)
    assert await opened.call("load", "thread") == {"n": 1}
    await opened.close()


@one_of_each
async def test_several_hosts_that_are_all_offline_are_waited_for_like_one(
    own_server: LocalServer, own_config: MakeConfig, account: dict[str, str], offline: Callable[[], object], side: str
) -> None:
    hosts = (f"127.0.0.1:{own_server.port}", f"localhost:{own_server.port}")
    opened = Opened(side, own_config(**account, hosts=hosts, retry_deadline_s=60))
    await opened.save_until({"n": 1}, offline)
    assert await opened.call("load", "thread") == {"n": 1}
    await opened.close()


@pytest.mark.usefixtures("offline")
@one_of_each
async def test_offline_mode_that_lasts_is_reported_as_what_it_is(
    own_config: MakeConfig, account: dict[str, str], side: str
) -> None:
    opened = Opened(side, own_config(**account, retry_deadline_s=0))
    with pytest.raises(Unavailable, match=r"\[3032\] .*offline mode"):
        await opened.call("save", "thread", {"n": 1})
    await opened.close()


@pytest.mark.usefixtures("offline")
def test_working_memory_continues_in_its_fallback_while_the_server_is_offline(
    own_config: MakeConfig, account: dict[str, str]
) -> None:
    primary = MySQLStorage(own_config(**account, driver="pymysql", retry_deadline_s=0))
    storage = FallbackStorage(primary, timeout_s=60)
    with SyncWorkingMemory("session", storage) as memory:
        memory.set("a", 1)
        assert memory.get("a") == 1
    assert storage.degraded
    storage.close()


@pytest.mark.parametrize("side", EVERY_SIDE)
async def test_a_server_that_requires_tls_names_the_option(
    own_server: LocalServer, own_config: MakeConfig, side: str
) -> None:
    opened = Opened(side, own_config(ssl_mode="DISABLED"))
    with connect(MySQLConfig(dsn=own_server.dsn)) as administrator, administrator.cursor() as cursor:
        cursor.execute("SET GLOBAL require_secure_transport = 1")
        try:
            with pytest.raises(ConfigError, match=r"ssl_mode is DISABLED.*Set ssl_mode to REQUIRED"):
                await opened.call("save", "thread", {"n": 1})
        finally:
            cursor.execute("SET GLOBAL require_secure_transport = 0")
    await opened.close()


@one_of_each
async def test_an_init_connect_that_fails_is_named(
    own_sql: OwnSQL, own_config: MakeConfig, account: dict[str, str], side: str
) -> None:
    opened = Opened(side, own_config(**account))
    own_sql("SET GLOBAL init_connect = 'SELECT 1 FROM nowhere.nothing'")
    try:
        with pytest.raises(SetupError, match=r"variable init_connect fails: \[1184\]") as caught:
            await opened.call("save", "thread", {"n": 1})
    finally:
        own_sql("SET GLOBAL init_connect = DEFAULT")
    assert "firewall" not in str(caught.value)
    assert await opened.call("save", "thread", {"n": 1})
    await opened.close()


@one_of_each
async def test_a_search_beyond_the_server_s_limit_names_it_and_leaves_the_connection_sound(
    own_sql: OwnSQL, own_config: MakeConfig, side: str
) -> None:
    config = own_config()
    opened = Opened(side, config)
    await opened.call("save", "thread", {"messages": ["coffee is rare here"]})
    own_sql(
        f"INSERT INTO {config.database}.{config.table_prefix}store_checkpoints (tenant, thread_id, seq, continues, "
        "token, payload, seal, created_at, search_text) "
        "WITH RECURSIVE numbers AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000) "
        "SELECT /*+ SET_VAR(cte_max_recursion_depth = 20000) */ "
        "'default', 'x', n, 0, UNHEX(REPEAT('0', 32)), '', 0, UTC_TIMESTAMP(6), 'coffee is common' FROM numbers"
    )
    own_sql("SET GLOBAL innodb_ft_result_cache_limit = 1000000")
    try:
        with pytest.raises(SetupError, match=r"cannot search for this: \[188\].*result cache limit.*fewer or rarer"):
            await opened.call("search", "coffee")
        assert [hit["thread_id"] for hit in await opened.call("search", "rare")] == ["thread"]
    finally:
        own_sql("SET GLOBAL innodb_ft_result_cache_limit = DEFAULT")
    assert await opened.call("load", "thread") == {"messages": ["coffee is rare here"]}
    stats = opened.database.stats()
    assert (stats.opened, stats.lost) == (1, 0)
    await opened.close()
