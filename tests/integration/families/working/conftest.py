"""Fixtures of working memory: storages, and working memories of both sides with one interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeAlias

import pytest

from ci.ports import reserve_port
from ci.private_servers import Account, Redis, Valkey, home_for
from locus_mysql.config import MySQLConfig
from locus_mysql.families.working.storages.interface import Storage
from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.families.working.storages.redis import RedisStorage
from locus_mysql.working import SyncWorkingMemory, WorkingMemory

from ....either_side import AnyStore as AnyMemory
from ...conftest import MakeConfig, parts
from ...proxy import WireProxy
from .servers import OwnServer, make_cluster

Open: TypeAlias = Callable[..., Any]


@pytest.fixture
async def open_memory(make_config: MakeConfig, side: str) -> AsyncIterator[Open]:
    """Yield ``open_memory("session", tenant=…)``: a working memory on the test's schema, like another process's."""
    storages: list[MySQLStorage] = []
    driver, awaited = parts(side)

    def open_one(session_id: str = "session", *, config: Any = None, **options: Any) -> AnyMemory:
        storages.append(MySQLStorage(config or make_config(driver=driver)))
        return AnyMemory((WorkingMemory if awaited else SyncWorkingMemory)(session_id, storages[-1], **options))

    yield open_one
    for storage in storages:
        await storage.aclose()


@pytest.fixture
def far(open_memory: Open, make_config: MakeConfig, proxy: WireProxy, side: str) -> AnyMemory:
    """Yield a working memory whose server is behind the proxy."""
    config: MySQLConfig = make_config(driver=parts(side)[0], host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    return open_memory("far", config=config, session_ttl_s=3600)


def _running(kind: type[Redis], *options: str) -> Iterator[OwnServer]:
    with home_for(Account.current()) as home:
        server = OwnServer(kind, home, *options)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[OwnServer]:
    """Yield a Redis server that tests share; they must not stop or reconfigure it."""
    yield from _running(Redis, "appendonly no")


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[OwnServer]:
    """Yield a Valkey server, used like `redis_server`."""
    yield from _running(Valkey, "appendonly no")


@pytest.fixture(scope="session")
def cluster_server() -> Iterator[OwnServer]:
    """Yield a Redis Cluster of one node, used like `redis_server`."""
    for server in _running(Redis, "appendonly no", "cluster-enabled yes", f"cluster-port {reserve_port()}"):
        make_cluster(server)
        yield server


@pytest.fixture
def own_redis() -> Iterator[OwnServer]:
    """Yield a Redis server for one test, which may do anything to it. Acknowledged writes survive its death."""
    yield from _running(Redis, "appendonly yes", "appendfsync always")


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    """Yield the storage that the test's parameter names."""
    name: str = request.param
    server: OwnServer = request.getfixturevalue(f"{name}_server")
    storage = RedisStorage(server.url, timeout_s=60.0, cluster=name == "cluster")
    yield storage
    storage.close()
