"""`Estimates`: counts of threads that read a bounded number of rows. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...dialect.checkpoints.wide_reads import Plan
from ...engine.operation import Batch, Operation
from ...runtime.arguments import check_text
from .context import Context

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
        sql = self._sql.wide_reads
        dives = sql.estimates(tenant)
        if not pattern.startswith(("*", "?")):
            step, dive = sql.count_beginning(tenant, pattern, EXAMINED), sql.estimate_beginning(tenant, pattern)
            queries = (step, dive, dives["table"])
            results = yield Batch(queries, atomic=False)
            (found,) = results.rows(step)
            if found.examined < EXAMINED:
                return CountEstimate(int(found.counted), int(found.counted), exact=True)
            estimated = _rows(results.rows(dive))
            if estimated < NEARLY_HALF * _rows(results.rows(dives["table"])):
                return _scaled(estimated, found.examined, int(found.counted))
        step = sql.count_newest(tenant, pattern, EXAMINED)
        results = yield Batch((step, *dives.values()), atomic=False)
        (found,) = results.rows(step)
        if found.examined < EXAMINED:
            return CountEstimate(int(found.counted), int(found.counted), exact=True)
        total = threads_of({name: _rows(results.rows(dive)) for name, dive in dives.items()})
        return _scaled(total, found.examined, int(found.counted))


def threads_of(estimates: Mapping[str, int]) -> int:
    """Return the number of a tenant's threads from the estimates of `WideStatements.estimates`."""
    if estimates["tenant"] < NEARLY_HALF * estimates["table"]:
        return estimates["tenant"]
    return max(estimates["tenant"], estimates["table"] - estimates["before"] - estimates["after"])


def _scaled(total: int, examined: int, counted: int) -> CountEstimate:
    """Return the estimate for a total of which some threads were examined, and some of these counted."""
    return CountEstimate(max(counted, round(max(total, examined) * counted / examined)), counted, exact=False)


def _rows(plan: list[Plan]) -> int:
    return plan[0].rows or 0
