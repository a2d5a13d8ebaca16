"""What the dialects of all families share: `Dialect`."""

from __future__ import annotations

from collections.abc import Mapping

from .schema import Schema


class Dialect:
    """MySQL's SQL for one family of tables, as statements with parameters. Imports no client library, does no I/O.

    Args:
        schema: The tables.
        names: Their unquoted names by their roles.
    """

    def __init__(self, schema: Schema, names: Mapping[str, str]) -> None:
        self.schema = schema
        self.names = names
        self._tables = {role: f"`{name}`" for role, name in names.items()}
