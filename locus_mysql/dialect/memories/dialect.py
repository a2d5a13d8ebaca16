"""The statements about long-term memory: `MemoryDialect`."""

from __future__ import annotations

from functools import cached_property

from ..dialect import Dialect
from ..words import Parser
from .inspection import InspectionStatements
from .ledger import MemoryLedger
from .maintenance import MaintenanceStatements
from .moving import MovingStatements
from .pieces import PIECES
from .reading import ReadingStatements
from .tables import memory_schema, table_names
from .vectors import VectorStatements
from .writing import WritingStatements


class MemoryDialect(Dialect):
    """The statements for the tables with one prefix, by topic.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
        search: Whether the tables have a full-text index.
        search_parser: The parser of that index.
    """

    def __init__(
        self,
        table_prefix: str = "locus_",
        *,
        search: bool = True,
        search_parser: Parser = "default",
    ) -> None:
        schema = memory_schema(table_prefix, search=search, search_parser=search_parser)
        self._parser: Parser = search_parser
        super().__init__(schema, table_names(table_prefix), PIECES)

    @cached_property
    def writing(self) -> WritingStatements:
        """Writing, refreshing and deleting items."""
        return WritingStatements(self._pieces)

    @cached_property
    def reading(self) -> ReadingStatements:
        """Finding items by key, by field and by word."""
        return ReadingStatements(self, self._parser)

    @cached_property
    def vectors(self) -> VectorStatements:
        """Writing embeddings and finding the nearest."""
        return VectorStatements(self._pieces)

    @cached_property
    def moving(self) -> MovingStatements:
        """Reading and writing items with all columns."""
        return MovingStatements(self._pieces)

    @cached_property
    def ledger(self) -> MemoryLedger:
        """Recording writes, and detecting executed ones whose answer was lost."""
        return MemoryLedger(self._pieces)

    @cached_property
    def maintenance(self) -> MaintenanceStatements:
        """Counting and removing unneeded rows."""
        return MaintenanceStatements(self._pieces)

    @cached_property
    def inspection(self) -> InspectionStatements:
        """Inspection of namespaces and items."""
        return InspectionStatements(self._pieces)
