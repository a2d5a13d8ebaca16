"""Statements about the records of memU's metadata store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ..checksums import checksum_sql
from ..statement import Param, Statement
from ..template import Statements
from .conditions import Condition
from .tables import CORE

#: At most this many ids stand in one statement.
IDS_PER_STATEMENT = 500

#: So many tokens are forgotten at a time.
TOKENS_AT_ONCE = 1_000

#: Always another time than the one before, so that an update that finds its row always changes it.
NEXT = "GREATEST(UTC_TIMESTAMP(6), {0}.updated_at + INTERVAL 1 MICROSECOND)"

#: The format of the times in ``extra``, as memU writes them.
ISO_FORMAT = "%Y-%m-%dT%H:%i:%s.%f+00:00"

LIST = "SELECT <columns>\n  FROM <table> r\n WHERE r.locus_tenant = %s<where>"
# The checksum, which comes last, is of the columns as they are stored.
INSERT = "INSERT INTO <table> (<names>, locus_checksum)\nVALUES (<values>, <sealed>)"

# The record stays as it is.
KEEP = "\n    ON DUPLICATE KEY UPDATE id = <table>.id"

# One more, at a time of the server's clock. What is no whole number counts as memU's default, 1.
REINFORCE = """ AS fresh
    ON DUPLICATE KEY UPDATE
       locus_checksum = {items}.locus_checksum ^ <sealed>,
       extra = JSON_SET({items}.extra, '$.reinforcement_count',
                        IF(JSON_TYPE(JSON_EXTRACT({items}.extra, '$.reinforcement_count')) COLLATE utf8mb4_bin
                             IN ('INTEGER', 'UNSIGNED INTEGER'),
                           CAST(JSON_EXTRACT({items}.extra, '$.reinforcement_count') AS SIGNED), 1) + 1,
                        '$.last_reinforced_at', DATE_FORMAT(UTC_TIMESTAMP(6), %s)),
       updated_at = {NEXT_ITEMS},
       locus_checksum = {items}.locus_checksum ^ <sealed>"""

# What the category lacked, it gets. The assignments run left to right, so the time comes first.
COMPLETE = """ AS fresh
    ON DUPLICATE KEY UPDATE
       locus_checksum = {categories}.locus_checksum ^ <sealed>,
       updated_at  = IF({categories}.embedding IS NULL OR {categories}.description = '', {NEXT_CATEGORIES},
                        {categories}.updated_at),
       embedding   = COALESCE({categories}.embedding, fresh.embedding),
       description = IF({categories}.description = '', fresh.description, {categories}.description),
       locus_checksum = {categories}.locus_checksum ^ <sealed>"""

# Only an item and a category that are there, and stay until this is committed.
LINK = """
INSERT INTO {links} (id, created_at, updated_at, item_id, category_id, locus_tenant<names>)
SELECT %s, COALESCE(%s, UTC_TIMESTAMP(6)), COALESCE(%s, UTC_TIMESTAMP(6)), i.id, c.id, i.locus_tenant<values>
  FROM {items} i
  JOIN {categories} c ON c.id = %s AND c.locus_tenant = i.locus_tenant
 WHERE i.id = %s AND i.locus_tenant = %s
   FOR SHARE
    ON DUPLICATE KEY UPDATE id = {links}.id
"""

# The assignments run left to right: at first the checksum becomes 0, or what is wrong with it.
UPDATE = """
UPDATE <table> r
   SET r.locus_checksum = r.locus_checksum ^ <sealed>,
       <assignments>,
       r.updated_at = <next>,
       r.locus_checksum = r.locus_checksum ^ <sealed>
 WHERE r.id = %s AND r.locus_tenant = %s
"""

# A relation gets its checksum when it has been written; one that was here keeps its own.
SEAL_LINK = """
UPDATE {links} r SET r.locus_checksum = <sealed> WHERE r.id = %s AND r.locus_tenant = %s AND r.locus_checksum IS NULL
"""

# Undo the batch, with error 3141, unless the statement before changed a row.
GUARD_CHANGED = "SELECT CAST(IF(ROW_COUNT() = 1, '1', '') AS JSON)"

# The same unless the resource is there; it stays until the end of the transaction.
GUARD_RESOURCE = """
SELECT CAST(IF((SELECT COUNT(*) FROM {resources} r WHERE r.id = %s AND r.locus_tenant = %s FOR SHARE) = 1, '1', '')
            AS JSON)
