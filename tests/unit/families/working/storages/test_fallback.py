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


class Side:
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
def side(request: pytest.FixtureRequest) -> Any:
    one = Side(awaited=request.param)
    yield one
    if one.loop:
        one.loop.close()


def values(found: Any) -> dict[str, bytes]:
    return {key: one.value for key, one in found.items()}


def test_values_used_before_an_outage_are_available_in_it(side: Side) -> None:
    side.others(calls.Write((variable("read", 1), variable("gone", 1))), calls.Append(b"1"), calls.WriteTask(b"{}"))
    side.ask(calls.Read(("read",)), calls.ReadNotes(), calls.ReadTask())
    side.do(calls.Write((variable("written", 2), variable("removed", 3))))
    side.do(calls.Remove(("removed",)))
    side.do(calls.Increment("n", 5))
    side.do(calls.Append(b"2"))
    side.goes()
    assert values(side.do(calls.ReadAll())) == {"read": b"1", "written": b"2", "n": b"5"}
    assert side.do(calls.ReadNotes()) == [b"1", b"2"]
    assert side.do(calls.ReadTask()) == b"{}"
    assert side.storage.condition(HERE) == OutageStatus(True, 0, ())


def test_queued_writes_are_replayed_before_the_primary_serves(side: Side) -> None:
    side.do(calls.Write((variable("a", 1), variable("b", 1), variable("n", 1))))
    side.goes()
    side.do(calls.Write((variable("a", 2), variable("c", 2))))
    side.do(calls.Remove(("b",)))
    for _ in range(3):
        side.do(calls.Increment("n", 1))
    side.ask(calls.Append(b"1"), calls.Append(b"2"))
    side.do(calls.WriteTask(b"[]"))
    assert side.storage.condition(HERE).degraded
    assert side.storage.pending == side.storage.condition(HERE).pending > 0
    side.comes()
    assert values(side.do(calls.ReadAll())) == {"a": b"2", "c": b"2", "n": b"4"}
    assert values(side.others(calls.ReadAll())[0]) == {"a": b"2", "c": b"2", "n": b"4"}
    assert side.others(calls.ReadNotes(), calls.ReadTask()) == ([b"1", b"2"], b"[]")
    assert side.storage.condition(HERE) == OutageStatus(False, 0, ())
    assert side.lost == []


def test_newer_writes_of_other_processes_win_and_are_reported(side: Side) -> None:
    side.ask(
        calls.Write((variable("a", 1), variable("b", 1), variable("c", 1))), calls.WriteTask(b"1"), calls.Append(b"1")
    )
    side.goes()
    side.do(calls.Write((variable("a", 2), variable("b", 2))))
    side.do(calls.Remove(("c",)))
    side.do(calls.WriteTask(b"2"))
    side.do(calls.Increment("n", 2))
    side.do(calls.ClearNotes())
    side.do(calls.Append(b"2"))
    side.others(calls.Write((variable("a", 9), variable("c", 9))))
    side.others(calls.WriteTask(b"9"))
    side.others(calls.Increment("n", 40))
    side.others(calls.Append(b"9"))
    side.comes()
    assert side.flush() == 0
    assert values(side.others(calls.ReadAll())[0]) == {"a": b"9", "b": b"2", "c": b"9", "n": b"42"}
    assert side.others(calls.ReadTask(), calls.ReadNotes()) == (b"9", [b"1", b"9", b"2"])
    lost = side.storage.condition(HERE).lost
    assert sorted(text.partition(":")[0] for text in lost) == [
        "clearing the scratchpad",
        "the task's state",
        "variable 'a'",
        "variable 'c'",
    ]
    assert side.lost == [(HERE, lost)]


def test_a_deletion_by_others_is_newer_too(side: Side) -> None:
    side.do(calls.Write((variable("a", 1),)))
    side.goes()
    side.do(calls.Write((variable("a", 2),)))
    side.others(calls.Remove(("a",)))
    side.comes()
    side.flush()
    assert side.others(calls.ReadAll()) == ({},)
    assert side.storage.condition(HERE).lost == ("variable 'a': another process wrote meanwhile",)


