"""The operations on transcripts, as generators that do no I/O: `TranscriptOperations`; `FrameworkTranscripts`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from ...config import MySQLConfig
from ...engine.operation import Batch, Operation, Outdated, fetch
from ...engine.retry import Backoff
from ...errors import NotFound
from ...records import ledger
from ...records.leases import OwnerKey, Turns
from ...records.maintenance import Maintenance
from ...runtime.arguments import check_each, check_limit, tenant_of
from ...runtime.database import Database
from ...runtime.sealing import Sealing
from . import coding
from .coding import ID_BYTES, check_name, decoded, item_of, row_key, transcript_of
from .family import tables
from .records import Fold, Header, Item, NewItem, Read, SeqRange, Transcript, TranscriptKey, Window, Write, Written
from .statements import reading, writing
from .statements.reading import TOTALS, found_items, items_of, listed
from .statements.tables import RowKey, transcript_dialect
from .writing import WritingOperations, turn_key

#: On average, one write in this number is followed by housekeeping, which removes up to the second number of expired
#: transcripts.
HOUSEKEEPING_TRANSCRIPTS = 16


class TranscriptOperations:
    """The operations on transcripts of one tenant.

    Each write is one transaction: it locks its transcripts, raises their revisions, and stores a token in the ledger,
        so it is executed once even if its response is lost.

    Args:
        config: The options. A transcript expires ``ttl_s`` after items were last added or its header replaced.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.config = config
        self.sql = transcript_dialect(config.table_prefix)
        self.schema = self.sql.schema
        self._sealing = Sealing(config.encryption, self.schema.family)
        self.turns = Turns(self.sql)
        self._writing = WritingOperations(config, self.sql, self.turns)
        self._owners = Maintenance(
            tables(config.table_prefix),
            removed=lambda row: self._writing.forget(RowKey(**{name: row[name] for name in RowKey._fields})),
        )

    @property
    def _tenant(self) -> str:
        return tenant_of(self.config)

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        self._writing.attach(database)
        self.turns.attach(database)

    def owner_key(self, key: TranscriptKey) -> OwnerKey:
        """Return the key of a turn on a transcript and all its parts."""
        return turn_key(row_key(self._tenant, key))

    def append(
        self,
        key: TranscriptKey,
        items: Iterable[NewItem] = (),
        *,
        header: Header | None = None,
        fold: Fold | None = None,
        expected: int | None = None,
        expected_tag: str | None = None,
    ) -> Operation[Written]:
        """Add items to the end of a transcript, which is created if it does not exist; and replace its header.

        Items whose ids the transcript already has are skipped. One round trip; with a fold, two if this process has
        not written the newest state itself; three more if some of the items are stored already.

        Args:
            key: The transcript.
            items: The items in order, at most 10,000.
            header: Replaces the stored header; None keeps it.
            fold: Computes the state from the stored one and the new items; see `Write`.
            expected: The revision that the transcript must have; 0: it must not exist.
            expected_tag: The tag that it must have.

        Raises:
            InvalidInput: Something cannot be stored exactly; nothing was written.
            VersionConflict: The transcript has another revision or tag; nothing was written.
        """
        items = check_each(items, NewItem, "items")
        (written,) = yield from self.write([Write(key, items, header, fold, expected, expected_tag)])
        return written

    def write(self, writes: Sequence[Write], *, once: bool = False) -> Operation[list[Written]]:
        """Write to several transcripts, all or nothing; see `append`. One round trip, as there.

        Args:
            writes: The writes, each to another transcript; at most 10,000 items together.
            once: Change nothing, not even by a header or a fold, if there are items and all of them are stored already.

        Returns:
            The results in the order of the writes.

        Raises:
            InvalidInput: Something cannot be stored exactly; nothing was written.
            VersionConflict: A transcript has another revision or tag than expected; nothing was written.
            TurnLost: The call's turn on one of them is over; nothing was written.
            NotFound: A transcript has no item of the id that is needed; nothing was written.
        """
        written = yield from self._writing.write(writes, once=once)
        yield from ledger.in_passing(self._housekeeping)
        return written

    def get(self, key: TranscriptKey) -> Operation[Transcript | None]:
        """Return a transcript without its items; None if it does not exist. One round trip."""
        where = row_key(self._tenant, key)
        rows = yield from fetch(reading.HEADER(self.sql, where))
        transcript = transcript_of(self._tenant, rows[0], self._sealing) if rows else None
        self._writing.remember(where, rows[0] if rows else None)
        return transcript

    def get_all(self, keys: Sequence[TranscriptKey]) -> Operation[list[Transcript | None]]:
        """Return transcripts without their items, in the order of the keys; see `get`. One round trip."""
        keys = check_each(keys, TranscriptKey, "keys")
        queries = [reading.HEADER(self.sql, row_key(self._tenant, key)) for key in keys]
        if not queries:
            return []
        results = yield Batch(tuple(queries), atomic=False)
        rows = [results.row(query) for query in queries]
        return [None if row is None else transcript_of(self._tenant, row, self._sealing) for row in rows]

    def read(
        self,
        key: TranscriptKey,
        *,
        last: int | None = None,
        after: int | None = None,
        before: int | None = None,
        until: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> Operation[Read | None]:
        """Return items of a transcript, oldest first; None if it does not exist. One round trip.

        The server reads only the rows that are returned, and those of ``offset``.

        Args:
            key: The transcript.
            last: Only this many of the last items.
            after: Only items after this seq.
            before: Only items before this seq.
            until: Only the item of this id and those before it; none if there is no such item.
            limit: At most this many, from the first one on. Excludes ``last``.
            offset: Skip this many first; requires ``limit``.

        Raises:
            CorruptCheckpoint: A row is damaged.
        """
        where = row_key(self._tenant, key)
        for what, value in (("last", last), ("limit", limit), ("offset", offset)):
            if value is not None:
                check_limit(value, what)
        for what, seq in (("after", after), ("before", before)):
            if seq is not None:
                check_limit(seq, what, most=2**63 - 1)
        query = items_of(
            self.sql,
            where,
            after=after,
            before=before,
            until=None if until is None else check_name(until, "The id of an item", ID_BYTES),
            limit=limit if last is None else last,
            offset=offset,
            last=last is not None,
        )
        found = found_items((yield from fetch(query)))
        if found is None:
            return None
        return Read(found.revision, (yield from decoded(where, found.items, self._sealing, backwards=last is not None)))

    def open(
        self, key: TranscriptKey, *, last: int | None = None
    ) -> Operation[tuple[Transcript, Sequence[Item]] | None]:
        """Return a transcript and its items as they were at one revision; None if it does not exist.

        One round trip; again if another process writes meanwhile.

        Args:
            key: The transcript.
            last: Only this many of the last items.
        """
        backoff = Backoff(f"The header and the items of transcript {key.name!r} had different revisions")
        while True:
            window = yield from self.window(key, last=last)
            if window is None:
                return None
            if window.is_current:
                return window.transcript, window.items
            yield backoff.pause()

    def window(
        self, key: TranscriptKey, within: Sequence[SeqRange] | None = None, *, last: int | None = None
    ) -> Operation[Window | None]:
        """Return some items of a transcript, and the transcript as it was then or later. One round trip.

        Args:
            key: The transcript.
            within: Only items whose seqs are in one of these ranges; None: in any.
            last: At most this many of the last ones.

        Returns:
            None if the transcript does not exist.
        """
        where = row_key(self._tenant, key)
        items = items_of(self.sql, where, within=within, limit=last, last=last is not None)
        header = reading.HEADER(self.sql, where)
        results = yield Batch((items, header), atomic=False)
        row, found = results.row(header), found_items(results.rows(items))
        if row is None:
            return None
        transcript = transcript_of(self._tenant, row, self._sealing)
        self._writing.remember(where, row)
        if found is None:
            return Window(transcript, [], is_current=False)
        read = yield from decoded(where, found.items, self._sealing, backwards=last is not None)
        return Window(transcript, read, row.revision == found.revision)

    def existing(self, key: TranscriptKey, seqs: Sequence[int]) -> Operation[set[int]]:
        """Return those of the seqs that items of a transcript have. One round trip."""
        if not seqs:
            return set()
        rows = yield from fetch(reading.EXISTING(self.sql, row_key(self._tenant, key), seqs=list(seqs)))
        return {row.seq for row in rows}

    def find(self, key: TranscriptKey, item_id: str) -> Operation[Item | None]:
        """Return an item of a transcript by its id; None if there is none. One round trip."""
        where = row_key(self._tenant, key)
        encoded = check_name(item_id, "The id of an item", ID_BYTES)
        rows = yield from fetch(reading.ITEM(self.sql, where, item_id=encoded))
        return item_of(where, rows[0], self._sealing.of(*where)) if rows else None

    def holding(self, kind: str, item_id: str) -> Operation[list[Transcript]]:
        """Return the transcripts of a kind that have an item of this id. One round trip."""
        encoded = check_name(item_id, "The id of an item", ID_BYTES)
        rows = yield from fetch(reading.HOLDING(self.sql, tenant=self._tenant, kind=_kind(kind), item_id=encoded))
        return [transcript_of(self._tenant, row, self._sealing) for row in rows]

    def replace(self, key: TranscriptKey, item_id: str, content: object) -> Operation[int]:
        """Replace the content of an item, which keeps its position; returns the transcript's revision. One round trip.

        Raises:
            NotFound: The transcript has no such item; nothing was changed.
        """
        where, token = row_key(self._tenant, key), os.urandom(16)
        encoded = coding.encode_content(content, "The item", self.config.compression)
        encoded_id = check_name(item_id, "The id of an item", ID_BYTES)
        sealed = coding.seal_content(self._sealing.of(*where), encoded_id, 0, encoded)
        outcome = ledger.FIND(self.sql, where, token=token)
        try:
            results = yield from self.turns.write(
                Batch.of(
                    writing.LOCK_EXISTING(self.sql, where, removed=0, size_bytes=0),
                    writing.GUARD_ITEM(self.sql, where, item_id=encoded_id),
                    writing.COUNT_REPLACED(self.sql, where, item_id=encoded_id, size_bytes=len(sealed)),
                    writing.REPLACE(self.sql, where, item_id=encoded_id, content=sealed),
                    writing.RECORD_REVISION(self.sql, where, token=token),
                    outcome,
                    outcome_query=outcome,
                ),
                turn_key(where),
            )
        except Outdated:
            raise NotFound(f"Transcript {key.name!r} has no item {item_id!r}. Nothing was changed.") from None
        return results.rows(outcome)[0].outcome or 0

    def pop(self, key: TranscriptKey) -> Operation[Item | None]:
        """Remove the last item and return it; None if there is none. Two round trips; more with concurrent writers."""
        where, token = row_key(self._tenant, key), os.urandom(16)
        backoff = Backoff(f"Other writers changed transcript {key.name!r} before its last item was removed")
        while True:
            found = found_items((yield from fetch(items_of(self.sql, where, limit=1, last=True))))
            if found is None or not found.items:
                return None
            (row,) = found.items
            item = item_of(where, row, self._sealing.of(*where))
            try:
                yield from self.turns.write(
                    Batch.of(
                        writing.LOCK_EXISTING(self.sql, where, removed=1, size_bytes=len(row.content)),
                        writing.GUARD(self.sql, where, revision=found.revision),
                        writing.REMOVE_AT(self.sql, where, seqs=[row.seq]),
                        ledger.RECORD(self.sql, where, token=token),
                        outcome_query=ledger.FIND(self.sql, where, token=token),
                    ),
                    turn_key(where),
                )
            except Outdated:  # another process wrote meanwhile
                yield backoff.pause()
            else:
                return item

    def clear(self, key: TranscriptKey) -> Operation[int]:
        """Remove all items of a transcript; returns the number of items. Its header stays. One round trip."""
        where, token = row_key(self._tenant, key), os.urandom(16)
        remove, outcome = writing.REMOVE_ITEMS(self.sql, where), ledger.FIND(self.sql, where, token=token)
        results = yield from self.turns.write(
            Batch.of(
                writing.LOCK_EMPTIED(self.sql, where, pieces={"which": "{KEY}"}),
                remove,
                ledger.RECORD_AFFECTED(self.sql, where, token=token),
                outcome_query=outcome,
            ),
            turn_key(where),
        )
        return ledger.affected_rows(results, remove, outcome)

    def delete(self, key: TranscriptKey, *, parts: bool = False) -> Operation[int]:
        """Delete a transcript with its items and its header; returns the number of transcripts. One round trip.

        Args:
            key: The transcript.
            parts: Delete all transcripts of the same kind, collection and name, whatever their part.
        """
        return (yield from self._delete(row_key(self._tenant, key), parts=parts))

    def delete_if(self, key: TranscriptKey, *, expected: int) -> Operation[bool]:
        """Delete a transcript if it has this revision; returns whether it had. One round trip."""
        where, token = row_key(self._tenant, key), os.urandom(16)
        check_limit(expected, "expected", most=2**63 - 1)
        try:
            yield from self.turns.delete(
                Batch.of(
                    writing.LOCK_EXISTING(self.sql, where, removed=0, size_bytes=0),
                    writing.GUARD(self.sql, where, revision=expected),
                    writing.DELETE(self.sql, where, pieces={"which": "{KEY}"}),
                    ledger.RECORD(self.sql, where, token=token),
                    outcome_query=ledger.FIND(self.sql, where, token=token),
                ),
                turn_key(where),
            )
        except Outdated:
            return False
        self._writing.forget(where)
        return True

    def list_transcripts(
        self,
        kind: str,
        collection: str | None = None,
        *,
        name: str | None = None,
        prefix: str = "",
        delimiter: str | None = None,
        parts: bool = False,
        states: bool = False,
        after: TranscriptKey | None = None,
        limit: int | None = None,
    ) -> Operation[list[Transcript]]:
        """Return transcripts in the order of their keys. One round trip.

        Args:
            kind: Their kind.
            collection: Their collection; None for any.
            name: Their name; None for any.
            prefix: The start of their names; with a collection, only rows of such names are read.
            delimiter: Leave out transcripts whose names have this text behind the prefix.
            parts: Whether transcripts with a part are listed, too.
            states: Whether their states are read.
            after: Only those after this key: the last one of the page before.
            limit: The maximum number of results.
        """
        query = listed(
            self.sql,
            self._tenant,
            _kind(kind),
            collection=coding.check_optional(collection, "The collection"),
            name=coding.check_optional(name, "The name"),
            prefix=check_name(prefix, "The prefix", least=0),
            delimiter=None if delimiter is None else check_name(delimiter, "The delimiter"),
            parts=parts,
            after=None if after is None else row_key(self._tenant, after)[2:],
            limit=None if limit is None else check_limit(limit),
            states=states,
        )
        rows = yield from fetch(query)
        return [transcript_of(self._tenant, row, self._sealing, has_state=states) for row in rows]

    def recent(
        self,
        kind: str,
        collection: str | None = None,
        *,
        scope: str | None = None,
        states: bool = False,
        limit: int | None = None,
    ) -> Operation[list[Transcript]]:
        """Return transcripts without a part, most recently written first. One round trip.

        Args:
            kind: Their kind.
            collection: Their collection; None for any.
            scope: The scope in their header; None for any.
            states: Whether their states are read.
            limit: The maximum number of results.
        """
        query = listed(
            self.sql,
            self._tenant,
            _kind(kind),
            collection=coding.check_optional(collection, "The collection"),
            scope=coding.check_optional(scope, "The scope"),
            newest_first=True,
            limit=None if limit is None else check_limit(limit),
            states=states,
        )
        rows = yield from fetch(query)
        return [transcript_of(self._tenant, row, self._sealing, has_state=states) for row in rows]

    def count(self) -> Operation[int]:
        """Return the number of the tenant's transcripts. One round trip."""
        (usage,) = yield from fetch(TOTALS(self.sql, tenant=self._tenant))
        return usage.transcripts

    def sweep(self, limit: int = 1_000) -> Operation[int]:
        """Remove expired transcripts of all tenants, each completely; returns the number.

        Reads do not return expired transcripts even before that.

        Args:
            limit: The maximum number of transcripts to remove.
        """
        return (yield from self._owners.remove_expired(check_limit(limit)))

    def forget_tenant(self) -> Operation[int]:
        """Delete all transcripts of the tenant, each whole; returns the number."""
        return (yield from self._owners.forget(self._tenant)).owners

    def _delete(self, where: RowKey, *, parts: bool = False) -> Operation[int]:
        token, which = os.urandom(16), {"which": "{GROUP}" if parts else "{KEY}"}
        lock, outcome = writing.LOCK_EMPTIED(self.sql, where, pieces=which), ledger.FIND(self.sql, where, token=token)
        results = yield from self.turns.delete(
            Batch.of(
                lock,
                ledger.RECORD_AFFECTED(self.sql, where, token=token),
                writing.DELETE(self.sql, where, pieces=which),
                outcome_query=outcome,
            ),
            turn_key(where),
        )
        self._writing.forget(where)
        return ledger.affected_rows(results, lock, outcome)

    def _housekeeping(self) -> Operation[None]:
        """Remove some tokens and expired transcripts."""
        yield ledger.forget_some(self.sql)
        yield from self.sweep(HOUSEKEEPING_TRANSCRIPTS)


class FrameworkTranscripts:
    """Base of the operations of a framework's store, which keeps its data in transcripts.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.config = config
        self._transcripts = TranscriptOperations(config)
        self.schema = self._transcripts.schema

    @property
    def turns(self) -> Turns:
        """The turns on its transcripts."""
        return self._transcripts.turns

    def owner_key(self, key: TranscriptKey) -> OwnerKey:
        """Return the key of a turn on a transcript and all its parts."""
        return self._transcripts.owner_key(key)

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        self._transcripts.attach(database)


def _kind(kind: str) -> bytes:
    return check_name(kind, "The kind of a transcript", coding.KIND_BYTES)
