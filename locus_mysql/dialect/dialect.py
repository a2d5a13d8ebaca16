"""The statements of one set of tables: `Dialect`."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from .checkpoints.maintenance import MaintenanceStatements
from .checkpoints.queries import QueryStatements
from .checkpoints.saving import CheckpointStatements
from .checkpoints.settled import SettledStatements
from .checkpoints.tables import INFIXES, ROLES, Kind, SchemaStatements
from .checkpoints.threads import ThreadStatements


class Dialect:
    """MySQL's SQL for the tables of one kind of states, by what the statements are about.

    Args:
        table_prefix: Put before the names of the tables; validated by the configuration.
        kind: What the states are.
        search: Whether the tables are made with a full-text index.
        search_parser: The parser of that index.
    """

    def __init__(
        self,
        table_prefix: str = "locus_",
        kind: Kind = "agents",
        *,
        search: bool = True,
        search_parser: Literal["default", "ngram"] = "default",
    ) -> None:
        names = {role: f"{table_prefix}{INFIXES[kind]}{role}" for role in ROLES}
        self.schema = SchemaStatements(names, kind, search=search, search_parser=search_parser)
        self._tables = {role: f"`{name}`" for role, name in names.items()}

    @cached_property
    def threads(self) -> ThreadStatements:
        """Locking, listing and counting threads."""
        return ThreadStatements(self._tables)

    @cached_property
    def checkpoints(self) -> CheckpointStatements:
        """Saving, loading and deleting checkpoints."""
        return CheckpointStatements(self._tables)

    @cached_property
    def queries(self) -> QueryStatements:
        """Finding checkpoints by metadata or text, and describing them."""
        return QueryStatements(self._tables)

    @cached_property
    def maintenance(self) -> MaintenanceStatements:
        """Removing what is old, expired, pruned or no longer needed; copying and rewriting threads."""
        return MaintenanceStatements(self._tables)

    @cached_property
    def settled(self) -> SettledStatements:
        """Recognising operations that were carried out though their answer was lost."""
        return SettledStatements(self._tables)
