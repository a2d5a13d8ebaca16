"""Transcripts as threads: `TranscriptThreads` and `TranscriptChanges`, for the inspector and ``rm``.

A transcript is a thread with one state: its items as messages, and the state of its header. One with branches, as of
an OpenAI session, has a state for each.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from ...config import MySQLConfig
from ...dialect.words import patterns_of
from ...engine.operation import Batch, Operation, fetch
from ...errors import CorruptCheckpoint, InvalidInput
from ...records.tables import Row
from ...runtime.arguments import check_limit, check_text
from ...runtime.exact_json import strings_of
from ...runtime.sealing import Sealing
from ..inspection.changes import OwnerChanges
from ..inspection.conversation import messages_of
from ..inspection.msgpack import DAMAGED, finite
from ..inspection.owners import OwnerThreads
from ..inspection.records import CheckpointRow, Hit, StateView, ThreadPreview
from ..inspection.sources import Deferred, hits_in
from ..inspection.status import preview_of
from .branches import MAIN, Branches
from .coding import item_of, time_of, transcript_of
from .family import tables
from .operations import TranscriptOperations
from .records import SeqRange, Transcript, TranscriptKey
from .statements import reading
from .statements.reading import HEADER, EndRow, SizeRow, StoredHeader, StoredItem, found_items, items_of
from .statements.tables import RowKey, transcript_dialect

#: The number of last items of which a list shows one, and the bytes of the largest that is read.
LAST_ITEMS, LARGEST_ITEM = 3, 65_536

#: A search reads this many of the transcripts written last, this many of the last items of each, and at most this many
#: stored bytes of items.
SEARCHED_TRANSCRIPTS, SEARCHED_ITEMS, SEARCHED_BYTES = 50, 200, 8_388_608


class TranscriptThreads(OwnerThreads):
    """The transcripts of one tenant.

    Args:
        config: The options.
    """

    # The others are a framework's bookkeeping, no conversations.
    listed = " AND o.items > 0 AND RIGHT(o.kind, 6) <> _binary'-state' AND RIGHT(o.part, 6) <> _binary'-state'"

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(tables(config.table_prefix), config)
        self._sql = transcript_dialect(config.table_prefix)
        self._sealing = Sealing(config.encryption, self.family)

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None, *, partly: bool = False
    ) -> Operation[Deferred[StateView] | None]:
        """See `OwnerThreads.state`. One round trip."""
        key = self.naming.key_of(thread_id)
        if key is None or namespace:
            return None
        where = self._row_key(key)
        header, items = HEADER(self._sql, where), items_of(self._sql, where)
        results = yield Batch((header, items))
        row, found = results.row(header), found_items(results.rows(items))
        if row is None or (at is not None and time_of(row.revision) > at):
            return None
        state, damage = None, None
        try:
            state = finite(transcript_of(self._tenant, row, self._sealing).header.state)
        except CorruptCheckpoint as error:
            damage = str(error)
        branches, (revision, _, branch) = Branches.seen_in(state), (checkpoint_id or str(row.revision)).partition("/")
        if revision != str(row.revision) or (branch and not branches.within(branch)):
            return None
        chosen = [one for one in (found.items if found else ()) if branches.has(branch or MAIN, one.seq)]
        return partial(self._view, thread_id, where, row, branch, state, chosen, damage)

    def previews(self, thread_ids: Sequence[str]) -> Operation[Deferred[Mapping[str, ThreadPreview]]]:
        """See `OwnerThreads.previews`. One round trip."""
        keys = [self._row_key(key) for one in thread_ids if (key := self.naming.key_of(one)) is not None]
        if not keys:
            return dict
        query = reading.ENDS(self._sql, keys=keys, last=LAST_ITEMS, max_bytes=LARGEST_ITEM)
        rows = yield from fetch(query)
        return partial(self._previews, rows)

    def search(self, query: str, limit: int) -> Operation[Deferred[list[Hit]]]:
        """See `OwnerThreads.search`.

        Transcripts have no full-text index, so this reads the last items of the most recent ones. Three round trips.
        """
        words = patterns_of(check_text(query, "Query"), self._parser)
        limit = check_limit(limit)
        if not words or not limit:
            return list
        owners = yield from self.owners.fetch(self.listed, SEARCHED_TRANSCRIPTS)
        found = {self._row_key(self._moving.key_of(row)): int(row["revision"]) for row in owners}
        sizes = [reading.SIZES(self._sql, key, limit=SEARCHED_ITEMS) for key in found]
        if not sizes:
            return list
        results = yield Batch(tuple(sizes), atomic=False)
        ranges = ranges_of({key: results.rows(query)[:-1] for key, query in zip(found, sizes, strict=True)})
        queries = {key: items_of(self._sql, key, within=(seqs,)) for key, seqs in ranges.items()}
        results = yield Batch(tuple(queries.values()), atomic=False)
        read = {key: rows.items for key, query in queries.items() if (rows := found_items(results.rows(query)))}
        return partial(self._hits, found, read, words, limit)

    def _row_key(self, key: tuple[Any, ...]) -> RowKey:
        return RowKey(self._tenant, *key)

    def _id_of(self, key: RowKey) -> str:
        return self.naming.id_of(key._asdict())

    def _checkpoints(self, row: Row) -> Sequence[CheckpointRow]:
        """See `OwnerThreads._checkpoints`: a state for each branch."""
        checkpoint, state = self._checkpoint(row), None
        with contextlib.suppress(CorruptCheckpoint):
            own = self._moving.sql.owners
            opened = dict(zip(own.columns, self._moving.open(own, row, row), strict=True))
            state = self._shown(self.tables.owner.role, opened)["state"]
        named = [name for name, one in Branches.seen_in(state).others.items() if one.ranges]
        return [checkpoint, *(_of_branch(checkpoint, name) for name in named)]

    def _view(
        self,
        thread_id: str,
        key: RowKey,
        header: StoredHeader,
        branch: str,
        state: Any,
        items: Sequence[StoredItem],
        damage: str | None,
    ) -> StateView:
        whole = {
            "messages": [self._content(key, row) for row in items],
            **({} if state is None else {"state": state}),
        }
        checkpoint = self._checkpoint({"revision": header.revision, ":bytes": header.size_bytes})
        checkpoint = _of_branch(checkpoint, branch) if branch else checkpoint
        return StateView(self.family, thread_id, checkpoint, messages_of(whole), whole, damage=damage)

    def _content(self, key: RowKey, row: StoredItem) -> Any:
        try:
            return finite(item_of(key, row, self._sealing.of(*key)).content)
        except CorruptCheckpoint:
            return DAMAGED

    def _previews(self, rows: Sequence[EndRow]) -> Mapping[str, ThreadPreview]:
        """Return the previews of transcripts by the ids of their threads."""
        found: dict[RowKey, list[StoredItem]] = {}
        for row in rows:
            found.setdefault(self._row_key(row[:4]), []).append(StoredItem(*row[4:]))
        previews = {}
        for key, items in found.items():
            items.sort(key=_BY_SEQ)
            messages = messages_of({"messages": [self._content(key, item) for item in items]})
            previews[self._id_of(key)] = preview_of(messages[:1], messages, {})
        return previews

    def _hits(
        self,
        revisions: Mapping[RowKey, int],
        read: Mapping[RowKey, Sequence[StoredItem]],
        words: Sequence[re.Pattern[str]],
        limit: int,
    ) -> list[Hit]:
        """Return the transcripts that contain words, best first; each with the message that contains most of them."""

        def hit(key: RowKey, around: str, score: float) -> Hit:
            revision = revisions[key]
            return Hit(self.family, self._id_of(key), str(revision), around, score, time_of(revision))

        texts = [
            (key, message.text)
            for key, items in read.items()
            for message in messages_of({"messages": [self._content(key, row) for row in sorted(items, key=_BY_SEQ)]})
        ]
        return hits_in(texts, words, limit, hit)


def _of_branch(checkpoint: CheckpointRow, branch: str) -> CheckpointRow:
    """Return the row of a branch other than the main one; its size is that of all branches, which share items."""
    return replace(checkpoint, checkpoint_id=f"{checkpoint.checkpoint_id}/{branch}")


_BY_SEQ = attrgetter("seq")


class TranscriptChanges(OwnerChanges):
    """See `OwnerChanges`.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(tables(config.table_prefix), config)
        self._operations = TranscriptOperations(config)

    def _key_of(self, thread_id: str) -> TranscriptKey | None:
        key = self.naming.key_of(thread_id)
        return None if key is None else TranscriptKey(*(one.decode() for one in key if isinstance(one, bytes)))

    def delete(self, thread_id: str, checkpoint_id: str | None, namespace: str) -> Operation[bool]:
        """See `OwnerChanges.delete`. A transcript without a part is deleted with its parts."""
        key = self._key_of(thread_id)
        if key is None or checkpoint_id is not None:
            return False
        return bool((yield from self._operations.delete(key, parts=not key.part)))

    def copy(self, source: str, target: str) -> Operation[bool]:
        """See `OwnerChanges.copy`: the transcript alone, without those of its parts.

        Items keep their positions, as a state may name items by them.

        Raises:
            InvalidInput: The copy could not be used under the new key; nothing was written.
        """
        key, new = self._key_of(source), self._key_of(target)
        if new is None or not (new.kind and new.name):
            raise InvalidInput(f"{target!r} is no id of a transcript. Write it as kind/collection/name.")
        transcript = None if key is None else (yield from self._operations.get(key))
        if transcript is None:
            return False
        refuse_unusable(transcript, new)
        return (yield from super().copy(source, target))

    def _renew(self, row: dict[str, Any], now: str) -> None:
        moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
        row.update(revision=(moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), prior=0)


