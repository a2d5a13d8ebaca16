"""Checks of variables: writing, reading, deleting, counting, comparing."""

from __future__ import annotations

from ....errors import InvalidInput
from ..calls import (
    INT_LEAST,
    INT_MOST,
    Append,
    Clear,
    ClearNotes,
    CompareAndSet,
    CreateCheckpoint,
    DeleteCheckpoint,
    End,
    Found,
    Increment,
    Inspect,
    ListCheckpoints,
    ListKeys,
    Measure,
    Measured,
    Read,
    ReadAll,
    ReadNotes,
    ReadTask,
    Remove,
    Reply,
    RestoreCheckpoint,
    Touch,
    Versions,
    Write,
    WriteTask,
)
from .checks import Script, Sessions, equal, true, variable

#: Keys that mean something to some part of some storage. Given out of order.
HOSTILE_KEYS = (
    "plain",
    " ",
    "trailing ",
    "trailing",
    "Plain",
    "é",
    "e\u0301",
    "E\u0301",
    "straße",
    "strasse",
    "NULL\x00in the middle",
    "\x00",
    "line\nbreak",
    "tab\tand\rreturn",
    "{tag}",
    "}{",
    "a:b",
    "a:b:c",
    "*",
    "?",
    "a*",
    "a?c",
    "abc",
    "[a-c]",
    "\\",
    "%",
    "_",
    "'\"`;--",
    "$.path[0]",
    "🙂",
    "\uffff",
    "\U0010ffff",
    "-1",
    "0",
    "00",
    "1e3",
    "nil",
    "k" * 512,
    "🙂" * 512,
)

#: Values as JSON, which a storage gives back to the byte.
HOSTILE_VALUES = (
    b"null",
    b"0",
    b"-0.0",
    b'""',
    b'" "',
    b'{"b":1,"a":2}',
    b"[ 1 ,\n2 ]",
    b'"\\u0000"',
    '"🙂\u2028é\'%s {0} ?"'.encode(),
    b"123456789012345678901234567890",
    b'"' + b"x" * 100_000 + b'"',
)


def what_is_written_is_read(sessions: Sessions) -> Script[None]:
    """Hostile keys and values, together and one by one."""
    session = sessions.new()
    values = {key: HOSTILE_VALUES[place % len(HOSTILE_VALUES)] for place, key in enumerate(HOSTILE_KEYS)}
    yield from session.do(Write(tuple(variable(key, value) for key, value in values.items())))
    found = {key: Found(value, None) for key, value in values.items()}
    equal((yield from session.do(Read(HOSTILE_KEYS))), found, "what Read finds of all keys")
    everything = yield from session.do(ReadAll())
    equal(everything, found, "what ReadAll finds")
    equal(list(everything), sorted(HOSTILE_KEYS), "the order of ReadAll, which is that of code points")
    for key in HOSTILE_KEYS:
        equal((yield from session.do(Read((key,)))), {key: found[key]}, f"what Read finds of {key!r} alone")
    for value in HOSTILE_VALUES:
        yield from session.do(Write((variable("one", value),)))
        equal(
            (yield from session.do(Read(("one",)))), {"one": Found(value, None)}, "a value written in place of another"
        )


def what_is_not_there_is_left_out(sessions: Sessions) -> Script[None]:
    """Also of a session that is not there."""
    session = sessions.new()
    commands = (
        Read(("a",)),
        ReadAll(),
        ListKeys("*"),
        ReadTask(),
        ReadNotes(),
        ReadNotes(3),
        ListCheckpoints(),
        Measure(),
    )
    nothing: tuple[object, ...] = ({}, {}, [], None, [], [], [], Measured())
    reply = yield from session.ask(*commands, Inspect(), Inspect(("a",)))
    equal(reply, Reply((*nothing, Versions({}), Versions({})), 0, None, 0), "what there is of no session")
    yield from session.do(Write((variable("b"),)))
    equal(
        (yield from session.do(Read(("a", "b")))), {"b": Found(b"1", None)}, "what Read finds of one key that is there"
    )
    equal((yield from session.do(Read(()))), {}, "what Read finds of no keys")


