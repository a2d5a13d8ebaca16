"""Reads items with what shows whether their embeddings are of a store's model: `EmbeddedItems`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...config import MySQLConfig
from ...engine.operation import Batch, Operation, fetch
from ...errors import CorruptCheckpoint, DecryptionFailed
from .sealed_items import SealedItems
from .statements.dialect import ItemKey, MemoryDialect, Range, of_tenant
from .statements.embedded import AT, WholeItemRow, page_of_items
from .statements.vectors import ModelEmbeddingRow


@dataclass(slots=True)
class EmbeddedItem:
    """An item.

    Args:
        row: Its row, with the value opened.
        embeddings: The model and the number of bytes of each embedding.
        is_damaged: Whether the value or an embedding is damaged.
    """

    row: WholeItemRow
    embeddings: list[tuple[int, int]]
    is_damaged: bool = False

    @property
    def key(self) -> ItemKey:
        """Its path and key."""
        return (self.row.path, self.row.key)


class EmbeddedItems:
    """Reads items with their embeddings.

    Args:
        config: The options.
        sql: The names of the tables.
    """

    def __init__(self, config: MySQLConfig, sql: MemoryDialect) -> None:
        self._sql = sql
        self._sealed = SealedItems(config)

    def page(self, tenant: str, where: Range, after: ItemKey | None, limit: int) -> Operation[list[EmbeddedItem]]:
        """Return items after a key, in the order of their paths and keys. One round trip."""
        rows = yield from fetch(page_of_items(self._sql, tenant, where, after, limit))
        return self._items_of(tenant, rows)

    def at(self, tenant: str, keys: Iterable[ItemKey]) -> Operation[list[EmbeddedItem]]:
        """Return those of some items that exist. One round trip."""
        queries = tuple(AT(self._sql, keys=some) for some in of_tenant(tenant, list(keys)))
        results = yield Batch(queries, atomic=False)
        return self._items_of(tenant, (row for query in queries for row in results.rows(query)))

    def _items_of(self, tenant: str, rows: Iterable[WholeItemRow]) -> list[EmbeddedItem]:
        items: dict[ItemKey, EmbeddedItem] = {}
        for row in rows:
            key = (row.path, row.key)
            item = items.get(key)
            try:
                if item is None:
                    item = items[key] = EmbeddedItem(row, [])
                    item.row = row._replace(value=self._sealed.open_value(tenant, row))
                if row.embedding is not None and row.number is not None and row.model is not None:
                    _, raw = self._sealed.open_embedding(
                        tenant, ModelEmbeddingRow(*key, row.number, row.embedding, row.model)
                    )
                    item.embeddings.append((row.model, len(raw)))
            except DecryptionFailed:
                raise
            except CorruptCheckpoint:
                items[key].is_damaged = True
        return list(items.values())
