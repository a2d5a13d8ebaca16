"""Statements for exports and imports: whole checkpoints of a thread, deleted ones that others need included."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ....dialect.sql import SQL, Select
from .threads import CountRow, ThreadRow


class MarkRow(NamedTuple):
    """The columns of a checkpoint beside its content."""

    seq: int
    checkpoint_key: bytes
    checkpoint_id: str
    hidden: int
    run_key: bytes | None
    created_at: datetime


#: Threads after an id that match a pattern, in the order of their ids, as the primary key has them.
THREADS = Select(
    """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id > :after AND t.thread_id LIKE :pattern AND {LIVE_THREAD}
 ORDER BY t.thread_id
 LIMIT :limit
""",
    ThreadRow,
)

#: The number of checkpoints of threads that match a pattern.
COUNT_CHECKPOINTS = Select(
    """
SELECT COUNT(*)
  FROM {threads} t
  JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
 WHERE t.tenant = :tenant AND t.thread_id LIKE :pattern AND {LIVE_THREAD}
""",
    CountRow,
)

#: {chosen} of `READ_SEVERAL`: checkpoints after a seq, oldest first. Relies on the index newest.
NEXT = """
SELECT {KEYS}
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.seq > :after AND {LIVE_THREAD}
 ORDER BY c.seq
 LIMIT :limit
"""

#: The columns that `READ_SEVERAL` does not return, of the same checkpoints or, with the limit ALL, of all.
MARKS = Select(
    """
SELECT CAST(c.seq AS SIGNED), c.checkpoint_key, c.checkpoint_id, c.hidden, c.run_key, c.created_at
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.seq > :after AND {LIVE_THREAD}
 ORDER BY c.seq
 LIMIT :limit
""",
    MarkRow,
)
ALL = 2**62

#: Give a checkpoint that was just saved its original time, run and visibility. Writing it twice changes nothing, so a
#: late packet is safe. The token is that of the save, so that another checkpoint of the same id, saved since, keeps its
#: own columns.
MARK = SQL("""
UPDATE {checkpoints} SET created_at = :created_at, hidden = :hidden, run_key = :run_key
 WHERE tenant = :tenant AND thread_id = :thread_id AND checkpoint_key = :checkpoint_key AND LOCATE(:token, tokens) > 0
""")
