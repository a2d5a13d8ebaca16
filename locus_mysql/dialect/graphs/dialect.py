"""The statements about graphs: `GraphDialect`."""

from __future__ import annotations

from functools import cached_property

from ..dialect import Dialect
from .inspection import InspectionStatements
from .ledger import GraphLedger
from .loading import LoadingStatements
from .measuring import MeasuringStatements
from .pieces import PIECES
from .previews import PreviewStatements
from .removing import RemovingStatements
from .saving import SavingStatements
from .tables import graph_schema, table_names
from .threads import ThreadStatements


class GraphDialect(Dialect):
    """The SQL for the tables with one prefix, by what the statements are about.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
    """

    def __init__(self, table_prefix: str = "locus_") -> None:
        super().__init__(graph_schema(table_prefix), table_names(table_prefix), PIECES)

    @cached_property
    def threads(self) -> ThreadStatements:
        """Locking, listing, counting and deleting threads."""
        return ThreadStatements(self._pieces)

    @cached_property
    def saving(self) -> SavingStatements:
        """Storing checkpoints and writes."""
        return SavingStatements(self._pieces, self.ledger)

    @cached_property
    def loading(self) -> LoadingStatements:
        """Reading checkpoints and writes."""
        return LoadingStatements(self._pieces)

    @cached_property
    def removing(self) -> RemovingStatements:
        """Removing checkpoints and copying threads."""
        return RemovingStatements(self._pieces)

    @cached_property
    def ledger(self) -> GraphLedger:
        """Recording writes, and detecting executed ones whose answer was lost."""
        return GraphLedger(self._pieces)

    @cached_property
    def inspection(self) -> InspectionStatements:
        """The statements of the inspection."""
        return InspectionStatements(self._pieces)

    @cached_property
    def previews(self) -> PreviewStatements:
        """What lists show of threads' contents."""
        return PreviewStatements(self._pieces)

    @cached_property
    def measuring(self) -> MeasuringStatements:
        """Counting and measuring."""
        return MeasuringStatements(self._pieces)
