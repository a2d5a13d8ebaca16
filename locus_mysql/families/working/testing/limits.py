"""Checks of limits: what is refused, and what has to go."""

from __future__ import annotations

from ....errors import CapacityExceeded
from ..calls import (
    Append,
    Clear,
    ClearNotes,
    Command,
    CompareAndSet,
    CreateCheckpoint,
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
    Touch,
    Write,
    WriteTask,
)
from .checks import Script, Session, Sessions, equal, variable

_LOOKS: tuple[Command[object], ...] = (*(ReadAll(), ReadNotes(), ReadTask(), ListCheckpoints(), Measure(), Inspect()),)


def _refused(
    session: Session, limit: str, there: int, allowed: int, *commands: Command[object], read: tuple[str, ...] = ()
) -> Script[None]:
    """The call is refused for this limit, and changes nothing."""
    before = yield from session.ask(*_LOOKS)
    error = yield from session.refused(CapacityExceeded, *commands, used=read)
    told = (error.limit, error.used, error.allowed, error.session_id)
    equal(told, (limit, there, allowed, session.address.session_id), f"what the refusal of {commands} tells")
    equal((yield from session.ask(*_LOOKS)), before, f"the session after {commands} was refused")


def too_many_variables_are_refused(sessions: Sessions) -> Script[None]:
    """Those in place of others are not."""
    session = sessions.new(keys=3)
    yield from _refused(session, "max_keys", 4, 3, Write(tuple(variable(key) for key in "abcd")))
    equal((yield from session.ask(Measure())).stamp, 0, "the stamp of a session whose first write was refused")
    yield from session.do(Write(tuple(variable(key) for key in "abc")))
    yield from _refused(session, "max_keys", 4, 3, Write((variable("d"),)))
    yield from _refused(session, "max_keys", 5, 3, Write((variable("a", b"2"), variable("d"), variable("e"))))
    yield from _refused(session, "max_keys", 4, 3, Increment("d", 1))
    yield from _refused(session, "max_keys", 4, 3, CompareAndSet(variable("d"), None))
    yield from _refused(session, "max_keys", 4, 3, Append(b"1"), Write((variable("d"),)))
    yield from session.do(Write(tuple(variable(key, b"2") for key in "abc")))
    equal((yield from session.do(Increment("a", 1))), 3, "an increment in a full session")
    equal((yield from session.do(CompareAndSet(variable("b", b"3"), b"2"))), True, "a comparison in a full session")
    yield from session.ask(Append(b"1"), WriteTask(b"{}"), CreateCheckpoint("c"))
    yield from session.do(Remove(("c",)))
    yield from session.do(Write((variable("d"),)))
    equal((yield from session.do(ListKeys("*"))), ["a", "b", "d"], "the keys after one gave place to another")


def too_many_bytes_are_refused(sessions: Sessions) -> Script[None]:
    """Of variables, task state and notes together."""
    session = sessions.new(session_bytes=100)
    yield from session.ask(Write((variable("é", b"1" * 38),)), WriteTask(b"2" * 30), Append(b"3" * 30))
    equal((yield from session.do(Measure())).bytes, 100, "the bytes of a full session")
    yield from _refused(session, "max_session_bytes", 102, 100, Write((variable("b"),)))
    yield from _refused(session, "max_session_bytes", 101, 100, Write((variable("é", b"1" * 39),)))
    yield from _refused(session, "max_session_bytes", 101, 100, WriteTask(b"2" * 31))
    yield from _refused(session, "max_session_bytes", 101, 100, Append(b"3"))
    yield from _refused(session, "max_session_bytes", 102, 100, Increment("n", 1))
    yield from _refused(session, "max_session_bytes", 102, 100, CompareAndSet(variable("n"), None))
    yield from session.do(CreateCheckpoint("c"))
    yield from session.ask(WriteTask(b"2" * 29), Append(b"3"))
    yield from session.do(Write((variable("é", b"1"),)))
    yield from session.do(Write((variable("x", b"1" * 36),)))
    equal((yield from session.do(Measure())).bytes, 100, "the bytes of a session that is full again")
    yield from session.do(Write((variable("é", b"9"),)))
    yield from _refused(session, "max_session_bytes", 101, 100, Increment("é", 1))
    yield from session.do(ClearNotes())
    equal((yield from session.do(Increment("é", 1))), 10, "an increment after notes gave place")


