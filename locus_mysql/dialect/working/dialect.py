"""The statements about working memory: `WorkingDialect`."""

from __future__ import annotations

from functools import cached_property

from ..dialect import Dialect
from .checkpoints import CheckpointStatements
from .entries import EntryStatements
from .inspection import InspectionStatements
from .ledger import WorkingLedger
from .maintenance import MaintenanceStatements
from .moving import MovingStatements
from .pieces import PIECES
from .sessions import SessionStatements
from .tables import table_names, working_schema


class WorkingDialect(Dialect):
    """The statements for the tables with one prefix, by topic.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
    """

    def __init__(self, table_prefix: str = "locus_") -> None:
        super().__init__(working_schema(table_prefix), table_names(table_prefix), PIECES)

    @cached_property
    def sessions(self) -> SessionStatements:
        """Locking, counting, renewing and removing sessions."""
        return SessionStatements(self._pieces)

    @cached_property
    def entries(self) -> EntryStatements:
        """Reading and writing variables, the task state and notes."""
        return EntryStatements(self._pieces)

    @cached_property
    def checkpoints(self) -> CheckpointStatements:
        """Making, listing, restoring and deleting checkpoints."""
        return CheckpointStatements(self._pieces)

    @cached_property
    def ledger(self) -> WorkingLedger:
        """Recording writes, and detecting executed ones whose answer was lost."""
        return WorkingLedger(self._pieces)

    @cached_property
    def maintenance(self) -> MaintenanceStatements:
        """Counting sessions, and those that have expired."""
        return MaintenanceStatements(self._pieces)

    @cached_property
    def inspection(self) -> InspectionStatements:
        """Inspection of sessions."""
        return InspectionStatements(self._pieces)

    @cached_property
    def moving(self) -> MovingStatements:
        """Reading and writing whole sessions, for exports and imports."""
        return MovingStatements(self._pieces)
