"""`Pages`: lists by pages, and estimated counts, that read a bounded number of rows. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, cast

from ...dialect.like import like
from ...engine.operation import Batch, Operation, fetch
from ...runtime.arguments import check_limit, check_text
from ...runtime.damaged_rows import readable
from ...runtime.matching import Containment
from ..inspection.cursors import from_cursor, to_cursor
from ..inspection.records import Page
from .context import Context
from .metadata_pairs import holds, keys_of
from .records import CheckpointInfo, found_info
from .statements import queries
from .statements.queries import NewestRow, Plan
from .statements.thread_pages import SteppedThread, ThreadRange
from .thread_steps import ThreadFilters, ThreadSteps

#: The maximum number of entries of a page.
PAGE_LIMIT = 1_000

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


class Pages:
    """Lists by pages, and estimated counts.

    Args:
        context: The objects shared by the store's operations.
    """

    def __init__(self, context: Context) -> None:
        self._sql, self._sealing = context.sql, context.sealing
        self._steps = ThreadSteps(context.sql)

    def threads(self, tenant: str, limit: int, cursor: str | None, pattern: str) -> Operation[Page[str]]:
        """Return a page of the ids of threads, most recently saved first. See `ThreadSteps.page`."""
        filters = ThreadFilters.of(pattern)
        page = yield from self._steps.page(tenant, filters, ThreadRange(), _checked(limit), cursor, "id")
        return Page([row.thread_id for row in page.items if row.thread_id is not None], page.cursor)

    def list_with_metadata(self, tenant: str, limit: int, cursor: str | None) -> Operation[Page[CheckpointInfo]]:
        """Return a page of the newest checkpoint of each thread, most recently saved first. One round trip."""
        limit = _checked(limit)
        page = yield from self._steps.page(tenant, ThreadFilters(), ThreadRange(), limit, cursor, "newest")
        named = (row for row in page.items if row.checkpoint_id is not None)  # only damage leaves a thread without any
        info = partial(found_info, tenant=tenant, sealing=self._sealing)
        return Page(list(readable(info, map(_newest, named))), page.cursor)

    def by_metadata(
        self, tenant: str, key: str, value: Any, limit: int, cursor: str | None
    ) -> Operation[Page[CheckpointInfo]]:
        """Return a page of checkpoints whose metadata contains this pair, in the order of the primary key.

        One round trip, which reads at most ``limit`` + 1 entries of the index for each of the three lookup keys.
        """
        keys = keys_of(key, value)
        limit = _checked(limit)
        after = None
        if cursor is not None:
            thread_id, seq = from_cursor(cursor, str, int)
            after = thread_id, seq
        rows = yield from fetch(queries.page_by_metadata(self._sql, tenant, keys, limit + 1, after))
        wanted = Containment(value)
        info = partial(found_info, tenant=tenant, sealing=self._sealing)
        infos = readable(info, (row for row in rows[:limit] if row.live))
        items = [info for info in infos if holds(info["metadata"], key, wanted)]
        last = rows[limit - 1] if len(rows) > limit else None
        return Page(items, None if last is None else to_cursor(last.thread_id, last.seq))

    def estimate_count(self, tenant: str, pattern: str) -> Operation[CountEstimate]:
        """Estimate the number of threads that match a glob. One round trip; two for a frequent beginning of ids."""
        check_text(pattern, "Pattern")
        sql = self._sql
        values: dict[str, Any] = {"tenant": tenant, "pattern": like(pattern)}
        dives = {name: queries.ESTIMATE(sql, pieces={"range": one}, **values) for name, one in queries.RANGES.items()}
        if not pattern.startswith(("*", "?")):
            count = queries.COUNT_BEGINNING(sql, limit=EXAMINED, **values)
            dive = queries.ESTIMATE(sql, pieces={"range": queries.BEGINNING}, **values)
            results = yield Batch((count, dive, dives["table"]), atomic=False)
            (step,) = results.rows(count)
            if step.examined < EXAMINED:
                return CountEstimate(int(step.counted), int(step.counted), exact=True)
            estimated = _rows(results.rows(dive))
            if estimated < NEARLY_HALF * _rows(results.rows(dives["table"])):
                return _scaled(estimated, step.examined, int(step.counted))
        count = queries.COUNT_NEWEST(sql, limit=EXAMINED, **values)
        results = yield Batch((count, *dives.values()), atomic=False)
        (step,) = results.rows(count)
        if step.examined < EXAMINED:
            return CountEstimate(int(step.counted), int(step.counted), exact=True)
        total = threads_of({name: _rows(results.rows(dive)) for name, dive in dives.items()})
        return _scaled(total, step.examined, int(step.counted))


def threads_of(estimates: Mapping[str, int]) -> int:
    """Return the number of a tenant's threads from the estimates for each of `queries.RANGES`."""
    if estimates["tenant"] < NEARLY_HALF * estimates["table"]:
        return estimates["tenant"]
    return max(estimates["tenant"], estimates["table"] - estimates["before"] - estimates["after"])


def _scaled(total: int, examined: int, counted: int) -> CountEstimate:
    """Return the estimate for a total of which some threads were examined, and some of these counted."""
    return CountEstimate(max(counted, round(max(total, examined) * counted / examined)), counted, exact=False)


def _rows(plan: list[Plan]) -> int:
    return plan[0].rows or 0


def _newest(row: SteppedThread) -> NewestRow:
    """Return the newest checkpoint of a thread, which it must have."""
    index = cast(str, row.thread_id), cast(str, row.checkpoint_id)
    saved_at, token, seal = cast(datetime, row.saved_at), cast(bytes, row.token), cast(int, row.seal)
    return NewestRow(*index, row.metadata, saved_at, token, seal)


def _checked(limit: int) -> int:
    return min(check_limit(limit, least=1), PAGE_LIMIT)