def too_many_notes_are_refused(sessions: Sessions) -> Script[None]:
    """Also where variables may go: they would not help."""
    for on_full in ("refuse", "evict"):
        session = sessions.new(scratchpad_entries=2, on_full=on_full)
        yield from session.do(Write((variable("a"),)))
        yield from session.ask(Append(b"1"), Append(b"2"))
        yield from _refused(session, "max_scratchpad_entries", 3, 2, Append(b"3"))
        yield from session.do(ClearNotes())
        yield from session.do(Append(b"3"))
        equal((yield from session.do(ReadNotes())), [b"3"], "the notes after others gave place")


def what_makes_a_session_smaller_is_never_refused(sessions: Sessions) -> Script[None]:
    """Though it holds more than it may by now."""
    session = sessions.new()
    yield from session.ask(
        Write(tuple(variable(key) for key in "abcdef")), Append(b"1"), Append(b"2"), WriteTask(b"{}")
    )
    small = session.limited(keys=1, session_bytes=1, scratchpad_entries=1)
    equal((yield from small.do(Touch())), True, "Touch of a session that holds too much")
    equal((yield from small.do(Remove(("a", "b")))), 2, "what was deleted from a session that holds too much")
    yield from small.do(CreateCheckpoint("c"))
    equal((yield from small.do(ClearNotes())), 2, "what notes were removed from a session that holds too much")
    equal((yield from small.do(Clear())), 4, "what was cleared from a session that holds too much")


def what_expired_gives_place(sessions: Sessions) -> Script[None]:
    """Before anything is refused, or has to go."""
    for on_full in ("refuse", "evict"):
        session = sessions.new(keys=3, session_bytes=10, on_full=on_full)
        yield from session.do(Write((variable("stays"), variable("b", b"1", 50_000), variable("c", b"1", 50_000))))
        yield from session.until(ListKeys("*"), lambda keys: keys == ["stays"], "variables expired")
        reply = yield from session.ask(Write((variable("d"), variable("e"))))
        equal(reply.evicted, 0, "how many variables had to go where others had expired")
        equal((yield from session.do(ListKeys("*"))), ["d", "e", "stays"], "the keys")
        equal((yield from session.do(Measure()))[:2], (3, 10), "keys and bytes")


def the_least_recently_used_go(sessions: Sessions) -> Script[None]:
    """In the order of their use, not of their keys."""
    session = sessions.new(keys=3, on_full="evict")
    for key in ("c", "a", "b"):
        equal((yield from session.ask(Write((variable(key),)))).evicted, 0, "how many had to go while there was place")
    reply = yield from session.ask(Write((variable("d"),)))
    equal(reply.evicted, 1, "how many had to go for one")
    equal((yield from session.do(ListKeys("*"))), ["a", "b", "d"], "the keys after the first had to go")
    version = (yield from session.do(Inspect(("c",)))).variables
    equal(version, {"c": reply.stamp}, "the version of what had to go")
    yield from session.do(Increment("a", 1))
    yield from session.do(Write((variable("e"),)))
    equal((yield from session.do(ListKeys("*"))), ["a", "d", "e"], "the keys where one was incremented lately")
    yield from session.do(CompareAndSet(variable("d", b"2"), b"1"))
    yield from session.do(Write((variable("f"),)))
    equal((yield from session.do(ListKeys("*"))), ["d", "e", "f"], "the keys where one was compared and set lately")
    equal((yield from session.ask(Write((variable("g"), variable("h"))))).evicted, 2, "how many had to go for two")
    equal((yield from session.do(ListKeys("*"))), ["f", "g", "h"], "the keys after two had to go")
    yield from session.do(Increment("i", 1))
    yield from session.do(CompareAndSet(variable("j"), None))
    equal((yield from session.do(ListKeys("*"))), ["h", "i", "j"], "the keys after two had to go for new ones")


def what_was_read_is_used(sessions: Sessions) -> Script[None]:
    """In the order that the call tells."""
    session = sessions.new(keys=4, on_full="evict")
    for key in "abcd":
        yield from session.do(Write((variable(key),)))
    yield from session.ask(Write((variable("e"),)), used=("b", "absent", "a"))
    equal((yield from session.do(ListKeys("*"))), ["a", "b", "d", "e"], "the keys where some were read")
    yield from session.do(Write((variable("f"),)))
    equal((yield from session.do(ListKeys("*"))), ["a", "b", "e", "f"], "the keys when one more had to go")
    yield from session.do(Write((variable("g"),)))
    equal((yield from session.do(ListKeys("*"))), ["a", "e", "f", "g"], "the keys when the one read first had to go")
    version = (yield from session.do(Inspect(("e",)))).variables
    yield from session.ask(Touch(), used=("e", "a"))
    equal((yield from session.do(Inspect(("e",)))).variables, version, "the version of what was read")
    yield from session.do(Write((variable("h"), variable("i"))))
    equal((yield from session.do(ListKeys("*"))), ["a", "e", "h", "i"], "the keys when those written before had to go")


