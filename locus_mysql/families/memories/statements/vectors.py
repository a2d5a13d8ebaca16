"""Statements about embeddings: in full, and as a bit per dimension (signs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ....dialect import Query, Statement
from ....dialect.sql import SQL, Select
from ....dialect.statement import fill
from .filters import ItemFilter
from .tables import (
    CountRow,
    ItemKey,
    ItemKeyRow,
    MemoryDialect,
    PathRow,
    Range,
    of_tenant,
    owner_of,
    path_at,
    portions,
)

#: Removes embeddings. A row without content stays for an hour, by which caches detect the removal.
REMOVE = SQL("""
UPDATE {vectors} v
  JOIN {scopes} s ON s.tenant = v.tenant AND s.path = v.path
   SET v.embedding = NULL, v.removed = 1, v.stamp = s.stamp
 WHERE (v.tenant, v.path, v.item_key) IN (:keys) AND v.removed = 0{gone}
""")
_GONE = """
   AND NOT EXISTS (SELECT 1 FROM {items} i WHERE i.tenant = v.tenant AND i.path = v.path
                      AND i.item_key = v.item_key)"""
REMOVE_SIGNS = SQL("DELETE s FROM {signs} s WHERE (s.owner, s.item_key) IN (:keys){gone}")
_GONE_OF_SIGNS = """
   AND NOT EXISTS (SELECT 1 FROM {items} i
                    WHERE i.tenant = :tenant AND i.path = SUBSTR(s.owner, :path_at) AND i.item_key = s.item_key)"""

#: Removes all embeddings of a namespace.
CLEAR = SQL("""
UPDATE {vectors} v
  JOIN {scopes} s ON s.tenant = v.tenant AND s.path = v.path
   SET v.embedding = NULL, v.removed = 1, v.stamp = s.stamp
 WHERE v.tenant = :tenant AND v.path = :path AND v.removed = 0
""")
CLEAR_SIGNS = SQL("DELETE s FROM {signs} s WHERE s.owner = :owner")

ADD = SQL("""
INSERT INTO {vectors} (tenant, path, item_key, number, model, embedding, removed, stamp)
VALUES [rows: (:tenant, :path, :key, :number, :model, :embedding, 0,
        (SELECT s.stamp FROM {scopes} s WHERE s.tenant = :tenant AND s.path = :path))] AS fresh
    ON DUPLICATE KEY UPDATE model = fresh.model, embedding = fresh.embedding, removed = 0, stamp = fresh.stamp
""")

#: Signs whose embedding was deleted by hand are replaced.
ADD_SIGNS = SQL("""
REPLACE INTO {signs} (owner, item_key, number, expires, dims, model, sig)
VALUES [rows: (:owner, :key, :number, :expires, :dims, :model, :sig)]
""")


class VectorRow(NamedTuple):
    """An embedding to write, sealed.

    Args:
        tenant: The tenant.
        path: The path of the namespace.
        key: The item's key.
        number: The embedding's number among those of its item.
        model: The beginning of the digest of the model's name; 0 for an unnamed one.
        embedding: See `SealedItems.seal_embeddings`.
    """

    tenant: str
    path: bytes
    key: bytes
    number: int
    model: int
    embedding: bytes


class SignRow(NamedTuple):
    """The signs of an embedding to write.

    Args:
        owner: See `owner_of`.
        key: The item's key.
        number: The embedding's number.
        expires: 1 if the item may expire.
        dims: The width of the embedding.
        model: See `VectorRow`.
        sig: A bit per dimension.
    """

    owner: bytes
    key: bytes
    number: int
    expires: int
    dims: int
    model: int
    sig: bytes


class EmbeddingRow(NamedTuple):
    """An embedding as it is stored; see `VectorRow`."""

    path: bytes
    key: bytes
    number: int
    embedding: bytes

    @property
    def vector_key(self) -> tuple[bytes, bytes, int]:
        """The key of the embedding."""
        return (self.path, self.key, self.number)


class ModelEmbeddingRow(NamedTuple):
    """An `EmbeddingRow` with the model."""

    path: bytes
    key: bytes
    number: int
    embedding: bytes
    model: int


class NearRow(NamedTuple):
    """An embedding, and its distance from a query by sign bits.

    If the embedding is of another model, the distance is at least `OTHER_MODEL`. All other columns are None then, and
    if the embedding is much farther than others, or was deleted by hand.
    """

    path: bytes | None
    key: bytes | None
    number: int | None
    embedding: bytes | None
    distance: int


class StateRow(NamedTuple):
    """A namespace, a token that the server still has, or an embedding; see `range_state`.

    A namespace has stamp, purged, token, the token of the write before, and path. A token has no other columns. An
    embedding has no stamp and no tokens; its content is None if it was removed, or is of another model.
    """

    stamp: int | None
    purged: int | None
    token: bytes | None
    previous_token: bytes | None
    path: bytes | None
    key: bytes | None
    number: int | None
    embedding: bytes | None


#: The embeddings of some items: texts that are written again need not be embedded again.
OF_ITEMS = Select(
    """
