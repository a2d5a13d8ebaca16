"""Items of long-term memory as a source and a target of transfers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...config import MySQLConfig
from ...errors import CorruptCheckpoint, StateTooLarge
from ...runtime.checksummed_jsonl import Head
from ...runtime.database import Database
from ...runtime.sealing import fetching_keys, refuse_clear_tables
from ...runtime.transfer import RecordPage, TransferReport
from ..family import refuse_others
from .lines import FORMAT, head_line, item_line, item_of_content
from .moving import KeptItem
from .namespaces import labels_of, path_of
from .operations import MemoryOperations
from .statements.dialect import Range
from .statements.filters import ItemFilter


class ItemTransfer:
    """Exports and imports items. See `Transfer`.

    Args:
        config: The options, with the tenant.
    """

    noun = "item"

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config

    def source(self, namespace: Sequence[str] = (), **others: Any) -> ItemSource:
        """Return the source that reads the items in a namespace and below."""
        refuse_others(others, "memories")
        return ItemSource(self._config, Range(path_of(namespace, empty=True)))

    def accepts(self, head: Head) -> bool:
        """See `Transfer.accepts`."""
        return head.format == FORMAT

    def target(self, head: Head, *, overwrite: bool = False, verify: bool = False) -> ItemTarget:
        """See `Transfer.target`. Items are always compared."""
        return ItemTarget(self._config, overwrite=overwrite, advice=" --overwrite replaces it.")


class ItemSource:
    """Reads items, in the order of their namespaces and keys.

    Args:
        config: The options, with the tenant.
        where: The range of namespaces.
    """

    constants = False

    def __init__(self, config: MySQLConfig, where: Range) -> None:
        self._config = config
        self._where = where
        self._operations = MemoryOperations(config)
        self.head = head_line(config.tenant, labels_of(where.path))

    def position_of(self, content: Mapping[str, Any]) -> Any:
        """Return the path and key of the item in a line."""
        return item_of_content(content).key

    async def count(self, database: Database) -> int:
        """Return the number of items."""
        counting = self._operations.reading.count(self._config.tenant, self._where, ItemFilter())
        return await database.asynchronous.run(counting, self._operations.schema, self._config.ddl_mode)

    async def page(self, database: Database, after: Any, limit: int) -> RecordPage:
        """Return some items."""
        reading = self._operations.moving.page(self._config.tenant, self._where, after, limit)
        steps = fetching_keys(reading, self._config)
        page = RecordPage()
        for item in await database.asynchronous.run(steps):
            page.last = item.key
            try:
                page.records.append(item_line(item, searched=self._config.search))
            except CorruptCheckpoint as error:
                page.damaged.append(str(error))
        return page


class ItemTarget:
    """Writes items.

    Args:
        config: The options, with the tenant.
        overwrite: Whether items that differ in the tables are replaced; else they stay unchanged.
        advice: Appended to the message about an item that was not replaced.
    """

    constants = False

    def __init__(self, config: MySQLConfig, *, overwrite: bool = False, advice: str = "") -> None:
        self._config = config
        self._operations = MemoryOperations(config)
        refuse_clear_tables(config, self._operations.schema)
        self._overwrite = overwrite
        self._advice = advice

    def read(self, content: Mapping[str, Any]) -> KeptItem:
        """Return the item in a line."""
        return item_of_content(content)

    async def finish(self, database: Database) -> None:
        """Nothing is left."""

    async def write(self, database: Database, records: Sequence[KeptItem], report: TransferReport) -> None:
        """Write items, and read them again to compare; in several packets if one is too small for them.

        Raises:
            StateTooLarge: An item needs a larger packet than the server accepts.
        """
        restoring = self._operations.moving.restore(self._config.tenant, records, overwrite=self._overwrite)
        steps = fetching_keys(restoring, self._config)
        try:
            done = await database.asynchronous.run(steps, self._operations.schema, self._config.ddl_mode)
        except StateTooLarge:
            if len(records) == 1:
                raise
            half = len(records) // 2
            await self.write(database, records[:half], report)
            await self.write(database, records[half:], report)
            return
        report.copied += done.written
        report.present += done.present
        for path, key in done.differing:
            report.differ(f"Item {key.decode()!r} in {labels_of(path)!r} differs in the tables.{self._advice}")