def of_those_equally_old_the_first_by_key_goes(sessions: Sessions) -> Script[None]:
    """By code point."""
    keys = ("b", "B", "é", "z", "\U0001f642", "\uffff", "a", "ab")
    session = sessions.new(keys=len(keys), on_full="evict")
    yield from session.do(Write(tuple(variable(key) for key in keys)))
    for place in range(1, len(keys) + 1):
        yield from session.do(Write((variable(f"new {place}"),)))
        left = [key for key in (yield from session.do(ListKeys("*"))) if not key.startswith("new")]
        equal(left, sorted(keys)[place:], f"what is left of those equally old after {place} had to go")


def as_many_go_as_are_needed(sessions: Sessions) -> Script[None]:
    """For bytes, and for a task state or a note too."""
    session = sessions.new(session_bytes=60, on_full="evict")
    for key in "abcdef":
        yield from session.do(Write((variable(key, b"1" * 9),)))
    equal((yield from session.ask(Write((variable("g", b"1" * 24),)))).evicted, 3, "how many had to go for 25 bytes")
    equal((yield from session.do(ListKeys("*"))), ["d", "e", "f", "g"], "the keys that stayed")
    equal((yield from session.ask(Append(b"1" * 6))).evicted, 1, "how many had to go for a note")
    equal((yield from session.ask(WriteTask(b"1" * 10))).evicted, 1, "how many had to go for a task state")
    equal((yield from session.ask(Append(b"1"))).evicted, 0, "how many had to go while there was place")
    equal((yield from session.do(ListKeys("*"))), ["f", "g"], "the keys that are left")
    yield from session.do(Write((variable("n", b"9"),)))
    yield from session.ask(Touch(), used=("f", "g"))
    yield from session.do(Write((variable("n", b"9" * 6),)))
    equal((yield from session.do(Measure())).bytes, 59, "the bytes")
    reply = yield from session.ask(Increment("n", 1))
    equal((reply.evicted, (yield from session.do(Measure())).bytes), (0, 60), "an increment that needs one byte more")


def what_has_no_place_is_refused_though_others_may_go(sessions: Sessions) -> Script[None]:
    """Task state, notes, and what the same call writes never go."""
    session = sessions.new(keys=2, session_bytes=50, on_full="evict")
    yield from session.ask(Write((variable("a"), variable("b"))), WriteTask(b"1" * 20), Append(b"1" * 20))
    yield from _refused(session, "max_keys", 3, 2, Write(tuple(variable(key) for key in "xyz")))
    yield from _refused(session, "max_session_bytes", 51, 50, Write((variable("a", b"1" * 10),)))
    yield from _refused(session, "max_session_bytes", 60, 50, Append(b"1" * 20))
    yield from _refused(session, "max_session_bytes", 71, 50, WriteTask(b"1" * 51))
    one = session.limited(keys=1)
    yield from _refused(one, "max_keys", 2, 1, Write((variable("x"),)), Write((variable("y"),)))
    yield from _refused(one, "max_keys", 2, 1, Write((variable("x"),)), Increment("y", 1), read=("a",))
    equal((yield from session.do(Read(("a", "b")))).keys(), {"a", "b"}, "the variables after refusals")
    yield from session.do(Write((variable("c"),)))
    equal((yield from session.do(ListKeys("*"))), ["b", "c"], "what had to go after a refusal that told of a use")


def the_oldest_checkpoints_go(sessions: Sessions) -> Script[None]:
    """When there are more than may be."""
    session = sessions.new(checkpoints=3)
    for name in "abcde":
        yield from session.ask(Append(f'"{name}"'.encode()), CreateCheckpoint(name))
    ids = [one.checkpoint_id for one in (yield from session.do(ListCheckpoints()))]
    equal(ids, ["e", "d", "c"], "the checkpoints, newest first")


CHECKS = (
    too_many_variables_are_refused,
    too_many_bytes_are_refused,
    too_many_notes_are_refused,
    what_makes_a_session_smaller_is_never_refused,
    what_expired_gives_place,
    the_least_recently_used_go,
    what_was_read_is_used,
    of_those_equally_old_the_first_by_key_goes,
    as_many_go_as_are_needed,
    what_has_no_place_is_refused_though_others_may_go,
    the_oldest_checkpoints_go,
)