SELECT v.path, v.item_key, v.number, {CONTENT}, v.model
  FROM {vectors} v
 WHERE (v.tenant, v.path, v.item_key) IN (:keys) AND v.removed = 0
""",
    ModelEmbeddingRow,
)

#: The embeddings of an item.
OF_ITEM = Select(
    """
SELECT v.path, v.item_key, v.number, {CONTENT}, v.model
  FROM {vectors} v
 WHERE v.tenant = :tenant AND v.path = :path AND v.item_key = :key AND v.removed = 0
 ORDER BY v.number
""",
    ModelEmbeddingRow,
)

#: Those of some items that have an embedding of a model.
HAVING = Select(
    """
SELECT DISTINCT v.path, v.item_key FROM {vectors} v
 WHERE (v.tenant, v.path, v.item_key) IN (:keys) AND v.model = :model AND v.removed = 0
""",
    ItemKeyRow,
)

_NEAR_TEXT = """
WITH near AS (SELECT /*+ SET_VAR(sort_buffer_size = {buffer}) */ s.owner, s.item_key, s.number,
                     IF(s.model = :model, 0, {other_model}) + BIT_COUNT(s.sig ^ :sig) AS distance
                FROM {signs} s{join}{range} AND s.dims = :dims AND LENGTH(s.sig) = :sig_bytes
                 AND (s.expires = 0 OR EXISTS (SELECT 1 FROM {items} x
                                                WHERE x.tenant = :tenant AND x.path = SUBSTR(s.owner, :path_at)
                                                  AND x.item_key = s.item_key
                                                  AND x.expires_at > UTC_TIMESTAMP(6))){filter}
               ORDER BY distance
               LIMIT :limit)
SELECT v.path, v.item_key, v.number, v.embedding, near.distance
  FROM (SELECT LEAST({other_model} - 1,
                     IF((SELECT COUNT(*) FROM near) < :limit, {other_model},
                        IFNULL((SELECT n.distance FROM near n ORDER BY n.distance LIMIT 1 OFFSET {place}) + :margin,
                               {other_model}))) AS distance) AS farthest
  JOIN near
  LEFT JOIN {vectors} v ON v.tenant = :tenant AND v.path = SUBSTR(near.owner, :path_at) AND v.item_key = near.item_key
                       AND v.number = near.number AND v.removed = 0 AND near.distance <= farthest.distance
"""

# The nearest embeddings by signs. It reads all signs of the range, but other columns only of the nearest. It sorts by
# the distance alone, in a buffer that is large enough for the rows of the answer. MySQL sizes sort rows by declared
# column width, so with the session's own buffer it would write the whole range to disk in sorted parts.
# If there are as many rows as the limit, those that are much farther than one of the nearest come without their
# embedding, as do those of other models, which come last: OTHER_MODEL is added to their distance.
# On OceanBase, BIT_COUNT and ^ take numbers of at most 64 bits; the BIT_COUNT of a longer XOR is 0, without an error.
# So the signs are compared in parts of 64 bits. There is no buffer to set.
_NEAR = Select(
    _NEAR_TEXT,
    NearRow,
    oceanbase=_NEAR_TEXT.replace("/*+ SET_VAR(sort_buffer_size = {buffer}) */ ", "")
    .replace("BIT_COUNT(s.sig ^ :sig)", "{distance}")
    .replace(
        "FROM {signs} s{join}",
        "FROM (SELECT {asked} FROM (SELECT :sig AS sig) AS q) AS asked JOIN {signs} s{join}",
    ),
)
_PART = "CAST(CONV(HEX(SUBSTR({of}.sig, {begin}, 8)), 16, 10) AS UNSIGNED)"

#: Added to the distance of an embedding of another model; larger than any distance.
OTHER_MODEL = 65_536

#: The bytes that MySQL reserves for each row of signs that it sorts, and the maximum for all of them.
_SORTED_BYTES, _SORT_BUFFER_BYTES = 4_600, 1 << 26

_ITEMS_OF_SIGNS = """
          JOIN {items} i ON i.tenant = :tenant AND i.path = SUBSTR(s.owner, :path_at) AND i.item_key = s.item_key
         """

# The namespaces of a range. A row of the table scopes is a namespace, whose labels are in the column path; a range is a
# namespace, or all below a prefix.
# This and the next three are sent as one statement if they are needed together, as two statements may read different
# snapshots: a cache must have the state after exactly one write, whose token it then keeps. _CHANGES relies on the
# index changes.
_STATE = Select(
    """
