"""Statements about the records of memU's metadata store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ..checksums import checksum_sql
from ..statement import Param, Query, Statement
from ..template import Statements, fill, placeholders
from ..variants import OCEANBASE
from .record_filters import RecordFilter
from .result_rows import AgeRow, EmbeddingRow, FingerprintRow, IdRow, MarkRow, TimeRow, TotalRow
from .tables import CORE, SHORT_TEXTS, ScopeColumn

#: The maximum number of ids in one statement. A statement with more other parameters than this takes as many ids.
IDS_PER_STATEMENT = 500

#: A time later than the stored one, so that an update that finds its row always counts as a change.
NEXT = "GREATEST(UTC_TIMESTAMP(6), {row}.updated_at + INTERVAL 1 MICROSECOND)"

#: The format of the times in ``extra``, as memU writes them.
ISO_FORMAT = "%Y-%m-%dT%H:%i:%s.%f+00:00"

# The times of a new record besides that of its creation. On OceanBase, each evaluation of the clock gives another time,
# also in one statement, so all times are that of the creation.
UPDATED = "{now}"
OCEANBASE.instead_of(UPDATED, "created_at")

LIST = "SELECT {columns}\n  FROM {table} r\n WHERE r.locus_tenant = %s{where}"
# Text in short columns is binary there; the rows of this statement declare no types by which it would become text.
OCEANBASE.instead_of(LIST, LIST.replace("{columns}", "{as_text}"))
# The checksums come last, as the server computes them from the columns as stored.
INSERT = """
INSERT INTO {table} ({names}, locus_checksum, locus_scope_checksums)
VALUES ({values}, {sealed}, {scope}){then}
"""

# Leave an existing record as it is.
KEEP = "\n    ON DUPLICATE KEY UPDATE id = {table}.id"

# Raise the count by one, with the time of the server's clock. A count that is no integer counts as memU's default, 1.
REINFORCE = """ AS fresh
    ON DUPLICATE KEY UPDATE
       locus_checksum = {items}.locus_checksum ^ {stored},
       extra = JSON_SET({items}.extra, '$.reinforcement_count',
                        IF(JSON_TYPE(JSON_EXTRACT({items}.extra, '$.reinforcement_count')) COLLATE utf8mb4_bin
                             IN ('INTEGER', 'UNSIGNED INTEGER'),
                           CAST(JSON_EXTRACT({items}.extra, '$.reinforcement_count') AS SIGNED), 1) + 1,
                        '$.last_reinforced_at', DATE_FORMAT(UTC_TIMESTAMP(6), %s)),
       updated_at = {next},
       locus_checksum = {items}.locus_checksum ^ {stored}"""

# Fill in an empty embedding or description of an existing category or recall file; else change nothing. The
# assignments run left to right, so the time comes first.
COMPLETE = """ AS fresh
    ON DUPLICATE KEY UPDATE
       locus_checksum = {table}.locus_checksum ^ {stored},
       updated_at  = IF((COALESCE({table}.embedding, '') = '' AND COALESCE(fresh.embedding, '') <> '')
                          OR ({table}.description = '' AND fresh.description <> ''), {next}, {table}.updated_at),
       embedding   = IF(COALESCE({table}.embedding, '') = '' AND COALESCE(fresh.embedding, '') <> '',
                        fresh.embedding, {table}.embedding),
       description = IF({table}.description = '', fresh.description, {table}.description),
       locus_checksum = {table}.locus_checksum ^ {stored}"""

# With an alias of the new row, its values cannot refer to each other, as the checksums do (error 1054).
OCEANBASE.instead_of(REINFORCE, REINFORCE.removeprefix(" AS fresh"))
OCEANBASE.instead_of(
    COMPLETE,
    COMPLETE.removeprefix(" AS fresh")
    .replace("fresh.embedding", "VALUES(embedding)")
    .replace("fresh.description", "VALUES(description)"),
)

# Inserts only if item and category exist; the locks keep them until the transaction is committed. OceanBase takes none
# here, nor in GUARD_RESOURCE; there, the foreign keys refuse a relation to a record that is deleted meanwhile.
LINK = """
INSERT INTO {links} (id, created_at, updated_at, item_id, category_id, locus_tenant{names})
SELECT %s, COALESCE(%s, UTC_TIMESTAMP(6)), COALESCE(%s, UTC_TIMESTAMP(6)), i.id, c.id, i.locus_tenant{values}
  FROM {items} i
  JOIN {categories} c ON c.id = %s AND c.locus_tenant = i.locus_tenant
 WHERE i.id = %s AND i.locus_tenant = %s
   FOR SHARE
    ON DUPLICATE KEY UPDATE id = {links}.id
