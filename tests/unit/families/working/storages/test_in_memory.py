"""The storage of sessions in the process's memory."""

import os
from typing import Any

import pytest

from locus_mysql.errors import CapacityExceeded
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.in_memory import InMemoryStorage
from locus_mysql.families.working.storages.interface import Storage
from tests.storage_contract import CHECKS, Check


@pytest.fixture
def storage() -> Storage:
    return InMemoryStorage()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_storage_keeps_the_contract(check: Check, storage: Storage) -> None:
    check.run_blocking(storage)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_the_storage_keeps_the_contract_when_awaited(check: Check, storage: Storage) -> None:
    await check.run(storage)


class Clock:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.now_us = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now_us


def call(session_id: str, *commands: Any, **options: Any) -> calls.Call:
    return calls.Call("test", calls.Address("tenant", session_id), commands, **options)


def test_there_is_a_limit_to_its_sessions() -> None:
    clock = Clock()
    storage = InMemoryStorage(max_sessions=2, clock=clock)
    storage.execute_blocking(call("a", calls.Append(b"1"), ttl_us=1_000_000))
    storage.execute_blocking(call("b", calls.Append(b"1")))
    with pytest.raises(CapacityExceeded, match="max_sessions"):
        storage.execute_blocking(call("c", calls.Append(b"1")))
    storage.execute_blocking(call("b", calls.Append(b"2")))
    clock.now_us += 2_000_000
    storage.execute_blocking(call("c", calls.Append(b"1")))
    assert storage.execute_blocking(call("a", calls.ReadNotes())).results == ([],)
    storage.execute_blocking(call("b", calls.End()))
    storage.execute_blocking(call("d", calls.Append(b"1")))


def test_there_is_a_limit_to_its_bytes() -> None:
    storage = InMemoryStorage(max_bytes=10)
    storage.execute_blocking(call("a", calls.Append(b"12345")))
    with pytest.raises(CapacityExceeded, match="max_bytes"):
        storage.execute_blocking(call("b", calls.Append(b"123456")))
    assert storage.execute_blocking(call("b", calls.ReadNotes())) == calls.Reply(([],))
    storage.execute_blocking(call("b", calls.Append(b"12345")))
    with pytest.raises(CapacityExceeded, match="max_bytes"):
        storage.execute_blocking(call("a", calls.CreateCheckpoint("a copy of it")))
    storage.execute_blocking(call("a", calls.ClearNotes()))
    storage.execute_blocking(call("b", calls.CreateCheckpoint("a copy of it")))


def test_the_storage_can_drop_the_least_recently_used_sessions() -> None:
    storage = InMemoryStorage(max_sessions=2, max_bytes=10, forgets=True)
    storage.execute_blocking(call("a", calls.Append(b"1")))
    storage.execute_blocking(call("b", calls.Append(b"1")))
    storage.execute_blocking(call("a", calls.ReadNotes()))
    storage.execute_blocking(call("c", calls.Append(b"1")))
    notes = [storage.execute_blocking(call(name, calls.ReadNotes())).results[0] for name in "abc"]
    assert notes == [[b"1"], [], [b"1"]]
    storage.execute_blocking(call("a", calls.Append(b"12345678")))
    notes = [storage.execute_blocking(call(name, calls.ReadNotes())).results[0] for name in "ac"]
    assert notes == [[b"1", b"12345678"], [b"1"]]
    storage.execute_blocking(call("a", calls.Append(b"1")))
    assert storage.execute_blocking(call("c", calls.ReadNotes())).results == ([],)
    with pytest.raises(CapacityExceeded, match="max_bytes"):
        storage.execute_blocking(call("a", calls.Append(b"x")))


def test_a_sweep_removes_as_many_as_it_may() -> None:
    clock = Clock()
    storage = InMemoryStorage(clock=clock)
    for name in "abc":
        storage.execute_blocking(call(name, calls.Append(b"1"), ttl_us=1_000))
    storage.execute_blocking(call("d", calls.Append(b"1")))
    assert storage.sweep_blocking() == 0
    clock.now_us += 1_000_000
    assert [storage.sweep_blocking(2), storage.sweep_blocking(2), storage.sweep_blocking(2)] == [2, 1, 0]
    assert storage.execute_blocking(call("d", calls.ReadNotes())).results == ([b"1"],)


def test_repeated_calls_are_recognised_for_a_quarter_of_an_hour() -> None:
    clock = Clock()
    storage = InMemoryStorage(clock=clock)
    increment = call("a", calls.Increment("n", 1), token=b"x" * 16)
    assert storage.execute_blocking(increment).results == (1,)
    clock.now_us += 899_000_000
    assert storage.execute_blocking(increment).results == (1,)
    clock.now_us += 2_000_000
    storage.execute_blocking(call("b", calls.Increment("n", 1), token=b"y" * 16))
    assert storage.execute_blocking(increment).results == (2,)


def test_a_child_can_use_it_though_a_thread_of_the_parent_did() -> None:
    storage = InMemoryStorage()
    storage.execute_blocking(call("a", calls.Append(b"1")))
    with storage._lock:
        child = os.fork()
        if child == 0:
            notes = storage.execute_blocking(call("a", calls.ReadNotes())).results
            os._exit(0 if notes == ([b"1"],) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_versions_of_deleted_variables_are_forgotten_after_an_hour() -> None:
    clock = Clock()
    storage = InMemoryStorage(clock=clock)
    for number in range(3):
        storage.execute_blocking(call("s", calls.Write((calls.Variable(f"v{number}", b"1"),))))
        storage.execute_blocking(call("s", calls.Remove((f"v{number}",))))
        clock.now_us += 2_000_000_000
    storage.execute_blocking(call("s", calls.Append(b"1")))
    (session,) = storage._sessions.values()
    assert list(session.deleted) == ["v2"]
