"""The statements of one pair of tables: `Dialect`."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from .checkpoints import CheckpointStatements
from .maintenance import MaintenanceStatements
from .queries import QueryStatements
from .schema import SchemaStatements
from .threads import ThreadStatements


class Dialect:
    """MySQL's SQL for the tables with one prefix, by what the statements are about.

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
        self.threads_table = f"{table_prefix}threads"
        self.checkpoints_table = f"{table_prefix}checkpoints"
        self._tables = {"threads": f"`{self.threads_table}`", "checkpoints": f"`{self.checkpoints_table}`"}
        self._search = search
        self._search_parser = search_parser

    @cached_property
    def schema(self) -> SchemaStatements:
        """Making and checking the tables."""
        return SchemaStatements(
            self.threads_table, self.checkpoints_table, search=self._search, search_parser=self._search_parser
        )

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
