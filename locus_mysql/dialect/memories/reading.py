"""Statements that find items."""

from __future__ import annotations

from collections.abc import Sequence

from ..statement import Param, Statement
from .filters import Condition
from .ranges import Range
from .template import MemoryStatements, portions

GET = "SELECT {COLUMNS} FROM {items} i WHERE (i.tenant, i.path, i.item_key) IN (<keys>) AND {LIVE}<filter>"

VERSION = "SELECT i.version FROM {items} i WHERE i.tenant = %s AND i.path = %s AND i.item_key = %s AND {LIVE}"

KEYS = """
SELECT i.item_key FROM {items} i
 WHERE i.tenant = %s AND i.path = %s AND {LIVE}
 ORDER BY i.item_key
 LIMIT %s OFFSET %s
"""

COUNT = "SELECT COUNT(*) FROM {items} i WHERE i.tenant = %s<range> AND {LIVE}<filter>"

# Most recently written first. The inner part sorts keys, not values.
LIST = """
SELECT {COLUMNS}
  FROM (SELECT i.tenant, i.path, i.item_key FROM {items} i
         WHERE i.tenant = %s<range> AND {LIVE}<filter>
         ORDER BY i.updated_at DESC, i.path, i.item_key
         LIMIT %s OFFSET %s) AS chosen
  JOIN {items} i ON i.tenant = chosen.tenant AND i.path = chosen.path AND i.item_key = chosen.item_key
 ORDER BY i.updated_at DESC, i.path, i.item_key
"""

# Namespaces with items in them, in the order of their paths, from one on.
NAMESPACES = """
SELECT s.path FROM {scopes} s
 WHERE s.tenant = %s<range> AND s.path > %s
   AND EXISTS (SELECT 1 FROM {items} i WHERE i.tenant = s.tenant AND i.path = s.path AND {LIVE})
 ORDER BY s.path
 LIMIT %s
"""

# Uses the full-text index words. Of MySQL's score only the sign is used: it depends on the texts of all tenants.
WORDS = """
SELECT {COLUMNS}, found.score
  FROM (SELECT i.tenant, i.path, i.item_key, i.updated_at, <score> AS score
          FROM {items} i
         WHERE MATCH (i.search_text) AGAINST (%s IN NATURAL LANGUAGE MODE) AND i.tenant = %s<range> AND {LIVE}<filter>
         ORDER BY score DESC, i.updated_at DESC, i.path, i.item_key
         LIMIT %s OFFSET %s) AS found
  JOIN {items} i ON i.tenant = found.tenant AND i.path = found.path AND i.item_key = found.item_key
 ORDER BY found.score DESC, found.updated_at DESC, i.path, i.item_key
"""
HOLDS = "(MATCH (i.search_text) AGAINST (%s IN NATURAL LANGUAGE MODE) > 0)"


class ReadingStatements(MemoryStatements):
    """Finding items by key, by field and by word."""

    def get(
        self, tenant: str, keys: Sequence[tuple[bytes, bytes]], condition: Condition | None = None
    ) -> tuple[Statement, ...]:
        """The rows of items that are there, in any order; of those that fulfil a condition."""
        condition = condition or Condition()
        return tuple(
            Statement(
                _filtered(self._text(GET.replace("<keys>", ", ".join(["(%s, %s, %s)"] * len(some)))), condition),
                (*(param for path, key in some for param in (tenant, path, key)), *condition.params),
            )
            for some in portions(keys)
        )

    def version(self, tenant: str, path: bytes, key: bytes) -> Statement:
        """The version of an item."""
        return Statement(self._text(VERSION), (tenant, path, key))

    def keys(self, tenant: str, path: bytes, limit: int, offset: int) -> Statement:
        """Keys of a namespace, in their order."""
        return Statement(self._text(KEYS), (tenant, path, limit, offset))

    def count(self, tenant: str, where: Range, condition: Condition) -> Statement:
        """How many items there are."""
        text = _filtered(self._text(COUNT.replace("<range>", where.condition("i"))), condition)
        return Statement(text, (tenant, *where.params, *condition.params))

    def list(self, tenant: str, where: Range, condition: Condition, limit: int, offset: int) -> Statement:
        """Rows of items, most recently written first."""
        text = _filtered(self._text(LIST.replace("<range>", where.condition("i"))), condition)
        return Statement(text, (tenant, *where.params, *condition.params, limit, offset))

    def namespaces(self, tenant: str, where: Range, after: bytes, limit: int) -> Statement:
        """Paths that have items, after one."""
        text = NAMESPACES.replace("<range>", where.condition("s"))
        return Statement(self._text(text), (tenant, *where.params, after, limit))

    def words(
        self,
        tenant: str,
        where: Range,
        condition: Condition,
        query: str,
        parts: Sequence[str],
        limit: int,
        offset: int = 0,
    ) -> Statement:
        """Rows of items that hold any part of a query, best first, each with the share of the parts that it holds."""
        held = " + ".join([HOLDS] * len(parts))
        score = f"({held}) / {len(parts)}e0" if len(parts) > 1 else "1"  # as floats: whole numbers give four digits
        text = WORDS.replace("<score>", score).replace("<range>", where.condition("i"))
        scored: tuple[Param, ...] = tuple(parts) if len(parts) > 1 else ()
        return Statement(
            _filtered(self._text(text), condition),
            (*scored, query, tenant, *where.params, *condition.params, limit, offset),
        )


def _filtered(text: str, condition: Condition) -> str:
    """A statement with a condition. Not remembered: there is no end of conditions."""
    return text.replace("<filter>", condition.sql)
