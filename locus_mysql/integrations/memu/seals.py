"""The seals of memU's records: `RecordSeals`.

A record's ``locus_seals`` is a JSON object of checksums. Each column of `tables.CHANGED` and each field of the scope
that is not NULL has one of its own, so that a statement that changes a column replaces only its seal, and a process
checks the fields of its own user model. ``extra`` has one for each key, without those that the server changes. The
columns that never change have one together, `ROW`. All cover the tenant, the kind and the id of the record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ...runtime.exact_json import canonical_text
from ...runtime.sealing import Sealing, Value
from .tables import CHANGED, CORE

#: The name of the seal of the columns that never change. The field of a scope cannot have it.
ROW = "locus_row"

#: The keys of ``extra`` that the server changes, when an item is reinforced.
REINFORCEMENT = frozenset(("reinforcement_count", "last_reinforced_at"))

_SEALING = Sealing(None, "memu")


class RecordSeals:
    """The seals of one kind of records.

    Args:
        tenant: The tenant.
        role: The role of their table.
        scope: The names of the user model's fields.
    """

    def __init__(self, tenant: str, role: str, scope: Iterable[str]) -> None:
        self._owner = tenant, role
        own = (*CHANGED[role], "id", "created_at", "updated_at")
        self._fixed = tuple(name for name in CORE[role] if name not in own)
        self._scope = tuple(scope)
        self._changed = frozenset((*CHANGED[role], *self._scope))

    def text(self, record: Mapping[str, Any]) -> str:
        """Return the seals of a whole record, as they are stored.

        Args:
            record: Its columns as they are stored.
        """
        return json.dumps(self._of_all({**record, "extra": json.loads(record.get("extra") or "{}")}))

    def text_of_changed(self, id: str, columns: Mapping[str, Any], extra: Mapping[str, Any]) -> str:
        """Return the seals of some columns of a record, and of some keys of its ``extra``."""
        seals = self._each(self._of(id), columns)
        return json.dumps({**seals, "extra": self._extra(self._of(id), extra)} if extra else seals)

    def difference(self, record: Mapping[str, Any], name: str) -> int | None:
        """Return the seal of a column without what it has in common with that of the fixed columns: the id.

        So the server can seal a value for another record with the same fixed columns.
        """
        seals = self._of_all(record)
        return seals[name] ^ seals[ROW] if name in seals else None

    def fit(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record as it was read fits its seals; ``extra`` is loaded."""
        if not isinstance(record.get("extra", {}), dict):
            return False
        return self._equal(record, self._of_all(record), (ROW, *self._changed))

    def fit_embeddings(self, rows: Iterable[Sequence[Any]]) -> list[tuple[str, bytes, Sequence[Any]]]:
        """Return the id, the embedding and the further columns of rows whose embedding and scope fit their seals.

        Args:
            rows: The first columns are those of the piece ``embedding_columns``.
        """
        columns, fitting = ("id", "embedding", *self._scope, "locus_seals"), []
        for row in rows:
            record = dict(zip(columns, row, strict=False))
            seals = self._each(self._of(record["id"]), record)
            if self._equal(record, seals, ("embedding", *self._scope)):
                fitting.append((record["id"], record["embedding"], row[len(columns) :]))
        return fitting

    def _equal(self, record: Mapping[str, Any], seals: Mapping[str, Any], names: Iterable[str]) -> bool:
        stored = json.loads(record["locus_seals"])
        return isinstance(stored, dict) and all(stored.get(name) == seals.get(name) for name in names)

    def _of(self, id: str) -> Sealing:
        return _SEALING.of(*self._owner, id)

    def _of_all(self, record: Mapping[str, Any]) -> dict[str, Any]:
        sealing = self._of(record["id"])
        seals = {ROW: sealing.checksum(ROW, *(_plain(record[name]) for name in self._fixed))}
        seals |= self._each(sealing, record)
        return {**seals, "extra": self._extra(sealing, record["extra"])} if "extra" in self._changed else seals

    def _each(self, sealing: Sealing, columns: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: sealing.checksum(name, _plain(value))
            for name, value in columns.items()
            if value is not None and name in self._changed and name != "extra"
        }

    def _extra(self, sealing: Sealing, extra: Mapping[str, Any]) -> dict[str, int]:
        return {
            key: sealing.checksum("extra", key, canonical_text(value))
            for key, value in extra.items()
            if key not in REINFORCEMENT
        }


def _plain(value: Any) -> Value:
    """Return a value as it is written; times are read as objects."""
    return f"{value:%Y-%m-%d %H:%M:%S.%f}" if isinstance(value, datetime) else value
