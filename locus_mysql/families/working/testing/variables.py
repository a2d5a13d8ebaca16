"""Checks of variables: writing, reading, deleting, counting, comparing."""

from __future__ import annotations

from ....errors import InvalidInput
from .. import calls
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


def written_variables_are_read_back(sessions: Sessions) -> Script[None]:
    """Keys and values are hostile; they are read together and one by one."""
    session = sessions.new()
    values = {key: HOSTILE_VALUES[place % len(HOSTILE_VALUES)] for place, key in enumerate(HOSTILE_KEYS)}
    yield from session.do(calls.Write(tuple(variable(key, value) for key, value in values.items())))
    found = {key: calls.Found(value, None) for key, value in values.items()}
    equal((yield from session.do(calls.Read(HOSTILE_KEYS))), found, "what Read finds of all keys")
    everything = yield from session.do(calls.ReadAll())
    equal(everything, found, "what ReadAll finds")
    equal(list(everything), sorted(HOSTILE_KEYS), "the order of ReadAll, which is that of code points")
    for key in HOSTILE_KEYS:
        equal((yield from session.do(calls.Read((key,)))), {key: found[key]}, f"what Read finds of {key!r} alone")
    for value in HOSTILE_VALUES:
        yield from session.do(calls.Write((variable("one", value),)))
        equal(
            (yield from session.do(calls.Read(("one",)))),
            {"one": calls.Found(value, None)},
            "a value written in place of another",
        )


def missing_variables_are_left_out(sessions: Sessions) -> Script[None]:
    """This includes reads of a session that does not exist."""
    session = sessions.new()
    commands = (
        calls.Read(("a",)),
        calls.ReadAll(),
        calls.ListKeys("*"),
        calls.ReadTask(),
        calls.ReadNotes(),
        calls.ReadNotes(3),
        calls.ListCheckpoints(),
        calls.Measure(),
    )
    nothing: tuple[object, ...] = ({}, {}, [], None, [], [], [], calls.Measured())
    reply = yield from session.ask(*commands, calls.Inspect(), calls.Inspect(("a",)))
    equal(
        reply,
        calls.Reply((*nothing, calls.Versions({}), calls.Versions({})), 0, None, 0),
        "the content of a session that does not exist",
    )
    yield from session.do(calls.Write((variable("b"),)))
    equal(
        (yield from session.do(calls.Read(("a", "b")))),
        {"b": calls.Found(b"1", None)},
        "what Read finds of one key that is there",
    )
    equal((yield from session.do(calls.Read(()))), {}, "what Read finds of no keys")


def commands_without_effect_begin_no_session(sessions: Sessions) -> Script[None]:
    """These are Remove, Clear, ClearNotes, Touch, DeleteCheckpoint and End, with reads beside them."""
    session = sessions.new()
    for command, result in (
        (calls.Remove(("a",)), 0),
        (calls.Clear(), 0),
        (calls.ClearNotes(), 0),
        (calls.Touch(), False),
        (calls.Touch(1_000_000), False),
        (calls.DeleteCheckpoint("a"), False),
        (calls.End(), False),
    ):
        equal((yield from session.ask(command)), calls.Reply((result,)), f"the reply to {command} without a session")
    reply = yield from session.ask(calls.Remove(("a",)), calls.ReadAll(), calls.Measure())
    equal(reply, calls.Reply((0, {}, calls.Measured())), "what is read beside a write that finds no session")
    equal((yield from session.do(calls.Measure())), calls.Measured(), "what there is of a session that nothing began")
    equal((yield from session.ask(calls.Measure())).stamp, 0, "the stamp of a session that nothing began")


def keys_are_found_by_globs(sessions: Sessions) -> Script[None]:
    """Only the star and the question mark are special."""
    session = sessions.new()
    yield from session.do(calls.Write(tuple(variable(key) for key in HOSTILE_KEYS)))
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
        equal((yield from session.do(calls.ListKeys(pattern))), keys, f"the keys that {pattern!r} finds")


