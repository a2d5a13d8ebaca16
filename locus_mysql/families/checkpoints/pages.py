"""`Pages`: lists by pages, and estimated counts, that read a bounded number of rows. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, cast

from ...dialect.like import like
from ...dialect.sql import Select
from ...dialect.statement import Query
from ...engine.operation import Batch, Operation, fetch
from ...runtime.arguments import check_limit, check_text
from ...runtime.damaged_rows import readable
from ...runtime.matching import Containment
from ..inspection.cursors import from_cursor, to_cursor
from ..inspection.records import Page
from .context import Context
from .metadata_pairs import holds, keys_of
from .records import CheckpointInfo, found_info
from .statements.dialect import CheckpointDialect
from .statements.queries import NewestRow
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


_PAGE_BY_METADATA = Select(
    """
WITH step AS (
  SELECT tagged.thread_id, tagged.seq
    FROM ({ranges}) AS tagged
   ORDER BY tagged.thread_id, tagged.seq
   LIMIT :limit
)
SELECT step.thread_id, c.checkpoint_id, c.metadata, c.created_at, c.token, c.seal, step.seq, {LIVE_ROW}
  FROM step
  STRAIGHT_JOIN {checkpoints} c FORCE INDEX (PRIMARY)
                ON c.tenant = :tenant AND c.thread_id = step.thread_id AND c.seq = step.seq
  LEFT JOIN {threads} t FORCE INDEX (PRIMARY) ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 ORDER BY step.thread_id, step.seq
""",
    TaggedPlace,
)

_RANGE = """
  (SELECT c.thread_id, c.seq
     FROM {checkpoints} c FORCE INDEX (metadata_pairs)
    WHERE c.tenant = :tenant AND :key MEMBER OF (c.metadata_keys){after}
    ORDER BY c.tenant, c.thread_id, c.seq
    LIMIT :limit)"""

_AFTER_PLACE = " AND (c.thread_id > :thread_id OR (c.thread_id = :thread_id AND c.seq > :seq))"


def page_by_metadata(
    sql: CheckpointDialect, tenant: str, keys: Sequence[int], limit: int, after: tuple[str, int] | None
) -> Query[TaggedPlace]:
    """Return the next checkpoints with one of some metadata keys, in the order of the primary key.

    In that order a checkpoint never moves. Each key is a range of the index metadata_pairs, whose entries end with the
    primary key, so no more entries are read than the page has. With JSON_OVERLAPS instead of MEMBER OF, MySQL 9.7 would
    read and sort the whole range. An unnamed row has no metadata keys. The caller filters expired threads: else a page
    would read on until it has enough of others.

    Args:
        sql: The tables.
        tenant: The tenant.
        keys: The keys.
        limit: The maximum number of checkpoints.
        after: The thread and the seq of the last one of the previous page.
    """
    names = [f"key{number}" for number, _ in enumerate(keys)]
    ranges = "\n   UNION".join(_RANGE.replace(":key", f":{name}") for name in names)
    pieces = {"ranges": ranges, "after": "" if after is None else _AFTER_PLACE}
    thread_id, seq = after or (None, None)
    values = dict(zip(names, keys, strict=True))
    return _PAGE_BY_METADATA(sql, pieces=pieces, tenant=tenant, limit=limit, thread_id=thread_id, seq=seq, **values)


# Counts and estimates


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
        rows = yield from fetch(page_by_metadata(self._sql, tenant, keys, limit + 1, after))
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


def _newest(row: SteppedThread) -> NewestRow:
    """Return the newest checkpoint of a thread, which it must have."""
    index = cast(str, row.thread_id), cast(str, row.checkpoint_id)
    saved_at, token, seal = cast(datetime, row.saved_at), cast(bytes, row.token), cast(int, row.seal)
    return NewestRow(*index, row.metadata, saved_at, token, seal)


def _checked(limit: int) -> int:
    return min(check_limit(limit, least=1), PAGE_LIMIT)
