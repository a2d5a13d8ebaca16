"""Statements about embeddings: in full, as a byte and as a bit per dimension.

They need a table of scopes, and tables of embeddings keyed by tenant, path, key and place; nothing of what is embedded,
but for a condition on it. So another family of records can use them on tables of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from ..checksums import checksum
from ..statement import Param, Statement
from .filters import Condition
from .ranges import Range, owner_of, path_at
from .template import MemoryStatements, portions

REMOVE = """
DELETE v, s
  FROM {vectors} v
  LEFT JOIN {signs} s ON s.owner = CONCAT(v.tenant, 0x00, v.path) AND s.item_key = v.item_key AND s.place = v.place
 WHERE (v.tenant, v.path, v.item_key) IN (<keys>)<gone>
"""

# The codes stay for a while without their content, for caches to be told.
REMOVE_CODES = """
UPDATE {codes} c
  JOIN {scopes} s ON s.tenant = c.tenant AND s.path = c.path
   SET c.code = NULL, c.stamp = s.stamp
 WHERE (c.tenant, c.path, c.item_key) IN (<keys>) AND c.code IS NOT NULL<gone>
"""

GONE = """
   AND NOT EXISTS (SELECT 1 FROM {items} i WHERE i.tenant = ?.tenant AND i.path = ?.path AND i.item_key = ?.item_key)"""

REMOVE_RANGE = """
DELETE v, s
  FROM {vectors} v
  LEFT JOIN {signs} s ON s.owner = CONCAT(v.tenant, 0x00, v.path) AND s.item_key = v.item_key AND s.place = v.place
 WHERE v.tenant = %s<range>
"""
REMOVE_CODES_RANGE = """
UPDATE {codes} c
  JOIN {scopes} s ON s.tenant = c.tenant AND s.path = c.path
   SET c.code = NULL, c.stamp = s.stamp
 WHERE c.tenant = %s<range> AND c.code IS NOT NULL
"""

ADD_VECTORS = "INSERT INTO {vectors} (tenant, path, item_key, place, digest, embedding, checksum) VALUES <rows>"
# Signs without an embedding, as somebody deleted that by hand, are in nobody's way.
ADD_SIGNS = "REPLACE INTO {signs} (owner, item_key, place, expires, dims, sig) VALUES <rows>"
ADD_CODES = """
INSERT INTO {codes} (tenant, path, item_key, place, stamp, code)
VALUES <rows> AS fresh
    ON DUPLICATE KEY UPDATE stamp = fresh.stamp, code = fresh.code
"""
ADD_CODES_ROW = "(%s, %s, %s, %s, (SELECT s.stamp FROM {scopes} s WHERE s.tenant = %s AND s.path = %s), %s)"

# Embeddings of texts by their digests, to be kept where a text is written again.
KNOWN = """
SELECT {EMBEDDING}, v.digest
  FROM {vectors} v
 WHERE (v.tenant, v.path, v.item_key) IN (<keys>) AND v.digest IS NOT NULL
"""

OF_ITEM = """
SELECT {EMBEDDING} FROM {vectors} v
 WHERE v.tenant = %s AND v.path = %s AND v.item_key = %s
 ORDER BY v.place
"""

# The nearest by signs, with their codes. It reads all signs of the scope, and nothing else of what is not near.
# Sorted is by nothing but the distance, in a buffer with room for what is wanted: rows count as wide as they are
# declared, and in a session's own buffer MySQL would write the whole scope to disk in sorted pieces and merge them.
NEAR = """
SELECT /*+ SET_VAR(sort_buffer_size = <buffer>) */ c.path, c.item_key, c.place, c.code, best.distance
  FROM (SELECT s.owner, s.item_key, s.place, BIT_COUNT(s.sig ^ %s) AS distance
          FROM {signs} s<items><range> AND s.dims = %s AND LENGTH(s.sig) = %s
           AND (s.expires = 0 OR EXISTS (SELECT 1 FROM {items} x
                                          WHERE x.tenant = %s AND x.path = SUBSTR(s.owner, %s)
                                            AND x.item_key = s.item_key AND x.expires_at > UTC_TIMESTAMP(6)))<filter>
         ORDER BY distance
         LIMIT %s) AS best
  LEFT JOIN {codes} c ON c.tenant = %s AND c.path = SUBSTR(best.owner, %s) AND c.item_key = best.item_key
                     AND c.place = best.place
