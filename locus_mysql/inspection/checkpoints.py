"""Looking at checkpoints of agents, of plain dicts and of current states, as generators that do no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Self, cast

from ..config import MySQLConfig
from ..dialect import Statement
from ..dialect.checkpoints.dialect import CheckpointDialect
from ..dialect.checkpoints.inspection import Place, Step
from ..dialect.checkpoints.tables import Kind
from ..drivers.interface import Row
from ..engine.operation import Batch, Operation
from ..errors import CorruptCheckpoint, InvalidInput, SchemaMismatch
from ..families.checkpoints.coding.delta import outline
from ..families.checkpoints.coding.digests import EMPTY, Mark
from ..families.checkpoints.querying import hits_of
from ..families.checkpoints.records import checkpoint_info, decode_state_text
from ..families.checkpoints.rows import as_sql_time, assemble_rows, aware
from ..runtime.arguments import (
    check_checkpoint_id,
    check_limit,
    check_text,
    check_thread_id,
    encode_metadata,
)
from ..runtime.matching import Containment
from ..runtime.metadata_index import lookup_keys
from ..runtime.words import parts_of
from .cursors import from_cursor, to_cursor
from .measuring import statistics_of
from .records import (
    CheckpointRow,
    Hit,
    Page,
    StateView,
    Statistics,
    Tagged,
    ThreadRow,
    Turn,
)
from .sources import (
    LATELY_CHECKPOINTS,
    LATELY_THREADS,
    PAGE_LIMIT,
    Made,
    Wanted,
    time_text,
)

#: Threads that one page looks at, at most: by ids and times alone; where their newest metadata is read as well; and
#: where all that they take is summed up.
STEP, STEP_BY_METADATA, STEP_BY_SIZE = 50_000, 3_000, 2_000

#: Threads or checkpoints that one page takes from an index and sorts, at most.
CANDIDATES = 3_000

#: Of a state's small fields, so many bytes are read for a chart.
HEAD_BYTES = 16_384

#: Hits of a search that are looked at, of a word that very many texts hold: those that the index gives first.
HITS = 5_000

#: Rows that wait to be indexed, at which a search looks.
WAITING_ROWS = 2_000

#: Where states say numbers that a chart shows.
CONFIDENCE = ("confidence",)
TOKENS = ("total_tokens_used", "total_tokens", "tokens")
ITERATIONS = ("iteration", "iterations", "step")


@dataclass(frozen=True, slots=True)
class _Filters:
    """Which threads of a step fit; None where all do."""

    pattern: str | None = None
    keys: str | None = None
    min_bytes: int | None = None

    @classmethod
    def of(cls, wanted: Wanted) -> Self:
        """As they are asked of the server."""
        pattern = check_text(wanted.pattern, "Pattern")
        keys = None
        if wanted.metadata is not None:
            keys = _lookup_keys(*wanted.metadata)
        if wanted.min_bytes is not None:
            check_limit(wanted.min_bytes, "min_bytes")
        return cls(pattern if pattern.strip("*") or not pattern else None, keys, wanted.min_bytes)

    @property
    def step(self) -> int:
        """How many threads a walk comes by."""
        if self.min_bytes is not None:
            return STEP_BY_SIZE
        if self.keys is not None:
            return STEP_BY_METADATA
        return STEP if self.pattern is not None else 1


class CheckpointThreads:
    """The threads of one kind of states, of one tenant: a `ThreadSource`.

    Args:
        config: The options.
        kind: Which states.
    """

    def __init__(self, config: MySQLConfig, kind: Kind) -> None:
        self.family = kind
        # Whether there is a full-text index matters to a search only.
        self.sql = CheckpointDialect(config.table_prefix, kind, search=False)
        self.schema = self.sql.schema
        self._tenant = config.tenant

    def threads(self, wanted: Wanted, limit: int, cursor: str | None) -> Operation[Page[ThreadRow]]:
        """See `ThreadSource.threads`. One round trip, a second one where more fit the filter than are sorted at once.

        A filter that an index serves is tried by that index first. If it has too many candidates, they are not all that
        rare, and so a walk from the newest thread on comes by some of them soon. The cursor tells that it is a walk.
        """
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        filters = _Filters.of(wanted)
        behind, walks = None, False
        if cursor is not None:
            walks, saved_at, last_id = from_cursor(cursor, bool, datetime, str)
            behind = as_sql_time(saved_at), last_id
        place = Place(
            behind,
            None if wanted.saved_after is None else time_text(wanted.saved_after),
            None if wanted.saved_before is None else time_text(wanted.saved_before),
        )
        if not walks and (candidates := self._candidates(filters, place)) is not None:
            rows, _, looked_at = yield from self._look(candidates, filters, limit)
            if looked_at <= CANDIDATES:
                return self._page(rows, wanted, rows[-1] if len(rows) == limit else None, walks=False)
        size = max(limit + 1, filters.step)
        step = self.sql.inspection.walk(self._tenant, place, size)
        rows, end, looked_at = yield from self._look(step, filters, limit)
        if len(rows) < limit:
            last = end if looked_at == size else None
        else:
            last = None if rows[-1][0] == end[0] and looked_at < size else rows[-1]
        return self._page(rows, wanted, last, walks=True)

    def _candidates(self, filters: _Filters, place: Place) -> Step | None:
        """The threads that an index gives for the filters; None if none serves."""
        inspection = self.sql.inspection
        if filters.pattern is not None and not filters.pattern.startswith(("*", "?")):
            return inspection.beginning(self._tenant, filters.pattern, place, CANDIDATES)
        if filters.keys is not None:
            return inspection.having(self._tenant, filters.keys, place, CANDIDATES)
        return None

    def _look(self, step: Step, filters: _Filters, limit: int) -> Operation[tuple[list[Row], Row, int]]:
        """The first threads of a step that fit, newest first; the step's last; and at how many it looked."""
        (found,) = yield Batch.query(
            self.sql.inspection.threads(
                self._tenant,
                step,
                pattern=filters.pattern,
                keys=filters.keys,
                min_bytes=filters.min_bytes,
                limit=limit,
            )
        )
        end = next(row for row in found.rows if row[1] is None)
        rows = sorted((row for row in found.rows if row is not end), key=lambda row: (row[2], row[0]), reverse=True)
        return rows, end, cast(int, end[5])

    def _page(self, rows: Sequence[Row], wanted: Wanted, last: Row | None, *, walks: bool) -> Page[ThreadRow]:
        """The threads of these rows, with a cursor behind the last one."""
        items = [self._thread_row(row) for row in rows]
        if wanted.metadata is not None:  # the keys are hashes; what is damaged had the right ones
            name, value = wanted.metadata
            looked_for = Containment(value)
            items = [item for item in items if item.damage or _holds(item.metadata, name, looked_for)]
        return Page(items, None if last is None else to_cursor(walks, aware(last[2]), cast(str, last[0])))

    def thread(self, thread_id: str) -> Operation[ThreadRow | None]:
        """See `ThreadSource.thread`. One round trip."""
        these = self.sql.inspection.these(self._tenant, [check_thread_id(thread_id)])
        rows, _, _ = yield from self._look(these, _Filters(), 1)
        return self._thread_row(rows[0]) if rows else None

    def history(
        self, thread_id: str, limit: int, cursor: str | None, at: datetime | None
    ) -> Operation[Page[CheckpointRow]]:
        """See `ThreadSource.history`. One round trip."""
        check_thread_id(thread_id)
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        before = None if cursor is None else cast(int, from_cursor(cursor, int)[0])
        (found,) = yield Batch.query(self.sql.inspection.history(self._tenant, thread_id, before, _text(at), limit + 1))
        items = [_checkpoint_row(thread_id, row[1:]) for row in found.rows[:limit]]
        more = len(found.rows) > limit
        return Page(items, to_cursor(cast(int, found.rows[limit - 1][0])) if more else None)

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None, *, partly: bool = False
    ) -> Operation[Made[StateView] | None]:
        """See `ThreadSource.state`. One round trip."""
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
        if namespace:
            return None
        (found,) = yield Batch.query(self.sql.inspection.state(self._tenant, thread_id, checkpoint_id, _text(at)))
        if not found.rows:
            return None
        return partial(_state_view, self.family, thread_id, found.rows)

    def turns(self, thread_id: str, limit: int, at: datetime | None) -> Operation[Made[list[Turn]]]:
        """See `ThreadSource.turns`. One round trip, that brings the beginnings of rows."""
        check_thread_id(thread_id)
        limit = min(check_limit(limit), PAGE_LIMIT)
        (found,) = yield Batch.query(
            self.sql.inspection.beginnings(self._tenant, thread_id, HEAD_BYTES, _text(at), limit)
        )
        return partial(_turns, found.rows[::-1])

    def search(self, query: str, limit: int) -> Operation[Made[list[Hit]]]:
        """See `ThreadSource.search`. One round trip. Text that no writer has indexed yet is looked through as it is."""
        query = check_text(query, "Query").replace("*", " ")  # see `QueryOperations.search`
        limit = min(check_limit(limit), PAGE_LIMIT)
        parts = parts_of(query)
        texts = [text for part in parts if (text := part.strip('" '))]
        if not texts or not limit:
            return list
        find = self.sql.queries.search(self._tenant, query, parts, limit * 4 + 20, HITS)
        waiting = self.sql.inspection.waiting(self._tenant, texts, WAITING_ROWS, limit)
        try:
            found, unindexed = yield Batch((find, waiting), atomic=False, feeds_no_save=True)
        except SchemaMismatch as error:
            raise InvalidInput(
                f"The words of {self.family} cannot be searched: their tables have no full-text index. Metadata can."
            ) from error
        rows = sorted([*found.rows, *unindexed.rows], key=lambda row: (row[3], row[2]), reverse=True)
        return partial(_hits, self.family, rows, query, limit)

    def by_metadata(self, key: str, value: Any, limit: int) -> Operation[list[Tagged]]:
        """See `ThreadSource.by_metadata`. One round trip; two for a pair that very many checkpoints have."""
        keys = _lookup_keys(key, value)
        limit = min(check_limit(limit), PAGE_LIMIT)
        (found,) = yield Batch.query(self.sql.inspection.tagged(self._tenant, keys, CANDIDATES + 1, limit))
        count = next(cast(int, row[4]) for row in found.rows if row[0] is None)
        rows = [row for row in found.rows if row[0] is not None]
        if count > CANDIDATES:
            step = self.sql.inspection.walk(self._tenant, Place(), LATELY_THREADS)
            (found,) = yield Batch.query(
                self.sql.inspection.tagged_lately(self._tenant, keys, step, LATELY_CHECKPOINTS, limit)
            )
            rows = list(found.rows)
        rows.sort(key=lambda row: cast(datetime, row[3]), reverse=True)
        tagged = [Tagged(self.family, cast(str, row[0]), _checkpoint_row(cast(str, row[0]), row[1:])) for row in rows]
        wanted = Containment(value)
        return [one for one in tagged if one.checkpoint.damage or _holds(one.checkpoint.metadata, key, wanted)]

    def statistics(self) -> Operation[Statistics]:
        """See `ThreadSource.statistics`, and `measuring`."""
        return (yield from statistics_of(self.family, self.sql, self._tenant, self._rows_of))

    def _rows_of(self, thread_ids: Sequence[str]) -> Operation[list[ThreadRow]]:
        """These threads, as far as they are there."""
        if not thread_ids:
            return []
        these = self.sql.inspection.these(self._tenant, thread_ids)
        rows, _, _ = yield from self._look(these, _Filters(), len(thread_ids))
        return [self._thread_row(row) for row in rows]

    def markers(self, thread_ids: Sequence[str]) -> Statement:
        """See `ThreadSource.markers`."""
        return self.sql.inspection.markers(self._tenant, thread_ids)

    def _thread_row(self, row: Row) -> ThreadRow:
        """Made from a row of the statement `threads`."""
        thread_id, created_at, updated_at, checkpoint_id, text, checkpoints, size = row
        if checkpoint_id is None:
            metadata: dict[str, Any] = {}
            damage: str | None = f"Thread {thread_id!r} has no checkpoint, which no write leaves behind. Delete it."
        else:
            metadata, damage = _metadata((thread_id, checkpoint_id, text, updated_at))
        return ThreadRow(
            family=self.family,
            thread_id=cast(str, thread_id),
            created_at=aware(created_at),
            updated_at=aware(updated_at),
            checkpoints=cast(int, checkpoints),
            size_bytes=int(cast(int, size or 0)),
            checkpoint_id=cast("str | None", checkpoint_id),
            metadata=metadata,
            damage=damage,
        )


