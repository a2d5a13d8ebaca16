"""The declaration of memU's tables, some of whose columns the user chooses: `tables_of`; and their seals.

Each record is an owner without parts: a record's id is unique among all tenants, and records of several kinds refer to
each other by foreign keys, so a kind comes after those that it refers to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from ...config import MySQLConfig
from ...dialect.structure import describe_columns
from ...engine.operation import Operation, fetch
from ...errors import UsageError
from ...records.tables import Owner, Row, Seal, Tables
from ...runtime.exact_json import canonical_text
from ...runtime.sealing import Sealing, Value
from .scope import Scope, kinds_of, model_of, named, value_of
from .tables import CHANGED, CORE, kind_of, memu_schema, own_prefix, table_names

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


#: The kinds of records by the roles of their tables, in the singular, each after those that it refers to.
NOUNS = {
    "resources": "resource",
    "categories": "category",
    "items": "item",
    "links": "relation",
    "recall_files": "recall file",
    "segments": "segment",
}

#: Their columns of any length.
_LARGE = ("caption", "description", "summary", "content", "text", "embedding")


def tables_of(config: MySQLConfig, fields: Sequence[str]) -> tuple[Tables, ...]:
    """Return the tables of each kind of records.

    Args:
        config: The options.
        fields: The fields of the user model; see `scope`.

    Raises:
        UsageError: A field cannot be a column, or there is no such kind of fields.
    """
    return _tables(own_prefix(config).table_prefix, tuple(fields))


@lru_cache(maxsize=16)
def _tables(prefix: str, fields: tuple[str, ...]) -> tuple[Tables, ...]:
    kinds = kinds_of(fields)
    scope = scope_of(kinds)
    schema, names = memu_schema(prefix, scope.columns), table_names(prefix)
    return tuple(
        Tables(
            schema,
            names,
            Owner(
                role,
                key=("id",),
                seals=_seals(role, scope),
                large=tuple(name for name in _LARGE if name in CORE[role]),
                noun=noun,
                version=("updated_at",),
                expires="",
                written="o.updated_at",
                together=100,
                fields={name: partial(_stored, scope, name, kind) for name, kind in kinds.items()},
            ),
            tenant="locus_tenant",
            replaceable=False,  # removing a record removes those that refer to it
            scope=fields,
            check=partial(_check_scope, names, kinds),
        )
        for role, noun in NOUNS.items()
    )


def scope_of(kinds: Mapping[str, str]) -> Scope:
    """Return the scope with these fields.

    Raises:
        UsageError: A field cannot be a column.
    """
    try:
        return Scope(model_of(kinds))
    except TypeError as error:
        raise UsageError(str(error)) from None


def _seals(role: str, scope: Scope) -> tuple[Seal, ...]:
    """Return the columns that depend on the tenant: the digest of the scope, and the seals."""

    def key_of(sealing: Sealing, row: Row) -> bytes:
        return scope.key(row["tenant"], {name: row[name] for name in scope.fields})

    def key_fits(row: Row) -> bool:
        return scope.key(row["tenant"], {name: row[name] for name in scope.fields}) == bytes(row["locus_scope"])

    def seals_of(sealing: Sealing, row: Row) -> str:
        return RecordSeals(row["tenant"], role, scope.fields).text(row)

    def seals_fit(row: Row) -> bool:
        extra = json.loads(row["extra"]) if "extra" in row else None
        return RecordSeals(row["tenant"], role, scope.fields).fit({**row, "extra": extra})

    seals: tuple[Seal, ...] = (Seal("locus_seals", seals_of, seals_fit),)
    return (Seal("locus_scope", key_of, key_fits), *seals) if role in SCOPED else seals


#: The kinds of which a scope has one of a name, or of a content.
SCOPED = ("categories", "items", "recall_files")


def _stored(scope: Scope, name: str, kind: str, text: str) -> Any:
    """Return the stored value of a field that was given as text."""
    return scope.fields[name].to_store(value_of(name, kind, text))


def _check_scope(names: Mapping[str, str], kinds: Mapping[str, str]) -> Operation[None]:
    """Check that the scope names every field of the tables. Else an export would merge records of several scopes.

    Raises:
        UsageError: A field is missing, or is of another kind.
    """
    tables = {names[role] for role in CORE}
    columns = yield from fetch(describe_columns(tuple(tables)))
    known = {name for core in CORE.values() for name in core} | {*kinds}
    there = {column.name: kind_of(column.type) for column in columns if column.table in tables}
    others = sorted(name for name in there.keys() - known if not name.startswith("locus_"))
    wanted = ",".join(named(name, there.get(name, "str")) for name in (*kinds, *others))
    if others:
        raise UsageError(
            f"The tables have fields that --scope does not name: {', '.join(others)}. Without them the records of "
            f"several scopes would become those of one. Give --scope {wanted}."
        )
    if unlike := [name for name, kind in kinds.items() if there.get(name, kind) != kind]:
        raise UsageError(
            f"The tables have another type of field in {', '.join(unlike)} than --scope says. Give --scope {wanted}."
        )
