"""Statements that read pages of threads, by filters, newest first. They only read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal, NamedTuple, TypeAlias

from ..like import like
from ..statement import Param, Query
from ..template import Statements, placeholders

#: How much is read of each thread of a page: its own row, its newest checkpoint too, or all its checkpoints too.
Detail: TypeAlias = Literal["id", "newest", "size"]

# The condition with which a walk along the index recent, newest thread first, continues. It is not written as a
# comparison of rows, which MySQL does not turn into a range.
AFTER = "(r.updated_at < %s OR (r.updated_at = %s AND r.thread_id < %s))"

# A step of a walk along the index recent, which names all of these columns, so no row is read. Both columns must be
# sorted in the same direction; otherwise MySQL sorts all threads.
WALK = """step AS (
  SELECT r.thread_id, r.updated_at
    FROM {threads} r FORCE INDEX (recent)
   WHERE r.tenant = %s{within}
   ORDER BY r.updated_at DESC, r.thread_id DESC
   LIMIT %s
)
"""

# Threads by the beginning of their ids: a range of the primary key.
BEGINNING = """candidates AS (
  SELECT b.thread_id
    FROM {threads} b FORCE INDEX (PRIMARY)
   WHERE b.tenant = %s AND b.thread_id LIKE %s
   LIMIT %s
),
{OF_CANDIDATES}
"""

# Threads that have a checkpoint with one of some metadata keys: by the multi-valued index metadata_pairs.
HAVING = """candidates AS (
  SELECT c.thread_id
    FROM {checkpoints} c FORCE INDEX (metadata_pairs)
   WHERE c.tenant = %s AND JSON_OVERLAPS(c.metadata_keys, CAST(%s AS JSON)) AND c.checkpoint_id IS NOT NULL
   LIMIT %s
),
{OF_CANDIDATES}
"""

THESE = """step AS (
  SELECT r.thread_id, r.updated_at
    FROM {threads} r
   WHERE r.tenant = %s AND r.thread_id IN ({ids})
)
"""

# The first threads of a step that pass the filters; and a row with the end of the step and the number of threads that
# it examined. MAX: see docs/design/writes.md.
THREADS = """
WITH {step},
fitting AS (
  SELECT t.tenant, t.thread_id, t.first_seq, t.created_at, t.updated_at
    FROM step
    STRAIGHT_JOIN {threads} t FORCE INDEX (PRIMARY) ON t.tenant = %s AND t.thread_id = step.thread_id
   WHERE {LIVE_THREAD}{fits}
   ORDER BY step.updated_at DESC, step.thread_id DESC
   LIMIT %s
)
(SELECT fitting.thread_id, fitting.created_at, fitting.updated_at{columns}
   FROM fitting{joined})
UNION ALL
(SELECT MAX((SELECT s.thread_id FROM step s ORDER BY s.updated_at, s.thread_id LIMIT 1)), NULL,
        MAX((SELECT MIN(s.updated_at) FROM step s)), NULL, NULL, NULL, NULL, NULL,
        MAX((SELECT COUNT(*) FROM {counted})), NULL)
"""

# The newest checkpoint of each: the first row of a walk backwards along the primary key. ORDER BY must name all columns
# of that key: with seq alone, MySQL sorts the rows.
WITH_NEWEST = """
   LEFT JOIN LATERAL (SELECT c.checkpoint_id, c.metadata, c.token, c.seal, c.created_at
                        FROM {checkpoints} c
                       WHERE c.tenant = fitting.tenant AND c.thread_id = fitting.thread_id
                         AND c.checkpoint_id IS NOT NULL AND c.seq >= fitting.first_seq
                       ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                       LIMIT 1) AS newest ON TRUE"""

# And the number and size of its checkpoints: reads all rows of the thread.
WITH_SIZE = """
   LEFT JOIN LATERAL (SELECT COUNT(c.checkpoint_id) AS checkpoints, SUM({SIZE}) AS size_bytes
                        FROM {checkpoints} c FORCE INDEX (PRIMARY)
                       WHERE c.tenant = fitting.tenant AND c.thread_id = fitting.thread_id
                         AND c.seq >= fitting.first_seq) AS counted ON TRUE"""

#: What is read of each thread of a page beside its own row: the columns and the joined tables.
DETAILS: Mapping[Detail, tuple[str, str]] = {
    "id": (", NULL, NULL, NULL, NULL, NULL, NULL, NULL", ""),
    "newest": (
        ", newest.checkpoint_id, newest.metadata, newest.token, newest.seal, newest.created_at, NULL, NULL",
        WITH_NEWEST,
    ),
    "size": (
        ", newest.checkpoint_id, newest.metadata, newest.token, newest.seal, newest.created_at, counted.checkpoints,\n"
        "        counted.size_bytes",
        WITH_NEWEST + WITH_SIZE,
    ),
}

# Threads whose newest checkpoint has one of these metadata keys.
NEWEST_HAS = """
     AND (SELECT JSON_OVERLAPS(c.metadata_keys, CAST(%s AS JSON))
            FROM {checkpoints} c
           WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.checkpoint_id IS NOT NULL
             AND c.seq >= t.first_seq
           ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
           LIMIT 1)
