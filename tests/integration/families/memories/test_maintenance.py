"""Vacuum and health of long-term memory: obsolete rows are counted and removed, and nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import MySQLConfig, SyncMemoryStore
from locus_mysql.cli import main as cli
from locus_mysql.dialect.sql import SQL
from locus_mysql.families.memories import maintenance, writing
from locus_mysql.families.memories.family import MEMORIES
from locus_mysql.memory import Put
from locus_mysql.records import ledger

from ...commands import dsn_of
from ...conftest import MakeConfig
from .conftest import Make

HERE = ("n",)
NOTHING = [0, 0, 0, 0]


async def carry_out(store: Any, operation: Any) -> list[int]:
    outcome = store.store._run_step(operation)
    counts = await outcome if inspect.isawaitable(outcome) else outcome
    return [count.number for count in counts]


async def waste(store: Any) -> list[int]:
    """Count the waste: expired items, items without a row, marks of removed embeddings, and tokens."""
    config = store.store.config
    return await carry_out(store, MEMORIES.maintenance(config).waste(config.tenant))


async def vacuum(store: Any) -> list[int]:
    """Vacuum, and return the same counts for the removed rows."""
    config = store.store.config
    return await carry_out(store, MEMORIES.maintenance(config).vacuum(config.tenant))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no marks of removed embeddings for caches."""
    monkeypatch.setattr(maintenance, "REMOVED_KEPT_US", -1_000_000)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use batches so small that a vacuum needs several."""
    monkeypatch.setattr(maintenance, "AT_ONCE", 3)
    monkeypatch.setattr(writing, "REMOVED_AT_ONCE", 2)


async def test_vacuum_removes_expired_and_orphaned_rows_and_nothing_else(
    small: None, memories: Any, make_memories: Make, sql: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_memories(dims=3, tenant="acme")
    for store in (memories, other):
        await store.put_batch([Put(("n", str(n % 4)), f"k{n}", n, embedding=[n + 1, 2, 3]) for n in range(20)])
        await store.put_batch([Put(("e",), f"x{n}", n, embedding=[n + 1, 2, 3], ttl_s=900) for n in range(8)])
        await store.delete_batch([(("n", str(n % 4)), f"k{n}") for n in range(5)])
    assert await vacuum(memories) == NOTHING
    everything = await memories.search(embedding=[1, 2, 3], limit=100, exact=True)
    assert len(everything) == 23
    sql("UPDATE locus_memory_items SET expires_at = '2000-01-01' WHERE item_key < 'x7' AND ttl_us")
    sql("DELETE FROM locus_memory_items WHERE item_key LIKE 'k1_' AND tenant = 'default'")
    sql("DELETE FROM locus_memory_vectors WHERE item_key = 'k11' AND tenant = 'default'")
    sql("UPDATE locus_memory_ledger SET recorded_at = recorded_at - INTERVAL 1 DAY")
    assert await waste(memories) == [7, 10, 5, 3]
    monkeypatch.setattr(maintenance, "REMOVED_KEPT_US", -1_000_000)
    expired, loose, removed, tokens = await vacuum(memories)
    assert (expired, loose, tokens) == (7, 10, 6)
    assert removed >= 5 + 7 + 9  # nothing is left of the embedding that was deleted by hand
    assert await vacuum(memories) == NOTHING
    assert (await waste(memories))[:3] == [0, 0, 0]  # the vacuum's own tokens are too new to remove
    assert sorted(hit.item.key for hit in await memories.search(embedding=[1, 2, 3], limit=100)) == sorted(
        ["x7", *(f"k{n}" for n in range(5, 10))]
    )
    for table, owner in (("vectors", "tenant"), ("signs", "SUBSTRING_INDEX(owner, 0x00, 1)")):
        assert sql(f"SELECT COUNT(*) FROM locus_memory_{table} WHERE {owner} = 'default'") == ((6,),)
        assert sql(f"SELECT COUNT(*) FROM locus_memory_{table} WHERE {owner} = 'acme'")[0][0] >= 23
    assert len(await other.search(embedding=[1, 2, 3], limit=100)) == 16


async def test_a_cache_is_right_after_a_vacuum(
    at_once: None, memories: Any, make_memories: Make, sql: Callable[..., Any]
) -> None:
    reader = make_memories(dims=3)
    await memories.put_batch([Put(HERE, f"k{n}", n, embedding=[n + 1, 2, 3]) for n in range(5)])
    assert len(await reader.search(embedding=[1, 2, 3], exact=True)) == 5
    await memories.delete(HERE, "k0")
    sql("DELETE FROM locus_memory_items WHERE item_key = 'k1'")
    await vacuum(memories)
    await memories.put(HERE, "k0", "again", embedding=[0, 0, 1])
    found = await reader.search(embedding=[0, 0, 1])
    assert [hit.item.key for hit in found[:1]] == ["k0"]
    assert {hit.item.key for hit in found} == {"k0", "k2", "k3", "k4"}


def test_tables_of_others_are_not_taken_for_memus(
    make_config: MakeConfig, run_sql: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    config: MySQLConfig = make_config(driver="pymysql")
    dsn = ["--dsn", dsn_of(config)]
    run_sql(f"CREATE TABLE {config.database}.resources (id INT)")
    with SyncMemoryStore(config) as store:
        assert store.count() == 0
    assert cli.main(["health", *dsn]) == 0
    output = capsys.readouterr().out
    assert "items    0 of tenant 'default', family memories\n" in output
    assert "memu" not in output
    assert cli.main(["health", "--family", "memu", *dsn]) == 1
    assert "Table 'resources' in database" in capsys.readouterr().out


async def test_a_write_now_and_then_removes_what_expired(
    memories: Any, sql: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await memories.put(HERE, "gone", 1, ttl_s=900)
    sql("UPDATE locus_memory_items SET expires_at = '2000-01-01'")
    await memories.put(HERE, "first", 1)
    assert len(sql("SELECT item_key FROM locus_memory_items")) == 2
    monkeypatch.setattr(ledger, "one_in", lambda every: True)
    await memories.put(HERE, "second", 1)
    assert sql("SELECT item_key FROM locus_memory_items ORDER BY item_key") == ((b"first",), (b"second",))


async def test_a_write_succeeds_though_the_housekeeping_behind_it_fails(
    memories: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ledger, "one_in", lambda every: True)
    monkeypatch.setattr(ledger, "FORGET_OLD", SQL("DELETE FROM nowhere"))
    await memories.put(HERE, "a", 1, if_version=0)
    await memories.put(HERE, "a", 2, if_version=1)
    assert (await memories.get_item(HERE, "a")).version == 2
    assert "the housekeeping after it failed" in caplog.text
