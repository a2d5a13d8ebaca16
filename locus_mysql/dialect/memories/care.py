"""Statements for vacuum and health."""

from __future__ import annotations

from collections.abc import Sequence

from ..statement import Statement
from .template import MemoryStatements
from .vectors import GONE

#: Where embeddings are kept, in each of their forms. A code without content tells of one that was removed.
KEPT_IN = ("vectors", "signs", "codes")

COUNT_EXPIRED = "SELECT COUNT(*) FROM {items} i WHERE i.tenant = %s AND i.expires_at <= UTC_TIMESTAMP(6)"

COUNT_LOOSE = """
SELECT COUNT(DISTINCT s.path, s.item_key)
  FROM {signs} s
  LEFT JOIN {items} i ON i.tenant = s.tenant AND i.path = s.path AND i.item_key = s.item_key
 WHERE s.tenant = %s AND i.tenant IS NULL
"""

# Each embedding has a sign and a code, and each that was removed a code for a while. Both are counted by narrow
# indexes, changes and the primary key.
COUNT_REMOVED = """
SELECT GREATEST(0, (SELECT COUNT(*) FROM {codes} c FORCE INDEX (changes) WHERE c.tenant = %s)
                 - (SELECT COUNT(*) FROM {signs} s WHERE s.tenant = %s))
"""

COUNT_SETTLED = "SELECT COUNT(*) FROM {settled} WHERE tenant = %s"

# Keys that have embeddings, behind one, each with whether its item is there. Bounded by what it reads.
WALK = """
SELECT x.path, x.item_key, i.item_key IS NULL
  FROM (SELECT y.path, y.item_key FROM {<kept>} y
         WHERE y.tenant = %s<after><content>
         GROUP BY y.path, y.item_key
         ORDER BY y.path, y.item_key
         LIMIT %s) AS x
  LEFT JOIN {items} i ON i.tenant = %s AND i.path = x.path AND i.item_key = x.item_key
 ORDER BY x.path, x.item_key
"""
AFTER = " AND (y.path > %s OR (y.path = %s AND y.item_key > %s))"

REMOVE_LOOSE_SIGNS = "DELETE s FROM {signs} s WHERE (s.tenant, s.path, s.item_key) IN (<keys>)" + GONE.replace("?", "s")


class CareStatements(MemoryStatements):
    """Counting and removing what nobody needs."""

    def count_waste(self, tenant: str) -> tuple[Statement, ...]:
        """Expired items; items that are not there and have embeddings; embeddings removed; tokens of writes."""
        return (
            Statement(self._text(COUNT_EXPIRED), (tenant,)),
            Statement(self._text(COUNT_LOOSE), (tenant,)),
            Statement(self._text(COUNT_REMOVED), (tenant, tenant)),
            Statement(self._text(COUNT_SETTLED), (tenant,)),
        )

    def walk(self, kept: str, tenant: str, after: tuple[bytes, bytes] | None, limit: int) -> Statement:
        """Path and key of what has embeddings, behind one, and whether it is not there.

        Args:
            kept: One of `KEPT_IN`.
            tenant: Whose.
            after: Path and key.
            limit: At most this many.
        """
        text = WALK.replace("<kept>", kept).replace("<after>", AFTER if after else "")
        text = text.replace("<content>", " AND y.code IS NOT NULL" if kept == "codes" else "")
        behind = (after[0], *after) if after else ()
        return Statement(self._text(text), (tenant, *behind, limit, tenant))

    def remove_loose_signs(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Remove the signs of those of these items that are not there. The scopes must be locked."""
        return self.over_keys(REMOVE_LOOSE_SIGNS, tenant, keys)
