"""Copying to and from Locus' key-value backends, on real servers: Redis, PostgreSQL, and the built-in MySQL backend."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest
from locus.memory.backends.adapters import StorageBackendAdapter, redis_checkpointer
from locus.memory.backends.pg_checkpointer import PgCheckpointer
from locus.memory.registry import get_checkpointer

from ci.private_servers import PostgreSQL
from locus_mysql import copy_threads
from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer
from locus_mysql.integrations.locus.transfer.built_in_table import BuiltInSource
from locus_mysql.integrations.locus.transfer.key_value import KeyedSource, KeyedTarget
from locus_mysql.integrations.locus.transfer.locations import Location, open_source, open_target

from ..built_in import open_built_in
from ..conftest import MakeConfig
from ..families.working.servers import OwnServer
from .conftest import contents, conversation, kept, save_all

pytestmark = [
    pytest.mark.kept_tables("agents"),
    pytest.mark.filterwarnings("ignore:Call to deprecated close:DeprecationWarning"),  # Locus' backend of Redis
]

HOSTILE = ["a", "a:b", "a:b:c", "a*", "[a]", "a?", "a\\b", "tenant:1", "ünï:☃", "a b\n"]


@pytest.fixture
async def redis(redis_server: OwnServer) -> AsyncIterator[StorageBackendAdapter]:
    checkpointer = redis_checkpointer(redis_server.url, prefix=f"{secrets.token_hex(4)}:")
    yield checkpointer
    await checkpointer.close()


async def test_states_ids_order_metadata_and_times_come_along(
    redis: StorageBackendAdapter, config: MySQLConfig
) -> None:
    for number, thread in enumerate(HOSTILE, 1):
        await save_all(redis, thread, conversation(number), prefix=f"step-{number}")
    async with MySQLCheckpointer(config) as target:
        report = await copy_threads(redis, target, verify=True)
        assert (report.threads, report.copied, report.verified) == (10, 55, 55)
        assert report.complete
        assert not report.not_given
        assert {*await target.list_threads()} == {*HOSTILE}
        for thread in HOSTILE:
            assert await contents(target, thread) == await contents(redis, thread)
            index = await redis._backend.load(f"{thread}:_checkpoints")
            listed = [
                (one["checkpoint_id"], datetime.fromisoformat(one["timestamp"]), one["metadata"])
                for one in reversed(index["checkpoints"])
            ]
            assert [(one, at, metadata) for one, _, at, metadata in await kept(config, thread)] == listed
        again = await copy_threads(redis, target)
        assert (again.copied, again.present, again.complete) == (0, 55, True)


async def test_checkpoints_and_threads_that_lists_lost_are_found(
    redis: StorageBackendAdapter, config: MySQLConfig
) -> None:
    states = conversation(6)
    for thread in ("t", "t:u", "without-list"):
        await save_all(redis, thread, states)
    index = await redis._backend.load("t:_checkpoints")
    index["checkpoints"] = index["checkpoints"][::3]
    await redis._backend.save("t:_checkpoints", index)
    await redis._backend.delete("without-list:_checkpoints")
    await redis._backend.save("plain", {"not": "a checkpoint"})
    await redis._backend.save("plain:one", {"not": "a checkpoint"})
    async with MySQLCheckpointer(config) as target:
        report = await copy_threads(redis, target, verify=True)
        assert (report.threads, report.copied, report.complete) == (3, 18, True)
        for thread in ("t", "t:u", "without-list"):
            assert await contents(target, thread) == [(f"cp-{index}", state) for index, state in enumerate(states)]


async def test_damage_in_the_middle_is_left_out_and_named(redis: StorageBackendAdapter, config: MySQLConfig) -> None:
    await save_all(redis, "t", conversation(4))
    client = await redis._backend._get_client()
    prefix = redis._backend.config.prefix
    await client.set(f"{prefix}t:cp-1", "{not JSON")
    await client.delete(f"{prefix}t:cp-2")
    await save_all(redis, "u", conversation(2))
    await client.set(f"{prefix}u:_checkpoints", '{"checkpoints": [3, {"checkpoint_id": "cp-0"}, {"a": 1}]}')
    reported: list[str] = []
    async with MySQLCheckpointer(config) as target:
        report = await copy_threads(redis, target, notify=reported.append)
        assert (report.copied, report.left_out, report.complete) == (4, 2, False)
        assert [one for one, *_ in await kept(config, "t")] == ["cp-0", "cp-3"]
        assert {one for one, *_ in await kept(config, "u")} == {"cp-0", "cp-1"}
    assert any("'cp-1' of thread 't'" in line for line in reported)
    assert any("'cp-2' of thread 't'" in line and "no such key" in line for line in reported)


async def test_out_of_the_tables_and_on_with_the_other(redis: StorageBackendAdapter, config: MySQLConfig) -> None:
    async with MySQLCheckpointer(config) as source:
        states = conversation(5)
        await save_all(source, "a:b", states[:3])
        report = await copy_threads(source, redis, verify=True)
        assert (report.copied, report.verified, report.complete) == (3, 3, True)
        await save_all(source, "a:b", states[3:], "late")
        report = await copy_threads(source, redis, verify=True)
        assert (report.copied, report.present, report.verified) == (2, 3, 5)
        assert await contents(redis, "a:b") == await contents(source, "a:b")
        assert (await redis.get_metadata("a:b", "late-1"))["metadata"] == {"place": 1, "tag": {"a": [1, None]}}
        # A copy that was killed in a save: the state is stored, but missing in the list.
        index = await redis._backend.load("a:b:_checkpoints")
        index["checkpoints"] = index["checkpoints"][2:]
        await redis._backend.save("a:b:_checkpoints", index)
        report = await copy_threads(source, redis, verify=True)
        assert (report.copied, report.present, report.complete) == (2, 3, True)
        assert await contents(redis, "a:b") == await contents(source, "a:b")


async def test_keys_that_two_threads_would_share_are_refused(redis: StorageBackendAdapter, config: MySQLConfig) -> None:
    first, second = conversation(2)
    reported: list[str] = []
    async with MySQLCheckpointer(config) as source:
        await source.save(first, "a:b", "c")
        await source.save(second, "a", "b:c")
        await source.save(second, "a", "latest")
        await source.save(second, "a", "plain:id")
        await source.save(second, "a:latest", "x")
        report = await copy_threads(source, redis, notify=reported.append, at_once=1)
        assert (report.copied, report.left_out, report.failed) == (2, 2, 1)
        again = await copy_threads(source, redis, verify=True)
        assert (again.copied, again.present, again.verified, again.left_out, again.failed) == (0, 2, 2, 2, 1)
        for line in ("'latest' of thread 'a' was left out", "same key", "'a:latest' cannot be stored"):
            assert any(line in one for one in reported), line


async def test_the_registry_makes_sides_and_urls_do(redis_server: OwnServer, config: MySQLConfig) -> None:
    prefix = f"{secrets.token_hex(4)}:"
    checkpointer = get_checkpointer(f"redis:{redis_server.url}", prefix=prefix)
    await save_all(checkpointer, "t", conversation(2))
    await checkpointer.close()
    async with MySQLCheckpointer(config) as target:
        report = await copy_threads(Location(redis_server.url, {"prefix": prefix}), target, verify=True)
        assert (report.copied, report.verified, report.complete) == (2, 2, True)


async def test_the_built_in_mysql_backend_as_a_target(config: MySQLConfig, make_config: MakeConfig) -> None:
    built_in = open_built_in(config, table_name="copied")
    reported: list[str] = []
    back = make_config(tenant="back")
    async with MySQLCheckpointer(config) as source, MySQLCheckpointer(back) as target:
        await save_all(source, "user-Bob", conversation(2))
        await save_all(source, "user-bob", conversation(2, "Other"))
        await save_all(source, "naïve", conversation(1))
        report = await copy_threads(source, built_in, notify=reported.append, verify=True)
        assert (report.copied, report.verified, report.failed) == (3, 3, 1)
        assert "would share its location in the target with thread 'user-Bob'" in reported[0]
        reading = BuiltInSource(config, "copied", reported.append)
        await reading.open()
        assert {thread async for thread in reading.threads("*")} == {"user-Bob", "naïve"}
        await reading.close()
        report = await copy_threads(built_in, target, verify=True)
        assert (report.copied, report.complete) == (3, True)
        assert await contents(target, "user-Bob") == await contents(source, "user-Bob")
    await built_in.close()


def test_the_kinds_of_keyed_stores_are_detected() -> None:
    adapter = redis_checkpointer("redis://localhost:1")
    assert isinstance(open_source(adapter, print), KeyedSource)
    assert isinstance(open_target(adapter, dry_run=True), KeyedTarget)


@pytest.mark.slow
@pytest.mark.xdist_group("postgresql")
async def test_postgresql_both_of_locus_kinds(config: MySQLConfig, make_config: MakeConfig) -> None:
    with PostgreSQL.start(print) as server:
        backend = get_checkpointer("postgresql", dsn=server.url)
        rows = PgCheckpointer(server.url, table="rows_of_agents", create_schema=True)
        back: Any = make_config(tenant="back")
        try:
            async with MySQLCheckpointer(config) as source, MySQLCheckpointer(back) as target:
                for thread in HOSTILE[:6]:
                    await save_all(source, thread, conversation(3))
                report = await copy_threads(source, backend, verify=True)
                assert (report.copied, report.verified, report.complete) == (18, 18, True)
                report = await copy_threads(backend, rows, verify=True)
                assert (report.copied, report.complete) == (18, False)  # PgCheckpointer stamps saved messages
                report = await copy_threads(rows, target, verify=True)
                assert (report.copied, report.verified, report.complete) == (18, 18, True)
                assert not report.not_given
                for thread in HOSTILE[:6]:
                    assert await contents(target, thread) == await contents(rows, thread)
                    assert [(one, metadata) for one, _, _, metadata in await kept(back, thread)] == [
                        (one, metadata) for one, _, _, metadata in await kept(config, thread)
                    ]
        finally:
            await backend.close()
            await rows.close()
