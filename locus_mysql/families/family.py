"""The object that describes a family of tables: `Family`, and what some families have besides.

A family is a set of tables that belong together. `registry` lists all families; commands, the service and the inspector
iterate over that list and refer to no family by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from ..config import MySQLConfig
from ..dialect import Schema
from ..dialect.resealing import SealedColumn
from ..records.maintenance import Maintenance, Upkeep
from ..records.tables import Tables

if TYPE_CHECKING:  # importing these modules takes a tenth of the time of importing a store
    from .inspection.changes import OwnerChanges
    from .inspection.owners import OwnerThreads


class Family(ABC):
    """A set of tables that belong together, and what can be done with them.

    Attributes:
        name: Its name in commands, in addresses of pages and in the comments of its tables, such as ``memories``.
        title: Its name on pages, such as ``Long-term memory``.
        users: The public classes that use the tables.
        holds_threads: Whether the inspector and its commands show its rows as threads.
        unit: The singular noun for what the size of a thread is counted in, such as ``checkpoint``.
        vacuumed_by_age: Whether a vacuum removes rows by age, so that commands must be given an age.
        on_request: Whether ``schema`` and ``grants`` include it only if it is named. Its tables have names that other
            programs may use too. Commands that name no family therefore recognise them by their comments.
    """

    name: str
    title: str
    users: str
    holds_threads = True
    unit = "row"
    vacuumed_by_age = False
    on_request = False

    @abstractmethod
    def schema(self, config: MySQLConfig) -> Schema:
        """Return the tables and their layout version."""

    @abstractmethod
    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """Return the object that counts and removes rows, of any tenant."""

    @abstractmethod
    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """Return the declarations from which exports, imports and copies follow, one for each table of owners.

        Rows of a table may refer to rows of those before it.
        """

    def inspection(self, config: MySQLConfig) -> OwnerThreads | None:
        """Return the object that reads the tenant's threads for the inspector and the API.

        If it is None, these show only what all families have: the title, whether the tables exist, and the counts of
        `Maintenance.stored`.
        """
        return None

    def changes(self, config: MySQLConfig) -> OwnerChanges | None:
        """Return the object that copies and deletes threads for the inspector, the API and ``rm``; None without."""
        return None


class DeclaredFamily(Family):
    """A family whose upkeep, moving, encryption and inspection follow from the declaration of its tables."""

    @abstractmethod
    def declaration(self, config: MySQLConfig) -> Tables:
        """Return the declaration of the tables."""

    def upkeep(self, config: MySQLConfig) -> Upkeep:
        """Return what is special about the upkeep."""
        return Upkeep()

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`."""
        return (self.declaration(config),)

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""
        return self.declaration(config).schema

    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """See `Family.maintenance`."""
        return Maintenance(self.declaration(config), self.upkeep(config))

    def encrypted_columns(self, config: MySQLConfig) -> Sequence[SealedColumn]:
        """Return the encrypted columns, and what their bytes are bound to, for ``reencrypt``."""
        return self.declaration(config).encrypted_columns()

    def inspection(self, config: MySQLConfig) -> OwnerThreads | None:
        """See `Family.inspection`."""
        from .inspection.owners import OwnerThreads

        return OwnerThreads(self.declaration(config), config)

    def changes(self, config: MySQLConfig) -> OwnerChanges | None:
        """See `Family.changes`."""
        from .inspection.changes import OwnerChanges

        return OwnerChanges(self.declaration(config), config)


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
    """A family that encrypts what it stores, if the configuration has ``encryption``; see `DeclaredFamily`."""

    name: str

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""

    def encrypted_columns(self, config: MySQLConfig) -> Sequence[SealedColumn]:
        """See `DeclaredFamily.encrypted_columns`."""


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
