"""The statements about versions: `VersionDialect`."""

from __future__ import annotations

from functools import cached_property

from ..dialect import Dialect
from .inspection import InspectionStatements
from .ledger import LedgerStatements
from .loading import LoadingStatements
from .removing import RemovingStatements
from .saving import SavingStatements
from .tables import table_names, versions_schema
from .threads import ThreadStatements


class VersionDialect(Dialect):
    """The SQL for the tables with one prefix, by what the statements are about.

    Args:
        table_prefix: Put before the names of the tables; validated by the configuration.
    """

    def __init__(self, table_prefix: str = "locus_") -> None:
        super().__init__(versions_schema(table_prefix), table_names(table_prefix))

    @cached_property
    def threads(self) -> ThreadStatements:
        """Locking, listing, counting and deleting threads."""
        return ThreadStatements(self._tables)

    @cached_property
    def saving(self) -> SavingStatements:
        """Storing checkpoints and writes."""
        return SavingStatements(self._tables)

    @cached_property
    def loading(self) -> LoadingStatements:
        """Reading checkpoints and writes."""
        return LoadingStatements(self._tables)

    @cached_property
    def removing(self) -> RemovingStatements:
        """Removing checkpoints and copying threads."""
        return RemovingStatements(self._tables)

    @cached_property
    def ledger(self) -> LedgerStatements:
        """Recognising removals and copies that were carried out though their answer was lost."""
        return LedgerStatements(self._tables)

    @cached_property
    def inspection(self) -> InspectionStatements:
        """Looking inside."""
        return InspectionStatements(self._tables)
