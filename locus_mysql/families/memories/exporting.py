"""Items of long-term memory, as an export reads them and an import writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...config import MySQLConfig
from ...dialect.memories.filters import Condition
from ...dialect.memories.ranges import Range
from ...errors import CorruptCheckpoint
from ...runtime.database import Database
from ...runtime.exporting import Page, Tally
from .lines import head_line, item_line, item_of_content
from .moving import KeptItem
from .namespaces import labels_of
from .restoring import write_whole
from .store import MemoryProcedures


class ItemSource:
    """Items of long-term memory, in the order of their namespaces and keys.

    Args:
        config: Whose, and where from.
        where: Of which namespaces.
    """

    constants = False

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

    constants = False

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
