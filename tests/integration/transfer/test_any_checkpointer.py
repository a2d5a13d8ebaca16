"""Copying from any Locus checkpointer by its public methods, on real servers: Redis, PostgreSQL, and the service."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from locus.memory.backends.adapters import redis_checkpointer
from locus.memory.backends.http import HTTPCheckpointer
from locus.memory.backends.memory import MemoryCheckpointer
from locus.memory.backends.pg_checkpointer import PgCheckpointer
from locus.memory.registry import get_checkpointer

from ci.private_servers import PostgreSQL
from locus_mysql import copy_threads
from locus_mysql.config import MySQLConfig
from locus_mysql.errors import UsageError
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer

from ..families.working.servers import OwnServer
from .conftest import contents, conversation, kept, save_all

pytestmark = [
    pytest.mark.kept_tables("agents"),
    pytest.mark.filterwarnings("ignore:Call to deprecated close:DeprecationWarning"),  # Locus' backend of Redis
]

HOSTILE = ["a", "a:b", "a:b:c", "a*", "[a]", "a?", "a\\b", "tenant:1", "ünï:☃", "a b\n"]


async def assert_all_come_along(source: Any, config: MySQLConfig, threads: list[str], gaps: set[str]) -> None:
    """Copy twice and compare both sides."""
    for number, thread in enumerate(threads, 1):
        await save_all(source, thread, conversation(number), prefix=f"step-{number}")
    count = sum(range(len(threads) + 1))
    async with MySQLCheckpointer(config) as target:
        report = await copy_threads(source, target, verify=True)
        assert (report.threads, report.copied, report.verified) == (len(threads), count, count)
        assert report.complete
        assert report.not_given == gaps
        assert {*await target.list_threads()} == {*threads}
        for number, thread in enumerate(threads, 1):
            assert await contents(target, thread) == await contents(source, thread)
            if "metadata" not in gaps:
                metadata = [{"place": index, "tag": {"a": [1, None]}} for index in range(number)]
                assert [one for *_, one in await kept(config, thread)] == metadata
        again = await copy_threads(source, target)
        assert (again.copied, again.present, again.complete) == (0, count, True)


async def test_redis(redis_server: OwnServer, config: MySQLConfig) -> None:
    source = redis_checkpointer(redis_server.url, prefix=f"{secrets.token_hex(4)}:")
    try:
        await assert_all_come_along(source, config, HOSTILE, set())
        named = await copy_threads(f"redis://{redis_server.url.partition('://')[2]}", config_dsn(config), threads=["x"])
        assert named.missing == 1
    finally:
        await source.close()


def config_dsn(config: MySQLConfig) -> str:
    """Return the name of the tables as the target of a copy."""
    (endpoint,) = config.endpoints
    return f"mysql://{config.user}:{config.password_text}@{endpoint.host}:{endpoint.port}/{config.database}"


@pytest.mark.slow
@pytest.mark.xdist_group("postgresql")
@pytest.mark.parametrize("kind", ["postgresql", "rows"])
async def test_postgresql(config: MySQLConfig, kind: str) -> None:
    with PostgreSQL.start(print) as server:
        source: Any = (
            get_checkpointer("postgresql", dsn=server.url)
            if kind == "postgresql"
            else PgCheckpointer(server.url, table="rows_of_agents", create_schema=True)
        )
        try:
            await assert_all_come_along(source, config, HOSTILE[:6], set())
        finally:
            await source.close()


async def test_a_checkpointer_in_memory_gives_neither_metadata_nor_times(config: MySQLConfig) -> None:
    await assert_all_come_along(MemoryCheckpointer(), config, HOSTILE[:3], {"metadata", "the times of checkpoints"})


async def test_a_service_that_does_not_answer_is_not_taken_for_an_empty_one(config: MySQLConfig) -> None:
    async with MySQLCheckpointer(config) as target:
        with pytest.raises(Exception, match=r"(?i)connect|answer"):
            await copy_threads(HTTPCheckpointer("http://127.0.0.1:9"), target, threads=["t"])


@pytest.mark.parametrize("target", ["file:backup", "redis://127.0.0.1:9", "builtin-mysql://u@127.0.0.1/app"])
async def test_only_this_package_s_tables_can_be_a_target(target: str) -> None:
    with pytest.raises(UsageError, match="this package's tables"):
        await copy_threads(MemoryCheckpointer(), target)
