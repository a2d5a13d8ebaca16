"""Statements about embeddings: in full, as a byte per dimension (codes), and as a bit per dimension (signs)."""

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

REMOVE = """
DELETE v, s
  FROM {vectors} v
  LEFT JOIN {signs} s ON s.owner = CONCAT(v.tenant, 0x00, v.path) AND s.item_key = v.item_key AND s.number = v.number
 WHERE (v.tenant, v.path, v.item_key) IN ({keys}){gone}
"""

# The rows of codes stay for an hour without their content, so that caches detect the removal.
REMOVE_CODES = """
UPDATE {codes} c
  JOIN {scopes} s ON s.tenant = c.tenant AND s.path = c.path
   SET c.code = NULL, c.stamp = s.stamp
 WHERE (c.tenant, c.path, c.item_key) IN ({keys}) AND c.code IS NOT NULL{gone}
"""

GONE = """
   AND NOT EXISTS (SELECT 1 FROM {items} i WHERE i.tenant = {alias}.tenant AND i.path = {alias}.path
                      AND i.item_key = {alias}.item_key)"""

REMOVE_RANGE = """
DELETE v, s
  FROM {vectors} v
  LEFT JOIN {signs} s ON s.owner = CONCAT(v.tenant, 0x00, v.path) AND s.item_key = v.item_key AND s.number = v.number
 WHERE v.tenant = %s{range}
"""
REMOVE_CODES_RANGE = """
UPDATE {codes} c
  JOIN {scopes} s ON s.tenant = c.tenant AND s.path = c.path
   SET c.code = NULL, c.stamp = s.stamp
 WHERE c.tenant = %s{range} AND c.code IS NOT NULL
"""

ADD_VECTORS = (
    "INSERT INTO {vectors} (tenant, path, item_key, number, digest, model, embedding, checksum)\nVALUES {rows}"
)
# Signs whose embedding was deleted by hand are replaced.
ADD_SIGNS = "REPLACE INTO {signs} (owner, item_key, number, expires, dims, model, sig) VALUES {rows}"
ADD_CODES = """
INSERT INTO {codes} (tenant, path, item_key, number, stamp, code)
VALUES {rows} AS fresh
    ON DUPLICATE KEY UPDATE stamp = fresh.stamp, code = fresh.code
"""
ADD_CODES_ROW = "(%s, %s, %s, %s, (SELECT s.stamp FROM {scopes} s WHERE s.tenant = %s AND s.path = %s), %s)"

# Embeddings of texts, which are kept if the same text is written again.
KNOWN = """
SELECT {EMBEDDING}, v.digest
  FROM {vectors} v
 WHERE (v.tenant, v.path, v.item_key) IN ({keys}) AND v.digest IS NOT NULL
"""

# The items that have an embedding of a model.
HAVING = """
SELECT DISTINCT v.path, v.item_key FROM {vectors} v
 WHERE (v.tenant, v.path, v.item_key) IN ({keys}) AND v.model = %s
"""

OF_ITEM = """
SELECT {EMBEDDING} FROM {vectors} v
 WHERE v.tenant = %s AND v.path = %s AND v.item_key = %s
 ORDER BY v.number
"""

# The nearest embeddings by signs, with their codes. It reads all signs of the range, but other columns only of the
# nearest. It sorts by the distance alone, in a buffer that is large enough for the wanted rows. MySQL sizes sort rows
# by declared column width, so with the session's own buffer it would write the whole range to disk in sorted parts.
# Embeddings of other models come last, as OTHER_MODEL is added to their distance. Their codes are not read; the number
# of such rows is logged.
NEAR = """
SELECT /*+ SET_VAR(sort_buffer_size = {buffer}) */ c.path, c.item_key, c.number, c.code, best.distance
  FROM (SELECT s.owner, s.item_key, s.number, IF(s.model = %s, 0, {other_model}) + BIT_COUNT(s.sig ^ %s) AS distance
          FROM {signs} s{join}{range} AND s.dims = %s AND LENGTH(s.sig) = %s
           AND (s.expires = 0 OR EXISTS (SELECT 1 FROM {items} x
                                          WHERE x.tenant = %s AND x.path = SUBSTR(s.owner, %s)
                                            AND x.item_key = s.item_key AND x.expires_at > UTC_TIMESTAMP(6))){filter}
         ORDER BY distance
         LIMIT %s) AS best
  LEFT JOIN {codes} c ON c.tenant = %s AND c.path = SUBSTR(best.owner, %s) AND c.item_key = best.item_key
                     AND c.number = best.number AND best.distance < {other_model}
"""