"""
OCEANBASE.instead_of(
    LINK,
    LINK.replace("UTC_TIMESTAMP(6)", "clock.now").replace(
        " WHERE i.id", "  JOIN (SELECT MAX(UTC_TIMESTAMP(6)) AS now) AS clock\n WHERE i.id"
    ),
)

# The assignments run left to right. The first makes the checksum 0, or its difference to the right one; the last adds
# the checksum of the new columns.
UPDATE = """
UPDATE {table} r
   SET r.locus_checksum = r.locus_checksum ^ {sealed},{assignments}
       r.updated_at = {next},
       r.locus_checksum = r.locus_checksum ^ {sealed}
 WHERE r.id = %s AND r.locus_tenant = %s
"""

# Set the checksums of a relation that was just inserted; one that existed before keeps its own.
SEAL_LINK = """
UPDATE {links} r
   SET r.locus_checksum = {sealed}, r.locus_scope_checksums = {scope}
 WHERE r.id = %s AND r.locus_tenant = %s AND r.locus_checksum IS NULL
"""

# The checksum of a field of the scope; it covers the record's id. NULL if the record has no value in the field.
FIELD_CHECKSUM = "CRC32(CONCAT({alias}id, 0x00, {alias}`{name}`))"

# Whether the checksum of a field is right. A process checks the fields of its own user model.
FIELD_SOUND = "JSON_EXTRACT(r.locus_scope_checksums, '$.{name}') <=> {checksum}"

# Undo the batch, with error 3141, unless the statement before changed a row.
GUARD_CHANGED = "SELECT CAST(IF(ROW_COUNT() = 1, '1', '') AS JSON)"

# Undo the batch unless the resource exists; the lock keeps it until the end of the transaction.
GUARD_RESOURCE = """
SELECT CAST(IF(COUNT(*) = 1, '1', '') AS JSON)
  FROM {resources} r
 WHERE r.id = %s AND r.locus_tenant = %s
   FOR SHARE
"""

DELETE = "DELETE r FROM {table} r WHERE r.locus_tenant = %s AND r.id IN ({ids}){where}"
LOCK = "SELECT r.id FROM {table} r WHERE r.locus_tenant = %s AND r.id IN ({ids}){where} FOR UPDATE"
UNLINK = "DELETE FROM {links} WHERE locus_tenant = %s AND item_id = %s AND category_id = %s"

# The id of the resource, or NULL if it does not exist.
SAME_TENANT = "(SELECT f.id FROM {resources} f WHERE f.id = %s AND f.locus_tenant = %s)"

# Undo the batch if a record with one of these ids belongs to another tenant.
GUARD_OWN = """
SELECT CAST(IF(COUNT(*) = 0, '1', '') AS JSON)
  FROM {table} r
 WHERE r.locus_tenant <> %s AND r.id IN ({ids})
"""

# IGNORE skips items that the unique key refuses.
RESTORE_HASHES = """
UPDATE IGNORE {items} r
   SET r.locus_hash = JSON_UNQUOTE(JSON_EXTRACT(r.extra, '$.content_hash'))
 WHERE r.locus_tenant = %s AND r.locus_hash IS NULL AND r.id IN ({ids})
"""

# The values by which items are ranked.
MARKS = """
SELECT r.id, r.locus_mark, {embedding}, {salience}
  FROM {items} r
 WHERE r.locus_tenant = %s AND r.locus_dims = %s{sound}{where}
"""
SALIENCE = "JSON_EXTRACT(r.extra, '$.reinforcement_count'), JSON_EXTRACT(r.extra, '$.last_reinforced_at')"
FINGERPRINT = """
SELECT COUNT(*), COALESCE(BIT_XOR(r.locus_mark), 0), COALESCE(SUM(r.locus_mark), 0)
  FROM {items} r
 WHERE r.locus_tenant = %s AND r.locus_dims = %s{where}
