"""Lists of threads: `ThreadSteps` finds a page in bounded steps; and what is shown of each thread. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self, cast

from ....engine.operation import Operation, fetch
from ....errors import CorruptCheckpoint, EncryptionError
from ....runtime.arguments import check_limit, check_text
from ....runtime.exact_json import decode_json
from ....runtime.sealing import Opened, Sealing, sealed_by
from ....runtime.server_rows import as_sql_time, aware
from ...inspection.conversation import messages_of
from ...inspection.msgpack import finite
from ...inspection.records import Page, ThreadPreview
from ...inspection.sources import from_cursor, to_cursor
from ...inspection.status import preview_of
from ..coding.delta import PAYLOAD
from ..coding.payload import Added, added_items, beginning_of, outline
from ..queries import lookup_text
from ..statements import thread_pages
from ..statements.inspection import PreviewRow
from ..statements.tables import CheckpointDialect
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


#: Bytes of each payload that are read. Rows with a larger payload than the second number are not read at all.
BEGINNING_BYTES, LARGEST_BYTES = 16_384, 262_144

_DECODER = json.JSONDecoder()


def previews_of(rows: Sequence[PreviewRow], sealing: Sealing, tenant: str) -> Mapping[str, ThreadPreview]:
    """Return the previews of threads by their ids."""
    by_thread: dict[str, list[PreviewRow]] = {}
    for row in rows:
        by_thread.setdefault(row.thread_id, []).append(row)
    return {thread_id: _preview(found, sealing.of(tenant, thread_id)) for thread_id, found in by_thread.items()}


def _preview(rows: Sequence[PreviewRow], sealing: Sealing) -> ThreadPreview:
    first = next((row for row in rows if row.is_first), None)
    newest_first = sorted((row for row in rows if not row.is_first), key=lambda row: -row.seq)
    newest = newest_first[0] if newest_first else None
    began = None if first is None else partial_state(_opened(first, sealing), beginning=True)
    state = None if newest is None else partial_state(_opened(newest, sealing))
    if state is None:
        return preview_of(messages_of(began or {}), (), {})
    last = messages_of(state)
    if not last and newest is not None and len(newest_first) > 1 and newest_first[1].seq == newest.parent_seq:
        last = messages_of(partial_state(_opened(newest_first[1], sealing)) or {})
    return preview_of(messages_of(began or {}), last, state)


def _opened(row: PreviewRow, sealing: Sealing) -> Opened | None:
    """Return the beginning of a row's payload, decrypted; None if it cannot be."""
    try:
        if sealing.reads_clear and sealed_by(row.payload) is None:
            return beginning_of(row.payload)
        if row.payload_bytes > len(row.payload):
            return None  # only a whole payload can be decrypted
        tokens = (row.token,) if row.base_token is None else (row.token, row.base_token)
        return sealing.open(row.payload, f"Checkpoint row {row.seq}", PAYLOAD, *tokens)
    except (CorruptCheckpoint, EncryptionError):
        return None


def partial_state(payload: Opened | None, *, beginning: bool = False) -> Mapping[str, Any] | None:
    """Return a state whose lists have only the items that its row adds; None if the row cannot be read.

    Args:
        payload: The beginning of its payload.
        beginning: Whether lists have items only if the row has their beginning; else only if it has their end.
    """
    if payload is None:
        return None
    try:
        head, added = outline(payload).head, added_items(payload)
        state = None if head is None else finite(decode_json(head))
    except CorruptCheckpoint:
        return None
    if not isinstance(state, dict):
        return None
    for name, items in added.items():
        if name in state and (not items.start if beginning else items.whole):
            state[name] = _items(items)
    return state


def _items(added: Added) -> list[Any]:
    """Return the items in a text that may be cut off; none if a complete text begins within an item."""
    text = added.text.decode("utf-8", "ignore").lstrip(",")
    items = []
    at = 0
    while at < len(text):
        try:
            item, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        items.append(finite(item))
        at += 1  # the comma
    return [] if added.whole and at < len(text) else items
