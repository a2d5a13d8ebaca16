"""Statements that read, write and remove the rows of any family: `RowStatements`, filled in from its `Tables`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from ..dialect import Statement
from ..dialect.sql import SQL, Dialect
from ..dialect.statement import like
from .tables import Owner, Part, Row, Table, Tables

#: The next live owners along the primary key.
PAGE_OF_OWNERS = SQL("""
SELECT {OWN_COLUMNS}
  FROM {TABLE} o
 WHERE o.{TENANT} = :tenant AND {LIVE}{SELECTED}{AFTER}
 ORDER BY {KEY}
 LIMIT :limit
""")

#: The same for owners with large columns. The page ends when these reach a size, after at least one owner.
PAGE_OF_LARGE_OWNERS = SQL("""
SELECT {OWN_COLUMNS}
  FROM (SELECT *
          FROM (SELECT {KEY}, SUM({SIZE}) OVER (ORDER BY {KEY}) - ({SIZE}) AS before_it
                  FROM {TABLE} o
                 WHERE o.{TENANT} = :tenant AND {LIVE}{SELECTED}{AFTER}
                 ORDER BY {KEY}
                 LIMIT :limit) AS sized
         WHERE before_it < :limit_bytes) AS chosen
  JOIN {TABLE} o ON o.{TENANT} = :tenant AND {CHOSEN_OWNER}
 ORDER BY {KEY}
""")

#: Some owners by their keys, also expired ones, each with whether it is live.
OWNERS_AT = SQL("SELECT {OWN_COLUMNS}, {LIVE} FROM {TABLE} o WHERE (o.{TENANT}, {KEY}) IN (:keys)")

#: The columns of these by which it is seen whether they are still the same.
SEEN_AT = SQL("SELECT {SEEN_COLUMNS} FROM {TABLE} o WHERE (o.{TENANT}, {KEY}) IN (:keys)")

#: The rows of some owners along the primary key. The page ends when the sealed columns reach a size, after at least one
#: row.
PAGE_OF_PARTS = SQL("""
SELECT {COLUMNS}
  FROM (SELECT *
          FROM (SELECT o.{TENANT}, {KEY}, SUM({SIZE}) OVER (ORDER BY {KEY}) - ({SIZE}) AS before_it
                  FROM {TABLE} o
                 WHERE (o.{TENANT}, {LINK}) IN (:links){VALID}{AFTER}
                 ORDER BY {KEY}
                 LIMIT :limit) AS sized
         WHERE before_it < :limit_bytes) AS chosen
  JOIN {TABLE} ON {CHOSEN}
 ORDER BY {ORDER}
""")

COUNT_OWNERS = SQL("SELECT COUNT(*) FROM {TABLE} o WHERE o.{TENANT} = :tenant AND {LIVE}{SELECTED}")

COUNT_PARTS = SQL("""
SELECT COUNT(*)
  FROM {OWNERS} o
  JOIN {TABLE} p ON {SAME_LINK}{SINCE}
 WHERE o.{TENANT} = :tenant AND {LIVE}{SELECTED}
