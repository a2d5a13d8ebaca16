"""The declaration of memU's tables, some of whose columns the user chooses: `tables_of`.

Each record is an owner without parts: a record's id is unique among all tenants, and records of several kinds refer to
each other by foreign keys, so a kind comes after those that it refers to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from ...config import MySQLConfig
from ...dialect.structure import describe_columns
from ...engine.operation import Operation, fetch
from ...errors import UsageError
from ...records.tables import Owner, Row, Seal, Tables
from ...runtime.sealing import Sealing
from .scope import Scope, kinds_of, model_of, named, value_of
from .seals import RecordSeals
from .tables import CORE, kind_of, memu_schema, own_prefix, table_names

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
