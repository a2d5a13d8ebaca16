"""A storage with a fallback during outages of its primary and after them; both sides."""

from __future__ import annotations

import pytest

from locus_mysql.errors import (
    Unavailable,
)
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.interface import OutageStatus
from locus_mysql.working import FallbackStorage, InMemoryStorage, SyncWorkingMemory, TaskState

from .frail import HERE, OTHER, FallbackClient, Frail, limits, values, variable


def test_values_used_before_an_outage_are_available_in_it(client: FallbackClient) -> None:
    client.others(calls.Write((variable("read", 1), variable("gone", 1))), calls.Append(b"1"), calls.WriteTask(b"{}"))
    client.ask(calls.Read(("read",)), calls.ReadNotes(), calls.ReadTask())
    client.do(calls.Write((variable("written", 2), variable("removed", 3))))
    client.do(calls.Remove(("removed",)))
    client.do(calls.Increment("n", 5))
    client.do(calls.Append(b"2"))
    client.goes()
    assert values(client.do(calls.ReadAll())) == {"read": b"1", "written": b"2", "n": b"5"}
    assert client.do(calls.ReadNotes()) == [b"1", b"2"]
    assert client.do(calls.ReadTask()) == b"{}"
    assert client.storage.condition(HERE) == OutageStatus(True, 0, ())


def test_clearing_also_removes_unknown_data_but_nothing_newer(client: FallbackClient) -> None:
    client.others(calls.Write((variable("unknown", 1), variable("newer", 1))))
    client.do(calls.Append(b"1"))
    client.goes()
    client.do(calls.Clear())
    client.do(calls.Write((variable("a", 2),)))
    client.others(calls.Write((variable("newer", 2),)))
    client.comes()
    client.flush()
    assert values(client.others(calls.ReadAll())[0]) == {"newer": b"2", "a": b"2"}
    assert len(client.storage.condition(HERE).lost) == 1


def test_a_late_call_that_lost_to_a_newer_write_has_no_effect(client: FallbackClient) -> None:
    client.do(calls.Write((variable("a", 1),)))
    client.goes()
    client.do(calls.Write((variable("a", 2),)))
    late = client.primary.asked[-1]
    client.others(calls.Write((variable("a", 9),)))
    client.comes()
    client.flush()
    client.primary.kept.execute_blocking(late)  # it was in flight during the whole outage
    assert values(client.others(calls.ReadAll())[0]) == {"a": b"9"}
    assert len(client.storage.condition(HERE).lost) == 1


def test_checkpoints_keep_their_place(client: FallbackClient) -> None:
    client.others(calls.Write((variable("unknown", 0),)))
    client.do(calls.Write((variable("a", 1),)))
    client.goes()
    client.do(calls.Write((variable("a", 2),)))
    client.do(calls.CreateCheckpoint("middle"))
    client.ask(calls.Write((variable("a", 3), variable("b", 3))), calls.Append(b"1"))
    client.do(calls.RestoreCheckpoint("middle", "undo"))
    assert values(client.do(calls.ReadAll())) == {"a": b"2"}
    client.do(calls.Write((variable("c", 4),)))
    client.comes()
    assert values(client.do(calls.ReadAll())) == {"unknown": b"0", "a": b"2", "c": b"4"}
    assert client.do(calls.ReadNotes()) == []
    client.do(calls.RestoreCheckpoint("undo", "redo"))
    assert values(client.others(calls.ReadAll())[0]) == {"unknown": b"0", "a": b"3", "b": b"3"}


def test_a_checkpoint_that_only_the_primary_has_is_restored_later(client: FallbackClient) -> None:
    client.do(calls.Write((variable("a", 1),)))
    client.do(calls.CreateCheckpoint("before"))
    client.goes()
    with pytest.raises(Unavailable, match="can be restored when the storage is available"):
        client.do(calls.RestoreCheckpoint("before", "undo"))
    client.comes()
    client.do(calls.RestoreCheckpoint("before", "undo"))


def test_the_end_of_a_session_is_replayed_unless_others_wrote(client: FallbackClient) -> None:
    for address in (HERE, OTHER):
        client.do(calls.Write((variable("a", 1),)), address=address)
    client.goes()
    for address in (HERE, OTHER):
        client.do(calls.Write((variable("b", 1),)), address=address)
        assert client.do(calls.End(), address=address) is True
        assert client.do(calls.ReadAll(), address=address) == {}
    client.others(calls.Write((variable("c", 9),)), address=OTHER)
    client.comes()
    assert client.flush() == 0
    assert client.others(calls.ReadAll()) == ({},)
    assert values(client.others(calls.ReadAll(), address=OTHER)[0]) == {"a": b"1", "c": b"9"}
    assert client.lost == [(OTHER, ("the end of the session: another process wrote meanwhile",))]


