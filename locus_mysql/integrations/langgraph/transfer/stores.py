"""Copies items from any LangGraph store into this package's long-term memory: `copy_items`.

For moving from PostgreSQL, SQLite or memory. Only the public methods of the other store are used.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime

from langgraph.store.base import BaseStore, InvalidNamespaceError, SearchItem

from ....config import MySQLConfig
from ....errors import InvalidInput
from ....families.memories.arguments import encode_value, encoded_key, path_of
from ....families.memories.family import MEMORIES
from ....families.memories.tables import tables_of, words_of
from ....records.moving import OwnerRecord, Page, Record
from ....records.transfer import RowPage, RowTarget
from ....runtime.database import Database
from ....runtime.server_rows import as_sql_time
from ....transfer.engine import Advance, TransferReport, UnitSource, transfer

#: A limit above the number of namespaces, or of items of a namespace, in any store. Stores page by offsets, in an order
#: that changes with every write, so pages could miss items.
ALL = 1_000_000_000

#: The family that keeps the items of a store.
FAMILY = MEMORIES.name

#: What the records of a store are called in reports.
NOUN = "item"

#: Items that are written in one page.
PAGE_ITEMS = 200


async def copy_items(
    source: BaseStore, target: MySQLConfig, report: TransferReport | None = None, advance: Advance = lambda *_: None
) -> TransferReport:
    """Copy the items of a store, with their times. May be repeated: present items are skipped.

    Each item is read from the target again and compared. One that differs there, because it was changed since, is left
    unchanged. Items come without embeddings: ``locus-mysql embed`` adds them by a store with an ``index``.

    Args:
        source: Any store; it is only read, and times to live are not refreshed. The items of one namespace are held in
            memory.
        target: The server and tenant to copy to.
        report: Filled during the copy. If its ``dry_run`` is true, items are only counted, and no tables are created.
        advance: Called after each page.

    Raises:
        LocusMySQLError: The target cannot be used. Run the copy again: it continues.

    Example:
        ```python
        from langgraph.store.memory import InMemoryStore

        old = InMemoryStore()
        old.put(("users", "ada"), "drink", {"text": "Ada drinks tea."})
        report = await copy_items(old, MySQLConfig(dsn="mysql://user:password@localhost/app"))
        assert report.complete, report
        ```
    """
    report = TransferReport(NOUN) if report is None else report
    tables = tables_of(target)
    items = StoreItems(source, tables.columns(tables.owner))
    if report.dry_run:
        async for page in items.units():
            report.copied += len(page.page.records)
        return report
    async with Database(target) as database:
        goal = RowTarget((tables,), target, database, verify=True, advice="")
        return await transfer(items, goal, report, advance=advance)


class StoreItems(UnitSource[RowPage]):
    """Reads a store, a namespace at a time.

    Args:
        store: The store.
        columns: The columns of an item.
    """

    def __init__(self, store: BaseStore, columns: Sequence[str]) -> None:
        self._store = store
        self._columns = columns

    async def units(self) -> AsyncGenerator[RowPage, None]:
        """Read the items, in pages."""
        # In a thread, since not every store has asynchronous methods, and those that have block only other threads.
        for namespace in await asyncio.to_thread(self._store.list_namespaces, limit=ALL):
            try:
                found = await asyncio.to_thread(self._store.search, namespace, limit=ALL, refresh_ttl=False)
            except InvalidNamespaceError as error:
                yield RowPage(0, Page([], [f"The items in {namespace!r} cannot be read: {error}"], None))
                continue
            items = [item for item in found if tuple(item.namespace) == namespace]  # without those below it
            for start in range(0, len(items), PAGE_ITEMS):
                yield self._page(items[start : start + PAGE_ITEMS])

    def _page(self, items: list[SearchItem]) -> RowPage:
        records, damaged = list[Record](), list[str]()
        for item in items:
            try:
                records.append(self._record(item))
            except InvalidInput as error:
                damaged.append(f"Item {item.key!r} in {item.namespace!r} cannot be stored here: {error}")
        return RowPage(0, Page(records, damaged, None))

    def _record(self, item: SearchItem) -> OwnerRecord:
        """Return an item of a store as one of this package's.

        Raises:
            InvalidInput: It cannot be stored.
        """
        value = encode_value(item.value)
        row = {
            "path": path_of(tuple(item.namespace)),
            "item_key": encoded_key(item.key),
            "value": value,
            "version": 1,
            "created_at": _utc_text(item.created_at),
            "updated_at": _utc_text(item.updated_at),
            **words_of(value),
        }
        return OwnerRecord(tuple(row.get(one) for one in self._columns))


def _utc_text(time: datetime | None) -> str:
    """Return a time as MySQL writes it; one without a zone is in UTC."""
    time = time or datetime(1970, 1, 1, tzinfo=UTC)
    return as_sql_time(time if time.tzinfo else time.replace(tzinfo=UTC))
