"""The statements about memU's records; `MemuDialect`, which names their tables; and `Records`, which makes them.

Statements about any kind of records have the piece ``{table}``. `Records` gives it and the other pieces; parameters
that are columns of a record are named ``new_`` and the column's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar, overload

from ...dialect import Query, Statement
from ...dialect.sql import NO_PIECES, SQL, Dialect, Select
from ...dialect.statement import Param
from ...dialect.variants import OCEANBASE
from .tables import CORE, LIMITS, ScopeColumn, memu_schema, table_names

R = TypeVar("R", bound=tuple[Any, ...])

#: The maximum number of ids in one statement. A statement with more other parameters than this takes as many ids.
IDS_PER_STATEMENT = 500

#: The format of the times in ``extra``, as memU writes them.
ISO_FORMAT = "%Y-%m-%dT%H:%i:%s.%f+00:00"

NOW = "UTC_TIMESTAMP(6)"

# A time later than the stored one, so that an update that finds its row always counts as a change.
NEXT = f"GREATEST({NOW}, {{row}}.updated_at + INTERVAL 1 MICROSECOND)"


class MemuDialect(Dialect):
    """The tables with one prefix and one user model; `memu_dialect` makes it once.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
        scope: The columns of the user model's fields.
    """

    def __init__(self, table_prefix: str, scope: Sequence[ScopeColumn]) -> None:
        super().__init__(memu_schema(table_prefix, scope), table_names(table_prefix))
        fields = tuple(column.name for column in scope)
        #: The columns of records by role, in the order in which they are read.
        self.columns = {role: (*core, *fields, "locus_seals") for role, core in CORE.items()}
        embedding_columns = ("id", "embedding", *fields, "locus_seals")
        self._texts = {*LIMITS, *(column.name for column in scope if column.type.startswith("VARCHAR"))}
        #: The pieces of statements about records, by role.
        self.pieces_of = {
            role: {
                "table": f"{{{role}}}",
                "columns": self._listed(columns),
                "text_columns": self._listed(columns, as_text=True),
                "embedding_columns": self._listed(embedding_columns),
                "text_embedding_columns": self._listed(embedding_columns, as_text=True),
            }
            for role, columns in self.columns.items()
        }

    def _listed(self, columns: Sequence[str], *, as_text: bool = False) -> str:
        """List columns of the row ``r``. On OceanBase, short texts are binary, and rows declare no types here."""
        texts = self._texts if as_text else ()
        return ", ".join(f"CONVERT(r.`{one}` USING utf8mb4)" if one in texts else f"r.`{one}`" for one in columns)


@lru_cache(maxsize=64)
def memu_dialect(table_prefix: str, scope: tuple[ScopeColumn, ...]) -> MemuDialect:
    """Return the tables with this prefix and these columns of a scope; always the same object."""
    return MemuDialect(table_prefix, scope)


class Condition(NamedTuple):
    """A column has one of some values; None stands for NULL."""

    column: str
    values: tuple[Param, ...]


#: Conditions that a record must meet, all of them.
Filter: TypeAlias = tuple[Condition, ...]


def equals(**columns: Param) -> Filter:
    """Select records with these values in their columns."""
    return tuple(Condition(column, (value,)) for column, value in columns.items())


class Page(NamedTuple):
    """Some of the records that a filter selects. Relies on the primary key, or on an index of the ordered columns.

    Args:
        order: The columns by which the records are ordered, none of which is NULL.
        after: Their values in the last record of the page before; None for the first page.
        limit: The maximum number of records.
    """

    order: tuple[str, ...]
    after: tuple[Param, ...] | None
    limit: int


def where_of(conditions: Filter, page: Page | None = None) -> tuple[str, dict[str, Any]]:
    """Return the SQL that selects records, beginning with AND, and its parameters."""
    text, values = [], dict[str, Any]()
    for number, (column, wanted) in enumerate(conditions):
        given = [value for value in wanted if value is not None]
        parts = [f"r.`{column}` IN (:where{number})"] if given else []
        if given:
            values[f"where{number}"] = given
        if len(given) < len(wanted):
            parts.append(f"r.`{column}` IS NULL")
        text.append(f"\n   AND ({' OR '.join(parts) or 'FALSE'})")
    if page is not None:
        after = page.after or ()
        values |= {f"after{place}": value for place, value in enumerate(after)} | {"limit": page.limit}
        equal = [f"r.`{column}` = :after{place} AND " for place, column in enumerate(page.order)]
        cases = [f"({''.join(equal[:place])}r.`{page.order[place]}` > :after{place})" for place in range(len(after))]
        text.append(f"\n   AND ({' OR '.join(cases)})" if cases else "")
        text.append(f"\n ORDER BY {', '.join(f'r.`{column}`' for column in page.order)}\n LIMIT :limit")
    return "".join(text), values


class Records:
    """Makes statements about the records of one kind.

    Args:
        sql: The tables.
        role: The role of the records' table.
        tenant: The tenant.
    """

    def __init__(self, sql: MemuDialect, role: str, tenant: str) -> None:
        self._sql = sql
        self._role = role
        self._tenant = tenant

    @overload
    def make(
        self, declared: Select[R], conditions: Filter = ..., page: Page | None = ..., **values: Any
    ) -> Query[R]: ...
    @overload
    def make(self, declared: SQL, conditions: Filter = ..., page: Page | None = ..., **values: Any) -> Statement: ...

    def make(
        self,
        declared: SQL,
        conditions: Filter = (),
        page: Page | None = None,
        pieces: Mapping[str, str] = NO_PIECES,
        **values: Any,
    ) -> Statement:
        """Return a statement about the records that a filter selects."""
        where, selected = where_of(conditions, page)
        pieces = {**self._sql.pieces_of[self._role], "where": where, **pieces}
        return declared(self._sql, tenant=self._tenant, pieces=pieces, **selected, **values)

    @overload
    def each(self, declared: Select[R], ids: Sequence[str], conditions: Filter = ...) -> tuple[Query[R], ...]: ...
    @overload
    def each(self, declared: SQL, ids: Sequence[str], conditions: Filter = ...) -> tuple[Statement, ...]: ...

    def each(self, declared: SQL, ids: Sequence[str], conditions: Filter = ()) -> tuple[Statement, ...]:
        """Return statements about the records with these ids that a filter selects.

        Each has at least as many ids as other parameters, so the length of all is linear in the number of both.
        """
        at_once = max(IDS_PER_STATEMENT, sum(len(condition.values) for condition in conditions))
        portions = [ids[start : start + at_once] for start in range(0, len(ids), at_once)]
        return tuple(self.make(declared, conditions, ids=[*some]) for some in portions)

    def insert(
        self,
        columns: Mapping[str, Param],
        then: str = "",
        forms: Mapping[str, str] = NO_PIECES,
        declared: SQL | None = None,
        **values: Any,
    ) -> Statement:
        """Write a new record. Times that are None are read from the server's clock.

        Args:
            columns: Its columns.
            then: What happens if the record exists: `KEEP`, `REINFORCE` or `COMPLETE`.
            forms: The expressions of columns whose value is not just their parameter.
            declared: The statement, if it is not `INSERT`.
            values: The parameters in ``then`` and ``forms``.
        """
        # On OceanBase, each evaluation of the clock gives another time, also in one statement, so there all times of a
        # record are that of its creation.
        pieces = {
            "then": then,
            "names": ", ".join(f"`{name}`" for name in columns),
            "values": _values(columns, NOW, NOW, forms),
            "created_values": _values(columns, NOW, "created_at", forms),
            "clock_values": _values(columns, "clock.now", "clock.now", forms),
        }
        return self.make(declared or INSERT, pieces=pieces, **_named(columns), **values)

    def update(
        self, id: str, columns: Mapping[str, Param], seals: str, merged: Mapping[str, str] = NO_PIECES
    ) -> tuple[Statement, Statement]:
        """Change a record; undo the batch if it does not exist.

        Args:
            id: The record's id.
            columns: The columns to set.
            seals: The seals to set, as JSON.
            merged: JSON texts to set in ``extra``, by key; its other keys stay.
        """
        assignments, values = [f"r.`{name}` = :new_{name}," for name in columns], _named(columns)
        if merged:
            pairs = [f", :path{number}, CAST(:text{number} AS JSON)" for number in range(len(merged))]
            assignments.append(f"r.extra = JSON_SET(r.extra{''.join(pairs)}),")
            for number, (key, text) in enumerate(merged.items()):
                values |= {f"path{number}": f"$.{json.dumps(key, ensure_ascii=False)}", f"text{number}": text}
        pieces = {"assignments": "\n       ".join(assignments)}
        return self.make(UPDATE, pieces=pieces, id=id, seals=seals, **values), GUARD_CHANGED(self._sql)


def _values(columns: Mapping[str, Param], created: str, updated: str, forms: Mapping[str, str]) -> str:
    """Return the expressions of columns. A time that is None is the server's time."""
    written = {
        "created_at": f"COALESCE(:new_created_at, {created})",
        "updated_at": f"COALESCE(:new_updated_at, {updated})",
        "extra": "CAST(:new_extra AS JSON)",
        "locus_seals": "CAST(:new_locus_seals AS JSON)",
        **forms,
    }
    return ", ".join(written.get(name, f":new_{name}").replace("{now}", updated) for name in columns)