def what_finds_nothing_to_do_begins_no_session(sessions: Sessions) -> Script[None]:
    """Remove, Clear, ClearNotes, Touch, DeleteCheckpoint and End, with reads beside them."""
    session = sessions.new()
    for command, result in (
        (Remove(("a",)), 0),
        (Clear(), 0),
        (ClearNotes(), 0),
        (Touch(), False),
        (Touch(1_000_000), False),
        (DeleteCheckpoint("a"), False),
        (End(), False),
    ):
        equal((yield from session.ask(command)), Reply((result,)), f"the reply to {command} without a session")
    reply = yield from session.ask(Remove(("a",)), ReadAll(), Measure())
    equal(reply, Reply((0, {}, Measured())), "what is read beside a write that finds no session")
    equal((yield from session.do(Measure())), Measured(), "what there is of a session that nothing began")
    equal((yield from session.ask(Measure())).stamp, 0, "the stamp of a session that nothing began")


def keys_are_found_by_globs(sessions: Sessions) -> Script[None]:
    """Only the star and the question mark have a meaning."""
    session = sessions.new()
    yield from session.do(Write(tuple(variable(key) for key in HOSTILE_KEYS)))
    everything = sorted(HOSTILE_KEYS)
    for pattern, keys in {
        "*": everything,
        "**": everything,
        "a?c": ["a?c", "abc"],
        "a*": [key for key in everything if key.startswith("a")],
        "*c": [key for key in everything if key.endswith("c")],
        "?": [key for key in everything if len(key) == 1],
        "??": [key for key in everything if len(key) == 2],
        "*:*": ["a:b", "a:b:c"],
        "[a-c]": ["[a-c]"],
        "\\": ["\\"],
        "%": ["%"],
        "_": ["_"],
        "plain": ["plain"],
        "{*}": ["{tag}"],
        "*\n*": ["line\nbreak"],
        "*\x00*": ["\x00", "NULL\x00in the middle"],
        "🙂": ["🙂"],
        "*.path[[]0]": [],
        "": [],
        "absent": [],
    }.items():
        equal((yield from session.do(ListKeys(pattern))), keys, f"the keys that {pattern!r} finds")


def deleted_variables_are_counted(sessions: Sessions) -> Script[None]:
    """Each once, and only those that were there."""
    session = sessions.new()
    yield from session.do(Write(tuple(variable(key) for key in "abcdef")))
    equal((yield from session.do(Remove(()))), 0, "how many of no keys were deleted")
    equal((yield from session.do(Remove(("a", "x", "a")))), 1, "how many of a, x and a again were deleted")
    equal((yield from session.do(Remove(("a",)))), 0, "how many were deleted that were deleted before")
    equal((yield from session.do(ListKeys("*"))), list("bcdef"), "the keys that are left")
    equal((yield from session.do(Clear())), 5, "how many Clear deleted")
    equal((yield from session.do(Clear())), 0, "how many Clear deleted after Clear")
    equal((yield from session.do(ReadAll())), {}, "what is left after Clear")
    equal((yield from session.do(Measure()))[:2], (0, 0), "keys and bytes after Clear")


def clearing_variables_leaves_the_rest(sessions: Sessions) -> Script[None]:
    """Task state, notes and checkpoints stay."""
    session = sessions.new()
    for command in (Write((variable("a"),)), WriteTask(b'{"t":1}'), Append(b'"n"'), CreateCheckpoint("c")):
        yield from session.do(command)
    yield from session.do(Clear())
    equal((yield from session.do(ReadTask())), b'{"t":1}', "the task state after Clear")
    equal((yield from session.do(ReadNotes())), [b'"n"'], "the notes after Clear")
    equal(len((yield from session.do(ListCheckpoints()))), 1, "the number of checkpoints after Clear")