SELECT s.stamp, s.purged, s.token, s.earlier, s.path, NULL AS item_key, NULL AS number, NULL AS embedding
  FROM {scopes} s WHERE s.tenant = :tenant{range}{more}
""",
    StateRow,
)
_KNOWN_TOKENS = """
UNION ALL
SELECT NULL, NULL, t.token, NULL, NULL, NULL, NULL, NULL
  FROM {ledger} t WHERE t.tenant = :tenant AND t.token IN (:tokens)
"""
_CHANGES = """
UNION ALL
SELECT NULL, NULL, NULL, NULL, v.path, v.item_key, v.number, IF(v.removed = 0 AND v.model = :model, {CONTENT}, NULL)
  FROM {vectors} v WHERE v.tenant = :tenant AND v.removed IN (0, 1) AND ({since})
"""
_EMBEDDINGS = """
UNION ALL
SELECT NULL, NULL, NULL, NULL, v.path, v.item_key, v.number, IF(v.model = :model, {CONTENT}, NULL)
  FROM {vectors} v WHERE v.tenant = :tenant{of_vectors} AND v.removed = 0
"""

_PAGE = Select(
    """
SELECT v.path, v.item_key, v.number, {CONTENT}
  FROM (SELECT v.tenant, v.path, v.item_key, v.number FROM {vectors} v
         WHERE v.tenant = :tenant{range}{after} AND v.removed = 0 AND v.model = :model
         ORDER BY v.path, v.item_key, v.number
         LIMIT :limit) AS chosen
  JOIN {vectors} v ON v.tenant = chosen.tenant AND v.path = chosen.path AND v.item_key = chosen.item_key
                  AND v.number = chosen.number
 ORDER BY v.path, v.item_key, v.number
""",
    EmbeddingRow,
)
_AFTER = """ AND (v.path > :last_path OR (v.path = :last_path
                AND (v.item_key > :last_key OR (v.item_key = :last_key AND v.number > :last_number))))"""

#: The number of embeddings of a range. Relies on the index changes.
SIZE = Select("SELECT COUNT(*) FROM {vectors} v WHERE v.tenant = :tenant AND v.removed = 0{range}", CountRow)

#: Raises ``purged`` of a namespace to the newest stamp of the rows of embeddings that were removed longer ago than
#: ``age_us``, and locks it; PURGE relies on that lock. Caches that are older load the namespace again. This and the
#: next two rely on the index changes.
PURGE_SCOPE = SQL("""
UPDATE {scopes} s
  JOIN (SELECT v.tenant, v.path, MAX(v.stamp) AS newest
          FROM {vectors} v
         WHERE v.tenant = :tenant AND v.removed = 1 AND v.path = :path
           AND v.stamp < {US_SINCE_2000} - :age_us
         GROUP BY v.tenant, v.path) AS old ON old.tenant = s.tenant AND old.path = s.path
   SET s.purged = GREATEST(s.purged, old.newest)
""")

#: Deletes these rows.
PURGE = SQL("""
DELETE FROM {vectors}
 WHERE tenant = :tenant AND removed = 1 AND path = :path
   AND stamp <= (SELECT s.purged FROM {scopes} s WHERE s.tenant = :tenant AND s.path = :path)
 ORDER BY stamp
 LIMIT :limit
""")

#: Namespaces with such rows.
REMOVED = Select(
    """
SELECT DISTINCT v.path FROM {vectors} v
 WHERE v.tenant = :tenant AND v.removed = 1
   AND v.stamp < {US_SINCE_2000} - :age_us
 LIMIT :limit