def _named(columns: Mapping[str, Param]) -> dict[str, Any]:
    return {f"new_{name}": value for name, value in columns.items()}


class AgeRow(NamedTuple):
    """The id of a record, and when it was created."""

    id: str
    created_at: datetime


class TotalRow(NamedTuple):
    """A number of records."""

    total: int


class IdRow(NamedTuple):
    """The id of a record."""

    id: str


LIST = SQL(
    "SELECT {columns}\n  FROM {table} r\n WHERE r.locus_tenant = :tenant{where}",
    oceanbase="SELECT {text_columns}\n  FROM {table} r\n WHERE r.locus_tenant = :tenant{where}",
)
AGES = Select("SELECT r.id, r.created_at FROM {table} r WHERE r.locus_tenant = :tenant{where}", AgeRow)
COUNT = Select("SELECT COUNT(*) FROM {table} r WHERE r.locus_tenant = :tenant", TotalRow)

INSERT = SQL(
    "INSERT INTO {table} ({names})\nVALUES ({values}){then}",
    oceanbase="INSERT INTO {table} ({names})\nVALUES ({created_values}){then}",
)

#: Leave an existing record as it is.
KEEP = "\n    ON DUPLICATE KEY UPDATE id = {table}.id"

#: Raise the count by one, with the time of the server's clock. A count that is no integer counts as memU's default, 1.
REINFORCE = f""" AS fresh
    ON DUPLICATE KEY UPDATE
       extra = JSON_SET({{items}}.extra, '$.reinforcement_count',
                        IF(JSON_TYPE(JSON_EXTRACT({{items}}.extra, '$.reinforcement_count')) COLLATE utf8mb4_bin
                             IN ('INTEGER', 'UNSIGNED INTEGER'),
                           CAST(JSON_EXTRACT({{items}}.extra, '$.reinforcement_count') AS SIGNED), 1) + 1,
                        '$.last_reinforced_at', DATE_FORMAT({NOW}, :iso)),
       updated_at = {NEXT.replace("{row}", "{items}")}"""
