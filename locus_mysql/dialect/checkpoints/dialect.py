"""The statements about checkpoints of one kind: `CheckpointDialect`."""

from __future__ import annotations

from functools import cached_property

from ..dialect import Dialect
from ..words import Parser
from .inspection import InspectionStatements, PreviewStatements
from .ledger import CheckpointLedger
from .loading import LoadingStatements
from .maintenance import MaintenanceStatements
from .measuring import MeasuringStatements
from .moving import MovingStatements
from .pieces import PIECES
from .queries import QueryStatements
from .saving import CheckpointStatements
from .tables import Kind, checkpoint_schema, table_names
from .thread_pages import ThreadPageStatements
from .threads import ThreadStatements
from .turns import TurnStatements
from .wide_reads import WideStatements


class CheckpointDialect(Dialect):
    """The SQL for the tables of one kind of states, by what the statements are about.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
        kind: The kind of states.
        search: Whether the tables are created with a full-text index.
        search_parser: The parser of that index.
    """

    def __init__(
        self,
        table_prefix: str = "locus_",
        kind: Kind = "agents",
        *,
        search: bool = True,
        search_parser: Parser = "default",
    ) -> None:
        schema = checkpoint_schema(table_prefix, kind, search=search, search_parser=search_parser)
        self._parser: Parser = search_parser
        super().__init__(schema, table_names(table_prefix, kind), PIECES)

    @cached_property
    def threads(self) -> ThreadStatements:
        """Locking, listing and counting threads."""
        return ThreadStatements(self._pieces)

    @cached_property
    def checkpoints(self) -> CheckpointStatements:
        """Saving, deleting and finding checkpoints."""
        return CheckpointStatements(self._pieces)

    @cached_property
    def loading(self) -> LoadingStatements:
        """Loading checkpoints."""
        return LoadingStatements(self._pieces)

    @cached_property
    def queries(self) -> QueryStatements:
        """Finding checkpoints by metadata or text, and describing them."""
        return QueryStatements(self, self._parser)

    @cached_property
    def inspection(self) -> InspectionStatements:
        """Histories, states and metadata, for inspection."""
        return InspectionStatements(self._pieces)

    @cached_property
    def thread_pages(self) -> ThreadPageStatements:
        """Pages of threads."""
        return ThreadPageStatements(self._pieces)

    @cached_property
    def wide_reads(self) -> WideStatements:
        """Pages of checkpoints by metadata, and estimates of numbers of threads."""
        return WideStatements(self._pieces)

    @cached_property
    def previews(self) -> PreviewStatements:
        """What lists show of threads' contents, for inspection."""
        return PreviewStatements(self._pieces)

    @cached_property
    def measuring(self) -> MeasuringStatements:
        """Counts and sizes, for inspection."""
        return MeasuringStatements(self._pieces)

    @cached_property
    def maintenance(self) -> MaintenanceStatements:
        """Statements that remove old, expired, pruned and unused rows, and copy and rewrite threads."""
        return MaintenanceStatements(self._pieces, self.ledger)

    @cached_property
    def moving(self) -> MovingStatements:
        """Reading whole threads, and writing checkpoints of other stores."""
        return MovingStatements(self._pieces)

    @cached_property
    def ledger(self) -> CheckpointLedger:
        """Recording writes, and detecting executed ones whose answer was lost."""
        return CheckpointLedger(self._pieces)

    @cached_property
    def turns(self) -> TurnStatements:
        """Turns on a thread, and the preconditions of saves."""
        return TurnStatements(self._pieces)
