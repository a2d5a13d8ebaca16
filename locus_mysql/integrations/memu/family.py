"""The family of memU's records: `MEMU`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from ...config import MySQLConfig
from ...dialect import Schema
from ...dialect.sql import SQL, Select
from ...dialect.statement import like
from ...engine.operation import Batch, Operation, fetch
from ...families.family import Family, Maintains
from ...records import ledger
from ...records.maintenance import AT_ONCE, COUNTED_ROWS, Count, Counts, Owned, Removed, Usage
from ...records.tables import Row, Tables
from .statements import COUNT, Records, memu_dialect
from .tables import CORE, memu_schema, own_prefix

#: The fields of memU's own user model.
DEFAULT_FIELDS = ("user_id",)


class MemuFamily(Family):
    """The family of memU's records, of one user model or of any.

    Args:
        fields: The fields of memU's user model, each of which is a column; see `scope`. Without them, the schema
            fits tables of any user model, and cannot create them.
    """

    name = "memu"
    title = "memU"
    users = "MemuDatabase"
    holds_threads = False
    unit = "record"
    on_request = True

    def __init__(self, fields: Sequence[str] = ()) -> None:
        self._fields = fields

    def with_fields(self, fields: Sequence[str]) -> MemuFamily:
        """Return the family with other columns."""
        return MemuFamily(fields)

    def schema(self, config: MySQLConfig) -> Schema:
        """Return the tables and their layout version."""
        prefix = own_prefix(config).table_prefix
        if not self._fields:
            return memu_schema(prefix, ())
        from .declaration import tables_of

        return tables_of(config, self._fields)[0].schema

    def maintenance(self, config: MySQLConfig) -> Maintains:
        """Return the object that counts and removes rows, of any tenant."""
        return MemuMaintenance(config)

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`. Without fields, those of memU's own user model."""
        from .declaration import tables_of

        return tables_of(config, self._fields or DEFAULT_FIELDS)


MEMU = MemuFamily()


class TenantRow(NamedTuple):
    """The name of a tenant."""

    tenant: str


class NamedRow(NamedTuple):
    """A record and its name."""

    id: str
    name: str


class FieldRow(NamedTuple):
    """The name of a column."""

    name: str


class UsedRow(NamedTuple):
    """A number of records, and the time of the last write among them."""

    number: int
    written_at: datetime | None


#: Relies on the indexes of the user model's fields, which begin with the tenant.
TENANTS = Select(
    """
SELECT DISTINCT r.locus_tenant FROM {table} r
 WHERE r.locus_tenant > :after
 ORDER BY r.locus_tenant
 LIMIT :limit
""",
    TenantRow,
)
USED = Select(
    """
SELECT COUNT(*), MAX(r.updated_at)
  FROM (SELECT updated_at FROM {table} r WHERE r.locus_tenant = :tenant LIMIT :limit) AS r
""",
    UsedRow,
)

#: The columns of the user model's fields: those that are neither memU's nor begin with ``locus_``.
FIELDS = Select(
    """
SELECT c.COLUMN_NAME FROM information_schema.COLUMNS c
 WHERE c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME = :name AND c.COLUMN_NAME NOT IN (:core)
   AND LEFT(c.COLUMN_NAME, 6) <> 'locus_'
 ORDER BY c.ORDINAL_POSITION
""",
    FieldRow,
)
NAMED = Select(
    """
SELECT r.id, CONCAT_WS('/', {fields}{kind}, r.id)
  FROM {table} r
 WHERE r.locus_tenant = :tenant AND r.id > :after
   AND CONCAT_WS('/', {fields}{kind}, r.id) COLLATE utf8mb4_0900_bin LIKE :pattern
 ORDER BY r.id
 LIMIT :limit
""",
    NamedRow,
)
REMOVE = SQL("DELETE FROM {table} WHERE locus_tenant = :tenant AND id IN (:ids)")


