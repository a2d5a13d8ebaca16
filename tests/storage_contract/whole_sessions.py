"""Checks of whole sessions: task state and notes, sizes, ids, calls of several commands, and their end."""

from __future__ import annotations

from locus_mysql.errors import InvalidInput
from locus_mysql.families.working import calls

from .checks import Script, Sessions, equal, true, variable
from .hostile import HOSTILE_VALUES


def the_task_state_is_replaced_and_removed(sessions: Sessions) -> Script[None]:
    """The task state is not a variable."""
    session = sessions.new()
    for value in HOSTILE_VALUES:
        yield from session.do(calls.WriteTask(value))
        yield from session.gives(calls.ReadTask(), value)
    yield from session.gives(calls.ReadAll(), {})
    yield from session.do(calls.WriteTask(None))
    yield from session.gives(calls.ReadTask(), None)
    equal((yield from session.do(calls.Measure())).bytes, 0, "the bytes of a task state that was removed")


def notes_stay_in_order(sessions: Sessions) -> Script[None]:
    """They are returned oldest first, or only the last ones."""
    session = sessions.new()
    for value in HOSTILE_VALUES:
        yield from session.do(calls.Append(value))
    notes = list(HOSTILE_VALUES)
    yield from session.gives(calls.ReadNotes(), notes)
    for last in (0, 1, 2, len(notes), len(notes) + 1):
        yield from session.gives(calls.ReadNotes(last), notes[max(0, len(notes) - last) :])
    yield from session.gives(calls.ClearNotes(), len(notes))
    yield from session.gives(calls.ClearNotes(), 0)
    yield from session.gives(calls.ReadNotes(), [])
    yield from session.do(calls.Append(b'"again"'))
    yield from session.gives(calls.ReadNotes(), [b'"again"'])


def bytes_are_counted(sessions: Sessions) -> Script[None]:
    """Counted are keys and JSON, as UTF-8."""
    session = sessions.new()
    yield from session.do(calls.Write((variable("é🙂", b"12345"), variable("b", b"1"))))
    yield from session.gives(calls.Measure(), calls.Measured(2, 13, 0, 0, None))
    yield from session.do(calls.Write((variable("b", b'"longer"'),)))
    equal((yield from session.do(calls.Measure())).bytes, 20, "the bytes when a variable grew")
    yield from session.do(calls.Increment("é🙂", 99_999 - 12_345 + 1))
    equal((yield from session.do(calls.Measure())).bytes, 21, "the bytes when a number got a digit more")
    yield from session.do(calls.WriteTask(b"{}"))
    yield from session.do(calls.WriteTask(b'{"a":1}'))
    for _ in range(3):
        yield from session.do(calls.Append('"é"'.encode()))
    yield from session.do(calls.CreateCheckpoint("c"))
    yield from session.gives(calls.Measure(), calls.Measured(2, 21 + 7 + 12, 3, 1, None))
    yield from session.do(calls.Remove(("b",)))
    yield from session.do(calls.ClearNotes())
    yield from session.do(calls.CompareAndSet(variable("é🙂", b"7"), b"100000"))
    yield from session.gives(calls.Measure(), calls.Measured(1, 7 + 7, 0, 1, None))


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


def commands_are_carried_out_in_order(sessions: Sessions) -> Script[None]:
    """Each command sees the effects of those before it."""
    session = sessions.new()
    reply = yield from session.ask(
        calls.Increment("n", 1),
        calls.Read(("n",)),
        calls.Increment("n", 1),
        calls.Append(b"1"),
        calls.Write((variable("a"),)),
        calls.Remove(("n", "x")),
        calls.ListKeys("*"),
        calls.Append(b"2"),
        calls.ReadNotes(),
        calls.WriteTask(b"{}"),
        calls.ReadTask(),
        calls.CompareAndSet(variable("a", b"2"), b"1"),
        calls.CreateCheckpoint("c"),
        calls.Clear(),
        calls.RestoreCheckpoint("c", "undo"),
        calls.ReadAll(),
        calls.Measure(),
        calls.DeleteCheckpoint("undo"),
    )
    equal(
        reply.results,
        (
            *(
                1,
                {"n": calls.Found(b"1", None)},
                2,
                None,
                None,
                1,
                ["a"],
                None,
                [b"1", b"2"],
                None,
                b"{}",
                True,
                None,
                1,
                None,
            ),
            *({"a": calls.Found(b"2", None)}, calls.Measured(1, 6, 2, 2, None), True),
        ),
        "what commands of one call see of each other",
    )