"""

# Threads whose rows take at least a number of bytes.
AT_LEAST = """
     AND (SELECT SUM({SIZE})
            FROM {checkpoints} c FORCE INDEX (PRIMARY)
           WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq >= t.first_seq) >= %s
"""


@dataclass(frozen=True, slots=True)
class ThreadRange:
    """A part of a tenant's threads in the order of their last saves, times as text.

    Args:
        after: Those after the thread last saved at this time with this id.
        since: Those last saved at this time or later.
        until: Those last saved before this time.
    """

    after: tuple[str, str] | None = None
    since: str | None = None
    until: str | None = None

    def condition(self) -> tuple[str, tuple[Param, ...]]:
        """Return the conditions on a row of a thread, aliased ``r``."""
        text, params = "", list[Param]()
        if self.since is not None:
            text += " AND r.updated_at >= %s"
            params.append(self.since)
        if self.until is not None:
            text += " AND r.updated_at < %s"
            params.append(self.until)
        if self.after is not None:
            text += f" AND {AFTER}"
            params += (self.after[0], *self.after)
        return text, tuple(params)


@dataclass(frozen=True, slots=True)
class Step:
    """Threads to examine, as common table expressions of which the last is ``step``.

    Args:
        pieces: Their text as the piece ``step``, and its pieces.
        params: Their parameters.
        counted: The expression whose rows are counted.
    """

    pieces: Mapping[str, str]
    params: tuple[Param, ...]
    counted: str


class SteppedThread(NamedTuple):
    """A thread of a step with its newest checkpoint; or, without ``created_at``, the row about the step.

    In the row about the step, the id and the time are those of its last thread, and ``checkpoints`` is the number of
    threads that it examined.
    """

    thread_id: str | None
    created_at: datetime | None
    updated_at: datetime | None
    checkpoint_id: str | None
    metadata: str | None
    token: bytes | None
    seal: int | None
    saved_at: datetime | None
    checkpoints: int | None
    size_bytes: int | Decimal | None


class ThreadPageStatements(Statements):
    """Finding threads step by step: candidates, and those of them that pass filters."""

    def walk(self, tenant: str, within: ThreadRange, threads: int) -> Step:
        """Return threads from the newest on.

        Args:
            tenant: The tenant.
            within: Where to begin and to end.
            threads: The number of threads.
        """
        conditions, params = within.condition()
        return Step({"step": WALK, "within": conditions}, (tenant, *params, threads), "step")

    def beginning(self, tenant: str, pattern: str, within: ThreadRange, candidates: int) -> Step:
        """Threads whose ids match a glob without a leading wildcard; none if more than ``candidates`` match."""
        conditions, params = within.condition()
        return Step(
            {"step": BEGINNING, "within": conditions},
            (tenant, like(pattern), candidates + 1, tenant, candidates, *params),
            "candidates",
        )

    def having(self, tenant: str, keys: str, within: ThreadRange, candidates: int) -> Step:
        """Threads with a checkpoint with one of these metadata keys; none if there are more than ``candidates``."""
        conditions, params = within.condition()
        return Step(
            {"step": HAVING, "within": conditions},
            (tenant, keys, candidates + 1, tenant, candidates, *params),
            "candidates",
        )

    def these(self, tenant: str, thread_ids: Sequence[str]) -> Step:
        """Return these threads."""
        return Step({"step": THESE, "ids": placeholders(len(thread_ids))}, (tenant, *thread_ids), "step")

    def threads(
        self,
        tenant: str,
        step: Step,
        *,
        pattern: str | None = None,
        keys: str | None = None,
        min_bytes: int | None = None,
        limit: int,
        detail: Detail = "size",
    ) -> Query[SteppedThread]:
        """Return the first threads of a step that pass the filters, unordered, and a row about the step.

        Args:
            tenant: The tenant.
            step: The threads to examine.
            pattern: A glob of their ids.
            keys: Their newest checkpoint has one of these metadata keys.
            min_bytes: The smallest size of their rows.
            limit: The maximum number of threads to return.
            detail: What is read of each.
        """
        columns, joined = DETAILS[detail]
        fits, params = "", list[Param]()
        if pattern is not None:
            fits += " AND step.thread_id LIKE %s"
            params.append(like(pattern))
        if keys is not None:
            fits += NEWEST_HAS
            params.append(keys)
        if min_bytes is not None:
            fits += AT_LEAST
            params.append(min_bytes)
        text = self._text(THREADS, **step.pieces, fits=fits, counted=step.counted, columns=columns, joined=joined)
        return Query(text, (*step.params, tenant, *params, limit), row=SteppedThread)
