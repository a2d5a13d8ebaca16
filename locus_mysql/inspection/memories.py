"""Looking at long-term memory: namespaces, items, and searches by word and by meaning. No I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, cast

from ..config import MySQLConfig
from ..dialect.memories.dialect import MemoryDialect
from ..dialect.memories.inspection import PREVIEW_CHARACTERS
from ..dialect.memories.ranges import Range
from ..drivers.interface import Row
from ..engine.operation import Batch, Operation
from ..errors import InvalidInput
from ..families.graphs.loading import aware
from ..families.memories.embedding import EmbedFunction, Procedure
from ..families.memories.namespaces import encoded_key, path_of
from ..families.memories.records import MemoryHit, MemoryItem, hit_of
from ..families.memories.searching import Way
from ..families.memories.store import MemoryProcedures
from ..families.memories.vectors.scoring import Metric
from ..runtime.arguments import check_limit
from ..runtime.damage import readable
from ..runtime.words import parts_of
from .cursors import from_cursor, to_cursor
from .msgpack import told_bytes
from .records import ItemHit, ItemRow, ItemView, NamespaceRow, Page
from .sources import PAGE_LIMIT
from .to_json import DAMAGED, finite, metadata_of


class Memories:
    """Looks at the long-term memories of one tenant.

    Args:
        config: The options.
        embed: Embeds queries; without it, a search is by word.
        dims: The width of its embeddings.
        metric: As for `MemoryStore`.
    """

    def __init__(
        self,
        config: MySQLConfig,
        *,
        embed: EmbedFunction | None = None,
        dims: int | None = None,
        metric: Metric = "cosine",
    ) -> None:
        # Whether there is a full-text index matters to a search only.
        self.schema = MemoryDialect(config.table_prefix, search=False).schema
        self._tenant = config.tenant
        self._embeds = embed is not None
        # Of a store that only inspects, a search writes nothing: others move texts that wait into the index.
        reading = config.model_copy(update={"reads": "inspect"})
        self._searching = MemoryProcedures(reading, embed=embed, dims=dims, metric=metric)
        self._sql = self._searching.sql

    def namespaces(
        self, prefix: Sequence[str] = (), *, limit: int = 100, cursor: str | None = None
    ) -> Operation[Page[NamespaceRow]]:
        """Namespaces with items in them that begin with some labels, in their order. One round trip."""
        where = Range(path_of(prefix, empty=True, what="Prefix"))
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        (found,) = yield Batch.query(self._sql.inspection.namespaces(self._tenant, where, _after(cursor), limit))
        rows = [
            NamespaceRow(_labels(path), int(cast(int, items)), int(cast(int, size)), aware(time))
            for path, items, size, time in found.rows
        ]
        return Page(rows, _cursor(found.rows[-1][0]) if len(rows) == limit else None)

    def items(
        self, namespace: Sequence[str], *, limit: int = 100, cursor: str | None = None
    ) -> Operation[Page[ItemRow]]:
        """Items of exactly one namespace, in the order of their keys. One round trip."""
        path, limit = path_of(namespace), min(check_limit(limit, least=1), PAGE_LIMIT)
        (found,) = yield Batch.query(self._sql.inspection.items(self._tenant, path, _after(cursor), limit))
        return Page(
            [_item(row) for row in found.rows], _cursor(found.rows[-1][1]) if len(found.rows) == limit else None
        )

    def item(self, namespace: Sequence[str], key: str) -> Operation[ItemView | None]:
        """One item; None if there is none. One round trip; an item that expires is not refreshed."""
        (found,) = yield Batch.of(self._sql.inspection.item(self._tenant, path_of(namespace), encoded_key(key)))
        if not found.rows:
            return None
        value, metadata, embeddings, dims = found.rows[0][9:]
        sound = bool(found.rows[0][8])
        known, damage = metadata_of(metadata)
        if damage is None and not sound:
            known = {"damaged": "The item's checksum is wrong."}
        return ItemView(
            item=_item(found.rows[0]),
            value=_value(str(value), sound=sound),
            metadata=known if damage is None else {"damaged": damage},
            embeddings=int(cast(int, embeddings)),
            dims=None if dims is None else int(cast(int, dims)),
        )

    def search(
        self, query: str, prefix: Sequence[str] = (), *, limit: int = 20, way: Way | None = None
    ) -> Procedure[list[ItemHit]]:
        """Items of a namespace and those below it that hold words of a query, or are near to its meaning, best first.

        Args:
            query: What is looked for.
            prefix: The first labels; empty for all.
            limit: At most this many.
            way: ``word``, ``meaning`` or ``hybrid``; by default by meaning if there is an embed function.

        Raises:
            InvalidInput: A search by meaning without an embed function, or one by word without a full-text index.
        """
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        found: list[MemoryHit] = yield from self._searching.search(prefix, query=query, limit=limit, way=way)
        if way == "word" or (way is None and not self._embeds):
            found = [*(yield self._pending(query, prefix, limit)), *found]
        hits = {(hit.item.namespace, hit.item.key): hit for hit in reversed(_hits(found))}
        return sorted(hits.values(), key=lambda hit: (hit.score, hit.item.updated_at), reverse=True)[:limit]

    def _pending(self, query: str, prefix: Sequence[str], limit: int) -> Operation[list[MemoryHit]]:
        """Hits among the items whose text waits for the full-text index."""
        parts = [part.strip('"') for part in parts_of(query)]
        if not parts:
            return []
        where = Range(path_of(prefix, empty=True, what="Namespace prefix"))
        (found,) = yield Batch.query(self._sql.inspection.pending(self._tenant, where, parts, limit))
        return list(readable(partial(hit_of, self._tenant), found.rows))


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


def _item(row: Row) -> ItemRow:
    path, key, preview, size_bytes, version, created_at, updated_at, expires_at, sound = row[:9]
    return ItemRow(
        namespace=_labels(path),
        key=cast(bytes, key).decode("utf-8", "replace"),
        preview=str(preview) if sound else DAMAGED,
        size_bytes=int(cast(int, size_bytes)),
        version=int(cast(int, version)),
        created_at=aware(created_at),
        updated_at=aware(updated_at),
        expires_at=None if expires_at is None else aware(cast(datetime, expires_at)),
    )


def _labels(path: object) -> tuple[str, ...]:
    """The labels of a path; what is no UTF-8 is replaced, so that a damaged one breaks no list."""
    return tuple(label.decode("utf-8", "replace") for label in cast(bytes, path).split(b"\0")[:-1])


def _value(text: str, *, sound: bool) -> Any:
    try:
        value = finite(json.loads(text))
    except (ValueError, RecursionError):
        return told_bytes("damaged JSON", len(text.encode("utf-8", "replace")))
    return value if sound else DAMAGED


def _cursor(place: object) -> str:
    """The cursor of a path or a key, which are bytes."""
    return to_cursor(cast(bytes, place).hex())


def _after(cursor: str | None) -> bytes:
    """The path or key that a cursor tells."""
    if cursor is None:
        return b""
    try:
        return bytes.fromhex(from_cursor(cursor, str)[0])
    except ValueError:
        raise InvalidInput("The cursor is none that a page of this list ended with. Begin at the first page.") from None
