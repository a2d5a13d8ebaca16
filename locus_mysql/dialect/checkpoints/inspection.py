"""Statements that look at threads and checkpoints without loading them, for inspection. All of them only read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..like import like
from ..statement import Param, Statement
from ..template import Statements
from .queries import FOLLOWED, SNIPPET_CHARACTERS

#: What a row takes.
SIZE = "c.payload_bytes + COALESCE(LENGTH(c.metadata), 0) + COALESCE(LENGTH(c.search_text), LENGTH(c.pending_text), 0)"

#: A thread that has not expired.
LIVE_THREAD = "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))"

# Where a walk along the index recent, from the newest thread on, goes on. Written out, as MySQL does not make ranges of
# a comparison of rows.
BEHIND = "(r.updated_at < %s OR (r.updated_at = %s AND r.thread_id < %s))"

# A step of a walk along the index recent, which ends with thread_id, so that nothing else is read. Both columns must
# have the same direction, or all threads would be sorted.
WALK = """
step AS (
  SELECT r.thread_id, r.updated_at
    FROM {threads} r FORCE INDEX (recent)
   WHERE r.tenant = %s{within}
   ORDER BY r.updated_at DESC, r.thread_id DESC
   LIMIT %s
)
"""

# Threads by the beginning of their ids: a range of the primary key.
BEGINNING = """
candidates AS (
  SELECT b.thread_id
    FROM {threads} b FORCE INDEX (PRIMARY)
   WHERE b.tenant = %s AND b.thread_id LIKE %s
   LIMIT %s
),
"""

# Threads that have a checkpoint with one of some metadata keys: by the multi-valued index metadata_pairs.
HAVING = """
candidates AS (
  SELECT c.thread_id
    FROM {checkpoints} c FORCE INDEX (metadata_pairs)
   WHERE c.tenant = %s AND JSON_OVERLAPS(c.metadata_keys, CAST(%s AS JSON)) AND c.checkpoint_id IS NOT NULL
   LIMIT %s
),
"""

# If there are more candidates than wanted, it is not these threads that are looked at.
OF_CANDIDATES = """
step AS (
  SELECT r.thread_id, r.updated_at
    FROM (SELECT DISTINCT candidates.thread_id FROM candidates) AS found
    STRAIGHT_JOIN {threads} r ON r.tenant = %s AND r.thread_id = found.thread_id
   WHERE (SELECT COUNT(*) FROM candidates) <= %s{within}
)
"""

THESE = """
step AS (
  SELECT r.thread_id, r.updated_at
    FROM {threads} r
   WHERE r.tenant = %s AND r.thread_id IN ({ids})
)
"""

# Of the threads that a step came by, the first that fit, each with its newest checkpoint and what it takes; and a row
# that tells where the step ended and how many it had to look at. The newest checkpoint is the first row of a walk
# backwards along the primary key. The order must name all columns of that key: by seq alone, MySQL sorts the rows.
THREADS = """
WITH {step},
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
                        FROM {checkpoints} c FORCE INDEX (PRIMARY)
                       WHERE c.tenant = fitting.tenant AND c.thread_id = fitting.thread_id
                         AND c.seq >= fitting.first_seq) AS counted ON TRUE)
UNION ALL
(SELECT (SELECT s.thread_id FROM step s ORDER BY s.updated_at, s.thread_id LIMIT 1), NULL,
        (SELECT MIN(s.updated_at) FROM step s), NULL, NULL, (SELECT COUNT(*) FROM {looked_at}), NULL)
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
            FROM {checkpoints} c FORCE INDEX (PRIMARY)
           WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq >= t.first_seq) >= %s
"""

# Checkpoints of a thread, newest first, each with the nearest named one that it follows.
CHOSEN = """
WITH RECURSIVE chosen AS (
  SELECT c.seq, c.base_seq, c.checkpoint_id, c.parent_seq, c.created_at, {SIZE} AS size_bytes, c.metadata
    FROM {checkpoints} c{hint}
    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
   WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL AND {LIVE}{which}
   ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
   LIMIT %s
),
{FOLLOWED}
""".replace("{FOLLOWED}", FOLLOWED.strip())

# What the newest checkpoints say in numbers stands at the beginning of their payloads.
BEGINNINGS = """
SELECT c.seq, c.base_seq, c.parent_seq, c.checkpoint_id, c.created_at, LEFT(c.payload, {bytes})
  FROM {checkpoints} c FORCE INDEX (PRIMARY)
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL AND {LIVE}{which}
 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
 LIMIT %s
