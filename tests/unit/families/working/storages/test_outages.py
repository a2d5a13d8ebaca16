"""The parts of a storage with a fallback: breaker and lock."""

from __future__ import annotations

import pytest

from locus_mysql.families.working.storages.breaker import Admission, Breaker
from locus_mysql.families.working.storages.fair_lock import FairLock


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
