"""Errors about the configuration, the server or the tables name the cause and its remedy."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.errors import (
    AuthenticationFailed,
    ConfigError,
    DatabaseMissing,
    PrivilegeMissing,
    SetupError,
    Unavailable,
    UnsupportedServer,
)

from .conftest import EVERY_SIDE, ONE_OF_EACH, MakeConfig, OpenStore
from .proxy import WireProxy, with_version

pytestmark = pytest.mark.slow

RunSQL = Callable[..., tuple[Any, ...]]
SECRET = "s3cr3t-Pa55"
every_side = pytest.mark.parametrize("side", EVERY_SIDE)
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


# Reaching the server


@every_side
async def test_a_missing_database_is_reported_with_the_statement_that_creates_it(
    open_store: OpenStore, run_sql: RunSQL, side: str
) -> None:
    name = f"locus_test_{secrets.token_hex(8)}-x"
    store = open_store(side, database=name)
    with pytest.raises(DatabaseMissing) as caught:
        await store.save("thread", {})
    (statement,) = [part for part in str(caught.value).split(": ") if part.startswith("CREATE DATABASE")]
    run_sql(statement.rstrip("."))
    await store.save("thread", {"a": 1})
    assert await store.load("thread") == {"a": 1}
    run_sql(f"DROP DATABASE `{name}`")


@pytest.fixture
def make_user(run_sql: RunSQL, database: str) -> Iterator[Callable[..., dict[str, str]]]:
    """Yield ``make_user("SELECT", …)``: options of a new user with these privileges on the test's schema."""
    made: list[str] = []

    def make(*privileges: str) -> dict[str, str]:
        name = f"locus_{secrets.token_hex(8)}"
        run_sql(f"CREATE USER {name} IDENTIFIED BY '{SECRET}'")
        made.append(name)
        if privileges:
            run_sql(f"GRANT {', '.join(privileges)} ON {database}.* TO {name}")
        return {"user": name, "password": SECRET}

    yield make
    for name in made:
        run_sql(f"DROP USER {name}")


@pytest.mark.parametrize("plugin", ["caching_sha2_password", "sha256_password"])
@every_side
async def test_a_password_too_long_for_a_login_without_tls_is_named(
    open_store: OpenStore, run_sql: RunSQL, make_user: Callable[..., dict[str, str]], side: str, plugin: str
) -> None:
    user = {**make_user("ALL"), "password": SECRET.ljust(250, "-")}
    run_sql(f"ALTER USER {user['user']} IDENTIFIED WITH {plugin} BY '{user['password']}'")
    with pytest.raises(ConfigError, match=r"TLS.*ssl_mode") as caught:
        await open_store(side, **user, ssl_mode="DISABLED").save("thread", {})
    assert SECRET not in str(caught.value)
    store = open_store(side, **user, ssl_mode="REQUIRED")
    await store.save("thread", {"a": 1})
    assert await store.load("thread") == {"a": 1}


@every_side
async def test_sha256_password_without_tls_works_or_names_what_it_needs(
    open_store: OpenStore, run_sql: RunSQL, make_user: Callable[..., dict[str, str]], side: str
) -> None:
    user = make_user("ALL")
    run_sql(f"ALTER USER {user['user']} IDENTIFIED WITH sha256_password BY '{SECRET}'")
    store = open_store(side, **user, ssl_mode="DISABLED")
    if side.startswith("mysql-connector"):
        with pytest.raises(ConfigError, match=r"sha256_password.*ssl_mode"):
            await store.save("thread", {"a": 1})
    else:
        await store.save("thread", {"a": 1})
        assert await store.load("thread") == {"a": 1}


@every_side
async def test_a_wrong_password_is_reported_without_showing_it(
    open_store: OpenStore, make_user: Callable[..., dict[str, str]], side: str
) -> None:
    user = make_user("ALL")
    wrong = "wrong-" + SECRET
    with pytest.raises(AuthenticationFailed) as caught:
        await open_store(side, **{**user, "password": wrong}).save("thread", {})
    assert user["user"] in str(caught.value)
    shown = "".join(str(error) for error in (caught.value, caught.value.__cause__, caught.value.__context__))
    assert SECRET not in shown


@every_side
async def test_a_user_without_access_to_the_database_gets_an_error_that_explains_it(
    open_store: OpenStore, make_user: Callable[..., dict[str, str]], side: str, database: str
) -> None:
    with pytest.raises(PrivilegeMissing, match=rf"GRANT SELECT, INSERT, UPDATE, DELETE ON `{database}`"):
        await open_store(side, **make_user()).save("thread", {})


