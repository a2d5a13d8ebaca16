"""Transcripts as threads: `TranscriptThreads` and `TranscriptChanges`, for the inspector and ``rm``. No I/O.

A transcript is a thread with one state: its items as messages, and the state of its header. The id of the thread is the
transcript's key as a path; see `thread_id_of`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, cast

from ...config import MySQLConfig
from ...dialect import Query, Schema
from ...dialect.inspection import ThreadMarker
from ...dialect.words import excerpt, patterns_of, scores
from ...engine.operation import Batch, Operation, fetch
from ...errors import CorruptCheckpoint, InvalidInput
from ...runtime.arguments import check_limit, check_text
from ...runtime.sealing import Sealing
from ...runtime.server_times import aware
from ..inspection.conversation import messages_of
from ..inspection.msgpack import DAMAGED, finite
from ..inspection.records import (
    CheckpointRow,
    Day,
    Hit,
    LargeThread,
    Page,
    StateView,
    Statistics,
    Tagged,
    ThreadPreview,
    ThreadRow,
    Turn,
)
from ..inspection.sources import PAGE_LIMIT, Deferred, ThreadFilter, from_cursor, to_cursor
from ..inspection.status import preview_of
from .coding import item_of, row_key, time_of, transcript_of
from .copying import CopyingOperations
from .operations import TranscriptOperations
from .records import TranscriptKey
from .statements import inspection
from .statements.inspection import EndRow, SizeRow
from .statements.reading import HEADER, StoredHeader, StoredItem, found_items, items_of
from .statements.tables import RowKey, transcript_dialect

#: The number of largest transcripts in statistics.
LARGEST = 10

#: The number of last items of which a list shows one, and the bytes of the largest that is read.
LAST_ITEMS, LARGEST_ITEM = 3, 65_536

#: A search reads this many of the transcripts written last, this many of the last items of each, and at most this many
#: stored bytes of items.
SEARCHED_TRANSCRIPTS, SEARCHED_ITEMS, SEARCHED_BYTES = 50, 200, 8_388_608

#: Stored bytes of items that are read at once; a single item may be larger.
PAGE_BYTES = 1_048_576

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def thread_id_of(key: TranscriptKey) -> str:
    """Return the id of a transcript as a thread: ``kind/collection/name`` or ``kind/collection/name/part``.

    ``~`` and ``/`` in a segment are escaped as in JSON Pointer (RFC 6901): ``~0`` and ``~1``.
    """
    segments = key if key.part else key[:3]
    return "/".join(segment.replace("~", "~0").replace("/", "~1") for segment in segments)


def key_of_thread(thread_id: str) -> TranscriptKey | None:
    """Return the key in the id of a thread; None if it is no such id."""
    segments = [part.replace("~1", "/").replace("~0", "~") for part in check_text(thread_id, "Thread id").split("/")]
    if not 3 <= len(segments) <= 4 or not (segments[0] and segments[2]):
        return None
    return TranscriptKey(*segments)


class _Found(NamedTuple):
    """A transcript with its items, as rows."""

    key: RowKey
    header: StoredHeader
    items: Sequence[StoredItem]


class TranscriptThreads:
    """The transcripts of one tenant: a `ThreadSource`.

    Args:
        config: The options.
    """

    family = "transcripts"
    turns_at_once = 250

    def __init__(self, config: MySQLConfig) -> None:
        self.sql = transcript_dialect(config.table_prefix)
        self._tenant = config.tenant
        self._parser = config.search_parser
        self._sealing = Sealing(config.encryption, self.sql.schema.family)

    @property
    def schema(self) -> Schema:
        """The tables."""
        return self.sql.schema

    def threads(self, wanted: ThreadFilter, limit: int, cursor: str | None) -> Operation[Page[ThreadRow]]:
        """See `ThreadSource.threads`. One round trip. Transcripts have no metadata: a filter by metadata finds none."""
        limit = min(check_limit(limit, least=1), PAGE_LIMIT)
        pattern = check_text(wanted.pattern, "Pattern")
        after = None
        if cursor is not None:
            revision, thread_id = from_cursor(cursor, int, str)
            key = key_of_thread(thread_id)
            if key is None:
                raise InvalidInput("The cursor does not come from a page of this list. Begin at the first page.")
            after = (cast(int, revision), row_key(self._tenant, key))
        if wanted.metadata is not None:
            return Page([])
        query = inspection.listed_threads(
            self.sql,
            self._tenant,
            limit,
            pattern=pattern,
            min_bytes=None if wanted.min_bytes is None else check_limit(wanted.min_bytes, "min_bytes"),
            saved_after=_revision(wanted.saved_after),
            saved_before=_revision(wanted.saved_before),
            after=after,
        )
        rows = yield from fetch(query)
        items = [self._thread(row) for row in rows]
        return Page(items, to_cursor(rows[-1].revision, items[-1].thread_id) if len(rows) == limit else None)

    def thread(self, thread_id: str) -> Operation[ThreadRow | None]:
        """See `ThreadSource.thread`. One round trip."""
        found = yield from self._header(thread_id)
        return None if found is None else self._thread(found)

    def history(
        self, thread_id: str, limit: int, cursor: str | None, at: datetime | None
    ) -> Operation[Page[CheckpointRow]]:
        """See `ThreadSource.history`: the one state, if it was written by then. One round trip."""
        check_limit(limit, least=1)
        if cursor is not None:
            from_cursor(cursor, int)
        found = yield from self._header(thread_id)
        if found is None or cursor is not None or not _written_by(found, at):
            return Page([])
        return Page([_checkpoint(found)])

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None, *, partly: bool = False
    ) -> Operation[Deferred[StateView] | None]:
        """See `ThreadSource.state`. One round trip."""
        key = key_of_thread(thread_id)
        if key is None or namespace:
            return None
        where = row_key(self._tenant, key)
        header, items = HEADER(self.sql, where), items_of(self.sql, where)
        results = yield Batch((header, items))
        row, found = results.row(header), found_items(results.rows(items))
        if row is None or not _written_by(row, at) or checkpoint_id not in {None, str(row.revision)}:
            return None
        return partial(_view, thread_id, _Found(where, row, found.items if found else ()), self._sealing)

    def turns(self, thread_id: str, limit: int, at: datetime | None) -> Operation[Deferred[list[Turn]]]:
        """See `ThreadSource.turns`: none, as a transcript has one state."""
        check_text(thread_id, "Thread id")
        check_limit(limit)
        return list
        yield

    def previews(self, thread_ids: Sequence[str]) -> Operation[Deferred[Mapping[str, ThreadPreview]]]:
        """See `ThreadSource.previews`. One round trip."""
        keys = self._keys(thread_ids)
        if not keys:
            return dict
        query = inspection.ENDS(self.sql, keys=keys, last=LAST_ITEMS, max_bytes=LARGEST_ITEM)
        rows = yield from fetch(query)
        return partial(_previews, self._tenant, rows, self._sealing)

    def search(self, query: str, limit: int) -> Operation[Deferred[list[Hit]]]:
        """See `ThreadSource.search`.

        Transcripts have no full-text index, so this reads the last items of the most recent ones. Two round trips.
        """
        words = patterns_of(check_text(query, "Query"), self._parser)
        limit = check_limit(limit)
        if not words or not limit:
            return list
        rows = yield from fetch(inspection.listed_threads(self.sql, self._tenant, SEARCHED_TRANSCRIPTS))
        found = {RowKey(self._tenant, *row[:4]): row for row in rows}
        sizes = [inspection.SIZES(self.sql, key, limit=SEARCHED_ITEMS) for key in found]
        if not sizes:
            return list
        results = yield Batch(tuple(sizes), atomic=False)
        pieces = pieces_of({key: results.rows(query)[:-1] for key, query in zip(found, sizes, strict=True)})
        read = dict[RowKey, list[StoredItem]]()
        for page in pages_of(pieces):
            queries = [items_of(self.sql, piece.key, within=((piece.first, piece.last),)) for piece in page]
            results = yield Batch(tuple(queries), atomic=False)
            for piece, items in zip(page, queries, strict=True):
                found_piece = found_items(results.rows(items))
                read.setdefault(piece.key, []).extend(found_piece.items if found_piece else ())
        return partial(
            _hits,
            [_Found(key, found[key], sorted(items, key=attrgetter("seq"))) for key, items in read.items()],
            words,
            limit,
            self._sealing,
        )

    def by_metadata(self, key: str, value: Any, limit: int) -> Operation[list[Tagged]]:
        """See `ThreadSource.by_metadata`: none, as transcripts have no metadata."""
        check_text(key, "Metadata key")
        check_limit(limit)
        return []
        yield

    def statistics(self) -> Operation[Statistics]:
        """See `ThreadSource.statistics`. Items count as checkpoints; a day counts the transcripts created on it."""
        totals = inspection.TOTALS(self.sql, tenant=self._tenant)
        days = inspection.DAYS(self.sql, tenant=self._tenant)
        largest = inspection.LARGEST(self.sql, tenant=self._tenant, limit=LARGEST)
        results = yield Batch((totals, days, largest), atomic=False)
        (total,) = results.rows(totals)
        return Statistics(
            self.family,
            total.transcripts,
            int(total.items),
            int(total.size_bytes),
            None,
            [Day(row.day, row.transcripts, int(row.items), int(row.size_bytes)) for row in results.rows(days)],
            [LargeThread.of(self._thread(row)) for row in results.rows(largest)],
        )

    def markers(self, thread_ids: Sequence[str]) -> Query[ThreadMarker]:
        """See `ThreadSource.markers`."""
        return inspection.markers(self.sql, self._keys(thread_ids))

    def _keys(self, thread_ids: Sequence[str]) -> list[RowKey]:
        return [row_key(self._tenant, key) for one in thread_ids if (key := key_of_thread(one)) is not None]

    def _header(self, thread_id: str) -> Operation[StoredHeader | None]:
        key = key_of_thread(thread_id)
        if key is None:
            return None
        rows = yield from fetch(HEADER(self.sql, row_key(self._tenant, key)))
        return rows[0] if rows else None

    def _thread(self, row: StoredHeader) -> ThreadRow:
        damage = None
        try:
            transcript_of(self._tenant, row, self._sealing)
        except CorruptCheckpoint as error:
            damage = str(error)
        key = TranscriptKey(*(text.decode(errors="replace") for text in row[:4]))
        return ThreadRow(
            family=self.family,
            thread_id=thread_id_of(key),
            created_at=aware(row.created_at),
            updated_at=time_of(row.revision),
            checkpoints=row.items,
            size_bytes=row.size_bytes,
            checkpoint_id=str(row.revision),
            damage=damage,
        )


class TranscriptChanges:
    """See `ThreadChanges`.

    Args:
        config: The options.
    """

    can_branch = False
    has_history = False

    def __init__(self, config: MySQLConfig) -> None:
        self._operations = TranscriptOperations(config)
        self._copying = CopyingOperations(config)

    def delete(self, thread_id: str, checkpoint_id: str | None, namespace: str) -> Operation[bool]:
        """See `ThreadChanges.delete`. A transcript without a part is deleted with its parts."""
        key = key_of_thread(thread_id)
        if key is None or checkpoint_id is not None:
            return False
        return bool((yield from self._operations.delete(key, parts=not key.part)))

    def copy(self, source: str, target: str) -> Operation[bool]:
        """See `ThreadChanges.copy`: the transcript alone, without those of its parts."""
        key, new = key_of_thread(source), key_of_thread(target)
        if new is None:
            raise InvalidInput(f"{target!r} is no id of a transcript. Write it as kind/collection/name.")
        return key is not None and (yield from self._copying.copy(key, new))

    def branch(self, source: str, checkpoint_id: str, target: str) -> Operation[bool]:
        """Refuse: a transcript has one state."""
        raise InvalidInput("A transcript can only be copied as a whole.")
        yield


def _revision(time: datetime | None) -> int | None:
    if time is None:
        return None
    if time.tzinfo is None:
        raise InvalidInput(f"The time {time.isoformat()} has no time zone. Give one, such as tzinfo=UTC.")
    return max(0, (time - _EPOCH) // timedelta(microseconds=1))


def _written_by(row: StoredHeader, at: datetime | None) -> bool:
    latest = _revision(at)
    return latest is None or row.revision <= latest


def _checkpoint(row: StoredHeader) -> CheckpointRow:
    return CheckpointRow("", str(row.revision), None, time_of(row.revision), row.size_bytes)


def _view(thread_id: str, found: _Found, sealing: Sealing) -> StateView:
    damage, state = None, dict[str, Any]()
    try:
        state = {"state": finite(transcript_of(found.key.tenant, found.header, sealing).header.state)}
    except CorruptCheckpoint as error:
        damage = str(error)
    contents = [_content(found.key, row, sealing) for row in found.items]
    whole = {"messages": contents, **({} if state.get("state") is None else state)}
    return StateView(
        family=TranscriptThreads.family,
        thread_id=thread_id,
        checkpoint=_checkpoint(found.header),
        messages=messages_of(whole),
        state=whole,
        damage=damage,
    )


def _content(key: RowKey, row: StoredItem, sealing: Sealing) -> Any:
    try:
        return finite(item_of(key, row, sealing.of(*key)).content)
    except CorruptCheckpoint:
        return DAMAGED


def _previews(tenant: str, rows: Sequence[EndRow], sealing: Sealing) -> Mapping[str, ThreadPreview]:
    """Return the previews of transcripts by the ids of their threads."""
    found: dict[RowKey, list[StoredItem]] = {}
    for row in rows:
        found.setdefault(RowKey(tenant, *row[:4]), []).append(StoredItem(*row[4:]))
    previews = {}
    for key, items in found.items():
        items.sort(key=attrgetter("seq"))
        messages = messages_of({"messages": [_content(key, item, sealing) for item in items]})
        thread_id = thread_id_of(TranscriptKey(*(text.decode(errors="replace") for text in key[1:])))
        previews[thread_id] = preview_of(messages[:1], messages, {})
    return previews


def _hits(found: Sequence[_Found], words: Sequence[re.Pattern[str]], limit: int, sealing: Sealing) -> list[Hit]:
    """Return the transcripts that contain words, best first; each with the message that contains most of them."""
    read = [messages_of({"messages": [_content(one.key, row, sealing) for row in one.items]}) for one in found]
    texts = [(one, message.text) for one, messages in zip(found, read, strict=True) for message in messages]
    matches = [[word.search(text) for word in words] for _, text in texts]
    hits: dict[RowKey, Hit] = {}
    for (one, text), held, score in zip(texts, matches, scores(matches), strict=True):
        if score > (hits[one.key].score if one.key in hits else 0):
            around = excerpt(text, next(match.start() for match in held if match))
            thread_id = thread_id_of(TranscriptKey(*(part.decode(errors="replace") for part in one.header[:4])))
            revision = one.header.revision
            hits[one.key] = Hit(TranscriptThreads.family, thread_id, str(revision), around, score, time_of(revision))
    return sorted(hits.values(), key=lambda hit: (hit.score, hit.created_at), reverse=True)[:limit]


class Piece(NamedTuple):
    """Neighbouring items of a transcript that are read by one query.

    Args:
        key: The transcript.
        first: The seq of the first item.
        last: That of the last.
        size_bytes: Their stored size.
    """

    key: RowKey
    first: int
    last: int
    size_bytes: int


def pieces_of(sizes: Mapping[RowKey, Sequence[SizeRow]]) -> Iterator[Piece]:
    """Yield the items to read, each piece of at most `PAGE_BYTES` or of one item.

    Args:
        sizes: The last items of each transcript, last first; the most important transcript first.
    """
    left = SEARCHED_BYTES
    for key, rows in sizes.items():
        piece: Piece | None = None
        for seq, size_bytes in rows:
            if size_bytes > left:
                break
            left -= size_bytes
            if piece is not None and piece.size_bytes + size_bytes > PAGE_BYTES:
                yield piece
                piece = None
            piece = Piece(
                key, seq, *((seq, size_bytes) if piece is None else (piece.last, piece.size_bytes + size_bytes))
            )
        if piece is not None:
            yield piece


def pages_of(pieces: Iterator[Piece]) -> Iterator[list[Piece]]:
    """Yield pieces that are read together: at most `PAGE_BYTES`, or one piece."""
    page: list[Piece] = []
    for piece in pieces:
        if page and sum(one.size_bytes for one in page) + piece.size_bytes > PAGE_BYTES:
            yield page
            page = []
        page.append(piece)
    if page:
        yield page
