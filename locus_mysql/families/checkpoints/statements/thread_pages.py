"""Statements that read pages of threads, by filters, newest first. They only read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from ....dialect.sql import Select
from ....dialect.statement import Query, like
from .tables import CheckpointDialect

# The condition with which a walk along the index recent, newest thread first, continues. It is not written as a
# comparison of rows, which MySQL does not turn into a range.
_AFTER = "(r.updated_at < :after_at OR (r.updated_at = :after_at AND r.thread_id < :after_id))"

# A step of a walk along the index recent, which names all of these columns, so no row is read. Both columns must be
# sorted in the same direction; otherwise MySQL sorts all threads.
WALK = """step AS (
  SELECT r.thread_id, r.updated_at
    FROM {threads} r FORCE INDEX (recent)
   WHERE r.tenant = :tenant{within}
   ORDER BY r.updated_at DESC, r.thread_id DESC
   LIMIT :threads
)
"""

# The threads of the candidates; none if there are too many candidates.
_OF_CANDIDATES = """step AS (
  SELECT r.thread_id, r.updated_at
    FROM (SELECT DISTINCT candidates.thread_id FROM candidates) AS candidate
    STRAIGHT_JOIN {threads} r FORCE INDEX (PRIMARY) ON r.tenant = :tenant AND r.thread_id = candidate.thread_id
   WHERE (SELECT COUNT(*) FROM candidates) < :too_many{within}
)
"""

# Threads by the beginning of their ids: a range of the primary key.
_BEGINNING = f"""candidates AS (
  SELECT b.thread_id
    FROM {{threads}} b FORCE INDEX (PRIMARY)
   WHERE b.tenant = :tenant AND b.thread_id LIKE :pattern
   LIMIT :too_many
),
{_OF_CANDIDATES}"""

# Threads that have a checkpoint with one of some metadata keys: by the multi-valued index metadata_pairs.
_HAVING = f"""candidates AS (
  SELECT c.thread_id
    FROM {{checkpoints}} c FORCE INDEX (metadata_pairs)
   WHERE c.tenant = :tenant AND JSON_OVERLAPS(c.metadata_keys, CAST(:keys AS JSON)) AND c.checkpoint_id IS NOT NULL
   LIMIT :too_many
),
{_OF_CANDIDATES}"""

_THESE = """step AS (
  SELECT r.thread_id, r.updated_at
    FROM {threads} r
   WHERE r.tenant = :tenant AND r.thread_id IN (:thread_ids)
)
"""

# Threads whose newest checkpoint has one of these metadata keys.
_NEWEST_HAS = """
     AND (SELECT JSON_OVERLAPS(c.metadata_keys, CAST(:keys AS JSON))
            FROM {checkpoints} c
           WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.checkpoint_id IS NOT NULL
             AND c.seq >= t.first_seq
           ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
           LIMIT 1)
"""

# Threads whose rows take at least a number of bytes.
_AT_LEAST = """
     AND (SELECT SUM({SIZE})
            FROM {checkpoints} c FORCE INDEX (PRIMARY)
           WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq >= t.first_seq) >= :min_bytes
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

    @property
    def condition(self) -> str:
        """Return the conditions on a row of a thread, aliased ``r``."""
        since = "" if self.since is None else " AND r.updated_at >= :since"
        until = "" if self.until is None else " AND r.updated_at < :until"
        return since + until + ("" if self.after is None else f" AND {_AFTER}")

    @property
    def values(self) -> dict[str, Any]:
        """Return the parameters of the conditions."""
        after_at, after_id = self.after or (None, None)
        return {"since": self.since, "until": self.until, "after_at": after_at, "after_id": after_id}


@dataclass(frozen=True, slots=True)
class Step:
    """Threads to examine, as common table expressions of which the last is ``step``.

    Args:
        pieces: Their text as the piece ``step``, and its pieces.
        values: Their parameters, besides ``tenant``.
        counted: The expression whose rows are counted.
    """

    pieces: Mapping[str, str]
    values: Mapping[str, Any]
    counted: str = "candidates"


