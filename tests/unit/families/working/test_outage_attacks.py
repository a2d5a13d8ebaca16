"""Outages in which the wire, the clock or the primary misbehave at the worst moment."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.errors import Unavailable
from locus_mysql.families.working.calls import (
    Address,
    Append,
    CompareAndSet,
    CreateCheckpoint,
    Increment,
    Read,
    ReadAll,
    ReadNotes,
    RestoreCheckpoint,
    Write,
)
from locus_mysql.families.working.storages.outages import replaying
from locus_mysql.families.working.storages.outages.breaker import Breaker
from locus_mysql.working import FallbackStorage, SyncWorkingMemory, TaskState

from .frail import HERE, Frail, variable
from .test_fallback import OTHER, Side, side, values

__all__ = ["side"]


def test_a_change_of_the_task_whose_answer_was_lost_is_known_as_ones_own() -> None:
    frail = Frail()
    storage = FallbackStorage(frail, "memory")
    memory = SyncWorkingMemory("s", storage)
    memory.set_task_state(TaskState(task_id="t").start())
    changes = 0

    def change(task: TaskState | None) -> TaskState:
        nonlocal changes
        assert task is not None
        changes += 1
        if changes == 1:
            frail.away, frail.loses = True, lambda: True
        else:
            frail.loses = lambda: False
        return task.advance()

    memory.update_task_state(change)
    changed = memory.update_task_state(change)
    frail.away = False
    assert storage.flush_blocking() == 0
    assert memory.stats().lost == ()
    assert SyncWorkingMemory("s", frail.kept).get_task_state() == changed


def test_a_comparison_that_may_have_held_is_not_said_to_have_failed(side: Side) -> None:
    side.do(Write((variable("lock", 1),)))
    side.others(Write((variable("lock", 0),)))
    side.goes(loses=True)
    with pytest.raises(Unavailable):
        side.do(CompareAndSet(variable("lock", 2), b"0"))
    side.primary.loses = lambda: False
    side.comes()
    assert values(side.do(ReadAll())) == {"lock": b"2"}
    assert side.lost == []


def test_a_primary_that_answers_but_takes_no_writes_is_tried_less_and_less_often() -> None:
    now, waits = [0.0], []
    breaker = Breaker(0.5, 30.0, 0.0, lambda: now[0])
    for _ in range(12):
        began = now[0]
        assert breaker.failed(breaker.outages)
        while breaker.admit().name == "NO":
            now[0] += 0.25
        waits.append(now[0] - began)
        breaker.probed(True)
    assert waits[0] <= 0.5
    assert waits[-1] == 30.0
    now[0] += 61  # it has stood the test
    assert breaker.failed(breaker.outages)
    now[0] += 0.5
    assert breaker.admit().name == "PROBE"


def test_sessions_only_read_in_an_outage_leave_nothing_behind(side: Side) -> None:
    others = [Address("t", f"other {number}") for number in range(50)]
    for address in others:
        side.do(Write((variable("a", 1),)), address=address)
    side.goes()
    for address in others:
        assert values(side.do(ReadAll(), address=address)) == {"a": b"1"}
    side.comes()
    for _ in range(100):
        side.do(Read(("a",)))
    fallback: Any = side.storage.fallback
    assert len(fallback._sessions) == 0
    assert not any(side.storage.condition(address).degraded for address in others)


def test_a_checkpoint_of_a_session_never_seen_may_be_on_the_primary(side: Side) -> None:
    side.others(CreateCheckpoint("c"))
    side.goes()
    with pytest.raises(Unavailable):  # known to be away, by now
        side.do(RestoreCheckpoint("c", "u"))
    with pytest.raises(Unavailable):
        side.do(RestoreCheckpoint("c", "u"))


@pytest.mark.parametrize("carried_out", [False, True], ids=["not carried out", "carried out"])
def test_what_was_sent_longer_ago_than_tokens_are_kept_is_not_done_twice(
    side: Side, carried_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    side.ask(Write((variable("n", 1),)), Append(b"1"))
    side.goes(loses=carried_out)
    side.ask(Increment("n", 1), Append(b"2"))
    side.primary.loses = lambda: False
    side.do(Increment("m", 1))
    side.primary.kept._done.clear()
    monkeypatch.setattr(replaying, "now_us", lambda: 2**62)
    side.comes()
    side.flush()
    assert values(side.others(ReadAll())[0]) == {"n": b"2", "m": b"1"}
    assert side.others(ReadNotes()) == ([b"1", b"2"],)
    assert bool(side.lost) is carried_out


def test_what_was_sent_gets_no_company_while_its_answer_is_awaited(side: Side) -> None:
    side.do(Append(b"1"))
    side.goes()
    side.do(Append(b"2"))
    side.ask(Append(b"3"), Increment("n", 1), Write((variable("a", 1),)))
    answers = iter([True])
    side.primary.mute = lambda: not next(answers, False)
    side.comes()
    for number in range(3):
        side.ask(Append(b"4"), Increment("n", 1), Write((variable("a", number),)))
    side.primary.mute = lambda: False
    assert side.flush() == 0
    assert side.others(ReadNotes()) == ([b"1", b"2", b"3", b"4", b"4", b"4"],)
    assert values(side.others(ReadAll())[0]) == {"n": b"4", "a": b"2"}
    assert side.lost == []


def test_a_tenant_is_forgotten_with_what_waits_and_what_passed_through(side: Side) -> None:
    def forget() -> int:
        if side.loop:
            return side.loop.run_until_complete(side.storage.forget_tenant("t"))
        return side.storage.forget_tenant_blocking("t")

    other = Address("another", "s")
    for address in (HERE, OTHER, other):
        side.do(Write((variable("a", 1),)), address=address)
    side.goes()
    for address in (HERE, other):
        side.do(Write((variable("b", 2),)), address=address)
    with pytest.raises(Unavailable):
        forget()
    for address in (HERE, OTHER):
        assert side.do(ReadAll(), address=address) == {}
    assert values(side.do(ReadAll(), address=other)) == {"a": b"1", "b": b"2"}
    side.comes()
    assert forget() == 2
    assert side.flush() == 0
    assert side.others(ReadAll()) == ({},)
    assert values(side.others(ReadAll(), address=other)[0]) == {"a": b"1", "b": b"2"}
    assert side.lost == []


def test_a_comparison_behind_a_write_that_was_sent_holds_when_that_was_carried_out(side: Side) -> None:
    side.do(Append(b"1"))
    side.goes()
    side.do(ReadAll())
    side.do(CompareAndSet(variable("a", 1), None))
    side.primary.mute = lambda: True
    side.comes()
    side.do(CompareAndSet(variable("a", 2), b"1"))
    side.primary.mute = lambda: False
    assert side.flush() == 0
    assert values(side.others(ReadAll())[0]) == {"a": b"2"}
    assert side.lost == []
