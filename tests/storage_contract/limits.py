"""Checks of limits: refused writes, and eviction."""

from __future__ import annotations

from locus_mysql.errors import CapacityExceeded
from locus_mysql.families.working import calls

from .checks import CheckedSession, Script, Sessions, equal, variable

_LOOKS: tuple[calls.Command[object], ...] = (
    *(calls.ReadAll(), calls.ReadNotes(), calls.ReadTask(), calls.ListCheckpoints(), calls.Measure()),
)


def _refused(
    session: CheckedSession,
    limit: str,
    there: int,
    allowed: int,
    *commands: calls.Command[object],
    read: tuple[str, ...] = (),
) -> Script[None]:
    """The call is refused for this limit, and changes nothing."""
    before = yield from session.ask(*_LOOKS)
    error = yield from session.refused(CapacityExceeded, *commands, used=read)
    refusal = (error.limit, error.used, error.allowed, error.session_id)
    equal(refusal, (limit, there, allowed, session.address.session_id), f"the refusal of {commands}")
    equal((yield from session.ask(*_LOOKS)), before, f"the session after {commands} was refused")


def too_many_variables_are_refused(sessions: Sessions) -> Script[None]:
    """Writes that replace variables are not."""
    session = sessions.new(keys=3)
    yield from _refused(session, "max_keys", 4, 3, calls.Write(tuple(variable(key) for key in "abcd")))
    equal((yield from session.ask(calls.Measure())).stamp, 0, "the stamp of a session whose first write was refused")
    yield from session.do(calls.Write(tuple(variable(key) for key in "abc")))
    yield from _refused(session, "max_keys", 4, 3, calls.Write((variable("d"),)))
    yield from _refused(session, "max_keys", 5, 3, calls.Write((variable("a", b"2"), variable("d"), variable("e"))))
    yield from _refused(session, "max_keys", 4, 3, calls.Increment("d", 1))
    yield from _refused(session, "max_keys", 4, 3, calls.CompareAndSet(variable("d"), None))
    yield from _refused(session, "max_keys", 4, 3, calls.Append(b"1"), calls.Write((variable("d"),)))
    yield from session.do(calls.Write(tuple(variable(key, b"2") for key in "abc")))
    yield from session.gives(calls.Increment("a", 1), 3)
    yield from session.gives(calls.CompareAndSet(variable("b", b"3"), b"2"), True)
    yield from session.ask(calls.Append(b"1"), calls.WriteTask(b"{}"), calls.CreateCheckpoint("c"))
    yield from session.do(calls.Remove(("c",)))
    yield from session.do(calls.Write((variable("d"),)))
    yield from session.gives(calls.ListKeys("*"), ["a", "b", "d"])


def too_many_bytes_are_refused(sessions: Sessions) -> Script[None]:
    """The limit counts variables, task state and notes together."""
    session = sessions.new(session_bytes=100)
    yield from session.ask(
        calls.Write((variable("é", b"1" * 38),)), calls.WriteTask(b"2" * 30), calls.Append(b"3" * 30)
    )
    equal((yield from session.do(calls.Measure())).bytes, 100, "the bytes of a full session")
    yield from _refused(session, "max_session_bytes", 102, 100, calls.Write((variable("b"),)))
    yield from _refused(session, "max_session_bytes", 101, 100, calls.Write((variable("é", b"1" * 39),)))
    yield from _refused(session, "max_session_bytes", 101, 100, calls.WriteTask(b"2" * 31))
    yield from _refused(session, "max_session_bytes", 101, 100, calls.Append(b"3"))
    yield from _refused(session, "max_session_bytes", 102, 100, calls.Increment("n", 1))
    yield from _refused(session, "max_session_bytes", 102, 100, calls.CompareAndSet(variable("n"), None))
    yield from session.do(calls.CreateCheckpoint("c"))
    yield from session.ask(calls.WriteTask(b"2" * 29), calls.Append(b"3"))
    yield from session.do(calls.Write((variable("é", b"1"),)))
    yield from session.do(calls.Write((variable("x", b"1" * 36),)))
    equal((yield from session.do(calls.Measure())).bytes, 100, "the bytes of a session that is full again")
    yield from session.do(calls.Write((variable("é", b"9"),)))
    yield from _refused(session, "max_session_bytes", 101, 100, calls.Increment("é", 1))
    yield from session.do(calls.ClearNotes())
    yield from session.gives(calls.Increment("é", 1), 10)


