"""Statements for vacuum and health."""

from __future__ import annotations

from collections.abc import Sequence

from ..statement import Param, Statement
from .ranges import Range, owner_of, path_at
from .template import MemoryStatements, portions

#: Where embeddings are kept, in each of their forms. A code without content tells of one that was removed.
KEPT_IN = ("vectors", "signs", "codes")

COUNT_EXPIRED = "SELECT COUNT(*) FROM {items} i WHERE i.tenant = %s AND i.expires_at <= UTC_TIMESTAMP(6)"

COUNT_LOOSE = """
SELECT COUNT(DISTINCT s.owner, s.item_key)
  FROM {signs} s
  LEFT JOIN {items} i ON i.tenant = %s AND i.path = SUBSTR(s.owner, %s) AND i.item_key = s.item_key
<all> AND i.tenant IS NULL
"""

# Each embedding has a sign and a code, and each that was removed a code for a while. Both are counted by narrow
# indexes, changes and the primary key.
COUNT_REMOVED = """
SELECT GREATEST(0, (SELECT COUNT(*) FROM {codes} c FORCE INDEX (changes) WHERE c.tenant = %s)
                 - (SELECT COUNT(*) FROM {signs} s<all>))
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

# The same of signs.
WALK_SIGNS = """
SELECT SUBSTR(x.owner, %s), x.item_key, i.item_key IS NULL
  FROM (SELECT y.owner, y.item_key FROM {signs} y
        <all><after>
         GROUP BY y.owner, y.item_key
         ORDER BY y.owner, y.item_key
         LIMIT %s) AS x
  LEFT JOIN {items} i ON i.tenant = %s AND i.path = SUBSTR(x.owner, %s) AND i.item_key = x.item_key
 ORDER BY x.owner, x.item_key
"""
AFTER_SIGNS = " AND (y.owner > %s OR (y.owner = %s AND y.item_key > %s))"

REMOVE_LOOSE_SIGNS = """
DELETE s FROM {signs} s
 WHERE (s.owner, s.item_key) IN (<keys>)
   AND NOT EXISTS (SELECT 1 FROM {items} i
                    WHERE i.tenant = %s AND i.path = SUBSTR(s.owner, %s) AND i.item_key = s.item_key)
"""

#: All of a tenant.
ALL = Range(b"")


class CareStatements(MemoryStatements):
    """Counting and removing what nobody needs."""

    def count_waste(self, tenant: str) -> tuple[Statement, ...]:
        """Expired items; items that are not there and have embeddings; embeddings removed; tokens of writes."""
        return (
            Statement(self._text(COUNT_EXPIRED), (tenant,)),
            Statement(
                self._text(COUNT_LOOSE.replace("<all>", ALL.owned("s"))),
                (tenant, path_at(tenant), *ALL.owned_params(tenant)),
            ),
            Statement(self._text(COUNT_REMOVED.replace("<all>", ALL.owned("s"))), (tenant, *ALL.owned_params(tenant))),
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
        if kept == "signs":
            return self._walk_signs(tenant, after, limit)
        text = WALK.replace("<kept>", kept).replace("<after>", AFTER if after else "")
        text = text.replace("<content>", " AND y.code IS NOT NULL" if kept == "codes" else "")
        behind = (after[0], *after) if after else ()
        return Statement(self._text(text), (tenant, *behind, limit, tenant))

    def _walk_signs(self, tenant: str, after: tuple[bytes, bytes] | None, limit: int) -> Statement:
        text = WALK_SIGNS.replace("<all>", ALL.owned("y")).replace("<after>", AFTER_SIGNS if after else "")
        behind: tuple[Param, ...] = ()
        if after:
            owner = owner_of(tenant, after[0])
            behind = (owner, owner, after[1])
        at = path_at(tenant)
        return Statement(self._text(text), (at, *ALL.owned_params(tenant), *behind, limit, tenant, at))

    def remove_loose_signs(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Remove the signs of those of these items that are not there. The scopes must be locked."""
        return tuple(
            Statement(
                self._text(REMOVE_LOOSE_SIGNS.replace("<keys>", ", ".join(["(%s, %s)"] * len(some)))),
                (*(param for path, key in some for param in (owner_of(tenant, path), key)), tenant, path_at(tenant)),
            )
            for some in portions(keys)
        )
