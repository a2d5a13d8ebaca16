"""What an export reads and an import writes: the protocols `Source` and `Target`, and those of items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..config import MySQLConfig
from ..database.database import Database
from ..dialect.memories.filters import Condition
from ..dialect.memories.ranges import Range
from ..errors import CorruptCheckpoint
from .lines import head_line, item_line, item_of_content
from .moving import KeptItem
from .namespaces import labels_of
from .restoring import Tally, write_whole
from .store import MemoryProcedures


@dataclass(slots=True)
class Page:
    """Some lines of an export.

    Args:
        lines: The lines.
        last: The position of the last thing that was read; None if there was none.
        damaged: What could not be read, in words.
    """

    lines: list[bytes] = field(default_factory=list)
    last: Any = None
    damaged: list[str] = field(default_factory=list)


class Source(Protocol):
    """Reads what is to be exported, in an order of positions."""

    @property
    def head(self) -> bytes:
        """The first line."""

    def position_of(self, content: Mapping[str, Any]) -> Any:
        """The position of what a line says.

        Raises:
            InvalidInput: It cannot be read.
        """

    async def count(self, database: Database) -> int:
        """How much there is; makes or checks the tables."""

    async def page(self, database: Database, after: Any, limit: int) -> Page:
        """Some lines behind a position, or from the beginning."""


class Target(Protocol):
    """Writes what lines say."""

    def read(self, content: Mapping[str, Any]) -> Any:
        """What a line says, checked.

        Raises:
            InvalidInput: It holds what cannot be stored.
        """

    async def write(self, database: Database, contents: Sequence[Any], done: Tally) -> None:
        """Write it, and read it again to compare."""


class ItemSource:
    """Items of long-term memory, in the order of their namespaces and keys.

    Args:
        config: Whose, and where from.
        where: Of which namespaces.
    """

    def __init__(self, config: MySQLConfig, where: Range) -> None:
        self._config = config
        self._where = where
        self._procedures = MemoryProcedures(config)
        self.head = head_line(config.tenant, labels_of(where.path))

    def position_of(self, content: Mapping[str, Any]) -> Any:
        """Path and key."""
        return item_of_content(content).key

    async def count(self, database: Database) -> int:
        """How many there are."""
        counting = self._procedures.reading.count(self._config.tenant, self._where, Condition())
        return await database.asynchronous.run(counting, self._procedures.schema, self._config.ddl_mode)

    async def page(self, database: Database, after: Any, limit: int) -> Page:
        """Some items."""
        reading = self._procedures.moving.page(self._config.tenant, self._where, after, limit)
        page = Page()
        for item in await database.asynchronous.run(reading):
            page.last = item.key
            try:
                page.lines.append(item_line(item, searched=self._config.search))
            except CorruptCheckpoint as error:
                page.damaged.append(str(error))
        return page


class ItemTarget:
    """Items of long-term memory.

    Args:
        config: Where to, and whose they will be.
        tell: Told of what is left alone.
        overwrite: Whether what is there as something else is written over.
    """

    def __init__(self, config: MySQLConfig, tell: Callable[[str], None], *, overwrite: bool = False) -> None:
        self._procedures = MemoryProcedures(config)
        self._tell = tell
        self._overwrite = overwrite

    def read(self, content: Mapping[str, Any]) -> KeptItem:
        """An item."""
        return item_of_content(content)

    async def write(self, database: Database, contents: Sequence[Any], done: Tally) -> None:
        """Write items, and read them again to compare."""
        await write_whole(database, self._procedures, contents, done, self._tell, overwrite=self._overwrite)
