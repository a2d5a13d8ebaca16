"""Checks of stamps, versions, and of what makes a repeated call count once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from ....errors import InvalidInput, NotFound
from ..calls import (
    Append,
    Clear,
    ClearNotes,
    Command,
    CompareAndSet,
    CreateCheckpoint,
    DeleteCheckpoint,
    End,
    Increment,
    Inspect,
    ListCheckpoints,
    ListKeys,
    Measure,
    Read,
    ReadAll,
    ReadNotes,
    ReadTask,
    Remove,
    RestoreCheckpoint,
    StampMoved,
    Touch,
    Versions,
    Write,
    WriteTask,
)
from .checks import (
    Script,
    Session,
    Sessions,
    Together,
    equal,
    token,
    true,
    variable,
)

_READS: tuple[Command[object], ...] = (
    *(Read(("a",)), ReadAll(), ListKeys("*"), ReadTask(), ReadNotes(), ListCheckpoints(), Measure(), Inspect()),
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stamps_rise_with_each_write(sessions: Sessions) -> Script[None]:
    """And only with writes."""
    session = sessions.new()
    stamp = 0
    for command in (
        *(Write((variable("a"),)), Increment("n", 1), CompareAndSet(variable("a", b"2"), b"1"), WriteTask(b"{}")),
        *(Append(b"1"), CreateCheckpoint("c"), Touch(), RestoreCheckpoint("c", "undo"), DeleteCheckpoint("undo")),
        *(Remove(("a",)), ClearNotes(), Clear(), WriteTask(None)),
    ):
        moved = (yield from session.ask(command)).stamp
        true(moved > stamp, f"the stamp rises with {command}: {moved} > {stamp}")
        stamp = moved
        for read in _READS:
            equal((yield from session.ask(read)).stamp, stamp, f"the stamp that {read} tells")


def stamps_are_at_least_the_clock(sessions: Sessions) -> Script[None]:
    """In microseconds since 1970."""
    session = sessions.new()
    for name in ("first", "second"):
        reply = yield from session.ask(CreateCheckpoint(name), ListCheckpoints())
        at = reply.results[1][0].created_at  # type: ignore[index]
        true(at.tzinfo is not None, "the time of a checkpoint is aware")
        at_us = (at - _EPOCH) // timedelta(microseconds=1)
        true(reply.stamp >= at_us, f"the stamp {reply.stamp} is at least the storage's clock {at_us}")
        true(reply.stamp < at_us + 60_000_000, f"the stamp {reply.stamp} is near the storage's clock {at_us}")


def versions_tell_what_was_written(sessions: Sessions) -> Script[None]:
    """By the stamp of the last write or deletion."""
    session = sessions.new()
    first = (yield from session.ask(Write((variable("a"), variable("b"))))).stamp
    equal((yield from session.do(Inspect())), Versions({"a": first, "b": first}, 0, 0), "the versions after a write")
    second = (yield from session.ask(Increment("b", 1))).stamp
    third = (yield from session.ask(CompareAndSet(variable("a", b"5"), b"1"))).stamp
    yield from session.do(CompareAndSet(variable("a", b"6"), b"1"))
    task = (yield from session.ask(WriteTask(b"{}"))).stamp
    notes = (yield from session.ask(Append(b"1"))).stamp
    equal((yield from session.do(Inspect())), Versions({"a": third, "b": second}, task, notes), "the versions")
    equal((yield from session.do(Inspect(("a", "x")))), Versions({"a": third}, task, notes), "the version of one key")
    equal((yield from session.do(Inspect(()))), Versions({}, task, notes), "the versions of no key")
    gone = (yield from session.ask(Remove(("a", "x")))).stamp
    cleared = (yield from session.ask(ClearNotes())).stamp
    no_task = (yield from session.ask(WriteTask(None))).stamp
    equal((yield from session.do(Inspect(("a",)))).variables, {"a": gone}, "the version of a key that was deleted")
    expected = Versions({"a": gone, "b": second}, no_task, cleared)
    equal((yield from session.do(Inspect())), expected, "the versions after deletions")
    again = (yield from session.ask(Write((variable("a"),)))).stamp
    equal(
        (yield from session.do(Inspect(("a",)))).variables, {"a": again}, "the version of a key that was written again"
    )
    both = (yield from session.ask(Clear())).stamp
    equal((yield from session.do(Inspect())).variables, {"a": both, "b": both}, "the versions after Clear")


def each_command_draws_a_stamp(sessions: Sessions) -> Script[None]:
    """In the order of the call."""
    session = sessions.new()
    reply = yield from session.ask(Write((variable("a"),)), Write((variable("b"),)), Append(b"1"), WriteTask(b"{}"))
    versions = yield from session.do(Inspect())
    drawn = [versions.variables["a"], versions.variables["b"], versions.notes, versions.task]
    true(sorted(set(drawn)) == drawn, f"the commands of a call draw stamps that rise: {drawn}")
    equal(reply.stamp, drawn[-1], "the stamp of a call, which is that of its last command")


def restoring_is_a_write(sessions: Sessions) -> Script[None]:
    """Of all that it changes, deletions included."""
    session = sessions.new()
    yield from session.ask(Write((variable("a"), variable("b"))), Append(b"1"), WriteTask(b"{}"), CreateCheckpoint("c"))
    stamp = (
        yield from session.ask(
            Write((variable("a", b"2"), variable("new"))), Remove(("b",)), Append(b"2"), WriteTask(None)
        )
    ).stamp
    yield from session.do(RestoreCheckpoint("c", "undo"))
    versions = yield from session.do(Inspect())
    for what, version in {**versions.variables, "the task": versions.task, "the notes": versions.notes}.items():
        true(version > stamp, f"the version of {what} rises when it is restored")
    equal(set(versions.variables), {"a", "b", "new"}, "the keys whose versions are known after restoring")


def a_stamp_can_be_relied_on(sessions: Sessions) -> Script[None]:
    """Or nothing is done."""
    session = sessions.new()
    yield from session.refused(StampMoved, Write((variable("a"),)), if_stamp=1)
    equal((yield from session.ask(Measure())).stamp, 0, "the stamp of a session that was to be there")
    stamp = (yield from session.ask(Write((variable("a"),)), if_stamp=0)).stamp
    yield from session.refused(StampMoved, Write((variable("a", b"2"),)), if_stamp=0)
    yield from session.refused(StampMoved, Write((variable("a", b"2"),)), if_stamp=stamp - 1)
    yield from session.refused(StampMoved, Read(("a",)), if_stamp=stamp + 1)
    equal((yield from session.do(Read(("a",))))["a"].value, b"1", "what was to be written for another stamp")
    yield from session.ask(Read(("a",)), if_stamp=stamp)
    moved = (yield from session.ask(Append(b"1"), if_stamp=stamp)).stamp
    yield from session.refused(StampMoved, End(), if_stamp=stamp)
    equal((yield from session.do(End(), if_stamp=moved)), True, "whether a session of the stamp was ended")
    yield from session.refused(StampMoved, Append(b"1"), if_stamp=moved)


def a_repeated_call_counts_once(sessions: Sessions) -> Script[None]:
    """And is answered as at first."""
    for commands in (
        (Write((variable("a", b"2"),)),),
        (Increment("n", 3),),
        (CompareAndSet(variable("a", b"3"), b"1"),),
        (Remove(("a",)),),
        (Clear(),),
        (WriteTask(b"[]"),),
        (Append(b"2"),),
        (ClearNotes(),),
        (CreateCheckpoint("d"),),
        (RestoreCheckpoint("c", "undo"),),
        (DeleteCheckpoint("c"),),
        (Increment("n", 1), Append(b"2"), Remove(("a", "x")), CompareAndSet(variable("a", b"3"), None)),
    ):
        session = sessions.new()
        yield from session.ask(Write((variable("a"),)), Append(b"1"), WriteTask(b"{}"), CreateCheckpoint("c"))
        yield from _twice(session, commands)
        yield from _twice(sessions.new(), (Increment("n", 1), Append(b"1")))


def _twice(session: Session, commands: tuple[Command[object], ...]) -> Script[None]:
    mine = token()
    first = yield from session.ask(*commands, token=mine)
    before = yield from session.ask(*_READS)
    again = yield from session.ask(*commands, token=mine)
    equal(again.results, first.results, f"the results of {commands}, repeated")
    equal((yield from session.ask(*_READS)), before, f"the session after {commands} was repeated")
    yield from session.do(Write((variable("other"),)))
    before = yield from session.ask(*_READS)
    again = yield from session.ask(*commands, token=mine)
    equal(again.results, first.results, f"the results of {commands}, repeated after a write of somebody else")
    equal((yield from session.ask(*_READS)), before, f"the session after {commands} was repeated late")


def a_repeated_end_ends_once(sessions: Sessions) -> Script[None]:
    """Not the session that somebody began since."""
    session = sessions.new()
    yield from session.do(Append(b"1"))
    mine = token()
    equal((yield from session.do(End(), token=mine)), True, "the result of End")
    equal((yield from session.do(End(), token=mine)), True, "the result of End, repeated")
    yield from session.do(Append(b"2"))
    equal(
        (yield from session.do(End(), token=mine)), True, "the result of End, repeated after another began the session"
    )
    equal((yield from session.do(ReadNotes())), [b"2"], "the session that was begun after End")


def a_repeated_call_need_not_rely_again(sessions: Sessions) -> Script[None]:
    """It moved the stamp itself."""
    session = sessions.new()
    mine = token()
    yield from session.ask(Append(b"1"), token=mine, if_stamp=0)
    yield from session.ask(Append(b"1"), token=mine, if_stamp=0)
    equal((yield from session.do(ReadNotes())), [b"1"], "the notes after a call that relied on a stamp was repeated")


def what_was_refused_may_be_asked_again(sessions: Sessions) -> Script[None]:
    """With the same token; refusing leaves none."""
    session = sessions.new()
    mine = token()
    yield from session.do(Write((variable("n", b'"text"'),)))
    yield from session.refused(InvalidInput, Increment("n", 1), token=mine)
    yield from session.refused(NotFound, RestoreCheckpoint("absent", "undo"), token=mine)
    yield from session.do(Write((variable("n", b"1"),)))
    equal((yield from session.do(Increment("n", 1), token=mine)), 2, "an increment that was refused before")


def repeats_at_the_same_time_count_once(sessions: Sessions) -> Script[None]:
    """Also where they begin the session."""
    for begin in (False, True):
        session = sessions.new()
        if not begin:
            yield from session.do(Append(b"1"))
        mine = token()
        repeat: Callable[[], Script[object]] = lambda session=session, mine=mine: session.do(  # type: ignore[misc] # noqa: E731
            Increment("n", 1), token=mine
        )
        results = yield Together(tuple(repeat() for _ in range(4)))
        equal(results, [1, 1, 1, 1], "the results of a call that was made four times at once")
        equal((yield from session.do(Increment("n", 1))), 2, "a number after it was incremented four times at once")


CHECKS = (
    stamps_rise_with_each_write,
    stamps_are_at_least_the_clock,
    versions_tell_what_was_written,
    each_command_draws_a_stamp,
    restoring_is_a_write,
    a_stamp_can_be_relied_on,
    a_repeated_call_counts_once,
    a_repeated_end_ends_once,
    a_repeated_call_need_not_rely_again,
    what_was_refused_may_be_asked_again,
    repeats_at_the_same_time_count_once,
)