OCEANBASE.instead_of(REINFORCE, REINFORCE.removeprefix(" AS fresh"))


def _lacks(column: str) -> str:
    """Return the condition that an existing record lacks a value that the new one has."""
    return f"COALESCE({{table}}.{column}, '') = '' AND COALESCE(fresh.{column}, '') <> ''"


def _filled_seal(column: str) -> str:
    """Return the seals of a filled in column as a JSON object.

    The parameter is `RecordSeals.difference`; combined with the seal of the existing record's fixed columns, it is the
    seal of the value in that record. A JSON column is best assigned once: a second assignment fails with error 3142.
    """
    fixed = "CAST(JSON_EXTRACT({table}.locus_seals, '$.locus_row') AS UNSIGNED)"
    return f"IF({_lacks(column)}, JSON_OBJECT('{column}', :{column}_difference ^ {fixed}), JSON_OBJECT())"


#: Fill in an empty embedding or description of an existing category or recall file; else change nothing. The
#: assignments run left to right, so the columns that the others look at come last.
COMPLETE = f""" AS fresh
    ON DUPLICATE KEY UPDATE
       locus_seals = JSON_MERGE_PATCH({{table}}.locus_seals,
                                      {_filled_seal("embedding")},
                                      {_filled_seal("description")}),
       updated_at  = IF({_lacks("embedding")} OR {_lacks("description")},
                        {NEXT.replace("{row}", "{table}")}, {{table}}.updated_at),
       embedding   = IF({_lacks("embedding")}, fresh.embedding, {{table}}.embedding),
       description = IF({{table}}.description = '', fresh.description, {{table}}.description)"""
