"""The log: messages, their levels, and data that is never logged."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql import MySQLCheckpointer, SyncMySQLCheckpointer
from locus_mysql.dialect import Statement
from locus_mysql.engine.execution import AsyncEngine, SyncEngine
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.errors import Unavailable

from ..either_side import AnyStore
from .conftest import EACH_WAY, ONE_OF_EACH, MakeConfig, OpenStore
from .proxy import WireProxy

#: The user's data. None may be logged at INFO or above, and the last two at no level.
TENANT, THREAD, CHECKPOINT, METADATA, STATE = (
    "tenant-7f3'a", "thread-91c\"b", "checkpoint-5d2'", "metadata-b8e'); DROP --", "state-e04\\' \n OR 1=1",
)  # fmt: skip


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG, "locus_mysql"):
        yield caplog


def records(logged: pytest.LogCaptureFixture, topic: str) -> list[tuple[str, str]]:
    """Return the levels and texts of a logger's messages."""
    return [(one.levelname, one.getMessage()) for one in logged.records if one.name == f"locus_mysql.{topic}"]


def through(proxy: WireProxy, make_config: MakeConfig, **options: Any) -> Any:
    return make_config(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", **options)


@pytest.mark.parametrize("side", EACH_WAY)
async def test_a_lost_connection_and_the_retry(
    make_config: MakeConfig, open_store: OpenStore, proxy: WireProxy, logged: pytest.LogCaptureFixture, side: str
) -> None:
    store = open_store(side, config=through(proxy, make_config))
    await store.save("t", {"n": 0})
    proxy.drop_before()
    await store.save("t", {"n": 1})
    await store.close()
    where = f"127.0.0.1:{proxy.port}"
    opened, lost, again, closed = records(logged, "connections")
    assert re.fullmatch(rf"Opened a connection to MySQL \S+ at {where} in \d+ ms\.", opened[1])
    assert (opened[0], lost[0], again[0], closed[0]) == ("DEBUG", "WARNING", "DEBUG", "DEBUG")
    assert lost[1].startswith(f"Lost a connection to MySQL at {where} in use, and dropped 0 idle ones: Lost the conn")
    assert closed[1] == f"Closed a connection to MySQL at {where}: the pool was closed."
    ((level, retried),) = records(logged, "retries")
    assert level == "INFO"
    assert re.match(r"A batch is sent again in \d+ ms: Lost the connection to MySQL", retried)


@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_a_connection_that_was_ended_while_idle(
    open_store: OpenStore, run_sql: Callable[..., Any], database: str, logged: pytest.LogCaptureFixture, side: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    store = open_store(side)
    await store.save("t", {"n": 0})
    for (number,) in run_sql("SELECT ID FROM performance_schema.processlist WHERE DB = %s", database):
        run_sql(f"KILL {number}")
    monkeypatch.setattr("locus_mysql.engine.pool.PING_AFTER_S", -1)
    await store.save("t", {"n": 1})
    opened, gone, again = records(logged, "connections")
    assert (opened[0], gone[0], again[0]) == ("DEBUG", "INFO", "DEBUG")
    assert "was gone when it was to be used again; it and 0 idle ones were dropped" in gone[1]
    assert records(logged, "retries") == []


async def test_a_cancelled_call_is_everyday_life(
    make_config: MakeConfig, open_store: OpenStore, proxy: WireProxy, logged: pytest.LogCaptureFixture
) -> None:
    store = open_store("asyncmy-async", config=through(proxy, make_config))
    await store.save("t", {"n": 0})
    proxy.swallow_answer()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await store.count()
    assert [level for level, _ in records(logged, "connections")] == ["DEBUG"] * 2
    assert "in use: CancelledError." in records(logged, "connections")[1][1]


@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_slow_calls(open_store: OpenStore, logged: pytest.LogCaptureFixture, side: str) -> None:
    await open_store(side).save(THREAD, {"n": 0})
    await open_store(side, slow_ms=600_000).load(THREAD)
    assert records(logged, "calls") == []
    await open_store(side, slow_ms=0, tenant=TENANT).load(THREAD)
    ((level, words),) = records(logged, "calls")
    assert level == "WARNING"
    assert re.fullmatch(r"load took \d+ ms; slow_ms is 0\.", words)
    with pytest.raises(Unavailable):
        await open_store(side, slow_ms=0, host="127.0.0.1", port=1).load(THREAD)
    assert re.fullmatch(r"load took \d+ ms and failed with Unavailable; slow_ms is 0\.", records(logged, "calls")[1][1])


@pytest.mark.parametrize("kind", [AsyncEngine, SyncEngine])
async def test_a_conflict(make_config: MakeConfig, logged: pytest.LogCaptureFixture, kind: Any) -> None:
    engine = kind(make_config(driver="mysql-connector"))

    def twice() -> Operation[None]:
        yield Batch.of(Statement("CREATE TABLE t (id VARCHAR(99) PRIMARY KEY)"))
        for _ in range(2):
            yield Batch.of(Statement("INSERT INTO t VALUES (%s)", (THREAD,)))

    async def run() -> None:
        outcome = engine.run(twice())
        if asyncio.iscoroutine(outcome):
            await outcome

    with pytest.raises(Exception, match="Duplicate") as raised:
        await run()
    assert "thread-91c" in str(raised.value)
    assert records(logged, "conflicts") == [
        ("DEBUG", "A batch was undone, because its assumptions do not hold: error 1062.")
    ]
    closed = engine.close()
    if asyncio.iscoroutine(closed):
        await closed


@pytest.mark.parametrize("kind", [MySQLCheckpointer, SyncMySQLCheckpointer])
async def test_why_a_health_check_failed(make_config: MakeConfig, logged: pytest.LogCaptureFixture, kind: Any) -> None:
    well = AnyStore(kind(make_config(driver="mysql-connector")))
    assert await well.health_check() is True
    assert await well.health_check(raises=True) is True
    await well.close()
    assert records(logged, "calls") == []
    unwell = AnyStore(kind(make_config(driver="mysql-connector", host="127.0.0.1", port=1)))
    assert await unwell.health_check() is False
    ((level, words),) = records(logged, "calls")
    assert level == "WARNING"
    assert words.startswith("A health check failed: Unavailable (Cannot connect to MySQL at 127.0.0.1:1: ")
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        await unwell.health_check(raises=True)


@pytest.mark.parametrize("kind", [MySQLCheckpointer, SyncMySQLCheckpointer])
async def test_a_server_that_takes_no_writes_is_not_well(
    own_config: MakeConfig, own_sql: Callable[..., Any], logged: pytest.LogCaptureFixture, kind: Any
) -> None:
    checkpointer = AnyStore(kind(own_config(driver="mysql-connector")))
    assert await checkpointer.health_check()
    own_sql("SET GLOBAL super_read_only = ON")
    try:
        assert await checkpointer.health_check() is False
    finally:
        own_sql("SET GLOBAL read_only = OFF")
    assert records(logged, "calls") == [("WARNING", "A health check failed: ReadOnlyServer.")]
    await checkpointer.close()


@pytest.mark.parametrize("side", EACH_WAY)
async def test_no_log_record_contains_user_data(
    make_config: MakeConfig, open_store: OpenStore, proxy: WireProxy, run_sql: Callable[..., Any], database: str,
    logged: pytest.LogCaptureFixture, side: str,
) -> None:  # fmt: skip
    password = make_config().password.get_secret_value()
    options = {"tenant": TENANT, "slow_ms": 0, "ttl_s": 1_000, "keep_checkpoints": 2}
    store = open_store(side, config=through(proxy, make_config, **options))
    copies = iter(f"{THREAD}-{number}" for number in range(3))
    for fault in (None, proxy.drop_before, proxy.drop_after_send):
        for call in (
            lambda: store.save(THREAD, {"text": STATE}, CHECKPOINT, {"key": METADATA}),
            lambda: store.load(THREAD),
            lambda: store.load(THREAD, CHECKPOINT),
            lambda: store.query_by_metadata("key", METADATA),
            lambda: store.search(STATE),
            lambda: store.copy_thread(THREAD, next(copies)),
            lambda: store.vacuum(),
            lambda: store.get_disk_usage(THREAD),
        ):
            if fault is not None:
                fault()
            await call()
    run_sql(f"UPDATE {database}.locus_store_checkpoints SET metadata = '{{\"broken'")
    assert await store.list_with_metadata() == []
    await store.delete(THREAD, CHECKPOINT)
    await store.forget_tenant()
    await store.close()

    assert {one.levelname for one in logged.records} == {"DEBUG", "INFO", "WARNING"}
    everyday = [one.getMessage() for one in logged.records if one.levelno < logging.INFO]
    noticed = [one.getMessage() for one in logged.records if one.levelno >= logging.INFO]
    assert any("thread-91c" in words for words in everyday)
    for secret in ("metadata-b8e", "state-e04", password):
        assert not [words for words in everyday + noticed if secret in words]
    for identity in ("tenant-7f3", "thread-91c", "checkpoint-5d2"):
        assert not [words for words in noticed if identity in words]
    assert not [one for one in logged.records if one.exc_info or one.stack_info]
