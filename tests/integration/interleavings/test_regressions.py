"""Orders of events that once lost an acknowledged save or made it unreadable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import ThreadExists

from .conversations import CheckTables, State, assert_serves_anew, conversation
from .stage import Call, Process, Stage, finish_all, pauses

pytestmark = pytest.mark.slow


# The late answer of a load


@pytest.mark.parametrize("by", ["itself", "another"])
@pytest.mark.parametrize("what", ["the checkpoint", "the thread"])
def test_a_late_answer_about_a_deleted_checkpoint_is_not_built_on(
    stage: Stage, check_tables: CheckTables, by: str, what: str
) -> None:
    one, other = stage.store(), stage.store()
    one.save("thread", conversation("plum"), "c1")
    one.save("thread", conversation("fig"), "c2")
    loading = one.begin("load", "thread", "c1").carry_out()
    deleter = one if by == "itself" else other
    assert deleter.delete("thread", *(["c1"] if what == "the checkpoint" else [])) is True
    if what == "the thread":
        deleter.save("thread", conversation("fig"), "c2")
    assert one.load("thread") == conversation("fig")
    assert loading.finish() == conversation("plum")
    saved = one.save("thread", conversation("plum", "pear"))
    for load in (lambda *args: stage.afresh("load", *args), other.load, one.load):
        assert load("thread") == conversation("plum", "pear")
        assert load("thread", saved) == conversation("plum", "pear")
        assert load("thread", "c2") == conversation("fig")
        assert load("thread", "c1") is None
    check_tables()


@pytest.mark.parametrize("of", [(), ("c1",)], ids=["without an id", "by its id"])
@pytest.mark.parametrize("by", ["itself", "another"])
def test_the_late_answer_of_a_load_of_the_newest_is_not_taken_for_the_newest(
    stage: Stage, check_tables: CheckTables, by: str, of: tuple[str, ...]
) -> None:
    one, other = stage.store(cache_bytes=0), stage.store()
    one.save("thread", conversation("plum"), "c1")
    loading = other.begin("load", "thread", *of).carry_out()
    saver = other if by == "itself" else one
    saver.delete("thread", "c1")
    saver.save("thread", conversation("fig"), "c2")
    assert loading.finish() == conversation("plum")
    assert other.load("thread") == conversation("fig")
    saved = other.save("thread", conversation("plum", "pear"))
    for load in (lambda *args: stage.afresh("load", *args), other.load, one.load):
        assert load("thread") == load("thread", saved) == conversation("plum", "pear")
        assert load("thread", "c2") == conversation("fig")
    check_tables()


# A delete that races with the creation of its thread


def save(process: Process) -> Call:
    return process.begin("save", "thread", conversation("plum"), "c1")


def copy(process: Process) -> Call:
    return process.begin("copy_thread", "source", "thread")


@pytest.mark.parametrize("make", [save, copy])
@pytest.mark.parametrize(
    "pipeline", [pytest.param(False, id="statements", marks=pytest.mark.slow), pytest.param(True, id="packets")]
)
@pytest.mark.parametrize(
    "remove",
    [("delete", "thread"), ("delete", "thread", "c1"), ("vacuum", 0), ("forget_tenant",)],
    ids=lambda remove: " ".join(map(str, remove)),
)
def test_a_thread_made_while_it_is_deleted_is_there_or_gone_whole(
    stage: Stage,
    check_tables: CheckTables,
    make: Callable[[Process], Call],
    remove: tuple[Any, ...],
    pipeline: bool,
) -> None:
    """Pause the deletion before each of its packets, then the creation before each of its packets."""
    remover, maker = stage.store(pipeline=pipeline), stage.store(pipeline=pipeline)
    deletes_all = remove[0] != "delete"

    def begin_removing() -> Call:
        prepare()
        return remover.begin(*remove)

    def begin_making() -> Call:
        prepare()
        return make(maker)

    def prepare() -> None:
        maker.delete("thread")
        if not deletes_all or make is copy:
            maker.delete("source")
            maker.save("source", conversation("plum"), "c1")

    def check(removing: Call, making: Call) -> None:
        finish_all(removing, making)
        removed = removing.finish()
        made = making.finish() is not False  # False if the source of a copy was deleted before
        found = stage.afresh("load", "thread")
        if made and not removed:
            assert found == conversation("plum"), "the deletion found nothing, and still the thread is gone"
        if remove[0] == "delete" and removed:
            assert found is None
        assert found in ((conversation("plum"), None) if made else (None,))
        assert stage.afresh("list_checkpoints", "thread") == (["c1"] if found else [])
        check_tables()
        assert_serves_anew(stage, maker, "thread")

    for removing in pauses(begin_removing):
        check(removing, make(maker).run())
    for making in pauses(begin_making):
        check(remover.begin(*remove).run(), making)


def until_it_locks(removing: Call) -> Call:
    """Continue a removal of whole threads until it is about to lock a thread that it found."""
    while not any(statement.sql.lstrip().startswith("DELETE o") for statement in removing.packet):
        removing.step()
        assert not removing.done, "there was nothing to lock"
    return removing


@pytest.mark.parametrize("remove", [("vacuum", 0), ("forget_tenant",)], ids=lambda remove: remove[0])
def test_a_thread_that_is_gone_when_its_removal_locks_it_and_is_made_anew_is_there_or_gone_whole(
    stage: Stage, check_tables: CheckTables, remove: tuple[Any, ...]
) -> None:
    """The removal then locks no row, so it must remove none, at whichever packet the thread is created again."""
    remover, maker = stage.store(pipeline=False), stage.store(pipeline=False)
    for packets in range(1_000):
        maker.delete("thread")
        maker.save("thread", conversation("plum"), "c1")
        removing = until_it_locks(remover.begin(*remove))
        maker.delete("thread")
        for _ in range(packets):
            removing.step()
        if removing.done:
            removing.finish()
            assert packets > 1
            break
        making = save(maker).run()
        finish_all(removing, making)
        removing.finish()
        making.finish()
        found = stage.afresh("load", "thread")
        assert found in (conversation("plum"), None)
        assert stage.afresh("list_checkpoints", "thread") == (["c1"] if found else [])
        check_tables()
    assert_serves_anew(stage, maker, "thread")


@pytest.mark.parametrize("why", ["idle", "expired"])
@pytest.mark.parametrize("pipeline", [False, True], ids=["statements", "packets"])
def test_a_thread_that_is_saved_to_when_a_removal_has_found_it_stays(
    stage: Stage, check_tables: CheckTables, run_sql: Callable[..., Any], database: str, why: str, pipeline: bool
) -> None:
    remover, saver = stage.store(pipeline=pipeline), stage.store(ttl_s=3_600)
    saver.save("thread", conversation("plum"), "c1")
    age = "updated_at = updated_at - INTERVAL 40 DAY, created_at = created_at - INTERVAL 40 DAY"
    if why == "expired":
        age = "expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND"
    run_sql(f"UPDATE {database}.locus_store_threads SET {age}")
    removing = until_it_locks(remover.begin("vacuum", 30))
    saver.save("thread", conversation("plum", "fig"), "c2")
    assert removing.finish() == 0
    for load in (lambda *args: stage.afresh("load", *args), saver.load):
        assert load("thread") == conversation("plum", "fig")
    assert stage.afresh("list_checkpoints", "thread") == (["c2", "c1"] if why == "idle" else ["c2"])
    check_tables()


@pytest.mark.parametrize("made_of", ["a save", "saves that build on each other"])
def test_rows_left_behind_without_a_thread_are_found_and_repaired(
    stage: Stage, check_tables: CheckTables, database: str, run_sql: Callable[..., Any], made_of: str
) -> None:
    """An earlier version could leave checkpoints whose thread's row is missing."""

    def leave_behind(thread_id: str) -> Process:
        process = stage.store()
        for turn in range(1 if made_of == "a save" else 5):
            process.save(thread_id, conversation(*("plum", "fig", "pear", "nut", "date")[: turn + 1]), f"c{turn}")
        run_sql(f"DELETE FROM {database}.locus_store_threads WHERE thread_id = %s", thread_id)
        return process

    for repair in (("vacuum", 0), ("forget_tenant",)):
        leave_behind("thread")
        stage.afresh(*repair)
        check_tables()
        assert run_sql(f"SELECT COUNT(*) FROM {database}.locus_store_checkpoints") == ((0,),), repair
    for saver in (leave_behind("thread"), stage.store()):
        saver.save("thread", conversation("anew"), "c0")
        assert stage.afresh("load", "thread") == conversation("anew")
        assert stage.afresh("load", "thread", "c0") == conversation("anew")
        assert_serves_anew(stage, saver, "thread")
        check_tables()
        saver.delete("thread")
        check_tables()
        leave_behind("thread")
    stage.afresh("save", "source", conversation("plum"), "c1")
    with pytest.raises(ThreadExists):
        stage.afresh("copy_thread", "source", "thread")
    assert stage.afresh("load", "thread") is not None
    assert stage.afresh("delete", "thread")
    assert stage.afresh("copy_thread", "source", "thread")
    assert stage.afresh("load", "thread") == conversation("plum")
    check_tables()


