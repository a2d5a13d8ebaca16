"""Statements that find items."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ..dialect import Dialect
from ..sql import Select
from ..statement import Param, Query
from ..template import placeholders
from ..words import Parser, WordSearch
from .filters import ItemFilter
from .pieces import CountRow, MemoryStatements, PathRow, portions
from .ranges import Range

GET = "SELECT {COLUMNS} FROM {items} i WHERE (i.tenant, i.path, i.item_key) IN ({keys}) AND {LIVE_ITEM}{filter}"

VERSION = "SELECT i.version FROM {items} i WHERE i.tenant = %s AND i.path = %s AND i.item_key = %s AND {LIVE_ITEM}"

KEYS = """
SELECT i.item_key FROM {items} i
 WHERE i.tenant = %s AND i.path = %s AND {LIVE_ITEM}
 ORDER BY i.item_key
 LIMIT %s OFFSET %s
"""

COUNT = "SELECT COUNT(*) FROM {items} i WHERE i.tenant = %s{range} AND {LIVE_ITEM}{filter}"

# Most recently written first. The inner query sorts keys, not values.
LIST = """
SELECT {COLUMNS}
  FROM (SELECT i.tenant, i.path, i.item_key FROM {items} i
         WHERE i.tenant = %s{range}{after} AND {LIVE_ITEM}{filter}
         ORDER BY i.updated_at DESC, i.path, i.item_key
         LIMIT %s OFFSET %s) AS chosen
  JOIN {items} i ON i.tenant = chosen.tenant AND i.path = chosen.path AND i.item_key = chosen.item_key
 ORDER BY i.updated_at DESC, i.path, i.item_key
"""

# Namespaces with items, after a path, in the order of their paths. MySQL would run EXISTS as a semijoin, and read all
# items for each page.
NAMESPACES = """
SELECT s.path FROM {scopes} s
 WHERE s.tenant = %s{range} AND s.path > %s
   AND EXISTS (SELECT /*+ NO_SEMIJOIN() */ 1 FROM {items} i
                WHERE i.tenant = s.tenant AND i.path = s.path AND {LIVE_ITEM})
 ORDER BY s.path
 LIMIT %s
"""

# Items whose text waits for the full-text index, by the index pending. There are few, as each search of a store indexes
# them; an inspector may not.
WAITING = """
  UNION ALL
  (SELECT i.path, i.item_key, i.updated_at{pending_flags}
     FROM (SELECT tenant, path, item_key FROM {items} FORCE INDEX (pending)
            WHERE unindexed = 1 LIMIT {waiting_rows}) AS waiting
     STRAIGHT_JOIN {items} i
       ON i.tenant = waiting.tenant AND i.path = waiting.path AND i.item_key = waiting.item_key
    WHERE {pending} AND i.unindexed = 1 AND i.tenant = :tenant{range} AND {LIVE_ITEM}{filter})"""

#: The maximum number of waiting texts that an inspector searches.
WAITING_ROWS = 10_000

# The items that follow an item in the order of LIST.
OLDER = "(i.updated_at < %s OR (i.updated_at = %s AND (i.path > %s OR (i.path = %s AND i.item_key > %s))))"


class ItemRow(NamedTuple):
    """An item as it is stored. Times are in UTC."""

    path: bytes
    key: bytes
    value: str
    metadata: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    checksum: int


class ScoredItemRow(NamedTuple):
    """An `ItemRow` with its score: see `words`."""

    path: bytes
    key: bytes
    value: str
    metadata: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    checksum: int
    score: float | Decimal | int


class VersionRow(NamedTuple):
    """The version of an item."""

    version: int


class KeyRow(NamedTuple):
    """The key of an item."""

    key: bytes


# Uses the full-text index: see `words`.
WORDS = Select(
    """
WITH found AS (
  (SELECT i.path, i.item_key, i.updated_at{flags}
     FROM {items} i
    WHERE {indexed} AND i.tenant = :tenant{range} AND {LIVE_ITEM}{filter}{having}){waiting}
), best AS (
  SELECT found.path, found.item_key, found.updated_at, {score} AS score
    FROM found{weights}
   ORDER BY score DESC, found.updated_at DESC, found.path, found.item_key
   LIMIT :limit OFFSET :offset
)
SELECT {COLUMNS}, best.score
  FROM best
  JOIN {items} i ON i.tenant = :tenant AND i.path = best.path AND i.item_key = best.item_key
 ORDER BY best.score DESC, best.updated_at DESC, i.path, i.item_key
