"""`Workload`: calls of one store in a fixed order, whose results are the same in every run without faults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from locus_mysql import MySQLConfig

from ...either_side import AnyStore

#: A call of the store; returns what can be compared: no times, and no random ids.
Call = Callable[[], Awaitable[Any]]


class Stores(NamedTuple):
    """Makes the store of each way of calling; None if there is none, as in a framework with one way only."""

    awaited: Callable[[MySQLConfig], Any] | None = None
    blocking: Callable[[MySQLConfig], Any] | None = None

    def of(self, side: str) -> Callable[[MySQLConfig], Any] | None:
        """Return the maker for a driver and side, such as ``pymysql-sync``."""
        return self.awaited if side.endswith("-async") else self.blocking


class Workload(ABC):
    """Calls of one store. A part of what they write stays.

    Args:
        config: The options. The tenant has nothing stored.
        side: The driver and side, such as ``pymysql-sync``.
    """

    #: What is stored, as the result table names it.
    title: ClassVar[str]
    #: The family whose tables are written.
    family: ClassVar[str]
    #: The stores.
    stores: ClassVar[Stores]

    def __init__(self, config: MySQLConfig, side: str) -> None:
        make = self.stores.of(side)
        assert make is not None, f"{self.title} does not run on {side}"
        self.store: Any = AnyStore(make(config))

    @abstractmethod
    def calls(self) -> Sequence[Call]:
        """Return the calls."""

    @abstractmethod
    async def stored(self) -> Any:
        """Return what is stored, without times and random ids. Creates the tables if they do not exist."""

    async def close(self) -> None:
        """Close the store."""
        await self.store.close()


async def taken(call: Awaitable[Any], take: Callable[[Any], Any]) -> Any:
    """Return the comparable part of a call's result."""
    return take(await call)
