"""Statements that look at threads and checkpoints without loading them, for inspection. All of them only read."""

from __future__ import annotations

from collections.abc import Sequence

from ..like import like
from ..statement import Param, Statement
from ..template import Statements

#: What a row takes.
SIZE = "c.payload_bytes + COALESCE(LENGTH(c.metadata), 0) + COALESCE(LENGTH(c.search_text), LENGTH(c.pending_text), 0)"

#: A thread that has not expired.
LIVE_THREAD = "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))"

# Where a walk along the index recent, from the newest thread on, goes on. Written out, as MySQL does not make ranges of
# a comparison of rows.
BEHIND = "(r.updated_at < %s OR (r.updated_at = %s AND r.thread_id < %s))"

# A step of a walk along the index recent, which ends with thread_id, so that nothing else is read. Both columns must
# have the same direction, or all threads would be sorted.
STEP = """
  SELECT r.thread_id, r.updated_at
    FROM {threads} r FORCE INDEX (recent)
   WHERE r.tenant = %s{within}
   ORDER BY r.updated_at DESC, r.thread_id DESC
   LIMIT %s
"""

# Threads by the beginning of their ids, in no order: a range of the primary key.
BEGINNING = """
  SELECT r.thread_id, r.updated_at
    FROM {threads} r FORCE INDEX (PRIMARY)
   WHERE r.tenant = %s AND r.thread_id LIKE %s{within}
   LIMIT %s
"""

# One thread.
ONE = """
  SELECT r.thread_id, r.updated_at
    FROM {threads} r
   WHERE r.tenant = %s AND r.thread_id = %s
"""

# Of the threads that a step came by, the first that fit, each with its newest checkpoint and what it takes; and as the
# last row, the end of the step and how many threads it came by. The newest checkpoint is the first row of a walk
# backwards along the primary key. The order must name all columns of that key: by seq alone, MySQL sorts the rows.
THREADS = """
WITH step AS ({step}),
fitting AS (
  SELECT t.tenant, t.thread_id, t.first_seq, t.created_at, t.updated_at
    FROM step
    STRAIGHT_JOIN {threads} t ON t.tenant = %s AND t.thread_id = step.thread_id
   WHERE {LIVE_THREAD}{fits}
   ORDER BY step.updated_at DESC, step.thread_id DESC
   LIMIT %s
)
(SELECT fitting.thread_id, fitting.created_at, fitting.updated_at, newest.checkpoint_id, newest.metadata,
        counted.checkpoints, counted.size_bytes
   FROM fitting
   LEFT JOIN LATERAL (SELECT c.checkpoint_id, c.metadata
                        FROM {checkpoints} c
                       WHERE c.tenant = fitting.tenant AND c.thread_id = fitting.thread_id
                         AND c.checkpoint_id IS NOT NULL AND c.seq >= fitting.first_seq
                       ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                       LIMIT 1) AS newest ON TRUE
   LEFT JOIN LATERAL (SELECT COUNT(c.checkpoint_id) AS checkpoints, SUM({SIZE}) AS size_bytes
                        FROM {checkpoints} c
                       WHERE c.tenant = fitting.tenant AND c.thread_id = fitting.thread_id
                         AND c.seq >= fitting.first_seq) AS counted ON TRUE)
UNION ALL
(SELECT step.thread_id, NULL, step.updated_at, NULL, NULL, (SELECT COUNT(*) FROM step), NULL
   FROM step
  ORDER BY step.updated_at, step.thread_id
  LIMIT 1)
"""

# Whose newest checkpoint has one of these metadata keys.
NEWEST_HAS = """
     AND (SELECT JSON_OVERLAPS(c.metadata_keys, CAST(%s AS JSON))
            FROM {checkpoints} c
           WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.checkpoint_id IS NOT NULL
             AND c.seq >= t.first_seq
           ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
           LIMIT 1)
"""

# Whose rows take so much.
AT_LEAST = """
     AND (SELECT SUM({SIZE})
            FROM {checkpoints} c
           WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq >= t.first_seq) >= %s
"""

# Checkpoints of a thread, newest first, each with the nearest named one that it follows: the recursion goes up from
# each until it finds one. Rows only follow older ones; that is stated as well, so that it also ends where rows are
# damaged.
CHOSEN = """
WITH RECURSIVE chosen AS (
  SELECT c.seq, c.base_seq, c.checkpoint_id, c.parent_seq, c.created_at, {SIZE} AS size_bytes, c.metadata
    FROM {checkpoints} c{hint}
    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
   WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL AND {LIVE}{which}
   ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
   LIMIT %s
),
followed (chosen_seq, seq, parent_seq, checkpoint_id) AS (
  SELECT chosen.seq, p.seq, p.parent_seq, p.checkpoint_id
    FROM chosen
    JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = chosen.parent_seq AND p.seq < chosen.seq
  UNION ALL
  SELECT followed.chosen_seq, p.seq, p.parent_seq, p.checkpoint_id
    FROM followed
    JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = followed.parent_seq
                        AND p.seq < followed.seq
   WHERE followed.checkpoint_id IS NULL
)
"""

HISTORY = """{CHOSEN}
SELECT /*+ SET_VAR(cte_max_recursion_depth = 1000000) */
       chosen.seq, chosen.checkpoint_id, followed.checkpoint_id, chosen.created_at, chosen.size_bytes, chosen.metadata
  FROM chosen
  LEFT JOIN followed ON followed.chosen_seq = chosen.seq AND followed.checkpoint_id IS NOT NULL
 ORDER BY chosen.seq DESC
"""

