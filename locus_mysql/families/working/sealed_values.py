"""Encrypts the values of sessions: variables, the task state and notes. Without encryption, they stay as they are."""

from __future__ import annotations

from ...dialect.working.moving import KeptEntryRow
from ...dialect.working.pieces import NOTE, TASK, VARIABLE, SessionKey, value_identity
from ...runtime.sealing import Sealing
from .values import canonical_form


def seal_value(sealing: Sealing, key: SessionKey, kind: int, name: str, value: bytes) -> bytes:
    """Return a value as it is stored.

    Args:
        sealing: Encrypts the family.
        key: The session.
        kind: The kind of the entry.
        name: Its name.
        value: Its JSON.
    """
    if not sealing.is_on:
        return value
    return sealing.of(*key).encrypt(value, "value", *value_identity(kind, name))


def open_value(sealing: Sealing, key: SessionKey, kind: int, name: str, stored: bytes) -> bytes:
    """Return the JSON of a stored value.

    Raises:
        EncryptionError: There is no key for it, or it is in clear text although keys are given.
        CorruptCheckpoint: It was changed, or moved from another place.
    """
    if sealing.leaves(stored):
        return stored
    what = f"{entry_title(kind, name)} of session {key.session_id!r}"
    return sealing.of(*key).decrypt(stored, what, "value", *value_identity(kind, name))


def entry_title(kind: int, name: str) -> str:
    """Return the name of an entry, for errors."""
    if kind == TASK:
        return "The task state"
    return f"Note {name.lstrip('0')}" if kind == NOTE else f"Variable {name!r}"


def open_entry(sealing: Sealing, key: SessionKey, row: KeptEntryRow, *, of_history: bool = False) -> KeptEntryRow:
    """Return a row of an export with its value in clear text. A row with a wrong checksum stays as it is."""
    if row.value is None or row.checksum != row.right_checksum(key, of_history=of_history):
        return row
    value = open_value(sealing, key, row.kind, row.name, row.value)
    if value is row.value:
        return row
    opened = row._replace(value=value, canonical=canonical_form(value) if row.kind == VARIABLE else None)
    return opened._replace(checksum=opened.right_checksum(key, of_history=of_history))


def stored_entry(sealing: Sealing, key: SessionKey, row: KeptEntryRow) -> KeptEntryRow:
    """Return the row to store for an entry of an import. An encrypted variable has no canonical."""
    if row.value is None or not sealing.is_on:
        return row
    return row._replace(value=seal_value(sealing, key, row.kind, row.name, row.value), canonical=None)