def test_clearing_also_removes_unknown_data_but_nothing_newer(side: Side) -> None:
    side.others(calls.Write((variable("unknown", 1), variable("newer", 1))))
    side.do(calls.Append(b"1"))
    side.goes()
    side.do(calls.Clear())
    side.do(calls.Write((variable("a", 2),)))
    side.others(calls.Write((variable("newer", 2),)))
    side.comes()
    side.flush()
    assert values(side.others(calls.ReadAll())[0]) == {"newer": b"2", "a": b"2"}
    assert len(side.storage.condition(HERE).lost) == 1


@pytest.mark.parametrize("carried_out", [False, True], ids=["not carried out", "carried out"])
def test_the_call_that_began_the_outage_counts_once(side: Side, carried_out: bool) -> None:
    side.ask(calls.Write((variable("n", 1),)), calls.Append(b"1"))
    for address in (HERE, OTHER):
        side.goes(loses=carried_out)
        side.ask(calls.Increment("n", 1), calls.Append(b"2"), address=address)
        side.primary.loses = lambda: False
        side.do(calls.Increment("n", 1), address=address)
        side.do(calls.Append(b"3"), address=address)
        side.comes()
        side.flush()
    assert values(side.others(calls.ReadAll())[0]) == {"n": b"3"}
    assert side.others(calls.ReadNotes()) == ([b"1", b"2", b"3"],)
    assert side.others(calls.ReadNotes(), address=OTHER) == ([b"2", b"3"],)
    assert side.lost == []


def test_a_late_call_that_lost_to_a_newer_write_has_no_effect(side: Side) -> None:
    side.do(calls.Write((variable("a", 1),)))
    side.goes()
    side.do(calls.Write((variable("a", 2),)))
    late = side.primary.asked[-1]
    side.others(calls.Write((variable("a", 9),)))
    side.comes()
    side.flush()
    side.primary.kept.execute_blocking(late)  # it was in flight during the whole outage
    assert values(side.others(calls.ReadAll())[0]) == {"a": b"9"}
    assert len(side.storage.condition(HERE).lost) == 1


def test_a_write_after_one_with_an_unknown_outcome_is_not_lost(side: Side) -> None:
    side.do(calls.Write((variable("a", 1),)))
    side.goes(loses=True)
    side.do(calls.Write((variable("a", 2),)))
    side.do(calls.Write((variable("a", 3),)))
    side.comes()
    side.flush()
    assert values(side.others(calls.ReadAll())[0]) == {"a": b"3"}
    assert side.lost == []


def test_a_replay_whose_answer_is_lost_counts_once(side: Side) -> None:
    side.do(calls.Append(b"1"))
    side.goes()
    side.ask(calls.Append(b"2"), calls.Increment("n", 1))
    replayed = side.primary.execute_blocking

    def loses_replays(asked: Any) -> calls.Reply:
        reply = replayed(asked)
        if asked.name == "replay" and asked.writes:
            raise Unavailable("The answer is lost.")
        return reply

    side.primary.execute_blocking = loses_replays  # type: ignore[method-assign]
    side.comes()
    for _ in range(3):
        side.do(calls.Append(b"3"))
    side.primary.execute_blocking = replayed  # type: ignore[method-assign]
    assert side.flush() == 0
    assert side.others(calls.ReadNotes()) == ([b"1", b"2", b"3", b"3", b"3"],)
    assert values(side.others(calls.ReadAll())[0]) == {"n": b"1"}


def test_checkpoints_keep_their_place(side: Side) -> None:
    side.others(calls.Write((variable("unknown", 0),)))
    side.do(calls.Write((variable("a", 1),)))
    side.goes()
    side.do(calls.Write((variable("a", 2),)))
    side.do(calls.CreateCheckpoint("middle"))
    side.ask(calls.Write((variable("a", 3), variable("b", 3))), calls.Append(b"1"))
    side.do(calls.RestoreCheckpoint("middle", "undo"))
    assert values(side.do(calls.ReadAll())) == {"a": b"2"}
    side.do(calls.Write((variable("c", 4),)))
    side.comes()
    assert values(side.do(calls.ReadAll())) == {"unknown": b"0", "a": b"2", "c": b"4"}
    assert side.do(calls.ReadNotes()) == []
    side.do(calls.RestoreCheckpoint("undo", "redo"))
    assert values(side.others(calls.ReadAll())[0]) == {"unknown": b"0", "a": b"3", "b": b"3"}