def deleted_variables_are_counted(sessions: Sessions) -> Script[None]:
    """Each counts once, and only existing ones count."""
    session = sessions.new()
    yield from session.do(calls.Write(tuple(variable(key) for key in "abcdef")))
    equal((yield from session.do(calls.Remove(()))), 0, "how many of no keys were deleted")
    equal((yield from session.do(calls.Remove(("a", "x", "a")))), 1, "how many of a, x and a again were deleted")
    equal((yield from session.do(calls.Remove(("a",)))), 0, "how many were deleted that were deleted before")
    equal((yield from session.do(calls.ListKeys("*"))), list("bcdef"), "the keys that are left")
    equal((yield from session.do(calls.Clear())), 5, "how many Clear deleted")
    equal((yield from session.do(calls.Clear())), 0, "how many Clear deleted after Clear")
    equal((yield from session.do(calls.ReadAll())), {}, "what is left after Clear")
    equal((yield from session.do(calls.Measure()))[:2], (0, 0), "keys and bytes after Clear")


def clearing_variables_leaves_the_rest(sessions: Sessions) -> Script[None]:
    """It keeps task state, notes and checkpoints."""
    session = sessions.new()
    for command in (
        calls.Write((variable("a"),)),
        calls.WriteTask(b'{"t":1}'),
        calls.Append(b'"n"'),
        calls.CreateCheckpoint("c"),
    ):
        yield from session.do(command)
    yield from session.do(calls.Clear())
    equal((yield from session.do(calls.ReadTask())), b'{"t":1}', "the task state after Clear")
    equal((yield from session.do(calls.ReadNotes())), [b'"n"'], "the notes after Clear")
    equal(len((yield from session.do(calls.ListCheckpoints()))), 1, "the number of checkpoints after Clear")


def whole_numbers_are_incremented(sessions: Sessions) -> Script[None]:
    """The sum is exact on all 64 bits."""
    session = sessions.new()
    equal((yield from session.do(calls.Increment("n", 5))), 5, "an increment of what is not there, by 5")
    equal((yield from session.do(calls.Increment("n", -7))), -2, "5 incremented by -7")
    equal((yield from session.do(calls.Increment("n", 0))), -2, "-2 incremented by 0")
    equal(
        (yield from session.do(calls.Read(("n",)))),
        {"n": calls.Found(b"-2", None)},
        "the JSON of a number that was incremented",
    )
    for start, by in (
        (2**53, 1),
        (-(2**53), -1),
        (calls.INT_MOST - 1, 1),
        (calls.INT_LEAST + 1, -1),
        (calls.INT_LEAST, calls.INT_MOST),
    ):
        yield from session.do(calls.Write((variable("n", str(start)),)))
        equal((yield from session.do(calls.Increment("n", by))), start + by, f"{start} incremented by {by}")
        stored = (yield from session.do(calls.Read(("n",))))["n"].value
        equal(stored, str(start + by).encode(), f"the JSON of {start} incremented by {by}")
    for by in (calls.INT_LEAST, calls.INT_MOST):
        yield from session.do(calls.Remove(("n",)))
        equal((yield from session.do(calls.Increment("n", by))), by, f"an increment of what is not there, by {by}")
    was = yield from session.do(calls.CompareAndSet(variable("n", b"1"), str(calls.INT_MOST).encode()))
    equal(was, True, "whether a number that was incremented has its digits as likeness")


def an_increment_of_anything_but_a_whole_number_is_refused(sessions: Sessions) -> Script[None]:
    """The refusal changes nothing."""
    session = sessions.new()
    for value in (b"1.0", b"1e3", b'"1"', b"true", b"null", b"[1]", b"{}", b"9223372036854775808", b"1" * 40, b'""'):
        yield from session.do(calls.Write((variable("n", value),)))
        stamp = (yield from session.ask(calls.Measure())).stamp
        error = yield from session.refused(InvalidInput, calls.Increment("n", 1))
        true("'n'" in str(error), f"the refusal names the key: {error}")
        equal(
            (yield from session.do(calls.Read(("n",)))),
            {"n": calls.Found(value, None)},
            "what could not be incremented",
        )
        equal((yield from session.ask(calls.Measure())).stamp, stamp, "the stamp after a refusal")
    for number, by in (
        (calls.INT_MOST, 1),
        (calls.INT_LEAST, -1),
        (1, calls.INT_MOST),
        (-1, calls.INT_LEAST),
        (calls.INT_MOST, calls.INT_MOST),
    ):
        yield from session.do(calls.Write((variable("n", str(number)),)))
        yield from session.refused(InvalidInput, calls.Increment("n", by))
        equal(
            (yield from session.do(calls.Read(("n",))))["n"].value, str(number).encode(), "what would not fit 64 bits"
        )


