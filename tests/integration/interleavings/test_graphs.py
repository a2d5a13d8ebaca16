"""Removals of graphs' checkpoints that race with the creation of their thread, and leftovers of such races."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymysql
import pytest

from locus_mysql.errors import CorruptCheckpoint, ThreadExists

from .stage import Call, Process, Stage, finish_all, pauses

pytestmark = pytest.mark.slow

State = dict[str, Any]
CheckTables = Callable[[], None]
RunSQL = Callable[..., tuple[Any, ...]]


def conversation(*words: str) -> State:
    """Return a state whose values are large enough to be stored as separate parts."""
    return {"said": [f"{word} " * 1_500 for word in words], "turn": len(words)}


def put(process: Process, *words: str, checkpoint_id: str = "c1", parent: str | None = None) -> Call:
    """Begin a call that stores a checkpoint of the thread."""
    return process.begin(
        "put",
        thread_id="thread",
        checkpoint_id=checkpoint_id,
        checkpoint_data=conversation(*words),
        parent_checkpoint_id=parent,
    )


def put_plum(process: Process) -> Call:
    return put(process, "plum")


def copy(process: Process) -> Call:
    return process.begin("copy_thread", "source", "thread")


def found(stage: Stage) -> dict[str, State]:
    """Return all checkpoints of the thread by their ids, newest first, as a new process reads them."""
    listed = stage.afresh("list_checkpoints", kind="saver", thread_id="thread", limit=1_000)
    newest = stage.afresh("get", kind="saver", thread_id="thread")
    assert newest == (listed[0] if listed else None)
    return {record["checkpoint_id"]: record["checkpoint"] for record in listed}


def assert_serves_anew(stage: Stage, process: Process) -> None:
    """Check that this process and another one can add checkpoints to the thread and load them."""
    before = found(stage)
    for number in (1, 2):
        put(process, "anew", *["again"] * number, checkpoint_id=f"anew{number}").finish()
        mine = process.get(thread_id="thread")["checkpoint"]
        assert mine == found(stage)[f"anew{number}"] == conversation("anew", *["again"] * number)
    assert list(found(stage)) == ["anew2", "anew1", *before]


REMOVALS = {
    "delete_thread": lambda process: process.begin("delete_thread", "thread"),
    "delete_checkpoint": lambda process: process.begin("delete_checkpoint", thread_id="thread", checkpoint_id="c1"),
    "delete_another": lambda process: process.begin("delete_checkpoint", thread_id="thread", checkpoint_id="c2"),
    "prune": lambda process: process.begin("prune", thread_id="thread", keep=1),
    "vacuum": lambda process: process.begin("vacuum", 0),
}


@pytest.mark.parametrize("make", [put_plum, copy])
@pytest.mark.parametrize("pipeline", [False, True], ids=["statements", "packets"])
@pytest.mark.parametrize("remove", REMOVALS)
def test_a_thread_made_while_it_is_removed_is_there_or_gone_whole(
    stage: Stage, check_tables: CheckTables, make: Callable[[Process], Call], remove: str, pipeline: bool
) -> None:
    """Pause the removal before each of its packets, then the creation before each of its packets."""
    remover, maker = stage.store("saver", pipeline=pipeline), stage.store("saver", pipeline=pipeline)

    def prepare() -> None:
        maker.delete_thread("thread")
        if make is copy:
            maker.delete_thread("source")
            maker.put(thread_id="source", checkpoint_id="c1", checkpoint_data=conversation("plum"))

    def begin_removing() -> Call:
        prepare()
        return REMOVALS[remove](remover)

    def begin_making() -> Call:
        prepare()
        return make(maker)

    def check(removing: Call, making: Call) -> None:
        finish_all(removing, making)
        removed, made = removing.finish(), making.finish() is not False  # False if the source of a copy was removed
        there = found(stage)
        if remove in {"prune", "delete_another"}:
            assert not removed
            assert made
        if made and not removed:
            assert there == {"c1": conversation("plum")}, "the removal found nothing, and still the thread is gone"
        if removed and remove != "vacuum":
            assert there == {}
        assert there in (({"c1": conversation("plum")}, {}) if made else ({},))
        check_tables()
        assert_serves_anew(stage, maker)
        check_tables()

    for removing in pauses(begin_removing):
        check(removing, make(maker).run())
    for making in pauses(begin_making):
        check(REMOVALS[remove](remover).run(), making)


@pytest.mark.parametrize("pipeline", [False, True], ids=["statements", "packets"])
@pytest.mark.parametrize("remove", ["prune", "delete_checkpoint", "delete_thread"])
def test_a_copy_of_a_thread_that_is_created_meanwhile_is_complete_or_absent(
    stage: Stage, check_tables: CheckTables, pipeline: bool, remove: str
) -> None:
    """The source is created, or created again, while it is copied."""
    copier, maker = stage.store("saver", pipeline=pipeline), stage.store("saver", pipeline=pipeline)

    def begin() -> Call:
        maker.delete_thread("copied")
        maker.delete_thread("thread")
        return copier.begin("copy_thread", "thread", "copied")

    for copying in pauses(begin):
        making = put(maker, "plum").run()
        finish_all(copying, making)
        copied = copying.finish()
        there = stage.afresh("list_checkpoints", kind="saver", thread_id="copied")
        assert [record["checkpoint"] for record in there] == ([conversation("plum")] if copied else [])
        check_tables()
        REMOVALS[remove](maker).finish()
        check_tables()


# Rows of earlier races


def without_thread(run_sql: RunSQL, database: str) -> None:
    run_sql(f"DELETE FROM {database}.locus_graph_threads WHERE thread_id = 'thread'")


def without_thread_and_parts(run_sql: RunSQL, database: str) -> None:
    without_thread(run_sql, database)
    run_sql(f"DELETE FROM {database}.locus_graph_parts WHERE thread_id = 'thread'")


def parts_and_writes_only(run_sql: RunSQL, database: str) -> None:
    without_thread(run_sql, database)
    run_sql(f"DELETE FROM {database}.locus_graph_checkpoints WHERE thread_id = 'thread'")


LEFT_BEHIND = (without_thread, without_thread_and_parts, parts_and_writes_only)


def leave_behind(stage: Stage, damage: Callable[[RunSQL, str], None], run_sql: RunSQL, database: str) -> Process:
    """Create a thread of three checkpoints, damage it, and return the process that created it."""
    process = stage.store("saver")
    for number, parent in ((1, None), (2, "c1"), (3, "c2")):
        put(process, *("plum", "fig", "nut")[:number], checkpoint_id=f"c{number}", parent=parent).finish()
    process.put_writes(thread_id="thread", checkpoint_id="c3", task_id="task", writes=[("channel", 1)])
    damage(run_sql, database)
    assert found(stage) == {}
    return process


@pytest.mark.parametrize("damage", LEFT_BEHIND)
@pytest.mark.parametrize("by", ["who made it", "another"])
def test_the_next_put_heals_what_a_race_left_behind(
    stage: Stage,
    check_tables: CheckTables,
    run_sql: RunSQL,
    database: str,
    damage: Callable[[RunSQL, str], None],
    by: str,
) -> None:
    maker = leave_behind(stage, damage, run_sql, database)
    process = maker if by == "who made it" else stage.store("saver")
    put(process, "anew", checkpoint_id="c2", parent="c1").finish()
    assert found(stage) == {"c2": conversation("anew")}
    check_tables()
    assert_serves_anew(stage, process)
    check_tables()


@pytest.mark.parametrize("damage", LEFT_BEHIND)
@pytest.mark.parametrize(
    "heal", ["vacuum", "delete_thread", "prune", "delete_checkpoint", "copy onto it", "copy of it"]
)
def test_a_removal_or_a_copy_heals_what_a_race_left_behind(
    stage: Stage,
    check_tables: CheckTables,
    run_sql: RunSQL,
    database: str,
    damage: Callable[[RunSQL, str], None],
    heal: str,
) -> None:
    """Or it leaves the rows unchanged: invisible, and without effect on later saves."""
    maker = leave_behind(stage, damage, run_sql, database)
    healer = stage.store("saver")
    if heal == "copy onto it":
        healer.put(thread_id="source", checkpoint_id="c2", checkpoint_data=conversation("anew"))
        assert healer.copy_thread("source", "thread") is True
        assert found(stage) == {"c2": conversation("anew")}
        check_tables()
    elif heal == "copy of it":
        assert healer.copy_thread("thread", "copied") is False
        assert stage.afresh("get", kind="saver", thread_id="copied") is None
    elif heal == "vacuum":
        assert healer.vacuum(30) == 0
        check_tables()
        assert_nothing_left(run_sql, database, "graph_checkpoints", "graph_parts")
        healer.vacuum(0)
        assert_nothing_left(run_sql, database, "graph_checkpoints", "graph_parts", "graph_writes", "graph_threads")
    else:
        REMOVALS[heal](healer).finish()
        if heal == "delete_thread":
            check_tables()
            assert_nothing_left(run_sql, database, "graph_checkpoints", "graph_parts", "graph_writes", "graph_threads")
        assert found(stage) == {}
    for process in (maker, healer):
        assert_serves_anew(stage, process)
        check_tables()
        process.delete_thread("thread")


def assert_nothing_left(run_sql: RunSQL, database: str, *tables: str) -> None:
    for table in tables:
        rows = run_sql(f"SELECT COUNT(*) FROM {database}.locus_{table} WHERE thread_id <> ''")
        assert rows == ((0,),), table


def test_vacuum_removes_checkpoints_whose_parts_a_race_took(
    stage: Stage, check_tables: CheckTables, run_sql: RunSQL, database: str
) -> None:
    """The thread's row has been created again, so only the missing parts show that they cannot be loaded."""
    process = stage.store("saver")
    put(process, "plum", checkpoint_id="c1").finish()
    put(process, "plum", "fig", checkpoint_id="c2", parent="c1").finish()
    put(process, "nut", checkpoint_id="c3").finish()
    ((first,),) = run_sql(f"SELECT MIN(part) FROM {database}.locus_graph_parts")
    run_sql(f"DELETE FROM {database}.locus_graph_parts WHERE part = {first}")
    with pytest.raises(CorruptCheckpoint):
        found(stage)
    assert stage.afresh("vacuum", 30, kind="saver") == 2
    assert found(stage) == {"c3": conversation("nut")}
    check_tables()
    assert_serves_anew(stage, process)
    check_tables()
    assert stage.afresh("vacuum", 30, kind="saver") == 0