OCEANBASE.instead_of(
    COMPLETE,
    COMPLETE.removeprefix(" AS fresh")
    .replace("fresh.embedding", "VALUES(embedding)")
    .replace("fresh.description", "VALUES(description)"),
)

#: The forms of columns in a new item that counts as reinforced.
REINFORCED = {"extra": "JSON_SET(CAST(:new_extra AS JSON), '$.last_reinforced_at', DATE_FORMAT({now}, :iso))"}

#: The forms of columns in a new item whose resource may not exist; then the item has none.
RESTORED = {
    "resource_id": "(SELECT f.id FROM {resources} f"
    " WHERE f.id = :new_resource_id AND f.locus_tenant = :new_locus_tenant)",
    "locus_seals": "IF(resource_id IS NULL, JSON_REMOVE(CAST(:new_locus_seals AS JSON), '$.resource_id'),"
    " CAST(:new_locus_seals AS JSON))",
}

# Inserts only if item and category exist; the locks keep them until the transaction is committed. OceanBase takes none
# here, nor in GUARD_RESOURCE; there, the foreign keys refuse a relation to a record that is deleted meanwhile.
LINK = SQL(
    """
INSERT INTO {links} ({names})
SELECT {values}
  FROM {items} i
  JOIN {categories} c ON c.id = :new_category_id AND c.locus_tenant = i.locus_tenant
 WHERE i.id = :new_item_id AND i.locus_tenant = :new_locus_tenant
   FOR SHARE
    ON DUPLICATE KEY UPDATE id = {links}.id
""",
    oceanbase="""
INSERT INTO {links} ({names})
SELECT {clock_values}
  FROM {items} i
  JOIN {categories} c ON c.id = :new_category_id AND c.locus_tenant = i.locus_tenant
  JOIN (SELECT MAX(UTC_TIMESTAMP(6)) AS now) AS clock
 WHERE i.id = :new_item_id AND i.locus_tenant = :new_locus_tenant
   FOR SHARE
    ON DUPLICATE KEY UPDATE id = {links}.id
""",
)


UPDATE = SQL("""
UPDATE {table} r
   SET {assignments}
       r.locus_seals = JSON_MERGE_PATCH(r.locus_seals, CAST(:seals AS JSON)),
       r.updated_at = GREATEST(UTC_TIMESTAMP(6), r.updated_at + INTERVAL 1 MICROSECOND)
 WHERE r.id = :id AND r.locus_tenant = :tenant
""")

#: Undoes the batch, with error 3141, unless the statement before changed a row.
GUARD_CHANGED = SQL("SELECT CAST(IF(ROW_COUNT() = 1, '1', '') AS JSON)")

#: Undoes the batch unless the resource exists; the lock keeps it until the end of the transaction.
GUARD_RESOURCE = SQL("""
SELECT CAST(IF(COUNT(*) = 1, '1', '') AS JSON)
  FROM {resources} r
 WHERE r.id = :id AND r.locus_tenant = :tenant
   FOR SHARE
""")

