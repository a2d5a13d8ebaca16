"""The families of thread states: `DICTS` and `CURRENT`; that of Locus agents is in ``integrations/locus``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config import MySQLConfig
from ...records.maintenance import Upkeep
from ...records.tables import Tables
from ..family import DeclaredFamily
from .statements.tables import Kind
from .tables import tables

if TYPE_CHECKING:
    from ..inspection.owners import OwnerChanges, OwnerThreads
    from .store import StoreOperations


class CheckpointFamily(DeclaredFamily):
    """The tables of one kind of thread states. See `Family`.

    Args:
        kind: What the states are. It is the family's name, too.
        title: The family's name on pages.
        users: The public classes that use the tables.
    """

    unit = "checkpoint"
    vacuumed_by_age = True

    def __init__(self, kind: Kind, title: str, users: str) -> None:
        self.kind = kind
        self.name = kind
        self.title = title
        self.users = users

    def declaration(self, config: MySQLConfig) -> Tables:
        """See `DeclaredFamily.declaration`."""
        return tables(config.table_prefix, self.kind, search=config.search, search_parser=config.search_parser)

    def upkeep(self, config: MySQLConfig) -> Upkeep:
        """See `DeclaredFamily.upkeep`."""
        from .maintenance import CheckpointUpkeep
        from .statements.dialect import checkpoint_dialect

        return CheckpointUpkeep(
            checkpoint_dialect(
                config.table_prefix, self.kind, search=config.search, search_parser=config.search_parser
            ),
            config.ttl_s,
        )

    def inspection(self, config: MySQLConfig) -> OwnerThreads:
        """See `Family.inspection`."""
        from .inspection.threads import CheckpointThreads

        return CheckpointThreads(config, self.kind)

    def changes(self, config: MySQLConfig) -> OwnerChanges:
        """See `Family.changes`."""
        from .inspection.threads import CheckpointChanges

        return CheckpointChanges(self.operations(config))

    def operations(self, config: MySQLConfig) -> StoreOperations:
        """Return the operations on states, each of which is a dict."""
        from .store import StoreOperations

        return StoreOperations(config, self.kind)


DICTS = CheckpointFamily("dicts", "Plain states", "CheckpointStore")

CURRENT = CheckpointFamily("current", "Current states", "MySQLBackend")