# A call whose answer was lost is not executed twice


def replaced(other: Process) -> State:
    other.save("thread", conversation("plum", "fig"), "c1")
    return conversation("plum", "fig")


def replaced_twice(other: Process) -> State:
    replaced(other)
    other.save("thread", conversation("nut"), "c1")
    return conversation("nut")


def deleted_and_gone_on(other: Process) -> State:
    other.save("thread", conversation("plum", "fig"), "c2")
    other.delete("thread", "c1")
    return conversation("plum", "fig")


def thread_deleted(other: Process) -> None:
    other.delete("thread")


def thread_made_anew(other: Process) -> State:
    other.delete("thread")
    other.save("thread", conversation("fig"), "c2")
    return conversation("fig")


def thread_made_anew_with_the_same_id(other: Process) -> State:
    other.delete("thread")
    other.save("thread", conversation("fig"), "c1")
    return conversation("fig")


def thread_vacuumed_and_made_anew(other: Process) -> State:
    other.vacuum(0)
    other.save("thread", conversation("fig"), "c2")
    return conversation("fig")


def tenant_forgotten_and_thread_made_anew(other: Process) -> State:
    other.forget_tenant()
    other.save("thread", conversation("fig"), "c2")
    return conversation("fig")


def thread_copied_over(other: Process) -> State:
    other.delete("thread")
    other.save("source", conversation("fig"), "c1")
    other.copy_thread("source", "thread")
    return conversation("fig")