"""

DELETE = "DELETE r FROM <table> r WHERE r.locus_tenant = %s AND r.id IN (<ids>)<where>"
LOCK = "SELECT r.id FROM <table> r WHERE r.locus_tenant = %s AND r.id IN (<ids>)<where> FOR UPDATE"
UNLINK = "DELETE FROM {links} WHERE locus_tenant = %s AND item_id = %s AND category_id = %s"

# The resource, if it is there.
SAME_TENANT = "(SELECT f.id FROM {resources} f WHERE f.id = %s AND f.locus_tenant = %s)"

GUARD_THERE = """SELECT CAST(IF((SELECT COUNT(*) FROM <table> r WHERE r.locus_tenant = %s AND r.id IN (<ids>)) = %s,
               '1', '') AS JSON)"""

# IGNORE passes over those that the unique key refuses.
RESTORE_HASHES = """
UPDATE IGNORE {items} r
   SET r.locus_hash = JSON_UNQUOTE(JSON_EXTRACT(r.extra, '$.content_hash'))
 WHERE r.locus_tenant = %s AND r.locus_hash IS NULL AND r.id IN (<ids>)
"""

# What ranks items.
MARKS = """
SELECT r.id, r.locus_mark, <embedding>, <salience>
  FROM {items} r
 WHERE r.locus_tenant = %s AND r.locus_dims = %s<sound><where>
"""
SALIENCE = "JSON_EXTRACT(r.extra, '$.reinforcement_count'), JSON_EXTRACT(r.extra, '$.last_reinforced_at')"
FINGERPRINT = """
SELECT COUNT(*), COALESCE(BIT_XOR(r.locus_mark), 0), COALESCE(SUM(r.locus_mark), 0)
  FROM {items} r
 WHERE r.locus_tenant = %s AND r.locus_dims = %s<where>
"""
EMBEDDINGS = """
SELECT r.id, r.locus_mark, r.embedding
  FROM {items} r
 WHERE r.locus_tenant = %s AND r.locus_dims = %s AND r.id IN (<ids>) AND <sound>