""")

INSERT = SQL("INSERT INTO {TABLE} ({WRITTEN}) VALUES [rows: ({VALUES})]")

#: The same for rows that an earlier attempt may have written.
PUT = SQL(
    "INSERT INTO {TABLE} ({WRITTEN}) VALUES [rows: ({VALUES})] AS fresh ON DUPLICATE KEY UPDATE {FROM_FRESH}",
    oceanbase="INSERT INTO {TABLE} ({WRITTEN}) VALUES [rows: ({VALUES})] ON DUPLICATE KEY UPDATE {FROM_VALUES}",
)

#: The rows of some owners. The primary key begins with the link.
REMOVE = SQL("DELETE FROM {TABLE} WHERE ({TENANT}, {PLAIN_LINK}) IN (:links)")
#: The same, at most `REMOVED_AT_ONCE` rows in a transaction.
REMOVED_AT_ONCE = 1_000
REMOVE_SOME = SQL("DELETE FROM {TABLE} WHERE ({TENANT}, {PLAIN_LINK}) IN (:links) LIMIT :limit")

#: An owner, if it is still the one that was read.
REMOVE_SEEN = SQL("DELETE FROM {TABLE} WHERE {TENANT} = :tenant{SEEN}")

#: Undoes the batch, with error 3141, unless an owner has this number of rows. Its locks keep a vacuum, which may take
#: them for left over, from removing them until the owner's own row is there.
EXPECT = SQL("""
SELECT CAST(IF(COUNT(*) = :expected, '1', '') AS JSON) FROM {TABLE} WHERE ({TENANT}, {PLAIN_LINK}) IN (:links) FOR SHARE
""")

# Pieces of these.
_LIVE = "(o.{expires} IS NULL OR o.{expires} > UTC_TIMESTAMP(6))"
_NAMES, _PATTERN = " AND o.{named} IN (:names)", " AND o.{named} LIKE :pattern"
# A writer reads the time before it waits for the owner's lock.
_WRITTEN_SINCE = " AND o.{updated} >= CAST(:since AS DATETIME(6)) - INTERVAL 1 HOUR"
_WITHIN = " AND o.{column} >= :space AND o.{column} < :space_end"
_VALID = " AND o.{0} >= (SELECT t.{1} FROM {owners} t WHERE {same})"


class Selection(NamedTuple):
    """Which owners are read.

    Args:
        names: Their names; None if they are not given.
        pattern: The glob that their names match.
        since: The time since which they were written to, in UTC as text; None for any.
        namespace: The first labels of their namespaces.
        where: The stored values of columns in `Owner.fields`.
    """

    names: tuple[str, ...] | None = None
    pattern: str = "*"
    since: str | None = None
    namespace: tuple[str, ...] = ()
    where: tuple[tuple[str, Any], ...] = ()


#: All owners.
ALL = Selection()


class RowStatements:
    """The statements about the tables of one family.

    Args:
        tables: The tables.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.dialect = Dialect(tables.schema, tables.names)
        self.owners = TableStatements(tables, tables.owner, self.dialect)
        self.parts = {part.role: TableStatements(tables, part, self.dialect) for part in tables.parts}

    def page_of_owners(
        self, tenant: str, selection: Selection, after: Row | None, limit: int, limit_bytes: int
    ) -> Statement:
        """Return the next live owners along the primary key, in the columns of `TableStatements.names`."""
        pieces, values = self._selected(selection)
        condition, after_values = after_row(self.tables.owner, after)
        values |= {"tenant": tenant, "limit": limit, **after_values}
        if not self.tables.owner.sized:
            return self.owners(PAGE_OF_OWNERS, {**pieces, "AFTER": condition}, **values)
        return self.owners(PAGE_OF_LARGE_OWNERS, {**pieces, "AFTER": condition}, limit_bytes=limit_bytes, **values)

    def count(self, tenant: str, selection: Selection) -> tuple[Statement, ...]:
        """Return the numbers of live owners and of their parts, one for each table."""
        pieces, values = self._selected(selection)
        return (
            self.owners(COUNT_OWNERS, pieces, tenant=tenant, **values),
            *(one(COUNT_PARTS, pieces, tenant=tenant, **values) for one in self.parts.values()),
        )

    def _selected(self, selection: Selection) -> tuple[dict[str, str], dict[str, Any]]:
        owner, text = self.tables.owner, ""
        values: dict[str, Any] = {"pattern": like(selection.pattern), "since": selection.since}
        if selection.names is not None:
            text, values["names"] = _NAMES.format(named=owner.named), list(selection.names)
        if selection.pattern != "*":
            text += _PATTERN.format(named=owner.named)
        if selection.since is not None:
            text += _WRITTEN_SINCE.format(updated=owner.updated)
        if selection.namespace and owner.spaces is not None:
            path = owner.spaces.path_of(selection.namespace)
            text += _WITHIN.format(column=owner.spaces.column)
            values |= {"space": path, "space_end": path[:-1] + b"\1"}
        for number, (name, value) in enumerate(selection.where):
            text += f" AND o.`{name}` = :where{number}"
            values[f"where{number}"] = value
        return {"SELECTED": text}, values


