"""Checks of stamps, versions, and of what makes a repeated call count once."""

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
        calls.Inspect(),
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


def versions_show_the_last_write_of_each_key(sessions: checks.Sessions) -> checks.Script[None]:
    """A version is the stamp of the last write or deletion."""
    session = sessions.new()
    first = (yield from session.ask(calls.Write((checks.variable("a"), checks.variable("b"))))).stamp
    checks.equal(
        (yield from session.do(calls.Inspect())),
        calls.Versions({"a": first, "b": first}, 0, 0),
        "the versions after a write",
    )
    second = (yield from session.ask(calls.Increment("b", 1))).stamp
    third = (yield from session.ask(calls.CompareAndSet(checks.variable("a", b"5"), b"1"))).stamp
    yield from session.do(calls.CompareAndSet(checks.variable("a", b"6"), b"1"))
    task = (yield from session.ask(calls.WriteTask(b"{}"))).stamp
    notes = (yield from session.ask(calls.Append(b"1"))).stamp
    checks.equal(
        (yield from session.do(calls.Inspect())), calls.Versions({"a": third, "b": second}, task, notes), "the versions"
    )
    checks.equal(
        (yield from session.do(calls.Inspect(("a", "x")))),
        calls.Versions({"a": third}, task, notes),
        "the version of one key",
    )
    checks.equal((yield from session.do(calls.Inspect(()))), calls.Versions({}, task, notes), "the versions of no key")
    gone = (yield from session.ask(calls.Remove(("a", "x")))).stamp
    cleared = (yield from session.ask(calls.ClearNotes())).stamp
    no_task = (yield from session.ask(calls.WriteTask(None))).stamp
    checks.equal(
        (yield from session.do(calls.Inspect(("a",)))).variables, {"a": gone}, "the version of a key that was deleted"
    )
    expected = calls.Versions({"a": gone, "b": second}, no_task, cleared)
    checks.equal((yield from session.do(calls.Inspect())), expected, "the versions after deletions")
    again = (yield from session.ask(calls.Write((checks.variable("a"),)))).stamp
    checks.equal(
        (yield from session.do(calls.Inspect(("a",)))).variables,
        {"a": again},
        "the version of a key that was written again",
    )
    both = (yield from session.ask(calls.Clear())).stamp
    checks.equal((yield from session.do(calls.Inspect())).variables, {"a": both, "b": both}, "the versions after Clear")


def each_command_draws_a_stamp(sessions: checks.Sessions) -> checks.Script[None]:
    """The stamps rise in the order of the call."""
    session = sessions.new()
    reply = yield from session.ask(
        calls.Write((checks.variable("a"),)),
        calls.Write((checks.variable("b"),)),
        calls.Append(b"1"),
        calls.WriteTask(b"{}"),
    )
    versions = yield from session.do(calls.Inspect())
    drawn = [versions.variables["a"], versions.variables["b"], versions.notes, versions.task]
    checks.true(sorted(set(drawn)) == drawn, f"the commands of a call draw stamps that rise: {drawn}")
    checks.equal(reply.stamp, drawn[-1], "the stamp of a call, which is that of its last command")


def restoring_is_a_write(sessions: checks.Sessions) -> checks.Script[None]:
    """It changes the versions of everything that it changes, including deletions."""
    session = sessions.new()
    yield from session.ask(
        calls.Write((checks.variable("a"), checks.variable("b"))),
        calls.Append(b"1"),
        calls.WriteTask(b"{}"),
        calls.CreateCheckpoint("c"),
    )
    stamp = (
        yield from session.ask(
            calls.Write((checks.variable("a", b"2"), checks.variable("new"))),
            calls.Remove(("b",)),
            calls.Append(b"2"),
            calls.WriteTask(None),
        )
    ).stamp
    yield from session.do(calls.RestoreCheckpoint("c", "undo"))
    versions = yield from session.do(calls.Inspect())
    for what, version in {**versions.variables, "the task": versions.task, "the notes": versions.notes}.items():
        checks.true(version > stamp, f"the version of {what} rises when it is restored")
    checks.equal(set(versions.variables), {"a", "b", "new"}, "the keys whose versions are known after restoring")


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
    checks.equal((yield from session.do(calls.End(), if_stamp=moved)), True, "whether a session of the stamp was ended")
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
    checks.equal((yield from session.do(calls.End(), token=mine)), True, "the result of End")
    checks.equal((yield from session.do(calls.End(), token=mine)), True, "the result of End, repeated")
    yield from session.do(calls.Append(b"2"))
    checks.equal(
        (yield from session.do(calls.End(), token=mine)),
        True,
        "the result of End, repeated after another began the session",
    )
    checks.equal((yield from session.do(calls.ReadNotes())), [b"2"], "the session that was begun after End")


def a_repeated_call_ignores_its_required_stamp(sessions: checks.Sessions) -> checks.Script[None]:
    """The first try has changed the stamp itself."""
    session = sessions.new()
    mine = checks.token()
    yield from session.ask(calls.Append(b"1"), token=mine, if_stamp=0)
    yield from session.ask(calls.Append(b"1"), token=mine, if_stamp=0)
    checks.equal(
        (yield from session.do(calls.ReadNotes())), [b"1"], "the notes after a call that relied on a stamp was repeated"
    )


def a_refused_call_may_be_repeated_with_the_same_token(sessions: checks.Sessions) -> checks.Script[None]:
    """A refused call leaves no token."""
    session = sessions.new()
    mine = checks.token()
    yield from session.do(calls.Write((checks.variable("n", b'"text"'),)))
    yield from session.refused(InvalidInput, calls.Increment("n", 1), token=mine)
    yield from session.refused(NotFound, calls.RestoreCheckpoint("absent", "undo"), token=mine)
    yield from session.do(calls.Write((checks.variable("n", b"1"),)))
    checks.equal(
        (yield from session.do(calls.Increment("n", 1), token=mine)), 2, "an increment that was refused before"
    )


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
        checks.equal(
            (yield from session.do(calls.Increment("n", 1))), 2, "a number after it was incremented four times at once"
        )


CHECKS = (
    stamps_rise_with_each_write,
    stamps_are_at_least_the_clock,
    versions_show_the_last_write_of_each_key,
    each_command_draws_a_stamp,
    restoring_is_a_write,
    a_call_with_an_outdated_stamp_changes_nothing,
    a_repeated_call_counts_once,
    a_repeated_end_ends_once,
    a_repeated_call_ignores_its_required_stamp,
    a_refused_call_may_be_repeated_with_the_same_token,
    repeats_at_the_same_time_count_once,
)
