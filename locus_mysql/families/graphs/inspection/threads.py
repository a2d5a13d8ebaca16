"""Reads threads of graphs, and of other savers that keep every checkpoint, for the inspector: `GraphThreads`. No I/O.

`GraphChanges` deletes and copies them, for the inspector and ``rm``.

Values are decoded without LangGraph, and no stored object is constructed; see `msgpack`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from ....config import MySQLConfig
from ....dialect import Query
from ....dialect.words import patterns_of
from ....engine.operation import Operation, Outdated, fetch
from ....errors import CorruptCheckpoint, SetupError
from ....records.tables import Row
from ....runtime.arguments import check_limit, check_text, check_thread_id, encode_metadata, tenant_of
from ....runtime.exact_json import queryable_json, strings_of
from ....runtime.matching import Containment
from ....runtime.sealing import Sealing
from ....runtime.server_rows import aware
from ...inspection.changes import OwnerChanges
from ...inspection.conversation import messages_of
from ...inspection.item_records import ThreadMarker
from ...inspection.msgpack import metadata_of
from ...inspection.owner_rows import text_of
from ...inspection.owners import Having, OwnerThreads
from ...inspection.records import (
    CheckpointRow,
    Hit,
    Page,
    StateView,
    Tagged,
    ThreadPreview,
    ThreadRow,
    Turn,
)
from ...inspection.sources import (
    PAGE_LIMIT,
    RECENT_CHECKPOINTS,
    RECENT_THREADS,
    Deferred,
    from_cursor,
    hits_in,
    time_text,
    to_cursor,
)
from ..family import tables
from ..loading import BaseCache, Loading
from ..operations import GraphOperations, copy_thread
from ..payload import stored_thread
from ..records import ChannelHistory, LoadedGraphCheckpoint
from ..statements import inspection
from ..statements.inspection import HistoryRow, TaggedRow
from ..statements.tables import LAG_S, ThreadKey, check_id, checkpoint_key, conditions, graph_dialect, ns_key
from ..statements.threads import PAGE
from ..store import DEFAULT_NAMESPACE
from ..values import EncodedValue
from .graph_state import GraphState, stored_as_writes, view_of
from .previews import read_previews
from .turns import outline_of, read_lists, turns_of

#: The maximum number of threads that a page with a filter by metadata examines.
EXAMINED = 500

#: Threads whose newest states a search reads.
SEARCHED = 200

#: Checkpoints whose metadata is compared here if the server refuses to compare damaged metadata.
RECENT_LIMIT = 2_000

#: The maximum number of bytes of states that a search reads.
SEARCHED_BYTES = 33_554_432

#: The namespace of a graph itself. Those of its subgraphs have names.
_ROOT = ""

#: Namespaces that are tried in turn if the caller names none: that of LangGraph's graphs, and that of other savers.
ROOTS = (_ROOT, DEFAULT_NAMESPACE)


class GraphThreads(OwnerThreads):
    """The threads of one tenant in the family ``graphs``.

    Args:
        config: The options.
    """

    turns_at_once = 100

    lag = timedelta(seconds=LAG_S)

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(tables(config.table_prefix), config, inspection.NEWEST)
        self.sql = graph_dialect(config.table_prefix)
        self._sealing = Sealing(config.encryption, self.schema.family)
        self._loading = Loading(self.sql, BaseCache(0), self._sealing)

    def _having(self, name: str, value: Any) -> Operation[Having | None]:
        """See `OwnerThreads._having`. Graphs' metadata has no index, so it is compared here."""
        return Having(read=EXAMINED)
        yield

    def _thread(self, row: Row) -> ThreadRow:
        checkpoint_id, found, saved_at = row[":newest"]
        metadata, damage = metadata_of(found)
        thread = replace(super()._thread(row), metadata=metadata, damage=damage)
        thread = replace(thread, checkpoint_id=None if checkpoint_id is None else text_of(checkpoint_id))
        return thread if saved_at is None else replace(thread, updated_at=max(thread.updated_at, aware(saved_at)))

    def history(
        self, thread_id: str, limit: int, cursor: str | None, at: datetime | None
    ) -> Operation[Page[CheckpointRow]]:
        """See `OwnerThreads.history`; of all namespaces. One round trip."""
        check_thread_id(thread_id)
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        before = None if cursor is None else int(from_cursor(cursor, int)[0])
        until = None if at is None else time_text(at)
        rows = yield from self._history(thread_id, limit + 1, before_seq=before, until=until)
        items = [_checkpoint(row) for row in rows[:limit]]
        return Page(items, to_cursor(rows[limit - 1].seq) if len(rows) > limit else None)

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None, *, partly: bool = False
    ) -> Operation[Deferred[StateView] | None]:
        """See `OwnerThreads.state`. Two round trips.

        Without a namespace, tries ``ROOTS`` in turn, and then the namespace of the newest checkpoint.
        """
        read = yield from self._read(thread_id, checkpoint_id, namespace, at)
        return None if read is None else partial(view_of, replace(read, partly=partly))

    def turns(self, thread_id: str, limit: int, at: datetime | None) -> Operation[Deferred[list[Turn]]]:
        """See `OwnerThreads.turns`; the iterations of a graph are its steps.

        Two round trips: one for the rows without their parts, one for the conversation of the newest. One more for each
        branch whose conversation begins differently, up to `LISTS`.
        """
        check_thread_id(thread_id)
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        until = None if at is None else time_text(at)
        pieces = {"conditions": conditions(inspection.CONDITIONS, {"until": until})}
        for ns in ROOTS:
            key = ThreadKey(self._tenant, thread_id)
            find = inspection.OUTLINES(self.sql, key, ns_key=ns_key(ns), limit=limit, until=until, pieces=pieces)
            rows = yield from fetch(find)
            if rows:
                break
        thread = stored_thread(self._tenant, thread_id, self._sealing)
        outlines = [outline_of(thread, row) for row in rows]
        lists = yield from read_lists(self._loading, self._tenant, thread_id, ns, outlines)
        return partial(turns_of, outlines, lists)

    def previews(self, thread_ids: Sequence[str]) -> Operation[Deferred[Mapping[str, ThreadPreview]]]:
        """See `OwnerThreads.previews`. Two round trips: the second reads the ends of long conversations."""
        if not thread_ids:
            return dict
        return (yield from read_previews(self.sql, self._tenant, thread_ids, self._sealing))

    def search(self, query: str, limit: int) -> Operation[Deferred[list[Hit]]]:
        """See `OwnerThreads.search`.

        Graphs have no full-text index, so this reads the newest states of the `SEARCHED` threads saved last, up to
        `SEARCHED_BYTES`, with at least one round trip for each thread.
        """
        words = patterns_of(check_text(query, "Query"), self._parser)
        limit = check_limit(limit)
        if not words or not limit:
            return list
        states: list[GraphState] = []
        size_bytes = 0
        last: dict[str, Any] = {"limit": SEARCHED, "offset": 0, "others": SEARCHED - 1, "pieces": {"which": ""}}
        newest = yield from fetch(PAGE(self.sql, tenant=self._tenant, **last))
        for row in newest:
            read = yield from self._read(row.thread_id, None, "", None)
            if read is None:
                continue
            size_bytes += read.size_bytes
            if size_bytes > SEARCHED_BYTES:
                break
            states.append(read)
        return partial(_hits, states, words, limit)

    def by_metadata(self, key: str, value: Any, limit: int) -> Operation[list[Tagged]]:
        """See `OwnerThreads.by_metadata`; only among the newest, as graphs' metadata has no index."""
        limit = check_limit(limit)
        encode_metadata({check_text(key, "Metadata key"): value})
        pair = queryable_json({key: value})
        if pair is None:  # no metadata can contain such a value
            return []
        chosen = {"tenant": self._tenant, "threads": RECENT_THREADS, "checkpoints": RECENT_CHECKPOINTS}
        try:
            pieces = {"holds": inspection.HOLDS}
            rows = yield from fetch(inspection.BY_METADATA(self.sql, pair=pair, limit=limit, pieces=pieces, **chosen))
        except (Outdated, SetupError):  # errors 3141 and 3157: metadata was changed by hand
            rows = yield from fetch(
                inspection.BY_METADATA(self.sql, limit=RECENT_LIMIT, pieces={"holds": ""}, **chosen)
            )
        containment = Containment(value)
        tagged = [Tagged(self.family, row.thread_id, _checkpoint(row)) for row in rows]
        return [
            one for one in tagged if key in one.checkpoint.metadata and containment.within(one.checkpoint.metadata[key])
        ][:limit]

    def markers(self, thread_ids: Sequence[str]) -> Query[ThreadMarker]:
        """Return a query of those of these threads that exist, each with a value that every write changes."""
        return inspection.MARKERS(self.sql, tenant=self._tenant, thread_ids=list(thread_ids))

    def _history(self, thread_id: str, limit: int, **chosen: Any) -> Operation[Sequence[HistoryRow]]:
        """Return checkpoints, the newest first.

        Args:
            thread_id: The thread.
            limit: The maximum number.
            chosen: Parameters of `inspection.CONDITIONS`.
        """
        pieces = {"conditions": conditions(inspection.CONDITIONS, chosen)}
        key = ThreadKey(self._tenant, thread_id)
        return (yield from fetch(inspection.HISTORY(self.sql, key, limit=limit, pieces=pieces, **chosen)))

    def _read(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None
    ) -> Operation[GraphState | None]:
        """Return a checkpoint's row and the bytes of its values. See `state`."""
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_id(checkpoint_id, "Checkpoint id")
        until = None if at is None else time_text(at)
        for ns in (namespace,) if namespace else ROOTS:
            read = yield from self._read_in(thread_id, checkpoint_id, ns, until)
            if read is not None:
                return read
        if namespace:
            return None
        newest = yield from self._history(thread_id, 1)
        if not newest:
            return None
        return (yield from self._read_in(thread_id, checkpoint_id, newest[0].namespace, until))

    def _read_in(
        self, thread_id: str, checkpoint_id: str | None, ns: str, until: str | None
    ) -> Operation[GraphState | None]:
        chosen: dict[str, Any] = {"newest_of": ns_key(ns)}
        if checkpoint_id is not None:
            chosen = {"checkpoint_key": checkpoint_key(ns, checkpoint_id)}
        rows = yield from self._history(thread_id, 1, until=until, **chosen)
        if not rows:
            return None
        checkpoint, next_seq = _checkpoint(rows[0]), rows[0].seq + 1
        try:
            page, _ = yield from self._loading.page(self._tenant, thread_id, 1, ns=ns, before_seq=next_seq)
        except CorruptCheckpoint as error:
            return GraphState(thread_id, checkpoint, damage=str(error))
        if not page or page[0].checkpoint_id != checkpoint.checkpoint_id:
            return None  # deleted meanwhile
        (loaded,) = page
        values = {name: _bytes_of(loaded, name) for name in loaded.labels}
        apart: Mapping[str, ChannelHistory] = {}
        damage = None
        names = [name for name in stored_as_writes(checkpoint.metadata) if name not in values]
        if names:
            try:
                apart = yield from self._loading.channel_history(
                    self._tenant, thread_id, ns, checkpoint.checkpoint_id, names
                )
            except CorruptCheckpoint as error:
                damage = str(error)
        return GraphState(thread_id, checkpoint, values, loaded.writes, apart, damage)