class TableStatements:
    """The statements about one table: ``statements(INSERT, rows=rows)``.

    Args:
        tables: The family's.
        table: One of them.
        dialect: The family's.
    """

    def __init__(self, tables: Tables, table: Table, dialect: Dialect) -> None:
        self.table = table
        self._tables = tables
        self._dialect = dialect
        #: The columns that are moved.
        self.columns = tables.columns(table)
        #: The names under which a row that is read has what identifies the rows that it builds on.
        self.bases = tuple(f"base_{one.column}" for one in table.sealed if one.base)
        own = isinstance(table, Owner)
        link = tables.link if not own or tables.owner.id else ()
        made = table.made
        #: The columns of a row that is read: those that are moved, those of the link, the checksums, and the bases.
        self.names = (*self.columns, *link, *made, *self.bases)
        #: The columns of a row that is written.
        self.written = (tables.tenant, *link, *self.columns, *made)
        #: A named tuple but for its names, which may be any that columns can have.
        getters = {name: property(itemgetter(place)) for place, name in enumerate(self.written)}
        self.row_type: Callable[[Iterable[Any]], tuple[Any, ...]] = type(
            "Row", (tuple,), {"_fields": self.written, **getters}
        )
        self._pieces = self._pieces_of(tables, link)

    def _pieces_of(self, tables: Tables, link: Sequence[str]) -> dict[str, str]:
        table, owner = self.table, tables.owner
        name, owners = f"`{tables.names[table.role]}`", f"`{tables.names[owner.role]}`"
        read = self.names[: len(self.names) - len(self.bases)]
        others = [one for one in self.written if one not in (tables.tenant, *table.key)]
        bases = [f"{one.base} AS base_{one.column}" for one in table.sealed if one.base]
        pieces = {
            "TABLE": name,
            "TENANT": tables.tenant,
            "OWNERS": owners,
            "OWN_COLUMNS": _each("o.`{}`", read),
            "COLUMNS": ", ".join((_each(f"{name}.`{{}}`", read), *bases)),
            "KEY": _each("o.{}", table.key),
            "LINK": _each("o.{}", tables.link),
            "PLAIN_LINK": _each("{}", tables.link),
            "WRITTEN": _each("`{}`", self.written),
            "VALUES": _each(":{}", self.written),
            "FROM_FRESH": _each("{0} = fresh.{0}", others),
            "FROM_VALUES": _each("{0} = VALUES({0})", others),
            "CHOSEN": " AND ".join(f"{name}.{one} = chosen.{one}" for one in (tables.tenant, *table.key)),
            "CHOSEN_OWNER": " AND ".join(f"o.{one} = chosen.{one}" for one in table.key),
            "ORDER": _each(f"{name}.{{}}", table.key),
            "SIZE": " + ".join(f"COALESCE(LENGTH(o.{one}), 0)" for one in table.sized) or "0",
            "SEEN_COLUMNS": _each("o.{}", tables.seen),
            "SEEN": "".join(f" AND {one} = :{one}" for one in tables.seen),
            "LIVE": _LIVE.format(expires=owner.expires) if owner.expires else "TRUE",
            "SAME_LINK": " AND ".join(f"p.{one} = o.{one}" for one in (tables.tenant, *tables.link)),
            "VALID": "",
            "SINCE": "",
        }
        if isinstance(table, Part) and table.since is not None:
            same = " AND ".join(f"t.{one} = o.{one}" for one in (tables.tenant, *tables.link))
            pieces["VALID"] = _VALID.format(*table.since, owners=owners, same=same)
            pieces["SINCE"] = " AND p.{} >= o.{}".format(*table.since)
        if isinstance(table, Part) and table.removed:
            pieces["VALID"] += f" AND o.{table.removed} = 0"
            pieces["SINCE"] += f" AND p.{table.removed} = 0"
        return pieces

    def __call__(self, statement: SQL, pieces: Mapping[str, str] | None = None, **values: Any) -> Statement:
        """Return a statement about the table."""
        return statement(self._dialect, pieces={**self._pieces, **(pieces or {})}, **values)

    def row(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return a row that was read, by its columns."""
        return self._tables.row(self.table, self.names, values)


def after_row(table: Table, after: Row | None) -> tuple[str, dict[str, Any]]:
    """Return the condition for rows after one along the primary key, and its parameters; empty without one."""
    if after is None:
        return "", {}
    return f" AND {beyond(table.key)}", {f"after_{one}": after[one] for one in table.key}


@lru_cache(maxsize=64)
def beyond(columns: tuple[str, ...], sign: str = ">", prefix: str = "after_") -> str:
    """Return the condition for rows after, or before, a position in the order of some columns.

    The conditions are nested, because MySQL uses no range of an index for ``(a, b) > (%s, %s)``.

    Args:
        columns: The columns.
        sign: How the last one is compared, such as ``>=``; the others are compared without equality.
        prefix: The beginning of the names of the parameters.
    """
    condition = f"o.{columns[-1]} {sign} :{prefix}{columns[-1]}"
    for one in columns[-2::-1]:
        condition = f"o.{one} {sign[0]} :{prefix}{one} OR (o.{one} = :{prefix}{one} AND ({condition}))"
    return f"({condition})"


def _each(text: str, names: Sequence[str]) -> str:
    """Return a text for each name, with commas between them."""
    return ", ".join(text.format(one) for one in names)
