"""Pages hold every entry once and read a bounded number of rows; estimates examine a bounded number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from bench.seals import row_seal
from locus_mysql import MySQLConfig
from locus_mysql.errors import InvalidInput
from locus_mysql.families.checkpoints import pages
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.families.inspection.cursors import to_cursor

from ...rows_read import rows_read
from .conftest import Make, RunSQL, side_name

pytestmark = pytest.mark.kept_tables

FEW, MANY = 2_000, 20_000

#: The methods with pages, each with the arguments that select everything.
LISTS: list[tuple[str, tuple[Any, ...]]] = [
    ("threads_page", ()),
    ("list_with_metadata_page", ()),
    ("query_by_metadata_page", ("kind", "all")),
]


def name_of(entry: Any) -> tuple[str, str | None]:
    """Return the thread of an entry, and its checkpoint if it has one."""
    return (entry, None) if isinstance(entry, str) else (entry["thread_id"], entry["checkpoint_id"])


async def all_pages(store: Any, method: str, *args: Any, limit: int, **options: Any) -> list[list[Any]]:
    found, cursor = [], None
    while True:
        page = await getattr(store, method)(*args, limit=limit, cursor=cursor, **options)
        assert len(page.items) <= limit
        found.append(list(page.items))
        cursor = page.cursor
        if cursor is None:
            return found
        assert len(found) < 1_000, "there is no end"


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


class TestPages:
    @pytest.mark.parametrize("limit", [1, 4, 1_000])
    async def test_all_pages_together_have_what_the_whole_list_has(self, store: Any, limit: int) -> None:
        for number in range(9):
            await store.save(f"t{number % 5}", {"n": number}, str(number), {"kind": "all", "odd": number % 2})
        listed = [entry for page in await all_pages(store, "threads_page", limit=limit) for entry in page]
        assert listed == await store.list_threads()
        newest = [entry for page in await all_pages(store, "list_with_metadata_page", limit=limit) for entry in page]
        assert newest == await store.list_with_metadata()
        for pair in (("kind", "all"), ("odd", 1), ("odd", 2)):
            found = [
                one for page in await all_pages(store, "query_by_metadata_page", *pair, limit=limit) for one in page
            ]
            expected = await store.query_by_metadata(*pair)
            assert sorted(found, key=name_of) == sorted(expected, key=name_of)
            assert [one["thread_id"] for one in found] == sorted(one["thread_id"] for one in expected)

    @pytest.mark.parametrize(("method", "args"), LISTS)
    async def test_entries_that_nobody_changes_are_found_exactly_once(
        self, store: Any, make_store: Make, method: str, args: tuple[Any, ...]
    ) -> None:
        other = make_store()
        for number in range(20):
            await store.save(f"t{number:02}", {}, "first", {"kind": "all"})
        found, cursor, turn = [], None, 0
        while True:
            page = await getattr(store, method)(*args, limit=3, cursor=cursor)
            found += [name_of(entry)[0] for entry in page.items]
            if (cursor := page.cursor) is None:
                break
            await other.save(f"t{turn % 4:02}", {"turn": turn}, metadata={"kind": "all"})
            await other.delete(f"t{19 - turn % 4:02}")
            await other.save(f"new{turn}", {}, metadata={"kind": "all"})
            turn += 1
        unchanged = {f"t{number:02}" for number in range(4, 16)}
        assert sorted(one for one in found if one in unchanged) == sorted(unchanged)

    async def test_a_pattern_selects_threads(self, store: Any) -> None:
        for thread_id in ("a/1", "b/1", "a/2", "b*", "a%"):
            await store.save(thread_id, {})
        for pattern in ("*", "a/*", "*1", "?*", "b*", "nobody*", ""):
            listed = [one for page in await all_pages(store, "threads_page", limit=2, pattern=pattern) for one in page]
            assert listed == await store.list_threads(pattern=pattern)
            estimate = await store.estimate_count(pattern)
            assert (estimate.number, estimate.exact) == (await store.count(pattern), True)

    @pytest.mark.parametrize(("method", "args"), LISTS)
    async def test_a_tenant_finds_nothing_of_another_even_with_its_cursor(
        self, make_store: Make, method: str, args: tuple[Any, ...]
    ) -> None:
        mine, theirs = make_store(tenant="mine"), make_store(tenant="theirs")
        for number in range(4):
            await theirs.save(f"t{number}", {}, metadata={"kind": "all"})
        cursor = (await getattr(theirs, method)(*args, limit=2)).cursor
        assert cursor is not None
        for start in (None, cursor):
            page = await getattr(mine, method)(*args, cursor=start)
            assert (list(page.items), page.cursor) == ([], None)
        for pattern in ("*", "t*"):
            assert await mine.estimate_count(pattern) == pages.CountEstimate(0, 0, exact=True)

    @pytest.mark.parametrize(("method", "args"), LISTS)
    async def test_a_cursor_of_anything_else_is_refused(self, store: Any, method: str, args: tuple[Any, ...]) -> None:
        made = (to_cursor("t"), to_cursor(1, 2), to_cursor("t", 1, 2), to_cursor(True, "t", 1))
        for cursor in ("", "x", "W10", "null", "é", *made):
            with pytest.raises(InvalidInput, match="cursor does not come from a page"):
                await getattr(store, method)(*args, cursor=cursor)

    @pytest.mark.parametrize(("method", "args"), LISTS)
    async def test_limits_are_checked(self, store: Any, method: str, args: tuple[Any, ...]) -> None:
        for limit in (0, -1, "1", None):
            with pytest.raises(InvalidInput):
                await getattr(store, method)(*args, limit=limit)


async def test_expired_threads_are_left_out_and_end_no_list(store: Any, sql: RunSQL) -> None:
    for number in range(12):
        await store.save(f"t{number:02}", {}, metadata={"kind": "all"})
    sql("UPDATE locus_store_threads SET expires_at = NOW(6) - INTERVAL 1 DAY WHERE thread_id NOT IN ('t00', 't11')")
    for method, args in LISTS:
        found = await all_pages(store, method, *args, limit=2)
        assert sorted(name_of(entry)[0] for page in found for entry in page) == ["t00", "t11"]
    assert await store.estimate_count() == pages.CountEstimate(2, 2, exact=True)


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
@pytest.mark.parametrize("side", [("pymysql", False)], ids=side_name)
async def test_a_page_reads_as_much_whatever_the_optimizer_assumes(
    store: Any, raw: pymysql.Connection[Any], sql: RunSQL, many: Callable[..., None], *, analyzed: bool
) -> None:
    await store.save("seed", {}, "c", {"kind": "all"})
    for table in ("locus_store_threads", "locus_store_checkpoints"):
        sql(f"ALTER TABLE {table} STATS_AUTO_RECALC = 0")
        sql(f"ANALYZE TABLE {table}")
    many(1, FEW, analyze=analyzed)
    operations = StoreOperations(MySQLConfig(dsn="mysql://nobody@localhost/unused"))
    for switch in ("", *SWITCHES):
        with raw.cursor() as cursor:
            cursor.execute("SET SESSION optimizer_switch = 'default'")
            cursor.execute("SET SESSION optimizer_switch = %s", (switch,))
        for method, args in LISTS:
            cursor_after = None
            for limit in (20, 360, 20):  # the later a page, the more it reads where it begins at the first entry
                page, number = rows_read(raw, getattr(operations, method)(*args, limit=limit, cursor=cursor_after))
                assert len(page.items) == limit
                assert number <= 15 * limit, (switch, method, number)
                cursor_after = page.cursor


@pytest.mark.parametrize("side", [("pymysql", False)], ids=side_name)
async def test_rows_read_and_estimates_do_not_depend_on_the_number_of_threads(
    store: Any,
    make_store: Make,
    raw: pymysql.Connection[Any],
    many: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await store.save("seed", {}, "c", {"kind": "all", "seed": True})
    operations = StoreOperations(MySQLConfig(dsn="mysql://nobody@localhost/unused"))
    monkeypatch.setattr(pages, "EXAMINED", 1_000)
    read: list[dict[str, int]] = []
    for first, last in ((1, FEW), (FEW + 1, MANY)):
        many(first, last)
        numbers = {}
        for method, args in LISTS:
            page, numbers[method] = rows_read(raw, getattr(operations, method)(*args, limit=100))
            assert len(page.items) == 100
            after, numbers[f"{method}, second"] = rows_read(
                raw, getattr(operations, method)(*args, limit=100, cursor=page.cursor)
            )
            assert len(after.items) == 100
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