def compare_and_set_compares_likenesses(sessions: Sessions) -> Script[None]:
    """The JSON of the values does not matter."""
    session = sessions.new()
    first, second = variable("a", b'{"b":1, "a":2}', likeness=b"L1"), variable("a", b"[2]", likeness=b"L\x00\xff2")
    equal(
        (yield from session.do(calls.CompareAndSet(first, b"L1"))),
        False,
        "setting what is not there, expecting a value",
    )
    equal((yield from session.do(calls.Read(("a",)))), {}, "what a comparison that failed has set")
    equal((yield from session.do(calls.CompareAndSet(first, None))), True, "setting what is not there, expecting that")
    equal(
        (yield from session.do(calls.CompareAndSet(second, None))),
        False,
        "setting an existing variable, expecting none",
    )
    equal((yield from session.do(calls.CompareAndSet(second, first.value))), False, "setting what has another likeness")
    equal((yield from session.do(calls.Read(("a",))))["a"].value, first.value, "what comparisons that failed left")
    equal((yield from session.do(calls.CompareAndSet(second, b"L1"))), True, "setting what has the likeness")
    equal((yield from session.do(calls.CompareAndSet(first, b"L1"))), False, "setting what had the likeness before")
    equal((yield from session.do(calls.Read(("a",))))["a"].value, second.value, "what a comparison that held has set")
    equal(
        (yield from session.do(calls.CompareAndSet(first, second.likeness))), True, "setting what has a binary likeness"
    )
    yield from session.do(calls.Write((variable("a", b"[3]", likeness=b"[3]"),)))
    equal((yield from session.do(calls.CompareAndSet(first, b"L1"))), False, "a likeness from before another write")
    equal((yield from session.do(calls.CompareAndSet(first, b"[3]"))), True, "a likeness that is the JSON")
    yield from session.do(calls.Remove(("a",)))
    equal(
        (yield from session.do(calls.CompareAndSet(first, None))), True, "setting what was deleted, expecting nothing"
    )


def the_task_state_is_replaced_and_removed(sessions: Sessions) -> Script[None]:
    """The task state is not a variable."""
    session = sessions.new()
    for value in HOSTILE_VALUES:
        yield from session.do(calls.WriteTask(value))
        equal((yield from session.do(calls.ReadTask())), value, "the task state")
    equal((yield from session.do(calls.ReadAll())), {}, "the variables beside a task state")
    yield from session.do(calls.WriteTask(None))
    equal((yield from session.do(calls.ReadTask())), None, "a task state that was removed")
    equal((yield from session.do(calls.Measure())).bytes, 0, "the bytes of a task state that was removed")


def notes_stay_in_order(sessions: Sessions) -> Script[None]:
    """They are returned oldest first, or only the last ones."""
    session = sessions.new()
    for value in HOSTILE_VALUES:
        yield from session.do(calls.Append(value))
    notes = list(HOSTILE_VALUES)
    equal((yield from session.do(calls.ReadNotes())), notes, "the notes")
    for last in (0, 1, 2, len(notes), len(notes) + 1):
        equal(
            (yield from session.do(calls.ReadNotes(last))), notes[max(0, len(notes) - last) :], f"the last {last} notes"
        )
    equal((yield from session.do(calls.ClearNotes())), len(notes), "how many notes were removed")
    equal((yield from session.do(calls.ClearNotes())), 0, "how many notes were removed after all were")
    equal((yield from session.do(calls.ReadNotes())), [], "the notes that were removed")
    yield from session.do(calls.Append(b'"again"'))
    equal((yield from session.do(calls.ReadNotes())), [b'"again"'], "a note after all were removed")