def whole_numbers_are_incremented(sessions: Sessions) -> Script[None]:
    """Exactly, on all 64 bits."""
    session = sessions.new()
    equal((yield from session.do(Increment("n", 5))), 5, "an increment of what is not there, by 5")
    equal((yield from session.do(Increment("n", -7))), -2, "5 incremented by -7")
    equal((yield from session.do(Increment("n", 0))), -2, "-2 incremented by 0")
    equal((yield from session.do(Read(("n",)))), {"n": Found(b"-2", None)}, "the JSON of a number that was incremented")
    for start, by in ((2**53, 1), (-(2**53), -1), (INT_MOST - 1, 1), (INT_LEAST + 1, -1), (INT_LEAST, INT_MOST)):
        yield from session.do(Write((variable("n", str(start)),)))
        equal((yield from session.do(Increment("n", by))), start + by, f"{start} incremented by {by}")
        stored = (yield from session.do(Read(("n",))))["n"].value
        equal(stored, str(start + by).encode(), f"the JSON of {start} incremented by {by}")
    for by in (INT_LEAST, INT_MOST):
        yield from session.do(Remove(("n",)))
        equal((yield from session.do(Increment("n", by))), by, f"an increment of what is not there, by {by}")
    was = yield from session.do(CompareAndSet(variable("n", b"1"), str(INT_MOST).encode()))
    equal(was, True, "whether a number that was incremented has its digits as likeness")


def what_cannot_be_incremented_is_refused(sessions: Sessions) -> Script[None]:
    """And nothing is changed."""
    session = sessions.new()
    for value in (b"1.0", b"1e3", b'"1"', b"true", b"null", b"[1]", b"{}", b"9223372036854775808", b"1" * 40, b'""'):
        yield from session.do(Write((variable("n", value),)))
        stamp = (yield from session.ask(Measure())).stamp
        error = yield from session.refused(InvalidInput, Increment("n", 1))
        true("'n'" in str(error), f"the refusal names the key: {error}")
        equal((yield from session.do(Read(("n",)))), {"n": Found(value, None)}, "what could not be incremented")
        equal((yield from session.ask(Measure())).stamp, stamp, "the stamp after a refusal")
    for number, by in ((INT_MOST, 1), (INT_LEAST, -1), (1, INT_MOST), (-1, INT_LEAST), (INT_MOST, INT_MOST)):
        yield from session.do(Write((variable("n", str(number)),)))
        yield from session.refused(InvalidInput, Increment("n", by))
        equal((yield from session.do(Read(("n",))))["n"].value, str(number).encode(), "what would not fit 64 bits")


def values_are_compared_by_likeness(sessions: Sessions) -> Script[None]:
    """Not by their JSON."""
    session = sessions.new()
    first, second = variable("a", b'{"b":1, "a":2}', likeness=b"L1"), variable("a", b"[2]", likeness=b"L\x00\xff2")
    equal((yield from session.do(CompareAndSet(first, b"L1"))), False, "setting what is not there, expecting a value")
    equal((yield from session.do(Read(("a",)))), {}, "what a comparison that failed has set")
    equal((yield from session.do(CompareAndSet(first, None))), True, "setting what is not there, expecting that")
    equal((yield from session.do(CompareAndSet(second, None))), False, "setting what is there, expecting nothing")
    equal((yield from session.do(CompareAndSet(second, first.value))), False, "setting what has another likeness")
    equal((yield from session.do(Read(("a",))))["a"].value, first.value, "what comparisons that failed left")
    equal((yield from session.do(CompareAndSet(second, b"L1"))), True, "setting what has the likeness")
    equal((yield from session.do(CompareAndSet(first, b"L1"))), False, "setting what had the likeness before")
    equal((yield from session.do(Read(("a",))))["a"].value, second.value, "what a comparison that held has set")
    equal((yield from session.do(CompareAndSet(first, second.likeness))), True, "setting what has a binary likeness")
    yield from session.do(Write((variable("a", b"[3]", likeness=b"[3]"),)))
    equal((yield from session.do(CompareAndSet(first, b"L1"))), False, "a likeness from before another write")
    equal((yield from session.do(CompareAndSet(first, b"[3]"))), True, "a likeness that is the JSON")
    yield from session.do(Remove(("a",)))
    equal((yield from session.do(CompareAndSet(first, None))), True, "setting what was deleted, expecting nothing")


