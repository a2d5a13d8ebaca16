"""Reads and changes threads of agents, of plain dicts and of current states for the inspector. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, cast

from ...config import MySQLConfig
from ...dialect.words import parts_of
from ...engine.operation import Operation, fetch
from ...errors import Conflict, CorruptCheckpoint, InvalidInput, SchemaMismatch, ThreadExists
from ...records.log_digests import EMPTY, Mark
from ...records.tables import Row
from ...runtime.arguments import (
    check_checkpoint_id,
    check_limit,
    check_text,
    check_thread_id,
)
from ...runtime.matching import Containment
from ...runtime.sealing import NO_WORDS, Sealing
from ...runtime.server_rows import aware
from ..inspection.changes import OwnerChanges
from ..inspection.conversation import messages_of, path_of_messages
from ..inspection.owner_rows import text_of
from ..inspection.owners import Having, OwnerThreads
from ..inspection.records import (
    CheckpointRow,
    Hit,
    Page,
    StateView,
    Tagged,
    ThreadPreview,
    ThreadRow,
    Turn,
)
from ..inspection.sources import (
    PAGE_LIMIT,
    RECENT_CHECKPOINTS,
    RECENT_THREADS,
    Deferred,
    from_cursor,
    time_text,
    to_cursor,
)
from ..inspection.statistics import Measured
from ..inspection.turns import changes_of, note_of
from .coding.payload import beginning_of, outline, whole_bytes
from .family import tables
from .preconditions import NO_CHECKPOINT
from .previews import BEGINNING_BYTES, LARGEST_BYTES, partial_state, previews_of
from .queries import hits_of, holds, lookup_text
from .records import Named, SealedRow, assemble_rows, decode_state_text, metadata_of
from .statements import inspection, queries
from .statements.inspection import BeginningRow, OutlineRow, StateRow, TaggedRow, Which
from .statements.queries import HistoryRow, HitRow
from .statements.tables import Kind, ThreadKey, checkpoint_dialect
from .store import StoreOperations

#: The maximum number of threads that a page examines if their newest metadata is read; and of threads or checkpoints
#: that a page reads from the index of metadata.
STEP_BY_METADATA, CANDIDATES = 3_000, 3_000

#: About the number of checkpoints from which the size of whole states is estimated; and the first bytes of a payload
#: that contain its header.
WHOLE_SAMPLE, HEADER_BYTES = 200, 4_096

#: Bytes of a state's small fields that are read for a chart.
HEAD_BYTES = 16_384

#: The fields of states with the numbers that a chart shows, in the order of preference.
CONFIDENCE = ("confidence",)

TOKENS = ("total_tokens_used", "total_tokens", "tokens")

ITERATIONS = ("iteration", "iterations", "step")

CHARTED = frozenset((*CONFIDENCE, *TOKENS, *ITERATIONS))


class CheckpointThreads(OwnerThreads):
    """The threads of one kind and one tenant.

    Args:
        config: The options.
        kind: The kind of states.
    """

    def __init__(self, config: MySQLConfig, kind: Kind) -> None:
        # Only a search needs the full-text index.
        options: Any = {"search": False, "search_parser": config.search_parser}
        declared = tables(config.table_prefix, kind, **options)
        super().__init__(declared, config, inspection.NEWEST, " FORCE INDEX (recent)")
        self.sql = checkpoint_dialect(config.table_prefix, kind, **options)
        self._sealing = Sealing(config.encryption, self.sql.schema.family)

    def _having(self, name: str, value: Any) -> Operation[Having | None]:
        """See `OwnerThreads._having`. One round trip, to an index of pairs.

        If the pair is frequent, a walk from the newest thread on soon finds some that have it.
        """
        pairs = lookup_text(name, value)
        find = inspection.CANDIDATES(self.sql, tenant=self._tenant, pairs=pairs, limit=CANDIDATES + 1)
        found = yield from fetch(find)
        if len(found) > CANDIDATES:
            return Having(inspection.NEWEST_HAS, {"pairs": pairs}, STEP_BY_METADATA)
        condition, values = self.owners.among([(one,) for one in dict.fromkeys(row.thread_id for row in found)])
        return Having(condition, values, pieces={"INDEX": ""})

    def history(
        self, thread_id: str, limit: int, cursor: str | None, at: datetime | None
    ) -> Operation[Page[CheckpointRow]]:
        """See `OwnerThreads.history`. One round trip."""
        key = ThreadKey(self._tenant, check_thread_id(thread_id))
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        before = None if cursor is None else cast(int, from_cursor(cursor, int)[0])
        which = Which(before_seq=before, saved_by=_text(at))
        rows = yield from fetch(queries.HISTORY(self.sql, key, which, pieces=which.pieces, limit=limit + 1))
        sealing = self._sealing.of(*key)
        items = [_checkpoint_row(row, thread_id, sealing) for row in rows[:limit]]
        return Page(items, to_cursor(rows[limit - 1].seq) if len(rows) > limit else None)

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None, *, partly: bool = False
    ) -> Operation[Deferred[StateView] | None]:
        """See `OwnerThreads.state`. One round trip."""
        key = ThreadKey(self._tenant, check_thread_id(thread_id))
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
        if namespace:
            return None
        which = Which(checkpoint_id=checkpoint_id, saved_by=_text(at))
        rows = yield from fetch(inspection.STATE(self.sql, key, which, pieces=which.pieces, limit=1))
        sealing = self._sealing.of(*key)
        return partial(_state_view, self.family, thread_id, rows, sealing) if rows else None

    def turns(self, thread_id: str, limit: int, at: datetime | None) -> Operation[Deferred[list[Turn]]]:
        """See `OwnerThreads.turns`. One round trip, which reads the first bytes of rows."""
        key = ThreadKey(self._tenant, check_thread_id(thread_id))
        limit, which = min(check_limit(limit), PAGE_LIMIT), Which(saved_by=_text(at))
        read = inspection.BEGINNINGS(self.sql, key, which, pieces=which.pieces, bytes=HEAD_BYTES, limit=limit)
        rows = yield from fetch(read)
        return partial(turns_of, rows[::-1])

    def previews(self, thread_ids: Sequence[str]) -> Operation[Deferred[Mapping[str, ThreadPreview]]]:
        """See `OwnerThreads.previews`. One round trip."""
        if not thread_ids:
            return dict
        read = inspection.PREVIEWS(
            self.sql,
            tenant=self._tenant,
            thread_ids=[*thread_ids],
            bytes=BEGINNING_BYTES,
            largest=LARGEST_BYTES,
            limit=3 * len(thread_ids),
        )
        rows = yield from fetch(read)
        return partial(previews_of, rows, self._sealing, self._tenant)

    def search(self, query: str, limit: int) -> Operation[Deferred[list[Hit]]]:
        """See `OwnerThreads.search`. One round trip. Text that is not indexed yet is scanned."""
        check_text(query, "Query")
        limit = min(check_limit(limit), PAGE_LIMIT)
        if self._sealing.is_on:
            raise InvalidInput(NO_WORDS)
        parts = parts_of(query)
        if not parts or not limit:
            return list
        find = queries.search(self.sql, self._tenant, parts, limit * 4 + 20, inspects=True)
        try:
            rows = yield from fetch(find)
        except SchemaMismatch as error:
            raise InvalidInput(
                f"Threads of {self.family} cannot be searched by words: their tables have no full-text index. Search "
                "by metadata instead."
            ) from error
        return partial(_hits, self.family, rows, query, limit)

    def by_metadata(self, key: str, value: Any, limit: int) -> Operation[list[Tagged]]:
        """See `OwnerThreads.by_metadata`. One round trip; two if more than `CANDIDATES` checkpoints have the pair."""
        keys = lookup_text(key, value)
        limit = min(check_limit(limit), PAGE_LIMIT)
        values: dict[str, Any] = {"tenant": self._tenant, "keys": keys, "limit": limit}
        rows = yield from fetch(inspection.TAGGED(self.sql, candidates=CANDIDATES + 1, **values))
        count = next(row.size_bytes for row in rows if row.thread_id is None)
        if count > CANDIDATES:
            values |= {"threads": RECENT_THREADS, "newest": RECENT_CHECKPOINTS}
            rows = yield from fetch(inspection.TAGGED_LATELY(self.sql, **values))
        rows = [row for row in rows if row.thread_id is not None]
        rows.sort(key=lambda row: cast(datetime, row.created_at), reverse=True)
        tagged = [self._tagged(cast(str, row.thread_id), row) for row in rows]
        wanted = Containment(value)
        return [one for one in tagged if one.checkpoint.damage or holds(one.checkpoint.metadata, key, wanted)]

    def _tagged(self, thread_id: str, row: TaggedRow) -> Tagged:
        sealing = self._sealing.of(self._tenant, thread_id)
        return Tagged(self.family, thread_id, _checkpoint_row(row, thread_id, sealing))

    def _whole_size(self, measured: Sequence[Measured]) -> Operation[float | None]:
        """See `OwnerThreads._whole_size`. One round trip, for the first bytes of about `WHOLE_SAMPLE` checkpoints."""
        checkpoints = sum(one.rows for one in measured)
        if not checkpoints:
            return 0.0
        keys = [(self._tenant, *one.key) for one in measured if one.rows]
        one_in, limit = -(-checkpoints // WHOLE_SAMPLE), 2 * WHOLE_SAMPLE
        find = inspection.OUTLINES(
            self.sql, tenant=self._tenant, keys=keys, one_in=one_in, limit=limit, bytes=HEADER_BYTES
        )
        outlined = yield from fetch(find)
        groups = groupby(outlined, key=lambda row: (row.thread_id, row.chosen_seq))
        sizes = [size for _, rows in groups if (size := whole_size(list(rows))) is not None]
        return sum(sizes) / len(sizes) if sizes else None

    def _thread(self, row: Row) -> ThreadRow:
        thread, newest = super()._thread(row), SealedRow(*row[":newest"])
        if newest.token is None:  # of a damaged thread
            damage: str | None = (
                f"Thread {thread.thread_id!r} has no checkpoint. No write of this package causes this; delete the "
                "thread."
            )
            return replace(thread, checkpoint_id=None, damage=damage)
        newest = newest._replace(checkpoint_id=text_of(newest.checkpoint_id))
        metadata, damage = _metadata(newest, thread.thread_id, self._sealing.of(self._tenant, thread.thread_id))
        return replace(thread, checkpoint_id=newest.checkpoint_id, metadata=metadata, damage=damage)


class CheckpointChanges(OwnerChanges):
    """See `OwnerChanges`.

    Args:
        operations: The operations of the family's store.
    """

    can_branch = True

    def __init__(self, operations: StoreOperations) -> None:
        self._operations = operations
        self.has_history = operations.kind != "current"

    def delete(self, thread_id: str, checkpoint_id: str | None, namespace: str) -> Operation[bool]:
        """Delete a thread or one of its checkpoints; False if it does not exist."""
        return (yield from self._operations.delete(thread_id, checkpoint_id))

    def copy(self, source: str, target: str) -> Operation[bool]:
        """Copy a whole thread; False if it does not exist."""
        return (yield from self._operations.copy_thread(source, target))

    def branch(self, source: str, checkpoint_id: str, target: str) -> Operation[bool]:
        """Save a state of a thread as the first of a new one; False if it does not exist."""
        state = yield from self._operations.load(source, checkpoint_id)
        found = yield from self._operations.get_metadata(source, checkpoint_id)
        if state is None or found is None:
            return False
        try:
            yield from self._operations.save(target, state, metadata=found["metadata"], expected=NO_CHECKPOINT)
        except Conflict as error:
            raise ThreadExists(f"There is a thread {target!r} already. Choose another name.") from error
        return True


def _text(at: datetime | None) -> str | None:
    return None if at is None else time_text(at)


def _checkpoint_row(row: HistoryRow | StateRow | TaggedRow, thread_id: str, sealing: Sealing) -> CheckpointRow:
    metadata, damage = _metadata(row, thread_id, sealing)
    return CheckpointRow(
        namespace="",
        checkpoint_id=cast(str, row.checkpoint_id),
        parent_id=row.parent_id,
        created_at=aware(row.created_at),
        size_bytes=int(row.size_bytes),
        metadata=metadata,
        damage=damage,
    )


def _state_view(family: str, thread_id: str, rows: Sequence[StateRow], sealing: Sealing) -> StateView:
    checkpoint = _checkpoint_row(rows[0], thread_id, sealing)
    try:
        encoded, _ = assemble_rows(rows, thread_id, sealing)
        state = decode_state_text(encoded.text(), thread_id)
    except CorruptCheckpoint as error:
        return StateView(family, thread_id, checkpoint, (), {}, damage=str(error))
    return StateView(family, thread_id, checkpoint, (), state)


def _hits(family: str, rows: Sequence[HitRow], query: str, limit: int) -> list[Hit]:
    return [
        Hit(family, hit["thread_id"], hit["checkpoint_id"], hit["snippet"], hit["score"], hit["created_at"])
        for hit in hits_of(rows, query, limit)
    ]


def _metadata(row: Named, thread_id: str, sealing: Sealing) -> tuple[dict[str, Any], str | None]:
    """Return the metadata of a checkpoint; or empty metadata, and a message about the damage."""
    try:
        return metadata_of(row, thread_id, sealing), None
    except CorruptCheckpoint as error:
        return {}, f"{error} Restore the row from a backup, or delete the checkpoint."


def whole_size(rows: Sequence[OutlineRow]) -> int | None:
    """Return the length of a state's text from the rows that it builds on, newest first.

    None if a row is damaged or missing.
    """
    if rows[-1].seq != rows[-1].base_seq:
        return None
    try:
        return whole_bytes([outline(beginning_of(row.beginning)) for row in rows])
    except CorruptCheckpoint:
        return None


def turns_of(rows: Iterable[BeginningRow]) -> list[Turn]:
    """Return the turns of checkpoints that are given oldest first."""
    turns: dict[int | None, Turn] = {}
    states: dict[int | None, Mapping[str, Any]] = {}
    for row in rows:
        parent, base = turns.get(row.parent_seq), turns.get(row.base_seq)
        fields = _fields(row)
        turn = _turn(row, None if base is None else base.lists, fields, whole=row.base_seq == row.seq)
        parent_id = None if parent is None else parent.checkpoint_id
        note = _note(row, turn, parent, fields, states.get(row.parent_seq))
        turns[row.seq] = replace(turn, parent_id=parent_id, begins=row.parent_seq is None, note=note)
        states[row.seq] = fields
    return list(turns.values())


def _note(
    row: BeginningRow, turn: Turn, parent: Turn | None, fields: Mapping[str, Any], before: Mapping[str, Any] | None
) -> str:
    """Return what a checkpoint changed, as far as the beginning of its row shows it."""
    if not fields or (parent is None and row.parent_seq is not None):
        return ""
    state = partial_state(beginning_of(row.beginning)) or {}
    path = path_of_messages(state)
    count = turn.lists[path[0]].item_count if path and path[0] in turn.lists else 0
    known = parent.lists.get(path[0], EMPTY).item_count if path and parent is not None else 0
    last = messages_of(state)[-1:] if count > known else ()
    return note_of(max(0, count - known), last[0] if last else None, changes_of(before, fields, CHARTED))


def _turn(row: BeginningRow, base: Mapping[str, Mark] | None, fields: Mapping[str, Any], *, whole: bool) -> Turn:
    """Return the turn of a checkpoint.

    Args:
        row: The checkpoint.
        base: The marks of the lists of the row it builds on.
        fields: The small fields of its state.
        whole: Whether it builds on no other row.
    """
    lists: dict[str, Mark] = {}
    try:
        header = outline(beginning_of(row.beginning))
        known = {**(dict.fromkeys(header.lists, EMPTY) if whole else base or {}), **header.marks}
        lists = {name: known[name] for name in header.lists if name in known}
    except CorruptCheckpoint:
        pass
    tokens, iterations = _number(fields, TOKENS), _number(fields, ITERATIONS)
    return Turn(
        checkpoint_id=row.checkpoint_id,
        created_at=aware(row.created_at),
        confidence=_number(fields, CONFIDENCE),
        tokens=None if tokens is None else int(tokens),
        iterations=None if iterations is None else int(iterations),
        lists=lists,
    )


def _fields(row: BeginningRow) -> Mapping[str, Any]:
    """Return a state without the items of its lists; empty if the row's beginning does not contain it."""
    try:
        head = outline(beginning_of(row.beginning)).head
        return {} if head is None else decode_state_text(head, "")
    except CorruptCheckpoint:
        return {}


def _number(fields: Mapping[str, Any], names: Sequence[str]) -> float | None:
    """Return the first of these fields that is a number."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and -1e18 < value < 1e18:
            return value
    return None
