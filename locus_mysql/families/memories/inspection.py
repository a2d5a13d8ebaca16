"""Reads long-term memory for the inspector: namespaces, items, searches by word and by meaning. No I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from ...config import MySQLConfig
from ...dialect.sql import Select
from ...engine.operation import Operation, fetch
from ...errors import CorruptCheckpoint, DecryptionFailed, InvalidInput
from ...runtime.arguments import check_limit, tenant_of
from ...runtime.server_rows import aware
from ..inspection.item_records import ItemHit, ItemRow, ItemView, NamespaceRow
from ..inspection.msgpack import DAMAGED, describe_bytes, finite, metadata_of
from ..inspection.records import Page
from ..inspection.sources import NO_CURSOR, PAGE_LIMIT, from_cursor, to_cursor
from .arguments import encoded_key, path_of
from .embedding import EmbeddingOptions, EmbedFunction, Procedure
from .operations import MemoryOperations
from .records import MemoryHit, MemoryItem
from .sealed_items import SealedItems
from .searching import Way
from .statements.tables import ItemPlace, MemoryDialect, Range, owner_of
from .vectors.coding import Metric

#: The number of characters of an item's value that a list shows.
PREVIEW_CHARACTERS = 400

#: Longer values are not read whole for a list, and so their seals are not checked there. Encrypted ones are.
CHECKED_CHARACTERS, ALL_CHARACTERS = 65_536, 2**32 - 1


class NamespaceSizeRow(NamedTuple):
    """A namespace with the number of its items, the bytes of their values, and the time of the last write."""

    path: bytes
    items: int
    size_bytes: int | Decimal
    updated_at: datetime


class PreviewRow(NamedTuple):
    """An item, in a list perhaps with the beginning of its value only. Times are in UTC.

    The number of its embeddings, and their width if they are not encrypted, are NULL in a list.
    """

    path: bytes
    key: bytes
    value: str
    metadata: str | None
    seal: int | None
    size_bytes: int
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    embeddings: int | None
    dims: int | None


#: Namespaces with items, after a path, in the order of their paths. Counts only the items of the returned namespaces.
NAMESPACES = Select(
    """
SELECT s.path, held.items, held.size_bytes, held.updated_at
  FROM (SELECT s.tenant, s.path FROM {scopes} s
         WHERE s.tenant = :tenant{range} AND s.path > :after
           AND EXISTS (SELECT /*+ NO_SEMIJOIN() */ 1 FROM {items} i
                        WHERE i.tenant = s.tenant AND i.path = s.path AND {LIVE_ITEM})
         ORDER BY s.path
         LIMIT :limit) AS s
  JOIN LATERAL (SELECT COUNT(*) AS items, COALESCE(SUM(LENGTH(i.value)), 0) AS size_bytes,
                       MAX(i.updated_at) AS updated_at
                  FROM {items} i
                 WHERE i.tenant = s.tenant AND i.path = s.path AND {LIVE_ITEM}) AS held
 ORDER BY s.path
""",
    NamespaceSizeRow,
)

#: Items of exactly one namespace, in the order of their keys, after one.
ITEMS = Select(
    """
SELECT i.path, i.item_key, LEFT(i.value, :characters), i.metadata, i.seal,
       LENGTH(i.value) + COALESCE(LENGTH(i.metadata), 0), i.version, i.created_at, i.updated_at, i.expires_at,
       NULL, NULL
  FROM {items} i
 WHERE i.tenant = :tenant AND i.path = :path AND i.item_key > :after AND {LIVE_ITEM}
 ORDER BY i.item_key
 LIMIT :limit
""",
    PreviewRow,
)

#: An item whole, with the number and the width of its embeddings.
ITEM = Select(
    """
SELECT i.path, i.item_key, i.value, i.metadata, i.seal,
       LENGTH(i.value) + COALESCE(LENGTH(i.metadata), 0), i.version, i.created_at, i.updated_at, i.expires_at,
       (SELECT COUNT(*) FROM {vectors} v
         WHERE v.tenant = i.tenant AND v.path = i.path AND v.item_key = i.item_key AND v.removed = 0),
       (SELECT MAX(s.dims) FROM {signs} s WHERE s.owner = :owner AND s.item_key = i.item_key)
  FROM {items} i
 WHERE i.tenant = :tenant AND i.path = :path AND i.item_key = :key AND {LIVE_ITEM}