def walk(within: ThreadRange, threads: int) -> Step:
    """Return a number of threads from the newest on.

    Args:
        within: Where to begin and to end.
        threads: The number of threads.
    """
    return Step({"step": WALK, "within": within.condition}, {**within.values, "threads": threads}, "step")


def beginning(pattern: str, within: ThreadRange, candidates: int) -> Step:
    """Return threads whose ids match a glob without a leading wildcard; none if more than ``candidates`` match."""
    values = {**within.values, "pattern": like(pattern), "too_many": candidates + 1}
    return Step({"step": _BEGINNING, "within": within.condition}, values)


def having(keys: str, within: ThreadRange, candidates: int) -> Step:
    """Return threads with a checkpoint with one of these metadata keys; none if there are more than ``candidates``."""
    values = {**within.values, "keys": keys, "too_many": candidates + 1}
    return Step({"step": _HAVING, "within": within.condition}, values)


def these(thread_ids: Sequence[str]) -> Step:
    """Return these threads; there must be one."""
    return Step({"step": _THESE}, {"thread_ids": [*thread_ids]}, "step")


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


# The first threads of a step that pass the filters; and a row with the end of the step and the number of threads that
# it examined. Each with its newest checkpoint, the first row of a walk backwards along the primary key (ORDER BY must
# name all columns of that key: with seq alone, MySQL sorts the rows); and with the number and size of its checkpoints,
# which reads all rows of the thread. MAX: see docs/design/writes.md.
_THREADS = Select(
    """
WITH {step},
fitting AS (
  SELECT t.tenant, t.thread_id, t.first_seq, t.created_at, t.updated_at
    FROM step
    STRAIGHT_JOIN {threads} t FORCE INDEX (PRIMARY) ON t.tenant = :tenant AND t.thread_id = step.thread_id
   WHERE {LIVE_THREAD}{fits}
   ORDER BY step.updated_at DESC, step.thread_id DESC
   LIMIT :limit
)
(SELECT fitting.thread_id, fitting.created_at, fitting.updated_at, newest.checkpoint_id, newest.metadata, newest.token,
        newest.seal, newest.created_at, counted.checkpoints, counted.size_bytes
   FROM fitting
   LEFT JOIN LATERAL (SELECT c.checkpoint_id, c.metadata, c.token, c.seal, c.created_at
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
(SELECT MAX((SELECT s.thread_id FROM step s ORDER BY s.updated_at, s.thread_id LIMIT 1)), NULL,
        MAX((SELECT MIN(s.updated_at) FROM step s)), NULL, NULL, NULL, NULL, NULL,
        MAX((SELECT COUNT(*) FROM {counted})), NULL)
""",
    SteppedThread,
)


def threads_of(
    sql: CheckpointDialect,
    tenant: str,
    step: Step,
    *,
    pattern: str | None = None,
    keys: str | None = None,
    min_bytes: int | None = None,
    limit: int,
) -> Query[SteppedThread]:
    """Return the first threads of a step that pass the filters, unordered, and a row about the step.

    Args:
        sql: The tables.
        tenant: The tenant.
        step: The threads to examine. If it has a pattern or keys too, they are those given here.
        pattern: A glob of their ids.
        keys: Their newest checkpoint has one of these metadata keys.
        min_bytes: The smallest size of their rows.
        limit: The maximum number of threads to return.
    """
    filters: dict[str, Any] = {}
    fits = ""
    if pattern is not None:
        fits += " AND step.thread_id LIKE :pattern"
        filters["pattern"] = like(pattern)
    if keys is not None:
        fits += _NEWEST_HAS
        filters["keys"] = keys
    if min_bytes is not None:
        fits += _AT_LEAST
        filters["min_bytes"] = min_bytes
    pieces = {**step.pieces, "fits": fits, "counted": step.counted}
    return _THREADS(sql, pieces=pieces, tenant=tenant, limit=limit, **{**step.values, **filters})
