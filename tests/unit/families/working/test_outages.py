"""The parts of which a storage with a fallback is made, by values: breaker, journal, merging, turns and workers."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from locus_mysql.families.working.calls import (
    Append,
    Clear,
    ClearNotes,
    Command,
    CompareAndSet,
    CreateCheckpoint,
    End,
    Found,
    Increment,
    Inspect,
    Read,
    Remove,
    Reply,
    RestoreCheckpoint,
    Touch,
    Versions,
    Write,
    WriteTask,
)
from locus_mysql.families.working.storages.outages.breaker import Admission, Breaker
from locus_mysql.families.working.storages.outages.journal import PART_ENTRIES, Journal, Part
from locus_mysql.families.working.storages.outages.merging import Look, Ours, merge
from locus_mysql.families.working.storages.outages.turns import Turn
from locus_mysql.families.working.storages.outages.workers import Workers

from .frail import call, variable

DEADLINE_S = 60.0


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def breaker(clock: Clock, chance: float = 0.5) -> Breaker:
    return Breaker(1.0, 5.0, 0.2, clock, lambda: chance)


def test_a_breaker_lets_one_probe_after_each_wait_and_waits_longer_each_time() -> None:
    clock = Clock()
    one = breaker(clock)
    assert one.admit() is Admission.GO
    assert one.failed(one.outages) is True
    assert one.failed(one.outages) is False
    for wait_s in (1, 2, 4, 5, 5):
        assert one.admit() is Admission.NO
        clock.now_s += wait_s
        assert [one.admit(), one.admit()] == [Admission.PROBE, Admission.NO]
        one.probed(False)
    clock.now_s += 5
    assert one.admit() is Admission.PROBE
    one.probed(True)
    assert [one.admit(), one.admit(), one.open] == [Admission.GO, Admission.GO, False]
    clock.now_s += 11
    assert one.failed(one.outages) is True
    clock.now_s += 1
    assert one.admit() is Admission.PROBE


@pytest.mark.parametrize(("chance", "wait_s"), [(0.0, 0.8), (1.0, 1.2)])
def test_the_waits_of_several_processes_differ(chance: float, wait_s: float) -> None:
    clock = Clock()
    one = breaker(clock, chance)
    one.failed(0)
    clock.now_s += wait_s - 0.01
    assert one.admit() is Admission.NO
    clock.now_s += 0.02
    assert one.admit() is Admission.PROBE


def test_a_call_from_before_an_outage_begins_no_other_one() -> None:
    one = breaker(Clock())
    before = one.outages
    one.failed(before)
    assert one.admit(at_once=True) is Admission.PROBE
    one.probed(True)
    assert one.failed(before) is False
    assert not one.open


def test_a_probe_that_was_given_up_is_taken_by_the_next() -> None:
    one = breaker(Clock())
    one.failed(0)
    assert one.admit(at_once=True) is Admission.PROBE
    one.given_up()
    assert one.admit(at_once=True) is Admission.PROBE


def noted(*commands: Command[Any], results: tuple[object, ...] | None = None) -> Journal:
    journal = Journal()
    for place, command in enumerate(commands):
        journal.note(call(command), Reply((True,) if results is None else (results[place],), 1), place)
    return journal


def entries(journal: Journal) -> list[Command[Any]]:
    return [entry.command for part in journal.parts for entry in part.entries]


A1, A2, B1 = Write((variable("a", 1),)), Write((variable("a", 2),)), Write((variable("b", 1),))


@pytest.mark.parametrize(
    ("written", "waiting"),
    [
        ([A1, B1, A2], [B1, A2]),
        ([A1, Remove(("a",))], [Remove(("a",))]),
        ([Remove(("a", "b")), A1], [Remove(("b",)), A1]),
        ([Increment("n", 2), Increment("n", 3)], [Increment("n", 5)]),
        ([A1, Increment("a", 4)], [Write((variable("a", 5),))]),
        ([Increment("a", 4), A1], [A1]),
        ([Remove(("a",)), Increment("a", 4)], [Remove(("a",)), Increment("a", 4)]),
        ([Increment("n", 2**63 - 1), Increment("n", 1)], [Increment("n", 2**63 - 1), Increment("n", 1)]),
        ([A1, Increment("n", 1), Append(b"1"), Clear(), B1], [Append(b"1"), Clear(), B1]),
        ([Append(b"1"), A1, ClearNotes(), Append(b"2")], [A1, ClearNotes(), Append(b"2")]),
        ([WriteTask(b"1"), WriteTask(b"2")], [WriteTask(b"2")]),
        ([Touch(5), Touch(), Touch(6), Touch()], [Touch(6)]),
        ([A1, CreateCheckpoint("c"), A2], [A1, CreateCheckpoint("c"), A2]),
        ([Increment("n", 1), CreateCheckpoint("c"), Increment("n", 1)],) * 2,
        ([A1, Append(b"1"), End(), B1], [End(), B1]),
    ],
)
def test_what_waits_is_what_counts(written: list[Command[Any]], waiting: list[Command[Any]]) -> None:
    assert entries(noted(*written)) == waiting


def test_a_comparison_that_did_not_hold_writes_nothing() -> None:
    journal = noted(CompareAndSet(variable("a", 1), None), CompareAndSet(variable("b", 1), None), results=(False, True))
    assert entries(journal) == [B1]


def test_a_repeated_call_waits_once() -> None:
    journal, again = Journal(), call(Append(b"1"))
    for _ in range(2):
        journal.note(again, Reply((None,), 1), 0)
    assert len(journal) == 1
    assert journal.size_bytes > 0


def test_an_end_leaves_only_what_may_have_been_carried_out() -> None:
    journal = Journal()
    journal.note(call(Append(b"1")), Reply((None,), 1), 0, uncertain=True)
    for command in (Append(b"2"), End(), Append(b"3")):
        journal.note(call(command), Reply((None,), 1), 0)
    assert entries(journal) == [Append(b"1"), End(), Append(b"3")]
    assert len(journal.parts) == 3  # an end stands alone in its call


def test_parts_are_bounded() -> None:
    journal = noted(*(Append(b"1") for _ in range(2 * PART_ENTRIES + 1)))
    assert [len(part.entries) for part in journal.parts] == [PART_ENTRIES, PART_ENTRIES, 1]
    for part in list(journal.parts):
        journal.done(part)
    assert (len(journal), journal.size_bytes) == (0, 0)


def look(stamp: int = 10, task: int = 0, notes: int = 0, **versions: int) -> Look:
    return Look(Versions(versions, task, notes), {}, None, (), stamp)


def merged(journal: Journal, seen: Look, ours: Ours, now_us: int = 100) -> tuple[list[Command[Any]], list[str]]:
    (part,) = journal.parts
    one = merge(part, seen, ours, now_us)
    return one.commands, one.lost


def test_only_newer_rows_win() -> None:
    journal = noted(A1, B1, Increment("n", 1), WriteTask(b"1"), ClearNotes(), Append(b"1"))
    commands, lost = merged(journal, look(a=10, b=11, n=12, task=12, notes=12), Ours(10))
    assert commands == [Write((variable("a", 1),)), Increment("n", 1), Append(b"1")]
    assert len(lost) == 3


def test_what_this_process_replayed_before_is_not_newer() -> None:
    journal = noted(A1, B1)
    assert merged(journal, look(a=15, b=16), Ours(10, [(14, 15)]))[0] == [A1]


def test_what_this_process_may_have_written_is_known_by_its_value() -> None:
    journal = noted(A2, B1)
    part = Part(sent=(A1,))
    part.append(noted(A1).parts[0].entries[0])
    ours = Ours(10)
    ours.may_be(part, Reply((None,), 20))
    there = Look(Versions({"a": 15}), {"a": Found(b"1", None)}, None, (), 15)
    assert merged(journal, there, ours) == ([Write((variable("a", 2), variable("b", 1)))], [])
    other = Look(Versions({"a": 15}), {"a": Found(b"9", None)}, None, (), 15)
    assert len(merged(journal, other, ours)[1]) == 1


def test_removals_come_first_so_that_there_is_place() -> None:
    journal = noted(A1, Append(b"1"), Remove(("b", "c")))
    assert merged(journal, look(), Ours(10))[0] == [Remove(("b", "c")), A1, Append(b"1")]


def test_what_expired_while_it_waited_is_removed() -> None:
    journal = noted(Write((variable("a", 1, 50), variable("b", 1, 500))))
    assert merged(journal, look(), Ours(10), now_us=100)[0] == [Remove(("a",)), Write((variable("b", 1, 400),))]


def test_clearing_spares_only_what_is_newer() -> None:
    journal = noted(Clear(), B1)
    assert merged(journal, look(a=5), Ours(10)) == ([Clear(), B1], [])
    commands, lost = merged(journal, look(a=5, c=11), Ours(10))
    assert commands == [Remove(("a",)), B1]
    assert len(lost) == 1


def test_a_checkpoint_made_before_is_not_restored_over_what_is_newer() -> None:
    journal = noted(RestoreCheckpoint("c", "undo"))
    assert merged(journal, look(a=11), Ours(10))[0] == []
    assert merged(journal, look(a=9), Ours(10))[0] == [RestoreCheckpoint("c", "undo")]
    same = noted(CreateCheckpoint("c"), A1, RestoreCheckpoint("c", "undo"))
    assert merged(same, look(b=11), Ours(10))[0] == [CreateCheckpoint("c"), A1, RestoreCheckpoint("c", "undo")]


def test_values_are_asked_for_only_where_they_tell_something() -> None:
    (part,) = noted(A1, B1).parts
    assert Look.commands(part, Ours()) == (Inspect(("a", "b")),)
    assert Look.commands(part, Ours(values={"a": b"1", "x": b"1"})) == (Inspect(("a", "b")), Read(("a",)))


def test_a_turn_goes_on_in_order() -> None:
    turn, woken = Turn(), list[str]()
    assert turn.take()
    assert not turn.take()
    waiting = [lambda name=name: woken.append(name) is None for name in "abc"]  # type: ignore[misc]
    for wake in waiting:
        assert not turn.take(wake)
    turn.leave(waiting[1])
    turn.give()
    assert woken == ["a"]
    turn.leave(waiting[0])  # cancelled when the turn had come: it goes on
    assert woken == ["a", "c"]
    turn.give()
    assert turn.take()


def test_a_turn_passes_those_who_are_not_there_any_more() -> None:
    turn = Turn()
    assert turn.take()
    assert not turn.take(lambda: False)
    turn.give()
    assert turn.take()


def test_workers_give_results_and_errors_and_give_up() -> None:
    workers = Workers(1)
    go_on, begun = threading.Event(), threading.Event()
    assert workers.run(lambda: 5, DEADLINE_S) == 5
    with pytest.raises(KeyError):
        workers.run(lambda: {}["a"], DEADLINE_S)

    def hang() -> None:
        begun.set()
        go_on.wait(DEADLINE_S)

    with pytest.raises(TimeoutError):
        workers.run(hang, 0.05)
    assert begun.wait(DEADLINE_S)
    done: list[int] = []
    with pytest.raises(TimeoutError, match=r"0\.05 s"):  # all threads are busy
        workers.run(lambda: done.append(1), 0.05)
    go_on.set()
    assert workers.run(lambda: 6, DEADLINE_S) == 6
    assert done == []  # nobody waited for it any more


def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locus_mysql.families.working.storages.outages.workers.IDLE_S", 0.01)
    workers, threads = Workers(4), set[threading.Thread]()
    for _ in range(3):
        workers.run(lambda: threads.add(threading.current_thread()), DEADLINE_S)
    deadline = time.monotonic() + DEADLINE_S
    while any(thread.is_alive() for thread in threads):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert workers.run(lambda: 5, DEADLINE_S) == 5
