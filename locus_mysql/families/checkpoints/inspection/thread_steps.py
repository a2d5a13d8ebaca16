"""`ThreadSteps`: finds a page of threads in steps that each read a bounded number of rows. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self, cast

from ....engine.operation import Operation, fetch
from ....runtime.arguments import check_limit, check_text
from ....runtime.server_times import as_sql_time, aware
from ...inspection.records import Page
from ...inspection.sources import from_cursor, to_cursor
from ..metadata_pairs import lookup_text
from ..statements import thread_pages
from ..statements.dialect import CheckpointDialect
from ..statements.thread_pages import Step, SteppedThread, ThreadRange

#: The maximum number of threads that one page examines: by ids and times alone; if their newest metadata is read; and
#: if their sizes are summed up.
STEP, STEP_BY_METADATA, STEP_BY_SIZE = 50_000, 3_000, 2_000

#: The maximum number of threads or checkpoints that one page reads from an index and sorts.
CANDIDATES = 3_000


@dataclass(frozen=True, slots=True)
class ThreadFilters:
    """The filters of a page as the statements take them; None for a filter that passes all threads."""

    pattern: str | None = None
    keys: str | None = None
    min_bytes: int | None = None

    @classmethod
    def of(cls, pattern: str, metadata: tuple[str, Any] | None = None, min_bytes: int | None = None) -> Self:
        """Return the filters that a caller asked for, checked."""
        pattern = check_text(pattern, "Pattern")
        keys = None if metadata is None else lookup_text(*metadata)
        if min_bytes is not None:
            check_limit(min_bytes, "min_bytes")
        return cls(pattern if pattern.strip("*") or not pattern else None, keys, min_bytes)

    @property
    def step(self) -> int:
        """The number of threads that a walk examines."""
        if self.min_bytes is not None:
            return STEP_BY_SIZE
        if self.keys is not None:
            return STEP_BY_METADATA
        return STEP if self.pattern is not None else 1


class ThreadSteps:
    """Pages of threads, most recently saved first.

    Args:
        sql: The tables.
    """

    def __init__(self, sql: CheckpointDialect) -> None:
        self._sql = sql

    def page(
        self,
        tenant: str,
        filters: ThreadFilters,
        within: ThreadRange,
        limit: int,
        cursor: str | None,
    ) -> Operation[Page[SteppedThread]]:
        """Return a page. One round trip; two if the index has more than `CANDIDATES` candidates.

        A filter that an index supports is tried with that index first. If it has too many candidates, they are
        frequent, so a walk from the newest thread on soon finds some. The cursor records that the page was a walk.

        Args:
            tenant: The tenant.
            filters: The filters. Whether a match by metadata keys is one is for the caller to check.
            within: The times of the threads' last saves.
            limit: The maximum number of threads.
            cursor: The cursor of the previous page; None for the first one.
        """
        walks = False
        if cursor is not None:
            walks, saved_at, last_id = from_cursor(cursor, bool, datetime, str)
            within = replace(within, after=(as_sql_time(saved_at), last_id))
        if not walks and (candidates := _candidates(filters, within)) is not None:
            rows, _, examined = yield from self.examine(tenant, candidates, filters, limit)
            if examined <= CANDIDATES:
                return _page(rows, rows[-1] if len(rows) == limit else None, walks=False)
        size = max(limit + 1, filters.step)
        step = thread_pages.walk(within, size)
        rows, end, examined = yield from self.examine(tenant, step, filters, limit)
        if len(rows) < limit:
            last = end if examined == size else None
        else:
            last = None if rows[-1].thread_id == end.thread_id and examined < size else rows[-1]
        return _page(rows, last, walks=True)

    def examine(
        self, tenant: str, step: Step, filters: ThreadFilters, limit: int
    ) -> Operation[tuple[list[SteppedThread], SteppedThread, int]]:
        """Return the first threads of a step that pass, newest first; its last thread; and the number examined."""
        find = thread_pages.threads_of(
            self._sql,
            tenant,
            step,
            pattern=filters.pattern,
            keys=filters.keys,
            min_bytes=filters.min_bytes,
            limit=limit,
        )
        found = yield from fetch(find)
        end = next(row for row in found if row.created_at is None)
        rows = [row for row in found if row is not end]
        rows.sort(key=lambda row: (cast(datetime, row.updated_at), cast(str, row.thread_id)), reverse=True)
        return rows, end, end.checkpoints or 0


def _candidates(filters: ThreadFilters, within: ThreadRange) -> Step | None:
    """Return the candidates that an index has for the filters; None if no index supports them."""
    if filters.pattern is not None and not filters.pattern.startswith(("*", "?")):
        return thread_pages.beginning(filters.pattern, within, CANDIDATES)
    if filters.keys is not None:
        return thread_pages.having(filters.keys, within, CANDIDATES)
    return None


def _page(rows: list[SteppedThread], last: SteppedThread | None, *, walks: bool) -> Page[SteppedThread]:
    """Return a page of these threads, with a cursor after the last one."""
    cursor = None if last is None else to_cursor(walks, aware(last.updated_at), cast(str, last.thread_id))
    return Page(rows, cursor)
