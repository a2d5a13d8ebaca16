"""Packets that arrive late change nothing once the write was carried out, and deleted states leave the caches."""

from __future__ import annotations

import pytest

from locus_mysql import NO_CHECKPOINT
from locus_mysql.errors import Conflict

from .conversations import CheckTables, assert_serves_anew, conversation
from .stage import Stage

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("holds", [False, True], ids=["refused again", "carried out"])
def test_a_packet_of_a_refused_save_that_arrives_late_is_an_ordinary_save(
    stage: Stage, check_tables: CheckTables, holds: bool
) -> None:
    one, other = stage.store(), stage.store()
    other.save("thread", conversation("nut"), "c1")
    call = one.begin("save", "thread", conversation("date"), "c2", expected=NO_CHECKPOINT)
    arrive = call.delay_request()
    with pytest.raises(Conflict):
        call.finish()
    if holds:
        other.delete("thread")
    arrive()
    assert stage.afresh("list_checkpoints", "thread") == (["c2"] if holds else ["c1"])
    assert stage.afresh("load", "thread") == conversation("date" if holds else "nut")
    check_tables()
    assert_serves_anew(stage, one, "thread")


@pytest.mark.parametrize("lost", [False, True], ids=["answered", "answer lost"])
@pytest.mark.parametrize("arguments", [("delete", "thread", "c1"), ("delete", "thread"), ("forget_tenant",)])
def test_deleted_states_leave_the_caches(stage: Stage, arguments: tuple[str, ...], lost: bool) -> None:
    one = stage.store()
    one.save("thread", conversation("plum"), "c1")
    deleting = one.begin(*arguments)
    if arguments[0] == "forget_tenant":
        deleting.step()  # it reads the list of threads
    if lost:
        deleting.lose_answer()
    deleting.finish()
    snapshot = one.store._operations.checkpoints.context.cache.snapshot(("default", "thread"))
    assert snapshot.state is None
    assert not snapshot.newest


@pytest.mark.parametrize("pipeline", [True, False], ids=["packets", "statements"])
@pytest.mark.parametrize("what", ["lose_request", "lose_answer"])
@pytest.mark.parametrize("knows", [True, False], ids=["loaded before", "unknown thread"])
def test_a_replacement_of_another_process_s_checkpoint_is_saved_once_whatever_packet_is_lost(
    stage: Stage, check_tables: CheckTables, what: str, pipeline: bool, knows: bool
) -> None:
    """The save takes the id to be new, is refused, and replaces the checkpoint: each of its packets is lost once."""
    for packet in range(40):
        one, other = stage.store(pipeline=pipeline), stage.store()
        other.delete("thread")
        other.save("thread", conversation("fig"), "c0")
        other.save("thread", conversation("nut"), "c1")
        other.save("thread", conversation("nut", "fig"), "c2")
        if knows:
            assert one.load("thread") == conversation("nut", "fig")
        call = one.begin("save", "thread", conversation("nut", "fig", "date"), "c1")
        for _ in range(packet):
            if not call.done:
                call.step()
        if call.done:
            assert packet >= 2, "the id was not refused"
            return
        getattr(call, what)()
        assert call.finish() == "c1"
        assert stage.afresh("list_checkpoints", "thread") == ["c1", "c2", "c0"]
        assert stage.afresh("load", "thread") == one.load("thread") == conversation("nut", "fig", "date")
        assert stage.afresh("load", "thread", "c2") == conversation("nut", "fig")
        check_tables()
    raise AssertionError("The call never ended.")