"""
#: What MySQL reserves for a row of signs that it sorts, and what it is given for all of them at most.
_SORTED_BYTES, _SORT_BUFFER_BYTES = 4_600, 1 << 26

ITEMS_OF_SIGNS = """
          JOIN {items} i ON i.tenant = %s AND i.path = SUBSTR(s.owner, %s) AND i.item_key = s.item_key
         """

EXACT = """
SELECT {EMBEDDING} FROM {vectors} v
 WHERE (v.tenant, v.path, v.item_key, v.place) IN (<keys>)
"""

# The three of them are one statement where they are asked for together, as two statements may see different moments:
# what a cache knows must be of one write, which it then knows by its token. Changes rely on the index changes.
SCOPES = """
SELECT s.path, s.stamp, s.purged, s.token, s.earlier, NULL AS item_key, NULL AS place, NULL AS code
  FROM {scopes} s WHERE s.tenant = %s<range>
"""
STILL_THERE = """
UNION ALL
SELECT NULL, NULL, NULL, t.token, NULL, NULL, NULL, NULL
  FROM {settled} t WHERE t.tenant = %s AND t.token IN (<tokens>)
"""
CHANGES = """
UNION ALL
SELECT c.path, NULL, NULL, NULL, NULL, c.item_key, c.place, c.code
  FROM {codes} c WHERE c.tenant = %s AND (<since>)
"""

# All codes, and the scopes as they were at that moment, whose rows have no place and their token as key.
ALL_CODES = """
SELECT s.path, s.token AS item_key, NULL AS place, NULL AS code, s.stamp
  FROM {scopes} s WHERE s.tenant = %s<scopes>
UNION ALL
SELECT c.path, c.item_key, c.place, c.code, NULL
  FROM {codes} c WHERE c.tenant = %s<codes> AND c.code IS NOT NULL
"""

BETWEEN = """
SELECT {EMBEDDING}
  FROM {vectors} v
 WHERE v.tenant = %s AND (<spans>)
"""

SIZE = "SELECT COUNT(*) FROM {signs} s<range>"

# Remove the codes of embeddings that were removed long ago: a cache that has not looked since loads anew. Takes the
# lock of a namespace; the statement after it relies on it, and on the index changes.
PURGE_SCOPE = """
UPDATE {scopes} s
  JOIN (SELECT c.tenant, c.path, MAX(c.stamp) AS newest
          FROM {codes} c
         WHERE c.tenant = %s AND c.path = %s AND c.code IS NULL
           AND c.stamp < {CLOCK} - %s
         GROUP BY c.tenant, c.path) AS old ON old.tenant = s.tenant AND old.path = s.path
   SET s.purged = GREATEST(s.purged, old.newest)
"""
PURGE_CODES = """
DELETE FROM {codes}
 WHERE tenant = %s AND path = %s AND code IS NULL
   AND stamp <= (SELECT s.purged FROM {scopes} s WHERE s.tenant = %s AND s.path = %s)
 ORDER BY stamp
 LIMIT %s
