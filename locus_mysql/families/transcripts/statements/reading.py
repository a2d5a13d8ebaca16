"""Statements that read transcripts, for stores and for the inspector."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ....dialect import Query
from ....dialect.sql import Dialect, Select
from ....errors import Unavailable
from ..records import SeqRange
from .tables import RowKey


class StoredHeader(NamedTuple):
    """A transcript with its sid; ``state`` is None if it has no state, or if the state was not read."""

    kind: bytes
    collection: bytes
    name: bytes
    part: bytes
    revision: int
    tag: bytes | None
    scope: bytes | None
    items: int
    size_bytes: int
    last_seq: int
    created_at: datetime
    expires_at: datetime | None
    seal: int
    sid: bytes
    state: bytes | None


class StoredItem(NamedTuple):
    """An item. In the last row of `ITEMS`, ``seq`` is 0, and ``revision`` the transcript's."""

    revision: int
    seq: int
    item_id: bytes | None
    content: bytes
    created_at: datetime


class RevisionRow(NamedTuple):
    """The revision of a transcript."""

    revision: int


class SeqRow(NamedTuple):
    """The seq of an item."""

    seq: int


class IdRow(NamedTuple):
    """The id of an item."""

    item_id: bytes


#: A transcript with its state.
HEADER = Select("SELECT {HEADER}, t.state FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT}", StoredHeader)

REVISION = Select("SELECT t.revision FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT}", RevisionRow)

#: The seq of the last item that a transcript ever had; 0 if it had none.
LAST_SEQ = Select("SELECT t.last_seq FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT}", SeqRow)

#: The items of a transcript in their order, or from the last one backwards; then a row with seq 0 and the transcript's
#: revision; see `items_of`. MySQL reads the subquery once, then the items in the order of their primary key, up to the
#: limit. With a join, it would read and sort all of them. If the statement is killed (KILL QUERY), the subquery is NULL
#: and finds no item; reading the last row then reports the kill: see docs/design/writes.md. The order of a member of a
#: UNION needs a limit.
ITEMS = Select(
    """
(SELECT CAST(0 AS UNSIGNED), i.seq, i.item_id, i.content, i.created_at
   FROM {items} i FORCE INDEX (PRIMARY)
  WHERE i.tenant = :tenant AND i.sid = (SELECT t.sid FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT}){range}
  ORDER BY i.seq{direction} LIMIT :limit{offset})
UNION ALL
(SELECT t.revision, CAST(0 AS UNSIGNED), NULL, _binary'', t.created_at
   FROM {transcripts} t
  WHERE {KEY} AND {LIVE_TRANSCRIPT})
""",
    StoredItem,
)
AFTER, BEFORE, OFFSET = " AND i.seq > :after", " AND i.seq < :before", " OFFSET :offset"
NO_LIMIT = 9_223_372_036_854_775_807

#: Up to the item with this id. Relies on the index identity.
UNTIL = """
   AND i.seq <= (SELECT h.seq FROM {items} h
                  WHERE h.tenant = :tenant AND h.item_id = :until
                    AND h.sid = (SELECT t.sid FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT}))"""

#: One item by its id. Relies on the index identity.
ITEM = Select(
    """
SELECT 0, i.seq, i.item_id, i.content, i.created_at
  FROM {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.item_id = :item_id
 WHERE {KEY} AND {LIVE_TRANSCRIPT}
""",
    StoredItem,
)

#: The ids in a list that a transcript has. Relies on the index identity.
PRESENT = Select(
    """
SELECT i.item_id
  FROM {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.item_id IN (:ids)
 WHERE {KEY} AND {LIVE_TRANSCRIPT}
""",
    IdRow,
)

#: The seqs in a list that a transcript has.
EXISTING = Select(
    """
SELECT i.seq
  FROM {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.seq IN (:seqs)
 WHERE {KEY} AND {LIVE_TRANSCRIPT}
""",
    SeqRow,
)

