"""The inspector's pages of threads, and estimates of their number, read a bounded number of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from bench.seals import row_seal
from locus_mysql import MySQLConfig
from locus_mysql.families.checkpoints import estimates
from locus_mysql.families.checkpoints.inspection import CheckpointThreads
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.families.inspection.sources import ThreadFilter

from ...rows_read import rows_read
from .conftest import Make, RunSQL

pytestmark = pytest.mark.kept_tables

FEW, MANY = 2_000, 20_000


@pytest.fixture
def many(sql: RunSQL) -> Iterator[Callable[..., None]]:
    """Yield ``copy(first, last)``, which copies the thread ``seed`` to threads with these numbers."""

    def copy(first: int, last: int, *, analyze: bool = True) -> None:
        changed = {"thread_id": "CONCAT(IF(d.n % 4, 'user-', 'team-'), LPAD(d.n, 7, '0'))"}
        changed["updated_at"] = "s.updated_at - INTERVAL d.n SECOND"
        sql("SET SESSION cte_max_recursion_depth = 1000000")
        for table in ("locus_store_threads", "locus_store_checkpoints"):
            columns = [row[0] for row in sql(f"SHOW COLUMNS FROM {table}") if "GENERATED" not in row[5]]
            sql(
                f"INSERT INTO {table} ({', '.join(columns)}) "
                f"WITH RECURSIVE d (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM d WHERE n < {last}) "
                f"SELECT {', '.join(changed.get(name, f's.{name}') for name in columns)} "
                f"FROM d JOIN {table} s WHERE s.thread_id = 'seed'"
            )
        sql(f"UPDATE locus_store_checkpoints c SET seal = {row_seal('c')} WHERE thread_id <> 'seed'")
        if analyze:
            sql("ANALYZE TABLE locus_store_threads, locus_store_checkpoints")

    yield copy
    for table in ("locus_store_threads", "locus_store_checkpoints"):
        sql(f"DELETE FROM {table} WHERE thread_id <> 'seed'")


async def test_an_estimate_of_few_threads_is_exact(store: Any, make_store: Make) -> None:
    for thread_id in ("a/1", "b/1", "a/2", "b*", "a%"):
        await store.save(thread_id, {})
    for pattern in ("*", "a/*", "*1", "?*", "b*", "nobody*", ""):
        estimate = await store.estimate_count(pattern)
        assert (estimate.number, estimate.exact) == (await store.count(pattern), True)
        assert await make_store(tenant="other").estimate_count(pattern) == estimates.CountEstimate(0, 0, exact=True)


async def test_an_estimate_leaves_out_expired_threads(store: Any, sql: RunSQL) -> None:
    for number in range(12):
        await store.save(f"t{number:02}", {})
    sql("UPDATE locus_store_threads SET expires_at = NOW(6) - INTERVAL 1 DAY WHERE thread_id NOT IN ('t00', 't11')")
    assert await store.estimate_count() == estimates.CountEstimate(2, 2, exact=True)


async def test_a_backend_estimates_by_the_patterns_of_its_lists(backend: Any) -> None:
    for number in range(5):
        await backend.save(f"t{number}", {"n": number})
    assert (await backend.estimate_count("t%")).number == 5


#: What other versions and other servers may do: strategies that are off, indexes without the primary key.
SWITCHES = (
    "use_index_extensions=off",
    "prefer_ordering_index=off",
    "derived_merge=off",
    "derived_condition_pushdown=off",
    "condition_fanout_filter=off",
    "index_condition_pushdown=off",
    "block_nested_loop=off",
    "mrr=off",
    "skip_scan=off",
    "semijoin=off",
    "materialization=off",
)


@pytest.mark.parametrize("analyzed", [True, False])
@pytest.mark.parametrize("side", ["pymysql-sync"])
async def test_a_page_reads_as_much_whatever_the_optimizer_assumes(
    store: Any, raw: pymysql.Connection[Any], sql: RunSQL, many: Callable[..., None], *, analyzed: bool
) -> None:
    await store.save("seed", {}, "c", {"kind": "all"})
    for table in ("locus_store_threads", "locus_store_checkpoints"):
        sql(f"ALTER TABLE {table} STATS_AUTO_RECALC = 0")
        sql(f"ANALYZE TABLE {table}")
    many(1, FEW, analyze=analyzed)
    threads = CheckpointThreads(MySQLConfig(dsn="mysql://nobody@localhost/unused"), "dicts")
    for switch in ("", *SWITCHES):
        with raw.cursor() as cursor:
            cursor.execute("SET SESSION optimizer_switch = 'default'")
            cursor.execute("SET SESSION optimizer_switch = %s", (switch,))
        cursor_after = None
        for limit in (20, 360, 20):  # the later a page, the more it reads where it begins at the first entry
            page, number = rows_read(raw, threads.threads(ThreadFilter(), limit, cursor_after))
            assert len(page.items) == limit
            assert number <= 15 * limit, (switch, number)
            cursor_after = page.cursor


@pytest.mark.parametrize("side", ["pymysql-sync"])
async def test_rows_read_and_estimates_do_not_depend_on_the_number_of_threads(
    store: Any,
    make_store: Make,
    raw: pymysql.Connection[Any],
    many: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await store.save("seed", {}, "c", {"kind": "all", "seed": True})
    config = MySQLConfig(dsn="mysql://nobody@localhost/unused")
    operations, threads = StoreOperations(config), CheckpointThreads(config, "dicts")
    monkeypatch.setattr(estimates, "EXAMINED", 1_000)
    read: list[dict[str, int]] = []
    for first, last in ((1, FEW), (FEW + 1, MANY)):
        many(first, last)
        numbers = {}
        page, numbers["page"] = rows_read(raw, threads.threads(ThreadFilter(), 100, None))
        after, numbers["second page"] = rows_read(raw, threads.threads(ThreadFilter(), 100, page.cursor))
        assert len(page.items) == len(after.items) == 100
        for pattern, share in (("*", 1), ("user-*", 0.75), ("team-*", 0.25), ("*0", 0.1)):
            estimate, numbers[f"estimate of {pattern}"] = rows_read(raw, operations.estimate_count(pattern))
            assert not estimate.exact or estimate.number == await store.count(pattern)
            assert abs(estimate.number - last * share) <= 0.25 * last * share, (pattern, estimate)
            assert estimate.at_least <= last * share
        read.append(numbers)
    few, more = read
    for name, number in more.items():
        assert number <= 12_000, (name, number)
        if "estimate" not in name:
            assert number <= few[name] + 20, (name, number, few[name])
