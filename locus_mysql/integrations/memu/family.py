"""The family of memU's records: `MEMU`."""

from __future__ import annotations

from collections.abc import Sequence

from ...config import MySQLConfig
from ...dialect import Schema
from ...engine.operation import Batch, Operation, fetch
from ...families.family import Count, Counts, Maintenance
from ...records import ledger
from ...records.tables import Tables
from .statements import COUNT, Records, memu_dialect
from .tables import CORE, memu_schema, own_prefix

#: The fields of memU's own user model.
DEFAULT_FIELDS = ("user_id",)


class MemuFamily:
    """See `Family`.

    Args:
        fields: The fields of memU's user model, each of which is a column; see `scope`. Without them, the schema
            fits tables of any user model, and cannot create them.
    """

    name = "memu"
    title = "memU"
    users = "MemuDatabase"
    holds_threads = False
    vacuumed_by_age = False
    on_request = True

    def __init__(self, fields: Sequence[str] = ()) -> None:
        self._fields = fields

    def with_fields(self, fields: Sequence[str]) -> MemuFamily:
        """See `HasUserModel.with_fields`."""
        return MemuFamily(fields)

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""
        prefix = own_prefix(config).table_prefix
        if not self._fields:
            return memu_schema(prefix, ())
        from .declaration import tables_of

        return tables_of(config, self._fields)[0].schema

    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """See `Family.maintenance`."""
        return MemuMaintenance(config)

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`. Without fields, those of memU's own user model."""
        from .declaration import tables_of

        return tables_of(config, self._fields or DEFAULT_FIELDS)

    def inspection(self, config: MySQLConfig) -> None:
        """See `Family.inspection`."""

    def changes(self, config: MySQLConfig) -> None:
        """See `Family.changes`."""


MEMU = MemuFamily()


class MemuMaintenance:
    """Counts records of any user model, and removes records of recent writes. See `Maintenance`.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._tenant = config.tenant
        self._sql = memu_dialect(own_prefix(config).table_prefix, ())

    def stored(self) -> Operation[Counts]:
        """Count records of all kinds. One round trip."""
        queries = tuple(Records(self._sql, role, self._tenant).make(COUNT) for role in CORE)
        results = yield Batch(queries, atomic=False)
        return (Count(sum(row.total for query in queries for row in results.rows(query)), "{record}"),)

    def waste(self) -> Operation[Counts]:
        """Count records of recent writes of all tenants. One round trip."""
        (recorded,) = yield from fetch(ledger.COUNT(self._sql))
        return (Count(recorded.tokens, "{record} of recent writes"),)

    def vacuum(self, older_than_days: float = 30) -> Operation[Counts]:
        """Remove records of recent writes that can no longer be repeated, in short transactions.

        Args:
            older_than_days: Ignored.
        """
        removed = yield from ledger.forget_old_tokens(self._sql)
        return (Count(removed, "{record} of recent writes"),)