def bytes_are_counted(sessions: Sessions) -> Script[None]:
    """Counted are keys and JSON, as UTF-8."""
    session = sessions.new()
    yield from session.do(calls.Write((variable("é🙂", b"12345"), variable("b", b"1"))))
    equal((yield from session.do(calls.Measure())), calls.Measured(2, 13, 0, 0, None), "two variables")
    yield from session.do(calls.Write((variable("b", b'"longer"'),)))
    equal((yield from session.do(calls.Measure())).bytes, 20, "the bytes when a variable grew")
    yield from session.do(calls.Increment("é🙂", 99_999 - 12_345 + 1))
    equal((yield from session.do(calls.Measure())).bytes, 21, "the bytes when a number got a digit more")
    yield from session.do(calls.WriteTask(b"{}"))
    yield from session.do(calls.WriteTask(b'{"a":1}'))
    for _ in range(3):
        yield from session.do(calls.Append('"é"'.encode()))
    yield from session.do(calls.CreateCheckpoint("c"))
    equal(
        (yield from session.do(calls.Measure())), calls.Measured(2, 21 + 7 + 12, 3, 1, None), "all that a session holds"
    )
    yield from session.do(calls.Remove(("b",)))
    yield from session.do(calls.ClearNotes())
    yield from session.do(calls.CompareAndSet(variable("é🙂", b"7"), b"100000"))
    equal((yield from session.do(calls.Measure())), calls.Measured(1, 7 + 7, 0, 1, None), "what is left")


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
    for place, address in enumerate(addresses):
        session = sessions.named(*address)
        yield from session.do(calls.Write((variable("mine", str(place)),)))
        yield from session.do(calls.Append(str(place).encode()))
    for place, address in enumerate(addresses):
        session = sessions.named(*address)
        mine = str(place).encode()
        equal(
            (yield from session.do(calls.ReadAll())),
            {"mine": calls.Found(mine, None)},
            f"the variables of {session.address}",
        )
        equal((yield from session.do(calls.ReadNotes())), [mine], f"the notes of {session.address}")
    ended = sessions.named("a", "s")
    equal((yield from ended.do(calls.End())), True, "whether a session that was ended was there")
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
        calls.Write((variable("a"), variable("text", b'"x"', likeness=b"L"))),
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
        calls.Inspect(),
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
    equal((yield from session.do(calls.CompareAndSet(variable("text"), b"L"))), True, "whether a likeness was put back")
    new = sessions.new()
    yield from new.refused(InvalidInput, calls.Write((variable("a", b'"x"'),)), calls.Increment("a", 1))
    equal(
        (yield from new.ask(calls.Measure())),
        calls.Reply((calls.Measured(),)),
        "a session whose first call was refused",
    )


def ended_sessions_have_no_content(sessions: Sessions) -> Script[None]:
    """A session that is begun again is empty."""
    session = sessions.new()
    yield from session.ask(
        calls.Write((variable("a"),)), calls.Append(b"1"), calls.WriteTask(b"{}"), calls.CreateCheckpoint("c")
    )
    stamp = (yield from session.ask(calls.Measure())).stamp
    equal((yield from session.ask(calls.End())), calls.Reply((True,)), "the reply to End")
    reply = yield from session.ask(
        calls.ReadAll(), calls.ReadNotes(), calls.ReadTask(), calls.ListCheckpoints(), calls.Measure(), calls.Inspect()
    )
    equal(
        reply,
        calls.Reply(({}, [], None, [], calls.Measured(), calls.Versions({}))),
        "what is left of a session that was ended",
    )
    equal((yield from session.ask(calls.End())), calls.Reply((False,)), "the reply to a second End")
    reply = yield from session.ask(
        calls.Append(b"2"), calls.ReadNotes(), calls.ReadAll(), calls.ListCheckpoints(), calls.ReadTask()
    )
    equal(reply.results[1:], ([b"2"], {}, [], None), "the content of a session that was begun again")
    true(reply.stamp > stamp, "the stamp rose when a session was begun again")


CHECKS = (
    written_variables_are_read_back,
    missing_variables_are_left_out,
    commands_without_effect_begin_no_session,
    keys_are_found_by_globs,
    deleted_variables_are_counted,
    clearing_variables_leaves_the_rest,
    whole_numbers_are_incremented,
    an_increment_of_anything_but_a_whole_number_is_refused,
    compare_and_set_compares_likenesses,
    the_task_state_is_replaced_and_removed,
    notes_stay_in_order,
    bytes_are_counted,
    sessions_with_different_ids_are_separate,
    sessions_with_long_ids_are_separate,
    commands_are_carried_out_in_order,
    all_commands_of_a_call_are_carried_out_or_none,
    ended_sessions_have_no_content,
)
