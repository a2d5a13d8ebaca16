"""The family of memU's records: `MEMU`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ...config import MySQLConfig
from ...dialect import Schema
from ...dialect.sql import Select
from ...engine.operation import Operation, fetch, gather
from ...families.family import Family
from ...records.maintenance import AT_ONCE, Count, Counts, Maintenance, Owned, Removed, Usage
from ...records.tables import Row, Tables
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

    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """Return the object that counts and removes rows, of any tenant."""
        return MemuMaintenance(config)

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`. Without fields, those of memU's own user model."""
        from .declaration import tables_of

        return tables_of(config, self._fields or DEFAULT_FIELDS)


MEMU = MemuFamily()


class FieldRow(NamedTuple):
    """The name of a column."""

    name: str


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


class MemuMaintenance(Maintenance):
    """Counts, lists and removes records of all kinds and of any user model.

    The name of a record is the values of the user model's fields, its kind and its id, with ``/`` between them.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        from .declaration import tables_of

        kinds = tables_of(config, ())
        super().__init__(kinds[0])
        self._kinds = {one.owner.role: Maintenance(one) for one in kinds}

    def stored(self, tenant: str) -> Operation[Counts]:
        """Count records of all kinds. One round trip."""
        found = yield from gather([one.stored(tenant) for one in self._kinds.values()])
        return (Count(sum(count.number for (count,) in found), "{record}"),)

    def waste(self, tenant: str, older_than_days: float | None = None) -> Operation[Counts]:
        """Count records of recent writes; those of memU do not expire."""
        return (yield from super().waste(tenant))[-1:]

    def vacuum(self, tenant: str, older_than_days: float = 30) -> Operation[Counts]:
        """Remove records of recent writes that can no longer be repeated, in short transactions; of all tenants."""
        return (yield from super().vacuum(tenant, older_than_days))[-1:]

    def tenants(self, after: str = "", limit: int = AT_ONCE) -> Operation[list[str]]:
        """Return names of tenants with records, in their order. One round trip."""
        found = yield from gather([one.tenants(after, limit) for one in self._kinds.values()])
        return sorted({name for names in found for name in names})[:limit]

    def usage(self, tenants: Sequence[str]) -> Operation[dict[str, Usage]]:
        """Return what tenants have stored. Reads a bounded number of rows of each, in one round trip."""
        found = yield from gather([one.usage(tenants) for one in self._kinds.values()])
        return {tenant: _together([kind[tenant] for kind in found]) for tenant in tenants}

    def named(
        self, tenant: str, pattern: str = "*", after: Row | None = None, limit: int = AT_ONCE
    ) -> Operation[list[Owned]]:
        """See `Maintenance.named`. The records of a page are of one kind."""
        core = [*CORE["resources"]]
        found = yield from fetch(FIELDS(self._sql.dialect, name=self.tables.names["resources"], core=core))
        fields = "".join(f"o.`{row.name}`, " for row in found if row.name.isidentifier())
        roles = [*self._kinds][::-1]  # Relations come first: the server would remove them uncounted with their items.
        for role in roles if after is None else roles[roles.index(after["role"]) :]:
            tables = self._kinds[role].tables
            name = f"CONCAT_WS('/', {fields}'{role}', o.id) COLLATE utf8mb4_0900_bin"
            kind = Maintenance(replace(tables, owner=replace(tables.owner, name=name)))
            last = after if after is not None and after["role"] == role else None
            if page := (yield from kind.named(tenant, pattern, last, limit)):
                return [one._replace(row={**one.row, "role": role}) for one in page]
        return []

    def remove(self, owners: Sequence[Owned]) -> Operation[Removed]:
        """Remove some records of one kind and tenant, in one transaction."""
        return (yield from self._kinds[owners[0].row["role"]].remove(owners))


def _together(usages: Sequence[Usage]) -> Usage:
    """Return what a tenant has of all kinds."""
    numbers = {name: number for one in usages for name, number in one.rows_of.items()}
    times = [one.written_at for one in usages if one.written_at is not None]
    return Usage(sum(numbers.values()), numbers, any(one.more for one in usages), max(times, default=None))
