"""Statements that read a bounded number of rows of a tenant that may have millions. They only read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ..like import like
from ..statement import Param, Query
from ..template import Statements
from ..variants import OCEANBASE

# The next checkpoints with one of some metadata keys, in the order of the primary key, in which a checkpoint never
# moves. Each key is a range of the index metadata_pairs, whose entries end with the primary key, so no more entries are
# read than the page has. With JSON_OVERLAPS instead of MEMBER OF, MySQL 9.7 would read and sort the whole range. An
# unnamed row has no metadata keys. The caller filters expired threads: else a page would read on until it has enough of
# others.
BY_METADATA = """
WITH step AS (
  SELECT found.thread_id, found.seq
    FROM ({ranges}) AS found
   ORDER BY found.thread_id, found.seq
   LIMIT %s
)
SELECT step.thread_id, c.checkpoint_id, c.metadata, c.created_at, c.token, c.seal, step.seq, {LIVE_ROW}
  FROM step
  STRAIGHT_JOIN {checkpoints} c FORCE INDEX (PRIMARY)
                ON c.tenant = %s AND c.thread_id = step.thread_id AND c.seq = step.seq
  LEFT JOIN {threads} t FORCE INDEX (PRIMARY) ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 ORDER BY step.thread_id, step.seq
"""

RANGE = """
  (SELECT c.thread_id, c.seq
     FROM {checkpoints} c FORCE INDEX (metadata_pairs)
    WHERE c.tenant = %s AND %s MEMBER OF (c.metadata_keys){after}
    ORDER BY c.tenant, c.thread_id, c.seq
    LIMIT %s)"""

AFTER = " AND (c.thread_id > %s OR (c.thread_id = %s AND c.seq > %s))"

# The most recently saved threads, or the first ones of a range of ids: how many there are, and how many of them are
# counted.
COUNT_NEWEST = """
SELECT COUNT(*), COALESCE(SUM(t.thread_id LIKE %s AND {LIVE_THREAD}), 0)
  FROM (SELECT r.thread_id
          FROM {threads} r FORCE INDEX (recent)
         WHERE r.tenant = %s
         ORDER BY r.updated_at DESC, r.thread_id DESC
         LIMIT %s) AS step
  STRAIGHT_JOIN {threads} t FORCE INDEX (PRIMARY) ON t.tenant = %s AND t.thread_id = step.thread_id
"""

COUNT_BEGINNING = """
SELECT COUNT(*), COALESCE(SUM(step.thread_id LIKE %s AND step.live), 0)
  FROM (SELECT t.thread_id, {LIVE_THREAD} AS live
          FROM {threads} t FORCE INDEX (PRIMARY)
         WHERE t.tenant = %s AND t.thread_id LIKE %s
         LIMIT %s) AS step
"""

# The optimizer's estimate of the threads in a range of the primary key, for which InnoDB reads a few pages at both ends
# of the range. With FORCE INDEX, MySQL 9.7 skips that and answers 1. The answer has the columns of EXPLAIN.
ESTIMATE = "EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {threads} t USE INDEX (PRIMARY) WHERE {range}"

# OceanBase's plans have another form, so it counts.
OCEANBASE.instead_of(
    ESTIMATE,
    "SELECT 1, '', '', '', '', '', '', '', '', COUNT(*), '', '' FROM {threads} t WHERE {range}",
)

#: The ranges that are estimated: all of the table, the tenant, and the tenants before and after it.
RANGES = {"table": "TRUE", "tenant": "t.tenant = %s", "before": "t.tenant < %s", "after": "t.tenant > %s"}
BEGINNING = "t.tenant = %s AND t.thread_id LIKE %s"


class TaggedPlace(NamedTuple):
    """A checkpoint with a metadata key. ``live``: whether it belongs to a thread that has not expired."""

    thread_id: str
    checkpoint_id: str
    metadata: str | None
    created_at: datetime
    token: bytes
    seal: int
    seq: int
    live: int | None


class CountedStep(NamedTuple):
    """The number of examined threads, and of those among them that are counted."""

    examined: int
    counted: int | Decimal


class Plan(NamedTuple):
    """A line of a plan."""

    id: int
    select_type: str
    table: str | None
    partitions: str | None
    type: str | None
    possible_keys: str | None
    key: str | None
    key_len: str | None
    ref: str | None
    rows: int | None
    filtered: float | str | None
    extra: str | None


class WideStatements(Statements):
    """Pages of checkpoints by metadata, and estimates of numbers of threads."""

    def by_metadata(
        self, tenant: str, keys: Sequence[int], limit: int, after: tuple[str, int] | None
    ) -> Query[TaggedPlace]:
        """Return the next checkpoints with one of some metadata keys.

        Args:
            tenant: The tenant.
            keys: The keys.
            limit: The maximum number of checkpoints.
            after: The thread and the seq of the last one of the previous page.
        """
        condition, place = ("", ()) if after is None else (AFTER, (after[0], *after))
        one = self._text(RANGE, after=condition)
        params: list[Param] = []
        for key in keys:
            params += [tenant, key, *place, limit]
        text = self._text(BY_METADATA, ranges="\n   UNION".join(one for _ in keys))
        return Query(text, (*params, limit, tenant), row=TaggedPlace)

    def count_newest(self, tenant: str, pattern: str, limit: int) -> Query[CountedStep]:
        """Examine the threads that were saved last, up to a limit, and count those whose id matches a glob."""
        return Query(self._text(COUNT_NEWEST), (like(pattern), tenant, limit, tenant), row=CountedStep)

    def count_beginning(self, tenant: str, pattern: str, limit: int) -> Query[CountedStep]:
        """Examine threads whose ids match a glob without a leading wildcard, up to a limit, and count live ones."""
        return Query(self._text(COUNT_BEGINNING), (like(pattern), tenant, like(pattern), limit), row=CountedStep)

    def estimates(self, tenant: str) -> dict[str, Query[Plan]]:
        """Return the queries that estimate the number of threads in each of `RANGES`."""
        made = {}
        for name, condition in RANGES.items():
            params = (tenant,) if "%s" in condition else ()
            made[name] = Query(self._text(ESTIMATE, range=condition), params, row=Plan)
        return made

    def estimate_beginning(self, tenant: str, pattern: str) -> Query[Plan]:
        """Estimate the number of threads whose ids have the beginning of a glob without a leading wildcard."""
        return Query(self._text(ESTIMATE, range=BEGINNING), (tenant, like(pattern)), row=Plan)