def _bytes_of(loaded: LoadedGraphCheckpoint, name: str) -> EncodedValue | str:
    """Return the bytes of a channel, or a message about its damage."""
    try:
        return loaded.value(name)
    except CorruptCheckpoint as error:
        return str(error)


def _hits(states: Sequence[GraphState], words: Sequence[re.Pattern[str]], limit: int) -> list[Hit]:
    """Return the states that contain words, best first."""
    views = {view.thread_id: view for view in map(view_of, states) if view.damage is None}

    def hit(thread_id: str, around: str, score: float) -> Hit:
        view, saved = views[thread_id], views[thread_id].checkpoint
        return Hit(view.family, thread_id, saved.checkpoint_id, around, score, saved.created_at)

    return hits_in([(thread_id, _text(view)) for thread_id, view in views.items()], words, limit, hit)


def _text(view: StateView) -> str:
    """Return the text of the messages of a state, and all other texts of it."""
    texts = [message.text for message in messages_of(view.state)]
    rest = {name: value for name, value in view.state.items() if name != "messages" or not texts}
    return "\n".join([*texts, *strings_of(rest)])


def _checkpoint(row: HistoryRow | TaggedRow) -> CheckpointRow:
    metadata, damage = metadata_of(row.metadata)
    return CheckpointRow(
        namespace=row.namespace,
        checkpoint_id=row.checkpoint_id,
        parent_id=row.parent_id,
        created_at=aware(row.created_at),
        size_bytes=int(row.size_bytes),
        metadata=metadata,
        damage=damage,
    )


class GraphChanges(OwnerChanges):
    """See `OwnerChanges`.

    Args:
        config: The options.
    """

    has_history = True

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(tables(config.table_prefix), config)
        self._tenant = tenant_of(config)
        self._operations = GraphOperations(config)
        self._removing = self._operations.removing

    def delete(self, thread_id: str, checkpoint_id: str | None, namespace: str) -> Operation[bool]:
        """Delete a thread or one of its checkpoints; False if it does not exist."""
        if checkpoint_id is None:
            return (yield from self._removing.delete_thread(self._tenant, thread_id))
        for ns in (namespace,) if namespace else ROOTS:
            if (yield from self._removing.delete_checkpoint(self._tenant, thread_id, ns, checkpoint_id)):
                return True
        return False

    def copy(self, source: str, target: str) -> Operation[bool]:
        """Copy a whole thread; False if it does not exist."""
        return (yield from copy_thread(self._operations, self._tenant, source, target))
