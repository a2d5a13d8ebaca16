"""What is sent to Redis for a call, and what its answer means. Does no I/O; ``redis.lua`` is the other end."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import Struct
from typing import Any, TypeAlias
from urllib.parse import quote

from ....errors import CapacityExceeded
from ..calls import (
    BEGINS,
    READS,
    Address,
    Append,
    Call,
    Checkpoint,
    Clear,
    ClearNotes,
    Command,
    CompareAndSet,
    CreateCheckpoint,
    DeleteCheckpoint,
    End,
    Found,
    Increment,
    Inspect,
    ListCheckpoints,
    ListKeys,
    Measure,
    Measured,
    Read,
    ReadAll,
    ReadNotes,
    ReadTask,
    Remove,
    Reply,
    RestoreCheckpoint,
    StampMoved,
    Touch,
    Variable,
    Versions,
    Write,
    WriteTask,
)
from ..globs import matcher
from ..refusals import (
    checkpoint_there,
    no_checkpoint,
    not_a_whole_number,
    out_of_range,
)

#: What redis-py takes as an argument.
Argument: TypeAlias = bytes | str | int

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: The first argument, but for the token; see ``redis.lua``.
_NUMBERS = Struct(">IIBBBBdddddd")

#: A tenant, or an id, that takes more characters in a name of a key is replaced by a digest.
_READABLE = 80

_MEANT_BY_GLOBS = re.compile(r"[*?^\[\]\\-]")


@lru_cache(maxsize=4_096)
def key_of(prefix: str, address: Address) -> str:
    """The name of a session's first key; those of all others begin with it.

    Redis Cluster places keys by what stands in braces. An id can hold neither these nor the colon, so different
    addresses have different names.
    """
    return f"{prefix}:{{{_named(address.tenant)}:{_named(address.session_id)}}}"


def pattern_of(prefix: str, tenant: str) -> str:
    """What Redis' globs call all keys of a tenant's sessions."""
    literal = _MEANT_BY_GLOBS.sub(r"\\\g<0>", prefix)
    return f"{literal}:{{{_named(tenant)}:*"


def session_of(key: bytes) -> bytes | None:
    """The first key of the session that a key belongs to; None for a token, which outlives it."""
    first, brace, rest = key.partition(b"}")
    return None if rest.startswith(b":token:") else first + brace


def _named(text: str) -> str:
    named = quote(text, safe="")
    return named if len(named) <= _READABLE else f"#{hashlib.sha256(named.encode()).hexdigest()}"


def arguments(call: Call) -> list[Argument]:
    """What a call is for the script, behind the session's key."""
    if _reads_one(call):
        return [call.commands[0].keys[0]]  # type: ignore[attr-defined]
    commands = call.commands
    if len(commands) == 1 and isinstance(commands[0], Write) and not call.used:
        variables = commands[0].variables
        if len(variables) == 1 and variables[0].ttl_us is None:
            (one,) = variables
            short: list[Argument] = [_numbers(call, 1, 1, 1), one.key, one.value]
            return short if one.likeness == one.value else [*short, one.likeness]
    writing = sum(not isinstance(command, READS) for command in commands)
    numbers = _numbers(call, writing, any(isinstance(command, BEGINS) for command in commands))
    given: list[Argument] = [numbers, *call.used]
    for command in call.commands:
        kind = type(command)
        given.append(kind.__name__)
        encode = _ENCODERS.get(kind)
        if encode is not None:
            given += encode(command)
    return given


def reply_of(call: Call, answer: Any) -> Reply:
    """What the script answered.

    Raises:
        CapacityExceeded, InvalidInput, NotFound, StampMoved: It refused.
    """
    if _reads_one(call):
        line, there, value = answer.partition(b"\n")
        read_at, ttl, left = line.split()
        found = {} if not there else {call.commands[0].keys[0]: Found(value, _number(left))}  # type: ignore[attr-defined]
        return Reply((found,), int(read_at), _number(ttl))
    if isinstance(answer, bytes):
        written_at, ttl = answer.split()
        return Reply((None,), int(written_at), _number(ttl))
    stamp = answer[0]
    if not isinstance(stamp, int):
        raise _refusal(call, stamp.decode(), answer[1:])
    results = tuple(
        _DECODERS[type(command)](command, result) for command, result in zip(call.commands, answer[3:], strict=True)
    )
    return Reply(results, stamp, None if answer[1] < 0 else answer[1], answer[2])


def _number(text: bytes) -> int | None:
    return None if text == b"-" else int(text)


def _reads_one(call: Call) -> bool:
    """Whether it only reads one variable."""
    if len(call.commands) > 1 or call.renew or call.if_stamp is not None:
        return False
    command = call.commands[0]
    return isinstance(command, Read) and len(command.keys) == 1


def _numbers(call: Call, writing: int, begins: int, short: int = 0) -> bytes:
    limits = call.limits
    return _NUMBERS.pack(
        writing,
        len(call.used),
        begins,
        call.renew,
        limits.on_full == "evict",
        short,
        -1 if call.if_stamp is None else call.if_stamp,
        -1 if call.ttl_us is None else call.ttl_us,
        limits.keys,
        limits.session_bytes,
        limits.scratchpad_entries,
        limits.checkpoints,
    ) + (call.token if writing else b"")


