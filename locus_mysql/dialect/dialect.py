"""Base of the dialects of all families: `Dialect`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .ledger import AFFECTED, RETENTION_S
from .schema import Schema

if TYPE_CHECKING:
    from .sql import Compiled


class Dialect:
    """MySQL's SQL for one family of tables, as statements with parameters. Imports no client library, does no I/O.

    Args:
        schema: The tables.
        names: Their unquoted names by their roles.
        pieces: Texts that the family's statements share; see `Statements`.
    """

    def __init__(self, schema: Schema, names: Mapping[str, str], pieces: Mapping[str, str] | None = None) -> None:
        self.schema = schema
        self.names = names
        tables = {role: f"`{name}`" for role, name in names.items()}
        shared = {"FAMILY": schema.family, "RETENTION_S": str(RETENTION_S), "AFFECTED": AFFECTED}
        self._pieces = {**shared, **(pieces or {}), **tables}
        #: The pieces of every template; see `SQL`.
        self.pieces: Mapping[str, str] = self._pieces
        #: The texts that `SQL` made.
        self.compiled: dict[Any, Compiled] = {}
