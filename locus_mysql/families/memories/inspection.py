"""Reads long-term memory for the inspector: namespaces, items, searches by word and by meaning. No I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...config import MySQLConfig
from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.inspection import PREVIEW_CHARACTERS, PreviewRow, WholeItemRow
from ...dialect.memories.ranges import Range
from ...engine.operation import Operation, fetch
from ...errors import InvalidInput
from ...runtime.arguments import check_limit
from ...runtime.server_times import aware
from ..inspection.item_records import EXAMINED, Growth, ItemHit, ItemRow, ItemView, NamespaceRow, growth_of
from ..inspection.msgpack import DAMAGED, describe_bytes, finite, metadata_of
from ..inspection.records import Page
from ..inspection.sources import PAGE_LIMIT, from_cursor, to_cursor
from .embedding import EmbedFunction, Procedure
from .embedding_options import EmbeddingOptions
from .namespaces import encoded_key, path_of
from .operations import MemoryOperations
from .records import MemoryHit, MemoryItem
from .sealed_items import SealedItems
from .searching import Way
from .vectors.scoring import Metric


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
        self._tenant = config.tenant
        self._sealed = SealedItems(config)
        self._embeds = embed is not None
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
        query = self._sql.inspection.namespaces(self._tenant, where, _after(cursor), limit)
        found = yield from fetch(query)
        rows = [NamespaceRow(_labels(path), items, int(size), aware(time)) for path, items, size, time in found]
        return Page(rows, _cursor(found[-1].path) if len(rows) == limit else None)

    def growth(self) -> Operation[Growth]:
        """Return the items created per day, of the first `EXAMINED` ones. One round trip."""
        query = self._sql.inspection.created(self._tenant, EXAMINED)
        return growth_of("items", (yield from fetch(query)), EXAMINED)

    def items(
        self, namespace: Sequence[str], *, limit: int = 100, cursor: str | None = None
    ) -> Operation[Page[ItemRow]]:
        """Return the items of exactly one namespace, sorted by key. One round trip."""
        path, limit = path_of(namespace), min(check_limit(limit, least=1), PAGE_LIMIT)
        query = self._sql.inspection.items(self._tenant, path, _after(cursor), limit, whole=self._sealed.is_on)
        found = yield from fetch(query)
        return Page([self._item(row) for row in found], _cursor(found[-1].key) if len(found) == limit else None)

    def item(self, namespace: Sequence[str], key: str) -> Operation[ItemView | None]:
        """Return an item; None if it does not exist. One round trip. This does not refresh its time to live."""
        found = yield from fetch(self._sql.inspection.item(self._tenant, path_of(namespace), encoded_key(key)))
        if not found:
            return None
        row = found[0]
        known, damage = metadata_of(row.metadata)
        if damage is None and not row.sound:
            known = {"damaged": "The item's checksum is wrong."}
        return ItemView(
            item=self._item(row._replace(preview=row.value)),
            value=_value(self._opened(row, row.value), sound=bool(row.sound)),
            metadata=known if damage is None else {"damaged": damage},
            embeddings=row.embeddings,
            # The length of an encrypted embedding includes the name of its key.
            dims=None if self._sealed.is_on else row.dims,
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

    def _item(self, row: PreviewRow | WholeItemRow) -> ItemRow:
        return ItemRow(
            namespace=_labels(row.path),
            key=row.key.decode("utf-8", "replace"),
            preview=self._opened(row, row.preview)[:PREVIEW_CHARACTERS] if row.sound else DAMAGED,
            size_bytes=row.size_bytes,
            version=row.version,
            created_at=aware(row.created_at),
            updated_at=aware(row.updated_at),
            expires_at=None if row.expires_at is None else aware(row.expires_at),
        )

    def _opened(self, row: PreviewRow | WholeItemRow, value: str) -> str:
        return self._sealed.value(self._tenant, row.path, row.key, value) if row.sound else value


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
        raise InvalidInput("The cursor does not come from a page of this list. Begin at the first page.") from None