# Within a packet


@pytest.mark.parametrize("remove", ["delete_thread", "delete_checkpoint", "delete_another", "prune"])
def test_a_thread_made_while_a_packet_removes_it_is_there_or_gone_whole(
    stage: Stage, check_tables: CheckTables, database: str, raw: pymysql.Connection[Any], remove: str
) -> None:
    """One of the packet's statements waits for another transaction's row; the thread is created meanwhile."""
    remover, maker = stage.store("saver"), stage.store("saver")
    maker.delete_thread("thread")
    raw.begin()
    with raw.cursor() as cursor:
        cursor.execute(f"INSERT INTO {database}.locus_graph_parts VALUES ('default', 'thread', 1, '')")
    removing = REMOVALS[remove](remover).run()
    making = put_plum(maker).run()
    raw.rollback()
    finish_all(removing, making)
    assert not removing.finish()
    making.finish()
    assert found(stage) == {"c1": conversation("plum")}
    check_tables()
    assert_serves_anew(stage, maker)
    check_tables()


# Threads that have expired


@pytest.mark.parametrize("pipeline", [False, True], ids=["statements", "packets"])
def test_a_copy_onto_a_thread_that_has_expired_takes_its_place(
    stage: Stage, check_tables: CheckTables, run_sql: RunSQL, database: str, pipeline: bool
) -> None:
    process = stage.store("saver", ttl_s=60, pipeline=pipeline)
    for number, parent in ((1, None), (2, "c1")):
        put(process, *("plum", "fig")[:number], checkpoint_id=f"c{number}", parent=parent).finish()
    process.put(thread_id="source", checkpoint_id="c2", checkpoint_data=conversation("nut"))
    with pytest.raises(ThreadExists):
        process.copy_thread("source", "thread")
    run_sql(
        f"UPDATE {database}.locus_graph_threads SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND"
        " WHERE thread_id = 'thread'"
    )
    assert found(stage) == {}
    assert process.copy_thread("absent", "thread") is False
    assert found(stage) == {}
    assert process.copy_thread("source", "thread") is True
    assert found(stage) == {"c2": conversation("nut")}
    check_tables()
    assert_serves_anew(stage, process)
    check_tables()
