"""What statements are filled with: `Texts`, and `Dialect` for those of a family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .schema import Schema

if TYPE_CHECKING:
    from .sql import Compiled

#: Seconds for which a write that was carried out can be recognised by its token. No write is repeated for that long:
#: see ``retry_deadline_s``.
RETENTION_S = 900

# The number of rows that the statement before this one affected. A server that fails to send an answer, because the
# connection broke, carries out the rest of the packet; but after the first statement whose answer it fails to send,
# ROW_COUNT() is -1 instead of that number. So -1 undoes the batch, with error 3141; the client repeats it.
AFFECTED = "(ROW_COUNT() + JSON_LENGTH(IF(ROW_COUNT() >= 0, '[]', '')))"


class Texts:
    """The pieces of statements, and the texts that were made of them; see `SQL`.

    Args:
        pieces: The pieces: the quoted names of the tables by their roles, and texts that statements share.
    """

    def __init__(self, pieces: Mapping[str, str]) -> None:
        self.pieces = pieces
        #: The texts that `SQL` made.
        self.compiled: dict[Any, Compiled] = {}


class Dialect(Texts):
    """MySQL's SQL for one family of tables: what its statements (`SQL`) are filled with. It does no I/O.

    Args:
        schema: The tables.
        names: Their unquoted names by their roles.
        pieces: Texts that the family's statements share; a statement has them as ``{name}``.
    """

    def __init__(self, schema: Schema, names: Mapping[str, str], pieces: Mapping[str, str] | None = None) -> None:
        tables = {role: f"`{name}`" for role, name in names.items()}
        shared = {"FAMILY": schema.family, "RETENTION_S": str(RETENTION_S), "AFFECTED": AFFECTED}
        super().__init__({**shared, **(pieces or {}), **tables})
        self.schema = schema
        self.names = names