def _refusal(call: Call, word: str, details: list[Any]) -> Exception:
    match word, details:
        case "stamp", _:
            return StampMoved()
        case "limit", [limit, used, allowed]:
            return CapacityExceeded(limit.decode(), used, allowed, call.address.session_id)
        case "out_of_range", [key, by]:
            return out_of_range(key.decode(), int(by))
        case "not_a_whole_number", [key]:
            return not_a_whole_number(key.decode())
        case "no_checkpoint", [checkpoint_id]:
            return no_checkpoint(checkpoint_id.decode())
        case "checkpoint_there", [checkpoint_id]:
            return checkpoint_there(checkpoint_id.decode())
    raise NotImplementedError(word)


def _likeness(variable: Variable) -> bytes:
    return b"" if variable.likeness == variable.value else variable.likeness


def _written(command: Write) -> list[Argument]:
    given: list[Argument] = [len(command.variables)]
    for one in command.variables:
        given += (one.key, one.value, _likeness(one), "" if one.ttl_us is None else one.ttl_us)
    return given


def _compared(command: CompareAndSet) -> list[Argument]:
    one, expected = command.variable, command.likeness
    return [one.key, one.value, _likeness(one), int(expected is None), expected or b""]


def _inspected(command: Inspect) -> list[Argument]:
    keys = command.keys
    return [1, 0] if keys is None else [0, len(keys), *keys]


def _restored(command: RestoreCheckpoint) -> list[Argument]:
    return [command.checkpoint_id, command.undo_id, f"before restoring {command.checkpoint_id}"]


#: The arguments of each command that has some.
_ENCODERS: dict[type[Command[object]], Callable[[Any], list[Argument]]] = {
    Read: lambda command: [len(command.keys), *command.keys],
    ReadNotes: lambda command: ["" if command.last is None else command.last],
    Inspect: _inspected,
    Write: _written,
    Remove: lambda command: [len(command.keys), *command.keys],
    Increment: lambda command: [command.key, str(command.by)],
    CompareAndSet: _compared,
    WriteTask: lambda command: [int(command.value is not None), command.value or b""],
    Append: lambda command: [command.note],
    Touch: lambda command: ["" if command.ttl_us is None else command.ttl_us],
    CreateCheckpoint: lambda command: [command.checkpoint_id, int(command.label is not None), command.label or ""],
    RestoreCheckpoint: _restored,
    DeleteCheckpoint: lambda command: [command.checkpoint_id],
}


def _read(command: Read, answer: list[Any]) -> dict[str, Found]:
    values, times, now = answer
    found = {}
    for place, value in enumerate(values):
        if value is None:
            continue
        expires = int(times[place]) if times and times[place] is not None else None
        if expires is None or expires > now:
            found[command.keys[place]] = Found(value, None if expires is None else expires - now)
    return found


def _read_all(command: ReadAll, answer: list[Any]) -> dict[str, Found]:
    parts, times, now = answer
    left = {key: int(time) - now for key, time in zip(times[::2], times[1::2], strict=True)}
    found = {
        key.decode(): Found(value, left.get(key))
        for key, value in zip(parts[::2], parts[1::2], strict=True)
        if left.get(key, 1) > 0
    }
    return dict(sorted(found.items()))


def _list_keys(command: ListKeys, answer: list[Any]) -> list[str]:
    keys, expired = answer
    matches = matcher(command.pattern)
    return sorted(filter(matches, (key.decode() for key in set(keys).difference(expired))))


def _list_checkpoints(command: ListCheckpoints, answer: list[Any]) -> list[Checkpoint]:
    return [
        Checkpoint(
            checkpoint_id.decode(),
            None if label is None else label.decode(),
            _EPOCH + timedelta(microseconds=at_us),
            *measured,
        )
        for checkpoint_id, label, at_us, *measured in reversed(answer)
    ]


def _inspect(command: Inspect, answer: list[Any]) -> Versions:
    parts, task, notes = answer
    known = {key.decode(): int(stamp) for key, stamp in zip(parts[::2], parts[1::2], strict=True)}
    return Versions(known, task, notes)


def _itself(command: Command[object], answer: object) -> object:
    return answer


def _none(command: Command[object], answer: object) -> None:
    return None


def _whether(command: Command[object], answer: int) -> bool:
    return bool(answer)


#: What the script's result means, by command.
_DECODERS: dict[type[Command[object]], Callable[[Any, Any], object]] = {
    Read: _read,
    ReadAll: _read_all,
    ListKeys: _list_keys,
    ReadTask: _itself,
    ReadNotes: _itself,
    ListCheckpoints: _list_checkpoints,
    Measure: lambda command, answer: Measured(*answer),
    Inspect: _inspect,
    Write: _none,
    Remove: _itself,
    Clear: _itself,
    Increment: lambda command, answer: int(answer),
    CompareAndSet: _whether,
    WriteTask: _none,
    Append: _none,
    ClearNotes: _itself,
    Touch: _whether,
    CreateCheckpoint: _none,
    RestoreCheckpoint: _none,
    DeleteCheckpoint: _whether,
    End: _whether,
}
