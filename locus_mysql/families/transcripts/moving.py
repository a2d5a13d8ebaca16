"""Reads and writes transcripts with all their stored data, for transfers. Generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias

from ...config import MySQLConfig
from ...engine.operation import Batch, Duplicate, Operation
from ...errors import CorruptCheckpoint
from ...records import ledger
from ...records.framing import Frame
from ...runtime.sealing import Sealing
from ...runtime.server_times import as_sql_time, aware
from .coding import frame, header_row, open_content, open_state, seal_content, seal_state
from .statements import moving, reading, writing
from .statements.moving import MovedItem, PutRow
from .statements.reading import StoredHeader
from .statements.tables import RowKey, transcript_dialect
from .statements.writing import HeaderRow

#: Transcripts whose items one page reads.
HEADERS_AT_ONCE = 100

#: Kind, collection, name, part and seq; a transcript itself comes before its items, with the seq 0.
Position: TypeAlias = tuple[bytes, bytes, bytes, bytes, int]


class KeptHeader(NamedTuple):
    """A transcript as it is exported; ``state`` is JSON text."""

    names: tuple[bytes, bytes, bytes, bytes]
    revision: int
    tag: bytes | None
    scope: bytes | None
    state: bytes | None
    created_at: datetime
    expires_at: datetime | None
    damaged: bool = False
    last_seq: int = 0

    @property
    def position(self) -> Position:
        """Where it is in the order of records."""
        return (*self.names, 0)


class KeptItem(NamedTuple):
    """An item as it is exported; ``content`` is JSON text."""

    names: tuple[bytes, bytes, bytes, bytes]
    seq: int
    item_id: bytes | None
    content: bytes
    created_at: datetime
    damaged: bool = False

    @property
    def position(self) -> Position:
        """Where it is in the order of records."""
        return (*self.names, self.seq)


Kept: TypeAlias = KeptHeader | KeptItem


@dataclass(slots=True)
class Restored:
    """The result of `MovingOperations.restore`.

    Args:
        written: Number of records that were written.
        present: Number of records that were stored already, identical.
        differing: Descriptions of records that differ in the tables and were not replaced.
        orphans: Descriptions of items whose transcript does not exist; they were not written.
    """

    written: int = 0
    present: int = 0
    differing: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()


class MovingOperations:
    """Reads and writes whole transcripts.

    Args:
        config: The options, with the tenant.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config
        self.sql = transcript_dialect(config.table_prefix)
        self.schema = self.sql.schema
        self._tenant = config.tenant
        self._sealing = Sealing(config.encryption, self.schema.family)

    def page(self, after: Position | None, limit: int) -> Operation[list[Kept]]:
        """Return records after a position, in their order. Two round trips."""
        first, after_seq = ((b"", b"", b"", b""), -1) if after is None else (after[:4], after[4])
        query = moving.HEADERS(self.sql, RowKey(self._tenant, *first), limit=min(limit, HEADERS_AT_ONCE) + 1)
        headers = (yield Batch.of(query)).rows(query)
        chosen, records = [], 0
        for header in headers:  # enough to fill the page, by their item counts, which may be out of date
            chosen.append(header)
            records += 1 + header.items
            if records >= limit + max(after_seq, 0):
                break
        queries = tuple(
            moving.ITEMS(
                self.sql,
                tenant=self._tenant,
                sid=header.sid,
                after=after_seq if header[:4] == first else 0,
                limit=limit,
            )
            for header in chosen
        )
        results = yield Batch(queries, atomic=False)
        found: list[Kept] = []
        for header, query_of_items in zip(chosen, queries, strict=True):
            key = RowKey(self._tenant, *header[:4])
            sealing = self._sealing.of(*key)
            if not (header[:4] == first and after_seq >= 0):
                found.append(_kept_header(key, header, sealing))
            found += (_kept_item(key, row, sealing) for row in results.rows(query_of_items))
            if len(found) >= limit:
                break
        return found[:limit]

    def restore(self, records: Sequence[Kept], *, overwrite: bool) -> Operation[Restored]:
        """Write records that are missing, and compare the others. May be repeated: stored records are skipped.

        Args:
            records: The records, each transcript before its items.
            overwrite: Whether records that differ in the tables are replaced; else they stay unchanged.
        """
        done = Restored()
        by_key: dict[tuple[bytes, bytes, bytes, bytes], list[Kept]] = {}
        for record in records:
            by_key.setdefault(record.names, []).append(record)
        for names, some in by_key.items():
            yield from self._restore(RowKey(self._tenant, *names), some, done, overwrite=overwrite)
        return done

    def finish(self, key: RowKey, last_seq: int) -> Operation[None]:
        """Give later items of a restored transcript seqs above this one. May be repeated."""
        yield Batch.of(moving.RAISE_LAST_SEQ(self.sql, key, last_seq=last_seq))

    def _restore(self, key: RowKey, records: Sequence[Kept], done: Restored, *, overwrite: bool) -> Operation[None]:
        items = {record.seq: record for record in records if isinstance(record, KeptItem)}
        for record in records:
            if isinstance(record, KeptHeader):
                yield from self._restore_header(key, record, done, overwrite=overwrite)
        if not items:
            return
        at, exists = moving.AT(self.sql, key, seqs=list(items)), reading.REVISION(self.sql, key)
        results = yield Batch((exists, at), atomic=False)
        if results.row(exists) is None:  # the line of the transcript is missing, or it has expired
            done.orphans += tuple(f"Item {seq} of transcript {_name(key)!r}" for seq in items)
            return
        sealing = self._sealing.of(*key)
        stored = {row.seq: _kept_item(key, row, sealing) for row in results.rows(at)}
        missing, replaced = [item for seq, item in items.items() if seq not in stored], []
        for seq, kept in stored.items():
            if _same_item(kept, items[seq]):
                done.present += 1
            elif overwrite:
                replaced.append(items[seq])
            else:
                done.differing += (f"Item {seq} of transcript {_name(key)!r}",)
        if not (missing or replaced):
            return
        try:
            yield from self._put(key, [*missing, *replaced], [item.seq for item in replaced])
        except Duplicate:  # another item of the transcript has the same id
            done.differing += tuple(f"Item {item.seq} of transcript {_name(key)!r}" for item in (*missing, *replaced))
            return
        done.written += len(missing) + len(replaced)

    def _restore_header(self, key: RowKey, header: KeptHeader, done: Restored, *, overwrite: bool) -> Operation[None]:
        sealing = self._sealing.of(*key)
        row = header_row(sealing, header.tag, header.scope, seal_state(sealing, self._framed(header.state)))
        query = reading.HEADER(self.sql, key)
        stored = (yield Batch.of(query)).row(query)
        if stored is None:
            yield from self._create(key, header, row)
            done.written += 1
            return
        kept = _kept_header(key, stored, sealing)
        if not kept.damaged and (kept.tag, kept.scope, kept.state) == (header.tag, header.scope, header.state):
            done.present += 1
        elif overwrite:
            token = os.urandom(16)
            yield Batch.of(
                writing.LOCK_EXISTING(self.sql, key, removed=0, size_bytes=0),
                writing.SET_HEADER(self.sql, key, row),
                moving.RAISE_LAST_SEQ(self.sql, key, last_seq=header.last_seq),
                ledger.RECORD(self.sql, key, token=token),
                outcome_query=ledger.FIND(self.sql, key, token=token),
            )
            done.written += 1
        else:
            done.differing += (f"Transcript {_name(key)!r}",)

    def _create(self, key: RowKey, header: KeptHeader, row: HeaderRow) -> Operation[None]:
        token = os.urandom(16)
        create = moving.CREATE(
            self.sql,
            key,
            row,
            sid=os.urandom(16),
            revision=header.revision,
            last_seq=header.last_seq,
            created_at=as_sql_time(header.created_at),
            expires_at=None if header.expires_at is None else as_sql_time(header.expires_at),
        )
        yield Batch.of(
            writing.REMOVE_EXPIRED(self.sql, key),
            create,
            ledger.RECORD(self.sql, key, token=token),
            outcome_query=ledger.FIND(self.sql, key, token=token),
        )

    def _put(self, key: RowKey, items: Sequence[KeptItem], replaced: Sequence[int]) -> Operation[None]:
        token = os.urandom(16)
        yield Batch.of(
            moving.HOLD(self.sql, key),
            (writing.REMOVE_AT(self.sql, key, seqs=list(replaced)),) if replaced else (),
            moving.PUT(self.sql, key, rows=[self._row(key, item) for item in items]),
            writing.RECOUNT(self.sql, key),
            ledger.RECORD(self.sql, key, token=token),
            outcome_query=ledger.FIND(self.sql, key, token=token),
        )

    def _row(self, key: RowKey, item: KeptItem) -> PutRow:
        framed = frame(item.content, self._config.compression)
        content = seal_content(self._sealing.of(*key), item.item_id, item.seq, framed)
        return PutRow(item.seq, item.item_id, content, as_sql_time(item.created_at))

    def _framed(self, text: bytes | None) -> Frame | None:
        return None if text is None else frame(text, self._config.compression)


def _kept_header(key: RowKey, row: StoredHeader, sealing: Sealing) -> KeptHeader:
    damaged, state = row.seal != header_row(sealing, row.tag, row.scope, row.state).seal, None
    if row.state is not None:
        try:
            state = open_state(sealing, row.state, f"The state of transcript {_name(key)!r}")
        except CorruptCheckpoint:
            damaged = True
    expires_at = None if row.expires_at is None else aware(row.expires_at)
    created_at = aware(row.created_at)
    return KeptHeader(key[1:], row.revision, row.tag, row.scope, state, created_at, expires_at, damaged, row.last_seq)


def _kept_item(key: RowKey, row: MovedItem, sealing: Sealing) -> KeptItem:
    damaged, content = False, b"null"
    try:
        content = open_content(sealing, row, f"Item {row.seq} of transcript {_name(key)!r}")
    except CorruptCheckpoint:
        damaged = True
    return KeptItem(key[1:], row.seq, row.item_id, content, aware(row.created_at), damaged)


def _same_item(one: KeptItem, other: KeptItem) -> bool:
    return not one.damaged and (one.item_id, one.content) == (other.item_id, other.content)


def _name(key: RowKey) -> str:
    return key.name.decode(errors="replace")
