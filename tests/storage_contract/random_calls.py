"""Checks that random calls have the same replies and errors as on the storage in memory.

What that one does is compared with a model, in `tests/integration/families/working/test_state_machine.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from locus_mysql.errors import CapacityExceeded, LocusMySQLError, NotFound, Unavailable
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.in_memory import InMemoryStorage
from locus_mysql.families.working.values import canonical_form

from . import checks
from .hostile import HOSTILE_KEYS, HOSTILE_VALUES

#: The limits of the session of a check, and how many checks there are of each.
LIMITS: tuple[dict[str, Any], ...] = (
    {},
    {"keys": 3, "checkpoints": 2},
    {"keys": 3, "on_full": "evict", "checkpoints": 8},
    {"session_bytes": 60, "scratchpad_entries": 3},
    {"session_bytes": 60, "scratchpad_entries": 2, "on_full": "evict", "checkpoints": 1},
)
TIMES = 3

CALLS = 100
HOUR_US = 3_600_000_000

NUMBERS = (0, 1, -7, 2**53, calls.INT_MOST, calls.INT_LEAST)
VALUES = (
    *(str(number).encode() for number in NUMBERS),
    *(b"1.0", b"1e3", b'"1"', b"true", b"9223372036854775808", b'{"b":1, "a":2}', b'"2222222222"'),
    *HOSTILE_VALUES,
)
GLOBS = ("*", "**", "a?c", "a*", "*c", "?", "??", "*:*", "[a-c]", "\\", "%", "_", "{*}", "*\n*", "*\x00*", "🙂", "")
CHECKPOINTS = ("a", "A", "{id}\x00:*🙂", "b")
#: They show the whole session.
LOOKS: tuple[calls.Command[object], ...] = (
    *(calls.ReadAll(), calls.ReadNotes(), calls.ReadTask(), calls.ListCheckpoints(), calls.Measure()),
)


class _Caller:
    """Makes random commands.

    Args:
        chance: The source of randomness.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.keys = (*chance.sample(HOSTILE_KEYS, 5), "n")
        self._undone = 0
        #: Each kind of command, most of them more often than others.
        self._kinds: list[Callable[[], calls.Command[object]]] = [
            *[lambda: calls.Write(tuple(self.variable(key) for key in self.some(3)))] * 4,
            *[lambda: calls.Increment(self.key(), chance.choice((*NUMBERS, 1, -1, 5)))] * 2,
            *[lambda: calls.CompareAndSet(self.variable(self.key()), self.expected())] * 2,
            *[lambda: calls.Append(self.value())] * 3,
            lambda: calls.WriteTask(chance.choice((None, self.value()))),
            lambda: calls.Remove(self.some(3)),
            chance.choice((calls.Clear, calls.ClearNotes)),
            calls.Touch,
            *[lambda: calls.CreateCheckpoint(self.checkpoint(), chance.choice((None, "", "a label\n🙂")))] * 2,
            *[lambda: calls.RestoreCheckpoint(self.checkpoint(), self.undo())] * 2,
            lambda: calls.DeleteCheckpoint(self.checkpoint()),
            lambda: calls.Read(self.some(4)),
            lambda: calls.ListKeys(chance.choice((*GLOBS, self.key()))),
            lambda: calls.ReadNotes(chance.choice((0, 1, 2, 9))),
        ]

    def key(self) -> str:
        return self.chance.choice(self.keys)

    def some(self, most: int) -> tuple[str, ...]:
        return tuple(self.chance.sample((*self.keys, "absent"), self.chance.randint(0, most)))

    def value(self) -> bytes:
        return self.chance.choice(VALUES)

    def variable(self, key: str) -> calls.Variable:
        return calls.Variable(key, self.value(), self.chance.choice((None, None, HOUR_US)))

    def expected(self) -> bytes | None:
        return self.chance.choice((None, canonical_form(self.value())))

    def checkpoint(self) -> str:
        return self.chance.choice((*CHECKPOINTS, f"undo {self._undone}"))

    def undo(self) -> str:
        self._undone += 1
        return self.chance.choice((f"undo {self._undone}", "a"))

    def commands(self) -> tuple[calls.Command[object], ...]:
        if self.chance.random() < 0.03:
            return (calls.End(),)
        return tuple(self.chance.choice(self._kinds)() for _ in range(self.chance.choice((1, 1, 1, 2, 5))))


