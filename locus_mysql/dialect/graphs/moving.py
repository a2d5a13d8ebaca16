"""Statements for exports and imports: whole checkpoints of a thread, deleted ones that others need included."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ..like import like
from ..statement import Query, Statement
from ..template import Statements
from .loading import OF_SEVERAL, READ
from .result_rows import CountRow, LoadedRow, ThreadRow

# In the order of their ids, as the primary key has them.
THREADS = """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id > %s AND t.thread_id LIKE %s AND {LIVE_THREAD}
 ORDER BY t.thread_id
 LIMIT %s
"""

COUNT = """
SELECT COUNT(*)
  FROM {threads} t
  JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
 WHERE t.tenant = %s AND t.thread_id LIKE %s AND {LIVE_THREAD}
"""

# Relies on the index newest.
NEXT = """
SELECT {KEYS}
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.seq > %s AND {LIVE_THREAD}
 ORDER BY c.seq
 LIMIT %s
"""

# The columns that `NEXT` does not return, of the same checkpoints or, with the limit of a thread, of all.
MARKS = """
SELECT CAST(c.seq AS SIGNED), c.checkpoint_key, c.checkpoint_id, c.hidden, c.run_key, c.created_at
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.seq > %s AND {LIVE_THREAD}
 ORDER BY c.seq
 LIMIT %s
"""

# Writing it twice changes nothing, so a late packet is safe. The token is that of the save, so that another checkpoint
# of the same id, saved since, keeps its own columns.
MARK = """
UPDATE {checkpoints} SET created_at = %s, hidden = %s, run_key = %s
 WHERE tenant = %s AND thread_id = %s AND checkpoint_key = %s AND LOCATE(%s, tokens) > 0
"""

#: The limit of a statement that reads all checkpoints of a thread.
ALL = 2**62


class MarkRow(NamedTuple):
    """The columns of a checkpoint beside its content."""

    seq: int
    checkpoint_key: bytes
    checkpoint_id: str
    hidden: int
    run_key: bytes | None
    created_at: datetime


class MovingStatements(Statements):
    """Reading and writing whole checkpoints."""

    def threads(self, tenant: str, after: str, pattern: str, limit: int) -> Query[ThreadRow]:
        """Ids of threads after an id that match a glob."""
        return Query(self._text(THREADS), (tenant, after, like(pattern), limit), row=ThreadRow)

    def count(self, tenant: str, pattern: str) -> Query[CountRow]:
        """The number of checkpoints of threads that match a glob."""
        return Query(self._text(COUNT), (tenant, like(pattern)), row=CountRow)

    def next(self, tenant: str, thread_id: str, after: int, limit: int) -> Query[LoadedRow]:
        """Checkpoints with a seq above this, oldest first, with their parts and writes."""
        text = self._text(READ, chosen=NEXT, known="", **OF_SEVERAL)
        params = (tenant, thread_id, after, limit, tenant, tenant, tenant, tenant, tenant)
        return Query(text, params, row=LoadedRow)

    def marks(self, tenant: str, thread_id: str, after: int = 0, limit: int = ALL) -> Query[MarkRow]:
        """The other columns of checkpoints with a seq above this, oldest first."""
        return Query(self._text(MARKS), (tenant, thread_id, after, limit), row=MarkRow)

    def mark(
        self,
        tenant: str,
        thread_id: str,
        checkpoint_key: bytes,
        token: bytes,
        *,
        created_at: str,
        hidden: int,
        run_key: bytes | None,
    ) -> Statement:
        """Give a checkpoint that was just saved its original time, run and visibility."""
        return Statement(self._text(MARK), (created_at, hidden, run_key, tenant, thread_id, checkpoint_key, token))