#: The transcripts of a kind that have an item with this id. Relies on the index identity.
HOLDING = Select(
    """
SELECT {HEADER}, t.state
  FROM {items} i
  JOIN {transcripts} t ON {OF_TRANSCRIPT}
 WHERE i.tenant = :tenant AND i.item_id = :item_id AND t.kind = :kind AND {LIVE_TRANSCRIPT}
""",
    StoredHeader,
)

#: Transcripts of a kind; see `listed`. Relies on the primary key in its order, and on the index scope for those of a
#: scope, newest first.
LIST = Select(
    """
SELECT {HEADER}, {state}
  FROM {transcripts} t
 WHERE t.tenant = :tenant AND t.kind = :kind{conditions} AND {LIVE_TRANSCRIPT}
 ORDER BY {order}{limit}
""",
    StoredHeader,
)
IN_COLLECTION, NAMED, IN_SCOPE = " AND t.collection = :collection", " AND t.name = :name", " AND t.scope = :scope"
BEGINS = " AND t.name >= :prefix AND t.name < :end"
UNDIVIDED = " AND LOCATE(:delimiter, t.name, :behind) = 0"
MAIN = " AND t.part = _binary''"
AFTER_KEY = """
   AND (t.collection > :after_collection OR t.collection = :after_collection
        AND (t.name > :after_name OR t.name = :after_name AND t.part > :after_part))"""
BY_KEY, NEWEST_FIRST = "t.collection, t.name, t.part", "t.revision DESC"
LIMIT = " LIMIT :limit"


class FoundItems(NamedTuple):
    """The rows of items that a statement found, and the transcript's revision then."""

    items: Sequence[StoredItem]
    revision: int


def found_items(rows: Sequence[StoredItem]) -> FoundItems | None:
    """Return what an answer to `ITEMS` holds; None if the transcript does not exist.

    Raises:
        Unavailable: The answer ends before the last row, so that items may be missing too.
    """
    if not rows:
        return None
    if rows[-1].seq != 0:  # something truncates answers; or, on OceanBase, it has expired within the statement
        raise Unavailable(f"The items of a transcript were cut off after {len(rows)} rows. Try again.")
    return FoundItems(rows[:-1], rows[-1].revision)


def items_of(
    sql: Dialect, key: RowKey, *, after: int | None = None, before: int | None = None, until: bytes | None = None,
    within: Sequence[SeqRange] | None = None, limit: int | None = None, offset: int = 0, last: bool = False,
) -> Query[StoredItem]:  # fmt: skip
    """Items of a transcript; see `found_items`.

    Args:
        sql: The family's.
        key: The transcript.
        after: Only items after this seq.
        before: Only items before this seq.
        until: Only the item with this id and those before it.
        within: Only items whose seqs are in one of these ranges.
        limit: The maximum number of results.
        offset: The number of items to skip.
        last: Whether to begin with the last item and read backwards.
    """
    bounds: dict[str, int | None] = {}
    conditions = [text for text, value in ((AFTER, after), (BEFORE, before), (UNTIL, until)) if value is not None]
    if within is not None:
        texts = []
        for number, (first, end) in enumerate(within):
            bounds |= {f"first_{number}": first, f"last_{number}": end}
            texts.append(
                f"i.seq >= :first_{number}" if end is None else f"i.seq BETWEEN :first_{number} AND :last_{number}"
            )
        conditions.append(f" AND ({' OR '.join(texts) or 'FALSE'})")
    pieces = {
        "range": "".join(conditions),
        "direction": " DESC" if last else "",
        "offset": OFFSET if offset else "",
    }
    limit = NO_LIMIT if limit is None else limit
    return ITEMS(sql, key, pieces=pieces, after=after, before=before, until=until, limit=limit, offset=offset, **bounds)


