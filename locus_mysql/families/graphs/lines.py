"""Checkpoints of graphs as lines of JSON, and back: the format of exports. No I/O."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ...errors import InvalidInput
from ...runtime.arguments import check_thread_id
from ...runtime.checksummed_jsonl import checksummed, checksummed_text
from ...runtime.exact_json import encode_json
from .moving import KeptGraphCheckpoint, KeptValue
from .records import LoadedWrite
from .values import EncodedValue

#: The format in the first line.
FORMAT = "locus-mysql graphs 1"

_NEEDED = frozenset(("thread", "checkpoint", "seq", "ns", "parent", "created_at", "codec", "head", "values", "needs"))
_NAMES = _NEEDED | {"snapshots", "metadata", "run", "deleted", "writes"}
_ID_CHARACTERS = 512
_RUN_BYTES = 16


def head_line(tenant: str, threads: Sequence[str] | None, pattern: str) -> bytes:
    """Return the first line: the tenant, and the selection if not all threads are exported."""
    content: dict[str, Any] = {"format": FORMAT, "tenant": tenant}
    if threads is not None:
        content["threads"] = list(threads)
    if pattern != "*":
        content["pattern"] = pattern
    return checksummed(content)


def checkpoint_line(kept: KeptGraphCheckpoint) -> bytes:
    """Return the line of a checkpoint."""
    content: dict[str, Any] = {
        "thread": kept.thread_id,
        "checkpoint": kept.checkpoint_id,
        "seq": kept.seq,
        "ns": kept.ns,
        "parent": kept.parent_id,
        "created_at": kept.created_at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "codec": kept.codec,
        "head": _encoded(kept.head),
        "values": {
            name: {"label": value.label, **({} if value.encoded is None else _encoded(value.encoded))}
            for name, value in kept.values.items()
        },
        "needs": kept.needs,
    }
    if kept.snapshots:
        content["snapshots"] = sorted(kept.snapshots)
    if kept.metadata is not None:
        content["metadata"] = kept.metadata
    if kept.run_key is not None:
        content["run"] = kept.run_key.hex()
    if kept.hidden:
        content["deleted"] = True
    if kept.writes:
        content["writes"] = [
            {
                "task": write.task_id,
                "idx": write.idx,
                "channel": write.channel,
                "path": write.task_path,
                **_encoded(write.value),
            }
            for write in kept.writes
        ]
    return checksummed_text(encode_json(content))


def checkpoint_of_content(content: Mapping[str, Any]) -> KeptGraphCheckpoint:
    """Return the checkpoint in a line.

    Raises:
        InvalidInput: It cannot be stored.
    """
    if missing := sorted(_NEEDED - content.keys()):
        raise InvalidInput(f"The checkpoint lacks the field {missing[0]!r}.")
    if unknown := sorted(content.keys() - _NAMES):
        raise InvalidInput(f"A checkpoint has no field {unknown[0]!r:.50}; known are {', '.join(sorted(_NAMES))}.")
    parent = content["parent"]
    return KeptGraphCheckpoint(
        thread_id=check_thread_id(content["thread"]),
        seq=_number(content["seq"], "seq", 0, 2**63 - 1),
        ns=_text(content["ns"], "ns"),
        checkpoint_id=_text(content["checkpoint"], "checkpoint", _ID_CHARACTERS),
        parent_id=None if parent is None else _text(parent, "parent", _ID_CHARACTERS),
        created_at=_time(content["created_at"]),
        codec=_text(content["codec"], "codec"),
        head=_decoded(content["head"], "head"),
        values=_values(content["values"]),
        snapshots=frozenset(_text(one, "snapshots") for one in _list(content.get("snapshots", []), "snapshots")),
        needs=_number(content["needs"], "needs", 0, 2),
        metadata=None if content.get("metadata") is None else _text(content["metadata"], "metadata"),
        run_key=None if content.get("run") is None else _run(content["run"]),
        hidden=content.get("deleted") is True,
        writes=[_write(one) for one in _list(content.get("writes", []), "writes")],
    )


def _encoded(value: EncodedValue) -> dict[str, str]:
    """Return a value as JSON: as text if its bytes are UTF-8, else in base 64."""
    try:
        return {"kind": value.kind, "text": value.data.decode()}
    except UnicodeDecodeError:
        return {"kind": value.kind, "base64": base64.b64encode(value.data).decode()}


def _decoded(content: Any, what: str) -> EncodedValue:
    if isinstance(content, dict) and isinstance(content.get("kind"), str):
        if isinstance(content.get("text"), str):
            return EncodedValue(content["kind"], content["text"].encode())
        if isinstance(content.get("base64"), str):
            try:
                return EncodedValue(content["kind"], base64.b64decode(content["base64"], validate=True))
            except (ValueError, binascii.Error):
                pass
    raise InvalidInput(f"{what} must have a kind, and its bytes as text or base64.")


def _values(content: Any) -> dict[str, KeptValue]:
    if not isinstance(content, dict):
        raise InvalidInput("values must be an object.")
    values = {}
    for name, value in content.items():
        if not isinstance(value, dict) or "label" not in value:
            raise InvalidInput(f"The value {name!r:.50} must have a label.")
        own = "kind" in value
        values[name] = KeptValue(value["label"], _decoded(value, f"The value {name!r:.50}") if own else None)
    return values


def _write(content: Any) -> LoadedWrite:
    if not isinstance(content, dict):
        raise InvalidInput("A write must be an object.")
    return LoadedWrite(
        _text(content.get("task"), "task", _ID_CHARACTERS),
        _number(content.get("idx"), "idx", -(2**31), 2**31 - 1),
        _text(content.get("channel"), "channel"),
        _text(content.get("path"), "path"),
        _decoded(content, "A write"),
    )


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(f"{what} must be a list.")
    return value


def _text(value: Any, what: str, limit: int = 2**24 - 1) -> str:
    if not isinstance(value, str) or len(value) > limit:
        raise InvalidInput(f"{what} must be text of at most {limit} characters.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} must be text without lone surrogates.") from None
    return value


def _number(value: Any, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{what} must be a whole number from {least} to {most}.")
    return value


def _run(value: Any) -> bytes:
    try:
        key = bytes.fromhex(value)
    except (TypeError, ValueError):
        key = b""
    if len(key) != _RUN_BYTES:
        raise InvalidInput(f"run must be {_RUN_BYTES} bytes in hexadecimal.")
    return key


def _time(value: Any) -> datetime:
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None or time.astimezone(UTC).year < 1000:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("created_at must be a time with its zone, as in '2026-01-31T12:00:00.000000Z'.") from None
    return time
