"""Rows damaged by SQL, column by column: a read returns the saved state, or an error names thread and checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import SyncMySQLCheckpointSaver
from locus_mysql.errors import CorruptCheckpoint

from ...conftest import MakeConfig
from ...damaging import Damage

pytestmark = [pytest.mark.slow]

RunSQL = Callable[..., tuple[Any, ...]]


def turns(thread_id: str, count: int) -> dict[str, Any]:
    return {"log": [f"{thread_id} {turn} " * 60 for turn in range(count)], "step": count, "note": "n" * 300}


class Saved:
    """Compares the saved data with what a reader returns.

    Args:
        saver: The saver, which saves two threads.
    """

    def __init__(self, saver: SyncMySQLCheckpointSaver) -> None:
        self.records: dict[tuple[str, str], Any] = {}
        self.writes: dict[tuple[str, str], list[Any]] = {}
        for thread_id, count in (("t", 3), ("other", 1)):
            for turn in range(1, count + 1):
                one = {"thread_id": thread_id, "checkpoint_id": f"c{turn}"}
                parent = f"c{turn - 1}" if turn > 1 else None
                state = turns(thread_id, turn)
                saver.put(**one, checkpoint_data=state, parent_checkpoint_id=parent, metadata={"turn": turn})
                saver.put_writes(**one, task_id="task", writes=[("a", f"{thread_id} {turn}"), ("b", turn)])
                self.records[thread_id, f"c{turn}"] = saver.get(**one)
                self.writes[thread_id, f"c{turn}"] = saver.get_writes(**one)

    def check(self, reader: SyncMySQLCheckpointSaver, damage: Damage) -> int:
        """Compare all reads with the saved data, and return the number of refused reads."""
        refused = 0
        for (thread_id, checkpoint_id), saved in self.records.items():
            one = {"thread_id": thread_id, "checkpoint_id": checkpoint_id}
            where = f"{checkpoint_id!r} of thread {thread_id!r}"
            found = attempt(lambda one=one: reader.get(**one))
            written = attempt(lambda one=one: reader.get_writes(**one))
            assert _refused(found, where) or _same(found, saved) or (damage.hides and found is None), (damage, found)
            saved_writes = self.writes[thread_id, checkpoint_id]
            assert _refused(written, where) or written == saved_writes or (damage.hides and not written), damage
            refused += _refused(found, where) + _refused(written, where)
        for thread_id in ("t", "other"):
            newest = attempt(lambda name=thread_id: [reader.get(thread_id=name)])
            listed = attempt(lambda name=thread_id: reader.list_checkpoints(thread_id=name))
            for result in (newest, listed):
                refused += _refused(result, f"of thread {thread_id!r}")
                for found in () if _refused(result, f"of thread {thread_id!r}") else result:
                    right = found is None or _same(found, self.records[thread_id, found["checkpoint_id"]])
                    assert right, (damage, found)
        return refused


def attempt(read: Callable[[], Any]) -> Any:
    """Return the result of a call, or the error that it raises."""
    try:
        return read()
    except CorruptCheckpoint as error:
        return error


def _refused(outcome: Any, where: str) -> bool:
    """Return whether a call was refused, and check that the error names the place."""
    if isinstance(outcome, CorruptCheckpoint):
        assert where in str(outcome)
        return True
    return False


def _same(found: Any, saved: Any) -> bool:
    """Return whether both are equal except for the time, which the server sets and no checksum covers."""
    return found is not None and {**found, "created_at": ""} == {**saved, "created_at": ""}


def test_a_copy_is_whole_and_so_is_a_copy_of_it(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with SyncMySQLCheckpointSaver(config) as saver:
        saved = Saved(saver)
        assert saver.copy_thread("t", "copy")
        assert saver.copy_thread("copy", "cöpy ☕")
        for thread_id in ("copy", "cöpy ☕"):
            for turn in range(1, 4):
                one = {"thread_id": thread_id, "checkpoint_id": f"c{turn}"}
                assert _same(saver.get(**one), saved.records["t", f"c{turn}"])
                assert saver.get_writes(**one) == saved.writes["t", f"c{turn}"]


def test_a_damaged_row_stays_one_when_its_thread_is_copied(
    make_config: MakeConfig, run_sql: RunSQL, database: str
) -> None:
    with SyncMySQLCheckpointSaver(make_config(driver="pymysql", cache_bytes=0)) as saver:
        Saved(saver)
        for payload in (b"", b"\x01", b"\x01abcdefgh"):
            run_sql(f"UPDATE {database}.locus_graph_checkpoints SET payload = %s WHERE thread_id = 't'", payload)
            saver.delete_thread("copy")
            assert saver.copy_thread("t", "copy")
            with pytest.raises(CorruptCheckpoint, match="'c3' of thread 'copy'"):
                saver.get(thread_id="copy")
