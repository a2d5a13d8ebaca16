"""A server that only one variable makes read-only is no primary, and a group's consistency is reported."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ci.local_server import LocalServer
from locus_mysql import CheckpointStore, MySQLConfig, SyncCheckpointStore
from locus_mysql.cli import main as cli
from locus_mysql.drivers.interface import find_driver
from locus_mysql.errors import ReadOnlyServer

from ..conftest import EVERY_SIDE, MADE_BEFORE
from ..connecting import connect

pytestmark = pytest.mark.xdist_group("server roles")

#: The account and the database on both servers.
NAME, SECRET = f"locus_{secrets.token_hex(8)}", secrets.token_hex(8)
SETUP = (f"CREATE DATABASE {NAME}", f"CREATE USER {NAME} IDENTIFIED BY '{SECRET}'", f"GRANT ALL ON *.* TO {NAME}")


@dataclass
class Servers:
    """Separate configurations of the reader and the primary, and the earlier output of `health` for the reader."""

    reader: MySQLConfig
    primary: MySQLConfig
    health: str


def at(dsn: str) -> MySQLConfig:
    (endpoint,) = MySQLConfig(dsn=dsn).endpoints
    return MySQLConfig(
        host=endpoint.host, port=endpoint.port, user=NAME, password=SECRET, database=NAME, driver="pymysql"
    )


@pytest.fixture
def servers(
    tmp_path: Path, server_dsn: str, run_sql: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> Iterator[Servers]:
    """Yield a primary and a server that only `innodb_read_only` makes a reader, as on Aurora; both store a thread."""
    with LocalServer(
        tmp_path / "data", extra_args=["--plugin-load-add=group_replication.so"], made_before=MADE_BEFORE
    ) as server:
        with connect(MySQLConfig(dsn=server.dsn)) as connection, connection.cursor() as cursor:
            for statement in (*SETUP, "SET GLOBAL group_replication_consistency = 'EVENTUAL'"):
                cursor.execute(statement)
        with SyncCheckpointStore(at(server.dsn)) as store:
            store.save("t", {"at": "reader"})
        capsys.readouterr()
        assert cli.main(["health", "--dsn", server.dsn.rpartition("/")[0] + f"/{NAME}", "--driver", "pymysql"]) == 0
        health = capsys.readouterr().out
    for statement in SETUP:
        run_sql(statement)
    with SyncCheckpointStore(at(server_dsn)) as store:
        store.save("t", {"at": "primary"})
    with LocalServer(tmp_path / "data", extra_args=["--innodb-read-only"]) as server:
        yield Servers(at(server.dsn), at(server_dsn), health)
    run_sql(f"DROP DATABASE {NAME}")
    run_sql(f"DROP USER {NAME}")


async def knows_of_a_reader(side: str, reader: MySQLConfig) -> bool:
    """Return whether a connection of a driver reports that its server takes no writes."""
    name, _, way = side.rpartition("-")
    driver, where = find_driver(name), reader.endpoints[0]
    if way == "sync":
        with closing(driver.connect(reader, where)) as blocking:
            return bool(getattr(blocking, "read_only"))  # noqa: B009 - a connection need not have one
    connection = await driver.connect_async(reader, where)
    await connection.close()
    return bool(getattr(connection, "read_only"))  # noqa: B009 - the same


@pytest.mark.slow
async def test_a_reader_of_aurora_is_not_taken_for_the_primary(
    servers: Servers,
) -> None:
    both = tuple(str(one.endpoints[0]) for one in (servers.reader, servers.primary))
    options: dict[str, Any] = {"user": NAME, "password": SECRET, "database": NAME, "retry_deadline_s": 1.0}
    async with CheckpointStore(MySQLConfig(hosts=both, **options)) as store:
        assert await store.load("t") == {"at": "primary"}
        await store.save("t", {"at": "both"})
    readers = (both[0], both[0].replace("127.0.0.1", "localhost"))
    async with CheckpointStore(MySQLConfig(hosts=readers, **options)) as store:
        with pytest.raises(ReadOnlyServer, match="accepts writes"):
            await store.load("t")
    for side in EVERY_SIDE:
        assert await knows_of_a_reader(side, servers.reader), side
    async with CheckpointStore(servers.reader) as store:
        health = await store.health_check()
        assert health["read_only"]
        assert await store.load("t") == {"at": "reader"}
        with pytest.raises(ReadOnlyServer):
            await store.save("t", {"at": "nowhere"})
    assert "group" not in servers.health  # its server has the plugin, and is in no group
