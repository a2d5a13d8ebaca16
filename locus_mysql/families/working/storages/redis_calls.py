"""Encodes calls for Redis, and decodes its replies. Does no I/O; ``redis.lua`` is the other end."""

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
from .. import calls
from ..errors import (
    checkpoint_exists,
    no_checkpoint,
    not_a_whole_number,
    out_of_range,
)
from ..globs import matcher

#: Types of arguments that redis-py accepts.
Argument: TypeAlias = bytes | str | int

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: The first argument without the token; see ``redis.lua``.
_NUMBERS = Struct(">IIBBBBdddddd")

#: A tenant or id that is longer than this in the name of a key is replaced by a digest.
_READABLE = 80

_SPECIAL_IN_GLOBS = re.compile(r"[*?^\[\]\\-]")


@lru_cache(maxsize=4_096)
def key_of(prefix: str, address: calls.Address) -> str:
    """Return the name of a session's first key; the names of its other keys begin with it.

    Redis Cluster places keys by the text in braces. Quoted ids contain neither braces nor colons, so different
    addresses have different names.
    """
    return f"{prefix}:{{{_named(address.tenant)}:{_named(address.session_id)}}}"


def pattern_of(prefix: str, tenant: str) -> str:
    """Return a Redis glob that matches all keys of a tenant's sessions."""
    literal = _SPECIAL_IN_GLOBS.sub(r"\\\g<0>", prefix)
    return f"{literal}:{{{_named(tenant)}:*"


def session_of(key: bytes) -> bytes | None:
    """Return the first key of the session of a key; None for a token, which outlives the session."""
    first, brace, rest = key.partition(b"}")
    return None if rest.startswith(b":token:") else first + brace


def _named(text: str) -> str:
    named = quote(text, safe="")
    return named if len(named) <= _READABLE else f"#{hashlib.sha256(named.encode()).hexdigest()}"


def arguments(call: calls.Call) -> list[Argument]:
    """Return the arguments of the script for a call, after the session's key."""
    if _reads_one(call):
        return [call.commands[0].keys[0]]  # type: ignore[attr-defined]
    commands = call.commands
    if len(commands) == 1 and isinstance(commands[0], calls.Write) and not call.used:
        variables = commands[0].variables
        if len(variables) == 1 and variables[0].ttl_us is None:
            (one,) = variables
            short: list[Argument] = [_numbers(call, 1, 1, 1), one.key, one.value]
            return short if one.canonical == one.value else [*short, one.canonical]
    writing = sum(not isinstance(command, calls.READS) for command in commands)
    numbers = _numbers(call, writing, any(isinstance(command, calls.BEGINS) for command in commands))
    given: list[Argument] = [numbers, *call.used]
    for command in call.commands:
        kind = type(command)
        given.append(kind.__name__)
        encode = _ENCODERS.get(kind)
        if encode is not None:
            given += encode(command)
    return given


def reply_of(call: calls.Call, answer: Any) -> calls.Reply:
    """Decode the script's answer.

    Raises:
        CapacityExceeded, InvalidInput, NotFound, StampMoved: The script refused the call.
    """
    if _reads_one(call):
        line, there, value = answer.partition(b"\n")
        read_at, ttl, left = line.split()
        found = {} if not there else {call.commands[0].keys[0]: calls.Found(value, _number(left))}  # type: ignore[attr-defined]
        return calls.Reply((found,), int(read_at), _number(ttl))
    if isinstance(answer, bytes):
        written_at, ttl = answer.split()
        return calls.Reply((None,), int(written_at), _number(ttl))
    stamp = answer[0]
    if not isinstance(stamp, int):
        raise _refusal(call, stamp.decode(), answer[1:])
    results = tuple(
        _DECODERS[type(command)](command, result) for command, result in zip(call.commands, answer[3:], strict=True)
    )
    return calls.Reply(results, stamp, None if answer[1] < 0 else answer[1], answer[2])


def _number(text: bytes) -> int | None:
    return None if text == b"-" else int(text)


def _reads_one(call: calls.Call) -> bool:
    """Return whether a call only reads one variable."""
    if len(call.commands) > 1 or call.renew or call.if_stamp is not None:
        return False
    command = call.commands[0]
    return isinstance(command, calls.Read) and len(command.keys) == 1


def _numbers(call: calls.Call, writing: int, begins: int, short: int = 0) -> bytes:
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


def _refusal(call: calls.Call, word: str, details: list[Any]) -> Exception:
    match word, details:
        case "stamp", _:
            return calls.StampMoved()
        case "limit", [limit, used, allowed]:
            return CapacityExceeded(limit.decode(), used, allowed, call.address.session_id)
        case "out_of_range", [key, by]:
            return out_of_range(key.decode(), int(by))
        case "not_a_whole_number", [key]:
            return not_a_whole_number(key.decode())
        case "no_checkpoint", [checkpoint_id]:
            return no_checkpoint(checkpoint_id.decode())
        case "checkpoint_exists", [checkpoint_id]:
            return checkpoint_exists(checkpoint_id.decode())
    raise RuntimeError(
        f"The script in Redis refused a call with the unknown word {word[:50]!r}: report it as a defect."
    )