MEANWHILE = (
    replaced,
    replaced_twice,
    deleted_and_gone_on,
    thread_deleted,
    thread_made_anew,
    thread_made_anew_with_the_same_id,
    thread_vacuumed_and_made_anew,
    tenant_forgotten_and_thread_made_anew,
    thread_copied_over,
)


@pytest.mark.parametrize("before", [[], ["nut"], ["plum"]], ids=["new", "another", "goes on"])
@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_a_save_whose_answer_was_lost_does_not_overwrite_a_later_one(
    stage: Stage, check_tables: CheckTables, meanwhile: Callable[[Process], State | None], before: list[str]
) -> None:
    one, other = stage.store(), stage.store()
    if before:
        one.save("thread", conversation(*before), "c0")
    saving = one.begin("save", "thread", conversation("plum"), "c1").lose_answer()
    assert other.load("thread") == conversation("plum")
    newest = meanwhile(other)
    assert saving.finish() == "c1"
    for load in (lambda *args: stage.afresh("load", *args), other.load, one.load):
        assert load("thread") == newest
    one.save("thread", conversation("plum", "pear"), "c3")
    for load in (lambda *args: stage.afresh("load", *args), other.load, one.load):
        assert load("thread") == conversation("plum", "pear")
    check_tables()


@pytest.mark.parametrize("checkpoint_id", [None, "c1"])
@pytest.mark.parametrize("keep", [1, 2])
def test_a_save_whose_answer_was_lost_and_that_was_pruned_does_not_overwrite_a_later_one(
    stage: Stage, check_tables: CheckTables, keep: int, checkpoint_id: str | None
) -> None:
    one, other = stage.store(keep_checkpoints=keep), stage.store(keep_checkpoints=keep)
    saving = one.begin("save", "thread", conversation("plum"), checkpoint_id).lose_answer()
    for words in (("plum", "fig"), ("plum", "fig", "nut")):
        assert other.load("thread") == conversation(*words[:-1])
        other.save("thread", conversation(*words))
    saving.finish()
    for load in (lambda *args: stage.afresh("load", *args), other.load, one.load):
        assert load("thread") == conversation("plum", "fig", "nut")
    assert len(stage.afresh("list_checkpoints", "thread")) == keep
    check_tables()


