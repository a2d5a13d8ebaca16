"""Looking at the threads of LangGraph's graphs, and of other savers that keep every checkpoint. No I/O.

Values are shown without LangGraph and without making objects of what is stored; see `msgpack`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from ..config import MySQLConfig
from ..dialect import Statement
from ..dialect.graphs import VersionDialect
from ..dialect.graphs.inspection import Asked, Place
from ..dialect.graphs.threads import LAG_S
from ..drivers.interface import Row
from ..engine.operation import Batch, Operation, Outdated
from ..errors import CorruptCheckpoint, InvalidInput, SetupError
from ..families.checkpoints.coding.digests import EMPTY
from ..families.checkpoints.searchable import excerpt
from ..families.graphs import keys
from ..families.graphs.arguments import check_id
from ..families.graphs.loading import Loading, aware
from ..families.graphs.payload import unpack
from ..families.graphs.places import text_checksum, version_place
from ..families.graphs.records import ChannelHistory, LoadedVersion
from ..families.graphs.saver import DEFAULT_NAMESPACE
from ..families.graphs.sealed import thread_checksum
from ..families.graphs.values import Encoded
from ..families.graphs.version_cache import VersionMemory
from ..families.memories.arguments import strings_of
from ..runtime.arguments import check_limit, check_text, check_thread_id, encode_metadata
from ..runtime.exact_json import queryable_json
from ..runtime.matching import Containment
from .conversation import messages_of
from .cursors import from_cursor, to_cursor
from .first_saved import hash_prefixes
from .graph_states import GraphState, view_of
from .graph_turns import MESSAGES, Outline, log_of, mark_of_stored, turns_of
from .graph_values import stored_as_writes
from .records import (
    CheckpointRow,
    Day,
    Hit,
    LargeThread,
    Page,
    StateView,
    Statistics,
    Tagged,
    ThreadFamily,
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
from .to_json import metadata_of

#: Threads of which a filtered page looks at most at so many, so many at a time; the next page goes on behind them.
LOOKED_AT, AT_ONCE = 2_000, 200

#: Threads among whose ids a page looks for a pattern that begins with a wildcard.
STEP = 50_000

#: Threads whose newest states a search looks through.
SEARCHED = 200

#: Words of a search that are looked for; each is looked for in all that those threads hold.
WORDS = 32

#: Checkpoints whose metadata is compared here, where the server cannot compare that of one of them.
LATELY_LIMIT = 2_000

#: Bytes of those states that it looks through.
SEARCHED_BYTES = 33_554_432

#: Conversations that are read, one for each branch that begins otherwise, and their bytes, where numbers of a thread's
#: turns are wanted.
LISTS, LISTS_BYTES = 4, 67_108_864

#: Days, and large threads, that statistics tell of.
DAYS, LARGEST = 30, 10

#: Threads by which they tell, roughly, where there are more.
SAMPLE = 2_500

_LEAST_LIFE = timedelta(hours=1)

#: The namespace of a graph itself; those of its subgraphs have names.
_ROOT = ""

#: A word, not a part of one.
_WORD = r"(?<!\w){}(?!\w)"


class GraphThreads:
    """The threads of the family ``versions``, of one tenant: a `ThreadSource`.

    Args:
        config: The options.
    """

    family: ThreadFamily = "versions"

    def __init__(self, config: MySQLConfig) -> None:
        self.sql = VersionDialect(config.table_prefix)
        self.schema = self.sql.schema
        self._tenant = config.tenant
        self._loading = Loading(self.sql, VersionMemory(0))

    def threads(self, wanted: Wanted, limit: int, cursor: str | None) -> Operation[Page[ThreadRow]]:
        """See `ThreadSource.threads`. One round trip, unless few of those looked at fit a filter."""
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        asked = Asked(
            check_text(wanted.pattern, "Pattern").replace("**", "*"),
            None if cursor is None else _behind(cursor),
            None if wanted.saved_after is None else time_text(wanted.saved_after, less=timedelta(seconds=LAG_S)),
            None if wanted.saved_before is None else time_text(wanted.saved_before),
        )
        end: Place | None = None
        if asked.pattern.startswith(("*", "?")) and asked.pattern != "*":  # no index helps: a bounded part is looked at
            (found,) = yield Batch.query(self.sql.inspection.end(self._tenant, asked, STEP))
            end = _place(found.rows[0]) if found.rows else None
        filtered = wanted.metadata is not None or wanted.min_bytes is not None
        looked_for = None if wanted.metadata is None else Containment(wanted.metadata[1])
        threads: list[ThreadRow] = []
        looked_at, size = 0, limit
        while True:
            (page,) = yield Batch.query(self.sql.inspection.threads(self._tenant, keys.ns_key(_ROOT), size, asked, end))
            looked_at += len(page.rows)
            for row in page.rows:
                asked = replace(asked, behind=(str(row[2]), cast(str, row[0])))
                thread = _thread(row)
                if _fits(thread, wanted, looked_for):
                    threads.append(thread)
                    if len(threads) == limit:
                        break
            else:
                if len(page.rows) < size:
                    asked = replace(asked, behind=end)
                    break
            if len(threads) == limit or looked_at >= LOOKED_AT:
                break
            size = max(limit - len(threads), AT_ONCE) if filtered else limit - len(threads)
        threads.sort(key=lambda thread: (thread.updated_at, thread.thread_id), reverse=True)
        return Page(threads, None if asked.behind is None else to_cursor(*asked.behind))

    def thread(self, thread_id: str) -> Operation[ThreadRow | None]:
        """See `ThreadSource.thread`. One round trip."""
        check_thread_id(thread_id)
        (found,) = yield Batch.query(self.sql.inspection.thread(self._tenant, keys.ns_key(_ROOT), thread_id))
        return _thread(found.rows[0]) if found.rows else None

    def history(
        self, thread_id: str, limit: int, cursor: str | None, at: datetime | None
    ) -> Operation[Page[CheckpointRow]]:
        """See `ThreadSource.history`; of all namespaces. One round trip."""
        check_thread_id(thread_id)
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        before = None if cursor is None else int(from_cursor(cursor, int)[0])
        until = None if at is None else time_text(at)
        (found,) = yield Batch.query(self.sql.inspection.history(self._tenant, thread_id, limit + 1, before, until))
        rows = found.rows
        items = [_checkpoint(row) for row in rows[:limit]]
        return Page(items, to_cursor(cast(int, rows[limit - 1][0])) if len(rows) > limit else None)

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None, *, partly: bool = False
    ) -> Operation[Made[StateView] | None]:
        """See `ThreadSource.state`. Two round trips.

        Without a namespace, that of savers which call it ``default`` is looked at as well, and then that of the newest
        checkpoint.
        """
        read = yield from self._read(thread_id, checkpoint_id, namespace, at)
        return None if read is None else partial(view_of, replace(read, partly=partly))

    def turns(self, thread_id: str, limit: int, at: datetime | None) -> Operation[Made[list[Turn]]]:
        """See `ThreadSource.turns`; the iterations of a graph are its steps.

        Two round trips: one for the rows without their parts, one for the conversation of the newest. For each branch
        whose conversation begins otherwise, up to `LISTS`, another one.
        """
        check_thread_id(thread_id)
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        until = None if at is None else time_text(at)
        (found,) = yield Batch.query(
            self.sql.inspection.outlines(self._tenant, thread_id, keys.ns_key(_ROOT), limit, until)
        )
        thread = thread_checksum(self._tenant, thread_id)
        outlines = [_outline(thread, row) for row in found.rows]
        waiting = {mark_of_stored(one.messages): one.messages for one in outlines if one.messages is not None}
        waiting.pop(EMPTY, None)
        lists: list[Encoded] = []
        size_bytes = 0
        while waiting and len(lists) < LISTS and (size_bytes := size_bytes + next(iter(waiting)).length) <= LISTS_BYTES:
            longest = waiting.pop(next(iter(waiting)))
            try:
                lists.append((yield from self._loading.value(self._tenant, thread_id, _ROOT, longest)))
            except CorruptCheckpoint:
                continue
            known = log_of(lists[-1])
            hash_prefixes(known, waiting)
            waiting = {mark: value for mark, value in waiting.items() if not known.begins_with(mark)}
        return partial(turns_of, outlines, lists)

    def search(self, query: str, limit: int) -> Operation[Made[list[Hit]]]:
        """See `ThreadSource.search`.

        Graphs have no full-text index: what the newest states of the threads saved last hold is looked through, up to
        `SEARCHED_BYTES` of it, in a round trip for each thread.
        """
        words = [re.compile(_WORD.format(re.escape(word)), re.IGNORECASE) for word in _words(query)[:WORDS]]
        limit = check_limit(limit)
        if not words or not limit:
            return list
        states: list[GraphState] = []
        size_bytes = 0
        (page,) = yield Batch.query(self.sql.threads.list(self._tenant, "*", SEARCHED, 0))
        for row in page.rows:
            read = yield from self._read(cast(str, row[0]), None, "", None)
            if read is None:
                continue
            size_bytes += read.size_bytes
            if size_bytes > SEARCHED_BYTES:
                break
            states.append(read)
        return partial(_hits, states, words, limit)

    def by_metadata(self, key: str, value: Any, limit: int) -> Operation[list[Tagged]]:
        """See `ThreadSource.by_metadata`; among the newest only, as there is no index of graphs' metadata."""
        limit = check_limit(limit)
        encode_metadata({check_text(key, "Metadata key"): value})
        pair = queryable_json({key: value})
        if pair is None:  # no metadata that is searched holds it
            return []
        inspection, wanted = self.sql.inspection, (LATELY_THREADS, LATELY_CHECKPOINTS)
        try:
            (found,) = yield Batch.query(inspection.by_metadata(self._tenant, *wanted, pair, limit))
        except (Outdated, SetupError):  # errors 3141 and 3157: somebody changed metadata by hand
            (found,) = yield Batch.query(inspection.by_metadata(self._tenant, *wanted, None, LATELY_LIMIT))
        rows = ((cast(str, row[0]), _checkpoint(row)) for row in found.rows)
        looked_for = Containment(value)
        tagged = [
            Tagged(self.family, thread_id, checkpoint)
            for thread_id, checkpoint in rows
            if key in checkpoint.metadata and looked_for.within(checkpoint.metadata[key])
        ]
        return tagged[:limit]

    def statistics(self) -> Operation[Statistics]:
        """See `ThreadSource.statistics`: exact up to some thousand threads, else from a part of them."""
        (found,) = yield Batch.query(self.sql.inspection.count(self._tenant))
        count = _count(found.rows[0][0])
        one_in = max(1, count // SAMPLE)
        measuring = self.sql.inspection.measure(self._tenant, one_in, LARGEST)
        results = yield Batch(measuring, atomic=False, feeds_no_save=True)
        saved, begun, beside, largest = (result.rows for result in results)
        began = {str(day): _count(threads) for day, threads in begun}
        measured = sum(began.values())
        threads = measured if one_in == 1 else count
        scale = threads / measured if measured else 0.0
        days = [
            Day(
                str(day),
                round(began.get(str(day), 0) * scale),
                round(_count(checkpoints) * scale),
                round((_count(own) + _count(parts)) * scale),
            )
            for day, checkpoints, own, parts in saved
        ]
        ids = [cast(str, row[0]) for row in largest]
        if one_in > 1:
            (found,) = yield Batch.query(self.sql.inspection.busiest(self._tenant, LARGEST))
            ids = list(dict.fromkeys([*ids, *(cast(str, row[0]) for row in found.rows)]))
        large = []
        for thread_id in ids:
            thread = yield from self.thread(thread_id)
            if thread is not None:
                life = max(thread.updated_at - thread.created_at, _LEAST_LIFE)
                large.append(LargeThread(thread, thread.size_bytes / (life / timedelta(days=1))))
        large.sort(key=lambda one: one.thread.size_bytes, reverse=True)
        size_bytes = sum(_count(row[2]) for row in saved) + sum(_count(value) for value in beside[0])
        return Statistics(
            family=self.family,
            threads=threads,
            checkpoints=round(sum(_count(row[1]) for row in saved) * scale),
            size_bytes=round(size_bytes * scale),
            whole_bytes=None,
            days=[day for day in days if day.checkpoints][-DAYS:],
            largest=large[:LARGEST],
            sampled=None if one_in == 1 else measured,
        )

    def markers(self, thread_ids: Sequence[str]) -> Statement:
        """See `ThreadSource.markers`."""
        return self.sql.inspection.markers(self._tenant, thread_ids)

    def _read(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None
    ) -> Operation[GraphState | None]:
        """A checkpoint's row and the bytes of its values. See `state`."""
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_id(checkpoint_id, "Checkpoint id")
        until = None if at is None else time_text(at)
        for ns in (namespace,) if namespace else (_ROOT, DEFAULT_NAMESPACE):
            read = yield from self._read_in(thread_id, checkpoint_id, ns, until)
            if read is not None:
                return read
        if namespace:
            return None
        (newest,) = yield Batch.query(self.sql.inspection.history(self._tenant, thread_id, 1))
        if not newest.rows:
            return None
        return (yield from self._read_in(thread_id, checkpoint_id, cast(str, newest.rows[0][1]), until))

    def _read_in(
        self, thread_id: str, checkpoint_id: str | None, ns: str, until: str | None
    ) -> Operation[GraphState | None]:
        version_key = None if checkpoint_id is None else keys.version_key(ns, checkpoint_id)
        chosen = self.sql.inspection.checkpoint(self._tenant, thread_id, keys.ns_key(ns), version_key, until)
        (found,) = yield Batch.query(chosen)
        if not found.rows:
            return None
        checkpoint, seq = _checkpoint(found.rows[0]), cast(int, found.rows[0][0])
        try:
            versions, _ = yield from self._loading.page(self._tenant, thread_id, 1, ns=ns, before_seq=seq + 1)
        except CorruptCheckpoint as error:
            return GraphState(thread_id, checkpoint, damage=str(error))
        if not versions or versions[0].checkpoint_id != checkpoint.checkpoint_id:
            return None  # it went meanwhile
        (version,) = versions
        values = {name: _bytes_of(version, name) for name in version.labels}
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
        return GraphState(thread_id, checkpoint, values, version.writes, apart, damage)


def _bytes_of(version: LoadedVersion, name: str) -> Encoded | str:
    """The bytes of a channel, or what is wrong with it."""
    try:
        return version.value(name)
    except CorruptCheckpoint as error:
        return str(error)


def _outline(thread: int, row: Row) -> Outline:
    """Made from a row of the statement `outlines`; ``thread`` is the thread's checksum."""
    stored_seq, checkpoint_id, parent_id, created_at, payload, metadata, version_key, parent_key, needs = row
    messages, damaged = None, False
    try:
        place = version_place(
            thread,
            cast(bytes, version_key),
            cast("bytes | None", parent_key),
            cast(int, needs),
            text_checksum(cast("str | None", metadata)),
        )
        held = unpack(cast(bytes, payload), cast(int, stored_seq), place).values.get(MESSAGES)
        messages = None if held is None else held.value
    except CorruptCheckpoint:
        damaged = True
    return Outline(
        cast(str, checkpoint_id),
        cast("str | None", parent_id),
        aware(created_at),
        cast("str | None", metadata),
        messages,
        damaged,
    )


def _hits(states: Sequence[GraphState], words: Sequence[re.Pattern[str]], limit: int) -> list[Hit]:
    """Where words stand in some states, best first."""
    hits: list[Hit] = []
    for read in states:
        view = view_of(read)
        if view.damage is not None:
            continue
        text = _text(view)
        held = [found for word in words if (found := word.search(text))]
        if held:
            around = excerpt(text, held[0].start())
            saved = view.checkpoint
            share = len(held) / len(words)
            hits.append(Hit(view.family, view.thread_id, saved.checkpoint_id, around, share, saved.created_at))
    hits.sort(key=lambda hit: (hit.score, hit.created_at), reverse=True)
    return hits[:limit]


def _words(query: str) -> list[str]:
    return check_text(query, "Query").replace('"', " ").split()


def _text(view: StateView) -> str:
    """What was said in a state, and all other texts of it."""
    said = [message.text for message in messages_of(view.state)]
    rest = {name: value for name, value in view.state.items() if name != "messages" or not said}
    return "\n".join([*said, *strings_of(rest)])


def _thread(row: Row) -> ThreadRow:
    thread_id, created_at, updated_at, saved_at, checkpoint_id, metadata, checkpoints, size_bytes = row
    known, damage = metadata_of(metadata)
    times = [aware(time) for time in (updated_at, saved_at) if time is not None]
    return ThreadRow(
        family="versions",
        thread_id=cast(str, thread_id),
        created_at=aware(created_at),
        updated_at=max(times),
        checkpoints=_count(checkpoints),
        size_bytes=_count(size_bytes),
        checkpoint_id=cast("str | None", checkpoint_id),
        metadata=known,
        damage=damage,
    )


def _checkpoint(row: Row) -> CheckpointRow:
    _, ns, checkpoint_id, parent_id, created_at, size_bytes, metadata = row
    known, damage = metadata_of(metadata)
    return CheckpointRow(
        namespace=cast(str, ns),
        checkpoint_id=cast(str, checkpoint_id),
        parent_id=cast("str | None", parent_id),
        created_at=aware(created_at),
        size_bytes=_count(size_bytes),
        metadata=known,
        damage=damage,
    )


def _fits(thread: ThreadRow, wanted: Wanted, looked_for: Containment | None) -> bool:
    """Whether a thread fulfils what was asked for."""
    if wanted.min_bytes is not None and thread.size_bytes < wanted.min_bytes:
        return False
    if wanted.saved_after is not None and thread.updated_at < wanted.saved_after:
        return False
    if wanted.saved_before is not None and thread.updated_at >= wanted.saved_before:
        return False
    if wanted.metadata is None or looked_for is None:
        return True
    name, _ = wanted.metadata
    return name in thread.metadata and looked_for.within(thread.metadata[name])


def _count(value: object) -> int:
    return int(cast(int, value))


def _place(row: Row) -> Place:
    return str(row[0]), cast(str, row[1])


def _behind(cursor: str) -> tuple[str, str]:
    """The time and the id that a cursor tells."""
    time, thread_id = from_cursor(cursor, str, str)
    try:
        return str(datetime.fromisoformat(time)), thread_id
    except ValueError:
        raise InvalidInput("The cursor is none that a page of this list ended with. Begin at the first page.") from None
