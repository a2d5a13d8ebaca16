"""Statements about embeddings: in full, and as a bit per dimension (signs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from ..checksums import checksum
from ..statement import Param, Query, Statement
from ..template import fill, placeholders
from ..variants import OCEANBASE
from .filters import ItemFilter
from .pieces import CountRow, MemoryStatements, PathRow, portions
from .ranges import Range, owner_of, path_at

# A removed embedding leaves a row without content for an hour, by which caches detect the removal.
REMOVE = """
UPDATE {vectors} v
  JOIN {scopes} s ON s.tenant = v.tenant AND s.path = v.path
   SET v.embedding = NULL, v.digest = NULL, v.removed = 1, v.stamp = s.stamp
 WHERE (v.tenant, v.path, v.item_key) IN ({keys}) AND v.removed = 0{gone}
"""
GONE = """
   AND NOT EXISTS (SELECT 1 FROM {items} i WHERE i.tenant = v.tenant AND i.path = v.path
                      AND i.item_key = v.item_key)"""
REMOVE_RANGE = """
UPDATE {vectors} v
  JOIN {scopes} s ON s.tenant = v.tenant AND s.path = v.path
   SET v.embedding = NULL, v.digest = NULL, v.removed = 1, v.stamp = s.stamp
 WHERE v.tenant = %s{range} AND v.removed = 0
"""

REMOVE_SIGNS = "DELETE s FROM {signs} s WHERE (s.owner, s.item_key) IN ({keys}){gone}"
GONE_OF_SIGNS = """
   AND NOT EXISTS (SELECT 1 FROM {items} i
                    WHERE i.tenant = %s AND i.path = SUBSTR(s.owner, %s) AND i.item_key = s.item_key)"""
REMOVE_SIGNS_RANGE = "DELETE s FROM {signs} s{range}"

ADD_VECTORS = """
INSERT INTO {vectors} (tenant, path, item_key, number, digest, model, embedding, removed, stamp, checksum)
VALUES {rows} AS fresh
    ON DUPLICATE KEY UPDATE
       digest = fresh.digest, model = fresh.model, embedding = fresh.embedding, removed = 0, stamp = fresh.stamp,
       checksum = fresh.checksum
"""
ADD_VECTORS_ROW = (
    "(%s, %s, %s, %s, %s, %s, %s, 0, (SELECT s.stamp FROM {scopes} s WHERE s.tenant = %s AND s.path = %s), %s)"
)
# Signs whose embedding was deleted by hand are replaced.
ADD_SIGNS = "REPLACE INTO {signs} (owner, item_key, number, expires, dims, model, sig) VALUES {rows}"

# Embeddings of texts, which are kept if the same text is written again.
KNOWN = """
SELECT {EMBEDDING}, v.digest
  FROM {vectors} v
 WHERE (v.tenant, v.path, v.item_key) IN ({keys}) AND v.digest IS NOT NULL
"""

# The items that have an embedding of a model.
HAVING = """
SELECT DISTINCT v.path, v.item_key FROM {vectors} v
 WHERE (v.tenant, v.path, v.item_key) IN ({keys}) AND v.model = %s AND v.removed = 0
"""

OF_ITEM = """
SELECT {EMBEDDING} FROM {vectors} v
 WHERE v.tenant = %s AND v.path = %s AND v.item_key = %s AND v.removed = 0
 ORDER BY v.number
