"""`WritingOperations`: adding items to transcripts and replacing their headers, as generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from ...config import MySQLConfig
from ...dialect import Statement
from ...dialect.sql import Dialect
from ...engine.operation import Batch, Duplicate, Operation, Outdated, fetch
from ...engine.retry import Backoff
from ...errors import InvalidInput, NotFound, VersionConflict
from ...lru_cache import LRUCache
from ...records import ledger
from ...records.framing import Frame
from ...records.leases import OwnerKey, Turns
from ...runtime.arguments import check_each, check_limit, check_type, microseconds, tenant_of
from ...runtime.database import Database
from ...runtime.exact_json import decode_json
from ...runtime.sealing import Sealing
from .coding import (
    ID_BYTES,
    check_name,
    encode_content,
    header_row,
    open_state,
    row_key,
    seal_content,
    seal_state,
    transcript_of,
)
from .records import Header, NewItem, Write, Written
from .statements import reading, writing
from .statements.reading import StoredHeader
from .statements.tables import RowKey
from .statements.writing import HeaderRow, ItemRow

#: The maximum number of items of one write, which is one transaction.
ITEMS_LIMIT = 10_000

#: A write of more items is not sent together with the writes of other calls, which would wait for it.
SHORT_WRITE = 8

#: Memory for cached headers, so that a write with a fold does not have to read the state first.
HEADERS_BYTES = 4_194_304


class KnownHeader(NamedTuple):
    """A transcript's header as it was at a revision, 0 if there was no transcript."""

    revision: int
    row: HeaderRow


NOTHING = KnownHeader(0, HeaderRow(None, None, None, 0))


class PlannedItem(NamedTuple):
    """An item of a write, with its id as it is stored, and its content, which is ready to be sealed."""

    item: NewItem
    item_id: bytes | None
    framed: Frame


