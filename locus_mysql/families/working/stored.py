"""Rows of sessions in MySQL, sealed and opened: `Seals`."""

from __future__ import annotations

from ...errors import CorruptCheckpoint
from ...runtime.sealing import Sealing
from .content import NOTE, TASK, Entry, StoredCheckpoint
from .statements.reading import CheckpointRow, EntryRow
from .statements.tables import SessionKey, value_identity
from .statements.writing import NewEntry, sql_time

#: The format of values: JSON.
JSON = b"\x01"


class Seals:
    """Seals and opens the rows of one session.

    Args:
        sealing: That of the family.
        key: The session.
    """

    def __init__(self, sealing: Sealing, key: SessionKey) -> None:
        self._sealing, self._key = sealing.of(*key), key

    def row(self, kind: int, name: str, entry: Entry, valid_until: int = 0) -> NewEntry:
        """Return the row of an entry, or of an earlier version of one with the stamp up to which it was valid."""
        value = entry.value
        if value is not None:
            value = self._sealing.seal(JSON, (value,), "value", *value_identity(kind, name, entry.version))
        expires_at = sql_time(entry.expires_us)
        return NewEntry(kind, name, value, entry.size_bytes, entry.version, entry.used, expires_at, valid_until)

    def entry(self, row: EntryRow) -> Entry:
        """Return the entry in a row.

        Raises:
            EncryptionError: There is no key for it, or it is in clear text although keys are given.
            CorruptCheckpoint: It was changed, or moved from another place.
        """
        value = None if row.value is None else self.open(row.kind, row.name, row.version, row.value)
        return Entry(value, row.size_bytes, row.version, row.used, row.expires_us)

    def open(self, kind: int, name: str, version: int, stored: bytes) -> bytes:
        """Return the JSON of a stored value; raises the errors of `entry`."""
        what = f"{entry_title(kind, name)} of session {self._key.session_id!r}"
        opened = self._sealing.open(stored, what, "value", *value_identity(kind, name, version))
        if opened.kind != JSON:
            raise CorruptCheckpoint(f"{what} cannot be read back: its format is unknown. Set it again, or delete it.")
        return bytes(opened.body)

    def checkpoint(self, row: CheckpointRow) -> StoredCheckpoint:
        """Return the checkpoint in a row, without its content; with the error if its checksum is wrong."""
        damage = None
        if row.checksum != self._checksum(row):
            damage = CorruptCheckpoint(
                f"Checkpoint {row.checkpoint_id!r} of session {self._key.session_id!r} cannot be read: its checksum is "
                "wrong. Delete it."
            )
        return StoredCheckpoint.of(*row[:-1], damage=damage)

    def checkpoint_row(self, checkpoint: StoredCheckpoint) -> CheckpointRow:
        """Return the row of a checkpoint."""
        row = CheckpointRow(*checkpoint.columns, checksum=0)
        return row._replace(checksum=self._checksum(row))

    def _checksum(self, row: CheckpointRow) -> int:
        counts = row.variables, row.notes, row.size_bytes
        return self._sealing.checksum("checkpoint", row.checkpoint_id, row.stamp, row.label, *counts)


def entry_title(kind: int, name: str) -> str:
    """Return the name of an entry, for errors."""
    if kind == TASK:
        return "The task state"
    return f"Note {name.lstrip('0')}" if kind == NOTE else f"Variable {name!r}"