"""

# The nearest embeddings by signs. It reads all signs of the range, but other columns only of the nearest. It sorts by
# the distance alone, in a buffer that is large enough for the wanted rows. MySQL sizes sort rows by declared column
# width, so with the session's own buffer it would write the whole range to disk in sorted parts.
# If there are as many rows as the limit, those that are much farther than one of the nearest come without their
# embedding, as do those of other models, which come last: OTHER_MODEL is added to their distance.
NEAR = """
SELECT /*+ SET_VAR(sort_buffer_size = {buffer}) */ {EMBEDDING}, best.distance
  FROM (SELECT near.owner, near.item_key, near.number, near.distance,
               COUNT(*) OVER nearest < %s OR near.distance <= NTH_VALUE(near.distance, {place}) OVER nearest + %s
                 AS is_near
          FROM (SELECT s.owner, s.item_key, s.number,
                       IF(s.model = %s, 0, {other_model}) + BIT_COUNT(s.sig ^ %s) AS distance
                  FROM {signs} s{join}{range} AND s.dims = %s AND LENGTH(s.sig) = %s
                   AND (s.expires = 0 OR EXISTS (SELECT 1 FROM {items} x
                                                  WHERE x.tenant = %s AND x.path = SUBSTR(s.owner, %s)
                                                    AND x.item_key = s.item_key
                                                    AND x.expires_at > UTC_TIMESTAMP(6))){filter}
                 ORDER BY distance
                 LIMIT %s) AS near
        WINDOW nearest AS (ORDER BY near.distance ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) AS best
  LEFT JOIN {vectors} v ON v.tenant = %s AND v.path = SUBSTR(best.owner, %s) AND v.item_key = best.item_key
                       AND v.number = best.number AND best.distance < {other_model} AND best.is_near
"""

# BIT_COUNT and ^ take numbers of at most 64 bits; the BIT_COUNT of a longer XOR is 0, without an error. So the signs
# are compared in parts of 64 bits. There is no buffer to set.
OCEANBASE.instead_of(
    NEAR,
    NEAR.replace("/*+ SET_VAR(sort_buffer_size = {buffer}) */ ", "")
    .replace("BIT_COUNT(s.sig ^ %s)", "{distance}")
    .replace(
        "FROM {signs} s{join}",
        "FROM (SELECT {asked} FROM (SELECT %s AS sig) AS q) AS asked JOIN {signs} s{join}",
    ),
)
_PART = "CAST(CONV(HEX(SUBSTR({of}.sig, {begin}, 8)), 16, 10) AS UNSIGNED)"

#: Added to the distance of an embedding of another model; larger than any distance.
OTHER_MODEL = 65_536

#: The bytes that MySQL reserves for each row of signs that it sorts, and the maximum for all of them.
_SORTED_BYTES, _SORT_BUFFER_BYTES = 4_600, 1 << 26

ITEMS_OF_SIGNS = """
          JOIN {items} i ON i.tenant = %s AND i.path = SUBSTR(s.owner, %s) AND i.item_key = s.item_key
         """

# The namespaces of a range. A row of the table scopes is a namespace, whose labels are in the column path; a range is a
# namespace, or all below a prefix.
# This and the next three are sent as one statement if they are needed together, as two statements may read different
# snapshots: a cache must have the state after exactly one write, whose token it then keeps. CHANGES relies on the index
# changes.
NAMESPACES = """
SELECT s.stamp, s.purged, s.token, s.earlier, s.path, NULL AS item_key, NULL AS number, NULL AS embedding,
       NULL AS checksum, NULL AS model
  FROM {scopes} s WHERE s.tenant = %s{range}{more}
"""
KNOWN_TOKENS = """
UNION ALL
SELECT NULL, NULL, t.token, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM {ledger} t WHERE t.tenant = %s AND t.token IN ({tokens})
"""
CHANGES = """
UNION ALL
SELECT NULL, NULL, NULL, NULL, {EMBEDDING}
  FROM {vectors} v WHERE v.tenant = %s AND v.removed IN (0, 1) AND ({since})
"""
ALL = """
UNION ALL
SELECT NULL, NULL, NULL, NULL, {EMBEDDING}
  FROM {vectors} v WHERE v.tenant = %s{of_vectors} AND v.removed = 0
"""

# The embeddings of a range in the order of the primary key, after one. The inner query reads keys only.
PAGE = """
SELECT {EMBEDDING}
  FROM (SELECT v.tenant, v.path, v.item_key, v.number FROM {vectors} v
         WHERE v.tenant = %s{range}{after} AND v.removed = 0
         ORDER BY v.path, v.item_key, v.number
         LIMIT %s) AS chosen
  JOIN {vectors} v ON v.tenant = chosen.tenant AND v.path = chosen.path AND v.item_key = chosen.item_key
                  AND v.number = chosen.number
 ORDER BY v.path, v.item_key, v.number
"""
AFTER = """ AND (v.path > %s OR (v.path = %s AND (v.item_key > %s OR (v.item_key = %s AND v.number > %s))))"""

# Relies on the index changes.
SIZE = "SELECT COUNT(*) FROM {vectors} v WHERE v.tenant = %s AND v.removed = 0{range}"

# Delete the rows of embeddings that were removed long ago; caches that are older load the namespace again.
# Locks the namespace's row; PURGE relies on that lock. All three rely on the index changes.
PURGE_SCOPE = """
UPDATE {scopes} s
  JOIN (SELECT v.tenant, v.path, MAX(v.stamp) AS newest
          FROM {vectors} v
         WHERE v.tenant = %s AND v.removed = 1 AND v.path = %s
           AND v.stamp < {US_SINCE_2000} - %s
         GROUP BY v.tenant, v.path) AS old ON old.tenant = s.tenant AND old.path = s.path
   SET s.purged = GREATEST(s.purged, old.newest)
"""
PURGE = """
DELETE FROM {vectors}
 WHERE tenant = %s AND removed = 1 AND path = %s
   AND stamp <= (SELECT s.purged FROM {scopes} s WHERE s.tenant = %s AND s.path = %s)
 ORDER BY stamp
 LIMIT %s
"""
REMOVED = """
SELECT DISTINCT v.path FROM {vectors} v
 WHERE v.tenant = %s AND v.removed = 1
   AND v.stamp < {US_SINCE_2000} - %s
 LIMIT %s
"""


class ItemKeyRow(NamedTuple):
    """The path and the key of an item."""

    path: bytes
    key: bytes


class EmbeddingRow(NamedTuple):
    """An embedding.

    Args:
        path: The namespace's path.
        key: The item's key.
        number: The embedding's number among those of its item.
        embedding: 32-bit floats, little-endian.
        checksum: See `embedding_checksum`.
        model: The model; see `VectorRow`.
    """

    path: bytes
    key: bytes
    number: int
    embedding: bytes
    checksum: int
    model: int

    @property
    def vector_key(self) -> tuple[bytes, bytes, int]:
        """The key of the embedding."""
        return (self.path, self.key, self.number)


class TextEmbeddingRow(NamedTuple):
    """An embedding of a text: an `EmbeddingRow` with the text's digest."""

    path: bytes
    key: bytes
    number: int
    embedding: bytes
    checksum: int
    model: int
    digest: bytes


class NearRow(NamedTuple):
    """An embedding, and its distance from a query by sign bits.

    If the embedding is of another model, the distance is at least `OTHER_MODEL`. All other columns are None then, and
    if the embedding is much farther than others, or was deleted by hand.
    """

    path: bytes | None
    key: bytes | None
    number: int | None
    embedding: bytes | None
    checksum: int | None
    model: int | None
    distance: int


class StateRow(NamedTuple):
    """A namespace, a token that the server still has, or an embedding; see `VectorStatements.range_state`.

    A namespace has stamp, purged, token, the token of the write before, and path. A token has no other columns. An
    embedding has no stamp and no tokens; its content is None if it was removed.
    """

    stamp: int | None
    purged: int | None
    token: bytes | None
    previous_token: bytes | None
    path: bytes | None
    key: bytes | None
    number: int | None
    embedding: bytes | None
    checksum: int | None
    model: int | None


@dataclass(frozen=True, slots=True)
class VectorRow:
    """An embedding to write, without its tenant.

    Args:
        path: The path of the namespace.
        key: The item's key.
        number: The embedding's number among those of its item.
        digest: The digest of the text that was embedded; None if it is not known.
        embedding: 32-bit floats, little-endian.
        sig: A bit per dimension; None to store none.
        model: The beginning of the digest of the model's name; 0 for an unnamed one.
        expires: Whether the item may expire.
    """

    path: bytes
    key: bytes
    number: int
    digest: bytes | None
    embedding: bytes
    sig: bytes | None
    model: int = 0
    expires: bool = False

    @property
    def dims(self) -> int:
        """The width of the embedding."""
        return len(self.embedding) // 4

    def checksum(self, tenant: str) -> int:
        """Return the checksum of the row."""
        of_digest = 0 if self.digest is None else crc32(self.digest)
        return embedding_checksum(tenant, self.path, self.key, self.number, self.embedding) ^ of_digest ^ self.model


def embedding_checksum(tenant: str, path: bytes, key: bytes, number: int, embedding: bytes) -> int:
    """Return the checksum of an embedding without digest and model, as statements read it; see `PIECES`."""
    return checksum((tenant, path, key), number, embedding)


class VectorStatements(MemoryStatements):
    """Writing embeddings and finding the nearest."""

    def replace(
        self, tenant: str, keys: Sequence[tuple[bytes, bytes]], rows: Sequence[VectorRow]
    ) -> tuple[Statement, ...]:
        """Replace the embeddings of the items with these keys by new ones. The namespaces must be locked."""
        return (
            *self.over_keys(REMOVE, tenant, keys, gone=""),
            *self._remove_signs(tenant, keys),
            *self._add(tenant, rows),
        )

    def remove_gone(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Remove the embeddings of those of these items that no longer exist. The namespaces must be locked."""
        gone = GONE_OF_SIGNS, (tenant, path_at(tenant))
        return (*self.over_keys(REMOVE, tenant, keys, gone=GONE), *self._remove_signs(tenant, keys, *gone))

    def remove_range(self, tenant: str, where: Range) -> tuple[Statement, ...]:
        """Remove all embeddings of a range."""
        return (
            Statement(self._text(REMOVE_RANGE, range=where.condition("v")), (tenant, *where.params)),
            Statement(self._text(REMOVE_SIGNS_RANGE, range=where.owned("s")), where.owned_params(tenant)),
        )

    def _remove_signs(
        self, tenant: str, keys: Sequence[tuple[bytes, bytes]], gone: str = "", params: tuple[Param, ...] = ()
    ) -> tuple[Statement, ...]:
        return tuple(
            Statement(
                self._text(REMOVE_SIGNS, keys=placeholders(len(some), "(%s, %s)"), gone=gone),
                (*(param for path, key in some for param in (owner_of(tenant, path), key)), *params),
            )
            for some in portions(keys)
        )

    def _add(self, tenant: str, rows: Sequence[VectorRow]) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for some in portions(rows):
            vectors = [
                (
                    *(tenant, row.path, row.key, row.number, row.digest, row.model, row.embedding),
                    *(tenant, row.path, row.checksum(tenant)),
                )
                for row in some
            ]
            statements.append(self._insert(ADD_VECTORS, ADD_VECTORS_ROW, vectors))
            signs = [
                (owner_of(tenant, row.path), row.key, row.number, int(row.expires), row.dims, row.model, row.sig)
                for row in some
                if row.sig is not None
            ]
            if signs:
                statements.append(self._insert(ADD_SIGNS, "(%s, %s, %s, %s, %s, %s, %s)", signs))
        return tuple(statements)

    def _insert(self, template: str, row: str, rows: Sequence[Sequence[Param]]) -> Statement:
        text = self._text(template, rows=placeholders(len(rows), row))
        return Statement(text, tuple(param for params in rows for param in params))

    def known(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Query[TextEmbeddingRow], ...]:
        """Return the embeddings of texts that some items have."""
        return tuple(
            Query(statement.sql, statement.params, row=TextEmbeddingRow)
            for statement in self.over_keys(KNOWN, tenant, keys)
        )

    def having(self, tenant: str, keys: Sequence[tuple[bytes, bytes]], model: int) -> tuple[Query[ItemKeyRow], ...]:
        """Return those of some items that have an embedding of a model."""
        return tuple(
            Query(statement.sql, (*statement.params, model), row=ItemKeyRow)
            for statement in self.over_keys(HAVING, tenant, keys)
        )

    def of_item(self, tenant: str, path: bytes, key: bytes) -> Query[EmbeddingRow]:
        """Return the embeddings of an item."""
        return Query(self._text(OF_ITEM), (tenant, path, key), row=EmbeddingRow)

    def near(
        self,
        tenant: str,
        where: Range,
        sig: bytes,
        dims: int,
        model: int,
        condition: ItemFilter,
        limit: int,
        place: int,
        margin: int,
    ) -> Query[NearRow]:
        """Return the embeddings of a model whose sign bits differ least from a query's, in any order, then others.

        Args:
            tenant: The tenant.
            where: The range.
            sig: The query's sign bits.
            dims: The width.
            model: The model.
            condition: The filter that items match.
            limit: The maximum number of rows.
            place: A rank. Rows whose distance exceeds that of the row with this rank by more than the margin come
                without their embeddings. Rounded up to a power of two, so that statements have few different texts.
            margin: A number of bits.
        """
        text = self._text(
            NEAR,
            join=ITEMS_OF_SIGNS if condition.sql else "",
            range=where.owned("s"),
            buffer=str(_sort_buffer_bytes(limit)),
            **_distance_by_parts(len(sig)),
            filter=condition.sql,
            other_model=str(OTHER_MODEL),
            place=str(1 << (place - 1).bit_length()),
        )
        at: tuple[Param, ...] = (tenant, path_at(tenant))
        chosen = (*(at if condition.sql else ()), *where.owned_params(tenant), dims, len(sig), *at, *condition.params)
        return Query(text, (limit, margin, model, sig, *chosen, limit, *at), row=NearRow)

    def range_state(
        self, tenant: str, where: Range, since: Mapping[bytes, tuple[int, bytes]] | None = None
    ) -> Query[StateRow]:
        """Return the current namespaces of a range, and the changes in some of them.

        Args:
            tenant: The tenant.
            where: The range.
            since: Stamp and token of the last known write to each namespace whose changes are wanted. The server keeps
                a token for a quarter of an hour.
        """
        params: list[Param] = [tenant, *where.params]
        if since:
            params += [tenant, *(token for _, token in since.values())]
            params += [tenant, *(param for path, (stamp, _) in since.items() for param in (path, stamp))]
        text = self._text(
            NAMESPACES,
            range=where.condition("s"),
            more=KNOWN_TOKENS + CHANGES if since else "",
            tokens=placeholders(len(since or ())),
            since=" OR ".join(["v.path = %s AND v.stamp > %s"] * len(since or ())),
        )
        return Query(text, tuple(params), row=StateRow)

    def whole_range(self, tenant: str, where: Range) -> Query[StateRow]:
        """Return the current namespaces of a range with all their embeddings."""
        text = self._text(NAMESPACES, range=where.condition("s"), more=ALL, of_vectors=where.condition("v"))
        return Query(text, (tenant, *where.params) * 2, row=StateRow)

    def page(
        self, tenant: str, where: Range, after: tuple[bytes, bytes, int] | None, limit: int
    ) -> Query[EmbeddingRow]:
        """Return the embeddings of a range after a key, in the order of their keys."""
        text = self._text(PAGE, range=where.condition("v"), after=AFTER if after else "")
        beyond = (after[0], after[0], after[1], *after[1:]) if after else ()
        return Query(text, (tenant, *where.params, *beyond, limit), row=EmbeddingRow)

    def size(self, tenant: str, where: Range) -> Query[CountRow]:
        """Count the embeddings of a range."""
        return Query(self._text(SIZE, range=where.condition("v")), (tenant, *where.params), row=CountRow)

    def purge(self, tenant: str, path: bytes, age_us: int, limit: int) -> tuple[Statement, Statement]:
        """Delete the rows of embeddings that were removed longer ago than ``age_us``, at most ``limit``."""
        return (
            Statement(self._text(PURGE_SCOPE), (tenant, path, age_us)),
            Statement(self._text(PURGE), (tenant, path, tenant, path, limit)),
        )

    def removed(self, tenant: str, age_us: int, limit: int) -> Query[PathRow]:
        """Return namespaces with embeddings that were removed longer ago than ``age_us``."""
        return Query(self._text(REMOVED), (tenant, age_us, limit), row=PathRow)


def _sort_buffer_bytes(limit: int) -> int:
    """Return the bytes needed to sort rows of signs, as a power of two, so that statements have few different texts."""
    return min(1 << (limit * _SORTED_BYTES).bit_length(), _SORT_BUFFER_BYTES)


@lru_cache(maxsize=64)
def _distance_by_parts(sig_bytes: int) -> dict[str, str]:
    """Return the pieces that compare signs in parts of 64 bits: those of the query, and the distance from them."""
    begins = range(1, sig_bytes + 1, 8)
    return {
        "asked": ", ".join(f"{_part('q', begin)} AS part_{begin}" for begin in begins),
        "distance": " + ".join(f"BIT_COUNT({_part('s', begin)} ^ asked.part_{begin})" for begin in begins),
    }


def _part(of: str, begin: int) -> str:
    return fill(_PART, {"of": of, "begin": str(begin)})
