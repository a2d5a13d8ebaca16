"""Statements that tell how much a tenant keeps, from a part of its threads where there are many. They only read."""

from __future__ import annotations

from ..statement import Statement
from ..template import Statements
from .inspection import LIVE_THREAD, SIZE

# Relies on the index recent, of which all of the tenant's part is read, and nothing else.
COUNT = """
SELECT COUNT(*), UTC_TIMESTAMP(6) FROM {threads} r FORCE INDEX (recent) WHERE r.tenant = %s
"""

# One in so many threads, told by their ids, so that it is the same ones each time. The index recent has the ids; the
# rows are read of those chosen only.
SAMPLE = """
SELECT t.thread_id, t.first_seq, t.last_seq, t.created_at, t.updated_at
  FROM (SELECT r.thread_id
          FROM {threads} r FORCE INDEX (recent)
         WHERE r.tenant = %s AND MOD(CRC32(r.thread_id), %s) = 0) AS one_in_so_many
  STRAIGHT_JOIN {threads} t ON t.tenant = %s AND t.thread_id = one_in_so_many.thread_id
 WHERE {LIVE_THREAD}
"""

# Places in threads, from JSON: an array of pairs of a thread and a seq.
PLACES = """
places AS (
  SELECT j.place, j.thread_id COLLATE utf8mb4_0900_bin AS thread_id, j.seq
    FROM JSON_TABLE(%s, '$[*]' COLUMNS (place FOR ORDINALITY,
                                        thread_id VARCHAR(512) CHARACTER SET utf8mb4 PATH '$[0]',
                                        seq BIGINT UNSIGNED PATH '$[1]')) AS j
)
"""

# Ranges of the primary key, without payloads.
MEASURE = """
WITH {PLACES}
SELECT places.place, COUNT(c.checkpoint_id), COALESCE(SUM({SIZE}), 0)
  FROM places
  STRAIGHT_JOIN {checkpoints} c FORCE INDEX (PRIMARY)
                ON c.tenant = %s AND c.thread_id = places.thread_id AND c.seq >= places.seq
 GROUP BY places.place
"""

SAVED = """
WITH {PLACES}
SELECT CAST(DATE(c.created_at) AS CHAR), COUNT(c.checkpoint_id), SUM({SIZE})
  FROM places
  STRAIGHT_JOIN {checkpoints} c FORCE INDEX (PRIMARY)
                ON c.tenant = %s AND c.thread_id = places.thread_id AND c.seq >= places.seq
 WHERE c.created_at >= %s
 GROUP BY 1
"""

# Threads that were saved to most often: reads a row for each thread.
BUSIEST = """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = %s AND {LIVE_THREAD}
 ORDER BY t.last_seq - t.first_seq DESC, t.thread_id
 LIMIT %s
"""

# All checkpoints of a few threads.
NAMED = """
WITH {PLACES}
SELECT places.thread_id, c.seq
  FROM places
  STRAIGHT_JOIN {checkpoints} c FORCE INDEX (named) ON c.tenant = %s AND c.thread_id = places.thread_id
 WHERE c.seq >= places.seq AND c.checkpoint_id IS NOT NULL
 LIMIT %s
"""

# The next checkpoint at or behind each of some places, with the rows that it builds on, newest first: the beginnings of
# their payloads. The bound is for damaged rows, as in every recursion.
OUTLINES = """
WITH RECURSIVE {PLACES},
lineage (place, thread_id, seq, base_seq, hops) AS (
  SELECT places.place, places.thread_id, chosen.seq, chosen.base_seq, 0
    FROM places
    JOIN LATERAL (SELECT c.seq, c.base_seq
                    FROM {checkpoints} c
                   WHERE c.tenant = %s AND c.thread_id = places.thread_id
                     AND c.seq >= places.seq AND c.checkpoint_id IS NOT NULL
                   ORDER BY c.tenant, c.thread_id, c.seq
                   LIMIT 1) AS chosen
  UNION ALL
  SELECT lineage.place, lineage.thread_id, b.seq, b.base_seq, lineage.hops + 1
    FROM lineage
    JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = lineage.thread_id
                        AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   WHERE lineage.hops < 500
)
SELECT lineage.place, c.seq, c.base_seq, LEFT(c.payload, {bytes})
  FROM lineage
  STRAIGHT_JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = lineage.thread_id
                               AND c.seq = lineage.seq
 ORDER BY lineage.place, c.seq DESC
"""


class MeasuringStatements(Statements):
    """How much there is. Places are a JSON array of pairs of a thread's id and a seq."""

    def count(self, tenant: str) -> Statement:
        """How many threads there are, those that have just expired among them; and the server's time."""
        return Statement(self._text(COUNT), (tenant,))

    def sample(self, tenant: str, one_in: int) -> Statement:
        """Of one in so many threads: id, first and last seq, and the times of the first and the last save."""
        return Statement(self._filled(SAMPLE), (tenant, one_in, tenant))

    def measure(self, tenant: str, places: str) -> Statement:
        """The number, from 1 on, of each place behind which there is a row, how many checkpoints there, and bytes."""
        return Statement(self._filled(MEASURE), (places, tenant))

    def saved(self, tenant: str, places: str, since: str) -> Statement:
        """By days, how many checkpoints behind these places were saved, and their bytes."""
        return Statement(self._filled(SAVED), (places, tenant, since))

    def busiest(self, tenant: str, limit: int) -> Statement:
        """The threads that were saved to most often."""
        return Statement(self._filled(BUSIEST), (tenant, limit))

    def named(self, tenant: str, places: str, limit: int) -> Statement:
        """Thread and seq of checkpoints behind these places."""
        return Statement(self._filled(NAMED), (places, tenant, limit))

    def outlines(self, tenant: str, places: str, size: int) -> Statement:
        """Of the next checkpoint behind each place: its number, and seq, base_seq and the first bytes of each row.

        Args:
            tenant: Whose.
            places: The places.
            size: How many bytes.
        """
        return Statement(self._filled(OUTLINES.replace("{bytes}", str(size))), (places, tenant, tenant, tenant))

    def _filled(self, template: str) -> str:
        text = template.replace("{PLACES}", PLACES.strip())
        return self._text(text.replace("{SIZE}", SIZE).replace("{LIVE_THREAD}", LIVE_THREAD))
