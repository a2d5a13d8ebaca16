"""The families of thread states: `DICTS` and `CURRENT`; that of Locus agents is in ``integrations/locus``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...config import MySQLConfig
from ...dialect import Schema
from ...dialect.resealing import SealedColumn
from ...records.tables import Tables
from ..family import Maintenance
from ..inspection.sources import ThreadChanges, ThreadSource
from .statements.tables import Kind, checkpoint_schema
from .tables import tables

if TYPE_CHECKING:
    from .store import StoreOperations


class CheckpointFamily:
    """The tables of one kind of thread states. See `Family`.

    Args:
        kind: What the states are. It is the family's name, too.
        title: The family's name on pages.
        users: The public classes that use the tables.
    """

    holds_threads = True
    vacuumed_by_age = True
    on_request = False

    def __init__(self, kind: Kind, title: str, users: str) -> None:
        self.kind = kind
        self.title = title
        self.users = users

    @property
    def name(self) -> str:
        """See `Family.name`."""
        return self.kind

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""
        return checkpoint_schema(
            config.table_prefix, self.kind, search=config.search, search_parser=config.search_parser
        )

    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """See `Family.maintenance`."""
        from .maintenance import CheckpointMaintenance

        return CheckpointMaintenance(config, self.kind)

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`."""
        return (tables(config.table_prefix, self.kind, search=config.search, search_parser=config.search_parser),)

    def inspection(self, config: MySQLConfig) -> ThreadSource:
        """See `Family.inspection`."""
        from .inspection.threads import CheckpointThreads

        return CheckpointThreads(config, self.kind)

    def changes(self, config: MySQLConfig) -> ThreadChanges:
        """See `Family.changes`."""
        from .inspection.threads import CheckpointChanges

        return CheckpointChanges(self.operations(config))

    def encrypted_columns(self, config: MySQLConfig) -> Sequence[SealedColumn]:
        """See `EncryptsColumns.encrypted_columns`."""
        return self.tables(config)[0].encrypted_columns()

    def operations(self, config: MySQLConfig) -> StoreOperations:
        """Return the operations on states, each of which is a dict."""
        from .store import StoreOperations

        return StoreOperations(config, self.kind)


DICTS = CheckpointFamily("dicts", "Plain states", "CheckpointStore")

CURRENT = CheckpointFamily("current", "Current states", "MySQLBackend")
