"""Checks of checkpoints: what they keep, and what restoring brings back."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ....errors import InvalidInput, NotFound
from ..calls import (
    Append,
    Checkpoint,
    Clear,
    ClearNotes,
    Command,
    CompareAndSet,
    CreateCheckpoint,
    DeleteCheckpoint,
    Found,
    Increment,
    Inspect,
    ListCheckpoints,
    ListKeys,
    Measure,
    Read,
    ReadAll,
    ReadNotes,
    ReadTask,
    Remove,
    RestoreCheckpoint,
    Variable,
    Write,
    WriteTask,
)
from .checks import (
    PATIENCE_S,
    ContractBroken,
    Script,
    Session,
    Sessions,
    equal,
    true,
    variable,
)

HOUR_US = 3_600_000_000

_CONTENT: tuple[Command[object], ...] = (ReadAll(), ReadNotes(), ReadTask())


def _ids(session: Session) -> Script[list[str]]:
    return [one.checkpoint_id for one in (yield from session.do(ListCheckpoints()))]


def checkpoints_are_listed(sessions: Sessions) -> Script[None]:
    """Newest first, with what they hold."""
    session = sessions.new()
    yield from session.do(CreateCheckpoint("of nothing"))
    yield from session.ask(Write((variable("a"), variable("é", b"22"))), Append(b"333"), WriteTask(b"4444"))
    yield from session.do(CreateCheckpoint("{id}\x00:*🙂", "a label\n🙂"))
    yield from session.do(CreateCheckpoint("last", ""))
    listed = yield from session.do(ListCheckpoints())
    times = [one.created_at for one in listed]
    equal(sorted(times, reverse=True), times, "the times of checkpoints, newest first")
    equal(
        [one._replace(created_at=times[0]) for one in listed],
        [
            Checkpoint("last", "", times[0], 2, 1, 13),
            Checkpoint("{id}\x00:*🙂", "a label\n🙂", times[0], 2, 1, 13),
            Checkpoint("of nothing", None, times[0], 0, 0, 0),
        ],
        "the checkpoints",
    )
    equal((yield from session.do(Measure())).checkpoints, 3, "how many checkpoints are measured")


def a_checkpoint_is_made_once(sessions: Sessions) -> Script[None]:
    """Under its id."""
    session = sessions.new()
    yield from session.ask(Append(b"1"), CreateCheckpoint("c", "first"))
    yield from session.do(Append(b"2"))
    before = yield from session.ask(*_CONTENT, ListCheckpoints(), Inspect())
    yield from session.refused(InvalidInput, CreateCheckpoint("c", "second"))
    yield from session.refused(InvalidInput, RestoreCheckpoint("c", "c"))
    equal((yield from session.ask(*_CONTENT, ListCheckpoints(), Inspect())), before, "the session after refusals")


def restoring_what_is_not_there_is_refused(sessions: Sessions) -> Script[None]:
    """And changes nothing."""
    session = sessions.new()
    yield from session.refused(NotFound, RestoreCheckpoint("absent", "undo"))
    equal((yield from session.ask(Measure())).stamp, 0, "the stamp of a session that is not there")
    yield from session.ask(Append(b"1"), CreateCheckpoint("c"))
    before = yield from session.ask(*_CONTENT, ListCheckpoints(), Inspect())
    error = yield from session.refused(NotFound, RestoreCheckpoint("absent", "undo"))
    true("'absent'" in str(error), f"the refusal names the checkpoint: {error}")
    equal((yield from session.ask(*_CONTENT, ListCheckpoints(), Inspect())), before, "the session after a refusal")


def restoring_brings_everything_back(sessions: Sessions) -> Script[None]:
    """And can be undone."""
    session = sessions.new()
    yield from session.ask(
        Write((variable("same"), variable("changed", b'"old"', likeness=b"L"), variable("deleted", b"3"))),
        *(Append(b"1"), Append(b"2"), WriteTask(b'{"step":1}'), CreateCheckpoint("c")),
    )
    then = yield from session.ask(*_CONTENT, Measure())
    yield from session.do(Write((variable("changed", b'"new"'), variable("new", b"4", HOUR_US))))
    yield from session.do(Remove(("deleted",)))
    yield from session.ask(ClearNotes(), Append(b"3"), WriteTask(None))
    changed = yield from session.ask(*_CONTENT)
    equal((yield from session.ask(RestoreCheckpoint("c", "undo"))).results, (None,), "the result of restoring")
    now = yield from session.ask(*_CONTENT, Measure())
    equal(now.results[:3], then.results[:3], "a session that was restored")
    equal(now.results[3], then.results[3]._replace(checkpoints=2), "what a session holds that was restored")  # type: ignore[attr-defined]
    equal((yield from _ids(session)), ["undo", "c"], "the checkpoints after restoring")
    yield from session.do(RestoreCheckpoint("undo", "undo the undoing"))
    undone = yield from session.ask(*_CONTENT)
    left = undone.results[0]["new"].left_us  # type: ignore[index]
    true(left is not None and 0 < left <= HOUR_US, f"a variable that restoring removed has its time again: {left}")
    equal(_without_times(undone.results), _without_times(changed.results), "a session whose restoring was undone")
    yield from session.do(RestoreCheckpoint("undo the undoing", "once more"))
    equal((yield from session.ask(*_CONTENT)).results, then.results[:3], "a session whose undoing was undone")
    yield from session.do(RestoreCheckpoint("c", "and again"))
    equal((yield from session.ask(*_CONTENT)).results, then.results[:3], "a session restored to what it is")
    equal((yield from session.do(Increment("deleted", 1))), 4, "an increment of what was restored")
    yield from session.do(RestoreCheckpoint("c", "without the increment"))
    equal((yield from session.do(Read(("deleted",))))["deleted"].value, b"3", "what was incremented since")
    equal(len((yield from session.do(ListCheckpoints()))), 6, "the number of checkpoints")


def _without_times(results: tuple[object, ...]) -> tuple[object, ...]:
    variables, *others = results
    return ({key: found.value for key, found in variables.items()}, *others)  # type: ignore[attr-defined]


def restored_likenesses_compare(sessions: Sessions) -> Script[None]:
    """As they did when the checkpoint was made."""
    session = sessions.new()
    yield from session.ask(Write((variable("a", b"{ }", likeness=b"L"), variable("b", b"1"))), CreateCheckpoint("c"))
    yield from session.ask(Write((variable("a", b"2"), variable("b", b"[ ]", likeness=b"M"))))
    yield from session.do(RestoreCheckpoint("c", "undo"))
    equal((yield from session.do(CompareAndSet(variable("a", b"3"), b"L"))), True, "the likeness of what was restored")
    equal((yield from session.do(CompareAndSet(variable("b", b"3"), b"1"))), True, "a likeness that is the JSON again")


def what_expires_has_the_time_left_that_it_had(sessions: Sessions) -> Script[None]:
    """However long ago the checkpoint was made."""
    session = sessions.new()
    reply = yield from session.ask(Write((variable("a", b"1", HOUR_US),)), CreateCheckpoint("c"), Read(("a",)))
    had = reply.results[2]["a"].left_us  # type: ignore[index]
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = yield from session.until(Read(("a",)), _less_left(had - 50_000), "the time left fell")
        undo = f"undo {time.monotonic_ns()}"
        reply = yield from session.ask(RestoreCheckpoint("c", undo), Read(("a",)), DeleteCheckpoint(undo))
        left = reply.results[1]["a"].left_us  # type: ignore[index]
        true(left <= HOUR_US, f"restoring gives no more time than there was: {left}")
        if left > (found["a"].left_us or 0):
            return
        if time.monotonic() > deadline:
            raise ContractBroken(f"A variable had {had} µs left in a checkpoint, and has {left} when it is restored.")


def _less_left(bound_us: int) -> Callable[[dict[str, Found]], bool]:
    return lambda found: (found["a"].left_us or 0) < bound_us


def what_expired_since_is_restored(sessions: Sessions) -> Script[None]:
    """But not what had expired before."""
    session = sessions.new()
    yield from session.do(Write((variable("before", b"1", 50_000), variable("stays"))))
    yield from session.until(Read(("before",)), lambda found: not found, "a variable expired")
    yield from session.ask(
        Write((variable("since", b"1", 1_000_000),)), CreateCheckpoint("c"), CreateCheckpoint("same")
    )
    listed = yield from session.do(ListCheckpoints())
    equal({one.keys for one in listed}, {2}, "how many variables the checkpoints hold")
    yield from session.until(Read(("since",)), lambda found: not found, "a variable expired")
    yield from session.do(CreateCheckpoint("later"))
    for name in ("c", "same"):
        reply = yield from session.ask(RestoreCheckpoint(name, f"undo {name}"), ListKeys("*"))
        equal(reply.results[1], ["since", "stays"], f"the keys that restoring {name!r} brings back")
    reply = yield from session.ask(RestoreCheckpoint("later", "undo later"), ListKeys("*"))
    equal(reply.results[1], ["stays"], "the keys that a checkpoint brings back which was made when others had expired")


@dataclass
class _Model:
    """What a session is to hold."""

    variables: dict[str, bytes] = field(default_factory=dict)
    notes: list[bytes] = field(default_factory=list)
    task: bytes | None = None

    def copy(self) -> _Model:
        return _Model(dict(self.variables), list(self.notes), self.task)

    def check(self, session: Session, what: str) -> Script[None]:
        variables, notes, task = (yield from session.ask(*_CONTENT)).results
        equal({key: one.value for key, one in variables.items()}, self.variables, f"the variables {what}")  # type: ignore[attr-defined]
        equal(notes, self.notes, f"the notes {what}")
        equal(task, self.task, f"the task state {what}")
        taken = sum(len(key) + len(value) for key, value in self.variables.items())
        taken += sum(map(len, self.notes)) + len(self.task or b"")
        measured = yield from session.do(Measure())
        equal(measured[:3], (len(self.variables), taken, len(self.notes)), f"what is measured {what}")


def any_checkpoint_can_be_restored(sessions: Sessions) -> Script[None]:
    """In any order, whichever others were deleted or had to go."""
    for seed in range(6):
        yield from _wander(sessions, random.Random(seed))  # noqa: S311 - a walk that is the same every time


def _wander(sessions: Sessions, chance: random.Random) -> Script[None]:
    """Change, keep, restore and delete by chance, beside a plain model."""
    session = sessions.new(checkpoints=8)
    model = _Model()
    kept: dict[str, _Model] = {}
    for step in range(90):
        value = str(step).encode()
        match chance.choice(
            ("write", "write", "remove", "note", "task", "forget", "keep", "keep", "restore", "delete")
        ):
            case "write":
                keys = chance.sample("abcdefghij", chance.randint(1, 4))
                yield from session.do(Write(tuple(Variable(key, value, value) for key in keys)))
                model.variables.update(dict.fromkeys(keys, value))
            case "remove":
                keys = chance.sample("abcdefghij", chance.randint(1, 4))
                yield from session.do(Remove(tuple(keys)))
                model.variables = {key: one for key, one in model.variables.items() if key not in keys}
            case "note":
                yield from session.do(Append(value))
                model.notes.append(value)
            case "task":
                model.task = chance.choice((None, value))
                yield from session.do(WriteTask(model.task))
            case "forget":
                if chance.random() < 0.5:
                    yield from session.do(ClearNotes())
                    model.notes = []
                else:
                    yield from session.do(Clear())
                    model.variables = {}
            case "keep":
                yield from session.do(CreateCheckpoint(f"at {step}"))
                kept[f"at {step}"] = model.copy()
            case "restore" if kept:
                chosen = chance.choice(list(kept))
                yield from session.do(RestoreCheckpoint(chosen, f"undo {step}"))
                kept[f"undo {step}"], model = model, kept[chosen].copy()
                if len(kept) > 8:
                    del kept[next(one for one in kept if one != chosen)]
                yield from model.check(session, f"after restoring {chosen!r} in step {step}")
            case "delete" if kept:
                chosen = chance.choice(list(kept))
                equal((yield from session.do(DeleteCheckpoint(chosen))), True, "whether a checkpoint was deleted")
                del kept[chosen]
        while len(kept) > 8:
            del kept[next(iter(kept))]
        equal((yield from _ids(session)), list(reversed(kept)), f"the checkpoints after step {step}")
    yield from model.check(session, "after all")
    generous = session.limited(checkpoints=1_000)
    for name, then in kept.items():
        yield from generous.do(RestoreCheckpoint(name, f"before {name}"))
        yield from then.check(session, f"after restoring {name!r}")


def deleted_checkpoints_are_gone(sessions: Sessions) -> Script[None]:
    """And the others are not."""
    session = sessions.new()
    for place, name in enumerate(("first", "middle", "last")):
        yield from session.ask(Write((variable(name), variable("n", str(place)))), CreateCheckpoint(name))
    equal((yield from session.do(DeleteCheckpoint("absent"))), False, "the deletion of what is not there")
    equal((yield from session.do(DeleteCheckpoint("middle"))), True, "the deletion of what is there")
    equal((yield from session.do(DeleteCheckpoint("middle"))), False, "the deletion of what was deleted")
    yield from session.refused(NotFound, RestoreCheckpoint("middle", "undo"))
    equal((yield from _ids(session)), ["last", "first"], "the checkpoints that are left")
    yield from session.do(DeleteCheckpoint("first"))
    yield from session.do(RestoreCheckpoint("last", "undo"))
    equal(list((yield from session.do(ReadAll()))), ["first", "last", "middle", "n"], "the keys of the last checkpoint")
    for name in ("last", "undo"):
        yield from session.do(DeleteCheckpoint(name))
    equal((yield from _ids(session)), [], "the checkpoints when all were deleted")
    yield from session.ask(CreateCheckpoint("middle"), Clear(), RestoreCheckpoint("middle", "undo"))
    equal(list((yield from session.do(ReadAll()))), ["first", "last", "middle", "n"], "the keys of one made anew")


def restoring_keeps_what_is_restored(sessions: Sessions) -> Script[None]:
    """Though there may be no more checkpoints."""
    session = sessions.new(checkpoints=2)
    for name in "ab":
        yield from session.ask(Append(f'"{name}"'.encode()), CreateCheckpoint(name))
    yield from session.do(RestoreCheckpoint("a", "undo"))
    equal((yield from _ids(session)), ["undo", "a"], "the checkpoints after restoring the oldest")
    equal((yield from session.do(ReadNotes())), [b'"a"'], "the notes after restoring the oldest")
    one = sessions.new(checkpoints=1)
    yield from one.ask(Append(b"1"), CreateCheckpoint("only"), Append(b"2"))
    yield from one.do(RestoreCheckpoint("only", "undo"))
    equal((yield from one.do(ReadNotes())), [b"1"], "the notes after restoring the only checkpoint")
    equal((yield from _ids(one)), ["undo", "only"], "the checkpoints where there may be one")
    yield from one.do(RestoreCheckpoint("undo", "redo"))
    equal((yield from one.do(ReadNotes())), [b"1", b"2"], "the notes after undoing")


CHECKS = (
    checkpoints_are_listed,
    a_checkpoint_is_made_once,
    restoring_what_is_not_there_is_refused,
    restoring_brings_everything_back,
    restored_likenesses_compare,
    what_expires_has_the_time_left_that_it_had,
    what_expired_since_is_restored,
    any_checkpoint_can_be_restored,
    deleted_checkpoints_are_gone,
    restoring_keeps_what_is_restored,
)