def _check(seed: int) -> checks.Check:
    def replies_are_those_of_the_storage_in_memory(sessions: checks.Sessions) -> checks.Script[None]:
        """Calls may be repeated, or need a stamp; a refused call changes nothing."""
        caller = _Caller(random.Random(seed))
        chance, memory = caller.chance, InMemoryStorage()
        session = sessions.new(**LIMITS[seed % len(LIMITS)])
        stamps = (0, 0)
        for _ in range(CALLS):
            at = session if chance.random() < 0.9 else session.limited(keys=1, session_bytes=9, scratchpad_entries=1)
            commands = caller.commands()
            options: dict[str, Any] = {"token": checks.token()}
            if at.limits.on_full == "evict" and not all(one.reads for one in commands):
                options["used"] = caller.some(3)
            off = chance.choice((None, None, None, 0, 1))
            for repeated in (False, True)[: chance.choice((1, 1, 1, 2))]:
                pair = []
                for stamp in stamps:
                    needed = {} if off is None else {"if_stamp": stamp + off}
                    pair.append(at.call(*commands, **options, **needed))
                stamps = yield from _same(memory, pair[0], pair[1], stamps, repeated=repeated)
            stamps = yield from _same(memory, at.call(*LOOKS), at.call(*LOOKS), stamps)

    name = f"{replies_are_those_of_the_storage_in_memory.__name__}_{seed}"
    return checks.Check(name, replies_are_those_of_the_storage_in_memory)


def _same(
    memory: InMemoryStorage,
    expected: calls.Call,
    call: calls.Call,
    stamps: tuple[int, int],
    *,
    repeated: bool = False,
) -> checks.Script[tuple[int, int]]:
    """Make a call on both storages, and return their stamps. Of a repeated call, only its writes' results count."""
    theirs: calls.Reply | Exception
    ours: calls.Reply | Exception
    try:
        theirs = memory.execute_blocking(expected)
    except (LocusMySQLError, calls.StampMoved) as error:
        theirs = error
    try:
        ours = yield call
    except (LocusMySQLError, calls.StampMoved) as error:
        ours = error
    what = f"the reply to {call.commands} with {call.limits}"
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        checks.equal(_plain(ours), _plain(theirs), what)
        return stamps
    answers = [
        [
            _plain(one)
            for one, command in zip(reply.results, call.commands, strict=True)
            if not (repeated and command.reads)
        ]
        for reply in (ours, theirs)
    ]
    checks.equal(answers[0], answers[1], what)
    if not repeated:
        checks.equal(ours.evicted, theirs.evicted, f"how many variables {call.commands} evicted with {call.limits}")
    found = (theirs.stamp, ours.stamp)
    moved = [(one > before) - (one < before) for one, before in zip(found, stamps, strict=True)]
    checks.equal(moved[1], moved[0], f"how {call.commands} moved the stamp")
    return found


def _plain(result: Any) -> Any:
    """Return a result or an error without what depends on the time."""
    match result:
        case CapacityExceeded():
            return (type(result), result.limit, result.used, result.allowed)
        case NotFound() | Unavailable():  # in an outage, nobody knows which checkpoints the session has
            return NotFound
        case Exception():
            return type(result)
        case dict():
            return [(key, found.value, found.left_us is None) for key, found in result.items()]
        case [calls.CheckpointInfo(), *_]:
            fields = ("checkpoint_id", "label", "keys", "scratchpad_entries", "size_bytes")
            return [tuple(getattr(one, name) for name in fields) for one in result]
    return result


CHECKS = tuple(_check(seed) for seed in range(TIMES * len(LIMITS)))
