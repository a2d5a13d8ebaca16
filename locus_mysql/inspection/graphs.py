"""Looking at the threads of LangGraph's graphs, and of other savers that keep every checkpoint. No I/O.

Values are shown without LangGraph and without making objects of what is stored; see `msgpack`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from ..checkpoints.searchable import excerpt
from ..config import MySQLConfig
from ..database.arguments import check_limit, check_text, check_thread_id, encode_metadata
from ..database.matching import Containment
from ..dialect import Statement
from ..dialect.versions import VersionDialect
from ..dialect.versions.looking import Asked, Place
from ..dialect.versions.threads import LAG_S
from ..drivers.interface import Row
from ..engine.operation import Batch, Operation
from ..errors import CorruptCheckpoint, InvalidInput
from ..memories.arguments import strings_of
from ..versions import keys
from ..versions.arguments import check_id
from ..versions.loading import Loading, aware
from ..versions.memory import VersionMemory
from ..versions.records import LoadedVersion
from ..versions.saver import DEFAULT_NAMESPACE
from ..versions.values import Encoded
from .conversation import messages_of
from .cursors import from_cursor, to_cursor
from .first_saved import mark_of
from .graph_values import pending, rebuilt, stored_as_writes
from .plain import metadata_of, plain
from .records import (
    CheckpointRow,
    Day,
    Hit,
    LargeThread,
    Page,
    PendingWrite,
    StateView,
    Statistics,
    Tagged,
    ThreadFamily,
    ThreadRow,
    Turn,
)
from .sources import LATELY_CHECKPOINTS, LATELY_THREADS, PAGE_LIMIT, Wanted, time_text

#: Threads of which a filtered page looks at most at so many, so many at a time; the next page goes on behind them.
LOOKED_AT, AT_ONCE = 2_000, 200

#: Threads among whose ids a page looks for a pattern that begins with a wildcard.
STEP = 50_000

#: Threads whose newest states a search looks through.
SEARCHED = 200

#: Words of a search that are looked for; each is looked for in all that those threads hold.
WORDS = 32

#: States that are read at a time where only numbers of them are wanted.
STATES_AT_ONCE = 20

#: Days, and large threads, that statistics tell of.
DAYS, LARGEST = 30, 10

#: Threads by which they tell, roughly, where there are more.
SAMPLE = 2_500

_LEAST_LIFE = timedelta(hours=1)

#: The namespace of a graph itself; those of its subgraphs have names.
_ROOT = ""

#: A word, not a part of one.
_WORD = r"(?<!\w){}(?!\w)"

_NOTHING = Encoded("null", b"")


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
            (found,) = yield Batch.query(self.sql.looking.end(self._tenant, asked, STEP))
            end = _place(found.rows[0]) if found.rows else None
        filtered = wanted.metadata is not None or wanted.min_bytes is not None
        looked_for = None if wanted.metadata is None else Containment(wanted.metadata[1])
        threads: list[ThreadRow] = []
        looked_at, size = 0, limit
        while True:
            (page,) = yield Batch.query(self.sql.looking.threads(self._tenant, keys.ns_key(_ROOT), size, asked, end))
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
        (found,) = yield Batch.query(self.sql.looking.thread(self._tenant, keys.ns_key(_ROOT), thread_id))
        return _thread(found.rows[0]) if found.rows else None

    def history(
        self, thread_id: str, limit: int, cursor: str | None, at: datetime | None
    ) -> Operation[Page[CheckpointRow]]:
        """See `ThreadSource.history`; of all namespaces. One round trip."""
        check_thread_id(thread_id)
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        before = None if cursor is None else int(from_cursor(cursor, int)[0])
        until = None if at is None else time_text(at)
        (found,) = yield Batch.query(self.sql.looking.history(self._tenant, thread_id, limit + 1, before, until))
        rows = found.rows
        items = [_checkpoint(row) for row in rows[:limit]]
        return Page(items, to_cursor(cast(int, rows[limit - 1][0])) if len(rows) > limit else None)

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None
    ) -> Operation[StateView | None]:
        """See `ThreadSource.state`. Two round trips.

        Without a namespace, that of savers which call it ``default`` is looked at as well, and then that of the newest
        checkpoint.
        """
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_id(checkpoint_id, "Checkpoint id")
        until = None if at is None else time_text(at)
        for ns in (namespace,) if namespace else (_ROOT, DEFAULT_NAMESPACE):
            view = yield from self._state(thread_id, checkpoint_id, ns, until)
            if view is not None:
                return view
        if namespace:
            return None
        (newest,) = yield Batch.query(self.sql.looking.history(self._tenant, thread_id, 1))
        return (
            (yield from self._state(thread_id, checkpoint_id, cast(str, newest.rows[0][1]), until))
            if newest.rows
            else None
        )

    def turns(self, thread_id: str, limit: int, at: datetime | None) -> Operation[list[Turn]]:
        """See `ThreadSource.turns`; the iterations of a graph are its steps. A round trip for every few states."""
        check_thread_id(thread_id)
        limit = check_limit(limit, least=1)
        turns: list[Turn] = []
        before: int | None = None
        if at is not None:
            (found,) = yield Batch.query(self.sql.looking.history(self._tenant, thread_id, 1, until=time_text(at)))
            before = cast(int, found.rows[0][0]) + 1 if found.rows else 0
        while len(turns) < limit:
            size = min(limit - len(turns), STATES_AT_ONCE)
            versions, before = yield from self._loading.page(self._tenant, thread_id, size, ns=_ROOT, before_seq=before)
            turns += [_turn(version) for version in versions]
            if len(versions) < size:
                break
        return turns[::-1]

    def search(self, query: str, limit: int) -> Operation[list[Hit]]:
        """See `ThreadSource.search`.

        Graphs have no full-text index: what the newest states of the threads saved last hold is looked through, in a
        round trip for every few of them.
        """
        words = [re.compile(_WORD.format(re.escape(word)), re.IGNORECASE) for word in _words(query)[:WORDS]]
        limit = check_limit(limit)
        if not words or not limit:
            return []
        hits: list[Hit] = []
        (page,) = yield Batch.query(self.sql.threads.list(self._tenant, "*", SEARCHED, 0))
        for row in page.rows:
            thread_id = cast(str, row[0])
            view = yield from self.state(thread_id, None, "", None)
            if view is None or view.damage is not None:
                continue
            text = _text(view)
            held = [found for word in words if (found := word.search(text))]
            if held:
                around = excerpt(text, held[0].start())
                saved = view.checkpoint
                share = len(held) / len(words)
                hits.append(Hit(self.family, thread_id, saved.checkpoint_id, around, share, saved.created_at))
        hits.sort(key=lambda hit: (hit.score, hit.created_at), reverse=True)
        return hits[:limit]

    def by_metadata(self, key: str, value: Any, limit: int) -> Operation[list[Tagged]]:
        """See `ThreadSource.by_metadata`; among the newest only, as there is no index of graphs' metadata."""
        limit = check_limit(limit)
        encode_metadata({check_text(key, "Metadata key"): value})
        (found,) = yield Batch.query(
            self.sql.looking.by_metadata(
                self._tenant, LATELY_THREADS, LATELY_CHECKPOINTS, json.dumps({key: value}), limit
            )
        )
        rows = ((cast(str, row[0]), _checkpoint(row)) for row in found.rows)
        looked_for = Containment(value)
        return [
            Tagged(self.family, thread_id, checkpoint)
            for thread_id, checkpoint in rows
            if key in checkpoint.metadata and looked_for.within(checkpoint.metadata[key])
        ]

    def statistics(self) -> Operation[Statistics]:
        """See `ThreadSource.statistics`: exact up to some thousand threads, else from a part of them."""
        (found,) = yield Batch.query(self.sql.looking.count(self._tenant))
        count = _count(found.rows[0][0])
        one_in = max(1, count // SAMPLE)
        measuring = self.sql.looking.measure(self._tenant, one_in, LARGEST)
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
            (found,) = yield Batch.query(self.sql.looking.busiest(self._tenant, LARGEST))
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
        return self.sql.looking.markers(self._tenant, thread_ids)

    def _state(
        self, thread_id: str, checkpoint_id: str | None, ns: str, until: str | None
    ) -> Operation[StateView | None]:
        version_key = None if checkpoint_id is None else keys.version_key(ns, checkpoint_id)
        chosen = self.sql.looking.checkpoint(self._tenant, thread_id, keys.ns_key(ns), version_key, until)
        (found,) = yield Batch.query(chosen)
        if not found.rows:
            return None
        checkpoint, seq = _checkpoint(found.rows[0]), cast(int, found.rows[0][0])
        state: dict[str, Any] = {}
        writes: Sequence[PendingWrite] = ()
        damage = None
        try:
            versions, _ = yield from self._loading.page(self._tenant, thread_id, 1, ns=ns, before_seq=seq + 1)
            if not versions or versions[0].checkpoint_id != checkpoint.checkpoint_id:
                return None  # it went meanwhile
            (version,) = versions
            writes = pending(version)
            for name in version.labels:
                try:
                    state[name] = plain(version.value(name))
                except CorruptCheckpoint as error:
                    state[name], damage = f"<damaged: {error}>", f"Channel {name!r:.100}: {error}"
            apart = [name for name in stored_as_writes(checkpoint.metadata) if name not in state]
            if apart:
                line = self._loading.channel_history(self._tenant, thread_id, ns, checkpoint.checkpoint_id, apart)
                state.update({name: rebuilt(history) for name, history in (yield from line).items()})
        except CorruptCheckpoint as error:
            damage = str(error)
        if damage is not None:
            damage = f"{damage} Delete the checkpoint if none goes on from it."
        return StateView(self.family, thread_id, checkpoint, (), state, writes, damage)


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


def _turn(version: LoadedVersion) -> Turn:
    """What a state says in numbers: the tokens that its messages tell of, and the step of the graph."""
    try:
        found = plain(version.values().get("messages", _NOTHING))
        messages = found if isinstance(found, list) else []
        lists = {"messages": mark_of(messages)}
    except CorruptCheckpoint:
        messages, lists = [], {}
    used = [one.get("usage_metadata") for one in messages if isinstance(one, dict)]
    tokens = [usage.get("total_tokens") for usage in used if isinstance(usage, dict)]
    counted = [count for count in tokens if isinstance(count, int) and not isinstance(count, bool)]
    step = metadata_of(version.metadata)[0].get("step")
    return Turn(
        checkpoint_id=version.checkpoint_id,
        created_at=version.created_at,
        confidence=None,
        tokens=sum(counted) if counted else None,
        iterations=step if isinstance(step, int) else None,
        parent_id=version.parent_id,
        begins=version.parent_id is None,
        lists=lists,
    )


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
