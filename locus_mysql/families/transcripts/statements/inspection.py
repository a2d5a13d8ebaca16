"""Statements that count and list transcripts of all kinds, newest first, for maintenance and inspection."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ....dialect import Query
from ....dialect.dialect import Dialect
from ....dialect.inspection import ThreadMarker
from ....dialect.sql import Select
from ....dialect.template import like
from .reading import StoredHeader
from .tables import RowKey


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


class DayRow(NamedTuple):
    """Totals over the transcripts of a day."""

    day: str
    transcripts: int
    items: Decimal | int
    size_bytes: Decimal | int


#: Transcripts, newest first; see `listed_threads`. Relies on the index recent.
THREADS = Select(
    """
SELECT {HEADER}, t.state
  FROM {transcripts} t
 WHERE t.tenant = :tenant{conditions} AND {LIVE_TRANSCRIPT}
 ORDER BY t.revision DESC, t.kind, t.collection, t.name, t.part
 LIMIT :limit
""",
    StoredHeader,
)
MATCHING = " AND {THREAD_ID} COLLATE utf8mb4_0900_bin LIKE :pattern"
LARGE = " AND t.size_bytes >= :min_bytes"
SAVED_AFTER, SAVED_BEFORE = " AND t.revision >= :saved_after", " AND t.revision < :saved_before"
AFTER_KEY = """
   AND (t.revision < :revision OR t.revision = :revision AND (t.kind > :kind OR t.kind = :kind
        AND (t.collection > :collection OR t.collection = :collection
             AND (t.name > :name OR t.name = :name AND t.part > :part))))"""

TOTALS = Select(
    """
SELECT COUNT(*), COALESCE(SUM(t.items), 0), COALESCE(SUM(t.size_bytes), 0)
  FROM {transcripts} t
 WHERE t.tenant = :tenant AND {LIVE_TRANSCRIPT}
""",
    Totals,
)

#: The transcripts created on each of the last 30 days.
DAYS = Select(
    """
SELECT CAST(DATE(t.created_at) AS CHAR), COUNT(*), SUM(t.items), SUM(t.size_bytes)
  FROM {transcripts} t
 WHERE t.tenant = :tenant AND t.created_at > UTC_TIMESTAMP(6) - INTERVAL 30 DAY AND {LIVE_TRANSCRIPT}
 GROUP BY CAST(DATE(t.created_at) AS CHAR)
 ORDER BY CAST(DATE(t.created_at) AS CHAR)
""",
    DayRow,
)

LARGEST = Select(
    """
SELECT {HEADER}, t.state
  FROM {transcripts} t
 WHERE t.tenant = :tenant AND {LIVE_TRANSCRIPT}
 ORDER BY t.size_bytes DESC
 LIMIT :limit
""",
    StoredHeader,
)

#: The existing ones of some transcripts, each with its revision as marker; see `markers`.
MARKERS = Select(
    "SELECT {THREAD_ID}, CAST(t.revision AS CHAR) FROM {transcripts} t WHERE {which} AND {LIVE_TRANSCRIPT}",
    ThreadMarker,
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


def listed_threads(
    sql: Dialect,
    tenant: str,
    limit: int,
    *,
    pattern: str = "*",
    min_bytes: int | None = None,
    saved_after: int | None = None,
    saved_before: int | None = None,
    after: tuple[int, RowKey] | None = None,
) -> Query[StoredHeader]:
    """Transcripts, newest first.

    Args:
        sql: The family's.
        tenant: The tenant.
        limit: The maximum number of results.
        pattern: A glob that their ids match.
        min_bytes: The minimum size of their items.
        saved_after: The minimum revision.
        saved_before: All revisions are below this one.
        after: Only those after this revision and key.
    """
    conditions = [
        text
        for text, needed in (
            (MATCHING, pattern != "*"),
            (LARGE, min_bytes is not None),
            (SAVED_AFTER, saved_after is not None),
            (SAVED_BEFORE, saved_before is not None),
            (AFTER_KEY, after is not None),
        )
        if needed
    ]
    revision, key = after or (0, RowKey(tenant, b"", b"", b"", b""))
    return THREADS(
        sql,
        key,
        pieces={"conditions": "".join(conditions)},
        pattern=like(pattern),
        min_bytes=min_bytes,
        saved_after=saved_after,
        saved_before=saved_before,
        revision=revision,
        limit=limit,
    )


def markers(sql: Dialect, keys: list[RowKey]) -> Query[ThreadMarker]:
    """The existing ones of these transcripts, each with its revision as marker."""
    if not keys:
        return MARKERS(sql, pieces={"which": "FALSE"})
    return MARKERS(sql, pieces={"which": "{ONE_OF}"}, keys=keys)
