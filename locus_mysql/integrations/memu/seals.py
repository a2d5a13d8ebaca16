"""The seals of memU's records: `RecordSeals`.

A record's ``locus_seals`` is a JSON object of checksums. Each column of `tables.CHANGED` and each field of the scope
that is not NULL has one of its own, so that a statement that changes a column replaces only its seal, and a process
checks the fields of its own user model. ``extra`` has one for each key, without those that the server changes. The
columns that never change have one together, `ROW`. All cover the tenant, the kind and the id of the record; the id's
part is combined by XOR.
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


#: Of no tenant, as the tenant's part of a seal and the same part of the id's would cancel each other out.
_IDS = Sealing(None, "memu")


class RecordSeals:
    """The seals of one kind of records.

    Args:
        tenant: The tenant.
        role: The role of their table.
        scope: The names of the user model's fields.
    """

    def __init__(self, tenant: str, role: str, scope: Iterable[str]) -> None:
        self._sealing = Sealing(None, "memu", tenant, (role,))
        own = (*CHANGED[role], "id", "created_at", "updated_at")
        self._fixed = tuple(name for name in CORE[role] if name not in own)
        self._scope = tuple(scope)
        self._single = (*(name for name in CHANGED[role] if name != "extra"), *self._scope)
        self._has_extra = "extra" in CHANGED[role]
        self._names = (ROW, *CHANGED[role], *self._scope)

    def text(self, record: Mapping[str, Any]) -> str:
        """Return the seals of a whole record, as they are stored.

        Args:
            record: Its columns as they are stored.
        """
        return json.dumps(self._of_all({**record, "extra": json.loads(record.get("extra") or "{}")}))

    def text_of_changed(self, id: str, columns: Mapping[str, Any], extra: Mapping[str, Any]) -> str:
        """Return the seals of some columns of a record, and of some keys of its ``extra``."""
        of_id = self._of_id(id)
        seals = self._each(of_id, {name: columns[name] for name in self._single if name in columns})
        return json.dumps({**seals, "extra": self._extra(of_id, extra)} if extra else seals)

    def difference(self, record: Mapping[str, Any], name: str) -> int | None:
        """Return the seal of a column without what it has in common with that of the fixed columns: the id.

        So the server can seal a value for another record with the same fixed columns.
        """
        seals = self._of_all(record)
        return seals[name] ^ seals[ROW] if name in seals else None

    def fit(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record as it was read fits its seals; ``extra`` is loaded."""
        if self._has_extra and not isinstance(record["extra"], dict):
            return False
        return _equal(record["locus_seals"], self._of_all(record), self._names)

    def fit_embeddings(self, rows: Iterable[Sequence[Any]]) -> list[tuple[str, bytes, Sequence[Any]]]:
        """Return the id, the embedding and the further columns of rows whose embedding and scope fit their seals.

        Args:
            rows: The first columns are those of the piece ``embedding_columns``.
        """
        names, fitting = ("embedding", *self._scope), list[tuple[str, bytes, Sequence[Any]]]()
        for id, *values in rows:
            seals = self._each(self._of_id(id), dict(zip(names, values, strict=False)))
            if _equal(values[len(names)], seals, names):
                fitting.append((id, values[0], values[len(names) + 1 :]))
        return fitting

    def _of_all(self, record: Mapping[str, Any]) -> dict[str, Any]:
        of_id = self._of_id(record["id"])
        seals: dict[str, Any] = self._each(of_id, {name: record[name] for name in self._single})
        seals[ROW] = self._sealing.checksum(ROW, *[_plain(record[name]) for name in self._fixed]) ^ of_id
        if self._has_extra:
            seals["extra"] = self._extra(of_id, record["extra"])
        return seals

    def _each(self, of_id: int, columns: Mapping[str, Any]) -> dict[str, Any]:
        checksum = self._sealing.checksum
        return {name: checksum(name, _plain(value)) ^ of_id for name, value in columns.items() if value is not None}

    def _extra(self, of_id: int, extra: Mapping[str, Any]) -> dict[str, int]:
        checksum = self._sealing.checksum
        return {
            key: checksum("extra", key, canonical_text(value)) ^ of_id
            for key, value in extra.items()
            if key not in REINFORCEMENT
        }

    def _of_id(self, id: str) -> int:
        """Return what the seals of all columns of a record have in common, besides tenant and kind."""
        return _IDS.checksum("id", id)


def _equal(stored: str, seals: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Return whether the seals of some columns are the stored ones."""
    found = json.loads(stored)
    return isinstance(found, dict) and all(found.get(name) == seals.get(name) for name in names)


def _plain(value: Any) -> Value:
    """Return a value as it is written; times are read as objects."""
    return f"{value:%Y-%m-%d %H:%M:%S.%f}" if isinstance(value, datetime) else value