class PlannedWrite:
    """A write, checked and encoded.

    Args:
        config: The options, with the tenant.
        write: The write.
        sealing: Seals rows of the family.

    Raises:
        InvalidInput: Something in it cannot be stored exactly.
    """

    def __init__(self, config: MySQLConfig, write: Write, sealing: Sealing) -> None:
        self.key = row_key(tenant_of(config), write.key)
        if write.expected is not None:
            check_limit(write.expected, "expected", most=2**63 - 1)
        self.write = write
        self.token = os.urandom(16)
        self._sealing = sealing.of(*self.key)
        #: The seq of the transcript's last item; None if it is not known, or not needed.
        self.last_seq: int | None = None
        self._compression = config.compression
        self.items: list[PlannedItem] = []
        known: set[bytes] = set()
        for item in check_each(write.items, NewItem, "items"):
            item_id = None if item.item_id is None else check_name(item.item_id, "The id of an item", ID_BYTES)
            if item_id is not None:
                if item_id in known:
                    continue
                known.add(item_id)
            framed = encode_content(item.content, "The item", self._compression)
            self.items.append(PlannedItem(item, item_id, framed))
        self._all = self.items
        #: The revision at which the transcript had the skipped items; None if no item is skipped.
        self._left_out_at: int | None = None
        if write.fold is not None and write.header is not None:
            raise InvalidInput("A write has a header or a fold, not both.")
        if write.tag is not None and write.fold is None:
            raise InvalidInput("A write without a fold has its tag in the header.")
        self._new_tag = None if write.tag is None else check_name(write.tag, "The tag", ID_BYTES, least=0)
        self.header = None if write.header is None else self._encoded(check_type(write.header, Header, "The header"))
        self.tag = None if write.expected_tag is None else check_name(write.expected_tag, "The tag", ID_BYTES, least=0)
        self.needed = None if write.needs is None else check_name(write.needs, "The id of an item", ID_BYTES)
        if write.delete and (write.items or write.header is not None or write.fold is not None):
            raise InvalidInput("A transcript cannot be written to and deleted at once.")
        if write.empty and (write.items or write.remove):
            raise InvalidInput("A write that removes all items neither adds nor removes others.")
        self.known = NOTHING

    @property
    def needs_last_seq(self) -> bool:
        """Whether seqs must be known before the write: encrypted items without ids are bound to them."""
        return self._sealing.is_on and any(item.item_id is None for item in self._all)

    @property
    def is_repeated(self) -> bool:
        """Whether the write has items, and the transcript has all of them already."""
        return bool(self._all) and not self.items

    @property
    def adds_items(self) -> bool:
        """Whether the write was given items."""
        return bool(self._all)

    @property
    def changes_nothing(self) -> bool:
        """Whether the transcript has all items already, and the header stays."""
        write = self.write
        return self.is_repeated and write.header is None and not (write.remove or write.empty or write.delete)

    def fold(self, known: KnownHeader) -> None:
        """Compute the new state."""
        assert self.write.fold is not None  # noqa: S101 - for the type checker
        self.known = known
        stored = known.row.state
        before = (
            None
            if stored is None
            else decode_json(open_state(self._sealing, stored, f"The state of transcript {self.write.key.name!r}"))
        )
        state = self.write.fold(before, [planned.item for planned in self.items])
        tag = known.row.tag if self._new_tag is None else self._new_tag
        # A state that the fold returned unchanged is not sent again.
        self.header = header_row(self._sealing, tag, known.row.scope, self._state(state, before, stored))

    def leave_out(self, present: set[bytes], revision: int) -> None:
        """Skip the items that the transcript has at this revision. A fold has to be computed again."""
        self.items = [item for item in self._all if item.item_id not in present]
        self._left_out_at = revision if present else None
        self._forget_fold()

    def take_all(self) -> None:
        """Skip no item: the transcript may have lost the stored ones."""
        self.items, self._left_out_at = self._all, None
        self._forget_fold()

    def steps(self, sql: Dialect, ttl_us: int | None) -> tuple[Statement, ...]:
        """The statements of the write, without its token."""
        key, rows = self.key, self._sealed_rows()
        steps: list[Statement] = [writing.REMOVE_EXPIRED(sql, key), self._lock(sql, rows, ttl_us)]
        folded_at = self.known.revision if self.write.fold is not None and self.header is not None else None
        for revision in (self.write.expected, self._left_out_at, folded_at):
            if revision is not None:
                steps.append(writing.GUARD(sql, key, revision=revision))
        if self.last_seq is not None:
            steps.append(writing.GUARD_SEQ(sql, key, last_seq=self.last_seq + len(rows)))
        if self.tag is not None:
            steps.append(writing.GUARD_TAG(sql, key, tag=self.tag))
        if self.needed is not None:
            steps.append(writing.GUARD_ITEM(sql, key, item_id=self.needed))
        if rows:
            steps += writing.add(sql, key, rows)
        if self.header is not None and (self.write.fold is None or self.header != self.known.row):
            keeps_state = self.write.fold is not None and self.header.state == self.known.row.state
            steps.append((writing.SET_TAG if keeps_state else writing.SET_HEADER)(sql, key, self.header))
        if self.write.remove:
            steps += writing.remove_at(sql, key, self.write.remove)
        if self.write.empty:
            steps += (writing.REMOVE_ITEMS(sql, key), writing.RECOUNT(sql, key))
        if self.write.delete:
            steps.append(writing.DELETE(sql, key, pieces={"which": "{KEY}"}))
        return tuple(steps)

    def _lock(self, sql: Dialect, rows: Sequence[ItemRow], ttl_us: int | None) -> Statement:
        expires = self.write.expires and ttl_us is not None
        return writing.LOCK(
            sql,
            self.key,
            pieces={
                "expiry": writing.AFTER if expires else writing.NEVER,
                "later": writing.LATEST if self.write.is_shared else writing.REPLACED,
            },
            sid=os.urandom(16),
            seal=header_row(self._sealing, None, None, None).seal,
            items=len(rows),
            size_bytes=sum(len(row.content) for row in rows),
            ttl_us=ttl_us,
        )

    def _forget_fold(self) -> None:
        if self.write.fold is not None:
            self.header = None

    def _encoded(self, header: Header) -> HeaderRow:
        tag = None if header.tag is None else check_name(header.tag, "The tag", ID_BYTES, least=0)
        scope = None if header.scope is None else check_name(header.scope, "The scope", least=0)
        return header_row(self._sealing, tag, scope, self._state(header.state))

    def _state(self, state: object, before: object = None, stored: bytes | None = None) -> bytes | None:
        """Return a state as it is stored; if it is the object of the stored one, as that one with the active key."""
        if state is None or (state is before and self._sealing.is_current(stored)):
            return None if state is None else stored
        return seal_state(self._sealing, encode_content(state, "The state", self._compression))

    def _sealed_rows(self) -> list[ItemRow]:
        """Return the rows of the items."""
        first, behind = (self.last_seq or 0) + 1, len(self.items) - 1
        return [
            ItemRow(item.item_id, seal_content(self._sealing, item.item_id, first + index, item.framed), behind - index)
            for index, item in enumerate(self.items)
        ]