@every_side
async def test_a_server_that_is_not_there_is_reported_at_once_with_its_address(
    open_store: OpenStore, side: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(Unavailable, match=f"127.0.0.1:{port}") as caught:
        await open_store(side, host="127.0.0.1", port=port).save("thread", {})
    assert time.monotonic() - began < 20  # not retry_deadline_s
    assert ".." not in str(caught.value)


@one_of_each
async def test_an_unknown_host_name_is_reported_with_the_name(open_store: OpenStore, side: str) -> None:
    with pytest.raises(Unavailable, match=r"no-such-host\.invalid"):
        await open_store(side, host="no-such-host.invalid", port=3306).save("thread", {})


@one_of_each
async def test_a_socket_that_is_not_there_is_reported_with_its_path(open_store: OpenStore, side: str) -> None:
    with pytest.raises(Unavailable, match=r"/nowhere/mysql\.sock"):
        await open_store(side, unix_socket="/nowhere/mysql.sock").save("thread", {})


@every_side
@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("5.5.5-10.11.6-MariaDB-0+deb12u1", "MariaDB 10.11.6"),
        ("11.4.2-MariaDB", "MariaDB 11.4.2"),
        ("5.7.44-log", "5.7.44"),
        ("8.0.18", "8.0.18"),
    ],
)
async def test_a_server_that_is_not_supported_is_refused_by_its_version(
    open_store: OpenStore, make_config: MakeConfig, server_dsn: str, side: str, version: str, expected: str
) -> None:
    (endpoint, *_) = MySQLConfig(dsn=server_dsn).endpoints
    with WireProxy(endpoint.host, endpoint.port, with_version(version)) as proxy:
        store = open_store(side, config=make_config(host="127.0.0.1", port=proxy.port))
        with pytest.raises(UnsupportedServer, match=r"8\.0\.19 or later") as caught:
            await store.save("thread", {})
        assert expected in str(caught.value)
        assert proxy.total.connections == 1


@one_of_each
async def test_the_first_server_that_answers_is_used(
    open_store: OpenStore, make_config: MakeConfig, server_dsn: str, side: str
) -> None:
    (endpoint, *_) = MySQLConfig(dsn=server_dsn).endpoints
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = listener.getsockname()[1]
    config = make_config()
    hosts = (f"127.0.0.1:{nobody}", f"{endpoint.host}:{endpoint.port}")
    store = open_store(side, config=make_config(hosts=hosts))
    await store.save("thread", {"a": 1})
    assert await open_store(side, config=config).load("thread") == {"a": 1}


# Privileges


@one_of_each
@pytest.mark.parametrize("ddl_mode", ["validate", "off", "create"])
async def test_four_privileges_are_enough_once_the_tables_exist(
    open_store: OpenStore, make_user: Callable[..., dict[str, str]], side: str, ddl_mode: str
) -> None:
    await open_store(side).save("before", {"a": 0})
    user = make_user("SELECT", "INSERT", "UPDATE", "DELETE")
    store = open_store(side, ddl_mode=ddl_mode, keep_checkpoints=2, ttl_s=3600, **user)
    for turn in range(4):
        await store.save("thread", {"log": ["walrus " * 1000] * turn}, f"c{turn}", {"k": turn})
    await store.save("thread", {"log": ["walrus"]}, "c3")
    assert await store.load("thread") == {"log": ["walrus"]}
    assert await store.list_checkpoints("thread") == ["c3", "c2"]
    assert await store.copy_thread("thread", "copy")
    assert await store.search("walrus")
    assert await store.query_by_metadata("k", 2)
    assert (await store.get_disk_usage())["checkpoints"] == 5
    assert await store.history("thread")
    assert (await store.health_check())["ok"]
    assert await store.delete("copy")
    await store.vacuum(0)
    assert await store.forget_tenant() >= 0


@one_of_each
async def test_the_error_for_a_user_who_may_not_create_tables_names_the_required_privileges(
    open_store: OpenStore, make_user: Callable[..., dict[str, str]], run_sql: RunSQL, database: str, side: str
) -> None:
    user = make_user("SELECT", "INSERT", "UPDATE", "DELETE")
    with pytest.raises(PrivilegeMissing, match="CREATE"):
        await open_store(side, **user).save("thread", {})
    assert not run_sql(f"SHOW TABLES FROM {database}")


@one_of_each
@pytest.mark.parametrize("missing", ["SELECT", "INSERT", "UPDATE", "DELETE"])
async def test_the_error_for_a_user_who_lacks_a_privilege_names_it(
    open_store: OpenStore,
    make_user: Callable[..., dict[str, str]],
    table_contents: Callable[[], Any],
    side: str,
    missing: str,
) -> None:
    await open_store(side).save("thread", {"a": 1}, "c1")
    before = table_contents()
    user = make_user(*({"SELECT", "INSERT", "UPDATE", "DELETE"} - {missing}))
    store = open_store(side, ddl_mode="off", **user)
    with pytest.raises(PrivilegeMissing, match=missing):
        await store.save("thread", {"a": 2}, "c1")
    assert table_contents() == before


async def test_a_setup_error_is_raised_again_by_the_next_call_until_it_is_mended(
    open_store: OpenStore, run_sql: RunSQL, database: str
) -> None:
    run_sql(f"CREATE TABLE {database}.locus_store_threads (id INT)")
    store = open_store()
    for _ in range(3):
        with pytest.raises(SetupError):
            await store.save("thread", {})
    run_sql(f"DROP TABLE {database}.locus_store_threads")
    await store.save("thread", {"a": 1})
    assert await store.load("thread") == {"a": 1}