class MemuMaintenance:
    """Counts, lists and removes records of any user model. See `Maintains`.

    The name of a record is the values of the user model's fields, its kind and its id, with ``/`` between them.

    Args:
        config: The options.
    """

    #: The number of records that one transaction removes.
    together = 100

    def __init__(self, config: MySQLConfig) -> None:
        self._sql = memu_dialect(own_prefix(config).table_prefix, ())

    def stored(self, tenant: str) -> Operation[Counts]:
        """Count records of all kinds. One round trip."""
        queries = tuple(Records(self._sql, role, tenant).make(COUNT) for role in CORE)
        results = yield Batch(queries, atomic=False)
        return (Count(sum(row.total for query in queries for row in results.rows(query)), "{record}"),)

    def waste(self, tenant: str, older_than_days: float | None = None) -> Operation[Counts]:
        """Count records of recent writes. One round trip."""
        (recorded,) = yield from fetch(ledger.COUNT_OF_TENANT(self._sql, tenant=tenant))
        return (Count(recorded.tokens, "{record} of recent writes"),)

    def vacuum(self, tenant: str, older_than_days: float = 30) -> Operation[Counts]:
        """Remove records of recent writes that can no longer be repeated, in short transactions; of all tenants."""
        removed = yield from ledger.forget_old_tokens(self._sql)
        return (Count(removed, "{record} of recent writes"),)

    def tenants(self, after: str = "", limit: int = AT_ONCE) -> Operation[list[str]]:
        """Return names of tenants with owners, in their order. One round trip, and one look-up for each name."""
        queries = [TENANTS(self._sql, pieces=_of(role), after=after, limit=limit) for role in CORE]
        results = yield Batch(tuple(queries), atomic=False)
        return sorted({row.tenant for query in queries for row in results.rows(query)})[:limit]

    def usage(self, tenants: Sequence[str]) -> Operation[dict[str, Usage]]:
        """Return what tenants have stored. Reads a bounded number of rows of each, in one round trip."""
        queries = {
            (tenant, role): USED(self._sql, pieces=_of(role), tenant=tenant, limit=COUNTED_ROWS + 1)
            for tenant in tenants
            for role in CORE
        }
        results = yield Batch(tuple(queries.values()), atomic=False)
        found = {}
        for tenant in tenants:
            rows = {role: results.rows(queries[tenant, role])[0] for role in CORE}
            numbers = {self._sql.names[role]: min(row.number, COUNTED_ROWS) for role, row in rows.items()}
            times = [row.written_at for row in rows.values() if row.written_at is not None]
            more = any(row.number > COUNTED_ROWS for row in rows.values())
            found[tenant] = Usage(sum(numbers.values()), numbers, more, max(times, default=None))
        return found

    def claim(self, job: str, holder: int) -> Operation[bool]:
        """See `ledger.claim`."""
        return (yield from ledger.claim(self._sql, job, holder))

    def remove_expired(self, limit: int | None = None, tenant: str | None = None) -> Operation[int]:
        """Return 0: records do not expire."""
        return 0
        yield

    def named(
        self, tenant: str, pattern: str = "*", after: Row | None = None, limit: int = AT_ONCE
    ) -> Operation[list[Owned]]:
        """See `Maintenance.named`. The records of a page are of one kind."""
        core = [*CORE["resources"]]
        found = yield from fetch(FIELDS(self._sql, name=self._sql.names["resources"], core=core))
        fields = "".join(f"r.`{row.name}`, " for row in found if row.name.isidentifier())
        kinds = [*CORE][::-1]  # Relations come first: the server would remove them uncounted with their items.
        for role in kinds if after is None else kinds[kinds.index(after["role"]) :]:
            last = after["id"] if after is not None and after["role"] == role else ""
            pieces = {**_of(role), "fields": fields, "kind": f"'{role}'"}
            page = yield from fetch(
                NAMED(self._sql, pieces=pieces, tenant=tenant, after=last, pattern=like(pattern), limit=limit)
            )
            if page:
                return [Owned({"tenant": tenant, "role": role, "id": row.id}, row.name, live=True) for row in page]
        return []

    def remove(self, owners: Sequence[Owned]) -> Operation[Removed]:
        """Remove some records of one kind and tenant, in one transaction."""
        row, token = owners[0].row, os.urandom(16)
        delete = REMOVE(self._sql, pieces=_of(row["role"]), tenant=row["tenant"], ids=[one.row["id"] for one in owners])
        outcome = ledger.FIND(self._sql, tenant=row["tenant"], token=token)
        results = yield Batch.of(
            delete, ledger.RECORD_AFFECTED(self._sql, tenant=row["tenant"], token=token), outcome_query=outcome
        )
        return Removed(ledger.affected_rows(results, delete, outcome), 0)

    def forget_rest(self, tenant: str, pattern: str = "*") -> Operation[None]:
        """Remove old tokens; records leave nothing else."""
        yield from ledger.forget_old_tokens(self._sql)


def _of(role: str) -> dict[str, str]:
    return {"table": f"{{{role}}}"}