# A checkpoint with the rows that it builds on, newest first, in one statement, so that all is as it was at one moment.
STATE = """{CHOSEN},
lineage (seq, base_seq) AS (
  SELECT chosen.seq, chosen.base_seq FROM chosen
  UNION ALL
  SELECT b.seq, b.base_seq
    FROM lineage
    JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   LIMIT 500
)
SELECT /*+ SET_VAR(cte_max_recursion_depth = 1000000) */
       chosen.checkpoint_id, followed.checkpoint_id, chosen.created_at, chosen.size_bytes, chosen.metadata,
       c.seq, c.token, c.payload
  FROM lineage
  JOIN chosen
  LEFT JOIN followed ON followed.chosen_seq = chosen.seq AND followed.checkpoint_id IS NOT NULL
  JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = %s AND c.seq = lineage.seq
 ORDER BY c.seq DESC
"""

MARKERS = """
SELECT t.thread_id, t.version
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id IN ({ids}) AND {LIVE_THREAD}
"""


class LookingStatements(Statements):
    """Pages of threads, histories, states as they were."""

    def step(
        self, tenant: str, behind: tuple[str, str] | None, since: str | None, until: str | None, threads: int
    ) -> Statement:
        """Threads from the newest on: id and time of the last save.

        Args:
            tenant: Whose.
            behind: Go on behind the thread last saved at this time with this id.
            since: Only those last saved at this time or later.
            until: Only those last saved before this time.
            threads: How many.
        """
        within, params = self._within(behind, since, until)
        return Statement(self._text(STEP.replace("{within}", within)), (tenant, *params, threads))

    def beginning(
        self,
        tenant: str,
        pattern: str,
        behind: tuple[str, str] | None,
        since: str | None,
        until: str | None,
        threads: int,
    ) -> Statement:
        """As `step`, of the threads whose ids match a glob that does not begin with a wildcard; in no order."""
        within, params = self._within(behind, since, until)
        text = self._text(BEGINNING.replace("{within}", within))
        return Statement(text, (tenant, like(pattern), *params, threads))

    def one(self, tenant: str, thread_id: str) -> Statement:
        """As `step`, of one thread."""
        return Statement(self._text(ONE), (tenant, thread_id))

    def threads(
        self,
        tenant: str,
        step: Statement,
        *,
        pattern: str | None = None,
        keys: str | None = None,
        min_bytes: int | None = None,
        limit: int,
    ) -> Statement:
        """Of the threads of a step, the first that fit; the last row tells where the step ended and how many it had.

        Id, time of the first and of the last save, newest checkpoint, its metadata, checkpoints, bytes.

        Args:
            tenant: Whose.
            step: The threads to look at.
            pattern: A glob of their ids.
            keys: Their newest checkpoint has one of these metadata keys.
            min_bytes: Their rows take at least so much.
            limit: How many.
        """
        fits, params = "", list[Param]()
        if pattern is not None:
            fits += " AND step.thread_id LIKE %s"
            params.append(like(pattern))
        if keys is not None:
            fits += NEWEST_HAS.rstrip()
            params.append(keys)
        if min_bytes is not None:
            fits += AT_LEAST.rstrip()
            params.append(min_bytes)
        text = THREADS.replace("{fits}", fits).replace("{step}", step.sql)
        return Statement(self._filled(text), (*step.params, tenant, *params, limit))

    def history(self, tenant: str, thread_id: str, before_seq: int | None, limit: int) -> Statement:
        """Seq, id, id of the one before, time, bytes and metadata of a thread's checkpoints, newest first.

        Args:
            tenant: Whose.
            thread_id: The thread.
            before_seq: Only those with a smaller seq.
            limit: How many.
        """
        key = (tenant, thread_id)
        which, params = ("", ()) if before_seq is None else (" AND c.seq < %s", (before_seq,))
        return Statement(self._chosen(HISTORY, which), (*key, *params, limit, *key, *key))

    def state(self, tenant: str, thread_id: str, checkpoint_id: str | None, at: str | None) -> Statement:
        """The rows of a checkpoint, each behind what `history` tells of the checkpoint.

        Args:
            tenant: Whose.
            thread_id: The thread.
            checkpoint_id: The checkpoint; if None, the newest.
            at: Only one that was saved at this time or before.
        """
        key = (tenant, thread_id)
        which, params = "", list[Param]()
        if checkpoint_id is not None:
            which += " AND c.checkpoint_id = %s"
            params.append(checkpoint_id)
        if at is not None:
            which += " AND c.created_at <= %s"
            params.append(at)
        named = checkpoint_id is not None
        return Statement(self._chosen(STATE, which, named=named), (*key, *params, 1, *key, *key, *key, *key))

    def markers(self, tenant: str, thread_ids: Sequence[str]) -> Statement:
        """The version of each of these threads that is there."""
        ids = ", ".join(["%s"] * len(thread_ids))
        return Statement(self._filled(MARKERS.replace("{ids}", ids)), (tenant, *thread_ids))

    def _within(
        self, behind: tuple[str, str] | None, since: str | None, until: str | None
    ) -> tuple[str, tuple[Param, ...]]:
        text, params = "", list[Param]()
        if since is not None:
            text += " AND r.updated_at >= %s"
            params.append(since)
        if until is not None:
            text += " AND r.updated_at < %s"
            params.append(until)
        if behind is not None:
            text += f" AND {BEHIND}"
            params += (behind[0], behind[0], behind[1])
        return text, tuple(params)

    def _chosen(self, template: str, which: str, *, named: bool = False) -> str:
        hint = "" if named else " FORCE INDEX (PRIMARY)"
        text = template.replace("{CHOSEN}", CHOSEN.rstrip()).replace("{which}", which)
        return self._filled(text.replace("{hint}", hint))

    def _filled(self, template: str) -> str:
        return self._text(template.replace("{SIZE}", SIZE).replace("{LIVE_THREAD}", LIVE_THREAD))
