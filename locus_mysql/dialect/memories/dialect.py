"""The statements about long-term memory: `MemoryDialect`."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from ..dialect import Dialect
from .inspection import InspectionStatements
from .maintenance import CareStatements
from .moving import MovingStatements
from .reading import ReadingStatements
from .tables import memory_schema, table_names
from .vectors import VectorStatements
from .writing import WritingStatements


class MemoryDialect(Dialect):
    """The SQL for the tables with one prefix, by what the statements are about.

    Args:
        table_prefix: Put before the names of the tables; validated by the configuration.
        search: Whether the tables are made with a full-text index.
        search_parser: The parser of that index.
    """

    def __init__(
        self,
        table_prefix: str = "locus_",
        *,
        search: bool = True,
        search_parser: Literal["default", "ngram"] = "default",
    ) -> None:
        schema = memory_schema(table_prefix, search=search, search_parser=search_parser)
        super().__init__(schema, table_names(table_prefix))

    @cached_property
    def writing(self) -> WritingStatements:
        """Writing, refreshing and deleting items."""
        return WritingStatements(self._tables)

    @cached_property
    def reading(self) -> ReadingStatements:
        """Finding items by key, by field and by word."""
        return ReadingStatements(self._tables)

    @cached_property
    def vectors(self) -> VectorStatements:
        """Writing embeddings and finding the nearest."""
        return VectorStatements(self._tables)

    @cached_property
    def moving(self) -> MovingStatements:
        """Reading items whole, and writing them as they were."""
        return MovingStatements(self._tables)

    @cached_property
    def care(self) -> CareStatements:
        """Counting and removing what nobody needs."""
        return CareStatements(self._tables)

    @cached_property
    def inspection(self) -> InspectionStatements:
        """Looking inside."""
        return InspectionStatements(self._tables)
