"""The MySQL storage: round trips, and housekeeping."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from locus_mysql.records import ledger
from locus_mysql.working import MISSING, TaskState

from ....conftest import EVERY_SIDE
from ....proxy import WireProxy
from ..conftest import AnyMemory, Open

pytestmark = pytest.mark.kept_tables("working")

DEADLINE_S = 120.0


@pytest.mark.parametrize("side", EVERY_SIDE)
async def test_one_call_of_the_process_that_wrote_last_is_one_round_trip(far: AnyMemory, proxy: WireProxy) -> None:
    async def trips(call: Any) -> int:
        with proxy.counting() as count:
            await call
        return count.round_trips

    await far.set("first", 0)
    assert await trips(far.set("key", {"a": [1]}, ttl_s=60)) == 1
    assert await trips(far.set_many({f"key {n}": n for n in range(1_000)})) == 1
    assert await trips(far.get("key")) == 1
    assert await trips(far.get_many([f"key {n}" for n in range(1_000)])) == 1
    assert await trips(far.get_all()) == 1
    assert await trips(far.exists("key")) == 1
    assert await trips(far.list_keys("key*")) == 1
    assert await trips(far.increment("count")) == 1
    assert await trips(far.compare_and_set("count", 1, 2)) == 1
    assert await trips(far.compare_and_set("count", MISSING, 2)) == 1
    assert await trips(far.ttl("key")) == 1
    assert await trips(far.set_task_state(TaskState(task_id="task"))) == 1
    assert await trips(far.get_task_state()) == 1
    assert await trips(far.append_scratchpad("note")) == 1
    assert await trips(far.get_scratchpad()) == 1
    checkpoint_id = await far.create_checkpoint()
    assert await trips(far.create_checkpoint("label")) == 1
    assert await trips(far.restore_checkpoint(checkpoint_id)) == 2
    assert await trips(far.list_checkpoints()) == 1
    assert await trips(far.delete_checkpoint(checkpoint_id)) == 1
    assert await trips(far.touch()) == 1
    assert await trips(far.stats()) == 1
    assert await trips(far.delete("key")) == 1
    assert await trips(far.delete_many([f"key {n}" for n in range(500)])) == 1
    assert await trips(far.clear()) == 1
    assert await trips(far.clear_scratchpad()) == 1
    assert await trips(far.end()) == 1


async def test_another_process_needs_one_round_trip_more_for_its_first_write(
    far: AnyMemory, open_memory: Open, proxy: WireProxy
) -> None:
    other = open_memory("far", session_ttl_s=3600)
    await other.set_many({"a": 1, "b": 2})
    assert await far.get("a") == 1
    for expected in (2, 1):
        with proxy.counting() as count:
            await far.increment("a")
        assert count.round_trips == expected
    await other.increment("a")
    with proxy.counting() as count:
        assert await far.increment("a") == 5
    assert count.round_trips == 4  # a write that is refused and rolled back, a read, and a write


async def test_expired_sessions_are_removed_whole_in_passing(
    open_memory: Open, run_sql: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = open_memory("gone", session_ttl_s=3600)
    await gone.set_many({"a": 1, "b": 2})
    await gone.append_scratchpad("note")
    await gone.create_checkpoint()
    run_sql(f"UPDATE {database}.locus_working_sessions SET expires_at = UTC_TIMESTAMP(6)")
    assert await gone.get_all() == {}
    monkeypatch.setattr(ledger, "one_in", lambda every: True)
    await open_memory("other").set("x", 1)
    rows = {
        table: run_sql(f"SELECT COUNT(*) FROM {database}.locus_working_{table}")[0][0]
        for table in ("sessions", "entries", "checkpoints", "history")
    }
    assert rows == {"sessions": 1, "entries": 1, "checkpoints": 0, "history": 0}


async def test_a_checkpoint_stores_what_changed_since_the_last_one(
    open_memory: Open, run_sql: Any, database: str
) -> None:
    memory = open_memory()
    await memory.set_many({f"key {n}": "x" * 200 for n in range(1_000)})
    await memory.create_checkpoint()

    def stored() -> int:
        return int(run_sql(f"SELECT COALESCE(SUM(LENGTH(value)), 0) FROM {database}.locus_working_history")[0][0])

    whole = stored()
    await memory.set_many({f"key {n}": "y" * 200 for n in range(10)})
    await memory.create_checkpoint()
    assert stored() - whole <= (await memory.stats()).size_bytes / 20


async def test_sessions_deleted_long_ago_leave_no_rows(
    open_memory: Open, run_sql: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_memory()
    await memory.set_many({"held": 1, "not held": 1})
    await memory.delete("not held")
    await memory.create_checkpoint()
    await memory.delete("held")
    run_sql(f"UPDATE {database}.locus_working_entries SET version = version - 4000000000 WHERE value IS NULL")
    monkeypatch.setattr(ledger, "one_in", lambda every: True)
    await memory.set("x", 1)
    names = run_sql(f"SELECT CONVERT(name USING utf8mb4) FROM {database}.locus_working_entries ORDER BY name")
    assert [row[0] for row in names] == ["x"]


async def test_a_clock_that_was_ahead_once_does_not_lengthen_times_to_live(
    open_memory: Open, run_sql: Any, database: str
) -> None:
    memory = open_memory()
    await memory.set("x", 1)
    year_us = 365 * 86_400 * 1_000_000
    run_sql(f"UPDATE {database}.locus_working_sessions SET stamp = stamp + {year_us}")
    await memory.set("short", 1, ttl_s=60)
    assert 0 < await memory.ttl("short") <= 60
    checkpoint_id = await memory.create_checkpoint()
    (info,) = await memory.list_checkpoints()
    assert abs(info.created_at - datetime.now(UTC)) < timedelta(days=1)
    await memory.clear()
    await memory.restore_checkpoint(checkpoint_id)
    assert 0 < await memory.ttl("short") <= 60
    assert await memory.get("x") == 1
