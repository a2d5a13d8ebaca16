"""A storage with a fallback during outages of its primary and after them; both sides."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import (
    CapacityExceeded,
    ConfigError,
    PrivilegeMissing,
    ReadOnlyServer,
    Unavailable,
)
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.in_memory import InMemoryStorage
from locus_mysql.families.working.storages.interface import OutageStatus
from locus_mysql.working import FallbackStorage, SyncWorkingMemory, WorkingMemory

from .frail import HERE, Frail, call, limits, variable

OTHER = calls.Address("t", "other")
DEADLINE_S = 60.0


class FallbackClient:
    """One side of a storage that probes its primary at each call."""

    def __init__(self, *, awaited: bool) -> None:
        self.awaited = awaited
        self.loop = asyncio.new_event_loop() if awaited else None
        self.primary = Frail()
        self.lost: list[tuple[calls.Address, tuple[str, ...]]] = []
        self.storage = self.make(self.primary)

    def make(self, primary: Any, fallback: Any = "memory", **options: Any) -> FallbackStorage:
        return FallbackStorage(
            primary,
            fallback,
            on_lost=lambda address, texts: self.lost.append((address, texts)),
            **{"timeout_s": DEADLINE_S, "first_retry_s": 1e-9, "longest_retry_s": 1e-9, **options},
        )

    def ask(self, *commands: calls.Command[Any], **options: Any) -> tuple[Any, ...]:
        asked = call(*commands, **options)
        reply: calls.Reply = (
            self.loop.run_until_complete(self.storage.execute(asked))
            if self.loop
            else self.storage.execute_blocking(asked)
        )
        return reply.results

    def do(self, command: calls.Command[Any], **options: Any) -> Any:
        return self.ask(command, **options)[0]

    def flush(self) -> int:
        return self.loop.run_until_complete(self.storage.flush()) if self.loop else self.storage.flush_blocking()

    def goes(self, *, loses: bool = False) -> None:
        """Begin an outage that the storage detects."""
        self.primary.away, self.primary.loses = True, lambda: loses

    def comes(self) -> None:
        self.primary.away = False

    def others(self, *commands: calls.Command[Any], address: calls.Address = HERE) -> tuple[Any, ...]:
        """Make a call of another process on the primary."""
        return self.primary.kept.execute_blocking(call(*commands, address=address)).results


@pytest.fixture(params=[False, True], ids=["blocking", "awaited"])
def client(request: pytest.FixtureRequest) -> Any:
    one = FallbackClient(awaited=request.param)
    yield one
    if one.loop:
        one.loop.close()


def values(found: Any) -> dict[str, bytes]:
    return {key: one.value for key, one in found.items()}


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


def test_queued_writes_are_replayed_before_the_primary_serves(client: FallbackClient) -> None:
    client.do(calls.Write((variable("a", 1), variable("b", 1), variable("n", 1))))
    client.goes()
    client.do(calls.Write((variable("a", 2), variable("c", 2))))
    client.do(calls.Remove(("b",)))
    for _ in range(3):
        client.do(calls.Increment("n", 1))
    client.ask(calls.Append(b"1"), calls.Append(b"2"))
    client.do(calls.WriteTask(b"[]"))
    assert client.storage.condition(HERE).degraded
    assert client.storage.pending == client.storage.condition(HERE).pending > 0
    client.comes()
    assert values(client.do(calls.ReadAll())) == {"a": b"2", "c": b"2", "n": b"4"}
    assert values(client.others(calls.ReadAll())[0]) == {"a": b"2", "c": b"2", "n": b"4"}
    assert client.others(calls.ReadNotes(), calls.ReadTask()) == ([b"1", b"2"], b"[]")
    assert client.storage.condition(HERE) == OutageStatus(False, 0, ())
    assert client.lost == []


def test_newer_writes_of_other_processes_win_and_are_reported(client: FallbackClient) -> None:
    client.ask(
        calls.Write((variable("a", 1), variable("b", 1), variable("c", 1))), calls.WriteTask(b"1"), calls.Append(b"1")
    )
    client.goes()
    client.do(calls.Write((variable("a", 2), variable("b", 2))))
    client.do(calls.Remove(("c",)))
    client.do(calls.WriteTask(b"2"))
    client.do(calls.Increment("n", 2))
    client.do(calls.ClearNotes())
    client.do(calls.Append(b"2"))
    client.others(calls.Write((variable("a", 9), variable("c", 9))))
    client.others(calls.WriteTask(b"9"))
    client.others(calls.Increment("n", 40))
    client.others(calls.Append(b"9"))
    client.comes()
    assert client.flush() == 0
    assert values(client.others(calls.ReadAll())[0]) == {"a": b"9", "b": b"2", "c": b"9", "n": b"42"}
    assert client.others(calls.ReadTask(), calls.ReadNotes()) == (b"9", [b"1", b"9", b"2"])
    lost = client.storage.condition(HERE).lost
    assert sorted(text.partition(":")[0] for text in lost) == [
        "clearing the scratchpad",
        "the task's state",
        "variable 'a'",
        "variable 'c'",
    ]
    assert client.lost == [(HERE, lost)]


def test_a_deletion_by_others_is_newer_too(client: FallbackClient) -> None:
    client.do(calls.Write((variable("a", 1),)))
    client.goes()
    client.do(calls.Write((variable("a", 2),)))
    client.others(calls.Remove(("a",)))
    client.comes()
    client.flush()
    assert client.others(calls.ReadAll()) == ({},)
    assert client.storage.condition(HERE).lost == ("variable 'a': another process wrote meanwhile",)


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


@pytest.mark.parametrize("carried_out", [False, True], ids=["not carried out", "carried out"])
def test_the_call_that_began_the_outage_counts_once(client: FallbackClient, carried_out: bool) -> None:
    client.ask(calls.Write((variable("n", 1),)), calls.Append(b"1"))
    for address in (HERE, OTHER):
        client.goes(loses=carried_out)
        client.ask(calls.Increment("n", 1), calls.Append(b"2"), address=address)
        client.primary.loses = lambda: False
        client.do(calls.Increment("n", 1), address=address)
        client.do(calls.Append(b"3"), address=address)
        client.comes()
        client.flush()
    assert values(client.others(calls.ReadAll())[0]) == {"n": b"3"}
    assert client.others(calls.ReadNotes()) == ([b"1", b"2", b"3"],)
    assert client.others(calls.ReadNotes(), address=OTHER) == ([b"2", b"3"],)
    assert client.lost == []


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


def test_a_write_after_one_with_an_unknown_outcome_is_not_lost(client: FallbackClient) -> None:
    client.do(calls.Write((variable("a", 1),)))
    client.goes(loses=True)
    client.do(calls.Write((variable("a", 2),)))
    client.do(calls.Write((variable("a", 3),)))
    client.comes()
    client.flush()
    assert values(client.others(calls.ReadAll())[0]) == {"a": b"3"}
    assert client.lost == []


def test_a_replay_whose_answer_is_lost_counts_once(client: FallbackClient) -> None:
    client.do(calls.Append(b"1"))
    client.goes()
    client.ask(calls.Append(b"2"), calls.Increment("n", 1))
    replayed = client.primary.execute_blocking

    def loses_replays(asked: Any) -> calls.Reply:
        reply = replayed(asked)
        if asked.name == "replay" and asked.writes:
            raise Unavailable("The answer is lost.")
        return reply

    client.primary.execute_blocking = loses_replays  # type: ignore[method-assign]
    client.comes()
    for _ in range(3):
        client.do(calls.Append(b"3"))
    client.primary.execute_blocking = replayed  # type: ignore[method-assign]
    assert client.flush() == 0
    assert client.others(calls.ReadNotes()) == ([b"1", b"2", b"3", b"3", b"3"],)
    assert values(client.others(calls.ReadAll())[0]) == {"n": b"1"}


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


def test_writes_beyond_the_queue_limit_are_refused(client: FallbackClient) -> None:
    client.storage = client.make(client.primary, max_pending=2)
    client.do(calls.Append(b"0"))
    client.goes()
    client.do(calls.ReadTask())
    client.ask(calls.Append(b"1"), calls.Append(b"2"))
    with pytest.raises(CapacityExceeded, match="max_pending"):
        client.do(calls.Append(b"3"))
    assert client.do(calls.ReadNotes()) == [b"0", b"1", b"2"]
    client.comes()
    client.do(calls.Append(b"4"))
    assert client.others(calls.ReadNotes()) == ([b"0", b"1", b"2", b"4"],)


def test_without_a_fallback_calls_are_refused_at_once(client: FallbackClient) -> None:
    client.storage = client.make(client.primary, None, first_retry_s=3600, longest_retry_s=3600)
    client.do(calls.Append(b"1"))
    client.goes()
    with pytest.raises(Unavailable):
        client.do(calls.Append(b"2"))
    asked = len(client.primary.asked)
    with pytest.raises(Unavailable, match="not tried again yet"):
        client.do(calls.Append(b"3"))
    assert len(client.primary.asked) == asked
    client.comes()
    assert client.flush() == 0
    client.storage = client.make(client.primary, None)
    assert client.do(calls.ReadNotes()) == [b"1"]


@pytest.mark.parametrize("error", [Unavailable("."), TimeoutError(), ConnectionResetError()])
def test_without_a_fallback_every_kind_of_outage_is_unavailable(client: FallbackClient, error: Exception) -> None:
    client.storage = client.make(client.primary, None)
    client.primary.error = lambda: error
    client.goes()
    with pytest.raises(Unavailable):
        client.do(calls.Append(b"1"))
    assert client.storage.degraded


def test_without_a_fallback_a_primary_that_hangs_is_unavailable(client: FallbackClient) -> None:
    client.storage = client.make(client.primary, None, timeout_s=0.05)
    client.primary.hanging = True
    try:
        with pytest.raises(Unavailable, match=r"timeout_s is 0\.05.*not known"):
            client.do(calls.Append(b"1"))
    finally:
        client.primary.hangs.set()


@pytest.mark.parametrize("error", [Unavailable("."), TimeoutError(), ConnectionResetError(), ReadOnlyServer(".")])
def test_several_kinds_of_failure_count_as_an_outage(client: FallbackClient, error: Exception) -> None:
    client.goes()
    client.primary.error = lambda: error
    client.do(calls.Append(b"1"))
    assert client.storage.degraded


@pytest.mark.parametrize("error", [PrivilegeMissing("."), CapacityExceeded("max_keys", 2, 1, "s")])
def test_other_errors_are_no_outage(client: FallbackClient, error: Exception) -> None:
    client.goes()
    client.primary.error = lambda: error
    with pytest.raises(type(error)):
        client.do(calls.Append(b"1"))
    assert not client.storage.degraded


def test_a_primary_that_hangs_is_given_up_on(client: FallbackClient) -> None:
    client.storage = client.make(client.primary, timeout_s=0.05, first_retry_s=3600, longest_retry_s=3600)
    client.primary.hanging = True
    began = time.monotonic()
    client.do(calls.Append(b"1"))
    client.do(calls.Append(b"2"))
    assert client.do(calls.ReadNotes()) == [b"1", b"2"]
    assert time.monotonic() - began < DEADLINE_S / 2
    assert len(client.primary.asked) == 1
    client.primary.hanging = False
    client.primary.hangs.set()
    deadline = time.monotonic() + DEADLINE_S
    while client.flush():
        assert time.monotonic() < deadline
    assert client.others(calls.ReadNotes()) == ([b"1", b"2"],)


def test_one_outage_logs_one_warning_and_one_recovery(client: FallbackClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "locus_mysql.working")
    client.goes()
    for _ in range(5):
        client.do(calls.Append(b"1"))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    client.comes()
    client.do(calls.Append(b"1"))
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_the_fallback_of_the_next_outage_holds_nothing_old(client: FallbackClient) -> None:
    client.do(calls.Write((variable("a", 1),)))
    client.goes()
    client.do(calls.Write((variable("a", 2), variable("b", 2))))
    client.comes()
    client.do(calls.Write((variable("a", 3),)))
    client.do(calls.Remove(("b",)))
    client.goes()
    assert values(client.do(calls.ReadAll())) == {"a": b"3"}


def test_fallbacks_can_have_fallbacks(client: FallbackClient) -> None:
    second = Frail()
    last = client.make(second)
    client.storage = client.make(client.primary, last)
    client.do(calls.Append(b"1"))
    client.goes()
    client.do(calls.Append(b"2"))
    second.away = True
    client.do(calls.Append(b"3"))
    assert client.do(calls.ReadNotes()) == [b"1", b"2", b"3"]
    second.away = False
    client.do(calls.Append(b"4"))
    assert client.do(calls.ReadNotes()) == [b"1", b"2", b"3", b"4"]
    assert second.kept.execute_blocking(call(calls.ReadNotes())).results == ([b"1", b"2", b"3", b"4"],)
    client.comes()
    assert client.do(calls.ReadNotes()) == [b"1", b"2", b"3", b"4"]
    assert client.others(calls.ReadNotes()) == ([b"1", b"2", b"3", b"4"],)
    assert second.kept.execute_blocking(call(calls.ReadNotes())).results == ([],)


def test_data_of_an_earlier_outage_is_removed_from_the_fallback(client: FallbackClient) -> None:
    second = Frail()
    client.storage = client.make(client.primary, second)
    client.do(calls.Write((variable("a", 1), variable("b", 1))))
    client.goes()
    client.do(calls.Write((variable("a", 2),)))
    second.execute_blocking(
        call(calls.Write((variable("left", 2),)))
    )  # so that it is not removed when the outage is over
    client.comes()
    client.do(calls.Write((variable("a", 3),)))
    client.do(calls.Remove(("b",)))
    assert set(second.kept.execute_blocking(call(calls.ReadAll())).results[0]) == {"a", "b", "left"}  # type: ignore[call-overload]
    client.goes()
    assert values(client.do(calls.ReadAll())) == {"a": b"3"}


def test_writes_of_other_processes_to_the_fallback_are_kept(client: FallbackClient) -> None:
    second = Frail()
    client.storage = client.make(client.primary, second)
    client.do(calls.Write((variable("a", 1), variable("b", 1))))
    second.execute_blocking(call(calls.Write((variable("a", 2),))))
    client.goes()
    assert values(client.do(calls.ReadAll())) == {"a": b"2", "b": b"1"}


def test_a_forked_child_leaves_queued_writes_to_its_parent(client: FallbackClient) -> None:
    client.goes()
    client.do(calls.Append(b"1"))
    parent = client.storage
    child = client.make(client.primary)
    child.__dict__.update(parent.__dict__)
    child.reset_in_child()
    assert (child.pending, parent.pending) == (0, 1)
    client.storage = child
    client.do(calls.Append(b"2"))
    client.comes()
    assert client.flush() == 0
    client.storage = parent
    assert client.flush() == 0
    assert client.others(calls.ReadNotes()) == ([b"2", b"1"],)


async def test_stats_show_an_outage() -> None:
    primary = Frail()
    storage = FallbackStorage(primary, first_retry_s=3600, longest_retry_s=3600)
    memory, blocking = WorkingMemory("s", storage), SyncWorkingMemory("s", storage)
    await memory.set("a", 1)
    assert (await memory.stats()).degraded is False
    primary.away = True
    await memory.set("a", 2)
    stats = await memory.stats()
    assert (stats.degraded, stats.pending, stats.lost) == (True, 1, ())
    assert blocking.stats() == stats
    primary.away = False
    assert await storage.flush() == 0
    assert (await memory.stats()).degraded is False


def test_closing_writes_queued_calls_or_logs_the_number_lost(
    client: FallbackClient, caplog: pytest.LogCaptureFixture
) -> None:
    def close() -> None:
        if client.loop:
            client.loop.run_until_complete(client.storage.aclose())
        else:
            client.storage.close()

    client.goes()
    client.do(calls.Append(b"1"))
    client.do(calls.Append(b"2"))
    close()
    assert "2 writes still wait" in caplog.text
    caplog.clear()
    client.comes()
    close()
    assert caplog.text == ""
    assert client.others(calls.ReadNotes()) == ([b"1", b"2"],)


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    primary = Frail()
    storage = FallbackStorage(primary, timeout_s=DEADLINE_S, first_retry_s=1e-9, longest_retry_s=1e-9)
    primary.hanging = True
    task = asyncio.create_task(storage.execute(call(calls.Append(b"1"))))
    await primary.arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    primary.hanging, primary.away = False, True
    await storage.execute(call(calls.Append(b"2")))
    primary.hanging, primary.away = True, False
    primary.arrived.clear()
    probe = asyncio.create_task(storage.execute(call(calls.ReadTask())))
    await primary.arrived.wait()
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    primary.hanging = False
    assert (await storage.execute(call(calls.ReadNotes()))).results == ([b"2"],)
    assert primary.kept.execute_blocking(call(calls.ReadNotes())).results == ([b"2"],)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: FallbackStorage("mysql://"),  # type: ignore[arg-type]
        lambda: FallbackStorage(FallbackStorage(InMemoryStorage())),
        lambda: FallbackStorage(InMemoryStorage(), "disk"),  # type: ignore[arg-type]
        lambda: FallbackStorage(InMemoryStorage(), timeout_s=0),
        lambda: FallbackStorage(InMemoryStorage(), max_pending=0),
        lambda: FallbackStorage(InMemoryStorage(), jitter=1),
    ],
)
def test_wrong_options_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ConfigError):
        wrong()