"""
REMOVED = """
SELECT DISTINCT c.tenant, c.path FROM {codes} c
 WHERE c.tenant = %s AND c.code IS NULL
   AND c.stamp < {CLOCK} - %s
 LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class VectorRow:
    """An embedding to write, but for its tenant.

    Args:
        path: The namespace of what is embedded.
        key: Its key.
        place: A number among its embeddings.
        digest: Of the text that was embedded; None if that is not known.
        embedding: 32-bit floats.
        code: A byte per dimension.
        sig: A bit per dimension.
        expires: Whether what is embedded may expire.
    """

    path: bytes
    key: bytes
    place: int
    digest: bytes | None
    embedding: bytes
    code: bytes
    sig: bytes
    expires: bool = False

    @property
    def dims(self) -> int:
        """The width of the embedding."""
        return len(self.embedding) // 4

    def checksum(self, tenant: str) -> int:
        """The checksum of the row."""
        of_digest = 0 if self.digest is None else crc32(self.digest)
        return embedding_checksum(tenant, self.path, self.key, self.place, self.embedding) ^ of_digest


def embedding_checksum(tenant: str, path: bytes, key: bytes, place: int, embedding: bytes) -> int:
    """The checksum of an embedding without the digest of its text, as it is read; see `SHARED`."""
    return checksum((tenant, path, key), place, embedding)