"""
NOW = "SELECT UTC_TIMESTAMP(6)"

SETTLE = "INSERT INTO {settled} (token, settled_at) VALUES (%s, UTC_TIMESTAMP(6))"
LANDED = "SELECT s.token FROM {settled} s WHERE s.token = %s"

# Relies on the index age.
FORGET_SETTLED = (
    "DELETE FROM {settled} WHERE settled_at < UTC_TIMESTAMP(6) - INTERVAL {KEPT_S} SECOND LIMIT {TOKENS_AT_ONCE}"
)
COUNT_SETTLED = "SELECT COUNT(*) FROM {settled}"

#: How a column is written that is not just its parameter. A time that is None is the server's.
_WRITTEN = {
    "created_at": "COALESCE(%s, UTC_TIMESTAMP(6))",
    "updated_at": "COALESCE(%s, UTC_TIMESTAMP(6))",
    "extra": "CAST(%s AS JSON)",
}


class MemuStatements(Statements):
    """Reading and writing records.

    Args:
        tables: The quoted names, by their role.
        scope: The columns of the user model's fields.
    """

    def __init__(self, tables: Mapping[str, str], scope: Sequence[str]) -> None:
        super().__init__(tables)
        self._tables = tables
        self._names["TOKENS_AT_ONCE"] = str(TOKENS_AT_ONCE)
        self._names["NEXT_ITEMS"] = NEXT.format(tables["items"])
        self._names["NEXT_CATEGORIES"] = NEXT.format(tables["categories"])
        self._scope = tuple(scope)
        #: The columns of records by role, in the order in which they are read.
        self.columns = {role: (*core, *scope) for role, core in CORE.items()}

    def list(self, role: str, tenant: str, condition: Condition) -> Statement:
        """The records that fulfil a condition, whole, each with whether its checksum is right."""
        columns = ", ".join(f"r.`{name}`" for name in self.columns[role])
        return self._list(f"{columns}, {self._sound(role)}", role, tenant, condition)

    def ids(self, role: str, tenant: str) -> Statement:
        """The ids of all records, and when they were made."""
        return self._list("r.id, r.created_at", role, tenant, Condition())

    def count(self, role: str, tenant: str) -> Statement:
        """How many records there are."""
        return self._list("COUNT(*)", role, tenant, Condition())

    def insert(self, role: str, values: Mapping[str, Param]) -> Statement:
        """Write a new record; its times are the server's where they are None."""
        return Statement(self._insert(role, values), tuple(values.values()))

    def insert_or_keep(self, role: str, values: Mapping[str, Param]) -> Statement:
        """Write a record unless there is one like it."""
        text = self._insert(role, values) + KEEP.replace("<table>", self._tables[role])
        return Statement(text, tuple(values.values()))

    def insert_or_reinforce(self, values: Mapping[str, Param]) -> Statement:
        """Write an item, or reinforce the one of its scope with its hash."""
        first = "JSON_SET(CAST(%s AS JSON), '$.last_reinforced_at', DATE_FORMAT(UTC_TIMESTAMP(6), %s))"
        text = self._insert("items", values, extra=first) + self._text(
            REINFORCE.replace("<sealed>", self._sealed("items", "{items}."))
        )
        params: list[Param] = []
        for name, value in values.items():
            params += (value, ISO_FORMAT) if name == "extra" else (value,)
        return Statement(text, (*params, ISO_FORMAT))

    def insert_or_complete(self, values: Mapping[str, Param]) -> Statement:
        """Write a category, or give the one of its scope and name what it lacks."""
        completing = COMPLETE.replace("<sealed>", self._sealed("categories", "{categories}."))
        return Statement(self._insert("categories", values) + self._text(completing), tuple(values.values()))

    def link(self, values: Mapping[str, Param], scope: Sequence[str]) -> tuple[Statement, Statement]:
        """Link an item with a category, if both are there and are not linked yet.

        Args:
            values: The columns of the relation.
            scope: Those of them that are of its scope.
        """
        text = LINK.replace("<names>", "".join(f", `{name}`" for name in scope))
        params = [values[name] for name in ("id", "created_at", "updated_at", *scope)]
        link = Statement(
            self._text(text.replace("<values>", ", %s" * len(scope))),
            (*params, values["category_id"], values["item_id"], values["locus_tenant"]),
        )
        seal = SEAL_LINK.replace("<sealed>", self._sealed("links", "r."))
        return link, Statement(self._text(seal), (values["id"], values["locus_tenant"]))

    def restore_item(self, values: Mapping[str, Param]) -> Statement:
        """Write an item as it is unless its id is there; without its resource, if that is not there."""
        text = self._insert("items", values, resource_id=self._text(SAME_TENANT)) + KEEP
        params: list[Param] = []
        for name, value in values.items():
            params += (value, values["locus_tenant"]) if name == "resource_id" else (value,)
        return Statement(text.replace("<table>", self._tables["items"]), tuple(params))

    def guard_there(self, role: str, tenant: str, ids: Sequence[str]) -> Statement:
        """Undo the batch unless all of these records are there, and this tenant's."""
        text = GUARD_THERE.replace("<table>", self._tables[role]).replace("<ids>", ", ".join(["%s"] * len(ids)))
        return Statement(text, (tenant, *ids, len(ids)))

    def restore_hashes(self, tenant: str, ids: Sequence[str]) -> tuple[Statement, ...]:
        """Have items be found by the hashes in their ``extra``, but for those of which the scope has one already."""
        return self._over_ids(self._text(RESTORE_HASHES), (tenant,), ids)

    def update(
        self,
        role: str,
        tenant: str,
        id: str,
        values: Mapping[str, Param],
        merged: Mapping[str, str] | None = None,
    ) -> tuple[Statement, Statement]:
        """Change a record, or undo the batch.

        Args:
            role: Of what kind it is.
            tenant: Whose.
            id: Which.
            values: Columns to set.
            merged: JSON texts to set in ``extra``, by their keys; all others stay.
        """
        assignments = [f"r.`{name}` = %s" for name in values]
        params: list[Param] = [*values.values()]
        if merged:
            assignments.append("r.extra = JSON_SET(r.extra" + ", %s, CAST(%s AS JSON)" * len(merged) + ")")
            params += [part for key, text in merged.items() for part in (_path(key), text)]
        table = self._tables[role]
        text = UPDATE.replace("<table>", table)
        if assignments:
            text = text.replace("<assignments>", ", ".join(assignments))
        else:
            text = text.replace("<assignments>,\n       ", "")
        text = text.replace("<sealed>", self._sealed(role, "r."))
        return Statement(text.replace("<next>", NEXT.format("r")), (*params, id, tenant)), Statement(GUARD_CHANGED)

    def guard_resource(self, tenant: str, id: str) -> Statement:
        """Undo the batch unless there is this resource."""
        return Statement(self._text(GUARD_RESOURCE), (id, tenant))

    def lock(self, role: str, tenant: str, ids: Sequence[str], condition: Condition) -> tuple[Statement, ...]:
        """Those of these records that fulfil a condition, which then nobody else changes or removes."""
        text = LOCK.replace("<table>", self._tables[role]).replace("<where>", condition.sql)
        return self._over_ids(text, (tenant,), ids, condition.params)

    def delete(
        self, role: str, tenant: str, ids: Sequence[str], condition: Condition | None = None
    ) -> tuple[Statement, ...]:
        """Remove records; of these, those that fulfil a condition."""
        condition = condition or Condition()
        text = DELETE.replace("<table>", self._tables[role]).replace("<where>", condition.sql)
        return self._over_ids(text, (tenant,), ids, condition.params)

    def unlink(self, tenant: str, item_id: str, category_id: str) -> Statement:
        """Remove the link of an item with a category."""
        return Statement(self._text(UNLINK), (tenant, item_id, category_id))

    def marks(self, tenant: str, dims: int, condition: Condition, *, embeddings: bool, salience: bool) -> Statement:
        """Id, mark, embedding, count and time of reinforcement of the items with an embedding of this width.

        Of content, only that of items whose checksum is right.

        Args:
            tenant: Whose.
            dims: The width.
            condition: Which items.
            embeddings: Whether embeddings are wanted; else they are NULL.
            salience: Whether count and time are.
        """
        text = MARKS.replace("<embedding>", "r.embedding" if embeddings else "NULL")
        text = self._text(text.replace("<salience>", SALIENCE if salience else "NULL, NULL"))
        text = text.replace("<sound>", f" AND {self._sound('items')}" if embeddings or salience else "")
        return Statement(text.replace("<where>", condition.sql), (tenant, dims, *condition.params))

    def fingerprint(self, tenant: str, dims: int, condition: Condition) -> Statement:
        """How many items have an embedding of this width, and all of their marks XORed and added up."""
        text = self._text(FINGERPRINT).replace("<where>", condition.sql)
        return Statement(text, (tenant, dims, *condition.params))

    def embeddings(self, tenant: str, dims: int, ids: Sequence[str]) -> tuple[Statement, ...]:
        """Id, mark and embedding of items."""
        text = self._text(EMBEDDINGS).replace("<sound>", self._sound("items"))
        return self._over_ids(text, (tenant, dims), ids)

    def now(self) -> Statement:
        """The server's clock."""
        return Statement(NOW)

    def settle(self, token: bytes) -> Statement:
        """Leave the token of a write."""
        return Statement(self._text(SETTLE), (token,))

    def landed(self, token: bytes) -> Statement:
        """Whether a write was carried out."""
        return Statement(self._text(LANDED), (token,))

    def count_settled(self) -> Statement:
        """How many tokens there are."""
        return Statement(self._text(COUNT_SETTLED))

    def forget_settled(self) -> Statement:
        """Remove some of the tokens that nobody will ask for any more."""
        return Statement(self._text(FORGET_SETTLED))

    def _list(self, columns: str, role: str, tenant: str, condition: Condition) -> Statement:
        text = LIST.replace("<columns>", columns).replace("<table>", self._tables[role])
        return Statement(text.replace("<where>", condition.sql), (tenant, *condition.params))

    def _insert(self, role: str, values: Mapping[str, Param], **written: str) -> str:
        forms = {**_WRITTEN, **written}
        text = INSERT.replace("<table>", self._tables[role]).replace("<sealed>", self._sealed(role, ""))
        text = text.replace("<names>", ", ".join(f"`{name}`" for name in values))
        return text.replace("<values>", ", ".join(forms.get(name, "%s") for name in values))

    def _sealed(self, role: str, alias: str) -> str:
        """The checksum that a row must have, of its columns as they are where this stands; see `tables`."""
        columns = (f"{alias}`{name}`" for name in CORE[role])
        return checksum_sql((f"{alias}locus_tenant",), tuple(columns))

    def _sound(self, role: str) -> str:
        """Whether the checksum of a row is right."""
        return f"r.locus_checksum = {self._sealed(role, 'r.')}"

    def _over_ids(
        self, template: str, first: tuple[Param, ...], ids: Sequence[str], last: tuple[Param, ...] = ()
    ) -> tuple[Statement, ...]:
        return tuple(
            Statement(template.replace("<ids>", ", ".join(["%s"] * len(some))), (*first, *some, *last))
            for some in (ids[start : start + IDS_PER_STATEMENT] for start in range(0, len(ids), IDS_PER_STATEMENT))
        )


def _path(key: str) -> str:
    """The JSON path of a key of an object."""
    return "$." + json.dumps(key, ensure_ascii=False)