def the_task_state_is_replaced_and_removed(sessions: Sessions) -> Script[None]:
    """And is not one of the variables."""
    session = sessions.new()
    for value in HOSTILE_VALUES:
        yield from session.do(WriteTask(value))
        equal((yield from session.do(ReadTask())), value, "the task state")
    equal((yield from session.do(ReadAll())), {}, "the variables beside a task state")
    yield from session.do(WriteTask(None))
    equal((yield from session.do(ReadTask())), None, "a task state that was removed")
    equal((yield from session.do(Measure())).bytes, 0, "the bytes of a task state that was removed")


def notes_stay_in_order(sessions: Sessions) -> Script[None]:
    """Oldest first; or only the last ones."""
    session = sessions.new()
    for value in HOSTILE_VALUES:
        yield from session.do(Append(value))
    notes = list(HOSTILE_VALUES)
    equal((yield from session.do(ReadNotes())), notes, "the notes")
    for last in (0, 1, 2, len(notes), len(notes) + 1):
        equal((yield from session.do(ReadNotes(last))), notes[max(0, len(notes) - last) :], f"the last {last} notes")
    equal((yield from session.do(ClearNotes())), len(notes), "how many notes were removed")
    equal((yield from session.do(ClearNotes())), 0, "how many notes were removed after all were")
    equal((yield from session.do(ReadNotes())), [], "the notes that were removed")
    yield from session.do(Append(b'"again"'))
    equal((yield from session.do(ReadNotes())), [b'"again"'], "a note after all were removed")


def bytes_are_counted(sessions: Sessions) -> Script[None]:
    """Of keys and JSON, as UTF-8."""
    session = sessions.new()
    yield from session.do(Write((variable("é🙂", b"12345"), variable("b", b"1"))))
    equal((yield from session.do(Measure())), Measured(2, 13, 0, 0, None), "two variables")
    yield from session.do(Write((variable("b", b'"longer"'),)))
    equal((yield from session.do(Measure())).bytes, 20, "the bytes when a variable grew")
    yield from session.do(Increment("é🙂", 99_999 - 12_345 + 1))
    equal((yield from session.do(Measure())).bytes, 21, "the bytes when a number got a digit more")
    yield from session.do(WriteTask(b"{}"))
    yield from session.do(WriteTask(b'{"a":1}'))
    for _ in range(3):
        yield from session.do(Append('"é"'.encode()))
    yield from session.do(CreateCheckpoint("c"))
    equal((yield from session.do(Measure())), Measured(2, 21 + 7 + 12, 3, 1, None), "all that a session holds")
    yield from session.do(Remove(("b",)))
    yield from session.do(ClearNotes())
    yield from session.do(CompareAndSet(variable("é🙂", b"7"), b"100000"))
    equal((yield from session.do(Measure())), Measured(1, 7 + 7, 0, 1, None), "what is left")


def ids_keep_sessions_apart(sessions: Sessions) -> Script[None]:
    """Whatever they hold."""
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
    for place, address in enumerate(addresses):
        session = sessions.named(*address)
        yield from session.do(Write((variable("mine", str(place)),)))
        yield from session.do(Append(str(place).encode()))
    for place, address in enumerate(addresses):
        session = sessions.named(*address)
        mine = str(place).encode()
        equal((yield from session.do(ReadAll())), {"mine": Found(mine, None)}, f"the variables of {session.address}")
        equal((yield from session.do(ReadNotes())), [mine], f"the notes of {session.address}")
    ended = sessions.named("a", "s")
    equal((yield from ended.do(End())), True, "whether a session that was ended was there")
    left = 0
    for address in addresses:
        left += len((yield from sessions.named(*address).do(ListKeys("*"))))
    equal(left, len(addresses) - 1, "the number of sessions that are left")


def long_ids_are_kept_apart(sessions: Sessions) -> Script[None]:
    """By their last character too."""
    for tail in ("x", "y", "🙂"):
        yield from sessions.named("", "🙂" * 511 + tail).do(Write((variable("mine", f'"{tail}"'),)))
    for tail in ("x", "y", "🙂"):
        found = yield from sessions.named("", "🙂" * 511 + tail).do(ReadAll())
        equal(found, {"mine": Found(f'"{tail}"'.encode(), None)}, "what a session with a long id holds")


