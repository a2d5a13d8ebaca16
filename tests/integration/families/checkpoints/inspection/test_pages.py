"""Pages of threads contain every matching thread once, newest first, and use the indexes."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

import pytest

from locus_mysql import CheckpointStore, MySQLConfig
from locus_mysql.dialect import Statement
from locus_mysql.errors import SchemaMismatch
from locus_mysql.families.checkpoints import inspection
from locus_mysql.families.checkpoints.statements.inspection import CANDIDATES
from locus_mysql.families.checkpoints.statements.tables import checkpoint_dialect
from locus_mysql.families.inspection import owners
from locus_mysql.families.inspection.owner_rows import OWNERS
from locus_mysql.families.inspection.records import ThreadRow
from locus_mysql.inspection import Inspector

from ....conftest import MakeConfig
from .conftest import RunSQL

pytestmark = pytest.mark.kept_tables("dicts")

#: Ids with characters that are special in globs, in LIKE and in JSON.
IDS = [f"user-{n % 3}/thread-{n:02}" for n in range(24)] + ["50%", "a_b", "a*b", "ä\\", '"', "😀", "user-1"]

ALL: dict[str, Any] = {}
FILTERS: list[dict[str, Any]] = [
    ALL,
    {"pattern": "user-1/*"},
    {"pattern": "*-1*"},
    {"pattern": "user-?/thread-0?"},
    {"pattern": "user-1"},
    {"pattern": "a_b"},
    {"pattern": "*%"},
    {"pattern": "nobody*"},
    {"pattern": ""},
    {"metadata": ("user", 1)},
    {"metadata": ("kind", "all")},
    {"metadata": ("user", 1.0), "pattern": "*0*"},
    {"metadata": ("user", True)},
    {"metadata": ("tags", "odd")},
    {"min_bytes": 700},
    {"min_bytes": 700, "pattern": "user-*", "metadata": ("tags", ["odd"])},
]


@pytest.fixture
async def filled(store: CheckpointStore, sql: RunSQL) -> list[str]:
    """Save threads of all these ids, newest first; some of them at the same moment."""
    for number, thread_id in enumerate(IDS):
        metadata = {"user": number % 3, "kind": "all", "tags": ["odd"] if number % 2 else []}
        await store.save(thread_id, {"text": "x"}, metadata={"user": "another", "kind": "old"})
        await store.save(thread_id, {"text": "" if number % 3 else secrets.token_hex(800)}, metadata=metadata)
    sql("UPDATE locus_store_threads SET updated_at = updated_at - INTERVAL MICROSECOND(updated_at) MICROSECOND")
    rows = sql("SELECT thread_id FROM locus_store_threads ORDER BY updated_at DESC, thread_id DESC")
    return [thread_id for (thread_id,) in rows]


async def pages(inspector: Inspector, limit: int, **wanted: Any) -> AsyncIterator[list[ThreadRow]]:
    """Yield all pages, one after another."""
    cursor = None
    for _ in range(10 * len(IDS)):
        page = await inspector.threads("dicts", limit=limit, cursor=cursor, **wanted)
        assert len(page.items) <= limit
        yield list(page.items)
        cursor = page.cursor
        if cursor is None:
            return
    pytest.fail("there is no end")


def fits(row: ThreadRow, wanted: dict[str, Any]) -> bool:
    """Return whether a thread matches the filters, computed without the server."""
    if (pattern := wanted.get("pattern")) is not None and not fnmatchcase(row.thread_id, pattern.replace("[", "[[]")):
        return False
    if row.size_bytes < wanted.get("min_bytes", 0):
        return False
    key, value = wanted.get("metadata", ("kind", "all"))
    have = row.metadata[key]
    if isinstance(have, list):
        return all(one in have for one in (value if isinstance(value, list) else [value]))
    return have == value and isinstance(have, bool) == isinstance(value, bool)


@pytest.mark.parametrize("bound", [2, 1_000])
async def test_pages_hold_every_thread_that_fits_once_and_newest_first(
    filled: list[str], inspector: Inspector, monkeypatch: pytest.MonkeyPatch, bound: int
) -> None:
    for module, name in (
        (owners, "STEP"),
        (owners, "STEP_BY_SIZE"),
        (inspection, "STEP_BY_METADATA"),
        (inspection, "CANDIDATES"),
    ):
        monkeypatch.setattr(module, name, bound)
    everything = [row async for page in pages(inspector, 7) for row in page]
    assert [row.thread_id for row in everything] == filled
    for wanted in FILTERS:
        for limit in (1, 4, 100):
            found = [row async for page in pages(inspector, limit, **wanted) for row in page]
            assert found == [row for row in everything if fits(row, wanted)], wanted
    assert any(fits(row, FILTERS[-1]) for row in everything)


async def test_a_filter_without_matches_reads_a_bounded_number_of_threads(
    filled: list[str], inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "STEP", 10)
    found = [page async for page in pages(inspector, 3, pattern="*nothing*")]
    assert found == [[]] * (len(IDS) // 10 + 1)


async def test_a_thread_is_listed_with_its_family_size_metadata_and_times(
    store: CheckpointStore, inspector: Inspector
) -> None:
    await store.save("t", {"a": 1}, "first")
    await store.save("t", {"a": 2}, "second", {"k": "v"})
    usage = await store.get_disk_usage("t")
    async with store.turn("locked"):  # a thread's row that holds only a lease
        (row,) = (await inspector.threads("dicts")).items
    assert row == await inspector.thread("dicts", "t")
    assert (row.family, row.thread_id, row.checkpoints, row.checkpoint_id) == ("dicts", "t", 2, "second")
    assert (row.metadata, row.damage, row.size_bytes) == ({"k": "v"}, None, usage["total_bytes"])
    assert row.created_at < row.updated_at <= datetime.now(UTC) + timedelta(days=1)
    assert await inspector.thread("dicts", "nobody") is None


@pytest.mark.kept_tables
async def test_looking_makes_no_tables(inspector: Inspector, make_config: MakeConfig, sql: RunSQL) -> None:
    assert await inspector.families() == []
    with pytest.raises(SchemaMismatch, match="has no table"):
        await inspector.threads("dicts")
    assert sql("SHOW TABLES") == ()
    async with CheckpointStore(make_config(search=False)) as store:
        await store.save("t", {})
    assert await inspector.families() == ["dicts"]
    assert len((await inspector.threads("dicts")).items) == 1


@pytest.mark.kept_tables
class TestPlans:
    """The server's plans of the statements, with many threads."""

    @pytest.fixture
    async def plan(self, store: CheckpointStore, sql: RunSQL) -> Any:
        """Return a function that returns the plan of a statement."""
        await store.save("t", {}, metadata={"user": 1})
        sql(
            "INSERT INTO locus_store_threads"
            " (tenant, thread_id, last_seq, first_seq, version, created_at, updated_at)"
            " WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 900)"
            " SELECT tenant, CONCAT('t', n), 1, 1, version, created_at, updated_at - INTERVAL n SECOND"
            "   FROM numbers JOIN locus_store_threads WHERE thread_id = 't'"
        )
        sql("ANALYZE TABLE locus_store_threads, locus_store_checkpoints")

        def explain(statement: Statement) -> str:
            return str(sql("EXPLAIN FORMAT=TREE " + statement.sql, *statement.params)[0][0])

        return explain

    async def test_a_page_goes_along_the_index_and_sorts_no_more_than_its_threads(self, plan: Any) -> None:
        rows = inspection.CheckpointThreads(MySQLConfig(dsn="mysql://nobody@localhost/unused"), "dicts").owners
        position = {"updated_at": datetime(2026, 1, 1), "thread_id": "x"}
        for condition, values in (("", {}), rows.after(position), rows.until(position)):
            text = plan(rows.statement(OWNERS, {"CONDITIONS": condition}, limit=50, **values))
            walk = text[text.index("Limit: 50") :]
            nodes = walk[: walk.index("\n", walk.index("on o using recent"))]
            assert re.search("[Ii]ndex (lookup|range scan) on o using recent", nodes)
            assert "Sort" not in nodes
            assert re.search(r"Table scan on c\b", text) is None

    async def test_indexes_name_the_columns_by_which_pages_are_ordered(self, store: Any, sql: RunSQL) -> None:
        """MySQL 8.0 and 8.4 sort all of a tenant's entries if columns of a forced index are only in the primary key."""
        await store.save("t", {})
        for table, index, columns in (
            ("threads", "recent", ["tenant", "updated_at", "thread_id"]),
            ("checkpoints", "metadata_pairs", [None, "tenant", "thread_id", "seq"]),
        ):
            rows = sql(f"SHOW INDEX FROM locus_store_{table} WHERE Key_name = '{index}'")
            assert [row[4] for row in rows] == columns

    async def test_metadata_is_found_by_its_index(self, plan: Any) -> None:
        find = CANDIDATES(checkpoint_dialect(kind="dicts"), tenant="default", pairs="[1, 2]", limit=1_000)
        assert "using metadata_pairs" in plan(find)