"""
EMBEDDINGS = """
SELECT r.id, r.locus_mark, r.embedding
  FROM {items} r
 WHERE r.locus_tenant = %s AND r.locus_dims = %s AND r.id IN ({ids}) AND {sound}
"""
# The embeddings of one width of records that have no marks.
WITH_EMBEDDING = """
SELECT r.id, 0, r.embedding
  FROM {table} r
 WHERE r.locus_tenant = %s AND LENGTH(r.embedding) = %s{where}
   AND {sound}
"""
NOW = "SELECT UTC_TIMESTAMP(6)"

#: The expressions of columns whose value is not just their parameter. A time that is None is the server's time.
_WRITTEN = {
    "created_at": "COALESCE(%s, UTC_TIMESTAMP(6))",
    "updated_at": "COALESCE(%s, {updated})",
    "extra": "CAST(%s AS JSON)",
}


class MemuStatements(Statements):
    """Reading and writing records.

    Args:
        pieces: See `Statements`.
        scope: The columns of the user model's fields.
    """

    def __init__(self, pieces: Mapping[str, str], scope: Sequence[ScopeColumn]) -> None:
        super().__init__(pieces)
        self._scope = tuple(column.name for column in scope)
        self._short_texts = SHORT_TEXTS.union(column.name for column in scope if column.type.startswith("VARCHAR"))
        #: The columns of records by role, in the order in which they are read.
        self.columns = {role: (*core, *self._scope) for role, core in CORE.items()}

    def list(self, role: str, tenant: str, condition: RecordFilter) -> Statement:
        """Return the records that match a filter, each with whether its checksums are right."""
        columns = ", ".join(f"r.`{name}`" for name in self.columns[role])
        as_text = ", ".join(
            f"CONVERT(r.`{name}` USING utf8mb4)" if name in self._short_texts else f"r.`{name}`"
            for name in self.columns[role]
        )
        sound = self._sound(role)
        return self._list(f"{columns}, {sound}", role, tenant, condition, as_text=f"{as_text}, {sound}")

    def ids(self, role: str, tenant: str, condition: RecordFilter | None = None) -> Query[AgeRow]:
        """Return the ids of all records, or of those that match a filter, and when they were created."""
        statement = self._list("r.id, r.created_at", role, tenant, condition or RecordFilter())
        return Query(statement.sql, statement.params, row=AgeRow)

    def count(self, role: str, tenant: str) -> Query[TotalRow]:
        """Count the records."""
        statement = self._list("COUNT(*)", role, tenant, RecordFilter())
        return Query(statement.sql, statement.params, row=TotalRow)

    def insert(self, role: str, values: Mapping[str, Param]) -> Statement:
        """Write a new record. Times that are None are read from the server's clock."""
        return Statement(self._insert(role, values), tuple(values.values()))

    def insert_or_keep(self, role: str, values: Mapping[str, Param]) -> Statement:
        """Write a record, unless one with its id or unique key exists."""
        return Statement(self._insert(role, values, KEEP), tuple(values.values()))

    def insert_or_reinforce(self, values: Mapping[str, Param]) -> Statement:
        """Write an item, or reinforce the existing one with its scope and hash."""
        first = "JSON_SET(CAST(%s AS JSON), '$.last_reinforced_at', DATE_FORMAT({updated}, %s))"
        text = self._insert("items", values, REINFORCE, extra=first)
        params: list[Param] = []
        for name, value in values.items():
            params += (value, ISO_FORMAT) if name == "extra" else (value,)
        return Statement(text, (*params, ISO_FORMAT))

    def insert_or_complete(self, role: str, values: Mapping[str, Param]) -> Statement:
        """Write a category or a recall file, or fill in what the existing one with its unique key lacks."""
        return Statement(self._insert(role, values, COMPLETE), tuple(values.values()))

    def link(self, values: Mapping[str, Param], scope: Sequence[str]) -> tuple[Statement, Statement]:
        """Link an item with a category, if both exist and are not linked yet.

        Args:
            values: The columns of the relation.
            scope: The names of the scope's columns.
        """
        text = self._text(LINK, names="".join(f", `{name}`" for name in scope), values=", %s" * len(scope))
        params = [values[name] for name in ("id", "created_at", "updated_at", *scope)]
        link = Statement(
            text,
            (*params, values["category_id"], values["item_id"], values["locus_tenant"]),
        )
        seal = self._text(SEAL_LINK, sealed=self._sealed("links", "r."), scope=self._scope_checksums(values, "r."))
        return link, Statement(seal, (values["id"], values["locus_tenant"]))

    def restore_item(self, values: Mapping[str, Param]) -> Statement:
        """Write an item unless its id exists; without its resource, if that does not exist."""
        text = self._insert("items", values, KEEP, resource_id=SAME_TENANT)
        params: list[Param] = []
        for name, value in values.items():
            params += (value, values["locus_tenant"]) if name == "resource_id" else (value,)
        return Statement(text, tuple(params))

    def guard_own(self, role: str, tenant: str, ids: Sequence[str]) -> Statement:
        """Undo the batch if one of these records belongs to another tenant."""
        text = self._text(GUARD_OWN, table=f"{{{role}}}", ids=placeholders(len(ids)))
        return Statement(text, (tenant, *ids))

    def restore_hashes(self, tenant: str, ids: Sequence[str]) -> tuple[Statement, ...]:
        """Copy the hashes in the ``extra`` of items to their column, unless another item of the scope has the same."""
        return self._over_ids(RESTORE_HASHES, (tenant,), ids)

    def update(
        self,
        role: str,
        tenant: str,
        id: str,
        values: Mapping[str, Param],
        merged: Mapping[str, str] | None = None,
    ) -> tuple[Statement, Statement]:
        """Change a record; undo the batch if it does not exist.

        Args:
            role: The role of the table.
            tenant: The tenant.
            id: The record's id.
            values: The columns to set.
            merged: JSON texts to set in ``extra``, by key; its other keys stay.
        """
        assignments = [f"r.`{name}` = %s" for name in values]
        params: list[Param] = [*values.values()]
        if merged:
            assignments.append("r.extra = JSON_SET(r.extra" + ", %s, CAST(%s AS JSON)" * len(merged) + ")")
            params += [part for key, text in merged.items() for part in (_path(key), text)]
        text = self._text(
            UPDATE,
            table=f"{{{role}}}",
            assignments="".join(f"\n       {assignment}," for assignment in assignments),
            sealed=self._sealed(role, "r."),
            next=NEXT,
            row="r",
        )
        return Statement(text, (*params, id, tenant)), Statement(GUARD_CHANGED)

    def guard_resource(self, tenant: str, id: str) -> Statement:
        """Undo the batch unless a resource exists."""
        return Statement(self._text(GUARD_RESOURCE), (id, tenant))

    def lock(self, role: str, tenant: str, ids: Sequence[str], condition: RecordFilter) -> tuple[Query[IdRow], ...]:
        """Lock the records that match a filter, until the end of the transaction; returns their ids."""
        locks = self._over_ids(LOCK, (tenant,), ids, condition.params, table=f"{{{role}}}", where=condition.sql)
        return tuple(Query(lock.sql, lock.params, row=IdRow) for lock in locks)

    def delete(
        self, role: str, tenant: str, ids: Sequence[str], condition: RecordFilter | None = None
    ) -> tuple[Statement, ...]:
        """Delete the records that match a filter."""
        condition = condition or RecordFilter()
        return self._over_ids(DELETE, (tenant,), ids, condition.params, table=f"{{{role}}}", where=condition.sql)

    def unlink(self, tenant: str, item_id: str, category_id: str) -> Statement:
        """Delete the link of an item with a category."""
        return Statement(self._text(UNLINK), (tenant, item_id, category_id))

    def marks(
        self, tenant: str, dims: int, condition: RecordFilter, *, embeddings: bool, salience: bool
    ) -> Query[MarkRow]:
        """Return the values by which the items with an embedding of this width are ranked.

        If embeddings, counts or times are read, items whose checksums are wrong are left out.

        Args:
            tenant: The tenant.
            dims: The width.
            condition: The filter that the items match.
            embeddings: Whether to read embeddings.
            salience: Whether to read count and time of the last reinforcement.
        """
        text = self._text(
            MARKS,
            embedding="r.embedding" if embeddings else "NULL",
            salience=SALIENCE if salience else "NULL, NULL",
            sound=f" AND {self._sound('items')}" if embeddings or salience else "",
            where=condition.sql,
        )
        return Query(text, (tenant, dims, *condition.params), row=MarkRow)

    def fingerprint(self, tenant: str, dims: int, condition: RecordFilter) -> Query[FingerprintRow]:
        """Return the number of items with an embedding of this width, and the XOR and the sum of their marks."""
        text = self._text(FINGERPRINT, where=condition.sql)
        return Query(text, (tenant, dims, *condition.params), row=FingerprintRow)

    def embeddings(self, tenant: str, dims: int, ids: Sequence[str]) -> tuple[Query[EmbeddingRow], ...]:
        """Return the embeddings of some items, with their marks."""
        statements = self._over_ids(EMBEDDINGS, (tenant, dims), ids, sound=self._sound("items"))
        return tuple(Query(one.sql, one.params, row=EmbeddingRow) for one in statements)

    def with_embedding(self, role: str, tenant: str, dims: int, condition: RecordFilter) -> Query[EmbeddingRow]:
        """Return the embeddings of this width of the records that match a filter, without damaged records."""
        text = self._text(WITH_EMBEDDING, table=f"{{{role}}}", where=condition.sql, sound=self._sound(role))
        return Query(text, (tenant, 4 * dims, *condition.params), row=EmbeddingRow)

    def now(self) -> Query[TimeRow]:
        """Return the server's time."""
        return Query(NOW, row=TimeRow)

    def _list(self, columns: str, role: str, tenant: str, condition: RecordFilter, as_text: str = "") -> Statement:
        text = self._text(LIST, columns=columns, as_text=as_text or columns, table=f"{{{role}}}", where=condition.sql)
        return Statement(text, (tenant, *condition.params))

    def _insert(self, role: str, values: Mapping[str, Param], then: str = "", **written: str) -> str:
        """The text of an insert.

        Args:
            role: The role of the table.
            values: The columns.
            then: A clause to append; in it, ``{stored}`` is the right checksum of the stored row.
            written: The expressions of columns whose value is not just their parameter.
        """
        forms = {**_WRITTEN, **written}
        return self._text(
            INSERT,
            table=f"{{{role}}}",
            names=", ".join(f"`{name}`" for name in values),
            values=", ".join(forms.get(name, "%s") for name in values),
            sealed=self._sealed(role, ""),
            scope=self._scope_checksums(values, ""),
            then=then,
            stored=self._sealed(role, "{table}."),
            next=NEXT,
            row="{table}",
            updated=UPDATED,
            now="UTC_TIMESTAMP(6)",
        )

    def _sealed(self, role: str, alias: str) -> str:
        """Return the expression of the right checksum of a row, from its columns; see `tables`."""
        columns = (f"{alias}`{name}`" for name in CORE[role])
        return checksum_sql((f"{alias}locus_tenant",), tuple(columns))

    def _scope_checksums(self, values: Mapping[str, Param], alias: str) -> str:
        """Return the expression of the checksums of the scope's fields that have a value, as JSON by name."""
        given = [name for name in self._scope if values[name] is not None]
        return f"JSON_OBJECT({', '.join(f'{name!r}, {_field_checksum(name, alias)}' for name in given)})"

    def _sound(self, role: str) -> str:
        """Return the condition that the checksums of a row are right."""
        row = f"r.locus_checksum = {self._sealed(role, 'r.')}"
        fields = [fill(FIELD_SOUND, {"name": name, "checksum": _field_checksum(name, "r.")}) for name in self._scope]
        return "\n   AND ".join([row, *fields])

    def _over_ids(
        self,
        template: str,
        first: tuple[Param, ...],
        ids: Sequence[str],
        last: tuple[Param, ...] = (),
        **pieces: str,
    ) -> tuple[Statement, ...]:
        """Return statements about ids, each for a part of the ids.

        A part has at least as many ids as the statement has other parameters, so the length of all statements together
        is linear in the number of ids and parameters.
        """
        at_once = max(IDS_PER_STATEMENT, len(last))
        return tuple(
            Statement(self._text(template, ids=placeholders(len(some)), **pieces), (*first, *some, *last))
            for some in (ids[start : start + at_once] for start in range(0, len(ids), at_once))
        )


def _field_checksum(name: str, alias: str) -> str:
    return fill(FIELD_CHECKSUM, {"name": name, "alias": alias})


def _path(key: str) -> str:
    """Return the JSON path of a key of an object."""
    return "$." + json.dumps(key, ensure_ascii=False)
