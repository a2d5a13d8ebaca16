"""Checks of several at once on one session, and of large sessions."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

from locus_mysql.errors import CapacityExceeded
from locus_mysql.families.working import calls

from . import checks

WRITERS = 6
TIMES = 20


def concurrent_increments_all_count(sessions: checks.Sessions) -> checks.Script[None]:
    """Each increment returns another number."""
    session = sessions.new()

    def writer() -> checks.Script[list[int]]:
        results = []
        for _ in range(TIMES):
            results.append((yield from session.do(calls.Increment("n", 1))))
        return results

    results = yield checks.Together(tuple(writer() for _ in range(WRITERS)))
    checks.equal(
        sorted(chain.from_iterable(results)),
        list(range(1, WRITERS * TIMES + 1)),
        "the results of increments of many at once",
    )
    checks.equal((yield from session.do(calls.Measure())).keys, 1, "how many variables increments made")


def concurrent_notes_are_all_kept_in_order(sessions: checks.Sessions) -> checks.Script[None]:
    """The notes of each writer keep their order, and all readers see the same order."""
    session = sessions.new()

    def writer(name: int) -> checks.Script[None]:
        for index in range(TIMES):
            yield from session.do(calls.Append(f"[{name},{index:03}]".encode()))

    def reader() -> checks.Script[list[list[bytes]]]:
        seen = []
        for _ in range(TIMES):
            seen.append((yield from session.do(calls.ReadNotes())))
        return seen

    *_, seen = yield checks.Together((*(writer(name) for name in range(WRITERS)), reader()))
    notes = yield from session.do(calls.ReadNotes())
    expected = sorted(f"[{name},{index:03}]".encode() for name in range(WRITERS) for index in range(TIMES))
    checks.equal(sorted(notes), expected, "all notes of many at once")
    for name in range(WRITERS):
        mine = [note for note in notes if note.startswith(f"[{name},".encode())]
        checks.equal(mine, sorted(mine), f"the order of the notes of writer {name}")
    for before in seen:
        checks.equal(before, notes[: len(before)], "what was read of the notes meanwhile")


def of_concurrent_comparisons_one_succeeds(sessions: checks.Sessions) -> checks.Script[None]:
    """This holds for each round."""
    session = sessions.new()
    yield from session.do(calls.Write((checks.variable("n", b"0"),)))

    def writer() -> checks.Script[int]:
        done = 0
        while done < TIMES // 2:
            value = (yield from session.do(calls.Read(("n",))))["n"].value
            done += yield from session.do(calls.CompareAndSet(checks.variable("n", str(int(value) + 1)), value))
        return done

    yield checks.Together(tuple(writer() for _ in range(WRITERS)))
    found = yield from session.do(calls.Read(("n",)))
    checks.equal(
        found, {"n": calls.Found(str(WRITERS * (TIMES // 2)).encode(), None)}, "a number that many compared and set"
    )


def concurrent_first_writes_share_one_session(sessions: checks.Sessions) -> checks.Script[None]:
    """No write is lost."""
    for _ in range(5):
        session = sessions.new()

        def writer(name: int, session: checks.CheckedSession = session) -> checks.Script[None]:
            yield from session.ask(calls.Write((checks.variable(str(name)),)), calls.Append(b"1"))

        yield checks.Together(tuple(writer(name) for name in range(WRITERS)))
        keys = yield from session.do(calls.ListKeys("*"))
        checks.equal(keys, sorted(str(name) for name in range(WRITERS)), "the keys of a session that many began")
        checks.equal(
            len((yield from session.do(calls.ReadNotes()))), WRITERS, "the number of notes of a session that many began"
        )


def limits_are_exact_under_many_writers(sessions: checks.Sessions) -> checks.Script[None]:
    """Exactly as many writes succeed as the limit allows."""
    session = sessions.new(keys=50, scratchpad_entries=30)

    def writer(name: int) -> checks.Script[tuple[int, int]]:
        written = noted = 0
        for index in range(TIMES):
            try:
                yield from session.do(calls.Write((checks.variable(f"{name} {index}"),)))
                written += 1
            except CapacityExceeded:
                pass
            try:
                yield from session.do(calls.Append(b"1"))
                noted += 1
            except CapacityExceeded:
                pass
        return written, noted

    results = yield checks.Together(tuple(writer(name) for name in range(WRITERS)))
    written, noted = (sum(each) for each in zip(*results, strict=True))
    measured = yield from session.do(calls.Measure())
    checks.equal((written, noted), (50, 30), "the number of concurrent writes that fitted")
    checks.equal((measured.keys, measured.scratchpad_entries), (50, 30), "what a full session holds")
    expected = sum(len(key) + 1 for key in (yield from session.do(calls.ListKeys("*")))) + 30
    checks.equal(measured.bytes, expected, "the bytes that many wrote")


def evicting_keeps_to_the_limits_under_many_writers(sessions: checks.Sessions) -> checks.Script[None]:
    """The reply to each write has the number of evicted variables."""
    session = sessions.new(keys=10, on_full="evict")

    def writer(name: int) -> checks.Script[int]:
        evicted = 0
        for index in range(TIMES):
            evicted += (yield from session.ask(calls.Write((checks.variable(f"{name} {index}"),)))).evicted
            checks.true(
                (yield from session.do(calls.Measure())).keys <= 10, "there are never more variables than may be"
            )
        return evicted

    results = yield checks.Together(tuple(writer(name) for name in range(WRITERS)))
    checks.equal((yield from session.do(calls.Measure())).keys, 10, "how many variables are left")
    checks.equal(sum(results), WRITERS * TIMES - 10, "the sum of evicted variables in the replies")


def readers_see_each_call_completely_or_not_at_all(sessions: checks.Sessions) -> checks.Script[None]:
    """A read shows one moment, including checkpoints."""
    session = sessions.new(checkpoints=1_000)

    def both(value: str) -> checks.Script[None]:
        yield from session.ask(
            calls.Write((checks.variable("a", value), checks.variable("b", value))), calls.WriteTask(value.encode())
        )

    yield from both("0")

    def writer(name: int) -> checks.Script[None]:
        for index in range(TIMES):
            yield from both(f"{name}{index:03}")

    def reader() -> checks.Script[None]:
        for _ in range(TIMES):
            found = yield from session.do(calls.ReadAll())
            checks.equal(found["a"], found["b"], "two variables that are always written together")

    def keeper() -> checks.Script[None]:
        for index in range(TIMES):
            yield from session.do(calls.CreateCheckpoint(f"{index}"))

    yield checks.Together((writer(1), writer(2), reader(), keeper()))
    seen: list[Any] = []
    for index in range(TIMES):
        reply = yield from session.ask(calls.RestoreCheckpoint(f"{index}", f"undo {index}"), calls.ReadAll())
        found: Any = reply.results[1]
        checks.equal(found["a"], found["b"], "two variables of a checkpoint that are always written together")
        seen.append(found["a"].value)
    for name in (b"1", b"2"):
        mine = [value for value in seen if value.startswith(name)]
        checks.true(all(before <= after for before, after in pairwise(mine)), f"checkpoints follow each other: {mine}")


def sessions_may_be_large(sessions: checks.Sessions) -> checks.Script[None]:
    """The session has 10,000 variables."""
    session = sessions.new(on_full="evict")
    keys = [f"key {index:05}" for index in range(10_000)]
    for start in range(0, len(keys), 1_000):
        yield from session.do(
            calls.Write(tuple(checks.variable(key, f'"{key}"') for key in keys[start : start + 1_000]))
        )
    found = yield from session.do(calls.ReadAll())
    checks.equal(found, {key: calls.Found(f'"{key}"'.encode(), None) for key in keys}, "10,000 variables")
    yield from session.gives(calls.ListKeys("*9*9*9*9*"), ["key 09999"])
    yield from session.gives(calls.Read(tuple(keys)), found)
    measured = yield from session.do(calls.Measure())
    checks.equal(measured[:2], (10_000, 10_000 * 20), "what a session of 10,000 variables holds")
    yield from session.do(calls.CreateCheckpoint("c"))
    reply = yield from session.ask(calls.Write((checks.variable("one more"),)))
    checks.equal(reply.evicted, 1, "how many of 10,000 variables had to go for one more")
    yield from session.gives(calls.Read((keys[0],)), {})
    yield from session.gives(calls.Remove(tuple(keys[:5_000])), 4_999)
    yield from session.gives(calls.Clear(), 5_001)
    yield from session.do(calls.RestoreCheckpoint("c", "undo"))
    yield from session.gives(calls.ReadAll(), found)


CHECKS = (
    concurrent_increments_all_count,
    concurrent_notes_are_all_kept_in_order,
    of_concurrent_comparisons_one_succeeds,
    concurrent_first_writes_share_one_session,
    limits_are_exact_under_many_writers,
    evicting_keeps_to_the_limits_under_many_writers,
    readers_see_each_call_completely_or_not_at_all,
    sessions_may_be_large,
)
