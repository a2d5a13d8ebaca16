"""Secondaries answer reads if the user wants it, and never miss a transaction that this process has seen."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
import pytest

from locus_mysql.engine import secondaries, secondary
from locus_mysql.engine.gtids import GTIDs
from locus_mysql.errors import ReadOnlyServer

from .conftest import EVERY_SIDE, GROUP_TAKES_S, Group, Member, Store

OpenStore = Callable[..., Store]

#: In seconds: longer than a query to another server on a slow machine, shorter than ``read_timeout_s``.
NO_TIME_OUT_S = 40.0

one_of_each = pytest.mark.parametrize("side", ["mysql-connector-async", "pymysql-sync"])


@contextmanager
def counted(member: Member, database: str) -> Iterator[Callable[[], int]]:
    """Count the statements of this block that a member received and that only read the tables of a schema.

    The server counts statements by digest and by the schema that the session selected.
    """

    def count() -> int:
        rows = member.run(
            "SELECT COALESCE(SUM(count_star), 0) FROM performance_schema.events_statements_summary_by_digest"
            f" WHERE schema_name = '{database}' AND digest_text REGEXP '^(SELECT|WITH).*locus_store'"
        )
        return int(rows[0][0])

    before = count()
    yield lambda: count() - before


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "locus_mysql.servers" and "secondary" in record.getMessage()
    ]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the wait for secondaries, which apply transactions slowly on a busy machine."""
    monkeypatch.setattr(secondaries, "LAG_S", 60.0)


async def catch_up(group: Group) -> None:
    """Wait until all members have executed the primary's transactions."""
    executed = group.primary().executed()
    for member in group.members:
        await asyncio.to_thread(member.wait_for, executed)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("side", EVERY_SIDE)
async def test_lists_come_from_a_secondary_and_show_each_save_and_loads_come_from_the_primary(
    group: Group, open_store: OpenStore, database: str, side: str
) -> None:
    primary, (first, second) = group.primary(), group.secondaries()
    store = open_store(side, reads="secondary")
    await store.save("thread 0", {"turn": 0, "word": "zebra"})
    await catch_up(group)
    with counted(first, database) as at_first, counted(second, database) as at_second:
        for number in range(1, 6):
            await store.save(f"thread {number}", {"turn": number})
            with counted(primary, database) as at_primary:
                assert (await store.list_threads())[0] == f"thread {number}"
                assert await store.count() == number + 1
                assert at_primary() == 0
        assert at_first() + at_second() == 10
        assert await store.load("thread 5") == {"turn": 5}
        assert await store.load("thread 4") == {"turn": 4}
        assert at_first() + at_second() == 10
        assert [hit["thread_id"] for hit in await store.search("zebra")] == ["thread 0"]
        assert at_first() + at_second() > 10
    await store.close()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("side", EVERY_SIDE)
async def test_an_inspecting_store_loads_from_a_secondary_and_writes_nothing(
    group: Group, open_store: OpenStore, database: str, side: str
) -> None:
    primary, (first, second) = group.primary(), group.secondaries()
    writer = open_store(side)
    await writer.save("thread", {"turn": 0}, "turn 0")
    reader = open_store(side, reads="inspect")
    for turn in range(1, 6):  # the reader's existence makes the writer record its GTIDs
        await writer.save("thread", {"turn": turn}, f"turn {turn}")
        assert await reader.load("thread") == {"turn": turn}
    with (
        counted(primary, database) as at_primary,
        counted(first, database) as at_first,
        counted(second, database) as at_second,
    ):
        assert await reader.load("thread") == {"turn": 5}
        assert await reader.load("thread", "turn 1") == {"turn": 1}
        assert (await reader.history("thread"))[0]["parent_id"] == "turn 4"
        assert await reader.exists("thread")
        assert await reader.search("nothing") == []
        assert at_first() + at_second() >= 5
        assert at_primary() == 0
    for write in (
        lambda: reader.save("thread", {"turn": 6}),
        lambda: reader.delete("thread"),
        lambda: reader.copy_thread("thread", "other"),
        lambda: reader.vacuum(0),
    ):
        with pytest.raises(ReadOnlyServer, match="inspect"):
            await write()
    assert await writer.list_checkpoints("thread") == [f"turn {turn}" for turn in range(5, -1, -1)]
    for store in (reader, writer):
        await store.close()


