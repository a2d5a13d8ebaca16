"""The statements about memU's metadata store: `MemuDialect`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ..dialect import Dialect
from ..ledger import Ledger
from .statements import MemuStatements
from .tables import ScopeColumn, memu_schema, table_names


class MemuDialect(Dialect):
    """The SQL for the tables with one prefix and one user model.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
        scope: The columns of the user model's fields.
    """

    def __init__(self, table_prefix: str, scope: Sequence[ScopeColumn]) -> None:
        super().__init__(memu_schema(table_prefix, scope), table_names(table_prefix))
        self._scope = tuple(scope)

    @cached_property
    def records(self) -> MemuStatements:
        """Reading and writing records."""
        return MemuStatements(self._pieces, self._scope)

    @cached_property
    def ledger(self) -> Ledger:
        """Recording writes, and detecting executed ones whose answer was lost."""
        return Ledger(self._pieces)