def test_a_checkpoint_that_only_the_primary_has_is_restored_later(side: Side) -> None:
    side.do(calls.Write((variable("a", 1),)))
    side.do(calls.CreateCheckpoint("before"))
    side.goes()
    with pytest.raises(Unavailable, match="can be restored when the storage is available"):
        side.do(calls.RestoreCheckpoint("before", "undo"))
    side.comes()
    side.do(calls.RestoreCheckpoint("before", "undo"))


def test_the_end_of_a_session_is_replayed_unless_others_wrote(side: Side) -> None:
    for address in (HERE, OTHER):
        side.do(calls.Write((variable("a", 1),)), address=address)
    side.goes()
    for address in (HERE, OTHER):
        side.do(calls.Write((variable("b", 1),)), address=address)
        assert side.do(calls.End(), address=address) is True
        assert side.do(calls.ReadAll(), address=address) == {}
    side.others(calls.Write((variable("c", 9),)), address=OTHER)
    side.comes()
    assert side.flush() == 0
    assert side.others(calls.ReadAll()) == ({},)
    assert values(side.others(calls.ReadAll(), address=OTHER)[0]) == {"a": b"1", "c": b"9"}
    assert side.lost == [(OTHER, ("the end of the session: another process wrote meanwhile",))]


def test_a_session_that_was_ended_meanwhile_is_begun_anew_and_that_is_reported(side: Side) -> None:
    side.ask(calls.Write((variable("a", 1),)), calls.Append(b"1"))
    side.goes()
    side.do(calls.Append(b"2"))
    side.others(calls.End())
    side.comes()
    side.flush()
    assert side.others(calls.ReadNotes(), calls.ReadAll()) == ([b"2"], {})
    assert "ended or expired" in side.storage.condition(HERE).lost[0]


def test_writes_that_the_primary_refuses_are_reported_and_the_others_written(side: Side) -> None:
    side.do(calls.Append(b"1"))
    side.goes()
    side.ask(calls.Write((variable("a", 1),)), calls.Increment("n", 1), calls.Append(b"2"), limits=limits(keys=2))
    side.others(calls.Write((variable("x", 1),)), calls.Write((variable("n", '"text"'),)))
    side.comes()
    assert side.flush() == 0
    assert values(side.others(calls.ReadAll())[0]) == {"x": b"1", "n": b'"text"'}
    assert side.others(calls.ReadNotes()) == ([b"1", b"2"],)
    assert sorted(side.storage.condition(HERE).lost) == [
        "variable 'a': refused with CapacityExceeded",
        "variable 'n': refused with InvalidInput",
    ]


def test_a_comparison_holds_on_the_primary_too(side: Side) -> None:
    side.others(calls.Write((variable("a", 1),)))
    side.do(calls.Append(b"1"))
    side.goes()
    side.do(calls.Append(b"2"))
    assert side.do(calls.CompareAndSet(variable("a", 2), None)) is True  # by the state that this process has
    assert side.do(calls.CompareAndSet(variable("b", 1), None)) is True
    assert side.do(calls.CompareAndSet(variable("b", 2), b"1")) is True
    side.comes()
    side.flush()
    assert values(side.others(calls.ReadAll())[0]) == {"a": b"1", "b": b"2"}
    (lost,) = side.storage.condition(HERE).lost
    assert lost == "variable 'a': it did not have the value that compare_and_set expected"


def test_variables_keep_their_time_to_live(side: Side) -> None:
    side.do(calls.Append(b"1"))
    side.goes()
    side.do(
        calls.Write((variable("short", 1, 1), variable("long", 1, 3_600_000_000), variable("kept", 1, 3_600_000_000)))
    )
    assert side.do(calls.CompareAndSet(variable("kept", 2), b"1")) is True
    side.comes()
    (found,) = side.others(calls.ReadAll()) if side.flush() == 0 else ({},)
    assert set(found) == {"long", "kept"}
    assert all(3_500_000_000 < one.left_us <= 3_600_000_000 for one in found.values())


