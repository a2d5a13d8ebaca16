"""Sessions of working memory as lines of JSON, and back: the format of exports. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ...errors import CorruptCheckpoint, InvalidInput
from ...runtime.arguments import check_checkpoint_id, check_session_id, check_variable
from ...runtime.checksummed_jsonl import checksummed
from ...runtime.exact_json import decode_json
from . import calls
from .moving import KeptEntry, KeptSession
from .session import NOTE, TASK, VARIABLE, Entry, Head, StoredCheckpoint

#: The format in the first line.
FORMAT = "locus-mysql sessions 1"

_KINDS = {VARIABLE: "variable", TASK: "task", NOTE: "note"}
_BY_NAME = {name: kind for kind, name in _KINDS.items()}
_FIELDS = {
    *("session", "stamp", "ttl_us", "notes_version", "last_note", "created_at", "expires_at"),
    *("entries", "history", "checkpoints"),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 2**63 - 1


def head_line(tenant: str, pattern: str) -> bytes:
    """Return the first line: the tenant, and the selection if not all sessions are exported."""
    content = {"format": FORMAT, "tenant": tenant}
    return checksummed(content if pattern == "*" else {**content, "pattern": pattern})


def session_line(kept: KeptSession) -> bytes:
    """Return the line of a session."""
    head = kept.head
    return checksummed(
        {
            "session": kept.session_id,
            "stamp": head.stamp,
            "ttl_us": head.ttl_us,
            "notes_version": head.notes_version,
            "last_note": head.last_note,
            "created_at": _iso(head.created_us),
            "expires_at": None if head.expires_us is None else _iso(head.expires_us),
            "entries": [_entry(entry) | {"used": entry.entry.used} for entry in kept.entries],
            "history": [_entry(entry) | {"valid_until": entry.valid_until} for entry in kept.history],
            "checkpoints": [
                {
                    "checkpoint": one.info.checkpoint_id,
                    "label": one.info.label,
                    "stamp": one.stamp,
                    "variables": one.info.keys,
                    "notes": one.info.scratchpad_entries,
                    "size_bytes": one.info.bytes,
                    "created_at": _iso(one.at_us),
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
    entries = tuple(_kept_entry(one) for one in _list(content["entries"], "entries"))
    checkpoints = tuple(_kept_checkpoint(one) for one in _list(content["checkpoints"], "checkpoints"))
    notes = [one.entry.size_bytes for one in entries if one.kind == NOTE and one.entry.size_bytes]
    head = Head(
        created_us=_time(content["created_at"]),
        ttl_us=None if ttl_us is None else _number(ttl_us, "ttl_us"),
        stamp=_number(content["stamp"], "stamp"),
        expires_us=None if expires_at is None else _time(expires_at),
        variables=sum(one.kind == VARIABLE and one.entry.size_bytes > 0 for one in entries),
        size_bytes=sum(one.entry.size_bytes for one in entries),
        notes=len(notes),
        notes_bytes=sum(notes),
        notes_version=_number(content["notes_version"], "notes_version"),
        last_note=_number(content["last_note"], "last_note"),
        checkpoints=len(checkpoints),
        kept=max((one.stamp for one in checkpoints), default=0),
    )
    history = tuple(_kept_entry(one) for one in _list(content["history"], "history"))
    return KeptSession(check_session_id(content["session"]), head, entries, history, checkpoints)


def _entry(kept: KeptEntry) -> dict[str, Any]:
    """Return an entry. Its value is the stored JSON as text, so that it is exact to the byte."""
    entry = kept.entry
    content: dict[str, Any] = {
        "kind": _KINDS[kept.kind],
        "name": kept.name,
        "value": None if entry.value is None else entry.value.decode(),
        "version": entry.version,
    }
    if entry.expires_us is not None:
        content["expires_at"] = _iso(entry.expires_us)
    return content


def _kept_entry(content: Any) -> KeptEntry:
    if not isinstance(content, dict) or content.get("kind") not in _BY_NAME:
        raise InvalidInput(f"An entry needs a kind: {', '.join(_BY_NAME)}.")
    kind, name, text = _BY_NAME[content["kind"]], content.get("name"), content.get("value")
    if kind == TASK and name != "":
        raise InvalidInput("The task state has no name.")
    if kind == NOTE and not (isinstance(name, str) and len(name) == 20 and name.isdecimal()):
        raise InvalidInput("The name of a note is its number in 20 digits.")
    if kind == VARIABLE:
        check_variable(name)
    value, size_bytes = None, 0
    if text is not None:
        try:
            value = text.encode()
            decode_json(value)
        except (AttributeError, UnicodeEncodeError, CorruptCheckpoint):
            raise InvalidInput("The value of an entry must be JSON, as text.") from None
        size_bytes = len(value) + (len(str(name).encode()) if kind == VARIABLE else 0)
    expires_at = content.get("expires_at")
    entry = Entry(
        value,
        size_bytes,
        _number(content.get("version"), "version"),
        _number(content.get("used", 0), "used"),
        None if expires_at is None else _time(expires_at),
    )
    return KeptEntry(kind, str(name), entry, _number(content.get("valid_until", 0), "valid_until"))


def _kept_checkpoint(content: Any) -> StoredCheckpoint:
    if not isinstance(content, dict):
        raise InvalidInput("A checkpoint must be an object.")
    label = content.get("label")
    if label is not None and not isinstance(label, str):
        raise InvalidInput("The label of a checkpoint must be text.")
    at_us = _time(content.get("created_at"))
    info = calls.Checkpoint(
        check_checkpoint_id(content.get("checkpoint")),
        label,
        _EPOCH + timedelta(microseconds=at_us),
        _number(content.get("variables"), "variables"),
        _number(content.get("notes"), "notes"),
        _number(content.get("size_bytes"), "size_bytes"),
    )
    return StoredCheckpoint(info, _number(content.get("stamp"), "stamp"), at_us)


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(f"{what} must be a list.")
    return value


def _number(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise InvalidInput(f"{what} must be a whole number from 0 to {_LARGEST}.")
    return value


def _iso(at_us: int) -> str:
    return f"{(_EPOCH + timedelta(microseconds=at_us)).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _time(value: Any) -> int:
    """Return a time in microseconds since 1970."""
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None or time.astimezone(UTC).year < 1970:
            raise ValueError
        return (time.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("A time needs its zone, as in '2026-01-31T12:00:00.000000Z'.") from None
