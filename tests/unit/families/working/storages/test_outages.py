"""The parts of a storage with a fallback: breaker, journal, merging, lock and executor."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.outages.breaker import Admission, Breaker
from locus_mysql.families.working.storages.outages.fair_lock import FairLock
from locus_mysql.families.working.storages.outages.journal import PART_ENTRIES, Journal, Part
from locus_mysql.families.working.storages.outages.merging import OwnWrites, Snapshot, merge
from locus_mysql.families.working.storages.outages.timeout_executor import TimeoutExecutor

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


def noted(*commands: calls.Command[Any], results: tuple[object, ...] | None = None) -> Journal:
    journal = Journal()
    for index, command in enumerate(commands):
        journal.record(call(command), calls.Reply((True,) if results is None else (results[index],), 1), index)
    return journal


def entries(journal: Journal) -> list[calls.Command[Any]]:
    return [entry.command for part in journal.parts for entry in part.entries]


A1, A2, B1 = calls.Write((variable("a", 1),)), calls.Write((variable("a", 2),)), calls.Write((variable("b", 1),))


@pytest.mark.parametrize(
    ("written", "waiting"),
    [
        ([A1, B1, A2], [B1, A2]),
        ([A1, calls.Remove(("a",))], [calls.Remove(("a",))]),
        ([calls.Remove(("a", "b")), A1], [calls.Remove(("b",)), A1]),
        ([calls.Increment("n", 2), calls.Increment("n", 3)], [calls.Increment("n", 5)]),
        ([A1, calls.Increment("a", 4)], [calls.Write((variable("a", 5),))]),
        ([calls.Increment("a", 4), A1], [A1]),
        ([calls.Remove(("a",)), calls.Increment("a", 4)], [calls.Remove(("a",)), calls.Increment("a", 4)]),
        (
            [calls.Increment("n", 2**63 - 1), calls.Increment("n", 1)],
            [calls.Increment("n", 2**63 - 1), calls.Increment("n", 1)],
        ),
        ([A1, calls.Increment("n", 1), calls.Append(b"1"), calls.Clear(), B1], [calls.Append(b"1"), calls.Clear(), B1]),
        (
            [calls.Append(b"1"), A1, calls.ClearNotes(), calls.Append(b"2")],
            [A1, calls.ClearNotes(), calls.Append(b"2")],
        ),
        ([calls.WriteTask(b"1"), calls.WriteTask(b"2")], [calls.WriteTask(b"2")]),
        ([calls.Touch(5), calls.Touch(), calls.Touch(6), calls.Touch()], [calls.Touch(6)]),
        ([A1, calls.CreateCheckpoint("c"), A2], [A1, calls.CreateCheckpoint("c"), A2]),
        ([calls.Increment("n", 1), calls.CreateCheckpoint("c"), calls.Increment("n", 1)],) * 2,
        ([A1, calls.Append(b"1"), calls.End(), B1], [calls.End(), B1]),
    ],
)
def test_queued_writes_determine_the_state(
    written: list[calls.Command[Any]], waiting: list[calls.Command[Any]]
) -> None:
    assert entries(noted(*written)) == waiting


def test_a_comparison_that_did_not_hold_writes_nothing() -> None:
    journal = noted(
        calls.CompareAndSet(variable("a", 1), None), calls.CompareAndSet(variable("b", 1), None), results=(False, True)
    )
    assert entries(journal) == [B1]


def test_a_repeated_call_waits_once() -> None:
    journal, again = Journal(), call(calls.Append(b"1"))
    for _ in range(2):
        journal.record(again, calls.Reply((None,), 1), 0)
    assert journal.entries == 1
    assert journal.size_bytes > 0


def test_an_end_keeps_only_calls_that_may_have_been_carried_out() -> None:
    journal = Journal()
    journal.record_uncertain(call(calls.Append(b"1")), calls.Reply((None,), 1), 0)
    for command in (calls.Append(b"2"), calls.End(), calls.Append(b"3")):
        journal.record(call(command), calls.Reply((None,), 1), 0)
    assert entries(journal) == [calls.Append(b"1"), calls.End(), calls.Append(b"3")]
    assert len(journal.parts) == 3  # End is the only command of its call


def test_parts_are_bounded() -> None:
    journal = noted(*(calls.Append(b"1") for _ in range(2 * PART_ENTRIES + 1)))
    assert [len(part.entries) for part in journal.parts] == [PART_ENTRIES, PART_ENTRIES, 1]
    for part in list(journal.parts):
        journal.remove(part)
    assert (journal.entries, journal.size_bytes) == (0, 0)


def snapshot(stamp: int = 10, task: int = 0, notes: int = 0, **versions: int) -> Snapshot:
    return Snapshot(calls.Versions(versions, task, notes), {}, None, (), stamp)


def merged(
    journal: Journal, seen: Snapshot, own: OwnWrites, now_us: int = 100
) -> tuple[list[calls.Command[Any]], list[str]]:
    (part,) = journal.parts
    one = merge(part, seen, own, now_us)
    return one.commands, one.lost


def test_only_newer_rows_win() -> None:
    journal = noted(A1, B1, calls.Increment("n", 1), calls.WriteTask(b"1"), calls.ClearNotes(), calls.Append(b"1"))
    commands, lost = merged(journal, snapshot(a=10, b=11, n=12, task=12, notes=12), OwnWrites(10))
    assert commands == [calls.Write((variable("a", 1),)), calls.Increment("n", 1), calls.Append(b"1")]
    assert len(lost) == 3


def test_own_replayed_writes_do_not_count_as_newer() -> None:
    journal = noted(A1, B1)
    assert merged(journal, snapshot(a=15, b=16), OwnWrites(10, [(14, 15)]))[0] == [A1]


def test_possibly_own_writes_are_recognised_by_value() -> None:
    journal = noted(A2, B1)
    part = Part(sent=(A1,))
    part.append(noted(A1).parts[0].entries[0])
    own = OwnWrites(10)
    own.wrote_once(part, calls.Reply((None,), 20))
    there = Snapshot(calls.Versions({"a": 15}), {"a": calls.Found(b"1", None)}, None, (), 15)
    assert merged(journal, there, own) == ([calls.Write((variable("a", 2), variable("b", 1)))], [])
    other = Snapshot(calls.Versions({"a": 15}), {"a": calls.Found(b"9", None)}, None, (), 15)
    assert len(merged(journal, other, own)[1]) == 1


def test_removals_come_first_to_make_room() -> None:
    journal = noted(A1, calls.Append(b"1"), calls.Remove(("b", "c")))
    assert merged(journal, snapshot(), OwnWrites(10))[0] == [calls.Remove(("b", "c")), A1, calls.Append(b"1")]


def test_queued_values_that_expired_are_removed() -> None:
    journal = noted(calls.Write((variable("a", 1, 50), variable("b", 1, 500))))
    assert merged(journal, snapshot(), OwnWrites(10), now_us=100)[0] == [
        calls.Remove(("a",)),
        calls.Write((variable("b", 1, 400),)),
    ]


def test_clearing_spares_only_newer_data() -> None:
    journal = noted(calls.Clear(), B1)
    assert merged(journal, snapshot(a=5), OwnWrites(10)) == ([calls.Clear(), B1], [])
    commands, lost = merged(journal, snapshot(a=5, c=11), OwnWrites(10))
    assert commands == [calls.Remove(("a",)), B1]
    assert len(lost) == 1


def test_a_checkpoint_made_before_is_not_restored_over_what_is_newer() -> None:
    journal = noted(calls.RestoreCheckpoint("c", "undo"))
    assert merged(journal, snapshot(a=11), OwnWrites(10))[0] == []
    assert merged(journal, snapshot(a=9), OwnWrites(10))[0] == [calls.RestoreCheckpoint("c", "undo")]
    same = noted(calls.CreateCheckpoint("c"), A1, calls.RestoreCheckpoint("c", "undo"))
    assert merged(same, snapshot(b=11), OwnWrites(10))[0] == [
        calls.CreateCheckpoint("c"),
        A1,
        calls.RestoreCheckpoint("c", "undo"),
    ]


def test_values_are_read_only_where_the_merge_needs_them() -> None:
    (part,) = noted(A1, B1).parts
    assert Snapshot.commands(part, OwnWrites()) == (calls.Inspect(("a", "b")),)
    assert Snapshot.commands(part, OwnWrites(values={"a": b"1", "x": b"1"})) == (
        calls.Inspect(("a", "b")),
        calls.Read(("a",)),
    )


def test_a_lock_is_passed_on_in_order() -> None:
    lock, woken = FairLock(), list[str]()
    assert lock.acquire()
    assert not lock.acquire()
    waiting = [lambda name=name: woken.append(name) is None for name in "abc"]  # type: ignore[misc]
    for wake in waiting:
        assert not lock.acquire(wake)
    lock.cancel(waiting[1])
    lock.release()
    assert woken == ["a"]
    lock.cancel(waiting[0])  # cancelled after it was given the lock, which is passed on
    assert woken == ["a", "c"]
    lock.release()
    assert lock.acquire()


def test_a_lock_skips_waiters_that_no_longer_exist() -> None:
    lock = FairLock()
    assert lock.acquire()
    assert not lock.acquire(lambda: False)
    lock.release()
    assert lock.acquire()


def test_an_executor_returns_results_and_errors_and_stops_waiting() -> None:
    executor = TimeoutExecutor(1)
    go_on, begun = threading.Event(), threading.Event()
    assert executor.run(lambda: 5, DEADLINE_S) == 5
    with pytest.raises(KeyError):
        executor.run(lambda: {}["a"], DEADLINE_S)

    def hang() -> None:
        begun.set()
        go_on.wait(DEADLINE_S)

    with pytest.raises(TimeoutError):
        executor.run(hang, 0.05)
    assert begun.wait(DEADLINE_S)
    done: list[int] = []
    with pytest.raises(TimeoutError, match=r"0\.05 s"):  # all threads are busy
        executor.run(lambda: done.append(1), 0.05)
    go_on.set()
    assert executor.run(lambda: 6, DEADLINE_S) == 6
    assert done == []  # its caller had given up


def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locus_mysql.families.working.storages.outages.timeout_executor.IDLE_S", 0.01)
    executor, threads = TimeoutExecutor(4), set[threading.Thread]()
    for _ in range(3):
        executor.run(lambda: threads.add(threading.current_thread()), DEADLINE_S)
    deadline = time.monotonic() + DEADLINE_S
    while any(thread.is_alive() for thread in threads):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert executor.run(lambda: 5, DEADLINE_S) == 5