""",
    PreviewRow,
)


class Memories:
    """Reads the long-term memories of one tenant.

    Args:
        config: The options.
        embed: Embeds queries; without it, a search is by word.
        dims: The number of dimensions of its embeddings.
        metric: As for `MemoryStore`.
        model: The name of the function's model.
    """

    def __init__(
        self,
        config: MySQLConfig,
        *,
        embed: EmbedFunction | None = None,
        dims: int | None = None,
        metric: Metric = "cosine",
        model: str = "",
    ) -> None:
        # Only a search needs the full-text index.
        self.schema = MemoryDialect(config.table_prefix, search=False).schema
        self._tenant = tenant_of(config)
        self._sealed = SealedItems(config)
        # A search of an inspecting store writes nothing: other stores move waiting texts into the index.
        reading = config.model_copy(update={"read_only": True})
        options = EmbeddingOptions(embed=embed, dims=dims, metric=metric, model=model)
        self._searching = MemoryOperations(reading, options)
        self._sql = self._searching.sql

    def namespaces(
        self, prefix: Sequence[str] = (), *, limit: int = 100, cursor: str | None = None
    ) -> Operation[Page[NamespaceRow]]:
        """Return the namespaces that begin with some labels and have items, sorted. One round trip."""
        where = Range(path_of(prefix, empty=True, what="Prefix"))
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        asked: dict[str, Any] = {"tenant": self._tenant, "after": _after(cursor), "limit": limit, **where.params}
        found = yield from fetch(NAMESPACES(self._sql, pieces={"range": where.condition("s")}, **asked))
        rows = [NamespaceRow(_labels(path), items, int(size), aware(time)) for path, items, size, time in found]
        return Page(rows, _cursor(found[-1].path) if len(rows) == limit else None)

    def items(
        self, namespace: Sequence[str], *, limit: int = 100, cursor: str | None = None
    ) -> Operation[Page[ItemRow]]:
        """Return the items of exactly one namespace, sorted by key. One round trip."""
        path, limit = path_of(namespace), min(check_limit(limit, least=1), PAGE_LIMIT)
        characters = ALL_CHARACTERS if self._sealed.is_on else CHECKED_CHARACTERS
        asked: dict[str, Any] = {"tenant": self._tenant, "path": path, "after": _after(cursor), "limit": limit}
        found = yield from fetch(ITEMS(self._sql, characters=characters, **asked))
        rows = [_item_row(row, self._readable(row)) for row in found]
        return Page(rows, _cursor(found[-1].key) if len(found) == limit else None)

    def item(self, namespace: Sequence[str], key: str) -> Operation[ItemView | None]:
        """Return an item; None if it does not exist. One round trip. This does not refresh its time to live."""
        path = path_of(namespace)
        place, owner = ItemPlace(self._tenant, path, encoded_key(key)), owner_of(self._tenant, path)
        found = yield from fetch(ITEM(self._sql, place, owner=owner))
        if not found:
            return None
        row = found[0]
        value, (metadata, damage) = self._readable(row), metadata_of(row.metadata)
        if damage is None and value is None:
            damage = "The item's seal is wrong."
        return ItemView(
            item=_item_row(row, value),
            value=_value(row.value, sound=False) if value is None else _value(value, sound=True),
            metadata=metadata if damage is None else {"damaged": damage},
            embeddings=row.embeddings or 0,
            dims=row.dims,
        )

    def search(
        self, query: str, prefix: Sequence[str] = (), *, limit: int = 20, way: Way | None = None
    ) -> Procedure[list[ItemHit]]:
        """Search a namespace and those below it by word or by meaning, best hits first.

        Args:
            query: The query.
            prefix: The first labels; empty for all.
            limit: The maximum number of items to return.
            way: ``word``, ``meaning`` or ``hybrid``; by default by meaning if there is an embed function.

        Raises:
            InvalidInput: A search by meaning without an embed function, or one by word without a full-text index.
        """
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        found: list[MemoryHit] = yield from self._searching.search(prefix, query=query, limit=limit, way=way)
        return _hits(found)

    def _readable(self, row: PreviewRow) -> str | None:
        """Return the value of a row, or the beginning of a long one; None if it is damaged."""
        if row.embeddings is None and not self._sealed.is_on and len(row.value) == CHECKED_CHARACTERS:
            return row.value
        try:
            return self._sealed.open_value(self._tenant, (row.path, row.key), row.value, row.metadata, row.seal)
        except DecryptionFailed:
            raise
        except CorruptCheckpoint:
            return None


def _item_row(row: PreviewRow, value: str | None) -> ItemRow:
    return ItemRow(
        namespace=_labels(row.path),
        key=row.key.decode("utf-8", "replace"),
        preview=DAMAGED if value is None else value[:PREVIEW_CHARACTERS],
        size_bytes=row.size_bytes,
        version=row.version,
        created_at=aware(row.created_at),
        updated_at=aware(row.updated_at),
        expires_at=None if row.expires_at is None else aware(row.expires_at),
    )


def _hits(hits: Sequence[MemoryHit]) -> list[ItemHit]:
    return [ItemHit(_row(hit.item), 0.0 if hit.score is None else float(hit.score)) for hit in hits]


def _row(item: MemoryItem) -> ItemRow:
    text = json.dumps(item.value, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode("utf-8", "replace")) + (len(json.dumps(item.metadata)) if item.metadata else 0)
    return ItemRow(
        namespace=item.namespace,
        key=item.key,
        preview=text[:PREVIEW_CHARACTERS],
        size_bytes=size,
        version=item.version,
        created_at=item.created_at,
        updated_at=item.updated_at,
        expires_at=item.expires_at,
    )


def _labels(path: bytes) -> tuple[str, ...]:
    """Return the labels of a path. Bytes that are not UTF-8 are replaced, so that a damaged path breaks no list."""
    return tuple(label.decode("utf-8", "replace") for label in path.split(b"\0")[:-1])


def _value(text: str, *, sound: bool) -> Any:
    try:
        value = finite(json.loads(text))
    except (ValueError, RecursionError):
        return describe_bytes("damaged JSON", len(text.encode("utf-8", "replace")))
    return value if sound else DAMAGED


def _cursor(position: bytes) -> str:
    """Return the cursor of a path or a key."""
    return to_cursor(position.hex())


def _after(cursor: str | None) -> bytes:
    """Return the path or key of a cursor."""
    if cursor is None:
        return b""
    try:
        return bytes.fromhex(from_cursor(cursor, str)[0])
    except ValueError:
        raise InvalidInput(NO_CURSOR) from None
