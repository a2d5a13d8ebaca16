"""Damaged entries and checkpoints are not written on. Reads: `tests/integration/contract/test_damage.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.working import SyncWorkingMemory

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
def test_damage_of_a_checkpoint_is_detected_when_it_is_restored(
    open_session: Open, run_sql: RunSQL, database: str, change: str
) -> None:
    memory = open_session("s")
    memory.set_many({"a": {"text": "apple"}, "b": "bear"})
    checkpoint = memory.create_checkpoint()
    memory.set("a", "meanwhile")
    run_sql(f"UPDATE {database}.locus_working_history SET {change} WHERE name = 'a' ORDER BY version LIMIT 1")
    with pytest.raises(CorruptCheckpoint, match="Variable 'a' of session 's' cannot be read"):
        memory.restore_checkpoint(checkpoint)
    assert memory.get_all() == {"a": "meanwhile", "b": "bear"}


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
