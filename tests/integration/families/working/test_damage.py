"""Session entries damaged by SQL, column by column: a read returns the saved value, or names session and entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.working import SyncWorkingMemory, TaskState

from ...conftest import MakeConfig

pytestmark = [pytest.mark.kept_tables("working"), pytest.mark.slow]

RunSQL = Callable[..., tuple[Any, ...]]
Open = Callable[..., SyncWorkingMemory]


@pytest.fixture
def open_session(make_config: MakeConfig) -> Any:
    """Opens sessions by id."""
    storages = []

    def open_one(session_id: str, tenant: str = "default") -> SyncWorkingMemory:
        storages.append(MySQLStorage(make_config(driver="pymysql", tenant=tenant)))
        return SyncWorkingMemory(session_id, storages[-1])

    yield open_one
    for storage in storages:
        storage.close()


def _fill(memory: SyncWorkingMemory, number: int) -> None:
    memory.set_many({"a": {"text": f"apple {number}"}, "b": f"bérry ☕ {number}"})
    memory.increment("count", 5)
    memory.increment("count", number)
    memory.compare_and_set("b", f"bérry ☕ {number}", f"bear {number}")
    memory.set_task_state(TaskState(task_id=f"task {number}"))
    memory.append_scratchpad(f"first {number}")
    memory.append_scratchpad(f"second {number}")


def _reads(memory: SyncWorkingMemory) -> dict[str, Callable[[], Any]]:
    """Return each way to read a session's contents."""
    reads: dict[str, Callable[[], Any]] = {key: lambda key=key: memory.get(key) for key in ("a", "b", "count")}
    return reads | {
        "many": lambda: memory.get_many(["a", "b", "count"]),
        "all": memory.get_all,
        "task": memory.get_task_state,
        "notes": memory.get_scratchpad,
        "last": lambda: memory.get_scratchpad(last=1),
    }


def test_a_damaged_number_is_not_added_to_and_a_damaged_value_does_not_match(
    open_session: Open, run_sql: RunSQL, database: str
) -> None:
    memory = open_session("s")
    memory.set_many({"count": 7, "b": "x"})
    run_sql(f"UPDATE {database}.locus_working_entries SET value = REPLACE(value, '7', '8') WHERE name = 'count'")
    run_sql(f"UPDATE {database}.locus_working_entries SET value = REPLACE(value, 'x', 'y') WHERE name = 'b'")
    memory = open_session("s")  # another process
    with pytest.raises(CorruptCheckpoint, match="Variable 'count' of session 's' cannot be read"):
        memory.increment("count")
    with pytest.raises(CorruptCheckpoint, match="Variable 'b' of session 's' cannot be read"):
        memory.compare_and_set("b", "y", "z")
    memory.set_many({"count": 7, "b": "x"})
    assert memory.increment("count", -10) == -3
    assert memory.get_all() == {"count": -3, "b": "x"}


@pytest.mark.parametrize("change", ["value = CONCAT(' ', value)", "version = version - 1"])
def test_a_checkpoint_is_restored_completely_and_its_damage_is_detected(
    open_session: Open, run_sql: RunSQL, database: str, change: str
) -> None:
    memory = open_session("s")
    _fill(memory, 1)
    before = {name: read() for name, read in _reads(memory).items()}
    checkpoint = memory.create_checkpoint()
    memory.clear()
    memory.clear_scratchpad()
    memory.set_task_state(None)
    memory.restore_checkpoint(checkpoint)
    assert {name: read() for name, read in _reads(memory).items()} == before
    memory.set("a", "meanwhile")
    run_sql(f"UPDATE {database}.locus_working_history SET {change} WHERE name = 'a' ORDER BY version LIMIT 1")
    with pytest.raises(CorruptCheckpoint, match="Variable 'a' of session 's' cannot be read"):
        memory.restore_checkpoint(checkpoint)
    assert memory.get("a") == "meanwhile"
    assert memory.get("b") == before["b"]


@pytest.mark.parametrize("change", ["stamp = stamp - 1", "label = 'other'", "label = NULL", "checksum = checksum ^ 4"])
def test_a_damaged_checkpoint_is_left_out_of_the_list_and_not_restored(
    open_session: Open, run_sql: RunSQL, database: str, change: str
) -> None:
    memory = open_session("s")
    memory.set("a", 1)
    first = memory.create_checkpoint("first")
    memory.set("a", 2)
    second = memory.create_checkpoint("second")
    run_sql(f"UPDATE {database}.locus_working_checkpoints SET {change} WHERE checkpoint_id = %s", second)
    assert [(one.checkpoint_id, one.label) for one in memory.list_checkpoints()] == [(first, "first")]
    with pytest.raises(CorruptCheckpoint, match=f"Checkpoint '{second}' of session 's' cannot be read"):
        memory.restore_checkpoint(second)
    assert memory.get("a") == 2
    memory.restore_checkpoint(first)
    assert memory.get("a") == 1
    assert memory.delete_checkpoint(second)
