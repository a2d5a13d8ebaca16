"""The statements about working memory: `WorkingDialect`."""

from __future__ import annotations

from functools import cached_property

from ..dialect import Dialect
from .checkpoints import CheckpointStatements
from .entries import EntryStatements
from .inspection import InspectionStatements
from .maintenance import CareStatements
from .sessions import SessionStatements
from .tables import table_names, working_schema


class WorkingDialect(Dialect):
    """The SQL for the tables with one prefix, by what the statements are about.

    Args:
        table_prefix: Put before the names of the tables; validated by the configuration.
    """

    def __init__(self, table_prefix: str = "locus_") -> None:
        super().__init__(working_schema(table_prefix), table_names(table_prefix))

    @cached_property
    def sessions(self) -> SessionStatements:
        """Locking, counting, renewing and removing sessions."""
        return SessionStatements(self._tables)

    @cached_property
    def entries(self) -> EntryStatements:
        """Reading and writing variables, the task state and notes."""
        return EntryStatements(self._tables)

    @cached_property
    def checkpoints(self) -> CheckpointStatements:
        """Making, listing, restoring and deleting checkpoints."""
        return CheckpointStatements(self._tables)

    @cached_property
    def care(self) -> CareStatements:
        """Counting sessions, and what nobody needs."""
        return CareStatements(self._tables)

    @cached_property
    def inspection(self) -> InspectionStatements:
        """Looking inside."""
        return InspectionStatements(self._tables)