@pytest.mark.parametrize("side", EVERY_SIDE)
async def test_a_read_waits_for_a_lagging_secondary_and_then_goes_to_the_primary(
    group: Group,
    open_store: OpenStore,
    database: str,
    side: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(secondaries, "PRIMARY_ONLY_S", 0.0)
    monkeypatch.setattr(secondaries, "LAG_S", 0.2)
    caplog.set_level(logging.INFO, "locus_mysql.servers")
    primary, (behind, _) = group.primary(), group.secondaries()
    store = open_store(side, primary, behind, reads="secondary")
    looker = open_store(side, behind, primary, reads="inspect")
    await store.save("thread", {"turn": 1})
    await catch_up(group)
    with behind.lagging(database):
        for turn in range(2, 5):
            await store.save("thread", {"turn": turn})
            await store.save(f"thread {turn}", {"turn": turn})
            assert (await store.list_threads())[0] == f"thread {turn}"
            assert await looker.load("thread") == {"turn": turn}
            assert await looker.count() == turn
        assert behind.run(f"SELECT COUNT(*) FROM {database}.locus_store_threads") == ((1,),)
        assert len(logged(caplog)) == 2  # one message per store
        assert "lags behind" in logged(caplog)[0]
    await catch_up(group)
    monkeypatch.setattr(secondaries, "LAG_S", 60.0)
    await store.list_threads()  # GTIDs of transactions that were being committed are queried again
    await looker.count()
    with counted(behind, database) as at_secondary:
        assert await store.count() == 4
        assert await looker.load("thread") == {"turn": 4}
        assert at_secondary() >= 2
    assert "again" in caplog.text
    for one in (store, looker):
        await one.close()


@one_of_each
async def test_transactions_read_from_one_secondary_are_visible_on_the_next(
    group: Group, open_store: OpenStore, database: str, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process wrote the row, so this process learns of the transaction only by reading a secondary."""
    monkeypatch.setattr(secondaries, "LAG_S", 0.2)
    primary, (ahead, behind) = group.primary(), group.secondaries()
    looker = open_store(side, ahead, behind, primary, reads="inspect")
    await open_and_save(open_store, side, "thread", 1)
    await catch_up(group)
    assert await looker.load("thread") == {"turn": 1}
    with behind.lagging(database):
        other = pymysql.connect(
            host="127.0.0.1",
            port=primary.port,
            user="root",
            password=group.config.password.get_secret_value(),
            database=database,
            autocommit=True,
        )
        with other, other.cursor() as cursor:  # not through this package, which would record the GTID
            cursor.execute("UPDATE locus_store_threads SET thread_id = 'moved'")
        ahead.wait_for(primary.executed())
        deadline = time.monotonic() + GROUP_TAKES_S
        seen: list[list[str]] = []
        while not seen or seen[-1] != ["moved"]:  # from either secondary
            seen.append(await looker.list_threads())
            assert time.monotonic() < deadline
            if seen[-1] != ["moved"]:
                await looker.close()  # the next connection may be to the other secondary
        for _ in range(8):
            await looker.close()
            assert await looker.list_threads() == ["moved"]
    await looker.close()


@one_of_each
async def test_a_secondary_outside_its_group_is_not_read(
    group: Group, open_store: OpenStore, side: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secondaries, "PRIMARY_ONLY_S", 0.0)
    monkeypatch.setattr(secondary, "CHECK_EVERY_S", 0.0)
    primary, (outside, _) = group.primary(), group.secondaries()
    store = open_store(side, outside, primary, reads="inspect")
    writer = open_store(side, primary, outside)
    await writer.save("thread", {"turn": 1})
    await asyncio.to_thread(outside.wait_for, primary.executed())
    assert await store.load("thread") == {"turn": 1}
    outside.run("STOP GROUP_REPLICATION")
    assert await store.load("thread") == {"turn": 1}
    assert any("its state is OFFLINE" in line for line in logged(caplog))
    await writer.save("thread", {"turn": 2})
    assert await store.load("thread") == {"turn": 2}
    for one in (store, writer):
        await one.close()


@one_of_each
@pytest.mark.parametrize("way", ["freeze", "kill"])
async def test_the_primary_answers_within_seconds_when_a_secondary_falls_silent(
    group: Group, open_store: OpenStore, side: str, way: str
) -> None:
    primary, (silent, _) = group.primary(), group.secondaries()
    store = open_store(side, silent, primary, reads="inspect")
    await open_and_save(open_store, side, "thread", 1)
    await catch_up(group)
    for _ in range(2):  # the primary may answer the first load, as this process's GTIDs were not recorded yet
        assert await store.load("thread") == {"turn": 1}
    began = time.monotonic()
    getattr(silent, way)()
    assert await store.load("thread") == {"turn": 1}
    assert time.monotonic() - began < NO_TIME_OUT_S
    silent.thaw()
    await store.close()


async def open_and_save(open_store: OpenStore, side: str, thread_id: str, turn: int) -> None:
    store = open_store(side)
    await store.save(thread_id, {"turn": turn})
    await store.close()


def test_unions_of_gtid_sets_equal_the_servers(group: Group) -> None:
    primary = group.primary()
    uuid = str(primary.run("SELECT UUID()")[0][0])
    some, others = f"{uuid}:1-5:9:20-30", f"{uuid}:6-7:10:25-40,{uuid}:audit:3"
    mine = str(GTIDs.read(some) | GTIDs.read(others))
    for one in (some, others):
        assert primary.run(f"SELECT GTID_SUBSET('{one}', '{mine}')")[0][0] == 1
    assert primary.run(f"SELECT GTID_SUBTRACT(GTID_SUBTRACT('{mine}', '{some}'), '{others}')")[0][0] == ""
    executed = primary.executed()
    assert primary.run(f"SELECT GTID_SUBSET('{executed}', '{GTIDs.read(executed)}')")[0][0] == 1


@pytest.mark.parametrize("reads", ["secondary", "inspect"])
@one_of_each
async def test_with_one_host_no_other_server_is_queried(
    group: Group, open_store: OpenStore, side: str, reads: str
) -> None:
    await open_and_save(open_store, side, "thread", 1)
    store = open_store(side, group.primary(), reads=reads)
    calls: list[Any] = [await store.load("thread"), await store.count(), await store.list_threads()]
    assert calls == [{"turn": 1}, 1, ["thread"]]
    await store.close()


@one_of_each
async def test_a_secondary_without_a_primary_can_be_inspected(group: Group, open_store: OpenStore, side: str) -> None:
    primary, (secondary, _) = group.primary(), group.secondaries()
    writing = open_store("pymysql-sync", primary)
    await writing.save("thread", {"turn": 1})
    secondary.wait_for(primary.executed())
    inspecting = open_store(side, secondary, reads="inspect")
    assert await inspecting.load("thread") == {"turn": 1}
    for store in (writing, inspecting):
        await store.close()
