"""Storages of working memory to test: on Redis, on Valkey, and on a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ci.private_servers import Account, Redis, Valkey, free_port, home_for
from locus_mysql.working.storages.interface import Storage
from locus_mysql.working.storages.redis import RedisStorage

from .servers import OwnServer, make_cluster


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
    """Redis, for tests that do not change it."""
    yield from _running(Redis, "appendonly no")


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[OwnServer]:
    """Valkey, likewise."""
    yield from _running(Valkey, "appendonly no")


@pytest.fixture(scope="session")
def cluster_server() -> Iterator[OwnServer]:
    """A Redis Cluster of one node, likewise."""
    for server in _running(Redis, "appendonly no", "cluster-enabled yes", f"cluster-port {free_port()}"):
        make_cluster(server)
        yield server


@pytest.fixture
def own_redis() -> Iterator[OwnServer]:
    """Redis, for one test that may do anything to it. What it acknowledged survives its death."""
    yield from _running(Redis, "appendonly yes", "appendfsync always")


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    """The storage that the test's parameter names."""
    name: str = request.param
    server: OwnServer = request.getfixturevalue(f"{name}_server")
    storage = RedisStorage(server.url, timeout_s=60.0, cluster=name == "cluster")
    yield storage
    storage.close()
