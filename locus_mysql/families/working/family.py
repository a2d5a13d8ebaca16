"""The family of working memory: `WORKING`, with the declaration of its tables; and their rows: `Seals`."""

from __future__ import annotations

from functools import lru_cache

from ...config import MySQLConfig
from ...errors import CorruptCheckpoint
from ...records.tables import Owner, Part, Row, Seal, Sealed, Tables
from ...runtime.sealing import Sealing
from ..family import DeclaredFamily, InspectorPage
from .content import NOTE, TASK, Entry, StoredCheckpoint
from .statements.reading import CheckpointRow, EntryRow
from .statements.tables import SessionKey, table_names, value_identity, working_schema
from .statements.writing import NewEntry, sql_time

#: The columns of a checkpoint that its checksum covers, in this order.
COVERED = ("checkpoint_id", "stamp", "label", "variables", "notes", "size_bytes")


def checkpoint_checksum(sealing: Sealing, row: Row) -> int:
    """Return the checksum of the row of a checkpoint; ``sealing`` is that of the session."""
    return sealing.checksum("checkpoint", *(row[one] for one in COVERED))


_VALUE = Sealed(
    "value",
    "value",
    row=("kind", "name", "version"),
    identity=lambda row: value_identity(row["kind"], row["name"], row["version"]),
)


@lru_cache(maxsize=16)
def tables(table_prefix: str) -> Tables:
    """Return the tables with a prefix."""
    return Tables(
        working_schema(table_prefix),
        table_names(table_prefix),
        Owner(
            "sessions",
            key=("session_id",),
            noun="session",
            version=("stamp",),
            id="sid",
            named="session_id",
            turns=("session_id",),
            stamp="stamp",
            written="TIMESTAMPADD(MICROSECOND, o.stamp, '1970-01-01')",
            totals=(("size_bytes", "{byte}"),),
        ),
        (
            Part("entries", key=("sid", "kind", "name"), sealed=(_VALUE,), noun="entry", title="name"),
            Part("history", key=("sid", "kind", "name", "version"), sealed=(_VALUE,), noun="entry", title="name"),
            Part(
                "checkpoints",
                key=("sid", "checkpoint_id"),
                seals=(Seal("checksum", checkpoint_checksum),),
                noun="checkpoint",
                title="checkpoint_id",
            ),
        ),
    )


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
        if row.checksum != checkpoint_checksum(self._sealing, row._asdict()):
            damage = CorruptCheckpoint(
                f"Checkpoint {row.checkpoint_id!r} of session {self._key.session_id!r} cannot be read: its checksum is "
                "wrong. Delete it."
            )
        return StoredCheckpoint.of(*row[:-1], damage=damage)

    def checkpoint_row(self, checkpoint: StoredCheckpoint) -> CheckpointRow:
        """Return the row of a checkpoint."""
        row = CheckpointRow(*checkpoint.columns, checksum=0)
        return row._replace(checksum=checkpoint_checksum(self._sealing, row._asdict()))


def entry_title(kind: int, name: str) -> str:
    """Return the name of an entry, for errors."""
    if kind == TASK:
        return "The task state"
    return f"Note {name.lstrip('0')}" if kind == NOTE else f"Variable {name!r}"


class WorkingFamily(DeclaredFamily):
    """Sessions of working memory."""

    name = "working"
    title = "Working memory"
    users = "WorkingMemory"
    holds_threads = False
    unit = "entry"
    page = InspectorPage("sessions", "Sessions")

    def declaration(self, config: MySQLConfig) -> Tables:
        """Return the declaration of the tables."""
        return tables(config.table_prefix)


WORKING = WorkingFamily()
