"""Checks of variables: writing, reading, deleting, counting, comparing."""

from __future__ import annotations

from locus_mysql.errors import InvalidInput
from locus_mysql.families.working import calls
from locus_mysql.families.working.values import canonical_form

from .checks import Script, Sessions, equal, true, variable
from .hostile import HOSTILE_KEYS, HOSTILE_VALUES


def written_variables_are_read_back(sessions: Sessions) -> Script[None]:
    """Keys and values are hostile; they are read together and one by one."""
    session = sessions.new()
    values = {key: HOSTILE_VALUES[index % len(HOSTILE_VALUES)] for index, key in enumerate(HOSTILE_KEYS)}
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
    reply = yield from session.ask(*commands)
    equal(
        reply,
        calls.Reply(nothing, 0, None, 0),
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
    equal((yield from session.do(calls.Measure())), calls.Measured(), "the content of a session that no command began")
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
    equal((yield from session.do(calls.ReadAll())), {}, "the variables after Clear")
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
    equal((yield from session.do(calls.Increment("n", 5))), 5, "an increment of a missing variable, by 5")
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
        equal((yield from session.do(calls.Increment("n", by))), by, f"an increment of a missing variable, by {by}")
    was = yield from session.do(calls.CompareAndSet(variable("n", b"1"), str(calls.INT_MOST).encode()))
    equal(was, True, "whether a number that was incremented has its digits as canonical form")


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


def compare_and_set_compares_canonical_forms(sessions: Sessions) -> Script[None]:
    """The JSON of the values does not matter."""
    session = sessions.new()
    first, second = variable("a", b'{"b":1, "a":2}'), variable("a", b'"%s"' % (b"2" * 40))
    form = canonical_form(first.value)
    equal(
        (yield from session.do(calls.CompareAndSet(first, form))),
        False,
        "setting a missing variable, expecting a value",
    )
    equal((yield from session.do(calls.Read(("a",)))), {}, "the variables after a comparison that failed")
    equal((yield from session.do(calls.CompareAndSet(first, None))), True, "setting a missing variable, expecting none")
    equal(
        (yield from session.do(calls.CompareAndSet(second, None))),
        False,
        "setting an existing variable, expecting none",
    )
    equal(
        (yield from session.do(calls.CompareAndSet(second, first.value))),
        False,
        "setting a variable that has another canonical form",
    )
    equal((yield from session.do(calls.Read(("a",))))["a"].value, first.value, "what comparisons that failed left")
    equal(
        (yield from session.do(calls.CompareAndSet(second, form))),
        True,
        "setting a variable that has the canonical form",
    )
    equal(
        (yield from session.do(calls.CompareAndSet(first, form))),
        False,
        "setting a variable that had the canonical form before",
    )
    equal(
        (yield from session.do(calls.Read(("a",))))["a"].value, second.value, "the value after a comparison that held"
    )
    equal(
        (yield from session.do(calls.CompareAndSet(first, canonical_form(second.value)))),
        True,
        "setting a variable that has a binary canonical form",
    )
    yield from session.do(calls.Write((variable("a", b"[3]"),)))
    equal(
        (yield from session.do(calls.CompareAndSet(first, form))), False, "a canonical form from before another write"
    )
    equal((yield from session.do(calls.CompareAndSet(first, b"[3]"))), True, "a canonical form that is the JSON")
    yield from session.do(calls.Remove(("a",)))
    equal((yield from session.do(calls.CompareAndSet(first, None))), True, "setting a deleted variable, expecting none")


CHECKS = (
    written_variables_are_read_back,
    missing_variables_are_left_out,
    commands_without_effect_begin_no_session,
    keys_are_found_by_globs,
    deleted_variables_are_counted,
    clearing_variables_leaves_the_rest,
    whole_numbers_are_incremented,
    an_increment_of_anything_but_a_whole_number_is_refused,
    compare_and_set_compares_canonical_forms,
)