@pytest.mark.parametrize("checkpoint_id", [None, "c1"])
def test_a_save_of_a_backend_whose_answer_was_lost_does_not_overwrite_a_later_one(
    stage: Stage, check_tables: CheckTables, checkpoint_id: str | None
) -> None:
    one, other = stage.store("backend"), stage.store("backend")
    saving = one.begin("save", "thread", conversation("plum"), checkpoint_id).lose_answer()
    assert other.load("thread") == conversation("plum")
    other.save("thread", conversation("plum", "fig"))
    saving.finish()
    for load in (stage.store("backend").load, other.load, one.load):
        assert load("thread") == conversation("plum", "fig")
    check_tables()


@pytest.mark.parametrize("then", ["saved to", "vacuumed", "copied over"])
@pytest.mark.parametrize("checkpoint_id", [None, "c1"])
def test_a_save_whose_answer_was_lost_and_whose_thread_expired_does_not_overwrite_a_later_one(
    stage: Stage,
    check_tables: CheckTables,
    run_sql: Callable[..., Any],
    database: str,
    checkpoint_id: str | None,
    then: str,
) -> None:
    one, other = stage.store(ttl_s=60), stage.store(ttl_s=60)
    other.save("source", conversation("fig"), "c2")
    saving = one.begin("save", "thread", conversation("plum"), checkpoint_id).lose_answer()
    expire = "SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE thread_id = 'thread'"
    run_sql(f"UPDATE {database}.locus_store_threads {expire}")
    if then == "vacuumed":
        other.vacuum(30)
    if then == "copied over":
        other.copy_thread("source", "thread")
    else:
        other.save("thread", conversation("fig"), "c2")
    saved = saving.finish()
    assert checkpoint_id in (None, saved)
    for load in (lambda *args: stage.afresh("load", *args), other.load, one.load):
        assert load("thread") == conversation("fig")
    assert stage.afresh("list_checkpoints", "thread") == ["c2"]
    check_tables()


@pytest.mark.parametrize("make", [save, copy])
@pytest.mark.parametrize("what", ["the checkpoint", "the thread"])
def test_a_delete_whose_answer_was_lost_spares_what_was_made_afterwards(
    stage: Stage, check_tables: CheckTables, what: str, make: Callable[[Process], Call]
) -> None:
    one, other = stage.store(), stage.store()
    other.save("source", conversation("plum"), "c1")
    one.save("thread", conversation("nut"), "c1")
    deleting = one.begin("delete", "thread", *(["c1"] if what == "the checkpoint" else [])).lose_answer()
    make(other).finish()
    assert deleting.finish() is True
    for load in (lambda *args: stage.afresh("load", *args), other.load, one.load):
        assert load("thread") == load("thread", "c1") == conversation("plum")
    check_tables()
