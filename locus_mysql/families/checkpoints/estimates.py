"""`Estimates`: counts of threads that read a bounded number of rows. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from ...dialect.sql import Select
from ...dialect.statement import like
from ...engine.operation import Batch, Operation
from ...runtime.arguments import check_text
from .thread_cache import Context

#: Threads that an estimate examines. If there are fewer, it is exact.
EXAMINED = 5_000

#: InnoDB never estimates a range at more than half of the table. A range that it estimates at more than this fraction
#: may therefore be larger.
NEARLY_HALF = 0.45


@dataclass(frozen=True, slots=True)
class CountEstimate:
    """An estimated number of threads.

    Attributes:
        number: The estimate.
        at_least: The number of threads that were counted; there are no fewer.
        exact: Whether all threads were counted, so that `number` is exact.
    """

    number: int
    at_least: int
    exact: bool


class CountedStep(NamedTuple):
    """The number of examined threads, and of those among them that are counted."""

    examined: int
    counted: int | Decimal


#: Examines the threads that were saved last, up to a limit, and counts those whose id matches a pattern.
COUNT_NEWEST = Select(
    """
SELECT COUNT(*), COALESCE(SUM(t.thread_id LIKE :pattern AND {LIVE_THREAD}), 0)
  FROM (SELECT r.thread_id
          FROM {threads} r FORCE INDEX (recent)
         WHERE r.tenant = :tenant
         ORDER BY r.updated_at DESC, r.thread_id DESC
         LIMIT :limit) AS step
  STRAIGHT_JOIN {threads} t FORCE INDEX (PRIMARY) ON t.tenant = :tenant AND t.thread_id = step.thread_id
""",
    CountedStep,
)

#: Examines threads whose ids match a pattern that begins with text, up to a limit, and counts live ones.
COUNT_BEGINNING = Select(
    """
SELECT COUNT(*), COALESCE(SUM(step.thread_id LIKE :pattern AND step.live), 0)
  FROM (SELECT t.thread_id, {LIVE_THREAD} AS live
          FROM {threads} t FORCE INDEX (PRIMARY)
         WHERE t.tenant = :tenant AND t.thread_id LIKE :pattern
         LIMIT :limit) AS step
""",
    CountedStep,
)


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


#: The optimizer's estimate of the threads in a range of the primary key, for which InnoDB reads a few pages at both
#: ends of the range; the piece is one of `RANGES`, or `BEGINNING`. With FORCE INDEX, MySQL 9.7 skips that and answers
#: 1. The answer has the columns of EXPLAIN. OceanBase's plans have another form, so it counts.
ESTIMATE = Select(
    "EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {threads} t USE INDEX (PRIMARY) WHERE {range}",
    Plan,
    oceanbase="SELECT 1, '', '', '', '', '', '', '', '', COUNT(*), '', '' FROM {threads} t WHERE {range}",
)

#: All of the table, the tenant, and the tenants before and after it.
RANGES = {
    "table": "TRUE",
    "tenant": "t.tenant = :tenant",
    "before": "t.tenant < :tenant",
    "after": "t.tenant > :tenant",
}

#: Ids that match a pattern that begins with text.
BEGINNING = "t.tenant = :tenant AND t.thread_id LIKE :pattern"


class Estimates:
    """Estimated counts.

    Args:
        context: The objects shared by the store's operations.
    """

    def __init__(self, context: Context) -> None:
        self._sql = context.sql

    def estimate_count(self, tenant: str, pattern: str) -> Operation[CountEstimate]:
        """Estimate the number of threads that match a glob. One round trip; two for a frequent beginning of ids."""
        check_text(pattern, "Pattern")
        sql = self._sql
        values: dict[str, Any] = {"tenant": tenant, "pattern": like(pattern)}
        dives = {name: ESTIMATE(sql, pieces={"range": one}, **values) for name, one in RANGES.items()}
        if not pattern.startswith(("*", "?")):
            count = COUNT_BEGINNING(sql, limit=EXAMINED, **values)
            dive = ESTIMATE(sql, pieces={"range": BEGINNING}, **values)
            results = yield Batch((count, dive, dives["table"]), atomic=False)
            (step,) = results.rows(count)
            if step.examined < EXAMINED:
                return CountEstimate(int(step.counted), int(step.counted), exact=True)
            estimated = _rows(results.rows(dive))
            if estimated < NEARLY_HALF * _rows(results.rows(dives["table"])):
                return _scaled(estimated, step.examined, int(step.counted))
        count = COUNT_NEWEST(sql, limit=EXAMINED, **values)
        results = yield Batch((count, *dives.values()), atomic=False)
        (step,) = results.rows(count)
        if step.examined < EXAMINED:
            return CountEstimate(int(step.counted), int(step.counted), exact=True)
        total = threads_of({name: _rows(results.rows(dive)) for name, dive in dives.items()})
        return _scaled(total, step.examined, int(step.counted))


def threads_of(estimates: Mapping[str, int]) -> int:
    """Return the number of a tenant's threads from the estimates for each of `RANGES`."""
    if estimates["tenant"] < NEARLY_HALF * estimates["table"]:
        return estimates["tenant"]
    return max(estimates["tenant"], estimates["table"] - estimates["before"] - estimates["after"])


def _scaled(total: int, examined: int, counted: int) -> CountEstimate:
    """Return the estimate for a total of which some threads were examined, and some of these counted."""
    return CountEstimate(max(counted, round(max(total, examined) * counted / examined)), counted, exact=False)


def _rows(plan: list[Plan]) -> int:
    return plan[0].rows or 0