def ranges_of(sizes: Mapping[RowKey, Sequence[SizeRow]]) -> dict[RowKey, SeqRange]:
    """Return the first and the last seq of the items that a search reads, at most `SEARCHED_BYTES` in all.

    Args:
        sizes: The last items of each transcript, last first; the most important transcript first.
    """
    left, ranges = SEARCHED_BYTES, dict[RowKey, SeqRange]()
    for key, rows in sizes.items():
        for seq, size_bytes in rows:
            if size_bytes > left:
                break
            left -= size_bytes
            ranges[key] = (seq, ranges[key][1] if key in ranges else seq)
    return ranges


def refuse_unusable(transcript: Transcript, new: TranscriptKey) -> None:
    """Refuse a copy that its framework could not use.

    Raises:
        InvalidInput: The kinds differ, the new name has other parts, or the state names the transcript itself.
    """
    key = transcript.key
    if new.kind != key.kind:
        raise InvalidInput(
            f"A transcript of the kind {key.kind!r} cannot be copied to one of {new.kind!r}: other software reads "
            f"that. Write the target as {key.kind}/collection/name. Nothing was written."
        )
    if new.name.count("/") != key.name.count("/"):
        raise InvalidInput(
            f"The name {new.name!r} has another number of parts than {key.name!r}, so its framework could not read the "
            "copy. Write `/` in a name as ~1. Nothing was written."
        )
    if new.name != key.name and key.name in strings_of(transcript.header.state):
        raise InvalidInput(
            f"The state of transcript {key.name!r} holds its own name, so a copy under another one could not be used. "
            "Copy it with the framework that wrote it. Nothing was written."
        )
