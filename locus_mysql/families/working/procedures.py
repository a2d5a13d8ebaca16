"""What the methods of a session do, as generators that yield calls and are sent replies. Does no I/O."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any, TypeAlias, TypeVar, cast

from pydantic import BaseModel

from ...engine.at_fork import tell_at_fork
from ...errors import ConfigError, CorruptCheckpoint, InvalidInput, Unavailable
from ...runtime.arguments import (
    check_checkpoint_id,
    check_limit,
    check_session_id,
    check_tenant,
    check_text,
    check_variable,
)
from .calls import (
    READS,
    Address,
    Append,
    Call,
    Clear,
    ClearNotes,
    Command,
    CompareAndSet,
    CreateCheckpoint,
    DeleteCheckpoint,
    End,
    Found,
    Increment,
    Limits,
    ListCheckpoints,
    ListKeys,
    Measure,
    Read,
    ReadAll,
    ReadNotes,
    ReadTask,
    Remove,
    Reply,
    RestoreCheckpoint,
    StampMoved,
    Touch,
    Write,
    WriteTask,
)
from .records import CheckpointInfo, SessionStats, TaskState
from .values import (
    Missing,
    check_step,
    decode,
    decode_model,
    encode,
    likeness,
    microseconds,
    variable,
)

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

#: Yields calls, is sent the reply to each, returns what the caller wants. A surface runs it, asynchronous or not.
Procedure: TypeAlias = Generator[Call, Reply, T]

LABEL_LIMIT = 1_000

#: For so long a change of the task state is made anew because somebody else wrote to the session meanwhile. Beside
#: three processes that write to Redis without rest, one of fifty tries comes through.
TRYING_S = 10.0


class SessionProcedures:
    """The procedures of one session.

    Args:
        session_id: Which.
        tenant: Whose.
        ttl_seconds: Its time to live.
        limits: How much it may hold.
    """

    def __init__(self, session_id: str, tenant: str, ttl_seconds: float | None, limits: Limits) -> None:
        self.address = Address(check_tenant(tenant), check_session_id(session_id))
        self.limits = check_limits(limits)
        self._ttl_us = microseconds(ttl_seconds, "session_ttl_seconds")
        self._known_ttl_us = self._ttl_us
        self._renewed_at = -float("inf")
        # Variables read since the last write, the most recent last; noted with the next write where that matters.
        self._used: dict[str, None] = {}
        self.begin_in_child()
        tell_at_fork(self)

    def begin_in_child(self) -> None:
        """After a fork: a new lock, as a thread of the parent may hold the old one for ever."""
        self._lock = threading.Lock()  # guards _used: threads share a session

    def set(self, key: str, value: Any, ttl_seconds: float | None = None) -> Procedure[None]:
        """Set a variable.

        Args:
            key: 1 to 512 characters without NUL; compared by code point.
            value: Any JSON value, or a pydantic model. What is read is equal to it, in the same order.
            ttl_seconds: It expires after this many seconds, at most a hundred years; None: with the session. A
                variable that is set again has the new time only.

        Raises:
            InvalidInput: JSON cannot hold it exactly; nothing was changed.
            CapacityExceeded: There is no place for it; nothing was changed.
            Unavailable: The storage did not answer in time.
        """
        yield from self._only("set", Write((self._variable(key, value, ttl_seconds),)))

    def set_many(self, mapping: Mapping[str, Any], ttl_seconds: float | None = None) -> Procedure[None]:
        """Set variables, all or none, in one round trip. See `set`."""
        if not isinstance(mapping, Mapping):
            raise InvalidInput(f"set_many takes a dict of variables, not {type(mapping).__name__}.")
        variables = tuple(self._variable(key, value, ttl_seconds) for key, value in mapping.items())
        if variables:
            yield from self._only("set_many", Write(variables))

    def get(self, key: str, default: Any = None) -> Procedure[Any]:
        """The value of a variable; the default if it is not there."""
        found = yield from self._found("get", key)
        return default if found is None else decode(found.value, "Variable {!r}", key)

    def get_as(self, model: type[M], key: str) -> Procedure[M | None]:
        """A variable as a pydantic model; None if it is not there.

        Args:
            model: The class.
            key: The variable's.

        Raises:
            InvalidInput: The variable is not of that model, or `model` is no class of models.
        """
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise InvalidInput(f"get_as takes a class of pydantic models, not {model!r:.50}. get() reads other values.")
        found = yield from self._found("get_as", key)
        if found is None:
            return None
        try:
            return decode_model(model, found.value)
        except ValueError as error:
            raise InvalidInput(
                f"Variable {key!r} is no {model.__name__}: {_problems(error)}. Read it with get(), or set it anew."
            ) from None

    def get_many(self, keys: Iterable[str]) -> Procedure[dict[str, Any]]:
        """Variables by their keys, in one round trip; those that are not there are left out."""
        wanted = _keys(keys)
        if not wanted:
            return {}
        found = yield from self._only("get_many", Read(wanted))
        there = [key for key in wanted if key in found]
        self._note_use(there)
        return {key: decode(found[key].value, "Variable {!r}", key) for key in there}

    def get_all(self) -> Procedure[dict[str, Any]]:
        """All variables, in the order of their keys by code point."""
        found = yield from self._only("get_all", ReadAll())
        self._note_use(found)
        return {key: decode(one.value, "Variable {!r}", key) for key, one in found.items()}

    def exists(self, key: str) -> Procedure[bool]:
        """Whether a variable is there. One that is None is."""
        return bool((yield from self._only("exists", Read((check_variable(key),)))))

    def list_keys(self, pattern: str = "*") -> Procedure[list[str]]:
        """Keys of variables, in order by code point.

        Args:
            pattern: A glob: ``*`` stands for any text, ``?`` for one character, all else for itself.
        """
        return (yield from self._only("list_keys", ListKeys(check_text(pattern, "The pattern"))))

    def delete(self, key: str) -> Procedure[bool]:
        """Delete a variable; True if it was there."""
        return bool((yield from self._only("delete", Remove((check_variable(key),)))))

    def delete_many(self, keys: Iterable[str]) -> Procedure[int]:
        """Delete variables, all or none, in one round trip; how many were there."""
        wanted = _keys(keys)
        return (yield from self._only("delete_many", Remove(wanted))) if wanted else 0

    def clear(self) -> Procedure[int]:
        """Delete all variables; how many there were. Task state, scratchpad and checkpoints stay; `end` removes all."""
        return (yield from self._only("clear", Clear()))

    def increment(self, key: str, by: int = 1) -> Procedure[int]:
        """Add to a whole number of 64 bits; the sum. One that is not there counts as 0. It keeps its time to live.

        Raises:
            InvalidInput: The variable is something else, or the sum is beyond 64 bits; nothing was changed.
            CapacityExceeded: There is no place for it; nothing was changed.
        """
        return (yield from self._only("increment", Increment(check_variable(key), check_step(by))))

    def compare_and_set(self, key: str, expected: Any, value: Any) -> Procedure[bool]:
        """Set a variable if it is as expected; whether it was. It keeps its time to live.

        Args:
            key: The variable's.
            expected: The value that it must have, or `MISSING` if it must not be there. Values are equal if their JSON
                is, but for the order of keys in dicts: 1 and 1.0 are two.
            value: See `set`.

        Raises:
            InvalidInput: JSON cannot hold a value exactly; nothing was changed.
            CapacityExceeded: There is no place for it; nothing was changed.
        """
        wanted = None
        if not isinstance(expected, Missing):
            wanted = likeness(self._encoded(expected, "The expected value"))
        command = CompareAndSet(self._variable(key, value, None), wanted)
        return (yield from self._only("compare_and_set", command))

    def ttl(self, key: str) -> Procedure[float | None]:
        """Seconds until a variable expires; None if it does not expire by itself, or is not there."""
        found = yield from self._only("ttl", Read((check_variable(key),)))
        left_us = found[key].left_us if key in found else None
        return None if left_us is None else left_us / 1_000_000

    def set_task_state(self, state: TaskState | None) -> Procedure[None]:
        """Keep the state of the task; None removes it."""
        yield from self._only("set_task_state", self._task("set_task_state takes", state))

    def get_task_state(self) -> Procedure[TaskState | None]:
        """The state of the task; None if none is kept."""
        return self._task_of((yield from self._only("get_task_state", ReadTask())))

    def update_task_state(self, change: Callable[[TaskState | None], TaskState | None]) -> Procedure[TaskState | None]:
        """Make another task state of the one that is kept. Of changes by several processes none is lost.

        Args:
            change: Is given the state, or None, and returns another one, or None to remove it; such as
                ``lambda task: task.advance()``. It is called again if somebody else wrote to the session meanwhile.

        Returns:
            What it returned.

        Raises:
            CapacityExceeded: There is no place for it; nothing was changed.
            Unavailable: The storage did not answer in time, or for 10 seconds others wrote each time that it was tried.
        """
        deadline = monotonic() + TRYING_S
        while True:
            reading, now = self._call("update_task_state", ReadTask()), monotonic()
            read = yield reading
            self._learn(reading, now, read)
            before = cast("bytes | None", read.results[0])
            after = change(self._task_of(before))
            write = self._task("The function given to update_task_state must return", after)
            if write.value == before:
                return after
            call, now = replace(self._call("update_task_state", write), if_stamp=read.stamp), monotonic()
            try:
                reply = yield call
            except StampMoved:
                if monotonic() > deadline:
                    raise Unavailable(
                        f"Others wrote to session {self.address.session_id!r} each time that this change of its task "
                        f"state was tried, for {TRYING_S:g} s. Nothing was changed. Try again."
                    ) from None
                continue
            self._learn(call, now, reply)
            return after

    def _task(self, takes: str, state: TaskState | None) -> WriteTask:
        if not isinstance(state, TaskState | None):
            raise InvalidInput(f"{takes} a TaskState or None, not {type(state).__name__}.")
        return WriteTask(None if state is None else self._encoded(state, "The task state"))

    def _task_of(self, value: bytes | None) -> TaskState | None:
        if value is None:
            return None
        try:
            return decode_model(TaskState, value)
        except ValueError as error:
            raise CorruptCheckpoint(
                f"The task state of session {self.address.session_id!r} is none: {_problems(error)}. Somebody else "
                "changed it. Set it anew."
            ) from None

    def append_scratchpad(self, content: str) -> Procedure[None]:
        """Add a note behind all others. Of notes added by several processes all stay, in one order.

        Raises:
            CapacityExceeded: There is no place for it; nothing was changed. `clear_scratchpad` makes some.
        """
        if not isinstance(content, str):
            raise InvalidInput(f"A note must be text, not {type(content).__name__}.")
        yield from self._only("append_scratchpad", Append(self._encoded(content, "The note")))

    def get_scratchpad(self, last: int | None = None) -> Procedure[list[str]]:
        """The notes, oldest first.

        Args:
            last: Only this many of the last.
        """
        wanted = None if last is None else check_limit(last, "last")
        notes = yield from self._only("get_scratchpad", ReadNotes(wanted))
        return [decode(note, "A note") for note in notes]

    def clear_scratchpad(self) -> Procedure[int]:
        """Remove all notes; how many there were."""
        return (yield from self._only("clear_scratchpad", ClearNotes()))

    def create_checkpoint(self, label: str | None = None) -> Procedure[str]:
        """Keep the session as it is now: variables with the time they have left, task state and scratchpad.

        Args:
            label: What to call it, at most 1,000 characters.

        Returns:
            Its id. When there are more than ``max_checkpoints``, the oldest goes.
        """
        if label is not None and len(check_text(label, "The label")) > LABEL_LIMIT:
            raise InvalidInput(f"The label is {len(label)} characters long; the limit is {LABEL_LIMIT}.")
        checkpoint_id = uuid.uuid4().hex
        yield from self._only("create_checkpoint", CreateCheckpoint(checkpoint_id, label))
        return checkpoint_id

    def restore_checkpoint(self, checkpoint_id: str) -> Procedure[str]:
        """Make the session what it was, all of it or nothing. What was there is kept as another checkpoint.

        Returns:
            The id of that one: restoring it undoes this.

        Raises:
            NotFound: There is no such checkpoint; nothing was changed.
        """
        undo_id = uuid.uuid4().hex
        wanted = check_checkpoint_id(checkpoint_id)
        yield from self._only("restore_checkpoint", RestoreCheckpoint(wanted, undo_id))
        return undo_id

    def list_checkpoints(self) -> Procedure[list[CheckpointInfo]]:
        """The session's checkpoints, newest first."""
        return [CheckpointInfo(*one) for one in (yield from self._only("list_checkpoints", ListCheckpoints()))]

    def delete_checkpoint(self, checkpoint_id: str) -> Procedure[bool]:
        """Delete a checkpoint; True if it was there."""
        return (yield from self._only("delete_checkpoint", DeleteCheckpoint(check_checkpoint_id(checkpoint_id))))

    def touch(self, ttl_seconds: float | None = None) -> Procedure[bool]:
        """Give the session its whole time again; True if it is there.

        Args:
            ttl_seconds: From now on it has this time to live; None: that it had.
        """
        ttl_us = microseconds(ttl_seconds)
        touched = yield from self._only("touch", Touch(ttl_us))
        if ttl_us is not None and touched:
            self._known_ttl_us = ttl_us
        return touched

    def measure(self) -> Procedure[SessionStats]:
        """What the session holds."""
        measured = yield from self._only("stats", Measure())
        left_us = measured.left_us
        return SessionStats(
            measured.keys,
            measured.bytes,
            measured.scratchpad_entries,
            measured.checkpoints,
            None if left_us is None else left_us / 1_000_000,
            self.limits,
        )

    def end(self) -> Procedure[bool]:
        """Remove the session with all that it holds, checkpoints too; True if it was there.

        Whoever writes to it later begins a new one.
        """
        return (yield from self._only("end", End()))

    def _only(self, name: str, command: Command[T]) -> Procedure[T]:
        """The result of a call with one command."""
        call, now = self._call(name, command), monotonic()
        reply = yield call
        self._learn(call, now, reply)
        return cast(T, reply.results[0])

    def _learn(self, call: Call, made_at: float, reply: Reply) -> None:
        """Remember what the reply to a call tells of the session."""
        writes = call.writes
        if writes or call.renew:
            self._renewed_at = made_at
        if not writes:
            self._known_ttl_us = reply.ttl_us if reply.stamp else self._ttl_us
        if call.used:
            with self._lock:
                for key in call.used:
                    self._used.pop(key, None)

    def _call(self, name: str, command: Command[Any]) -> Call:
        if isinstance(command, READS):
            ttl_us = self._known_ttl_us
            # Kept for an eighth longer than its time, so that most reads need not write: see lifetime_us.
            renew = ttl_us is not None and monotonic() - self._renewed_at > ttl_us / 8_000_000
            return Call(name, self.address, (command,), self.limits, self._ttl_us, renew)
        with self._lock:
            used = tuple(self._used)
        return Call(name, self.address, (command,), self.limits, self._ttl_us, used=used, token=os.urandom(16))

    def _found(self, name: str, key: str) -> Procedure[Found | None]:
        found = yield from self._only(name, Read((check_variable(key),)))
        self._note_use(found)
        return found.get(key)

    def _note_use(self, found: Iterable[str]) -> None:
        if self.limits.on_full == "evict":
            with self._lock:
                for key in found:
                    self._used.pop(key, None)
                    self._used[key] = None

    def _variable(self, key: str, value: Any, ttl_seconds: float | None) -> Any:
        text = self._encoded(value, f"The value of {check_variable(key)!r}")
        return variable(key, text, microseconds(ttl_seconds))

    def _encoded(self, value: Any, what: str) -> bytes:
        return encode(value, what, self.limits.value_bytes, self.address.session_id)


def check_limits(limits: Limits) -> Limits:
    """Limits that can be kept.

    Raises:
        ConfigError: One of them cannot.
    """
    most = {"keys": 2**31, "value_bytes": 2**30, "session_bytes": 2**40, "scratchpad_entries": 2**31}
    for name, highest in {**most, "checkpoints": 10_000}.items():
        value = getattr(limits, name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= highest:
            raise ConfigError(f"max_{name} must be a whole number from 1 to {highest}, not {value!r:.50}.")
    if limits.on_full not in {"refuse", "evict"}:
        raise ConfigError(f"on_full must be 'refuse' or 'evict', not {limits.on_full!r:.50}.")
    return limits


def _keys(keys: Iterable[str]) -> tuple[str, ...]:
    """Each key once."""
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise InvalidInput(f"Keys are given as a list of texts, not {type(keys).__name__}.")
    return tuple(dict.fromkeys(check_variable(key) for key in keys))


def _problems(error: ValueError) -> str:
    """What pydantic found wrong, without any value."""
    problems = getattr(error, "errors", None)
    if problems is None:
        return "it is not readable JSON"
    found = problems(include_input=False, include_url=False, include_context=False)[:3]
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in found)
