"""`GraphThreads`: reads threads of graphs, and of other savers that keep every checkpoint, for the inspector. No I/O.

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
from ....dialect.graphs import GraphDialect
from ....dialect.graphs.inspection import HistoryRow, OutlineRow, PageFilter, TaggedRow, ThreadPosition, ThreadSummary
from ....dialect.graphs.pieces import LAG_S
from ....dialect.inspection import ThreadMarker
from ....dialect.words import excerpt, patterns_of, scores
from ....engine.operation import Batch, Operation, Outdated, fetch
from ....errors import CorruptCheckpoint, InvalidInput, SetupError
from ....records.log_digests import EMPTY
from ....runtime.arguments import check_limit, check_text, check_thread_id, encode_metadata
from ....runtime.exact_json import queryable_json, strings_of
from ....runtime.matching import Containment
from ....runtime.sealing import Sealing
from ....runtime.server_times import aware
from ...inspection.conversation import messages_of
from ...inspection.cursors import from_cursor, to_cursor
from ...inspection.first_saved import hash_prefixes
from ...inspection.records import (
    CheckpointRow,
    Hit,
    Page,
    StateView,
    Statistics,
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
    ThreadFilter,
    time_text,
)
from ...inspection.to_json import metadata_of
from .. import keys
from ..ancestry import Ancestry
from ..arguments import check_id
from ..base_cache import BaseCache
from ..loading import Loading
from ..payload import unpack
from ..records import ChannelHistory, LoadedGraphCheckpoint
from ..sealed_rows import StoredThread, checkpoint_identity, stored_thread
from ..store import DEFAULT_NAMESPACE
from ..values import EncodedValue
from .graph_state import GraphState, view_of
from .previews import LARGEST_WRITE, WRITES, heads_of, previews_of
from .statistics import statistics_of
from .token_usage import MESSAGES, Outline, log_of, mark_of_stored, turns_of
from .values_as_json import fingerprint, stored_as_writes

#: The maximum number of threads that a filtered page examines, and the size of a batch. The next page continues after
#: them.
EXAMINED, AT_ONCE = 2_000, 200

#: Threads whose ids a page compares with a pattern that begins with a wildcard.
STEP = 50_000

#: Threads whose newest states a search reads.
SEARCHED = 200

#: Checkpoints whose metadata is compared here if the server refuses to compare damaged metadata.
RECENT_LIMIT = 2_000

#: The maximum number of bytes of states that a search reads.
SEARCHED_BYTES = 33_554_432

#: The maximum number of conversations that are read for the turns of a thread, one for each branch with a different
#: beginning; and their most bytes in all.
LISTS, LISTS_BYTES = 4, 67_108_864

#: The namespace of a graph itself. Those of its subgraphs have names.
_ROOT = ""

#: Namespaces that are tried in turn if the caller names none: that of LangGraph's graphs, and that of other savers.
ROOTS = (_ROOT, DEFAULT_NAMESPACE)


class GraphThreads:
    """The threads of one tenant in the family ``graphs``: a `ThreadSource`.

    Args:
        config: The options.
    """

    family: str = "graphs"
    turns_at_once = 100

    def __init__(self, config: MySQLConfig) -> None:
        self.sql = GraphDialect(config.table_prefix)
        self.schema = self.sql.schema
        self._tenant = config.tenant
        self._parser = config.search_parser
        self._sealing = Sealing(config.encryption, self.schema.family)
        self._loading = Loading(self.sql, BaseCache(0), self._sealing)
        self._ancestry = Ancestry(self.sql, self._sealing)

    def threads(self, wanted: ThreadFilter, limit: int, cursor: str | None) -> Operation[Page[ThreadRow]]:
        """See `ThreadSource.threads`. One round trip, more if few of the examined threads pass a filter."""
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        asked = PageFilter(
            check_text(wanted.pattern, "Pattern").replace("**", "*"),
            None if cursor is None else _position_in(cursor),
            None if wanted.saved_after is None else time_text(wanted.saved_after, less=timedelta(seconds=LAG_S)),
            None if wanted.saved_before is None else time_text(wanted.saved_before),
        )
        end: ThreadPosition | None = None
        if (
            asked.pattern.startswith(("*", "?")) and asked.pattern != "*"
        ):  # no index helps: examine a bounded number of threads
            last = yield from fetch(self.sql.inspection.end(self._tenant, asked, STEP))
            end = ThreadPosition(str(last[0].updated_at), last[0].thread_id) if last else None
        filtered = wanted.metadata is not None or wanted.min_bytes is not None
        containment = None if wanted.metadata is None else Containment(wanted.metadata[1])
        threads: list[ThreadRow] = []
        examined, size = 0, limit
        while True:
            find = self.sql.inspection.threads(self._tenant, keys.ns_key(_ROOT), size, asked, end)
            page = yield from fetch(find)
            examined += len(page)
            for row in page:
                asked = replace(asked, after=row.position)
                thread = _thread(row)
                if _fits(thread, wanted, containment):
                    threads.append(thread)
                    if len(threads) == limit:
                        break
            else:
                if len(page) < size:
                    asked = replace(asked, after=end)
                    break
            if len(threads) == limit or examined >= EXAMINED:
                break
            size = max(limit - len(threads), AT_ONCE) if filtered else limit - len(threads)
        threads.sort(key=lambda thread: (thread.updated_at, thread.thread_id), reverse=True)
        return Page(threads, None if asked.after is None else to_cursor(*asked.after))

    def thread(self, thread_id: str) -> Operation[ThreadRow | None]:
        """See `ThreadSource.thread`. One round trip."""
        check_thread_id(thread_id)
        find = self.sql.inspection.thread(self._tenant, keys.ns_key(_ROOT), thread_id)
        rows = yield from fetch(find)
        return _thread(rows[0]) if rows else None

    def history(
        self, thread_id: str, limit: int, cursor: str | None, at: datetime | None
    ) -> Operation[Page[CheckpointRow]]:
        """See `ThreadSource.history`; of all namespaces. One round trip."""
        check_thread_id(thread_id)
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        before = None if cursor is None else int(from_cursor(cursor, int)[0])
        until = None if at is None else time_text(at)
        find = self.sql.inspection.history(self._tenant, thread_id, limit + 1, before, until)
        rows = yield from fetch(find)
        items = [_checkpoint(row) for row in rows[:limit]]
        return Page(items, to_cursor(rows[limit - 1].seq) if len(rows) > limit else None)

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None, *, partly: bool = False
    ) -> Operation[Deferred[StateView] | None]:
        """See `ThreadSource.state`. Two round trips.

        Without a namespace, tries ``ROOTS`` in turn, and then the namespace of the newest checkpoint.
        """
        read = yield from self._read(thread_id, checkpoint_id, namespace, at)
        return None if read is None else partial(view_of, replace(read, partly=partly))

    def turns(self, thread_id: str, limit: int, at: datetime | None) -> Operation[Deferred[list[Turn]]]:
        """See `ThreadSource.turns`; the iterations of a graph are its steps.

        Two round trips: one for the rows without their parts, one for the conversation of the newest. One more for each
        branch whose conversation begins differently, up to `LISTS`.
        """
        check_thread_id(thread_id)
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        until = None if at is None else time_text(at)
        for ns in ROOTS:
            find = self.sql.inspection.outlines(self._tenant, thread_id, keys.ns_key(ns), limit, until)
            rows = yield from fetch(find)
            if rows:
                break
        thread = stored_thread(self._tenant, thread_id, self._sealing)
        outlines = [_outline(thread, row) for row in rows]
        waiting = {mark_of_stored(one.messages): one.messages for one in outlines if one.messages is not None}
        waiting.pop(EMPTY, None)
        lists: list[EncodedValue] = []
        size_bytes = 0
        while waiting and len(lists) < LISTS and (size_bytes := size_bytes + next(iter(waiting)).length) <= LISTS_BYTES:
            longest = waiting.pop(next(iter(waiting)))
            try:
                lists.append((yield from self._loading.value(self._tenant, thread_id, ns, longest)))
            except CorruptCheckpoint:
                continue
            known = log_of(lists[-1])
            hash_prefixes(known, waiting)
            waiting = {mark: value for mark, value in waiting.items() if not known.begins_with(mark)}
        return partial(turns_of, outlines, lists)

    def previews(self, thread_ids: Sequence[str]) -> Operation[Deferred[Mapping[str, ThreadPreview]]]:
        """See `ThreadSource.previews`. Two round trips: the second reads the ends of long conversations."""
        if not thread_ids:
            return dict
        root, sql = keys.ns_key(_ROOT), self.sql.previews
        heads = sql.heads(self._tenant, root, thread_ids)
        stopped = sql.stopped(self._tenant, root, thread_ids, WRITES, LARGEST_WRITE)
        results = yield Batch((heads, stopped), atomic=False)
        found = heads_of(self._tenant, results.rows(heads), results.rows(stopped), self._sealing)
        wanted = [part for head in found for part in head.wanted_parts()]
        rows = (yield from fetch(sql.parts(self._tenant, wanted))) if wanted else []
        return partial(previews_of, found, rows)

    def search(self, query: str, limit: int) -> Operation[Deferred[list[Hit]]]:
        """See `ThreadSource.search`.

        Graphs have no full-text index, so this reads the newest states of the `SEARCHED` threads saved last, up to
        `SEARCHED_BYTES`, with at least one round trip for each thread.
        """
        words = patterns_of(check_text(query, "Query"), self._parser)
        limit = check_limit(limit)
        if not words or not limit:
            return list
        states: list[GraphState] = []
        size_bytes = 0
        newest = yield from fetch(self.sql.threads.list(self._tenant, "*", SEARCHED, 0))
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
        """See `ThreadSource.by_metadata`; only among the newest, as graphs' metadata has no index."""
        limit = check_limit(limit)
        encode_metadata({check_text(key, "Metadata key"): value})
        pair = queryable_json({key: value})
        if pair is None:  # no metadata can contain such a value
            return []
        inspection, wanted = self.sql.inspection, (RECENT_THREADS, RECENT_CHECKPOINTS)
        try:
            find = inspection.by_metadata(self._tenant, *wanted, pair, limit)
            rows = yield from fetch(find)
        except (Outdated, SetupError):  # errors 3141 and 3157: metadata was changed by hand
            find = inspection.by_metadata(self._tenant, *wanted, None, RECENT_LIMIT)
            rows = yield from fetch(find)
        containment = Containment(value)
        tagged = [Tagged(self.family, row.thread_id, _checkpoint(row)) for row in rows]
        return [
            one for one in tagged if key in one.checkpoint.metadata and containment.within(one.checkpoint.metadata[key])
        ][:limit]

    def statistics(self) -> Operation[Statistics]:
        """See `ThreadSource.statistics`."""
        return (yield from statistics_of(self.family, self.sql, self._tenant, self.thread))

    def markers(self, thread_ids: Sequence[str]) -> Query[ThreadMarker]:
        """See `ThreadSource.markers`."""
        return self.sql.inspection.markers(self._tenant, thread_ids)

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
        newest = yield from fetch(self.sql.inspection.history(self._tenant, thread_id, 1))
        if not newest:
            return None
        return (yield from self._read_in(thread_id, checkpoint_id, newest[0].namespace, until))

    def _read_in(
        self, thread_id: str, checkpoint_id: str | None, ns: str, until: str | None
    ) -> Operation[GraphState | None]:
        checkpoint_key = None if checkpoint_id is None else keys.checkpoint_key(ns, checkpoint_id)
        chosen = self.sql.inspection.checkpoint(self._tenant, thread_id, keys.ns_key(ns), checkpoint_key, until)
        rows = yield from fetch(chosen)
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
                apart = yield from self._ancestry.channel_history(
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


def _outline(thread: StoredThread, row: OutlineRow) -> Outline:
    """Return the outline of a checkpoint of a thread."""
    messages, damaged = None, False
    values: Mapping[str, Any] = {}
    try:
        identity = checkpoint_identity(thread, row.checkpoint_key, row.parent_key, row.needs, row.metadata)
        found = unpack(row.payload, row.stored_seq, identity).values
        held = found.get(MESSAGES)
        messages = None if held is None else held.value
        values = {name: fingerprint(one.value) for name, one in found.items()}
    except CorruptCheckpoint:
        damaged = True
    return Outline(row.checkpoint_id, row.parent_id, aware(row.created_at), row.metadata, messages, damaged, values)


def _hits(states: Sequence[GraphState], words: Sequence[re.Pattern[str]], limit: int) -> list[Hit]:
    """Return the states that contain words, best first."""
    views = [view for view in map(view_of, states) if view.damage is None]
    texts = list(map(_text, views))
    matches = [[word.search(text) for word in words] for text in texts]
    hits: list[Hit] = []
    for view, text, found, score in zip(views, texts, matches, scores(matches), strict=True):
        if score:
            around = excerpt(text, next(match.start() for match in found if match))
            saved = view.checkpoint
            hits.append(Hit(view.family, view.thread_id, saved.checkpoint_id, around, score, saved.created_at))
    hits.sort(key=lambda hit: (hit.score, hit.created_at), reverse=True)
    return hits[:limit]


def _text(view: StateView) -> str:
    """Return the text of the messages of a state, and all other texts of it."""
    texts = [message.text for message in messages_of(view.state)]
    rest = {name: value for name, value in view.state.items() if name != "messages" or not texts}
    return "\n".join([*texts, *strings_of(rest)])


def _thread(row: ThreadSummary) -> ThreadRow:
    known, damage = metadata_of(row.metadata)
    times = [aware(time) for time in (row.updated_at, row.saved_at) if time is not None]
    return ThreadRow(
        family="graphs",
        thread_id=row.thread_id,
        created_at=aware(row.created_at),
        updated_at=max(times),
        checkpoints=int(row.checkpoints),
        size_bytes=int(row.size_bytes),
        checkpoint_id=row.checkpoint_id,
        metadata=known,
        damage=damage,
    )


def _checkpoint(row: HistoryRow | TaggedRow) -> CheckpointRow:
    known, damage = metadata_of(row.metadata)
    return CheckpointRow(
        namespace=row.namespace,
        checkpoint_id=row.checkpoint_id,
        parent_id=row.parent_id,
        created_at=aware(row.created_at),
        size_bytes=int(row.size_bytes),
        metadata=known,
        damage=damage,
    )


def _fits(thread: ThreadRow, wanted: ThreadFilter, containment: Containment | None) -> bool:
    """Return whether a thread passes the filters."""
    if wanted.min_bytes is not None and thread.size_bytes < wanted.min_bytes:
        return False
    if wanted.saved_after is not None and thread.updated_at < wanted.saved_after:
        return False
    if wanted.saved_before is not None and thread.updated_at >= wanted.saved_before:
        return False
    if wanted.metadata is None or containment is None:
        return True
    name, _ = wanted.metadata
    return name in thread.metadata and containment.within(thread.metadata[name])


def _position_in(cursor: str) -> ThreadPosition:
    """Return the position in a cursor."""
    time, thread_id = from_cursor(cursor, str, str)
    try:
        return ThreadPosition(str(datetime.fromisoformat(time)), thread_id)
    except ValueError:
        raise InvalidInput("The cursor does not come from a page of this list. Begin at the first page.") from None
