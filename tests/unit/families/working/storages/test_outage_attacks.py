"""Outages with failures of the network, the clock or the primary at the worst moment."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.errors import Unavailable
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages import queued
from locus_mysql.families.working.storages.replaying import Breaker
from locus_mysql.working import FallbackStorage, SyncWorkingMemory, TaskState

from .frail import HERE, OTHER, FallbackClient, Frail, values, variable


def test_a_task_change_with_a_lost_answer_is_recognised_as_own() -> None:
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


def test_a_comparison_with_an_unknown_outcome_is_not_reported_as_failed(client: FallbackClient) -> None:
    client.do(calls.Write((variable("lock", 1),)))
    client.others(calls.Write((variable("lock", 0),)))
    client.goes(loses=True)
    with pytest.raises(Unavailable):
        client.do(calls.CompareAndSet(variable("lock", 2), b"0"))
    client.primary.loses = lambda: False
    client.comes()
    assert values(client.do(calls.ReadAll())) == {"lock": b"2"}
    assert client.lost == []


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
    now[0] += 61  # the probe succeeded
    assert breaker.failed(breaker.outages)
    now[0] += 0.5
    assert breaker.admit().name == "PROBE"


def test_sessions_only_read_in_an_outage_leave_nothing_behind(client: FallbackClient) -> None:
    others = [calls.Address("t", f"other {number}") for number in range(50)]
    for address in others:
        client.do(calls.Write((variable("a", 1),)), address=address)
    client.goes()
    for address in others:
        assert values(client.do(calls.ReadAll(), address=address)) == {"a": b"1"}
    client.comes()
    for _ in range(100):
        client.do(calls.Read(("a",)))
    fallback: Any = client.storage.fallback
    assert len(fallback._sessions) == 0
    assert not any(client.storage.condition(address).degraded for address in others)


def test_a_checkpoint_of_a_session_never_seen_may_be_on_the_primary(client: FallbackClient) -> None:
    client.others(calls.CreateCheckpoint("c"))
    client.goes()
    with pytest.raises(Unavailable):  # the outage has been detected by now
        client.do(calls.RestoreCheckpoint("c", "u"))
    with pytest.raises(Unavailable):
        client.do(calls.RestoreCheckpoint("c", "u"))


@pytest.mark.parametrize("carried_out", [False, True], ids=["not carried out", "carried out"])
def test_a_call_older_than_the_token_retention_is_not_repeated(
    client: FallbackClient, carried_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.ask(calls.Write((variable("n", 1),)), calls.Append(b"1"))
    client.goes(loses=carried_out)
    client.ask(calls.Increment("n", 1), calls.Append(b"2"))
    client.primary.loses = lambda: False
    client.do(calls.Increment("m", 1))
    client.primary.kept._done.clear()
    monkeypatch.setattr(queued, "now_us", lambda: 2**62)
    client.comes()
    client.flush()
    assert values(client.others(calls.ReadAll())[0]) == {"n": b"2", "m": b"1"}
    assert client.others(calls.ReadNotes()) == ([b"1", b"2"],)
    assert bool(client.lost) is carried_out


def test_a_call_in_flight_is_not_extended(client: FallbackClient) -> None:
    client.do(calls.Append(b"1"))
    client.goes()
    client.do(calls.Append(b"2"))
    client.ask(calls.Append(b"3"), calls.Increment("n", 1), calls.Write((variable("a", 1),)))
    answers = iter([True])
    client.primary.mute = lambda: not next(answers, False)
    client.comes()
    for number in range(3):
        client.ask(calls.Append(b"4"), calls.Increment("n", 1), calls.Write((variable("a", number),)))
    client.primary.mute = lambda: False
    assert client.flush() == 0
    assert client.others(calls.ReadNotes()) == ([b"1", b"2", b"3", b"4", b"4", b"4"],)
    assert values(client.others(calls.ReadAll())[0]) == {"n": b"4", "a": b"2"}
    assert client.lost == []


def test_forgetting_a_tenant_removes_its_queued_writes_and_cached_values(client: FallbackClient) -> None:
    def forget() -> int:
        if client.loop:
            return client.loop.run_until_complete(client.storage.forget_tenant("t"))
        return client.storage.forget_tenant_blocking("t")

    other = calls.Address("another", "s")
    for address in (HERE, OTHER, other):
        client.do(calls.Write((variable("a", 1),)), address=address)
    client.goes()
    for address in (HERE, other):
        client.do(calls.Write((variable("b", 2),)), address=address)
    with pytest.raises(Unavailable):
        forget()
    for address in (HERE, OTHER):
        assert client.do(calls.ReadAll(), address=address) == {}
    assert values(client.do(calls.ReadAll(), address=other)) == {"a": b"1", "b": b"2"}
    client.comes()
    assert forget() == 2
    assert client.flush() == 0
    assert client.others(calls.ReadAll()) == ({},)
    assert values(client.others(calls.ReadAll(), address=other)[0]) == {"a": b"1", "b": b"2"}
    assert client.lost == []


def test_a_comparison_behind_a_write_that_was_sent_holds_when_that_was_carried_out(client: FallbackClient) -> None:
    client.do(calls.Append(b"1"))
    client.goes()
    client.do(calls.ReadAll())
    client.do(calls.CompareAndSet(variable("a", 1), None))
    client.primary.mute = lambda: True
    client.comes()
    client.do(calls.CompareAndSet(variable("a", 2), b"1"))
    client.primary.mute = lambda: False
    assert client.flush() == 0
    assert values(client.others(calls.ReadAll())[0]) == {"a": b"2"}
    assert client.lost == []