"""

# Only what was saved by a time.
BY = " AND c.created_at <= %s"

# Checkpoints with one of some metadata keys, of the first so many that the index metadata_pairs has, newest first; and
# a row that tells how many these were.
TAGGED = """
WITH candidates AS (
  SELECT c.thread_id, c.seq
    FROM {checkpoints} c FORCE INDEX (metadata_pairs)
   WHERE c.tenant = %s AND JSON_OVERLAPS(c.metadata_keys, CAST(%s AS JSON)) AND c.checkpoint_id IS NOT NULL
   LIMIT %s
)
(SELECT c.thread_id, c.checkpoint_id, NULL, c.created_at, {SIZE}, c.metadata
   FROM candidates
   STRAIGHT_JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = candidates.thread_id AND c.seq = candidates.seq
   JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
  WHERE c.checkpoint_id IS NOT NULL AND {LIVE}
  ORDER BY c.created_at DESC, c.seq DESC
  LIMIT %s)
UNION ALL
(SELECT NULL, NULL, NULL, NULL, COUNT(*), NULL FROM candidates)
"""

# The same for keys that very many have: of the newest checkpoints of the threads saved last.
TAGGED_LATELY = """
WITH {step}
SELECT step.thread_id, newest.checkpoint_id, NULL, newest.created_at, newest.size_bytes, newest.metadata
  FROM step
  STRAIGHT_JOIN {threads} t ON t.tenant = %s AND t.thread_id = step.thread_id
  JOIN LATERAL (SELECT c.checkpoint_id, c.created_at, c.metadata, c.metadata_keys, c.seq, {SIZE} AS size_bytes
                  FROM {checkpoints} c
                 WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.checkpoint_id IS NOT NULL
                   AND c.seq >= t.first_seq
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                 LIMIT {newest}) AS newest
 WHERE {LIVE_THREAD} AND JSON_OVERLAPS(newest.metadata_keys, CAST(%s AS JSON))
 ORDER BY newest.created_at DESC, newest.seq DESC
 LIMIT %s
"""

# Text that waits for the full-text index, by the index pending. There is little of it, as writers index it now and
# then; to index it here would be a write.
WAITING = """
SELECT c.thread_id, c.checkpoint_id, c.created_at, {score} AS score, LEFT(c.pending_text, {snippet})
  FROM (SELECT tenant, thread_id, seq FROM {checkpoints} FORCE INDEX (pending) WHERE unindexed = 1 LIMIT {rows}) AS w
  JOIN {checkpoints} c ON c.tenant = w.tenant AND c.thread_id = w.thread_id AND c.seq = w.seq
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.checkpoint_id IS NOT NULL AND c.unindexed = 1 AND {LIVE}
HAVING score > 0
 ORDER BY score DESC, c.created_at DESC, c.seq DESC
 LIMIT %s
""".replace("{snippet}", str(SNIPPET_CHARACTERS))

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


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a tenant's threads in the order of their last saves, times as text.

    Args:
        behind: Those behind the thread last saved at this time with this id.
        since: Those last saved at this time or later.
        until: Those last saved before this time.
    """

    behind: tuple[str, str] | None = None
    since: str | None = None
    until: str | None = None

    def condition(self) -> tuple[str, tuple[Param, ...]]:
        """What a row of a thread, as ``r``, must fulfil."""
        text, params = "", list[Param]()
        if self.since is not None:
            text += " AND r.updated_at >= %s"
            params.append(self.since)
        if self.until is not None:
            text += " AND r.updated_at < %s"
            params.append(self.until)
        if self.behind is not None:
            text += f" AND {BEHIND}"
            params += (self.behind[0], *self.behind)
        return text, tuple(params)


@dataclass(frozen=True, slots=True)
class Step:
    """Threads to look at, as common table expressions the last of which is ``step``.

    Args:
        text: Their text.
        params: Their parameters.
        looked_at: The one whose rows are counted.
    """

    text: str
    params: tuple[Param, ...]
    looked_at: str


