"""The family of memU's records: `MEMU`."""

from __future__ import annotations

from collections.abc import Sequence

from ...config import MySQLConfig
from ...dialect import Schema
from ...dialect.memu.tables import memu_schema
from ...errors import UsageError
from ...families.family import Maintenance, Transfer


class MemuFamily:
    """See `Family`.

    Args:
        fields: The fields of memU's user model, each of which is a column; see `scope_names`. Without them, the schema
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
        from .scope import Scope
        from .scope_names import kinds_of, model_of

        try:
            return memu_schema(prefix, Scope(model_of(kinds_of(self._fields))).columns)
        except TypeError as error:
            raise UsageError(str(error)) from None

    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """See `Family.maintenance`."""
        from .maintenance import MemuMaintenance

        return MemuMaintenance(config)

    def transfer(self, config: MySQLConfig) -> Transfer:
        """See `Family.transfer`."""
        from .transfer import MemuTransfer

        return MemuTransfer(config)

    def inspection(self, config: MySQLConfig) -> None:
        """See `Family.inspection`."""

    def changes(self, config: MySQLConfig) -> None:
        """See `Family.changes`."""


MEMU = MemuFamily()


def own_prefix(config: MySQLConfig) -> MySQLConfig:
    """Return the options with an empty table prefix, unless one was given, so that the tables have memU's names."""
    return config if "table_prefix" in config.model_fields_set else config.for_store(table_prefix="")