def test_sessions_without_further_calls_are_replayed_too(side: Side) -> None:
    addresses = [calls.Address("t", f"quiet-{index}") for index in range(3)]
    side.goes()
    for address in addresses:
        side.do(calls.Append(b"1"), address=address)
    side.comes()
    for _ in addresses:
        side.do(calls.ReadTask())
    assert [side.others(calls.ReadNotes(), address=address) for address in addresses] == [([b"1"],)] * 3
    assert side.storage.pending == 0


def test_writes_beyond_the_queue_limit_are_refused(side: Side) -> None:
    side.storage = side.make(side.primary, max_pending=2)
    side.do(calls.Append(b"0"))
    side.goes()
    side.do(calls.ReadTask())
    side.ask(calls.Append(b"1"), calls.Append(b"2"))
    with pytest.raises(CapacityExceeded, match="max_pending"):
        side.do(calls.Append(b"3"))
    assert side.do(calls.ReadNotes()) == [b"0", b"1", b"2"]
    side.comes()
    side.do(calls.Append(b"4"))
    assert side.others(calls.ReadNotes()) == ([b"0", b"1", b"2", b"4"],)


def test_without_a_fallback_calls_are_refused_at_once(side: Side) -> None:
    side.storage = side.make(side.primary, None, first_retry_s=3600, longest_retry_s=3600)
    side.do(calls.Append(b"1"))
    side.goes()
    with pytest.raises(Unavailable):
        side.do(calls.Append(b"2"))
    asked = len(side.primary.asked)
    with pytest.raises(Unavailable, match="not tried again yet"):
        side.do(calls.Append(b"3"))
    assert len(side.primary.asked) == asked
    side.comes()
    assert side.flush() == 0
    side.storage = side.make(side.primary, None)
    assert side.do(calls.ReadNotes()) == [b"1"]


@pytest.mark.parametrize("error", [Unavailable("."), TimeoutError(), ConnectionResetError()])
def test_without_a_fallback_every_kind_of_outage_is_unavailable(side: Side, error: Exception) -> None:
    side.storage = side.make(side.primary, None)
    side.primary.error = lambda: error
    side.goes()
    with pytest.raises(Unavailable):
        side.do(calls.Append(b"1"))
    assert side.storage.degraded


def test_without_a_fallback_a_primary_that_hangs_is_unavailable(side: Side) -> None:
    side.storage = side.make(side.primary, None, timeout_s=0.05)
    side.primary.hanging = True
    try:
        with pytest.raises(Unavailable, match=r"timeout_s is 0\.05.*not known"):
            side.do(calls.Append(b"1"))
    finally:
        side.primary.hangs.set()


@pytest.mark.parametrize("error", [Unavailable("."), TimeoutError(), ConnectionResetError(), ReadOnlyServer(".")])
def test_several_kinds_of_failure_count_as_an_outage(side: Side, error: Exception) -> None:
    side.goes()
    side.primary.error = lambda: error
    side.do(calls.Append(b"1"))
    assert side.storage.degraded


@pytest.mark.parametrize("error", [PrivilegeMissing("."), CapacityExceeded("max_keys", 2, 1, "s")])
def test_other_errors_are_no_outage(side: Side, error: Exception) -> None:
    side.goes()
    side.primary.error = lambda: error
    with pytest.raises(type(error)):
        side.do(calls.Append(b"1"))
    assert not side.storage.degraded


def test_a_primary_that_hangs_is_given_up_on(side: Side) -> None:
    side.storage = side.make(side.primary, timeout_s=0.05, first_retry_s=3600, longest_retry_s=3600)
    side.primary.hanging = True
    began = time.monotonic()
    side.do(calls.Append(b"1"))
    side.do(calls.Append(b"2"))
    assert side.do(calls.ReadNotes()) == [b"1", b"2"]
    assert time.monotonic() - began < DEADLINE_S / 2
    assert len(side.primary.asked) == 1
    side.primary.hanging = False
    side.primary.hangs.set()
    deadline = time.monotonic() + DEADLINE_S
    while side.flush():
        assert time.monotonic() < deadline
    assert side.others(calls.ReadNotes()) == ([b"1", b"2"],)


