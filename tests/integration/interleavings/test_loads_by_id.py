"""Loads of the newest checkpoint by its id, while it is replaced or deleted: the cached state is never a stale one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conversations import CheckTables, State, conversation
from .stage import Process, Stage

pytestmark = pytest.mark.slow

FIRST, SECOND = conversation("plum"), conversation("plum", "fig")


def replace(process: Process) -> State | None:
    process.save("thread", SECOND, "c1")
    return SECOND


def delete(process: Process) -> State | None:
    assert process.delete("thread", "c1")
    return None


def make_anew(process: Process) -> State | None:
    assert process.delete("thread")
    process.save("thread", SECOND, "c1")
    return SECOND


def replace_and_back(process: Process) -> State | None:
    process.save("thread", SECOND, "c1")
    process.save("thread", FIRST, "c1")
    return FIRST


CHANGES: tuple[Callable[[Process], State | None], ...] = (replace, delete, make_anew, replace_and_back)


def assert_loaded_by_all(stage: Stage, check_tables: CheckTables, state: State | None, *processes: Process) -> None:
    for _ in range(2):  # the first load caches what it found
        for load in (*(process.load for process in processes), lambda *args: stage.afresh("load", *args)):
            assert load("thread", "c1") == state
    check_tables()


@pytest.mark.parametrize("by", ["itself", "another"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("cached", [True, False], ids=["cached", "unknown"])
@pytest.mark.parametrize("moment", ["before the look-up", "before its answer"])
def test_a_load_returns_a_state_that_the_checkpoint_had_during_the_load(
    stage: Stage,
    check_tables: CheckTables,
    by: str,
    change: Callable[[Process], State | None],
    cached: bool,
    moment: str,
) -> None:
    one, other, saver = stage.store(), stage.store(), stage.store()
    saver.save("thread", FIRST, "c1")
    if cached:
        assert one.load("thread", "c1") == FIRST
    loading = one.begin("load", "thread", "c1")
    if moment == "before its answer":
        loading.carry_out()
    state = change(one if by == "itself" else other)
    assert loading.finish() == (FIRST if moment == "before its answer" else state)
    assert_loaded_by_all(stage, check_tables, state, one, other, saver)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_between_the_look_up_and_the_read_of_the_rows_is_seen(
    stage: Stage, check_tables: CheckTables, change: Callable[[Process], State | None]
) -> None:
    one, other = stage.store(), stage.store()
    one.save("thread", FIRST, "c1")
    other.save("thread", conversation("pear"), "c2")  # the look-up finds another version
    loading = one.begin("load", "thread", "c1").step()
    assert loading.state == "asks"  # it is about to read the rows
    state = change(other)
    assert loading.finish() == state
    assert_loaded_by_all(stage, check_tables, state, one, other)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("arrives", ["before the change", "after the change"])
@pytest.mark.parametrize("known", [True, False], ids=["known thread", "new thread"])
def test_a_late_packet_of_a_save_does_not_make_its_state_the_cached_one_again(
    stage: Stage, check_tables: CheckTables, change: Callable[[Process], State | None], arrives: str, known: bool
) -> None:
    one, other = stage.store(), stage.store()
    if known:
        one.save("thread", conversation("pear"), "c0")
    saving = one.begin("save", "thread", FIRST, "c1")
    arrive = saving.delay_request()
    assert saving.finish() == "c1"
    assert one.load("thread", "c1") == FIRST
    if arrives == "before the change":
        arrive()
        assert one.load("thread", "c1") == FIRST
    state = change(other)
    if arrives == "after the change":
        arrive()
    assert_loaded_by_all(stage, check_tables, state, one, other)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_save_whose_answer_was_lost_is_not_cached_if_its_checkpoint_was_changed(
    stage: Stage, check_tables: CheckTables, change: Callable[[Process], State | None]
) -> None:
    one, other = stage.store(), stage.store()
    saving = one.begin("save", "thread", FIRST, "c1")
    saving.carry_out()
    saving.lose_answer()
    state = change(other)
    assert saving.finish() == "c1"
    assert_loaded_by_all(stage, check_tables, state, one, other)