def test_a_session_that_was_ended_meanwhile_is_begun_anew_and_that_is_reported(client: FallbackClient) -> None:
    client.ask(calls.Write((variable("a", 1),)), calls.Append(b"1"))
    client.goes()
    client.do(calls.Append(b"2"))
    client.others(calls.End())
    client.comes()
    client.flush()
    assert client.others(calls.ReadNotes(), calls.ReadAll()) == ([b"2"], {})
    assert "ended or expired" in client.storage.condition(HERE).lost[0]


def test_writes_that_the_primary_refuses_are_reported_and_the_others_written(client: FallbackClient) -> None:
    client.do(calls.Append(b"1"))
    client.goes()
    client.ask(calls.Write((variable("a", 1),)), calls.Increment("n", 1), calls.Append(b"2"), limits=limits(keys=2))
    client.others(calls.Write((variable("x", 1),)), calls.Write((variable("n", '"text"'),)))
    client.comes()
    assert client.flush() == 0
    assert values(client.others(calls.ReadAll())[0]) == {"x": b"1", "n": b'"text"'}
    assert client.others(calls.ReadNotes()) == ([b"1", b"2"],)
    assert sorted(client.storage.condition(HERE).lost) == [
        "variable 'a': refused with CapacityExceeded",
        "variable 'n': refused with InvalidInput",
    ]


def test_a_comparison_holds_on_the_primary_too(client: FallbackClient) -> None:
    client.others(calls.Write((variable("a", 1),)))
    client.do(calls.Append(b"1"))
    client.goes()
    client.do(calls.Append(b"2"))
    assert client.do(calls.CompareAndSet(variable("a", 2), None)) is True  # by the state that this process has
    assert client.do(calls.CompareAndSet(variable("b", 1), None)) is True
    assert client.do(calls.CompareAndSet(variable("b", 2), b"1")) is True
    client.comes()
    client.flush()
    assert values(client.others(calls.ReadAll())[0]) == {"a": b"1", "b": b"2"}
    (lost,) = client.storage.condition(HERE).lost
    assert lost == "variable 'a': it did not have the value that compare_and_set expected"


def test_variables_keep_their_time_to_live(client: FallbackClient) -> None:
    client.do(calls.Append(b"1"))
    client.goes()
    client.do(
        calls.Write((variable("short", 1, 1), variable("long", 1, 3_600_000_000), variable("kept", 1, 3_600_000_000)))
    )
    assert client.do(calls.CompareAndSet(variable("kept", 2), b"1")) is True
    client.comes()
    (found,) = client.others(calls.ReadAll()) if client.flush() == 0 else ({},)
    assert set(found) == {"long", "kept"}
    assert all(3_500_000_000 < one.left_us <= 3_600_000_000 for one in found.values())


def test_sessions_without_further_calls_are_replayed_too(client: FallbackClient) -> None:
    addresses = [calls.Address("t", f"quiet-{index}") for index in range(3)]
    client.goes()
    for address in addresses:
        client.do(calls.Append(b"1"), address=address)
    client.comes()
    for _ in addresses:
        client.do(calls.ReadTask())
    assert [client.others(calls.ReadNotes(), address=address) for address in addresses] == [([b"1"],)] * 3
    assert client.storage.pending == 0


@pytest.mark.parametrize("known", [True, False], ids=["seen before the outage", "begun in it"])
def test_a_task_state_changed_in_an_outage_persists_after_it(known: bool) -> None:
    frail = Frail()
    storage = FallbackStorage(frail, "memory")
    memory = SyncWorkingMemory("s", storage)
    if known:
        memory.set_task_state(TaskState(task_id="t").start().advance())
        memory.append_scratchpad("a note")
    frail.away = True

    def change(task: TaskState | None) -> TaskState:
        return (task or TaskState(task_id="t").start().advance()).advance()

    for steps in (2, 3):
        changed = memory.update_task_state(change)
        assert changed is not None
        assert changed.current_step == steps
        memory.append_scratchpad("a note")
    assert memory.stats().degraded
    frail.away = False
    assert storage.flush_blocking() == 0
    after = SyncWorkingMemory("s", frail.kept).get_task_state()
    assert after == changed
    changed = memory.update_task_state(change)
    assert changed is not None
    assert changed.current_step == 4
    assert isinstance(storage.fallback, InMemoryStorage)
    assert not memory.stats().lost
