"""Sessions of working memory as lines of JSON, and back: the format of exports. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ...dialect.working.moving import KeptCheckpointRow, KeptEntryRow, KeptSessionRow
from ...dialect.working.pieces import NOTE, TASK, VARIABLE
from ...errors import CorruptCheckpoint, InvalidInput
from ...runtime.arguments import check_checkpoint_id, check_session_id, check_variable
from ...runtime.checksummed_jsonl import checksummed
from ...runtime.exact_json import decode_json
from .moving import KeptSession
from .values import canonical_form

#: The format in the first line.
FORMAT = "locus-mysql sessions 1"

_KINDS = {VARIABLE: "variable", TASK: "task", NOTE: "note"}
_BY_NAME = {name: kind for kind, name in _KINDS.items()}
_FIELDS = {"session", "stamp", "ttl_us", "last_note", "created_at", "expires_at", "entries", "history", "checkpoints"}
_LARGEST = 2**63 - 1


def head_line(tenant: str, pattern: str) -> bytes:
    """Return the first line: the tenant, and the selection if not all sessions are exported."""
    content = {"format": FORMAT, "tenant": tenant}
    return checksummed(content if pattern == "*" else {**content, "pattern": pattern})


def session_line(kept: KeptSession) -> bytes:
    """Return the line of a session."""
    row = kept.row
    return checksummed(
        {
            "session": kept.session_id,
            "stamp": row.stamp,
            "ttl_us": row.ttl_us,
            "last_note": row.last_note,
            "created_at": _iso(row.created_at),
            "expires_at": None if row.expires_at is None else _iso(row.expires_at),
            "entries": [_entry(entry) | {"used": entry.used} for entry in kept.entries],
            "history": [_entry(entry) for entry in kept.history],
            "checkpoints": [
                {
                    "checkpoint": one.checkpoint_id,
                    "label": one.label,
                    "stamp": one.stamp,
                    "variables": one.variables,
                    "notes": one.notes,
                    "size_bytes": one.size_bytes,
                    "created_at": _iso(one.created_at),
                }
                for one in kept.checkpoints
            ],
        }
    )


def session_of_content(content: Mapping[str, Any]) -> KeptSession:
    """Return the session in a line.

    Raises:
        InvalidInput: It cannot be stored.
    """
    if content.keys() != _FIELDS:
        raise InvalidInput(f"A session has the fields {', '.join(sorted(_FIELDS))}.")
    ttl_us, expires_at = content["ttl_us"], content["expires_at"]
    row = KeptSessionRow(
        _number(content["stamp"], "stamp"),
        None if ttl_us is None else _number(ttl_us, "ttl_us"),
        _number(content["last_note"], "last_note"),
        _time(content["created_at"]),
        None if expires_at is None else _time(expires_at),
    )
    return KeptSession(
        check_session_id(content["session"]),
        row,
        tuple(_kept_entry(one) for one in _list(content["entries"], "entries")),
        tuple(_kept_entry(one) for one in _list(content["history"], "history")),
        tuple(_kept_checkpoint(one) for one in _list(content["checkpoints"], "checkpoints")),
    )


def _entry(entry: KeptEntryRow) -> dict[str, Any]:
    """Return an entry. Its value is the stored JSON as text, so that it is exact to the byte."""
    content: dict[str, Any] = {
        "kind": _KINDS[entry.kind],
        "name": entry.name,
        "value": None if entry.value is None else entry.value.decode(),
        "version": entry.version,
    }
    if entry.expires_at is not None:
        content["expires_at"] = _iso(entry.expires_at)
    return content


def _kept_entry(content: Any) -> KeptEntryRow:
    if not isinstance(content, dict) or content.get("kind") not in _BY_NAME:
        raise InvalidInput(f"An entry needs a kind: {', '.join(_BY_NAME)}.")
    kind, name, text = _BY_NAME[content["kind"]], content.get("name"), content.get("value")
    if kind == TASK and name != "":
        raise InvalidInput("The task state has no name.")
    if kind == NOTE and not (isinstance(name, str) and len(name) == 20 and name.isdecimal()):
        raise InvalidInput("The name of a note is its number in 20 digits.")
    if kind == VARIABLE:
        check_variable(name)
    value = None
    if text is not None:
        try:
            value = text.encode()
            decode_json(value)
        except (AttributeError, UnicodeEncodeError, CorruptCheckpoint):
            raise InvalidInput("The value of an entry must be JSON, as text.") from None
    expires_at = content.get("expires_at")
    return KeptEntryRow(
        kind,
        str(name),
        value,
        canonical_form(value) if kind == VARIABLE and value is not None else None,
        _number(content.get("version"), "version"),
        _number(content.get("used", 0), "used"),
        None if expires_at is None else _time(expires_at),
        0,
    )


def _kept_checkpoint(content: Any) -> KeptCheckpointRow:
    if not isinstance(content, dict):
        raise InvalidInput("A checkpoint must be an object.")
    label = content.get("label")
    if label is not None and not isinstance(label, str):
        raise InvalidInput("The label of a checkpoint must be text.")
    return KeptCheckpointRow(
        check_checkpoint_id(content.get("checkpoint")),
        _number(content.get("stamp"), "stamp"),
        label,
        _number(content.get("variables"), "variables"),
        _number(content.get("notes"), "notes"),
        _number(content.get("size_bytes"), "size_bytes"),
        _time(content.get("created_at")),
        0,
    )


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(f"{what} must be a list.")
    return value


def _number(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise InvalidInput(f"{what} must be a whole number from 0 to {_LARGEST}.")
    return value


def _iso(time: datetime) -> str:
    return f"{time.isoformat(timespec='microseconds')}Z"


def _time(value: Any) -> datetime:
    """Return a time in UTC without a zone, as drivers return it."""
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None or time.astimezone(UTC).year < 1000:
            raise ValueError
        return time.astimezone(UTC).replace(tzinfo=None)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("A time needs its zone, as in '2026-01-31T12:00:00.000000Z'.") from None