class WritingOperations:
    """Adds items and replaces headers.

    Args:
        config: The options.
        sql: The statements.
        turns: The turns on transcripts.
    """

    def __init__(self, config: MySQLConfig, sql: Dialect, turns: Turns) -> None:
        self._turns = turns
        self.config = config
        self.sql = sql
        self._ttl_us = microseconds(config.ttl_s)
        self._known: LRUCache[KnownHeader] = LRUCache(HEADERS_BYTES)
        self._last_seqs: LRUCache[int] = LRUCache(HEADERS_BYTES)
        self._sealing = Sealing(config.encryption, sql.schema.family)

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        tables = self.config.table_prefix, self.config.encryption
        self._known = database.cache(("transcripts' headers", tables), lambda: self._known)
        self._last_seqs = database.cache(("transcripts' last seqs", tables), lambda: self._last_seqs)

    def write(self, writes: Sequence[Write], *, once: bool = False) -> Operation[list[Written]]:
        """Carry out writes to several transcripts, all or nothing; see `TranscriptOperations.write`."""
        plans = [PlannedWrite(self.config, write, self._sealing) for write in check_each(writes, Write, "writes")]
        if len({plan.key for plan in plans}) < len(plans):
            raise InvalidInput("Two of the writes are to one transcript. Join them.")
        if sum(len(plan.items) for plan in plans) > ITEMS_LIMIT:
            raise InvalidInput(f"A write may add {ITEMS_LIMIT:,} items at most. Divide it.")
        if not plans:
            return []
        # Transcripts are locked in one order, so that writers cannot deadlock.
        ordered = sorted(plans, key=lambda plan: plan.key)
        backoff = Backoff("Other writers changed a transcript while items were added")
        while True:
            if all(plan.changes_nothing for plan in plans) or (once and _repeated(plans)):
                return (yield from self._unchanged(plans))
            yield from self._fold(ordered)
            yield from self._find_last_seqs(ordered)
            try:
                revisions = yield from self._send(ordered)
            except Duplicate:  # another process has added an item of the same id
                yield from self._leave_out_present(ordered)
                backoff.check()
            except Outdated:
                yield from self._check_expectations(ordered)
                for plan in ordered:  # another process wrote after this one had read the state or the stored ids
                    self.forget(plan.key)
                    plan.take_all()
                yield backoff.pause()  # before the state is read again
            else:
                for plan, revision in zip(ordered, revisions, strict=True):
                    if plan.write.delete:
                        self.forget(plan.key)
                    elif plan.header is not None:
                        self._remember(plan.key, KnownHeader(revision, plan.header))
                    if plan.last_seq is not None:
                        self._last_seqs.put(plan.key, plan.last_seq + len(plan.items), size=500)
                of = dict(zip((plan.key for plan in ordered), revisions, strict=True))
                return [Written(len(plan.items), of[plan.key]) for plan in plans]

    def _fold(self, plans: Sequence[PlannedWrite]) -> Operation[None]:
        """Compute the states of the writes with a fold. One round trip for those whose states are not known."""
        folding = [plan for plan in plans if plan.write.fold is not None]
        unknown = {plan.key: reading.HEADER(self.sql, plan.key) for plan in folding if not self._known.get(plan.key)}
        read = dict[RowKey, KnownHeader]()
        if unknown:
            results = yield Batch(tuple(unknown.values()), atomic=False)
            for key, query in unknown.items():
                row = results.row(query)
                if row is None:
                    read[key] = NOTHING
                    continue
                transcript_of(key.tenant, row, self._sealing)  # verifies the seal
                read[key] = _known(row)
        for plan in folding:
            plan.fold(read.get(plan.key) or self._known.get(plan.key) or NOTHING)

    def _find_last_seqs(self, plans: Sequence[PlannedWrite]) -> Operation[None]:
        """Find the seqs of the last items where items are bound to their seqs. One round trip for those not known."""
        unknown = []
        for plan in plans:
            if plan.needs_last_seq:
                plan.last_seq = self._last_seqs.get(plan.key)
                if plan.last_seq is None:
                    unknown.append((plan, reading.LAST_SEQ(self.sql, plan.key)))
        if unknown:
            results = yield Batch(tuple(query for _, query in unknown), atomic=False)
            for plan, query in unknown:
                row = results.row(query)
                plan.last_seq = 0 if row is None else row.seq

    def _send(self, plans: Sequence[PlannedWrite]) -> Operation[list[int]]:
        """Write, and return the revisions. One round trip."""
        outcomes = tuple(ledger.FIND(self.sql, plan.key, token=plan.token) for plan in plans)
        batch = Batch.of(
            *(plan.steps(self.sql, self._ttl_us) for plan in plans),
            tuple(writing.RECORD_REVISION(self.sql, plan.key, token=plan.token) for plan in plans),
            outcomes,
            outcome_query=outcomes[0],
            lock=self._group_key(plans),
        )
        keys = dict.fromkeys(turn_key(plan.key) for plan in plans)
        deleted = [turn_key(plan.key) for plan in plans if plan.write.delete and not plan.key.part]
        results = yield from self._turns.write(batch, *keys, deleted=deleted)
        if results.earlier_attempt is not None:
            results = yield Batch(outcomes, atomic=False)
        return [int(row.outcome or 0) for outcome in outcomes for row in results.rows(outcome)]

    def _group_key(self, plans: Sequence[PlannedWrite]) -> tuple[str | bytes, ...]:
        """Return the transcript that a write locks; nothing for a write of several, or of many items."""
        if len(plans) > 1 or len(plans[0].items) > SHORT_WRITE:
            return ()
        return self.sql.names["transcripts"], *plans[0].key

    def _leave_out_present(self, plans: Sequence[PlannedWrite]) -> Operation[None]:
        """Leave out the items that are stored. One round trip.

        Revisions are read before the items. The next batch is refused if a transcript was written since, so an item
        that was deleted meanwhile is not left out.
        """
        asked = []
        for plan in plans:
            ids = [item.item_id for item in plan.items if item.item_id is not None]
            if ids:
                present = reading.PRESENT(self.sql, plan.key, ids=ids)
                asked.append((plan, reading.REVISION(self.sql, plan.key), present))
        queries = tuple(query for _, revision, present in asked for query in (revision, present))
        results = yield Batch(queries, atomic=False)
        for plan, revision, present in asked:
            row = results.row(revision)
            if row is not None:
                plan.leave_out({found.item_id for found in results.rows(present)}, row.revision)

    def _unchanged(self, plans: Sequence[PlannedWrite]) -> Operation[list[Written]]:
        """Return the result of writes whose items are all stored already. One round trip."""
        queries = tuple(reading.HEADER(self.sql, plan.key) for plan in plans)
        results = yield Batch(queries, atomic=False)
        rows = [results.row(query) for query in queries]
        return [Written(0, 0 if row is None else row.revision) for row in rows]

    def _check_expectations(self, plans: Sequence[PlannedWrite]) -> Operation[None]:
        """Raise if a transcript does not meet the caller's expectations."""
        for plan in plans:
            expected = plan.write.expected
            if expected is None and plan.tag is None and plan.needed is None:
                continue
            rows = yield from fetch(reading.HEADER(self.sql, plan.key))
            revision, tag = (rows[0].revision, rows[0].tag) if rows else (0, None)
            if (expected is not None and revision != expected) or (plan.tag is not None and tag != plan.tag):
                has = "has been written to since it was read" if revision else "does not exist"
                raise VersionConflict(
                    f"Transcript {plan.write.key.name!r} {'exists already' if expected == 0 else has}. Nothing was "
                    "changed. Read it again."
                )
            if plan.needed is not None:
                needed = reading.PRESENT(self.sql, plan.key, ids=[plan.needed])
                if not (yield from fetch(needed)):
                    raise NotFound(
                        f"Transcript {plan.write.key.name!r} has no item {plan.write.needs!r}. Nothing was changed."
                    )

    def remember(self, key: RowKey, row: StoredHeader | None) -> None:
        """Remember the header of a transcript that was read, so that a write with a fold need not read it again.

        Args:
            key: The transcript.
            row: The row, whose seal was verified; None if there is no such transcript.
        """
        self._remember(key, NOTHING if row is None else _known(row))

    def _remember(self, key: RowKey, known: KnownHeader) -> None:
        self._known.put(key, known, size=500 + len(known.row.state or b""))

    def forget(self, key: RowKey) -> None:
        """Forget the state of a transcript, and the seq of its last item."""
        self._known.pop(key)
        self._last_seqs.pop(key)


def turn_key(key: RowKey) -> OwnerKey:
    """Return the key of a turn, which is on a transcript with all its parts."""
    return tuple(key[:4])


def _known(row: StoredHeader) -> KnownHeader:
    return KnownHeader(row.revision, HeaderRow(row.tag, row.scope, row.state, row.seal))


def _repeated(plans: Sequence[PlannedWrite]) -> bool:
    """Return whether there are items among the writes, and all of them are stored already."""
    adding = [plan for plan in plans if plan.adds_items]
    return bool(adding) and all(plan.is_repeated for plan in adding)