# BIT_COUNT and ^ take numbers of at most 64 bits; the BIT_COUNT of a longer XOR is 0, without an error. So the signs
# are compared in parts of 64 bits. There is no buffer to set.
OCEANBASE.instead_of(
    NEAR,
    NEAR.replace("/*+ SET_VAR(sort_buffer_size = {buffer}) */ ", "")
    .replace("BIT_COUNT(s.sig ^ %s)", "{distance}")
    .replace(
        "FROM {signs} s{join}",
        "FROM (SELECT {asked} FROM (SELECT %s AS sig) AS q) AS asked\n          JOIN {signs} s{join}",
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

EXACT = """
SELECT {EMBEDDING} FROM {vectors} v
 WHERE (v.tenant, v.path, v.item_key, v.number) IN ({keys})
"""

# The namespaces of a range. A row of the table scopes is a namespace, whose labels are in the column path; a range is a
# namespace, or all below a prefix.
# This and the next two are sent as one statement if they are needed together, as two statements may read different
# snapshots: a cache must have the state after exactly one write, whose token it then keeps. CHANGES relies on the index
# changes.
NAMESPACES = """
SELECT s.path, s.stamp, s.purged, s.token, s.earlier, NULL AS item_key, NULL AS number, NULL AS code
  FROM {scopes} s WHERE s.tenant = %s{range}{changes}
"""
KNOWN_TOKENS = """
UNION ALL
SELECT NULL, NULL, NULL, t.token, NULL, NULL, NULL, NULL
  FROM {ledger} t WHERE t.tenant = %s AND t.token IN ({tokens})
"""
CHANGES = """
UNION ALL
SELECT c.path, NULL, NULL, NULL, NULL, c.item_key, c.number, c.code
  FROM {codes} c WHERE c.tenant = %s AND ({since})
"""

# All codes, and the namespaces in the same snapshot. The row of a namespace has no number, and its token as item_key.
ALL_CODES = """
SELECT s.path, s.token AS item_key, NULL AS number, NULL AS code, s.stamp
  FROM {scopes} s WHERE s.tenant = %s{of_scopes}
UNION ALL
SELECT c.path, c.item_key, c.number, c.code, NULL
  FROM {codes} c WHERE c.tenant = %s{of_codes} AND c.code IS NOT NULL
"""

BETWEEN = """
SELECT {EMBEDDING}
  FROM {vectors} v
 WHERE v.tenant = %s AND ({spans})
"""

SIZE_BY_CODES = "SELECT COUNT(*) FROM {codes} c WHERE c.tenant = %s{range} AND c.code IS NOT NULL"
SIZE = "SELECT COUNT(*) FROM {signs} s{range}"

# Remove the codes of embeddings that were removed long ago; caches that are older load the namespace again.
# Locks the namespace's row; PURGE_CODES relies on that lock. Relies on the index changes.
PURGE_SCOPE = """
UPDATE {scopes} s
  JOIN (SELECT c.tenant, c.path, MAX(c.stamp) AS newest
          FROM {codes} c
         WHERE c.tenant = %s AND c.path = %s AND c.code IS NULL
           AND c.stamp < {US_SINCE_2000} - %s
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
SELECT DISTINCT c.path FROM {codes} c
 WHERE c.tenant = %s AND c.code IS NULL
   AND c.stamp < {US_SINCE_2000} - %s
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
    """The code of an embedding, and its distance from a query by sign bits.

    If the embedding is of another model, the distance is at least `OTHER_MODEL`. All other columns are None then, and
    if the code was deleted by hand.
    """

    path: bytes | None
    key: bytes | None
    number: int | None
    code: bytes | None
    distance: int


class CodeRow(NamedTuple):
    """The code of an embedding; or, if ``number`` is None, a namespace with the token and stamp of its last write."""

    path: bytes
    key_or_token: bytes
    number: int | None
    code: bytes | None
    stamp: int | None


class StateRow(NamedTuple):
    """A namespace, a token that the server still has, or a code that changed; see `VectorStatements.range_state`.

    A namespace has path, stamp, purged, token, and the token of the write before. A token has no other columns. A
    changed code has path, key and number; its code is None if the embedding was removed.
    """

    path: bytes | None
    stamp: int | None
    purged: int | None
    token: bytes | None
    previous_token: bytes | None
    key: bytes | None
    number: int | None
    code: bytes | None


@dataclass(frozen=True, slots=True)
class VectorRow:
    """An embedding to write, without its tenant.

    Args:
        path: The path of the namespace.
        key: The item's key.
        number: The embedding's number among those of its item.
        digest: The digest of the text that was embedded; None if it is not known.
        embedding: 32-bit floats, little-endian.
        code: A byte per dimension.
        sig: A bit per dimension; None to store none.
        model: The beginning of the digest of the model's name; 0 for an unnamed one.
        expires: Whether the item may expire.
    """

    path: bytes
    key: bytes
    number: int
    digest: bytes | None
    embedding: bytes
    code: bytes
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
            *self.over_keys(REMOVE_CODES, tenant, keys, gone=""),
            *self._add(tenant, rows),
        )

    def remove_gone(self, tenant: str, keys: Sequence[tuple[bytes, bytes]]) -> tuple[Statement, ...]:
        """Remove the embeddings of those of these items that no longer exist. The namespaces must be locked."""
        return (
            *self.over_keys(REMOVE, tenant, keys, gone=GONE, alias="v"),
            *self.over_keys(REMOVE_CODES, tenant, keys, gone=GONE, alias="c"),
        )

    def remove_range(self, tenant: str, where: Range) -> tuple[Statement, ...]:
        """Remove all embeddings of a range."""
        return (
            Statement(self._text(REMOVE_RANGE, range=where.condition("v")), (tenant, *where.params)),
            Statement(self._text(REMOVE_CODES_RANGE, range=where.condition("c")), (tenant, *where.params)),
        )

    def _add(self, tenant: str, rows: Sequence[VectorRow]) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for some in portions(rows):
            keys = [(tenant, row.path, row.key, row.number) for row in some]
            vectors = [
                (*key, row.digest, row.model, row.embedding, row.checksum(tenant))
                for key, row in zip(keys, some, strict=True)
            ]
            signs = [
                (owner_of(tenant, row.path), row.key, row.number, int(row.expires), row.dims, row.model, row.sig)
                for row in some
                if row.sig is not None
            ]
            codes = [(*key, tenant, row.path, row.code) for key, row in zip(keys, some, strict=True)]
            statements += [
                self._insert(ADD_VECTORS, "(%s, %s, %s, %s, %s, %s, %s, %s)", vectors),
                *((self._insert(ADD_SIGNS, "(%s, %s, %s, %s, %s, %s, %s)", signs),) if signs else ()),
                self._insert(ADD_CODES, ADD_CODES_ROW, codes),
            ]
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
        self, tenant: str, where: Range, sig: bytes, dims: int, model: int, condition: ItemFilter, limit: int
    ) -> Query[NearRow]:
        """Return the embeddings of a model whose sign bits differ least from a query's, in any order, then others."""
        text = self._text(
            NEAR,
            join=ITEMS_OF_SIGNS if condition.sql else "",
            range=where.owned("s"),
            buffer=str(_sort_buffer_bytes(limit)),
            **_distance_by_parts(len(sig)),
            filter=condition.sql,
            other_model=str(OTHER_MODEL),
        )
        at: tuple[Param, ...] = (tenant, path_at(tenant))
        chosen = (*(at if condition.sql else ()), *where.owned_params(tenant), dims, len(sig), *at, *condition.params)
        return Query(text, (model, sig, *chosen, limit, *at), row=NearRow)

    def exact(self, tenant: str, keys: Sequence[tuple[bytes, bytes, int]]) -> tuple[Query[EmbeddingRow], ...]:
        """Return some embeddings by their keys."""
        return tuple(
            Query(
                self._text(EXACT, keys=placeholders(len(some), "(%s, %s, %s, %s)")),
                tuple(param for key in some for param in (tenant, *key)),
                row=EmbeddingRow,
            )
            for some in portions(keys)
        )

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
            changes=KNOWN_TOKENS + CHANGES if since else "",
            tokens=placeholders(len(since or ())),
            since=" OR ".join(["c.path = %s AND c.stamp > %s"] * len(since or ())),
        )
        return Query(text, tuple(params), row=StateRow)

    def all_codes(self, tenant: str, where: Range) -> Query[CodeRow]:
        """Return all codes of a range, and the last write to each of its namespaces."""
        text = self._text(ALL_CODES, of_scopes=where.condition("s"), of_codes=where.condition("c"))
        return Query(text, (tenant, *where.params) * 2, row=CodeRow)

    def between(self, tenant: str, spans: Sequence[tuple[bytes, bytes, bytes]]) -> Query[EmbeddingRow]:
        """Return the embeddings of spans of keys.

        Args:
            tenant: The tenant.
            spans: The path of a namespace, with the first and the last key; at most `ROWS_PER_STATEMENT` spans.
        """
        one = "v.path = %s AND v.item_key BETWEEN %s AND %s"
        text = self._text(BETWEEN, spans=" OR ".join([one] * len(spans)))
        return Query(text, (tenant, *(param for span in spans for param in span)), row=EmbeddingRow)

    def size(self, tenant: str, where: Range) -> Query[CountRow]:
        """Count the embeddings of a range."""
        return Query(self._text(SIZE, range=where.owned("s")), where.owned_params(tenant), row=CountRow)

    def size_by_codes(self, tenant: str, where: Range) -> Query[CountRow]:
        """Count the embeddings of a range by their codes."""
        text = self._text(SIZE_BY_CODES, range=where.condition("c"))
        return Query(text, (tenant, *where.params), row=CountRow)

    def purge(self, tenant: str, path: bytes, age_us: int, limit: int) -> tuple[Statement, Statement]:
        """Remove the codes of embeddings that were removed longer ago than ``age_us``, at most ``limit``."""
        return (
            Statement(self._text(PURGE_SCOPE), (tenant, path, age_us)),
            Statement(self._text(PURGE_CODES), (tenant, path, tenant, path, limit)),
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