def listed(
    sql: Dialect,
    tenant: str,
    kind: bytes,
    *,
    collection: bytes | None,
    name: bytes | None = None,
    prefix: bytes = b"",
    delimiter: bytes | None = None,
    scope: bytes | None = None,
    parts: bool = False,
    after: tuple[bytes, bytes, bytes] | None = None,
    newest_first: bool = False,
    limit: int | None,
    states: bool,
) -> Query[StoredHeader]:
    """Transcripts in the order of their keys, or newest first.

    Args:
        sql: The family's.
        tenant: The tenant.
        kind: Their kind.
        collection: Their collection; None for any.
        name: Their name; None for any.
        prefix: The start of their names.
        delimiter: Leave out names with this text behind the prefix.
        scope: Their scope; None for any.
        parts: Whether to include transcripts with a part.
        after: Only those after this collection, name and part.
        newest_first: Whether to begin with the one that was written last.
        limit: The maximum number of results.
        states: Whether to read their states.
    """
    conditions = [
        text
        for text, value in (
            (IN_COLLECTION, collection is not None),
            (NAMED, name is not None),
            (IN_SCOPE, scope is not None),
            (BEGINS, prefix),
            (UNDIVIDED, delimiter is not None),
            (MAIN, not parts),
            (AFTER_KEY, after is not None),
        )
        if value
    ]
    after_collection, after_name, after_part = after or (b"", b"", b"")
    return LIST(
        sql,
        pieces={
            "state": "t.state" if states else "NULL",
            "conditions": "".join(conditions),
            "order": NEWEST_FIRST if newest_first else BY_KEY,
            "limit": "" if limit is None else LIMIT,
        },
        tenant=tenant,
        kind=kind,
        collection=collection,
        name=name,
        scope=scope,
        prefix=prefix,
        end=prefix + b"\xff",  # UTF-8 has no such byte
        delimiter=delimiter,
        behind=len(prefix) + 1,
        after_collection=after_collection,
        after_name=after_name,
        after_part=after_part,
        limit=limit,
    )


class EndRow(NamedTuple):
    """The first item or one of the last items of a transcript."""

    kind: bytes
    collection: bytes
    name: bytes
    part: bytes
    revision: int
    seq: int
    item_id: bytes | None
    content: bytes
    created_at: datetime


class SizeRow(NamedTuple):
    """The size of an item."""

    seq: int
    size_bytes: int


class Totals(NamedTuple):
    """The number of transcripts, of their items, and of the bytes of these."""

    transcripts: int
    items: Decimal | int
    size_bytes: Decimal | int


TOTALS = Select(
    """
SELECT COUNT(*), COALESCE(SUM(t.items), 0), COALESCE(SUM(t.size_bytes), 0)
  FROM {transcripts} t
 WHERE t.tenant = :tenant AND {LIVE_TRANSCRIPT}
""",
    Totals,
)


#: The last items of a transcript with the sizes of their contents, last first; then a row with seq 0, as in
#: `reading.ITEMS`.
SIZES = Select(
    """
(SELECT i.seq, LENGTH(i.content)
   FROM {items} i
  WHERE i.tenant = :tenant AND i.sid = (SELECT t.sid FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT})
  ORDER BY i.seq DESC
  LIMIT :limit)
UNION ALL
(SELECT CAST(0 AS UNSIGNED), 0)
""",
    SizeRow,
)

#: The first item and the ``last`` items of transcripts, without those of more than ``max_bytes``.
ENDS = Select(
    """
SELECT t.kind, t.collection, t.name, t.part, t.revision, i.seq, i.item_id, i.content, i.created_at
  FROM {transcripts} t
  JOIN LATERAL ((SELECT i.seq FROM {items} i WHERE {OF_TRANSCRIPT} ORDER BY i.tenant, i.sid, i.seq LIMIT 1)
                UNION DISTINCT
                (SELECT i.seq FROM {items} i WHERE {OF_TRANSCRIPT}
                  ORDER BY i.tenant DESC, i.sid DESC, i.seq DESC LIMIT :last)) AS chosen
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.seq = chosen.seq
 WHERE {ONE_OF} AND {LIVE_TRANSCRIPT} AND LENGTH(i.content) <= :max_bytes
""",
    EndRow,
)