class InspectionStatements(Statements):
    """Pages of threads, histories, states as they were."""

    def walk(self, tenant: str, place: Place, threads: int) -> Step:
        """Threads from the newest on.

        Args:
            tenant: Whose.
            place: Where to begin and to end.
            threads: How many.
        """
        within, params = place.condition()
        return Step(WALK.replace("{within}", within), (tenant, *params, threads), "step")

    def beginning(self, tenant: str, pattern: str, place: Place, candidates: int) -> Step:
        """Threads whose ids match a glob that does not begin with a wildcard; none if they are more than so many."""
        within, params = place.condition()
        text = BEGINNING + OF_CANDIDATES.lstrip().replace("{within}", within)
        return Step(text, (tenant, like(pattern), candidates + 1, tenant, candidates, *params), "candidates")

    def having(self, tenant: str, keys: str, place: Place, candidates: int) -> Step:
        """Threads that have a checkpoint with one of these metadata keys; none if these are more than so many."""
        within, params = place.condition()
        text = HAVING + OF_CANDIDATES.lstrip().replace("{within}", within)
        return Step(text, (tenant, keys, candidates + 1, tenant, candidates, *params), "candidates")

    def these(self, tenant: str, thread_ids: Sequence[str]) -> Step:
        """These threads."""
        ids = ", ".join(["%s"] * len(thread_ids))
        return Step(THESE.replace("{ids}", ids), (tenant, *thread_ids), "step")

    def threads(
        self,
        tenant: str,
        step: Step,
        *,
        pattern: str | None = None,
        keys: str | None = None,
        min_bytes: int | None = None,
        limit: int,
    ) -> Statement:
        """Of the threads of a step, the first that fit, in no order, and a row about the step.

        Id, time of the first and of the last save, newest checkpoint, its metadata, checkpoints, bytes. In the row
        about the step: the id and the time of its last thread, no time of a first save, and, instead of checkpoints,
        at how many it looked.

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
        text = THREADS.replace("{fits}", fits).replace("{step}", step.text.strip())
        return Statement(
            self._filled(text.replace("{looked_at}", step.looked_at)), (*step.params, tenant, *params, limit)
        )

    def history(self, tenant: str, thread_id: str, before_seq: int | None, at: str | None, limit: int) -> Statement:
        """Seq, id, id of the one before, time, bytes and metadata of a thread's checkpoints, newest first.

        Args:
            tenant: Whose.
            thread_id: The thread.
            before_seq: Only those with a smaller seq.
            at: Only those that were saved at this time or before.
            limit: How many.
        """
        key = (tenant, thread_id)
        which, params = "", list[Param]()
        if before_seq is not None:
            which += " AND c.seq < %s"
            params.append(before_seq)
        if at is not None:
            which += BY
            params.append(at)
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
            which += BY
            params.append(at)
        named = checkpoint_id is not None
        return Statement(self._chosen(STATE, which, named=named), (*key, *params, 1, *key, *key, *key, *key))

    def beginnings(self, tenant: str, thread_id: str, size: int, at: str | None, limit: int) -> Statement:
        """Seq, base, parent, id, time and the first bytes of the payload of the newest checkpoints, newest first."""
        which, params = ("", ()) if at is None else (BY, (at,))
        text = BEGINNINGS.replace("{bytes}", str(size)).replace("{which}", which)
        return Statement(self._text(text), (tenant, thread_id, *params, limit))

    def tagged(self, tenant: str, keys: str, candidates: int, limit: int) -> Statement:
        """Checkpoints with one of these metadata keys, newest first, and a row with the number of candidates.

        Thread, id, nothing, time, bytes and metadata; of the row with the number, only the bytes, which are it.
        """
        return Statement(self._filled(TAGGED), (tenant, keys, candidates, tenant, limit))

    def tagged_lately(self, tenant: str, keys: str, step: Step, newest: int, limit: int) -> Statement:
        """The same, without that row, of the newest checkpoints of each thread of a step."""
        text = TAGGED_LATELY.replace("{step}", step.text.strip()).replace("{newest}", str(newest))
        return Statement(self._filled(text), (*step.params, tenant, keys, limit))

    def waiting(self, tenant: str, parts: Sequence[str], waiting_rows: int, limit: int) -> Statement:
        """Hits, as `QueryStatements.search` gives them, in text that is in no index yet.

        Args:
            tenant: Whose.
            parts: Words and phrases; a hit holds at least one of them.
            waiting_rows: How many rows that wait to look at, whoever's.
            limit: How many hits.
        """
        score = " + ".join(["IF(c.pending_text LIKE %s, LN(2), 0)"] * len(parts))
        text = self._text(WAITING.replace("{score}", score).replace("{rows}", str(waiting_rows)))
        return Statement(text, (*(f"%{like(part)}%" for part in parts), tenant, limit))

    def markers(self, tenant: str, thread_ids: Sequence[str]) -> Statement:
        """The version of each of these threads that is there."""
        ids = ", ".join(["%s"] * len(thread_ids))
        return Statement(self._filled(MARKERS.replace("{ids}", ids)), (tenant, *thread_ids))

    def _chosen(self, template: str, which: str, *, named: bool = False) -> str:
        hint = "" if named else " FORCE INDEX (PRIMARY)"
        text = template.replace("{CHOSEN}", CHOSEN.rstrip()).replace("{which}", which)
        return self._filled(text.replace("{hint}", hint))

    def _filled(self, template: str) -> str:
        return self._text(template.replace("{SIZE}", SIZE).replace("{LIVE_THREAD}", LIVE_THREAD))
