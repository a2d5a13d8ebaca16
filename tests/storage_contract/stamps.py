"""Checks of stamps, of replays, and of what makes a repeated call count once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from locus_mysql.errors import InvalidInput, NotFound
from locus_mysql.families.working import calls

from . import checks

_READS: tuple[calls.Command[object], ...] = (
    *(
        calls.Read(("a",)),
        calls.ReadAll(),
        calls.ListKeys("*"),
        calls.ReadTask(),
        calls.ReadNotes(),
        calls.ListCheckpoints(),
        calls.Measure(),
    ),
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stamps_rise_with_each_write(sessions: checks.Sessions) -> checks.Script[None]:
    """Reads draw no stamp."""
    session = sessions.new()
    stamp = 0
    for command in (
        *(
            calls.Write((checks.variable("a"),)),
            calls.Increment("n", 1),
            calls.CompareAndSet(checks.variable("a", b"2"), b"1"),
            calls.WriteTask(b"{}"),
        ),
        *(
            calls.Append(b"1"),
            calls.CreateCheckpoint("c"),
            calls.Touch(),
            calls.RestoreCheckpoint("c", "undo"),
            calls.DeleteCheckpoint("undo"),
        ),
        *(calls.Remove(("a",)), calls.ClearNotes(), calls.Clear(), calls.WriteTask(None)),
    ):
        moved = (yield from session.ask(command)).stamp
        checks.true(moved > stamp, f"the stamp rises with {command}: {moved} > {stamp}")
        stamp = moved
        for read in _READS:
            checks.equal((yield from session.ask(read)).stamp, stamp, f"the stamp that {read} returns")


def stamps_are_at_least_the_clock(sessions: checks.Sessions) -> checks.Script[None]:
    """Stamps are microseconds since 1970."""
    session = sessions.new()
    for name in ("first", "second"):
        reply = yield from session.ask(calls.CreateCheckpoint(name), calls.ListCheckpoints())
        at = reply.results[1][0].created_at  # type: ignore[index]  # a list of checkpoints
        checks.true(at.tzinfo is not None, "the time of a checkpoint is aware")
        at_us = (at - _EPOCH) // timedelta(microseconds=1)
        checks.true(reply.stamp >= at_us, f"the stamp {reply.stamp} is at least the storage's clock {at_us}")
        checks.true(reply.stamp < at_us + 60_000_000, f"the stamp {reply.stamp} is near the storage's clock {at_us}")


def replayed_commands_overwrite_nothing_newer(sessions: checks.Sessions) -> checks.Script[None]:
    """Each command of a call draws a stamp, in their order; deletions and restored checkpoints count as writes."""
    session = sessions.new()
    begun = (
        calls.Write((checks.variable("a"), checks.variable("b"), checks.variable("n"))),
        calls.Append(b"1"),
        calls.WriteTask(b"{}"),
    )
    stamp = (yield from session.ask(*begun)).stamp
    written_us = {"a": stamp - 2, "notes": stamp - 1, "task": stamp}
    late = {
        "a": (
            calls.Write((checks.variable("a", b"2"),)),
            calls.Remove(("a",)),
            calls.CompareAndSet(checks.variable("a", b"2"), b"1"),
        ),
        "notes": (calls.ClearNotes(),),
        "task": (calls.WriteTask(b"[]"), calls.WriteTask(None)),
    }
    content = (calls.ReadAll(), calls.ReadNotes(), calls.ReadTask())
    before = (yield from session.ask(*content)).results
    for what, commands in late.items():
        for command in commands:
            replayed = calls.Replayed(command, written_us[what] - 1)
            yield from session.gives(replayed, False)
    yield from session.gives(calls.Replayed(calls.End(), stamp), False)
    checks.equal((yield from session.ask(*content)).results, before, "a session after replays of what is older")
    for what, commands in late.items():
        replayed = calls.Replayed(commands[0], written_us[what])
        yield from session.gives(replayed, True)
    checks.equal(
        (yield from session.ask(*content)).results[1:], ([], b"[]"), "a session after replays of what is newer"
    )
    checkpoint = (yield from session.ask(calls.CreateCheckpoint("c"))).stamp
    gone = (yield from session.ask(calls.Remove(("a",)), calls.Write((checks.variable("new"),)))).stamp
    yield from _refuses_older(session, {"a": gone - 1, "new": gone}, "a deletion")
    restored = (yield from session.ask(calls.RestoreCheckpoint("c", "undo"))).stamp
    checks.true(restored > gone > checkpoint, "restoring a checkpoint draws a stamp")
    yield from _refuses_older(session, {"a": restored, "new": restored}, "a checkpoint was restored")
    cleared = (yield from session.ask(calls.Clear())).stamp
    yield from _refuses_older(session, {"a": cleared, "b": cleared, "n": cleared}, "all variables were deleted")


def _refuses_older(session: checks.CheckedSession, versions: dict[str, int], since: str) -> checks.Script[None]:
    for key, version in versions.items():
        older = calls.Replayed(calls.Write((checks.variable(key, b"0"),)), version - 1)
        yield from session.gives(older, False)


def a_call_with_an_outdated_stamp_changes_nothing(sessions: checks.Sessions) -> checks.Script[None]:
    """The call raises `StampMoved`."""
    session = sessions.new()
    yield from session.refused(calls.StampMoved, calls.Write((checks.variable("a"),)), if_stamp=1)
    checks.equal((yield from session.ask(calls.Measure())).stamp, 0, "the stamp of a session that should exist")
    stamp = (yield from session.ask(calls.Write((checks.variable("a"),)), if_stamp=0)).stamp
    yield from session.refused(calls.StampMoved, calls.Write((checks.variable("a", b"2"),)), if_stamp=0)
    yield from session.refused(calls.StampMoved, calls.Write((checks.variable("a", b"2"),)), if_stamp=stamp - 1)
    yield from session.refused(calls.StampMoved, calls.Read(("a",)), if_stamp=stamp + 1)
    checks.equal(
        (yield from session.do(calls.Read(("a",))))["a"].value, b"1", "what was to be written for another stamp"
    )
    yield from session.ask(calls.Read(("a",)), if_stamp=stamp)
    moved = (yield from session.ask(calls.Append(b"1"), if_stamp=stamp)).stamp
    yield from session.refused(calls.StampMoved, calls.End(), if_stamp=stamp)
    yield from session.gives(calls.End(), True, if_stamp=moved)
    yield from session.refused(calls.StampMoved, calls.Append(b"1"), if_stamp=moved)


def a_repeated_call_counts_once(sessions: checks.Sessions) -> checks.Script[None]:
    """Its reply is the first one."""
    for commands in (
        (calls.Write((checks.variable("a", b"2"),)),),
        (calls.Increment("n", 3),),
        (calls.CompareAndSet(checks.variable("a", b"3"), b"1"),),
        (calls.Remove(("a",)),),
        (calls.Clear(),),
        (calls.WriteTask(b"[]"),),
        (calls.Append(b"2"),),
        (calls.ClearNotes(),),
        (calls.CreateCheckpoint("d"),),
        (calls.RestoreCheckpoint("c", "undo"),),
        (calls.DeleteCheckpoint("c"),),
        (
            calls.Increment("n", 1),
            calls.Append(b"2"),
            calls.Remove(("a", "x")),
            calls.CompareAndSet(checks.variable("a", b"3"), None),
        ),
    ):
        session = sessions.new()
        yield from session.ask(
            calls.Write((checks.variable("a"),)),
            calls.Append(b"1"),
            calls.WriteTask(b"{}"),
            calls.CreateCheckpoint("c"),
        )
        yield from _twice(session, commands)
        yield from _twice(sessions.new(), (calls.Increment("n", 1), calls.Append(b"1")))


def _twice(session: checks.CheckedSession, commands: tuple[calls.Command[object], ...]) -> checks.Script[None]:
    mine = checks.token()
    first = yield from session.ask(*commands, token=mine)
    before = yield from session.ask(*_READS)
    again = yield from session.ask(*commands, token=mine)
    checks.equal(again.results, first.results, f"the results of {commands}, repeated")
    checks.equal((yield from session.ask(*_READS)), before, f"the session after {commands} was repeated")
    yield from session.do(calls.Write((checks.variable("other"),)))
    before = yield from session.ask(*_READS)
    again = yield from session.ask(*commands, token=mine)
    checks.equal(again.results, first.results, f"the results of {commands}, repeated after another writer's write")
    checks.equal((yield from session.ask(*_READS)), before, f"the session after {commands} was repeated late")


def a_repeated_end_ends_once(sessions: checks.Sessions) -> checks.Script[None]:
    """It does not end a session that was begun since."""
    session = sessions.new()
    yield from session.do(calls.Append(b"1"))
    mine = checks.token()
    yield from session.gives(calls.End(), True, token=mine)
    yield from session.gives(calls.End(), True, token=mine)
    yield from session.do(calls.Append(b"2"))
    yield from session.gives(calls.End(), True, token=mine)
    yield from session.gives(calls.ReadNotes(), [b"2"])


def a_repeated_call_ignores_its_required_stamp(sessions: checks.Sessions) -> checks.Script[None]:
    """The first try has changed the stamp itself."""
    session = sessions.new()
    mine = checks.token()
    yield from session.ask(calls.Append(b"1"), token=mine, if_stamp=0)
    yield from session.ask(calls.Append(b"1"), token=mine, if_stamp=0)
    yield from session.gives(calls.ReadNotes(), [b"1"])


def a_refused_call_may_be_repeated_with_the_same_token(sessions: checks.Sessions) -> checks.Script[None]:
    """A refused call leaves no token."""
    session = sessions.new()
    mine = checks.token()
    yield from session.do(calls.Write((checks.variable("n", b'"text"'),)))
    yield from session.refused(InvalidInput, calls.Increment("n", 1), token=mine)
    yield from session.refused(NotFound, calls.RestoreCheckpoint("absent", "undo"), token=mine)
    yield from session.do(calls.Write((checks.variable("n", b"1"),)))
    yield from session.gives(calls.Increment("n", 1), 2, token=mine)


def repeats_at_the_same_time_count_once(sessions: checks.Sessions) -> checks.Script[None]:
    """This includes calls that begin the session."""
    for begin in (False, True):
        session = sessions.new()
        if not begin:
            yield from session.do(calls.Append(b"1"))
        mine = checks.token()
        repeated = [session.do(calls.Increment("n", 1), token=mine) for _ in range(4)]
        results = yield checks.Together(tuple(repeated))
        checks.equal(results, [1, 1, 1, 1], "the results of a call that was made four times at once")
        yield from session.gives(calls.Increment("n", 1), 2)


CHECKS = (
    stamps_rise_with_each_write,
    stamps_are_at_least_the_clock,
    replayed_commands_overwrite_nothing_newer,
    a_call_with_an_outdated_stamp_changes_nothing,
    a_repeated_call_counts_once,
    a_repeated_end_ends_once,
    a_repeated_call_ignores_its_required_stamp,
    a_refused_call_may_be_repeated_with_the_same_token,
    repeats_at_the_same_time_count_once,
)
