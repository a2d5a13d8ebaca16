"""The object that describes a family of tables: `Family`, and the protocols of its parts.

A family is a set of tables that belong together. `registry` lists all families; commands, the service and the inspector
iterate over that list and refer to no family by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

from ..config import MySQLConfig
from ..dialect import Schema
from ..dialect.resealing import SealedColumn
from ..engine.operation import Operation
from ..runtime.counting import counted

if TYPE_CHECKING:  # importing these modules takes a tenth of the time of importing a store
    from ..records.tables import Tables
    from .inspection.item_records import Growth
    from .inspection.sources import ThreadChanges, ThreadSource


class Count(NamedTuple):
    """A number of stored or removed items.

    Args:
        number: How many.
        phrase: Their description, with the noun in the singular and in braces: ``{record} of recent writes``.
    """

    number: int
    phrase: str

    def __str__(self) -> str:
        return re.sub(r"\{(.*)\}", lambda noun: counted(self.number, noun[1]), self.phrase)

    @property
    def noun(self) -> str:
        """The noun of the phrase, in the plural."""
        return counted(0, re.sub(r".*\{(.*)\}.*", r"\1", self.phrase)).removeprefix("0 ")


#: The counts of an operation, in the order in which commands print them.
Counts: TypeAlias = tuple[Count, ...]


def in_words(counts: Sequence[Count]) -> str:
    """Return counts as an enumeration: ``1 expired item, 2 locks and 3 records of recent writes``."""
    *others, last = map(str, counts)
    return f"{', '.join(others)} and {last}" if others else last


class Maintenance(Protocol):
    """Counts a tenant's rows and removes those that are no longer needed. Each method is an operation."""

    def stored(self) -> Operation[Counts]:
        """Count what the tenant has stored. The first count is of the family's unit, such as threads or items."""

    def waste(self) -> Operation[Counts]:
        """Count rows that are no longer needed; empty if the family has no such rows. Changes nothing."""

    def vacuum(self, older_than_days: float = 30) -> Operation[Counts]:
        """Remove rows that are no longer needed, in short transactions, and return their numbers.

        Args:
            older_than_days: The age in days from which rows are removed, if the family removes any by age. Commands
                require it for a family that is `vacuumed_by_age`; for others without it, the method's default applies.
        """


class Family(Protocol):
    """A set of tables that belong together, and what can be done with them."""

    @property
    def name(self) -> str:
        """Its name in commands, in addresses of pages and in the comments of its tables, such as ``memories``."""

    @property
    def title(self) -> str:
        """Its name on pages, such as ``Long-term memory``."""

    @property
    def users(self) -> str:
        """The public classes that use the tables."""

    @property
    def holds_threads(self) -> bool:
        """Return whether the inspector and its commands show its rows as threads."""

    @property
    def vacuumed_by_age(self) -> bool:
        """Return whether `Maintenance.vacuum` removes rows by age, so that commands must be given an age."""

    @property
    def on_request(self) -> bool:
        """Return whether ``schema`` and ``grants`` include it only if it is named.

        Its tables have names that other programs may use too. Commands that name no family therefore recognise them by
        their comments.
        """

    def schema(self, config: MySQLConfig) -> Schema:
        """Return the tables and their layout version."""

    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """Return the object that counts and removes rows of the configuration's tenant."""

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """Return the declarations from which exports, imports and copies follow, one for each table of owners.

        Rows of a table may refer to rows of those before it.
        """

    def inspection(self, config: MySQLConfig) -> ThreadSource | None:
        """Return the object that reads the tenant's threads for the inspector; None if the family has no threads.

        Without this object, the inspector shows only what all families have: the title, whether the tables exist, and
        the counts of `Maintenance.stored`.
        """

    def changes(self, config: MySQLConfig) -> ThreadChanges | None:
        """Return the object that copies and deletes threads for the inspector and ``rm``; None without threads."""


class InspectorPage(NamedTuple):
    """A page of the inspector that shows one family.

    Args:
        name: Its address below ``/inspect/``.
        title: Its name in the navigation.
    """

    name: str
    title: str


@runtime_checkable
class HasInspectorPage(Protocol):
    """A family that a page of the inspector shows, besides the pages that show all families with threads."""

    @property
    def page(self) -> InspectorPage:
        """The page."""


@runtime_checkable
class ShowsGrowth(Protocol):
    """A family without threads whose items the statistics count by the day of their creation."""

    def growth(self, config: MySQLConfig) -> Operation[Growth]:
        """Return the number of the tenant's items by day, of a bounded number of items."""


@runtime_checkable
class EncryptsColumns(Protocol):
    """A family that encrypts what it stores, if the configuration has ``encryption``."""

    @property
    def name(self) -> str:
        """See `Family.name`."""

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""

    def encrypted_columns(self, config: MySQLConfig) -> Sequence[SealedColumn]:
        """Return the encrypted columns, and what their bytes are bound to, for ``reencrypt``."""


@runtime_checkable
class HasUserModel(Protocol):
    """A family some of whose columns the user chooses."""

    def with_fields(self, fields: Sequence[str]) -> Family:
        """Return the family with other columns.

        Args:
            fields: Their names, with ``:int``, ``:bool``, ``:uuid`` or ``:datetime`` appended for other types than
                text.

        Raises:
            UsageError: A field cannot be a column.
        """
