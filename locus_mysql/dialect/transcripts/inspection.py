"""Statements for inspection: transcripts of all kinds, newest first, and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ..inspection import ThreadMarker
from ..like import like
from ..statement import Param, Query
from ..template import Statements, fill
from .pieces import RowKey
from .reading import StoredHeader

#: The id of a transcript as a thread: its key as the segments of a path, with ``~`` and ``/`` escaped as in JSON
#: Pointer (RFC 6901); without a part if the transcript has none.
THREAD_ID = """
CONVERT(CONCAT_WS('/', t.kind, {collection}, {name}, IF(t.part = _binary'', NULL, {part})) USING utf8mb4)
"""
ESCAPED = "REPLACE(REPLACE(t.{column}, '~', '~0'), '/', '~1')"

# Relies on the index recent.
THREADS = """
SELECT {HEADER}, t.state
  FROM {transcripts} t
 WHERE t.tenant = %s{conditions} AND {LIVE_TRANSCRIPT}
 ORDER BY t.revision DESC, t.kind, t.collection, t.name, t.part
 LIMIT %s
"""
MATCHING = " AND {THREAD_ID} COLLATE utf8mb4_0900_bin LIKE %s"
LARGE = " AND t.size_bytes >= %s"
SAVED_AFTER, SAVED_BEFORE = " AND t.revision >= %s", " AND t.revision < %s"
AFTER_KEY = """
   AND (t.revision < %s OR t.revision = %s AND (t.kind > %s OR t.kind = %s AND (t.collection > %s OR t.collection = %s
        AND (t.name > %s OR t.name = %s AND t.part > %s))))"""

TOTALS = """
SELECT COUNT(*), COALESCE(SUM(t.items), 0), COALESCE(SUM(t.size_bytes), 0)
  FROM {transcripts} t
 WHERE t.tenant = %s AND {LIVE_TRANSCRIPT}
"""

# The transcripts created on each of the last 30 days.
DAYS = """
SELECT CAST(DATE(t.created_at) AS CHAR), COUNT(*), SUM(t.items), SUM(t.size_bytes)
  FROM {transcripts} t
 WHERE t.tenant = %s AND t.created_at > UTC_TIMESTAMP(6) - INTERVAL 30 DAY AND {LIVE_TRANSCRIPT}
 GROUP BY CAST(DATE(t.created_at) AS CHAR)
 ORDER BY CAST(DATE(t.created_at) AS CHAR)
"""

LARGEST = """
SELECT {HEADER}, t.state
  FROM {transcripts} t
 WHERE t.tenant = %s AND {LIVE_TRANSCRIPT}
 ORDER BY t.size_bytes DESC
 LIMIT %s
"""

MARKERS = """
SELECT {THREAD_ID}, CAST(t.revision AS CHAR)
  FROM {transcripts} t
 WHERE t.tenant = %s AND ({keys}) AND {LIVE_TRANSCRIPT}
"""
ONE_OF = "t.kind = %s AND t.collection = %s AND t.name = %s AND t.part = %s"


# The last items of a transcript with the sizes of their contents, last first; then a row with seq 0, as in ITEMS.
SIZES = """
(SELECT i.seq, LENGTH(i.content)
   FROM {items} i
  WHERE i.tenant = %s AND i.sid = (SELECT t.sid FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT})
  ORDER BY i.seq DESC
  LIMIT %s)
UNION ALL
(SELECT CAST(0 AS UNSIGNED), 0)
"""


# The first item and the last items of transcripts, without large ones.
ENDS = """
SELECT t.kind, t.collection, t.name, t.part, t.revision, i.seq, i.item_id, i.content, i.created_at
  FROM {transcripts} t
  JOIN LATERAL ((SELECT i.seq FROM {items} i WHERE {OF_TRANSCRIPT} ORDER BY i.tenant, i.sid, i.seq LIMIT 1)
                UNION DISTINCT
                (SELECT i.seq FROM {items} i WHERE {OF_TRANSCRIPT}
                  ORDER BY i.tenant DESC, i.sid DESC, i.seq DESC LIMIT {last})) AS chosen
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.seq = chosen.seq
 WHERE t.tenant = %s AND ({keys}) AND {LIVE_TRANSCRIPT} AND LENGTH(i.content) <= {bytes}