def test_one_outage_logs_one_warning_and_one_recovery(side: Side, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "locus_mysql.working")
    side.goes()
    for _ in range(5):
        side.do(calls.Append(b"1"))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    side.comes()
    side.do(calls.Append(b"1"))
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_the_fallback_of_the_next_outage_holds_nothing_old(side: Side) -> None:
    side.do(calls.Write((variable("a", 1),)))
    side.goes()
    side.do(calls.Write((variable("a", 2), variable("b", 2))))
    side.comes()
    side.do(calls.Write((variable("a", 3),)))
    side.do(calls.Remove(("b",)))
    side.goes()
    assert values(side.do(calls.ReadAll())) == {"a": b"3"}


def test_fallbacks_can_have_fallbacks(side: Side) -> None:
    second = Frail()
    last = side.make(second)
    side.storage = side.make(side.primary, last)
    side.do(calls.Append(b"1"))
    side.goes()
    side.do(calls.Append(b"2"))
    second.away = True
    side.do(calls.Append(b"3"))
    assert side.do(calls.ReadNotes()) == [b"1", b"2", b"3"]
    second.away = False
    side.do(calls.Append(b"4"))
    assert side.do(calls.ReadNotes()) == [b"1", b"2", b"3", b"4"]
    assert second.kept.execute_blocking(call(calls.ReadNotes())).results == ([b"1", b"2", b"3", b"4"],)
    side.comes()
    assert side.do(calls.ReadNotes()) == [b"1", b"2", b"3", b"4"]
    assert side.others(calls.ReadNotes()) == ([b"1", b"2", b"3", b"4"],)
    assert second.kept.execute_blocking(call(calls.ReadNotes())).results == ([],)


def test_data_of_an_earlier_outage_is_removed_from_the_fallback(side: Side) -> None:
    second = Frail()
    side.storage = side.make(side.primary, second)
    side.do(calls.Write((variable("a", 1), variable("b", 1))))
    side.goes()
    side.do(calls.Write((variable("a", 2),)))
    second.execute_blocking(
        call(calls.Write((variable("left", 2),)))
    )  # so that it is not removed when the outage is over
    side.comes()
    side.do(calls.Write((variable("a", 3),)))
    side.do(calls.Remove(("b",)))
    assert set(second.kept.execute_blocking(call(calls.ReadAll())).results[0]) == {"a", "b", "left"}  # type: ignore[call-overload]
    side.goes()
    assert values(side.do(calls.ReadAll())) == {"a": b"3"}


def test_writes_of_other_processes_to_the_fallback_are_kept(side: Side) -> None:
    second = Frail()
    side.storage = side.make(side.primary, second)
    side.do(calls.Write((variable("a", 1), variable("b", 1))))
    second.execute_blocking(call(calls.Write((variable("a", 2),))))
    side.goes()
    assert values(side.do(calls.ReadAll())) == {"a": b"2", "b": b"1"}


def test_a_forked_child_leaves_queued_writes_to_its_parent(side: Side) -> None:
    side.goes()
    side.do(calls.Append(b"1"))
    parent = side.storage
    child = side.make(side.primary)
    child.__dict__.update(parent.__dict__)
    child.reset_in_child()
    assert (child.pending, parent.pending) == (0, 1)
    side.storage = child
    side.do(calls.Append(b"2"))
    side.comes()
    assert side.flush() == 0
    side.storage = parent
    assert side.flush() == 0
    assert side.others(calls.ReadNotes()) == ([b"2", b"1"],)


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


def test_closing_writes_queued_calls_or_logs_the_number_lost(side: Side, caplog: pytest.LogCaptureFixture) -> None:
    def close() -> None:
        if side.loop:
            side.loop.run_until_complete(side.storage.aclose())
        else:
            side.storage.close()

    side.goes()
    side.do(calls.Append(b"1"))
    side.do(calls.Append(b"2"))
    close()
    assert "2 writes still wait" in caplog.text
    caplog.clear()
    side.comes()
    close()
    assert caplog.text == ""
    assert side.others(calls.ReadNotes()) == ([b"1", b"2"],)


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