""",
    PathRow,
)


def replace_embeddings(
    sql: MemoryDialect, tenant: str, keys: Sequence[ItemKey], rows: Sequence[tuple[VectorRow, SignRow | None]] = ()
) -> list[Statement]:
    """Replace the embeddings of the items with these keys by new ones. The namespaces must be locked."""
    signs = [sign for _, sign in rows if sign is not None]
    return [
        *(REMOVE(sql, keys=some, pieces={"gone": ""}) for some in of_tenant(tenant, keys)),
        *(REMOVE_SIGNS(sql, keys=some, pieces={"gone": ""}) for some in _owners(tenant, keys)),
        *(ADD(sql, rows=some) for some in portions([vector for vector, _ in rows])),
        *(ADD_SIGNS(sql, rows=some) for some in portions(signs)),
    ]


def remove_loose(sql: MemoryDialect, tenant: str, keys: Sequence[ItemKey]) -> list[Statement]:
    """Remove the embeddings of those of these items that no longer exist. The namespaces must be locked."""
    gone: dict[str, Any] = {"tenant": tenant, "path_at": path_at(tenant), "pieces": {"gone": _GONE_OF_SIGNS}}
    return [
        *(REMOVE(sql, keys=some, pieces={"gone": _GONE}) for some in of_tenant(tenant, keys)),
        *(REMOVE_SIGNS(sql, keys=some, **gone) for some in _owners(tenant, keys)),
    ]


def find_near(
    sql: MemoryDialect,
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
        sql: The names of the tables.
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
    pieces = {
        "join": _ITEMS_OF_SIGNS if condition.sql else "",
        "range": where.owned("s"),
        "buffer": str(_sort_buffer_bytes(limit)),
        **_distance_by_parts(len(sig)),
        "filter": condition.sql,
        "other_model": str(OTHER_MODEL),
        "place": str((1 << (place - 1).bit_length()) - 1),
    }
    params = {**where.owned_params(tenant), **condition.params, "sig": sig, "sig_bytes": len(sig), "dims": dims}
    params |= {"tenant": tenant, "path_at": path_at(tenant), "model": model, "limit": limit, "margin": margin}
    return _NEAR(sql, pieces=pieces, **params)


def range_state(
    sql: MemoryDialect, tenant: str, where: Range, model: int, since: Mapping[bytes, tuple[int, bytes]] | None = None
) -> Query[StateRow]:
    """Return the current namespaces of a range, and the changes in some of them.

    Args:
        sql: The names of the tables.
        tenant: The tenant.
        where: The range.
        model: The model whose embeddings are wanted.
        since: Stamp and token of the last known write to each namespace whose changes are wanted. The server keeps
            a token for a quarter of an hour.
    """
    pieces, params = {"range": where.condition("s"), "more": ""}, where.params
    if since:
        changed = " OR ".join(f"v.path = :path{n} AND v.stamp > :stamp{n}" for n in range(len(since)))
        pieces |= {"more": _KNOWN_TOKENS + _CHANGES, "since": changed}
        params["tokens"] = [token for _, token in since.values()]
        for n, (path, (stamp, _)) in enumerate(since.items()):
            params |= {f"path{n}": path, f"stamp{n}": stamp}
    return _STATE(sql, tenant=tenant, model=model, pieces=pieces, **params)


def whole_range(sql: MemoryDialect, tenant: str, where: Range, model: int) -> Query[StateRow]:
    """Return the current namespaces of a range with all their embeddings of a model."""
    pieces = {"range": where.condition("s"), "more": _EMBEDDINGS, "of_vectors": where.condition("v")}
    return _STATE(sql, tenant=tenant, model=model, pieces=pieces, **where.params)


def page_of_range(
    sql: MemoryDialect, tenant: str, where: Range, model: int, after: tuple[bytes, bytes, int] | None, limit: int
) -> Query[EmbeddingRow]:
    """Return a model's embeddings of a range after a key, ordered by key. The inner query reads no content."""
    pieces, params = {"range": where.condition("v"), "after": _AFTER if after else ""}, where.params
    if after:
        params |= dict(zip(("last_path", "last_key", "last_number"), after, strict=True))
    return _PAGE(sql, tenant=tenant, model=model, limit=limit, pieces=pieces, **params)


def _owners(tenant: str, keys: Sequence[ItemKey]) -> list[list[ItemKey]]:
    """Return items as rows of the primary key of signs, in lists for one statement each."""
    return portions([(owner_of(tenant, path), key) for path, key in keys])


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
