"""Repeated packets of writes that arrive late change nothing, and deleted states leave the caches."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conversations import CheckTables, State, assert_serves_anew, conversation
from .stage import Call, Process, Stage

pytestmark = pytest.mark.slow


def save_anew(process: Process) -> Call:
    return process.begin("save", "thread", conversation("nut"))


def save_that_goes_on(process: Process) -> Call:
    process.save("thread", conversation("nut"), "c1")
    return process.begin("save", "thread", conversation("nut", "date"))


def save_that_replaces(process: Process) -> Call:
    process.save("thread", conversation("nut"), "c1")
    return process.begin("save", "thread", conversation("nut", "date"), "c1")


def delete_checkpoint(process: Process) -> Call:
    process.save("thread", conversation("nut"), "c1")
    process.save("thread", conversation("nut", "date"), "c2")
    return process.begin("delete", "thread", "c1")


def delete_last_checkpoint(process: Process) -> Call:
    process.save("thread", conversation("nut"), "c1")
    return process.begin("delete", "thread", "c1")


def delete_missing_checkpoint(process: Process) -> Call:
    process.save("thread", conversation("nut"), "c2")
    return process.begin("delete", "thread", "c1")


def delete_checkpoint_of_missing_thread(process: Process) -> Call:
    return process.begin("delete", "thread", "c1")


def delete_thread(process: Process) -> Call:
    process.save("thread", conversation("nut"), "c1")
    return process.begin("delete", "thread")


def delete_missing_thread(process: Process) -> Call:
    return process.begin("delete", "thread")


def copy_over(process: Process) -> Call:
    process.save("source", conversation("nut"), "c1")
    return process.begin("copy_thread", "source", "thread")


def copy_of_what_is_missing(process: Process) -> Call:
    return process.begin("copy_thread", "source", "thread")


LATE = (
    save_anew,
    save_that_goes_on,
    save_that_replaces,
    delete_checkpoint,
    delete_last_checkpoint,
    delete_missing_checkpoint,
    delete_checkpoint_of_missing_thread,
    delete_thread,
    delete_missing_thread,
    copy_over,
    copy_of_what_is_missing,
)


@pytest.mark.parametrize("first", ["goes on", "begins anew"])
@pytest.mark.parametrize("begin", LATE)
def test_the_first_packet_of_a_repeated_write_that_arrives_late_changes_nothing(
    stage: Stage, check_tables: CheckTables, begin: Callable[[Process], Call], first: str
) -> None:
    one, other = stage.store(), stage.store()
    call = begin(one)
    arrive = call.delay_request()
    call.finish()
    if first == "begins anew":
        other.delete("thread")
    if begin is copy_of_what_is_missing:
        other.save("source", conversation("nut"), "c1")
    else:
        other.load("thread")
        other.save("thread", conversation("plum"), "c1")

    def look() -> list[tuple[str, State]]:
        names = stage.afresh("list_checkpoints", "thread")
        return [(name, stage.afresh("load", "thread", name)) for name in names]

    before = look()
    arrive()
    assert look() == before
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
