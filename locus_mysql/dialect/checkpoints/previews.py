"""The statement of the inspection that reads what a list shows of threads' contents. It only reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..statement import Query
from ..template import Statements, placeholders

# The first row of each thread, and its newest checkpoint with the one before it. Rows are chosen by their sizes before
# their payloads are read: InnoDB reads the whole payload of a row even if only its beginning is selected.
PREVIEWS = """
SELECT r.thread_id, r.is_first, r.seq, r.parent_seq, c.token, b.token, LEFT(c.payload, {bytes}),
       c.payload_bytes
  FROM (SELECT t.thread_id, chosen.is_first, chosen.seq, chosen.parent_seq
          FROM {threads} t
          JOIN LATERAL ((SELECT 1 AS is_first, c.seq, c.parent_seq, c.payload_bytes
                           FROM {checkpoints} c FORCE INDEX (PRIMARY)
                          WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq >= t.first_seq
                          ORDER BY c.tenant, c.thread_id, c.seq
                          LIMIT 1)
                        UNION ALL
                        (SELECT 0, c.seq, c.parent_seq, c.payload_bytes
                           FROM {checkpoints} c FORCE INDEX (PRIMARY)
                          WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq >= t.first_seq
                            AND c.checkpoint_id IS NOT NULL
                          ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                          LIMIT 2)) AS chosen
         WHERE t.tenant = %s AND t.thread_id IN ({ids}) AND {LIVE_THREAD} AND chosen.payload_bytes <= %s
         LIMIT %s) AS r
  STRAIGHT_JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = r.thread_id AND c.seq = r.seq
  LEFT JOIN {checkpoints} b ON b.tenant = c.tenant AND b.thread_id = c.thread_id
                           AND b.seq = c.base_seq AND b.seq < c.seq
"""


class PreviewRow(NamedTuple):
    """The first row of a thread, or one of its two newest checkpoints: the first bytes of its payload, and their total.

    Both may be the same row, which is then returned twice.
    """

    thread_id: str
    is_first: int
    seq: int
    parent_seq: int | None
    token: bytes
    base_token: bytes | None
    payload: bytes
    payload_bytes: int


class PreviewStatements(Statements):
    """Reading what a list shows of threads' contents."""

    def previews(self, tenant: str, thread_ids: Sequence[str], size: int, largest: int) -> Query[PreviewRow]:
        """Return the first rows and the two newest checkpoints of these threads.

        Args:
            tenant: The tenant.
            thread_ids: The threads.
            size: The number of bytes of each payload to return.
            largest: Rows with a larger payload are left out.
        """
        text = self._text(PREVIEWS, bytes=str(size), ids=placeholders(len(thread_ids)))
        return Query(text, (tenant, *thread_ids, largest, 3 * len(thread_ids), tenant), row=PreviewRow)
