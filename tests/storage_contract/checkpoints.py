"""Checks of checkpoints: what they keep, and what restoring brings back."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from locus_mysql.errors import InvalidInput, NotFound
from locus_mysql.families.working import calls

from . import checks

HOUR_US = 3_600_000_000

_CONTENT: tuple[calls.Command[object], ...] = (calls.ReadAll(), calls.ReadNotes(), calls.ReadTask())


def _ids(session: checks.CheckedSession) -> checks.Script[list[str]]:
    return [one.checkpoint_id for one in (yield from session.do(calls.ListCheckpoints()))]


def checkpoints_are_listed_newest_first(sessions: checks.Sessions) -> checks.Script[None]:
    """A list of checkpoints is newest first, with their contents in numbers."""
    session = sessions.new()
    yield from session.do(calls.CreateCheckpoint("of nothing"))
    yield from session.ask(
        calls.Write((checks.variable("a"), checks.variable("é", b"22"))), calls.Append(b"333"), calls.WriteTask(b"4444")
    )
    yield from session.do(calls.CreateCheckpoint("{id}\x00:*🙂", "a label\n🙂"))
    yield from session.do(calls.CreateCheckpoint("last", ""))
    listed = yield from session.do(calls.ListCheckpoints())
    times = [one.created_at for one in listed]
    checks.equal(sorted(times, reverse=True), times, "the times of checkpoints, newest first")
    checks.equal(
        [replace(one, created_at=times[0]) for one in listed],
        [
            calls.CheckpointInfo("last", "", times[0], 2, 1, 13),
            calls.CheckpointInfo("{id}\x00:*🙂", "a label\n🙂", times[0], 2, 1, 13),
            calls.CheckpointInfo("of nothing", None, times[0], 0, 0, 0),
        ],
        "the checkpoints",
    )
    checks.equal((yield from session.do(calls.Measure())).checkpoints, 3, "how many checkpoints are measured")


def a_second_checkpoint_with_the_same_id_is_refused(sessions: checks.Sessions) -> checks.Script[None]:
    """The session does not change."""
    session = sessions.new()
    yield from session.ask(calls.Append(b"1"), calls.CreateCheckpoint("c", "first"))
    yield from session.do(calls.Append(b"2"))
    before = yield from session.ask(*_CONTENT, calls.ListCheckpoints())
    yield from session.refused(InvalidInput, calls.CreateCheckpoint("c", "second"))
    yield from session.refused(InvalidInput, calls.RestoreCheckpoint("c", "c"))
    checks.equal(
        (yield from session.ask(*_CONTENT, calls.ListCheckpoints())),
        before,
        "the session after refusals",
    )


def restoring_a_missing_checkpoint_is_refused(sessions: checks.Sessions) -> checks.Script[None]:
    """The refusal changes nothing."""
    session = sessions.new()
    yield from session.refused(NotFound, calls.RestoreCheckpoint("absent", "undo"))
    checks.equal((yield from session.ask(calls.Measure())).stamp, 0, "the stamp of a missing session")
    yield from session.ask(calls.Append(b"1"), calls.CreateCheckpoint("c"))
    before = yield from session.ask(*_CONTENT, calls.ListCheckpoints())
    error = yield from session.refused(NotFound, calls.RestoreCheckpoint("absent", "undo"))
    checks.true("'absent'" in str(error), f"the refusal names the checkpoint: {error}")
    checks.equal(
        (yield from session.ask(*_CONTENT, calls.ListCheckpoints())),
        before,
        "the session after a refusal",
    )


def a_restore_brings_back_all_content(sessions: checks.Sessions) -> checks.Script[None]:
    """A restore can itself be undone."""
    session = sessions.new()
    yield from session.ask(
        calls.Write(
            (
                checks.variable("same"),
                checks.variable("changed", b'"old"'),
                checks.variable("deleted", b"3"),
            )
        ),
        *(calls.Append(b"1"), calls.Append(b"2"), calls.WriteTask(b'{"step":1}'), calls.CreateCheckpoint("c")),
    )
    then = yield from session.ask(*_CONTENT, calls.Measure())
    yield from session.do(calls.Write((checks.variable("changed", b'"new"'), checks.variable("new", b"4", HOUR_US))))
    yield from session.do(calls.Remove(("deleted",)))
    yield from session.ask(calls.ClearNotes(), calls.Append(b"3"), calls.WriteTask(None))
    changed = yield from session.ask(*_CONTENT)
    checks.equal(
        (yield from session.ask(calls.RestoreCheckpoint("c", "undo"))).results, (None,), "the result of restoring"
    )
    now = yield from session.ask(*_CONTENT, calls.Measure())
    checks.equal(now.results[:3], then.results[:3], "a session that was restored")
    checks.equal(now.results[3], then.results[3]._replace(checkpoints=2), "what a session holds that was restored")  # type: ignore[attr-defined]
    checks.equal((yield from _ids(session)), ["undo", "c"], "the checkpoints after restoring")
    yield from session.do(calls.RestoreCheckpoint("undo", "undo the undoing"))
    undone = yield from session.ask(*_CONTENT)
    left = undone.results[0]["new"].left_us  # type: ignore[index]  # a dict, as the command asks for variables
    checks.true(
        left is not None and 0 < left <= HOUR_US, f"a variable that restoring removed has its time again: {left}"
    )
    checks.equal(
        _without_times(undone.results), _without_times(changed.results), "a session whose restoring was undone"
    )
    yield from session.do(calls.RestoreCheckpoint("undo the undoing", "once more"))
    checks.equal((yield from session.ask(*_CONTENT)).results, then.results[:3], "a session whose undoing was undone")
    yield from session.do(calls.RestoreCheckpoint("c", "and again"))
    checks.equal((yield from session.ask(*_CONTENT)).results, then.results[:3], "a session restored to what it is")
    yield from session.gives(calls.Increment("deleted", 1), 4)
    yield from session.do(calls.RestoreCheckpoint("c", "without the increment"))
    checks.equal((yield from session.do(calls.Read(("deleted",))))["deleted"].value, b"3", "what was incremented since")
    checks.equal(len((yield from session.do(calls.ListCheckpoints()))), 6, "the number of checkpoints")


def _without_times(results: tuple[object, ...]) -> tuple[object, ...]:
    variables, *others = results
    return ({key: found.value for key, found in variables.items()}, *others)  # type: ignore[attr-defined]


def restored_values_can_be_compared(sessions: checks.Sessions) -> checks.Script[None]:
    """They compare as they did when the checkpoint was created."""
    session = sessions.new()
    yield from session.ask(
        calls.Write((checks.variable("a", b'{"b":1, "a":2}'), checks.variable("b", b"1"))),
        calls.CreateCheckpoint("c"),
    )
    yield from session.ask(calls.Write((checks.variable("a", b"2"), checks.variable("b", b'{"c":3, "a":2}'))))
    yield from session.do(calls.RestoreCheckpoint("c", "undo"))
    yield from session.gives(calls.CompareAndSet(checks.variable("a", b"3"), b'{"a":2,"b":1}'), True)
    yield from session.gives(calls.CompareAndSet(checks.variable("b", b"3"), b"1"), True)


def restored_variables_keep_their_remaining_time(sessions: checks.Sessions) -> checks.Script[None]:
    """The age of the checkpoint does not matter."""
    session = sessions.new()
    reply = yield from session.ask(
        calls.Write((checks.variable("a", b"1", HOUR_US),)), calls.CreateCheckpoint("c"), calls.Read(("a",))
    )
    had = reply.results[2]["a"].left_us  # type: ignore[index]  # a dict, as the command asks for variables
    deadline = time.monotonic() + checks.PATIENCE_S
    while True:
        found = yield from session.until(calls.Read(("a",)), _less_left(had - 50_000), "the time left fell")
        undo = f"undo {time.monotonic_ns()}"
        reply = yield from session.ask(
            calls.RestoreCheckpoint("c", undo), calls.Read(("a",)), calls.DeleteCheckpoint(undo)
        )
        left = reply.results[1]["a"].left_us  # type: ignore[index]  # a dict, as the command asks for variables
        checks.true(left <= HOUR_US, f"restoring gives no more time than there was: {left}")
        if left > (found["a"].left_us or 0):
            return
        if time.monotonic() > deadline:
            raise checks.ContractBroken(
                f"A variable had {had} µs left in a checkpoint, and has {left} when it is restored."
            )


def _less_left(bound_us: int) -> Callable[[dict[str, calls.Found]], bool]:
    return lambda found: (found["a"].left_us or 0) < bound_us


def variables_that_expired_since_the_checkpoint_are_restored(sessions: checks.Sessions) -> checks.Script[None]:
    """Variables that had expired before the checkpoint are not."""
    session = sessions.new()
    yield from session.do(calls.Write((checks.variable("before", b"1", 50_000), checks.variable("stays"))))
    yield from session.until(calls.Read(("before",)), lambda found: not found, "a variable expired")
    yield from session.ask(
        calls.Write((checks.variable("since", b"1", 1_000_000),)),
        calls.CreateCheckpoint("c"),
        calls.CreateCheckpoint("same"),
    )
    listed = yield from session.do(calls.ListCheckpoints())
    checks.equal({one.keys for one in listed}, {2}, "how many variables the checkpoints hold")
    yield from session.until(calls.Read(("since",)), lambda found: not found, "a variable expired")
    yield from session.do(calls.CreateCheckpoint("later"))
    for name in ("c", "same"):
        reply = yield from session.ask(calls.RestoreCheckpoint(name, f"undo {name}"), calls.ListKeys("*"))
        checks.equal(reply.results[1], ["since", "stays"], f"the keys that restoring {name!r} brings back")
    reply = yield from session.ask(calls.RestoreCheckpoint("later", "undo later"), calls.ListKeys("*"))
    checks.equal(
        reply.results[1], ["stays"], "the keys that a checkpoint brings back which was made when others had expired"
    )


@dataclass
class _Model:
    """The expected content of a session."""

    variables: dict[str, bytes] = field(default_factory=dict)
    notes: list[bytes] = field(default_factory=list)
    task: bytes | None = None

    def copy(self) -> _Model:
        return _Model(dict(self.variables), list(self.notes), self.task)

    def check(self, session: checks.CheckedSession, what: str) -> checks.Script[None]:
        variables, notes, task = (yield from session.ask(*_CONTENT)).results
        checks.equal({key: one.value for key, one in variables.items()}, self.variables, f"the variables {what}")  # type: ignore[attr-defined]
        checks.equal(notes, self.notes, f"the notes {what}")
        checks.equal(task, self.task, f"the task state {what}")
        taken = sum(len(key) + len(value) for key, value in self.variables.items())
        taken += sum(map(len, self.notes)) + len(self.task or b"")
        measured = yield from session.do(calls.Measure())
        checks.equal(measured[:3], (len(self.variables), taken, len(self.notes)), f"what is measured {what}")


def any_checkpoint_can_be_restored_in_any_order(sessions: checks.Sessions) -> checks.Script[None]:
    """Other checkpoints may have been deleted in between."""
    for seed in range(6):
        yield from _wander(sessions, random.Random(seed))


def _wander(sessions: checks.Sessions, rng: random.Random) -> checks.Script[None]:
    """Change, keep, restore and delete at random, beside a model of dicts."""
    session = sessions.new(checkpoints=8)
    model = _Model()
    kept: dict[str, _Model] = {}
    for step in range(90):
        value = str(step).encode()
        match rng.choice(("write", "write", "remove", "note", "task", "forget", "keep", "keep", "restore", "delete")):
            case "write":
                keys = rng.sample("abcdefghij", rng.randint(1, 4))
                yield from session.do(calls.Write(tuple(calls.Variable(key, value) for key in keys)))
                model.variables.update(dict.fromkeys(keys, value))
            case "remove":
                keys = rng.sample("abcdefghij", rng.randint(1, 4))
                yield from session.do(calls.Remove(tuple(keys)))
                model.variables = {key: one for key, one in model.variables.items() if key not in keys}
            case "note":
                yield from session.do(calls.Append(value))
                model.notes.append(value)
            case "task":
                model.task = rng.choice((None, value))
                yield from session.do(calls.WriteTask(model.task))
            case "forget":
                if rng.random() < 0.5:
                    yield from session.do(calls.ClearNotes())
                    model.notes = []
                else:
                    yield from session.do(calls.Clear())
                    model.variables = {}
            case "keep":
                yield from session.do(calls.CreateCheckpoint(f"at {step}"))
                kept[f"at {step}"] = model.copy()
            case "restore" if kept:
                chosen = rng.choice(list(kept))
                yield from session.do(calls.RestoreCheckpoint(chosen, f"undo {step}"))
                kept[f"undo {step}"], model = model, kept[chosen].copy()
                if len(kept) > 8:
                    del kept[next(one for one in kept if one != chosen)]
                yield from model.check(session, f"after restoring {chosen!r} in step {step}")
            case "delete" if kept:
                chosen = rng.choice(list(kept))
                yield from session.gives(calls.DeleteCheckpoint(chosen), True)
                del kept[chosen]
        while len(kept) > 8:
            del kept[next(iter(kept))]
        checks.equal((yield from _ids(session)), list(reversed(kept)), f"the checkpoints after step {step}")
    yield from model.check(session, "after all")
    generous = session.limited(checkpoints=1_000)
    for name, then in kept.items():
        yield from generous.do(calls.RestoreCheckpoint(name, f"before {name}"))
        yield from then.check(session, f"after restoring {name!r}")


def deleted_checkpoints_can_not_be_restored(sessions: checks.Sessions) -> checks.Script[None]:
    """All other checkpoints stay."""
    session = sessions.new()
    for index, name in enumerate(("first", "middle", "last")):
        yield from session.ask(
            calls.Write((checks.variable(name), checks.variable("n", str(index)))), calls.CreateCheckpoint(name)
        )
    yield from session.gives(calls.DeleteCheckpoint("absent"), False)
    yield from session.gives(calls.DeleteCheckpoint("middle"), True)
    yield from session.gives(calls.DeleteCheckpoint("middle"), False)
    yield from session.refused(NotFound, calls.RestoreCheckpoint("middle", "undo"))
    checks.equal((yield from _ids(session)), ["last", "first"], "the checkpoints that are left")
    yield from session.do(calls.DeleteCheckpoint("first"))
    yield from session.do(calls.RestoreCheckpoint("last", "undo"))
    checks.equal(
        list((yield from session.do(calls.ReadAll()))),
        ["first", "last", "middle", "n"],
        "the keys of the last checkpoint",
    )
    for name in ("last", "undo"):
        yield from session.do(calls.DeleteCheckpoint(name))
    checks.equal((yield from _ids(session)), [], "the checkpoints when all were deleted")
    yield from session.ask(calls.CreateCheckpoint("middle"), calls.Clear(), calls.RestoreCheckpoint("middle", "undo"))
    checks.equal(
        list((yield from session.do(calls.ReadAll()))), ["first", "last", "middle", "n"], "the keys of a new checkpoint"
    )


def a_restore_never_deletes_the_restored_checkpoint(sessions: checks.Sessions) -> checks.Script[None]:
    """This holds also when the limit of checkpoints is reached."""
    session = sessions.new(checkpoints=2)
    for name in "ab":
        yield from session.ask(calls.Append(f'"{name}"'.encode()), calls.CreateCheckpoint(name))
    yield from session.do(calls.RestoreCheckpoint("a", "undo"))
    checks.equal((yield from _ids(session)), ["undo", "a"], "the checkpoints after restoring the oldest")
    yield from session.gives(calls.ReadNotes(), [b'"a"'])
    one = sessions.new(checkpoints=1)
    yield from one.ask(calls.Append(b"1"), calls.CreateCheckpoint("only"), calls.Append(b"2"))
    yield from one.do(calls.RestoreCheckpoint("only", "undo"))
    yield from one.gives(calls.ReadNotes(), [b"1"])
    checks.equal((yield from _ids(one)), ["undo", "only"], "the checkpoints where there may be one")
    yield from one.do(calls.RestoreCheckpoint("undo", "redo"))
    yield from one.gives(calls.ReadNotes(), [b"1", b"2"])


CHECKS = (
    checkpoints_are_listed_newest_first,
    a_second_checkpoint_with_the_same_id_is_refused,
    restoring_a_missing_checkpoint_is_refused,
    a_restore_brings_back_all_content,
    restored_values_can_be_compared,
    restored_variables_keep_their_remaining_time,
    variables_that_expired_since_the_checkpoint_are_restored,
    any_checkpoint_can_be_restored_in_any_order,
    deleted_checkpoints_can_not_be_restored,
    a_restore_never_deletes_the_restored_checkpoint,
)