DELETE = SQL("DELETE r FROM {table} r WHERE r.locus_tenant = :tenant AND r.id IN (:ids){where}")
LOCK = Select("SELECT r.id FROM {table} r WHERE r.locus_tenant = :tenant AND r.id IN (:ids){where} FOR UPDATE", IdRow)
UNLINK = SQL("DELETE FROM {links} WHERE locus_tenant = :tenant AND item_id = :item_id AND category_id = :category_id")

#: Undoes the batch if a record with one of these ids belongs to another tenant.
GUARD_OWN = SQL("""
SELECT CAST(IF(COUNT(*) = 0, '1', '') AS JSON)
  FROM {table} r
 WHERE r.locus_tenant <> :tenant AND r.id IN (:ids)
""")

#: Copies the hashes in the ``extra`` of items to their column. IGNORE skips items that the unique key refuses.
RESTORE_HASHES = SQL("""
UPDATE IGNORE {items} r
   SET r.locus_hash = JSON_UNQUOTE(JSON_EXTRACT(r.extra, '$.content_hash'))
 WHERE r.locus_tenant = :tenant AND r.locus_hash IS NULL AND r.id IN (:ids)
""")


class MarkRow(NamedTuple):
    """The values by which an item with an embedding is ranked.

    Args:
        id: The item's id.
        mark: The mark of the embedding; None if another program wrote the row.
        count_json: JSON text of ``extra.reinforcement_count``, if it was requested.
        reinforced_at_json: JSON text of ``extra.last_reinforced_at``, if it was requested.
    """

    id: str
    mark: int | None
    count_json: str | None
    reinforced_at_json: str | None


class FingerprintRow(NamedTuple):
    """The number of embeddings, and the XOR and the sum of their marks."""

    total: int
    xor: Decimal | int
    sum: Decimal | int


class TimeRow(NamedTuple):
    """The server's time, in UTC."""

    now: datetime


#: The values by which items with an embedding are ranked; without `SALIENCE`, the last two are NULL.
MARKS = Select(
    """
SELECT r.id, r.locus_mark, {salience}
  FROM {items} r
 WHERE r.locus_tenant = :tenant AND r.locus_dims = :dims{where}
""",
    MarkRow,
)
SALIENCE = {"salience": "JSON_EXTRACT(r.extra, '$.reinforcement_count'), JSON_EXTRACT(r.extra, '$.last_reinforced_at')"}
NO_SALIENCE = {"salience": "NULL, NULL"}

FINGERPRINT = Select(
    """
SELECT COUNT(*), COALESCE(BIT_XOR(r.locus_mark), 0), COALESCE(SUM(r.locus_mark), 0)
  FROM {items} r
 WHERE r.locus_tenant = :tenant AND r.locus_dims = :dims{where}
""",
    FingerprintRow,
)

#: Embeddings of items, with the columns of `MARKS`, but the id first.
_ITEM_EMBEDDINGS = """
SELECT {embedding_columns}, r.locus_mark, {salience}
  FROM {items} r
 WHERE r.locus_tenant = :tenant AND r.locus_dims = :dims{where}
"""
ITEM_EMBEDDINGS = SQL(
    _ITEM_EMBEDDINGS, oceanbase=_ITEM_EMBEDDINGS.replace("{embedding_columns}", "{text_embedding_columns}")
)

_RESOURCE_EMBEDDINGS = """
SELECT {embedding_columns}
  FROM {resources} r
 WHERE r.locus_tenant = :tenant AND LENGTH(r.embedding) = 4 * :dims{where}
"""
RESOURCE_EMBEDDINGS = SQL(
    _RESOURCE_EMBEDDINGS, oceanbase=_RESOURCE_EMBEDDINGS.replace("{embedding_columns}", "{text_embedding_columns}")
)
SERVER_TIME = Select(f"SELECT {NOW}", TimeRow)