def _text(at: datetime | None) -> str | None:
    return None if at is None else time_text(at)


def _checkpoint_row(thread_id: str, row: Row) -> CheckpointRow:
    """Made from a row of id, parent's id, time, bytes and metadata."""
    checkpoint_id, parent_id, created_at, size, text = row
    metadata, damage = _metadata((thread_id, checkpoint_id, text, created_at))
    return CheckpointRow(
        namespace="",
        checkpoint_id=cast(str, checkpoint_id),
        parent_id=cast("str | None", parent_id),
        created_at=aware(created_at),
        size_bytes=cast(int, size),
        metadata=metadata,
        damage=damage,
    )


def _state_view(family: Kind, thread_id: str, rows: Sequence[Row]) -> StateView:
    """Made from the rows of the statement `state`."""
    checkpoint = _checkpoint_row(thread_id, rows[0][:5])
    try:
        encoded, _ = assemble_rows([row[5:] for row in rows], thread_id)
        state = decode_state_text(encoded.text(), thread_id)
    except CorruptCheckpoint as error:
        return StateView(family, thread_id, checkpoint, (), {}, damage=str(error))
    return StateView(family, thread_id, checkpoint, (), state)


def _hits(family: Kind, rows: Sequence[Row], query: str, limit: int) -> list[Hit]:
    return [
        Hit(family, hit["thread_id"], hit["checkpoint_id"], hit["snippet"], hit["score"], hit["created_at"])
        for hit in hits_of(rows, query, limit)
    ]