""",
    ScoredItemRow,
)


class ReadingStatements(MemoryStatements):
    """Finding items by key, by field and by word.

    Args:
        dialect: The family's.
        parser: The parser of the full-text index.
    """

    def __init__(self, dialect: Dialect, parser: Parser = "default") -> None:
        super().__init__(dialect.pieces)
        self._dialect = dialect
        self._parser = parser

    def get(
        self, tenant: str, keys: Sequence[tuple[bytes, bytes]], condition: ItemFilter | None = None
    ) -> tuple[Query[ItemRow], ...]:
        """Return the items with these keys that match a filter, in any order."""
        condition = condition or ItemFilter()
        return tuple(
            Query(
                self._text(GET, keys=placeholders(len(some), "(%s, %s, %s)"), filter=condition.sql),
                (*(param for path, key in some for param in (tenant, path, key)), *condition.params),
                row=ItemRow,
            )
            for some in portions(keys)
        )

    def version(self, tenant: str, path: bytes, key: bytes) -> Query[VersionRow]:
        """Return the version of an item."""
        return Query(self._text(VERSION), (tenant, path, key), row=VersionRow)

    def keys(self, tenant: str, path: bytes, limit: int, offset: int) -> Query[KeyRow]:
        """Return the keys of a namespace, in their order."""
        return Query(self._text(KEYS), (tenant, path, limit, offset), row=KeyRow)

    def count(self, tenant: str, where: Range, condition: ItemFilter) -> Query[CountRow]:
        """Count items."""
        text = self._text(COUNT, range=where.condition("i"), filter=condition.sql)
        return Query(text, (tenant, *where.params, *condition.params), row=CountRow)

    def list(
        self,
        tenant: str,
        where: Range,
        condition: ItemFilter,
        limit: int,
        *,
        offset: int = 0,
        after: ItemRow | None = None,
    ) -> Query[ItemRow]:
        """Return items, most recently written first.

        Args:
            tenant: The tenant.
            where: The namespaces.
            condition: The filter that the items match.
            limit: The maximum number of items.
            offset: Items to skip.
            after: The last item of the page before.
        """
        text = self._text(
            LIST, range=where.condition("i"), after=f" AND {OLDER}" if after else "", filter=condition.sql
        )
        params = (tenant, *where.params, *(_older_params(after) if after else ()), *condition.params, limit, offset)
        return Query(text, params, row=ItemRow)

    def namespaces(self, tenant: str, where: Range, after: bytes, limit: int) -> Query[PathRow]:
        """Return the paths of namespaces with items, after a path, in their order."""
        text = self._text(NAMESPACES, range=where.condition("s"))
        return Query(text, (tenant, *where.params, after, limit), row=PathRow)

    def words(
        self,
        tenant: str,
        where: Range,
        condition: ItemFilter,
        parts: Sequence[str],
        limit: int,
        *,
        offset: int = 0,
        inspects: bool = False,
    ) -> Query[ScoredItemRow]:
        """Return items that hold any part of a query, best first.

        Args:
            tenant: The tenant.
            where: The namespaces.
            condition: The filter that the items match.
            parts: Words and phrases.
            limit: The maximum number of items.
            offset: Items to skip.
            inspects: Whether to search texts that are not indexed yet, too.
        """
        words = WordSearch(tenant, parts, self._parser, "i")
        within, in_range = _named("range", where.condition("i"), where.params)
        filter, in_filter = _named("filter", condition.sql, condition.params)
        pieces = {
            **words.pieces,
            "range": within,
            "filter": filter,
            "waiting": WAITING if inspects else "",
            "waiting_rows": str(WAITING_ROWS),
        }
        values = {**words.values, **in_range, **in_filter}
        return WORDS(self._dialect, pieces=pieces, tenant=tenant, limit=limit, offset=offset, **values)


def _named(name: str, condition: str, params: Sequence[Param]) -> tuple[str, dict[str, Param]]:
    """Return a condition with names for its parameters, and their values."""
    values = {f"{name}{number}": value for number, value in enumerate(params)}
    names = iter(values)
    return re.sub("%s", lambda _: f":{next(names)}", condition), values


def _older_params(item: ItemRow) -> tuple[Param, ...]:
    """The parameters of `OLDER`."""
    time = f"{item.updated_at:%Y-%m-%d %H:%M:%S.%f}"
    return (time, time, item.path, item.path, item.key)