"""


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
    """The size of an item; see `SIZES`."""

    seq: int
    size_bytes: int


class Totals(NamedTuple):
    """Totals over all transcripts; see `TOTALS`."""

    transcripts: int
    items: Decimal | int
    size_bytes: Decimal | int


class DayRow(NamedTuple):
    """Totals over the transcripts of a day; see `DAYS`."""

    day: str
    transcripts: int
    items: Decimal | int
    size_bytes: Decimal | int


#: Kind, collection, name and part.
Names = tuple[bytes, bytes, bytes, bytes]

_ID = fill(THREAD_ID.strip(), {name: fill(ESCAPED, {"column": name}) for name in ("collection", "name", "part")})


class InspectionStatements(Statements):
    """Listing and counting transcripts."""

    def threads(
        self,
        tenant: str,
        limit: int,
        *,
        pattern: str = "*",
        min_bytes: int | None = None,
        saved_after: int | None = None,
        saved_before: int | None = None,
        after: tuple[int, Names] | None = None,
    ) -> Query[StoredHeader]:
        """Transcripts, newest first.

        Args:
            tenant: The tenant.
            limit: The maximum number of results.
            pattern: A glob that their ids match; see `THREAD_ID`.
            min_bytes: The minimum size of their items.
            saved_after: The minimum revision.
            saved_before: All revisions are below this one.
            after: Only those after this revision and key.
        """
        conditions, params = "", list[Param]((tenant,))
        given = (
            (MATCHING, None if pattern == "*" else like(pattern)),
            (LARGE, min_bytes),
            (SAVED_AFTER, saved_after),
            (SAVED_BEFORE, saved_before),
        )
        for text, value in given:
            if value is not None:
                conditions += text
                params.append(value)
        if after is not None:
            revision, (kind, collection, name, part) = after
            conditions += AFTER_KEY
            params += (revision, revision, kind, kind, collection, collection, name, name, part)
        text = self._text(THREADS, conditions=conditions, THREAD_ID=_ID)
        return Query(text, (*params, limit), row=StoredHeader)

    def sizes(self, key: RowKey, limit: int) -> Query[SizeRow]:
        """Return the sizes of the last items of a transcript, last first."""
        return Query(self._text(SIZES), (key.tenant, *key, limit), row=SizeRow)

    def ends(self, tenant: str, keys: Sequence[Names], last: int, largest: int) -> Query[EndRow]:
        """Return the first item and the last items of these transcripts, unless an item is larger."""
        pieces = {"keys": " OR ".join([ONE_OF] * len(keys)) or "FALSE", "last": str(last), "bytes": str(largest)}
        return Query(self._text(ENDS, **pieces), (tenant, *(part for key in keys for part in key)), row=EndRow)

    def totals(self, tenant: str) -> Query[Totals]:
        """Totals over all transcripts."""
        return Query(self._text(TOTALS), (tenant,), row=Totals)

    def days(self, tenant: str) -> Query[DayRow]:
        """Totals over the transcripts created on each of the last 30 days."""
        return Query(self._text(DAYS), (tenant,), row=DayRow)

    def largest(self, tenant: str, limit: int) -> Query[StoredHeader]:
        """The largest transcripts, largest first."""
        return Query(self._text(LARGEST), (tenant, limit), row=StoredHeader)

    def markers(self, tenant: str, keys: Sequence[Names]) -> Query[ThreadMarker]:
        """The existing ones of these transcripts, each with its revision as marker."""
        text = self._text(MARKERS, THREAD_ID=_ID, keys=" OR ".join([ONE_OF] * len(keys)) or "FALSE")
        return Query(text, (tenant, *(part for key in keys for part in key)), row=ThreadMarker)
