"""Checks of whole sessions: their ids, their sizes, and restoring what does not exist."""

from __future__ import annotations

from locus_mysql.errors import NotFound
from locus_mysql.families.working import calls

from .checks import Script, Sessions, equal, true, variable


def sessions_with_different_ids_are_separate(sessions: Sessions) -> Script[None]:
    """Ids may contain any characters."""
    ids = (
        "",
        "a",
        "A",
        "a ",
        "a:",
        ":a",
        "a:b",
        "{a}",
        "{",
        "}",
        "a}{b",
        "á",
        "a\u0301",
        "*",
        "?",
        "%",
        "\x00",
        "\n",
        "🙂",
    )
    addresses = [(tenant, session_id) for tenant in ids for session_id in ("s", "s ", "S", ":s", "}s{", "\x00", "🙂")]
    for index, address in enumerate(addresses):
        session = sessions.named(*address)
        yield from session.do(calls.Write((variable("mine", str(index)),)))
        yield from session.do(calls.Append(str(index).encode()))
    for index, address in enumerate(addresses):
        session = sessions.named(*address)
        mine = str(index).encode()
        yield from session.gives(calls.ReadAll(), {"mine": calls.Found(mine, None)})
        yield from session.gives(calls.ReadNotes(), [mine])
    ended = sessions.named("a", "s")
    yield from ended.gives(calls.End(), True)
    left = 0
    for address in addresses:
        left += len((yield from sessions.named(*address).do(calls.ListKeys("*"))))
    equal(left, len(addresses) - 1, "the number of sessions that are left")


def sessions_with_long_ids_are_separate(sessions: Sessions) -> Script[None]:
    """This holds also if only the last character differs."""
    for tail in ("x", "y", "🙂"):
        yield from sessions.named("", "🙂" * 511 + tail).do(calls.Write((variable("mine", f'"{tail}"'),)))
    for tail in ("x", "y", "🙂"):
        found = yield from sessions.named("", "🙂" * 511 + tail).do(calls.ReadAll())
        equal(found, {"mine": calls.Found(f'"{tail}"'.encode(), None)}, "what a session with a long id holds")


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


def restoring_a_missing_checkpoint_is_refused(sessions: Sessions) -> Script[None]:
    """The error names the checkpoint."""
    session = sessions.new()
    yield from session.refused(NotFound, calls.RestoreCheckpoint("absent", "undo"))
    equal((yield from session.ask(calls.Measure())).stamp, 0, "the stamp of a missing session")
    yield from session.ask(calls.Append(b"1"), calls.CreateCheckpoint("c"))
    error = yield from session.refused(NotFound, calls.RestoreCheckpoint("absent", "undo"))
    true("'absent'" in str(error), f"the refusal names the checkpoint: {error}")


def a_checkpoint_keeps_the_notes_that_its_own_call_clears(sessions: Sessions) -> Script[None]:
    """A replay after an outage makes such calls."""
    session = sessions.new()
    yield from session.do(calls.Append(b"1"))
    yield from session.ask(
        *(calls.CreateCheckpoint("c"), calls.ClearNotes(), calls.Append(b"2"), calls.CreateCheckpoint("d")),
        *(calls.ClearNotes(), calls.Append(b"3")),
    )
    for checkpoint_id, note in (("c", b"1"), ("d", b"2")):
        yield from session.do(calls.RestoreCheckpoint(checkpoint_id, f"before {checkpoint_id}"))
        yield from session.gives(calls.ReadNotes(), [note])


CHECKS = (
    a_checkpoint_keeps_the_notes_that_its_own_call_clears,
    as_many_variables_are_evicted_as_needed,
    restoring_a_missing_checkpoint_is_refused,
    sessions_with_different_ids_are_separate,
    sessions_with_long_ids_are_separate,
)