class VectorStatements(MemoryStatements):
    """Writing embeddings and finding the nearest."""

    def replace(
        self, tenant: str, keys: Sequence[tuple[bytes, bytes]], rows: Sequence[VectorRow]
    ) -> tuple[Statement, ...]:
        """Give items these embeddings in the place of those they have. The scopes must be locked.

        Args:
            tenant: Whose.
            keys: The items.
            rows: Their embeddings; those without any then have none.
        """
        return (
            *self.over_keys(REMOVE.replace("<gone>", ""), tenant, keys),
            *self.over_keys(REMOVE_CODES.replace("<gone>", ""), tenant, keys),
            *self._add(tenant, rows),
        )

    def remove_gone(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Remove the embeddings of those of these items that are no longer there. The scopes must be locked."""
        return (
            *self.over_keys(REMOVE.replace("<gone>", GONE.replace("?", "v")), tenant, keys),
            *self.over_keys(REMOVE_CODES.replace("<gone>", GONE.replace("?", "c")), tenant, keys),
        )

    def remove_range(self, tenant: str, where: Range) -> tuple[Statement, ...]:
        """Remove all embeddings of a range."""
        return (
            Statement(self._text(REMOVE_RANGE.replace("<range>", where.condition("v"))), (tenant, *where.params)),
            Statement(self._text(REMOVE_CODES_RANGE.replace("<range>", where.condition("c"))), (tenant, *where.params)),
        )

    def _add(self, tenant: str, rows: Sequence[VectorRow]) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for some in portions(rows):
            keys = [(tenant, row.path, row.key, row.place) for row in some]
            vectors = [
                (*key, row.digest, row.embedding, row.checksum(tenant)) for key, row in zip(keys, some, strict=True)
            ]
            signs = [
                (owner_of(tenant, row.path), row.key, row.place, int(row.expires), row.dims, row.sig) for row in some
            ]
            codes = [(*key, tenant, row.path, row.code) for key, row in zip(keys, some, strict=True)]
            statements += [
                self._insert(ADD_VECTORS, "(%s, %s, %s, %s, %s, %s, %s)", vectors),
                self._insert(ADD_SIGNS, "(%s, %s, %s, %s, %s, %s)", signs),
                self._insert(ADD_CODES, ADD_CODES_ROW, codes),
            ]
        return tuple(statements)

    def _insert(self, template: str, row: str, rows: Sequence[Sequence[Param]]) -> Statement:
        text = self._text(template.replace("<rows>", ", ".join([row] * len(rows))))
        return Statement(text, tuple(param for params in rows for param in params))

    def known(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """The rows of embeddings of texts that items have, each with the text's digest behind it; see `SHARED`."""
        return self.over_keys(KNOWN, tenant, keys)

    def of_item(self, tenant: str, path: bytes, key: bytes) -> Statement:
        """The rows of embeddings of an item; see `SHARED`."""
        return Statement(self._text(OF_ITEM), (tenant, path, key))

    def near(self, tenant: str, where: Range, sig: bytes, dims: int, condition: Condition, limit: int) -> Statement:
        """Path, key, place, code and distance of those whose signs agree best with a query's, in any order.

        Signs without a code, as somebody deleted that by hand, are marked by rows of None and a distance.
        """
        text = NEAR.replace("<items>", ITEMS_OF_SIGNS if condition.sql else "").replace("<range>", where.owned("s"))
        text = self._text(text).replace("<buffer>", str(_sort_buffer_bytes(limit))).replace("<filter>", condition.sql)
        at: tuple[Param, ...] = (tenant, path_at(tenant))
        chosen = (*(at if condition.sql else ()), *where.owned_params(tenant), dims, len(sig), *at, *condition.params)
        return Statement(text, (sig, *chosen, limit, *at))

    def exact(self, tenant: str, keys: Sequence[tuple[bytes, bytes, int]]) -> tuple[Statement, ...]:
        """The rows of some embeddings; see `SHARED`."""
        return tuple(
            Statement(
                self._text(EXACT.replace("<keys>", ", ".join(["(%s, %s, %s, %s)"] * len(some)))),
                tuple(param for key in some for param in (tenant, *key)),
            )
            for some in portions(keys)
        )

    def news(self, tenant: str, where: Range, since: Mapping[bytes, tuple[int, bytes]]) -> Statement:
        """Namespaces as they are now, and what changed in some; see `news_of`.

        Args:
            tenant: Whose.
            where: The namespaces.
            since: Stamp and token of the last known write to each namespace whose changes are wanted. A token is found
                for a quarter of an hour; what is gone has None as code.
        """
        text = SCOPES.replace("<range>", where.condition("s"))
        params: list[Param] = [tenant, *where.params]
        if since:
            text += STILL_THERE.replace("<tokens>", ", ".join(["%s"] * len(since)))
            text += CHANGES.replace("<since>", " OR ".join(["c.path = %s AND c.stamp > %s"] * len(since)))
            params += [tenant, *(token for _, token in since.values())]
            params += [tenant, *(param for path, (stamp, _) in since.items() for param in (path, stamp))]
        return Statement(self._text(text), tuple(params))

    def all_codes(self, tenant: str, where: Range) -> Statement:
        """Path, key, place, code and None of all of a range; and path, token, None, None and stamp of its scopes."""
        text = ALL_CODES.replace("<scopes>", where.condition("s")).replace("<codes>", where.condition("c"))
        return Statement(self._text(text), (tenant, *where.params) * 2)

    def between(self, tenant: str, spans: Sequence[tuple[bytes, bytes, bytes]]) -> Statement:
        """The rows of embeddings in namespaces from a key to another one; see `SHARED`.

        Args:
            tenant: Whose.
            spans: Paths with their first and last key, at most as many as a statement names.
        """
        one = "v.path = %s AND v.item_key BETWEEN %s AND %s"
        text = self._text(BETWEEN.replace("<spans>", " OR ".join([one] * len(spans))))
        return Statement(text, (tenant, *(param for span in spans for param in span)))

    def size(self, tenant: str, where: Range) -> Statement:
        """How many embeddings there are."""
        return Statement(self._text(SIZE.replace("<range>", where.owned("s"))), where.owned_params(tenant))

    def purge(self, tenant: str, path: bytes, age_us: int, limit: int) -> tuple[Statement, Statement]:
        """Remove what tells of embeddings of a namespace that were removed longer ago than this; at most so many."""
        return (
            Statement(self._text(PURGE_SCOPE), (tenant, path, age_us)),
            Statement(self._text(PURGE_CODES), (tenant, path, tenant, path, limit)),
        )

    def removed(self, tenant: str, age_us: int, limit: int) -> Statement:
        """Tenant and path of namespaces with embeddings removed longer ago than this."""
        return Statement(self._text(REMOVED), (tenant, age_us, limit))


def _sort_buffer_bytes(limit: int) -> int:
    """Room for so many rows of signs, as wide as they are declared; a power of two, so that statements are few."""
    return min(1 << (limit * _SORTED_BYTES).bit_length(), _SORT_BUFFER_BYTES)
