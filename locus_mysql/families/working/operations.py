"""The operations of a session, as generators that yield calls to its storage and are sent replies. Does no I/O."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any, TypeAlias, TypeVar, cast

from pydantic import BaseModel

from ...errors import ConfigError, CorruptCheckpoint, InvalidInput, NotFound, Unavailable
from ...runtime import arguments
from ...runtime.arguments import microseconds
from . import calls, values
from .records import SessionStats, TaskState

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

#: Yields calls, is sent the reply to each, and returns the result of a method.
Procedure: TypeAlias = Generator[calls.Call, calls.Reply, T]

#: The longest label of a checkpoint, in characters.
LABEL_LIMIT = 1_000

#: Time limit for changing the task state while other processes write to the session. With three processes writing to
#: Redis without a pause, one of fifty attempts succeeds.
TRYING_S = 10.0


class SessionOperations:
    """The operations of one session.

    Args:
        session_id: The session's id.
        tenant: Its tenant.
        ttl_s: Its time to live.
        limits: Its limits.
    """

    def __init__(self, session_id: str, tenant: str, ttl_s: float | None, limits: calls.Limits) -> None:
        self.address = calls.Address(arguments.check_tenant(tenant), arguments.check_session_id(session_id))
        self.limits = check_limits(limits)
        self._ttl_us = microseconds(ttl_s, "session_ttl_s")
        self._known_ttl_us = self._ttl_us
        self._renewed_at = -float("inf")
        # Variables read since the last write, the most recent last. The next write records them if it may evict.
        # Threads share it without a lock: each step on a dict is atomic.
        self._used: dict[str, None] = {}

    def set(self, key: str, value: Any, ttl_s: float | None = None) -> Procedure[None]:
        """Set a variable.

        Args:
            key: 1 to 512 characters without NUL; compared by code point.
            value: Any JSON value, or a pydantic model. What is read is equal to it, in the same order.
            ttl_s: It expires after this many seconds, at most a hundred years; None: with the session. A
                variable that is set again has the new time only.

        Raises:
            InvalidInput: JSON cannot hold it exactly; nothing was changed.
            CapacityExceeded: There is no room for it; nothing was changed.
            Unavailable: The storage did not answer in time.
        """
        yield from self._only("set", calls.Write((self._variable(key, value, ttl_s),)))

    def set_many(self, mapping: Mapping[str, Any], ttl_s: float | None = None) -> Procedure[None]:
        """Set variables, all or none, in one round trip. See `set`."""
        if not isinstance(mapping, Mapping):
            raise InvalidInput(f"set_many takes a dict of variables, not {type(mapping).__name__}.")
        variables = tuple(self._variable(key, value, ttl_s) for key, value in mapping.items())
        if variables:
            yield from self._only("set_many", calls.Write(variables))

    def get(self, key: str, default: Any = None) -> Procedure[Any]:
        """Return the value of a variable; the default if there is none."""
        found = yield from self._found("get", key)
        return default if found is None else values.decode(found.value, "Variable {!r}", key)

    def get_as(self, model: type[M], key: str) -> Procedure[M | None]:
        """Return a variable as a pydantic model; None if there is none.

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
            return values.decode_model(model, found.value)
        except ValueError as error:
            raise InvalidInput(
                f"Variable {key!r} is not a {model.__name__}: {_problems(error)}. Read it with get(), or set it again."
            ) from None

    def get_many(self, keys: Iterable[str]) -> Procedure[dict[str, Any]]:
        """Return variables by their keys, in one round trip; keys without a variable are left out."""
        wanted = _keys(keys)
        if not wanted:
            return {}
        found = yield from self._only("get_many", calls.Read(wanted))
        existing = [key for key in wanted if key in found]
        self._note_use(existing)
        return {key: values.decode(found[key].value, "Variable {!r}", key) for key in existing}

    def get_all(self) -> Procedure[dict[str, Any]]:
        """Return all variables, in the order of their keys by code point."""
        found = yield from self._only("get_all", calls.ReadAll())
        self._note_use(found)
        return {key: values.decode(one.value, "Variable {!r}", key) for key, one in found.items()}

    def exists(self, key: str) -> Procedure[bool]:
        """Return whether a variable exists. A variable whose value is None exists."""
        return bool((yield from self._only("exists", calls.Read((arguments.check_variable(key),)))))

    def list_keys(self, pattern: str = "*") -> Procedure[list[str]]:
        """Return keys of variables, in order by code point.

        Args:
            pattern: A glob: ``*`` matches any text, ``?`` one character.
        """
        return (yield from self._only("list_keys", calls.ListKeys(arguments.check_text(pattern, "The pattern"))))

    def delete(self, key: str) -> Procedure[bool]:
        """Delete a variable; returns whether it existed."""
        return bool((yield from self._only("delete", calls.Remove((arguments.check_variable(key),)))))

    def delete_many(self, keys: Iterable[str]) -> Procedure[int]:
        """Delete variables, all or none, in one round trip; returns the number of existing ones."""
        wanted = _keys(keys)
        return (yield from self._only("delete_many", calls.Remove(wanted))) if wanted else 0

    def clear(self) -> Procedure[int]:
        """Delete all variables; returns their number. Task state, notes and checkpoints stay; `end` removes all."""
        return (yield from self._only("clear", calls.Clear()))

    def increment(self, key: str, by: int = 1) -> Procedure[int]:
        """Add to a whole number of 64 bits; returns the sum. A missing variable counts as 0. Keeps the time to live.

        Raises:
            InvalidInput: The variable is no whole number, or the sum is beyond 64 bits; nothing was changed.
            CapacityExceeded: There is no room for it; nothing was changed.
        """
        return (
            yield from self._only("increment", calls.Increment(arguments.check_variable(key), values.check_step(by)))
        )

    def compare_and_set(self, key: str, expected: Any, value: Any) -> Procedure[bool]:
        """Set a variable if it has an expected value; returns whether it had. Keeps the time to live.

        Args:
            key: The variable's.
            expected: The value that it must have, or `MISSING` if it must not exist. Values are equal if their JSON is,
                apart from the order of keys in dicts: 1 and 1.0 differ.
            value: See `set`.

        Raises:
            InvalidInput: JSON cannot hold a value exactly; nothing was changed.
            CapacityExceeded: There is no room for it; nothing was changed.
        """
        wanted = None
        if not isinstance(expected, values.Missing):
            wanted = values.canonical_form(self._encoded(expected, "The expected value"))
        command = calls.CompareAndSet(self._variable(key, value, None), wanted)
        return (yield from self._only("compare_and_set", command))

    def ttl(self, key: str) -> Procedure[float | None]:
        """Return the seconds until a variable expires; None if it expires only with the session, or does not exist."""
        found = yield from self._only("ttl", calls.Read((arguments.check_variable(key),)))
        left_us = found[key].left_us if key in found else None
        return None if left_us is None else left_us / 1_000_000

    def set_task_state(self, state: TaskState | None) -> Procedure[None]:
        """Store the state of the task; None removes it."""
        yield from self._only("set_task_state", self._task("set_task_state takes", state))

    def get_task_state(self) -> Procedure[TaskState | None]:
        """Return the state of the task; None if there is none."""
        return self._task_of((yield from self._only("get_task_state", calls.ReadTask())))

    def update_task_state(self, change: Callable[[TaskState | None], TaskState | None]) -> Procedure[TaskState | None]:
        """Change the task state. Concurrent changes by several processes are all kept.

        Args:
            change: Receives the state, or None, and returns the new one, or None to remove it; for example
                ``lambda task: task.advance()``. It is called again if another process wrote to the session meanwhile.

        Returns:
            The state that it returned.

        Raises:
            NotFound: The session has no task state, and ``change`` uses an attribute of it; nothing was changed.
            CapacityExceeded: There is no room for it; nothing was changed.
            Unavailable: The storage did not answer in time, or other processes wrote during each attempt for 10
                seconds.
        """
        deadline = monotonic() + TRYING_S
        while True:
            reading, now = self._call("update_task_state", calls.ReadTask()), monotonic()
            read = yield reading
            self._learn(reading, now, read)
            before = cast("bytes | None", read.results[0])
            after = self._changed(change, self._task_of(before))
            write = self._task("The function given to update_task_state must return", after)
            if write.value == before:
                return after
            call, now = replace(self._call("update_task_state", write), if_stamp=read.stamp), monotonic()
            try:
                reply = yield call
            except calls.StampMoved:
                if monotonic() > deadline:
                    raise Unavailable(
                        f"Other processes wrote to session {self.address.session_id!r} during every attempt to change "
                        f"its task state, for {TRYING_S:g} s. Nothing was changed. Try again."
                    ) from None
                continue
            self._learn(call, now, reply)
            return after

    def _changed(
        self, change: Callable[[TaskState | None], TaskState | None], state: TaskState | None
    ) -> TaskState | None:
        try:
            return change(state)
        except AttributeError as error:
            if state is None and error.obj is None and error.name in {*TaskState.model_fields, *dir(TaskState)}:
                raise NotFound(
                    f"Session {self.address.session_id!r} has no task state, and the function given to "
                    f"update_task_state used {error.name!r} of it. Nothing was changed. Call set_task_state first, or "
                    "return a new TaskState when the function is given None."
                ) from error
            raise

    def _task(self, takes: str, state: TaskState | None) -> calls.WriteTask:
        if not isinstance(state, TaskState | None):
            raise InvalidInput(f"{takes} a TaskState or None, not {type(state).__name__}.")
        return calls.WriteTask(None if state is None else self._encoded(state, "The task state"))

    def _task_of(self, value: bytes | None) -> TaskState | None:
        if value is None:
            return None
        try:
            return values.decode_model(TaskState, value)
        except ValueError as error:
            raise CorruptCheckpoint(
                f"The task state of session {self.address.session_id!r} is not valid: {_problems(error)}. It was "
                "changed by other means than this package. Set it again."
            ) from None

    def append_scratchpad(self, content: str) -> Procedure[None]:
        """Add a note after all others. Notes added by several processes are all kept, in one order.

        Raises:
            CapacityExceeded: There is no room for it; nothing was changed. `clear_scratchpad` makes room.
        """
        if not isinstance(content, str):
            raise InvalidInput(f"A note must be text, not {type(content).__name__}.")
        yield from self._only("append_scratchpad", calls.Append(self._encoded(content, "The note")))

    def get_scratchpad(self, last: int | None = None) -> Procedure[list[str]]:
        """Return the notes, oldest first.

        Args:
            last: Return only this many of the last notes.
        """
        wanted = None if last is None else arguments.check_limit(last, "last")
        notes = yield from self._only("get_scratchpad", calls.ReadNotes(wanted))
        return [values.decode(note, "A note") for note in notes]

    def clear_scratchpad(self) -> Procedure[int]:
        """Remove all notes; returns their number."""
        return (yield from self._only("clear_scratchpad", calls.ClearNotes()))

    def create_checkpoint(self, label: str | None = None) -> Procedure[str]:
        """Store the session as it is now: variables with the time they have left, task state and notes.

        Args:
            label: A label of at most 1,000 characters.

        Returns:
            The checkpoint's id. If there are more than ``max_checkpoints``, the oldest is deleted.
        """
        if label is not None and len(arguments.check_text(label, "The label")) > LABEL_LIMIT:
            raise InvalidInput(f"The label is {len(label)} characters long; the limit is {LABEL_LIMIT}.")
        checkpoint_id = uuid.uuid4().hex
        yield from self._only("create_checkpoint", calls.CreateCheckpoint(checkpoint_id, label))
        return checkpoint_id

    def restore_checkpoint(self, checkpoint_id: str) -> Procedure[str]:
        """Restore the session from a checkpoint, completely or not at all. First, another checkpoint is created.

        Returns:
            The id of that checkpoint; restoring it undoes this.

        Raises:
            NotFound: There is no such checkpoint; nothing was changed.
        """
        undo_id = uuid.uuid4().hex
        wanted = arguments.check_checkpoint_id(checkpoint_id)
        yield from self._only("restore_checkpoint", calls.RestoreCheckpoint(wanted, undo_id))
        return undo_id

    def list_checkpoints(self) -> Procedure[list[calls.CheckpointInfo]]:
        """Return the session's checkpoints, newest first."""
        return (yield from self._only("list_checkpoints", calls.ListCheckpoints()))

    def delete_checkpoint(self, checkpoint_id: str) -> Procedure[bool]:
        """Delete a checkpoint; returns whether it existed."""
        return (
            yield from self._only(
                "delete_checkpoint", calls.DeleteCheckpoint(arguments.check_checkpoint_id(checkpoint_id))
            )
        )

    def touch(self, ttl_s: float | None = None) -> Procedure[bool]:
        """Start the session's time to live again; returns whether the session exists.

        Args:
            ttl_s: The new time to live; None: as before.
        """
        ttl_us = microseconds(ttl_s)
        touched = yield from self._only("touch", calls.Touch(ttl_us))
        if ttl_us is not None and touched:
            self._known_ttl_us = ttl_us
        return touched

    def measure(self) -> Procedure[SessionStats]:
        """Measure the session."""
        measured = yield from self._only("stats", calls.Measure())
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
        """Remove the session with all its content, checkpoints included; returns whether it existed.

        A later write begins a new session.
        """
        return (yield from self._only("end", calls.End()))

    def _only(self, name: str, command: calls.Command[T]) -> Procedure[T]:
        """The result of a call with one command."""
        call, now = self._call(name, command), monotonic()
        reply = yield call
        self._learn(call, now, reply)
        return cast(T, reply.results[0])

    def _learn(self, call: calls.Call, made_at: float, reply: calls.Reply) -> None:
        """Store the session's time to live, and that its use was recorded."""
        writes = call.writes
        if writes or call.renew:
            self._renewed_at = made_at
        if not writes:
            self._known_ttl_us = reply.ttl_us if reply.stamp else self._ttl_us
        for key in call.used:
            self._used.pop(key, None)

    def _call(self, name: str, command: calls.Command[Any]) -> calls.Call:
        if command.reads:
            ttl_us = self._known_ttl_us
            # A session lives an eighth longer than its time to live, so most reads need not renew it: see lifetime_us.
            renew = ttl_us is not None and monotonic() - self._renewed_at > ttl_us / 8_000_000
            return calls.Call(name, self.address, (command,), self.limits, self._ttl_us, renew)
        used = tuple(self._used.copy())
        return calls.Call(name, self.address, (command,), self.limits, self._ttl_us, used=used, token=os.urandom(16))

    def _found(self, name: str, key: str) -> Procedure[calls.Found | None]:
        found = yield from self._only(name, calls.Read((arguments.check_variable(key),)))
        self._note_use(found)
        return found.get(key)

    def _note_use(self, found: Iterable[str]) -> None:
        if self.limits.on_full == "evict":
            for key in found:
                self._used.pop(key, None)
                self._used[key] = None

    def _variable(self, key: str, value: Any, ttl_s: float | None) -> Any:
        text = self._encoded(value, f"The value of {arguments.check_variable(key)!r}")
        return calls.Variable(key, text, microseconds(ttl_s))

    def _encoded(self, value: Any, what: str) -> bytes:
        return values.encode(value, what, self.limits.value_bytes, self.address.session_id)


def check_limits(limits: calls.Limits) -> calls.Limits:
    """Check limits.

    Raises:
        ConfigError: One of them is out of range.
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
    """Return each key once."""
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise InvalidInput(f"Keys are given as a list of texts, not {type(keys).__name__}.")
    return tuple(dict.fromkeys(arguments.check_variable(key) for key in keys))


def _problems(error: ValueError) -> str:
    """Return the problems that pydantic found, without values."""
    problems = getattr(error, "errors", None)
    if problems is None:
        return "it is not readable JSON"
    found = problems(include_input=False, include_url=False, include_context=False)[:3]
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in found)