def commands_are_carried_out_in_order(sessions: Sessions) -> Script[None]:
    """Each sees what those before it did."""
    session = sessions.new()
    reply = yield from session.ask(
        Increment("n", 1),
        Read(("n",)),
        Increment("n", 1),
        Append(b"1"),
        Write((variable("a"),)),
        Remove(("n", "x")),
        ListKeys("*"),
        Append(b"2"),
        ReadNotes(),
        WriteTask(b"{}"),
        ReadTask(),
        CompareAndSet(variable("a", b"2"), b"1"),
        CreateCheckpoint("c"),
        Clear(),
        RestoreCheckpoint("c", "undo"),
        ReadAll(),
        Measure(),
        DeleteCheckpoint("undo"),
    )
    equal(
        reply.results,
        (
            *(
                1,
                {"n": Found(b"1", None)},
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
            *({"a": Found(b"2", None)}, Measured(1, 6, 2, 2, None), True),
        ),
        "what commands of one call see of each other",
    )


def all_commands_or_none(sessions: Sessions) -> Script[None]:
    """One that is refused undoes those before it."""
    session = sessions.new()
    yield from session.ask(
        Write((variable("a"), variable("text", b'"x"', likeness=b"L"))),
        Append(b"1"),
        WriteTask(b"{}"),
        CreateCheckpoint("c"),
    )
    looks = (ReadAll(), ReadNotes(), ReadTask(), ListCheckpoints(), Measure(), Inspect())
    before = yield from session.ask(*looks)
    yield from session.refused(
        InvalidInput,
        Write((variable("a", b"2"), variable("b"))),
        Remove(("text",)),
        Append(b"2"),
        WriteTask(None),
        CreateCheckpoint("d"),
        DeleteCheckpoint("c"),
        ClearNotes(),
        Increment("n", 1),
        Touch(3_600_000_000),
        Write((variable("text", b'"y"'),)),
        Increment("text", 1),
    )
    equal((yield from session.ask(*looks)), before, "a session after a call of which the last command was refused")
    yield from session.refused(InvalidInput, Clear(), RestoreCheckpoint("c", "undo"), CreateCheckpoint("c"))
    equal((yield from session.ask(*looks)), before, "a session after a call whose checkpoint was there")
    equal((yield from session.do(CompareAndSet(variable("text"), b"L"))), True, "whether a likeness was put back")
    new = sessions.new()
    yield from new.refused(InvalidInput, Write((variable("a", b'"x"'),)), Increment("a", 1))
    equal((yield from new.ask(Measure())), Reply((Measured(),)), "a session whose first call was refused")


def ended_sessions_are_gone(sessions: Sessions) -> Script[None]:
    """With all that they held."""
    session = sessions.new()
    yield from session.ask(Write((variable("a"),)), Append(b"1"), WriteTask(b"{}"), CreateCheckpoint("c"))
    stamp = (yield from session.ask(Measure())).stamp
    equal((yield from session.ask(End())), Reply((True,)), "the reply to End")
    reply = yield from session.ask(ReadAll(), ReadNotes(), ReadTask(), ListCheckpoints(), Measure(), Inspect())
    equal(reply, Reply(({}, [], None, [], Measured(), Versions({}))), "what is left of a session that was ended")
    equal((yield from session.ask(End())), Reply((False,)), "the reply to a second End")
    reply = yield from session.ask(Append(b"2"), ReadNotes(), ReadAll(), ListCheckpoints(), ReadTask())
    equal(reply.results[1:], ([b"2"], {}, [], None), "what a session begun anew holds")
    true(reply.stamp > stamp, "the stamp rose when a session was begun anew")


CHECKS = (
    what_is_written_is_read,
    what_is_not_there_is_left_out,
    what_finds_nothing_to_do_begins_no_session,
    keys_are_found_by_globs,
    deleted_variables_are_counted,
    clearing_variables_leaves_the_rest,
    whole_numbers_are_incremented,
    what_cannot_be_incremented_is_refused,
    values_are_compared_by_likeness,
    the_task_state_is_replaced_and_removed,
    notes_stay_in_order,
    bytes_are_counted,
    ids_keep_sessions_apart,
    long_ids_are_kept_apart,
    commands_are_carried_out_in_order,
    all_commands_or_none,
    ended_sessions_are_gone,
)