def too_many_notes_are_refused(sessions: Sessions) -> Script[None]:
    """This holds also with eviction, which removes only variables."""
    for on_full in ("refuse", "evict"):
        session = sessions.new(scratchpad_entries=2, on_full=on_full)
        yield from session.do(calls.Write((variable("a"),)))
        yield from session.ask(calls.Append(b"1"), calls.Append(b"2"))
        yield from _refused(session, "max_scratchpad_entries", 3, 2, calls.Append(b"3"))
        yield from session.do(calls.ClearNotes())
        yield from session.do(calls.Append(b"3"))
        yield from session.gives(calls.ReadNotes(), [b"3"])


def a_write_that_shrinks_a_session_is_never_refused(sessions: Sessions) -> Script[None]:
    """This holds also for a session that exceeds its limits."""
    session = sessions.new()
    yield from session.ask(
        calls.Write(tuple(variable(key) for key in "abcdef")),
        calls.Append(b"1"),
        calls.Append(b"2"),
        calls.WriteTask(b"{}"),
    )
    small = session.limited(keys=1, session_bytes=1, scratchpad_entries=1)
    yield from small.gives(calls.Touch(), True)
    yield from small.gives(calls.Remove(("a", "b")), 2)
    yield from small.do(calls.CreateCheckpoint("c"))
    yield from small.gives(calls.ClearNotes(), 2)
    yield from small.gives(calls.Clear(), 4)


def expired_variables_make_room(sessions: Sessions) -> Script[None]:
    """This happens before anything is refused or evicted."""
    for on_full in ("refuse", "evict"):
        session = sessions.new(keys=3, session_bytes=10, on_full=on_full)
        yield from session.do(
            calls.Write((variable("stays"), variable("b", b"1", 50_000), variable("c", b"1", 50_000)))
        )
        yield from session.until(calls.ListKeys("*"), lambda keys: keys == ["stays"], "variables expired")
        reply = yield from session.ask(calls.Write((variable("d"), variable("e"))))
        equal(reply.evicted, 0, "how many variables had to go where others had expired")
        yield from session.gives(calls.ListKeys("*"), ["d", "e", "stays"])
        equal((yield from session.do(calls.Measure()))[:2], (3, 10), "keys and bytes")


def the_least_recently_used_variables_are_evicted(sessions: Sessions) -> Script[None]:
    """The order is that of their use, not of their keys."""
    session = sessions.new(keys=3, on_full="evict")
    for key in ("c", "a", "b"):
        equal(
            (yield from session.ask(calls.Write((variable(key),)))).evicted,
            0,
            "the number of evicted entries while all fitted",
        )
    reply = yield from session.ask(calls.Write((variable("d"),)))
    equal(reply.evicted, 1, "how many had to go for one")
    yield from session.gives(calls.ListKeys("*"), ["a", "b", "d"])
    older = calls.Replayed(calls.Write((variable("c"),)), reply.stamp - 1)
    yield from session.gives(older, False)
    yield from session.do(calls.Increment("a", 1))
    yield from session.do(calls.Write((variable("e"),)))
    yield from session.gives(calls.ListKeys("*"), ["a", "d", "e"])
    yield from session.do(calls.CompareAndSet(variable("d", b"2"), b"1"))
    yield from session.do(calls.Write((variable("f"),)))
    yield from session.gives(calls.ListKeys("*"), ["d", "e", "f"])
    equal(
        (yield from session.ask(calls.Write((variable("g"), variable("h"))))).evicted, 2, "how many had to go for two"
    )
    yield from session.gives(calls.ListKeys("*"), ["f", "g", "h"])
    yield from session.do(calls.Increment("i", 1))
    yield from session.do(calls.CompareAndSet(variable("j"), None))
    yield from session.gives(calls.ListKeys("*"), ["h", "i", "j"])


def reading_a_variable_counts_as_use(sessions: Sessions) -> Script[None]:
    """The order of use is the one that the call gives."""
    session = sessions.new(keys=4, on_full="evict")
    for key in "abcd":
        yield from session.do(calls.Write((variable(key),)))
    yield from session.ask(calls.Write((variable("e"),)), used=("b", "absent", "a"))
    yield from session.gives(calls.ListKeys("*"), ["a", "b", "d", "e"])
    yield from session.do(calls.Write((variable("f"),)))
    yield from session.gives(calls.ListKeys("*"), ["a", "b", "e", "f"])
    yield from session.do(calls.Write((variable("g"),)))
    yield from session.gives(calls.ListKeys("*"), ["a", "e", "f", "g"])
    yield from session.ask(calls.Touch(), used=("e", "a"))
    yield from session.do(calls.Write((variable("h"), variable("i"))))
    yield from session.gives(calls.ListKeys("*"), ["a", "e", "h", "i"])