def all_commands_of_a_call_are_carried_out_or_none(sessions: Sessions) -> Script[None]:
    """A refused command undoes those before it."""
    session = sessions.new()
    yield from session.ask(
        calls.Write((variable("a"), variable("text", b'"x"'))),
        calls.Append(b"1"),
        calls.WriteTask(b"{}"),
        calls.CreateCheckpoint("c"),
    )
    looks = (
        calls.ReadAll(),
        calls.ReadNotes(),
        calls.ReadTask(),
        calls.ListCheckpoints(),
        calls.Measure(),
    )
    before = yield from session.ask(*looks)
    yield from session.refused(
        InvalidInput,
        calls.Write((variable("a", b"2"), variable("b"))),
        calls.Remove(("text",)),
        calls.Append(b"2"),
        calls.WriteTask(None),
        calls.CreateCheckpoint("d"),
        calls.DeleteCheckpoint("c"),
        calls.ClearNotes(),
        calls.Increment("n", 1),
        calls.Touch(3_600_000_000),
        calls.Write((variable("text", b'"y"'),)),
        calls.Increment("text", 1),
    )
    equal((yield from session.ask(*looks)), before, "a session after a call of which the last command was refused")
    yield from session.refused(
        InvalidInput, calls.Clear(), calls.RestoreCheckpoint("c", "undo"), calls.CreateCheckpoint("c")
    )
    equal((yield from session.ask(*looks)), before, "a session after a call whose checkpoint was there")
    yield from session.gives(calls.CompareAndSet(variable("text"), b'"x"'), True)
    new = sessions.new()
    yield from new.refused(InvalidInput, calls.Write((variable("a", b'"x"'),)), calls.Increment("a", 1))
    equal(
        (yield from new.ask(calls.Measure())),
        calls.Reply((calls.Measured(),)),
        "a session whose first call was refused",
    )


def ended_sessions_have_no_content(sessions: Sessions) -> Script[None]:
    """A session that is created again is empty."""
    session = sessions.new()
    yield from session.ask(
        calls.Write((variable("a"),)), calls.Append(b"1"), calls.WriteTask(b"{}"), calls.CreateCheckpoint("c")
    )
    stamp = (yield from session.ask(calls.Measure())).stamp
    equal((yield from session.ask(calls.End())), calls.Reply((True,)), "the reply to End")
    reply = yield from session.ask(
        calls.ReadAll(), calls.ReadNotes(), calls.ReadTask(), calls.ListCheckpoints(), calls.Measure()
    )
    equal(
        reply,
        calls.Reply(({}, [], None, [], calls.Measured())),
        "the content of a session that was ended",
    )
    equal((yield from session.ask(calls.End())), calls.Reply((False,)), "the reply to a second End")
    reply = yield from session.ask(
        calls.Append(b"2"), calls.ReadNotes(), calls.ReadAll(), calls.ListCheckpoints(), calls.ReadTask()
    )
    equal(reply.results[1:], ([b"2"], {}, [], None), "the content of a session that was created again")
    true(reply.stamp > stamp, "the stamp rose when a session was created again")


CHECKS = (
    the_task_state_is_replaced_and_removed,
    notes_stay_in_order,
    bytes_are_counted,
    sessions_with_different_ids_are_separate,
    sessions_with_long_ids_are_separate,
    commands_are_carried_out_in_order,
    all_commands_of_a_call_are_carried_out_or_none,
    ended_sessions_have_no_content,
)
