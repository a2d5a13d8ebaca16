"""Statements that count transcripts and read parts of them, for maintenance and inspection."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ....dialect.sql import Select


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