def _turns(rows: Iterable[Row]) -> list[Turn]:
    """Made from the rows of the statement `beginnings`, oldest first."""
    turns: dict[object, Turn] = {}
    for seq, base_seq, parent_seq, *rest in rows:
        parent, base = turns.get(parent_seq), turns.get(base_seq)
        turn = _turn(rest, None if base is None else base.lists, whole=base_seq == seq)
        parent_id = None if parent is None else parent.checkpoint_id
        turns[seq] = replace(turn, parent_id=parent_id, begins=parent_seq is None)
    return list(turns.values())


def _turn(row: Sequence[object], base: Mapping[str, Mark] | None, *, whole: bool) -> Turn:
    """Made from id, time and the beginning of the payload, and what is known of the lists of the row it builds on."""
    checkpoint_id, created_at, beginning = row
    fields: dict[str, Any] = {}
    lists: dict[str, Mark] = {}
    try:
        told = outline(cast(bytes, beginning))
        known = {**(dict.fromkeys(told.lists, EMPTY) if whole else base or {}), **told.marks}
        lists = {name: known[name] for name in told.lists if name in known}
        fields = {} if told.head is None else decode_state_text(told.head, "")
    except CorruptCheckpoint:
        pass
    tokens, iterations = _number(fields, TOKENS), _number(fields, ITERATIONS)
    return Turn(
        checkpoint_id=cast(str, checkpoint_id),
        created_at=aware(created_at),
        confidence=_number(fields, CONFIDENCE),
        tokens=None if tokens is None else int(tokens),
        iterations=None if iterations is None else int(iterations),
        lists=lists,
    )


def _number(fields: dict[str, Any], names: Sequence[str]) -> float | None:
    """The first of these fields that is a number."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and -1e18 < value < 1e18:
            return value
    return None


def _metadata(row: Row) -> tuple[dict[str, Any], str | None]:
    """The metadata in a row of thread, id, metadata and time; or none, and what is wrong with it."""
    try:
        return checkpoint_info(row)["metadata"], None
    except CorruptCheckpoint as error:
        return {}, f"{error} The state may be whole: load it, and save it again with its metadata."


def _lookup_keys(key: str, value: Any) -> str:
    encode_metadata({check_text(key, "Metadata key"): value})
    return json.dumps(lookup_keys(key, value))


def _holds(metadata: Any, key: str, wanted: Containment) -> bool:
    return key in metadata and wanted.within(metadata[key])