def _canonical(variable: calls.Variable) -> bytes:
    return b"" if variable.canonical == variable.value else variable.canonical


def _written(command: calls.Write) -> list[Argument]:
    given: list[Argument] = [len(command.variables)]
    for one in command.variables:
        given += (one.key, one.value, _canonical(one), "" if one.ttl_us is None else one.ttl_us)
    return given


def _compared(command: calls.CompareAndSet) -> list[Argument]:
    one, expected = command.variable, command.canonical
    return [one.key, one.value, _canonical(one), int(expected is None), expected or b""]


def _inspected(command: calls.Inspect) -> list[Argument]:
    keys = command.keys
    return [1, 0] if keys is None else [0, len(keys), *keys]


def _restored(command: calls.RestoreCheckpoint) -> list[Argument]:
    return [command.checkpoint_id, command.undo_id, f"before restoring {command.checkpoint_id}"]


#: Encoders of the arguments of each command that has any.
_ENCODERS: dict[type[calls.Command[object]], Callable[[Any], list[Argument]]] = {
    calls.Read: lambda command: [len(command.keys), *command.keys],
    calls.ReadNotes: lambda command: ["" if command.last is None else command.last],
    calls.Inspect: _inspected,
    calls.Write: _written,
    calls.Remove: lambda command: [len(command.keys), *command.keys],
    calls.Increment: lambda command: [command.key, str(command.by)],
    calls.CompareAndSet: _compared,
    calls.WriteTask: lambda command: [int(command.value is not None), command.value or b""],
    calls.Append: lambda command: [command.note],
    calls.Touch: lambda command: ["" if command.ttl_us is None else command.ttl_us],
    calls.CreateCheckpoint: lambda command: [
        command.checkpoint_id,
        int(command.label is not None),
        command.label or "",
    ],
    calls.RestoreCheckpoint: _restored,
    calls.DeleteCheckpoint: lambda command: [command.checkpoint_id],
}


def _read(command: calls.Read, answer: list[Any]) -> dict[str, calls.Found]:
    values, times, now = answer
    found = {}
    for index, value in enumerate(values):
        if value is None:
            continue
        expires = int(times[index]) if times and times[index] is not None else None
        if expires is None or expires > now:
            found[command.keys[index]] = calls.Found(value, None if expires is None else expires - now)
    return found


def _read_all(command: calls.ReadAll, answer: list[Any]) -> dict[str, calls.Found]:
    parts, times, now = answer
    left = {key: int(time) - now for key, time in zip(times[::2], times[1::2], strict=True)}
    found = {
        key.decode(): calls.Found(value, left.get(key))
        for key, value in zip(parts[::2], parts[1::2], strict=True)
        if left.get(key, 1) > 0
    }
    return dict(sorted(found.items()))


def _list_keys(command: calls.ListKeys, answer: list[Any]) -> list[str]:
    keys, expired = answer
    matches = matcher(command.pattern)
    return sorted(filter(matches, (key.decode() for key in set(keys).difference(expired))))


def _list_checkpoints(command: calls.ListCheckpoints, answer: list[Any]) -> list[calls.Checkpoint]:
    return [
        calls.Checkpoint(
            checkpoint_id.decode(),
            None if label is None else label.decode(),
            _EPOCH + timedelta(microseconds=at_us),
            *measured,
        )
        for checkpoint_id, label, at_us, *measured in reversed(answer)
    ]


def _inspect(command: calls.Inspect, answer: list[Any]) -> calls.Versions:
    parts, task, notes = answer
    known = {key.decode(): int(stamp) for key, stamp in zip(parts[::2], parts[1::2], strict=True)}
    return calls.Versions(known, task, notes)


def _itself(command: calls.Command[object], answer: object) -> object:
    return answer


def _none(command: calls.Command[object], answer: object) -> None:
    return None


def _whether(command: calls.Command[object], answer: int) -> bool:
    return bool(answer)


#: Decodes the script's result of each command.
_DECODERS: dict[type[calls.Command[object]], Callable[[Any, Any], object]] = {
    calls.Read: _read,
    calls.ReadAll: _read_all,
    calls.ListKeys: _list_keys,
    calls.ReadTask: _itself,
    calls.ReadNotes: _itself,
    calls.ListCheckpoints: _list_checkpoints,
    calls.Measure: lambda command, answer: calls.Measured(*answer),
    calls.Inspect: _inspect,
    calls.Write: _none,
    calls.Remove: _itself,
    calls.Clear: _itself,
    calls.Increment: lambda command, answer: int(answer),
    calls.CompareAndSet: _whether,
    calls.WriteTask: _none,
    calls.Append: _none,
    calls.ClearNotes: _itself,
    calls.Touch: _whether,
    calls.CreateCheckpoint: _none,
    calls.RestoreCheckpoint: _none,
    calls.DeleteCheckpoint: _whether,
    calls.End: _whether,
}
