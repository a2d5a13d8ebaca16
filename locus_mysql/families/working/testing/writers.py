"""Checks of several at once on one session, and of large sessions."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

from ....errors import CapacityExceeded
from ..calls import (
    Append,
    Clear,
    CompareAndSet,
    CreateCheckpoint,
    Found,
    Increment,
    ListKeys,
    Measure,
    Read,
    ReadAll,
    ReadNotes,
    Remove,
    RestoreCheckpoint,
    Write,
    WriteTask,
)
from .checks import Script, Session, Sessions, Together, equal, true, variable

WRITERS = 6
TIMES = 20


def increments_of_many_all_count(sessions: Sessions) -> Script[None]:
    """Each gets a number of its own."""
    session = sessions.new()

    def writer() -> Script[list[int]]:
        results = []
        for _ in range(TIMES):
            results.append((yield from session.do(Increment("n", 1))))
        return results

    results = yield Together(tuple(writer() for _ in range(WRITERS)))
    equal(
        sorted(chain.from_iterable(results)),
        list(range(1, WRITERS * TIMES + 1)),
        "the results of increments of many at once",
    )
    equal((yield from session.do(Measure())).keys, 1, "how many variables increments made")


def notes_of_many_all_stay(sessions: Sessions) -> Script[None]:
    """Those of each in the order that he wrote them, and in the same order for all who read."""
    session = sessions.new()

    def writer(name: int) -> Script[None]:
        for place in range(TIMES):
            yield from session.do(Append(f"[{name},{place:03}]".encode()))

    def reader() -> Script[list[list[bytes]]]:
        seen = []
        for _ in range(TIMES):
            seen.append((yield from session.do(ReadNotes())))
        return seen

    *_, seen = yield Together((*(writer(name) for name in range(WRITERS)), reader()))
    notes = yield from session.do(ReadNotes())
    expected = sorted(f"[{name},{place:03}]".encode() for name in range(WRITERS) for place in range(TIMES))
    equal(sorted(notes), expected, "all notes of many at once")
    for name in range(WRITERS):
        mine = [note for note in notes if note.startswith(f"[{name},".encode())]
        equal(mine, sorted(mine), f"the order of the notes of writer {name}")
    for before in seen:
        equal(before, notes[: len(before)], "what was read of the notes meanwhile")


def comparisons_of_many_hold_for_one(sessions: Sessions) -> Script[None]:
    """Each time."""
    session = sessions.new()
    yield from session.do(Write((variable("n", b"0"),)))

    def writer() -> Script[int]:
        done = 0
        while done < TIMES // 2:
            value = (yield from session.do(Read(("n",))))["n"].value
            done += yield from session.do(CompareAndSet(variable("n", str(int(value) + 1)), value))
        return done

    yield Together(tuple(writer() for _ in range(WRITERS)))
    found = yield from session.do(Read(("n",)))
    equal(found, {"n": Found(str(WRITERS * (TIMES // 2)).encode(), None)}, "a number that many compared and set")


def many_begin_a_session_together(sessions: Sessions) -> Script[None]:
    """Nothing of any is lost."""
    for _ in range(5):
        session = sessions.new()

        def writer(name: int, session: Session = session) -> Script[None]:
            yield from session.ask(Write((variable(str(name)),)), Append(b"1"))

        yield Together(tuple(writer(name) for name in range(WRITERS)))
        keys = yield from session.do(ListKeys("*"))
        equal(keys, sorted(str(name) for name in range(WRITERS)), "the keys of a session that many began")
        equal(len((yield from session.do(ReadNotes()))), WRITERS, "the number of notes of a session that many began")


def limits_are_exact_under_many_writers(sessions: Sessions) -> Script[None]:
    """As many are written as may be, not one more or less."""
    session = sessions.new(keys=50, scratchpad_entries=30)

    def writer(name: int) -> Script[tuple[int, int]]:
        written = noted = 0
        for place in range(TIMES):
            try:
                yield from session.do(Write((variable(f"{name} {place}"),)))
                written += 1
            except CapacityExceeded:
                pass
            try:
                yield from session.do(Append(b"1"))
                noted += 1
            except CapacityExceeded:
                pass
        return written, noted

    results = yield Together(tuple(writer(name) for name in range(WRITERS)))
    written, noted = (sum(each) for each in zip(*results, strict=True))
    measured = yield from session.do(Measure())
    equal((written, noted), (50, 30), "how many writes of many at once found place")
    equal((measured.keys, measured.scratchpad_entries), (50, 30), "what a full session holds")
    expected = sum(len(key) + 1 for key in (yield from session.do(ListKeys("*")))) + 30
    equal(measured.bytes, expected, "the bytes that many wrote")


def evicting_keeps_to_the_limits_under_many_writers(sessions: Sessions) -> Script[None]:
    """Each write is told what had to go."""
    session = sessions.new(keys=10, on_full="evict")

    def writer(name: int) -> Script[int]:
        evicted = 0
        for place in range(TIMES):
            evicted += (yield from session.ask(Write((variable(f"{name} {place}"),)))).evicted
            true((yield from session.do(Measure())).keys <= 10, "there are never more variables than may be")
        return evicted

    results = yield Together(tuple(writer(name) for name in range(WRITERS)))
    equal((yield from session.do(Measure())).keys, 10, "how many variables are left")
    equal(sum(results), WRITERS * TIMES - 10, "how many variables had to go, as writers were told")


def readers_see_whole_calls(sessions: Sessions) -> Script[None]:
    """Of the same moment, checkpoints included."""
    session = sessions.new(checkpoints=1_000)

    def both(value: str) -> Script[None]:
        yield from session.ask(Write((variable("a", value), variable("b", value))), WriteTask(value.encode()))

    yield from both("0")

    def writer(name: int) -> Script[None]:
        for place in range(TIMES):
            yield from both(f"{name}{place:03}")

    def reader() -> Script[None]:
        for _ in range(TIMES):
            found = yield from session.do(ReadAll())
            equal(found["a"], found["b"], "two variables that are always written together")

    def keeper() -> Script[None]:
        for place in range(TIMES):
            yield from session.do(CreateCheckpoint(f"{place}"))

    yield Together((writer(1), writer(2), reader(), keeper()))
    seen: list[Any] = []
    for place in range(TIMES):
        reply = yield from session.ask(RestoreCheckpoint(f"{place}", f"undo {place}"), ReadAll())
        found: Any = reply.results[1]
        equal(found["a"], found["b"], "two variables of a checkpoint that are always written together")
        seen.append(found["a"].value)
    for name in (b"1", b"2"):
        mine = [value for value in seen if value.startswith(name)]
        true(all(before <= after for before, after in pairwise(mine)), f"checkpoints follow each other: {mine}")


def sessions_may_be_large(sessions: Sessions) -> Script[None]:
    """10,000 variables."""
    session = sessions.new(on_full="evict")
    keys = [f"key {place:05}" for place in range(10_000)]
    for start in range(0, len(keys), 1_000):
        yield from session.do(Write(tuple(variable(key, f'"{key}"') for key in keys[start : start + 1_000])))
    found = yield from session.do(ReadAll())
    equal(found, {key: Found(f'"{key}"'.encode(), None) for key in keys}, "10,000 variables")
    equal((yield from session.do(ListKeys("*9*9*9*9*"))), ["key 09999"], "the keys of 10,000 that a glob finds")
    equal((yield from session.do(Read(tuple(keys)))), found, "10,000 variables, read by their keys")
    measured = yield from session.do(Measure())
    equal(measured[:2], (10_000, 10_000 * 20), "what a session of 10,000 variables holds")
    yield from session.do(CreateCheckpoint("c"))
    reply = yield from session.ask(Write((variable("one more"),)))
    equal(reply.evicted, 1, "how many of 10,000 variables had to go for one more")
    equal((yield from session.do(Read((keys[0],)))), {}, "the variable that was used least recently")
    equal((yield from session.do(Remove(tuple(keys[:5_000])))), 4_999, "how many of 10,000 were deleted")
    equal((yield from session.do(Clear())), 5_001, "how many of 10,000 were cleared")
    yield from session.do(RestoreCheckpoint("c", "undo"))
    equal((yield from session.do(ReadAll())), found, "10,000 variables that were restored")


CHECKS = (
    increments_of_many_all_count,
    notes_of_many_all_stay,
    comparisons_of_many_hold_for_one,
    many_begin_a_session_together,
    limits_are_exact_under_many_writers,
    evicting_keeps_to_the_limits_under_many_writers,
    readers_see_whole_calls,
    sessions_may_be_large,
)
