"""The statements of the family's tables with one prefix: `VersionsDialect`."""

from __future__ import annotations

from functools import cached_property

from .loading import LoadingStatements
from .removing import RemovingStatements
from .saving import SavingStatements
from .schema import VersionsSchema
from .threads import ThreadStatements


class VersionsDialect:
    """MySQL's SQL for the tables with one prefix, by what the statements are about.

    Args:
        table_prefix: Put before the names of the tables; validated by the configuration.
    """

    def __init__(self, table_prefix: str = "locus_") -> None:
        #: Unquoted names by role.
        self.tables = {
            "threads": f"{table_prefix}version_threads",
            "versions": f"{table_prefix}versions",
            "parts": f"{table_prefix}version_parts",
            "writes": f"{table_prefix}version_writes",
        }
        self._quoted = {role: f"`{name}`" for role, name in self.tables.items()}

    @cached_property
    def schema(self) -> VersionsSchema:
        """Making and checking the tables."""
        return VersionsSchema(self.tables)

    @cached_property
    def threads(self) -> ThreadStatements:
        """Locking, listing and deleting threads."""
        return ThreadStatements(self._quoted)

    @cached_property
    def saving(self) -> SavingStatements:
        """Storing checkpoints and writes."""
        return SavingStatements(self._quoted)

    @cached_property
    def loading(self) -> LoadingStatements:
        """Reading checkpoints and writes."""
        return LoadingStatements(self._quoted)

    @cached_property
    def removing(self) -> RemovingStatements:
        """Removing checkpoints and copying threads."""
        return RemovingStatements(self._quoted)
