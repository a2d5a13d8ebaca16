"""The statements about transcripts: `TranscriptDialect`."""

from __future__ import annotations

from functools import cached_property

from ..dialect import Dialect
from .inspection import InspectionStatements
from .ledger import TranscriptLedger
from .maintenance import MaintenanceStatements
from .pieces import PIECES
from .reading import ReadingStatements
from .tables import table_names, transcript_schema
from .writing import WritingStatements


class TranscriptDialect(Dialect):
    """The statements for the tables with one prefix, by topic.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
    """

    def __init__(self, table_prefix: str = "locus_") -> None:
        super().__init__(transcript_schema(table_prefix), table_names(table_prefix), PIECES)

    @cached_property
    def writing(self) -> WritingStatements:
        """Writing transcripts and their items."""
        return WritingStatements(self._pieces)

    @cached_property
    def reading(self) -> ReadingStatements:
        """Reading transcripts and their items."""
        return ReadingStatements(self._pieces)

    @cached_property
    def ledger(self) -> TranscriptLedger:
        """Recording writes, and detecting executed ones whose answer was lost."""
        return TranscriptLedger(self._pieces)

    @cached_property
    def maintenance(self) -> MaintenanceStatements:
        """Counting transcripts, and those that have expired."""
        return MaintenanceStatements(self._pieces)

    @cached_property
    def inspection(self) -> InspectionStatements:
        """Inspection of transcripts."""
        return InspectionStatements(self._pieces)
