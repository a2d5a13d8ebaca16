"""Rows damaged by SQL, column by column: a read returns the saved state, or an error names thread and checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.types import TASKS
from langgraph.types import Send

from locus_mysql import SyncMySQLCheckpointSaver
from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.integrations.langgraph import MySQLSaver

from ...conftest import MakeConfig
from ...damaging import Damage, damages

pytestmark = [pytest.mark.slow]

RunSQL = Callable[..., tuple[Any, ...]]

#: The tables with saved data. The table of threads contains only times and removal marks.
TABLES = ("graph_checkpoints", "graph_parts", "graph_writes", "graph_threads")
every_table = pytest.mark.parametrize("table", TABLES)


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


def _checkpoint(number: int, version: int) -> Any:
    return {
        "v": version,
        "id": f"{number:032}",
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {"a": [f"{number} " * 200]},
        "channel_versions": {"a": number},
        "versions_seen": {},
        "updated_channels": None,
    }


@every_table
def test_no_damage_to_a_column_gives_a_graph_another_checkpoint(
    make_config: MakeConfig, run_sql: RunSQL, database: str, table: str
) -> None:
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with MySQLSaver(make_config(driver="pymysql", cache_bytes=0)) as saver:
        configs = [config]
        for number, version in ((1, 3), (2, 3), (3, 4)):
            stored = saver.put(configs[-1], _checkpoint(number, version), {"step": number}, {"a": number})
            saver.put_writes(stored, [(TASKS, Send("node", number)), ("a", number)], f"task{number}")
            configs.append(stored)
        saved = {one["configurable"]["checkpoint_id"]: saver.get_tuple(one) for one in configs[1:]}
        assert saved[f"{2:032}"].checkpoint["channel_values"][TASKS] == [Send("node", 1)]
        history = saver.get_delta_channel_history(config=configs[-1], channels=["b", "a"])
        refused = 0
        for damage in damages(run_sql, database, f"locus_{table}"):
            if damage.column == "unlinked":  # marks a removal, like "hidden": it hides the parent
                continue
            if damage.hides:
                continue
            for one in configs:
                found = attempt(lambda one=one: saver.get_tuple(one))
                if _refused(found, "of thread 't'"):
                    refused += 1
                else:
                    assert found == saved[found.config["configurable"]["checkpoint_id"]], damage
            if damage.column != "channel":  # the server finds these writes by their channel
                found = attempt(lambda: saver.get_delta_channel_history(config=configs[-1], channels=["b", "a"]))
                assert _refused(found, "of thread 't'") or found == history, damage
        assert refused > 0 or table in {"graph_threads", "graph_parts"}
