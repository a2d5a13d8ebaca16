"""The object that describes a family of tables: `Family`, and the protocols of its parts.

A family is a set of tables that belong together. `registry` lists all families; commands, the service and the inspector
iterate over that list and refer to no family by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from ..config import MySQLConfig
from ..dialect import Schema
from ..dialect.resealing import SealedColumn
from ..engine.operation import Operation
from ..errors import UsageError
from ..runtime.checksummed_jsonl import Head
from ..runtime.counting import counted
from ..runtime.transfer import Source, Target

if TYPE_CHECKING:  # importing these modules takes a tenth of the time of importing a store
    from ..records.tables import Tables
    from .inspection.owners import OwnerChanges, OwnerThreads


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


class Transfer(Protocol):
    """Exports a tenant's rows as lines of JSON, and imports such lines."""

    @property
    def noun(self) -> str:
        """Return the singular noun for a record."""

    def source(self, **selection: Any) -> Source:
        """Return the source that reads the rows to be exported.

        Args:
            selection: Selects rows by criteria of the family, such as ``threads`` or ``namespace``; all if empty.

        Raises:
            UsageError: The family cannot select by one of these.
        """

    def accepts(self, head: Head) -> bool:
        """Return whether a file with this first line is an export of the family."""

    def target(self, head: Head, *, overwrite: bool = False, verify: bool = False) -> Target:
        """Return the target that writes the lines of an export.

        Args:
            head: The file's first line, which `accepts` has recognised.
            overwrite: Whether records that differ in the tables are replaced.
            verify: Whether all records are compared, also those that were just written.

        Raises:
            InvalidInput: The first line lacks a field, or the family's records cannot be replaced.
        """


def refuse_others(selection: Mapping[str, Any], family: str) -> None:
    """Refuse criteria by which the family cannot select records.

    Raises:
        UsageError: There are such criteria.
    """
    if selection:
        raise UsageError(f"An export of {family} cannot be limited by {', '.join(sorted(selection))}.")


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
    def unit(self) -> str:
        """Return the singular noun for what the size of a thread is counted in, such as ``checkpoint``."""

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

    def transfer(self, config: MySQLConfig) -> Transfer | None:
        """Return the object that exports and imports the tenant's rows; None if the family cannot be exported."""

    def inspection(self, config: MySQLConfig) -> OwnerThreads | None:
        """Return the object that reads the tenant's threads for the inspector and the API.

        If it is None, these show only what all families have: the title, whether the tables exist, and the counts of
        `Maintenance.stored`.
        """

    def changes(self, config: MySQLConfig) -> OwnerChanges | None:
        """Return the object that copies and deletes threads for the inspector, the API and ``rm``; None without."""


class DeclaredFamily:
    """A family that declares its tables: what moves, encrypts and inspects them follows from that. See `Family`."""

    name: str
    title: str
    users: str
    holds_threads = True
    unit = "row"
    vacuumed_by_age = False
    on_request = False

    def tables(self, config: MySQLConfig) -> Tables:
        """Return the declaration of the tables."""
        raise NotImplementedError

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""
        return self.tables(config).schema

    def transfer(self, config: MySQLConfig) -> Transfer:
        """See `Family.transfer`."""
        from ..records.transfer import RowTransfer

        return RowTransfer(self.tables(config), config)

    def encrypted_columns(self, config: MySQLConfig) -> Sequence[SealedColumn]:
        """See `EncryptsColumns.encrypted_columns`."""
        return self.tables(config).encrypted_columns()

    def inspection(self, config: MySQLConfig) -> OwnerThreads | None:
        """See `Family.inspection`."""
        from .inspection.owners import OwnerThreads

        return OwnerThreads(self.tables(config), config)

    def changes(self, config: MySQLConfig) -> OwnerChanges | None:
        """See `Family.changes`."""
        from .inspection.owners import OwnerChanges

        return OwnerChanges(self.tables(config), config)


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
