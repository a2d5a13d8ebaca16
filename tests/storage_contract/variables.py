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
    yield from session.gives(calls.Read(HOSTILE_KEYS), found)
    everything = yield from session.do(calls.ReadAll())
    equal(everything, found, "what ReadAll finds")
    equal(list(everything), sorted(HOSTILE_KEYS), "the order of ReadAll, which is that of code points")
    for key in HOSTILE_KEYS:
        yield from session.gives(calls.Read((key,)), {key: found[key]})
    for value in HOSTILE_VALUES:
        yield from session.do(calls.Write((variable("one", value),)))
        yield from session.gives(calls.Read(("one",)), {"one": calls.Found(value, None)})


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
    yield from session.gives(calls.Read(("a", "b")), {"b": calls.Found(b"1", None)})
    yield from session.gives(calls.Read(()), {})


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
    yield from session.gives(calls.Measure(), calls.Measured())
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
        yield from session.gives(calls.ListKeys(pattern), keys)


def deleted_variables_are_counted(sessions: Sessions) -> Script[None]:
    """Each counts once, and only existing ones count."""
    session = sessions.new()
    yield from session.do(calls.Write(tuple(variable(key) for key in "abcdef")))
    yield from session.gives(calls.Remove(()), 0)
    yield from session.gives(calls.Remove(("a", "x", "a")), 1)
    yield from session.gives(calls.Remove(("a",)), 0)
    yield from session.gives(calls.ListKeys("*"), list("bcdef"))
    yield from session.gives(calls.Clear(), 5)
    yield from session.gives(calls.Clear(), 0)
    yield from session.gives(calls.ReadAll(), {})
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
    yield from session.gives(calls.ReadTask(), b'{"t":1}')
    yield from session.gives(calls.ReadNotes(), [b'"n"'])
    equal(len((yield from session.do(calls.ListCheckpoints()))), 1, "the number of checkpoints after Clear")


def whole_numbers_are_incremented(sessions: Sessions) -> Script[None]:
    """The sum is exact on all 64 bits."""
    session = sessions.new()
    yield from session.gives(calls.Increment("n", 5), 5)
    yield from session.gives(calls.Increment("n", -7), -2)
    yield from session.gives(calls.Increment("n", 0), -2)
    yield from session.gives(calls.Read(("n",)), {"n": calls.Found(b"-2", None)})
    for start, by in (
        (2**53, 1),
        (-(2**53), -1),
        (calls.INT_MOST - 1, 1),
        (calls.INT_LEAST + 1, -1),
        (calls.INT_LEAST, calls.INT_MOST),
    ):
        yield from session.do(calls.Write((variable("n", str(start)),)))
        yield from session.gives(calls.Increment("n", by), start + by)
        stored = (yield from session.do(calls.Read(("n",))))["n"].value
        equal(stored, str(start + by).encode(), f"the JSON of {start} incremented by {by}")
    for by in (calls.INT_LEAST, calls.INT_MOST):
        yield from session.do(calls.Remove(("n",)))
        yield from session.gives(calls.Increment("n", by), by)
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
        yield from session.gives(calls.Read(("n",)), {"n": calls.Found(value, None)})
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
    yield from session.gives(calls.CompareAndSet(first, form), False)
    yield from session.gives(calls.Read(("a",)), {})
    yield from session.gives(calls.CompareAndSet(first, None), True)
    yield from session.gives(calls.CompareAndSet(second, None), False)
    yield from session.gives(calls.CompareAndSet(second, first.value), False)
    equal((yield from session.do(calls.Read(("a",))))["a"].value, first.value, "what comparisons that failed left")
    yield from session.gives(calls.CompareAndSet(second, form), True)
    yield from session.gives(calls.CompareAndSet(first, form), False)
    equal(
        (yield from session.do(calls.Read(("a",))))["a"].value, second.value, "the value after a comparison that held"
    )
    yield from session.gives(calls.CompareAndSet(first, canonical_form(second.value)), True)
    yield from session.do(calls.Write((variable("a", b"[3]"),)))
    yield from session.gives(calls.CompareAndSet(first, form), False)
    yield from session.gives(calls.CompareAndSet(first, b"[3]"), True)
    yield from session.do(calls.Remove(("a",)))
    yield from session.gives(calls.CompareAndSet(first, None), True)


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