def of_equally_old_variables_the_first_by_key_is_evicted(sessions: Sessions) -> Script[None]:
    """Keys compare by code point."""
    keys = ("b", "B", "é", "z", "\U0001f642", "\uffff", "a", "ab")
    session = sessions.new(keys=len(keys), on_full="evict")
    yield from session.do(calls.Write(tuple(variable(key) for key in keys)))
    for index in range(1, len(keys) + 1):
        yield from session.do(calls.Write((variable(f"new {index}"),)))
        left = [key for key in (yield from session.do(calls.ListKeys("*"))) if not key.startswith("new")]
        equal(left, sorted(keys)[index:], f"the rest of equally old variables after {index} were evicted")


def as_many_variables_are_evicted_as_needed(sessions: Sessions) -> Script[None]:
    """This holds for bytes, and for a task state or a note."""
    session = sessions.new(session_bytes=60, on_full="evict")
    for key in "abcdef":
        yield from session.do(calls.Write((variable(key, b"1" * 9),)))
    equal(
        (yield from session.ask(calls.Write((variable("g", b"1" * 24),)))).evicted, 3, "how many had to go for 25 bytes"
    )
    yield from session.gives(calls.ListKeys("*"), ["d", "e", "f", "g"])
    equal((yield from session.ask(calls.Append(b"1" * 6))).evicted, 1, "how many had to go for a note")
    equal((yield from session.ask(calls.WriteTask(b"1" * 10))).evicted, 1, "how many had to go for a task state")
    equal((yield from session.ask(calls.Append(b"1"))).evicted, 0, "the number of evicted entries while all fitted")
    yield from session.gives(calls.ListKeys("*"), ["f", "g"])
    yield from session.do(calls.Write((variable("n", b"9"),)))
    yield from session.ask(calls.Touch(), used=("f", "g"))
    yield from session.do(calls.Write((variable("n", b"9" * 6),)))
    equal((yield from session.do(calls.Measure())).bytes, 59, "the bytes")
    reply = yield from session.ask(calls.Increment("n", 1))
    equal(
        (reply.evicted, (yield from session.do(calls.Measure())).bytes),
        (0, 60),
        "an increment that needs one byte more",
    )


def a_write_that_cannot_fit_is_refused_despite_eviction(sessions: Sessions) -> Script[None]:
    """Task state, notes and variables of the same call are never evicted."""
    session = sessions.new(keys=2, session_bytes=50, on_full="evict")
    yield from session.ask(
        calls.Write((variable("a"), variable("b"))), calls.WriteTask(b"1" * 20), calls.Append(b"1" * 20)
    )
    yield from _refused(session, "max_keys", 3, 2, calls.Write(tuple(variable(key) for key in "xyz")))
    yield from _refused(session, "max_session_bytes", 51, 50, calls.Write((variable("a", b"1" * 10),)))
    yield from _refused(session, "max_session_bytes", 60, 50, calls.Append(b"1" * 20))
    yield from _refused(session, "max_session_bytes", 71, 50, calls.WriteTask(b"1" * 51))
    one = session.limited(keys=1)
    yield from _refused(one, "max_keys", 2, 1, calls.Write((variable("x"),)), calls.Write((variable("y"),)))
    yield from _refused(one, "max_keys", 2, 1, calls.Write((variable("x"),)), calls.Increment("y", 1), read=("a",))
    equal((yield from session.do(calls.Read(("a", "b")))).keys(), {"a", "b"}, "the variables after refusals")
    yield from session.do(calls.Write((variable("c"),)))
    yield from session.gives(calls.ListKeys("*"), ["b", "c"])


def the_oldest_checkpoints_are_deleted_beyond_the_limit(sessions: Sessions) -> Script[None]:
    """The limit is that of checkpoints."""
    session = sessions.new(checkpoints=3)
    for name in "abcde":
        yield from session.ask(calls.Append(f'"{name}"'.encode()), calls.CreateCheckpoint(name))
    ids = [one.checkpoint_id for one in (yield from session.do(calls.ListCheckpoints()))]
    equal(ids, ["e", "d", "c"], "the checkpoints, newest first")


CHECKS = (
    too_many_variables_are_refused,
    too_many_bytes_are_refused,
    too_many_notes_are_refused,
    a_write_that_shrinks_a_session_is_never_refused,
    expired_variables_make_room,
    the_least_recently_used_variables_are_evicted,
    reading_a_variable_counts_as_use,
    of_equally_old_variables_the_first_by_key_is_evicted,
    as_many_variables_are_evicted_as_needed,
    a_write_that_cannot_fit_is_refused_despite_eviction,
    the_oldest_checkpoints_are_deleted_beyond_the_limit,
)
