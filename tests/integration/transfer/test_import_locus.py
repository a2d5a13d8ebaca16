"""Imports from Locus' built-in MySQL backend, whose table that backend itself creates."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from locus.memory.backends.adapters import StorageBackendAdapter

from locus_mysql.config import MySQLConfig
from locus_mysql.errors import ConfigError, SchemaMismatch
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer
from locus_mysql.integrations.locus.operations import LocusOperations
from locus_mysql.integrations.locus.transfer.built_in_table import BuiltInSource
from locus_mysql.integrations.locus.transfer.threads import AgentTables, ThreadTarget, ThreadUnits
from locus_mysql.runtime.database import Database
from locus_mysql.transfer.engine import TransferReport, transfer

from ..built_in import open_built_in
from ..conftest import MakeConfig
from .conftest import conversation, save_all

pytestmark = pytest.mark.slow

RunSql = Callable[..., tuple[Any, ...]]


@pytest.fixture
async def built_in(make_config: MakeConfig) -> AsyncIterator[StorageBackendAdapter]:
    checkpointer = open_built_in(make_config())
    yield checkpointer
    await checkpointer.close()


async def run_import(config: MySQLConfig, *, verify: bool = False, **options: Any) -> tuple[TransferReport, list[str]]:
    reported: list[str] = []
    source = BuiltInSource(options.pop("source", config), options.pop("table", "checkpoints"), reported.append)
    operations = LocusOperations(config, None, None, None)
    target = AgentTables(Database(config), operations, owned=True)
    try:
        report, units = TransferReport(notify=reported.append), ThreadUnits(source, None, "*")
        await transfer(units, ThreadTarget(units, target, verify=verify, overwrite=False), report, at_once=4)
    finally:
        await source.close()
        await target.close()
    return report, reported


async def test_states_ids_order_metadata_and_times_are_those_of_the_source(
    built_in: StorageBackendAdapter, config: MySQLConfig, run_sql: RunSql
) -> None:
    states = conversation(4)
    await save_all(built_in, "support/42", states)
    run_sql(f"UPDATE {config.database}.checkpoints SET updated_at = updated_at - INTERVAL 1 DAY")

    summary, reported = await run_import(config)

    assert (summary.threads, summary.copied, summary.complete) == (1, 4, True)
    assert not reported
    async with MySQLCheckpointer(config) as checkpointer:
        assert await checkpointer.list_checkpoints("support/42") == await built_in.list_checkpoints("support/42")
        assert await checkpointer.load("support/42") == await built_in.load("support/42") == states[-1]
        history = await checkpointer.history("support/42")
        for index, state in enumerate(states):
            assert await checkpointer.load("support/42", f"cp-{index}") == state
        assert [entry["metadata"] for entry in reversed(history)] == [
            {"place": index, "tag": {"a": [1, None]}} for index in range(4)
        ]
        index = await built_in._backend.load("support/42:_checkpoints")
        stamps = {one["checkpoint_id"]: datetime.fromisoformat(one["timestamp"]) for one in index["checkpoints"]}
        assert {entry["checkpoint_id"]: entry["created_at"] for entry in history} == stamps
        assert [hit["checkpoint_id"] for hit in await checkpointer.search("Question", 10)]
    ((first, last),) = run_sql(f"SELECT created_at, updated_at FROM {config.database}.locus_threads")
    assert (first.replace(tzinfo=UTC), last.replace(tzinfo=UTC)) == (min(stamps.values()), max(stamps.values()))


async def test_thread_ids_may_hold_colons_wildcards_and_each_other(
    built_in: StorageBackendAdapter, config: MySQLConfig
) -> None:
    threads = ["a", "a:b", "a:b:c", "a_b", "a%", "a\\b", "axb", "tenant:1:latest", "ünï:☃"]
    for number, thread in enumerate(threads, 1):
        await save_all(built_in, thread, conversation(number), prefix=f"step:{number}")
    summary, reported = await run_import(config)
    assert (summary.threads, summary.copied, summary.complete) == (len(threads), sum(range(1, 10)), True)
    assert not reported
    async with MySQLCheckpointer(config) as checkpointer:
        assert set(await checkpointer.list_threads()) == set(threads)
        for thread in threads:
            assert await checkpointer.list_checkpoints(thread, 99) == await built_in.list_checkpoints(thread, 99)
            assert await checkpointer.load(thread) == await built_in.load(thread)


async def test_checkpoints_that_the_list_lost_are_copied_in_their_order(
    built_in: StorageBackendAdapter, config: MySQLConfig
) -> None:
    states = conversation(6)
    await save_all(built_in, "t", states)
    index = await built_in._backend.load("t:_checkpoints")
    index["checkpoints"] = index["checkpoints"][::3]
    await built_in._backend.save("t:_checkpoints", index)
    await save_all(built_in, "without-list", states[:2])
    await built_in._backend.delete("without-list:_checkpoints")

    summary, _ = await run_import(config)

    assert summary.copied == 8
    async with MySQLCheckpointer(config) as checkpointer:
        assert await checkpointer.list_checkpoints("t") == [f"cp-{index}" for index in reversed(range(6))]
        assert await checkpointer.load("t", "cp-3") == states[3]
        assert await checkpointer.load("without-list") == states[1]


async def test_verify_finds_planted_differences_names_a_few_and_counts_the_others(
    built_in: StorageBackendAdapter, config: MySQLConfig, run_sql: RunSql
) -> None:
    await save_all(built_in, "t", conversation(9))
    await run_import(config)
    async with MySQLCheckpointer(config) as checkpointer:  # so that the next copy does not replace the thread
        await checkpointer.save(conversation(1)[0], "t", "own")
    table, where = f"{config.database}.checkpoints", "WHERE thread_id LIKE 't:cp-%%'"
    run_sql(f"UPDATE {table} SET data = JSON_SET(data, '$._metadata.place', 'elsewhere') {where}")
    run_sql(f"UPDATE {table} SET data = JSON_SET(data, '$.messages[1].content', 'planted') WHERE thread_id = 't:cp-1'")
    assert (await run_import(config))[0].complete  # the same ids
    report, reported = await run_import(config, verify=True)
    assert (report.verified, report.differing, len(reported)) == (0, 9, 5)
    assert sum("its state differs" in line for line in reported) == 1
    assert reported[-1] == "5 more checkpoints of thread 't' likewise: its metadata differ."


async def test_threads_whose_names_collide_are_separated_and_reported(
    built_in: StorageBackendAdapter, config: MySQLConfig
) -> None:
    bob, other = conversation(1)[0], conversation(2)[1]
    await built_in.save(bob, "user-Bob")
    await built_in.save(other, "user-bob")
    assert await built_in.load("user-Bob") == other  # a bug of the built-in backend

    summary, reported = await run_import(config)

    assert summary.copied == 2
    assert "'user-bob' shared its list with 'user-Bob'" in "".join(reported)
    async with MySQLCheckpointer(config) as checkpointer:
        assert await checkpointer.load("user-Bob") == bob
        assert await checkpointer.load("user-bob") == other


async def test_the_source_may_be_elsewhere_and_is_only_read(
    built_in: StorageBackendAdapter,
    config: MySQLConfig,
    make_config: MakeConfig,
    run_sql: RunSql,
) -> None:
    await save_all(built_in, "t", conversation(2))
    elsewhere = f"{config.database}_to"
    run_sql(f"CREATE DATABASE {elsewhere}")
    reader = f"r{config.database[-16:]}"
    run_sql(f"CREATE USER {reader} IDENTIFIED BY 'secret'")
    try:
        run_sql(f"GRANT SELECT ON {config.database}.* TO {reader}")
        before = run_sql(f"CHECKSUM TABLE {config.database}.checkpoints")
        source = make_config(user=reader, password="secret")
        summary, _ = await run_import(make_config(database=elsewhere, tenant="acme"), source=source)
        assert summary.copied == 2
        assert run_sql(f"CHECKSUM TABLE {config.database}.checkpoints") == before
        assert run_sql(f"SHOW TABLES FROM {config.database}") == (("checkpoints",),)
        async with MySQLCheckpointer(make_config(database=elsewhere, tenant="acme")) as checkpointer:
            assert await checkpointer.list_threads() == ["t"]
            with checkpointer.tenant_scope("default"):
                assert await checkpointer.list_threads() == []
    finally:
        run_sql(f"DROP USER {reader}")
        run_sql(f"DROP DATABASE {elsewhere}")


async def test_unreadable_and_unstorable_checkpoints_are_reported_and_all_others_are_copied(
    built_in: StorageBackendAdapter, config: MySQLConfig
) -> None:
    await save_all(built_in, "t", conversation(3))
    broken = await built_in._backend.load("t:cp-1")
    broken["messages"] = "none"
    await built_in._backend.save("t:cp-1", broken)
    await built_in.save(conversation(1)[0], "t", "i" * 129)
    await built_in._backend.save("plain", {"not": "a checkpoint"})

    summary, reported = await run_import(config)

    assert (summary.copied, summary.left_out, summary.complete) == (2, 2, False)
    assert summary.not_given == {"1 row of its table, not of a checkpointer"}
    assert "'cp-1' of thread 't' was left out" in "".join(reported)
    assert "129 characters" in "".join(reported)
    async with MySQLCheckpointer(config) as checkpointer:
        assert await checkpointer.list_checkpoints("t") == ["cp-2", "cp-0"]
    summary, _ = await run_import(config)
    assert (summary.copied, summary.present, summary.left_out) == (0, 2, 2)


async def test_more_rows_than_a_page_are_all_copied(
    built_in: StorageBackendAdapter, config: MySQLConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locus_mysql.integrations.locus.transfer.built_in_table.KEYS_PAGE", 3)
    monkeypatch.setattr("locus_mysql.integrations.locus.transfer.built_in_table.STATES_PAGE", 2)
    states = conversation(5)
    for thread in ("a", "b", "a:c"):
        await save_all(built_in, thread, states)
    summary, _ = await run_import(config)
    assert (summary.threads, summary.copied) == (3, 15)


async def test_a_missing_or_foreign_table_and_a_bad_name_are_named(config: MySQLConfig, run_sql: RunSql) -> None:
    with pytest.raises(SchemaMismatch, match=r"'checkpoints' in database .* does not exist"):
        await run_import(config)
    run_sql(f"CREATE TABLE {config.database}.checkpoints (id INT)")
    with pytest.raises(SchemaMismatch, match="is not of Locus' built-in backend"):
        await run_import(config)
    with pytest.raises(ConfigError):
        await run_import(config, table="a`; DROP TABLE b")
