"""Statements that read transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from ...errors import Unavailable
from ..statement import Param, Query
from ..template import Statements, fill, placeholders
from .pieces import RowKey

# A transcript with its state.
HEADER = "SELECT {HEADER}, t.state FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT}"

REVISION = "SELECT t.revision FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT}"

LAST_SEQ = "SELECT t.last_seq FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT}"

# The items of a transcript in their order, or from the last one backwards; then a row with seq 0 and the transcript's
# revision. MySQL reads the subquery once, then the items in the order of their primary key, up to the limit. With a
# join, it would read and sort all of them. If the statement is killed (KILL QUERY), the subquery is NULL and finds no
# item; reading the last row then reports the kill: see docs/design/writes.md. The order of a member of a UNION needs a
# limit.
ITEMS = """
(SELECT CAST(0 AS UNSIGNED), i.seq, i.item_id, i.content, i.created_at
   FROM {items} i FORCE INDEX (PRIMARY)
  WHERE i.tenant = %s AND i.sid = (SELECT t.sid FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT}){range}
  ORDER BY i.seq{order})
UNION ALL
(SELECT t.revision, CAST(0 AS UNSIGNED), NULL, _binary'', t.created_at
   FROM {transcripts} t
  WHERE {KEY} AND {LIVE_TRANSCRIPT})
"""
AFTER, BEFORE = " AND i.seq > %s", " AND i.seq < %s"
WITHIN = " AND ({ranges})"

# Up to the item with this id. Relies on the index identity.
UNTIL = """
   AND i.seq <= (SELECT h.seq FROM {items} h
                  WHERE h.tenant = %s AND h.item_id = %s
                    AND h.sid = (SELECT t.sid FROM {transcripts} t WHERE {KEY} AND {LIVE_TRANSCRIPT}))"""
LIMIT, OFFSET = " LIMIT %s", " OFFSET %s"
NO_LIMIT = 9_223_372_036_854_775_807

# One item by its id. Relies on the index identity.
ITEM = """
SELECT 0, i.seq, i.item_id, i.content, i.created_at
  FROM {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.item_id = %s
 WHERE {KEY} AND {LIVE_TRANSCRIPT}
"""

# The ids in a list that a transcript has. Relies on the index identity.
PRESENT = """
SELECT i.item_id
  FROM {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.item_id IN ({ids})
 WHERE {KEY} AND {LIVE_TRANSCRIPT}
"""

# Those of the seqs that a transcript has.
EXISTING = """
SELECT i.seq
  FROM {transcripts} t
  JOIN {items} i ON {OF_TRANSCRIPT} AND i.seq IN ({seqs})
 WHERE {KEY} AND {LIVE_TRANSCRIPT}
"""

# The transcripts of a kind that have an item with this id. Relies on the index identity.
HOLDING = """
SELECT {HEADER}, t.state
  FROM {items} i
  JOIN {transcripts} t ON {OF_TRANSCRIPT}
 WHERE i.tenant = %s AND i.item_id = %s AND t.kind = %s AND {LIVE_TRANSCRIPT}
"""

# In the order of the primary key.
LIST = """
SELECT {HEADER}, {state}
  FROM {transcripts} t
 WHERE t.tenant = %s AND t.kind = %s{conditions} AND {LIVE_TRANSCRIPT}
 ORDER BY t.collection, t.name, t.part{limit}
"""
IN_COLLECTION = " AND t.collection = %s"
NAMED = " AND t.name = %s"
MAIN = " AND t.part = _binary''"
BEGINS, END = " AND t.name >= %s AND t.name < %s", b"\xff"  # UTF-8 has no such byte
UNDIVIDED = " AND LOCATE(%s, t.name, %s) = 0"
AFTER_KEY = """
   AND (t.collection > %s OR t.collection = %s AND (t.name > %s OR t.name = %s AND t.part > %s))"""

# Newest first. Relies on the index scope if a scope is given.
RECENT = """
SELECT {HEADER}, {state}
  FROM {transcripts} t
 WHERE t.tenant = %s AND t.kind = %s{conditions} AND {LIVE_TRANSCRIPT}
 ORDER BY t.revision DESC{limit}
"""
IN_SCOPE = " AND t.scope = %s"


#: The first and the last seq of a range, both included; None: to the end.
SeqRange: TypeAlias = tuple[int, int | None]


class StoredHeader(NamedTuple):
    """A transcript with its sid; ``state`` is None if it has no state, or if the state was not read."""

    kind: bytes
    collection: bytes
    name: bytes
    part: bytes
    revision: int
    tag: bytes | None
    scope: bytes | None
    items: int
    size_bytes: int
    last_seq: int
    created_at: datetime
    expires_at: datetime | None
    seal: int
    sid: bytes
    state: bytes | None


class StoredItem(NamedTuple):
    """An item. In the last row of `ITEMS`, ``seq`` is 0, and ``revision`` the transcript's."""

    revision: int
    seq: int
    item_id: bytes | None
    content: bytes
    created_at: datetime


class FoundItems(NamedTuple):
    """The rows of items that a statement found, and the transcript's revision then."""

    items: Sequence[StoredItem]
    revision: int


def found_items(rows: Sequence[StoredItem]) -> FoundItems | None:
    """Return what an answer to `ReadingStatements.items` holds; None if the transcript does not exist.

    Raises:
        Unavailable: The answer ends before the last row, so that items may be missing too.
    """
    if not rows:
        return None
    if rows[-1].seq != 0:  # something truncates answers; or, on OceanBase, it has expired within the statement
        raise Unavailable(f"The items of a transcript were cut off after {len(rows)} rows. Try again.")
    return FoundItems(rows[:-1], rows[-1].revision)


class RevisionRow(NamedTuple):
    """The revision of a transcript."""

    revision: int


class PresentRow(NamedTuple):
    """The id of an item; see `PRESENT`."""

    item_id: bytes


class SeqRow(NamedTuple):
    """The seq of an item; see `EXISTING` and `LAST_SEQ`."""

    seq: int


class ReadingStatements(Statements):
    """Reading transcripts and their items."""

    def header(self, key: RowKey) -> Query[StoredHeader]:
        """A transcript without its items."""
        return Query(self._text(HEADER), key, row=StoredHeader)

    def revision(self, key: RowKey) -> Query[RevisionRow]:
        """The revision of a transcript."""
        return Query(self._text(REVISION), key, row=RevisionRow)

    def last_seq(self, key: RowKey) -> Query[SeqRow]:
        """The seq of the last item that a transcript ever had; 0 if it had none."""
        return Query(self._text(LAST_SEQ), key, row=SeqRow)

    def items(
        self, key: RowKey, *, after: int | None = None, before: int | None = None, until: bytes | None = None,
        within: Sequence[SeqRange] | None = None, limit: int | None = None, offset: int = 0, last: bool = False,
    ) -> Query[StoredItem]:  # fmt: skip
        """Items of a transcript; see `found_items`.

        Args:
            key: The transcript.
            after: Only items after this seq.
            before: Only items before this seq.
            until: Only the item with this id and those before it.
            within: Only items whose seqs are in one of these ranges.
            limit: The maximum number of results.
            offset: The number of items to skip.
            last: Whether to begin with the last item and read backwards.
        """
        conditions, params = "", _params()
        for text, bound in ((AFTER, after), (BEFORE, before)):
            if bound is not None:
                conditions += text
                params.append(bound)
        if until is not None:
            conditions += UNTIL
            params += (key.tenant, until, *key)
        if within is not None:
            texts = ["i.seq >= %s" if last_seq is None else "i.seq BETWEEN %s AND %s" for _, last_seq in within]
            conditions += fill(WITHIN, {"ranges": " OR ".join(texts) or "FALSE"})
            params += [seq for one in within for seq in one if seq is not None]
        last_params = _params(NO_LIMIT if limit is None else limit)
        order = (" DESC" if last else "") + LIMIT
        if offset:
            order += OFFSET
            last_params.append(offset)
        text = self._text(ITEMS, range=conditions, order=order)
        return Query(text, (key.tenant, *key, *params, *last_params, *key), row=StoredItem)

    def item(self, key: RowKey, item_id: bytes) -> Query[StoredItem]:
        """One item by its id."""
        return Query(self._text(ITEM), (item_id, *key), row=StoredItem)

    def present(self, key: RowKey, ids: Sequence[bytes]) -> Query[PresentRow]:
        """The ids in the list that items of the transcript have."""
        return Query(self._text(PRESENT, ids=placeholders(len(ids))), (*ids, *key), row=PresentRow)

    def existing(self, key: RowKey, seqs: Sequence[int]) -> Query[SeqRow]:
        """Those of the seqs that items of the transcript have."""
        return Query(self._text(EXISTING, seqs=placeholders(len(seqs))), (*seqs, *key), row=SeqRow)

    def holding(self, tenant: str, kind: bytes, item_id: bytes) -> Query[StoredHeader]:
        """The transcripts of a kind that have an item with this id."""
        return Query(self._text(HOLDING), (tenant, item_id, kind), row=StoredHeader)

    def listed(
        self,
        tenant: str,
        kind: bytes,
        *,
        collection: bytes | None,
        name: bytes | None,
        prefix: bytes = b"",
        delimiter: bytes | None = None,
        parts: bool,
        after: tuple[bytes, bytes, bytes] | None,
        limit: int | None,
        states: bool,
    ) -> Query[StoredHeader]:
        """Transcripts in the order of their keys.

        Args:
            tenant: The tenant.
            kind: Their kind.
            collection: Their collection; None for any.
            name: Their name; None for any.
            prefix: The start of their names.
            delimiter: Leave out names with this text behind the prefix.
            parts: Whether to include transcripts with a part.
            after: Only those after this collection, name and part.
            limit: The maximum number of results.
            states: Whether to read their states.
        """
        conditions, params = "", _params(tenant, kind)
        for text, value in ((IN_COLLECTION, collection), (NAMED, name)):
            if value is not None:
                conditions += text
                params.append(value)
        if prefix:
            conditions += BEGINS
            params += (prefix, prefix + END)
        if delimiter is not None:
            conditions += UNDIVIDED
            params += (delimiter, len(prefix) + 1)
        if not parts:
            conditions += MAIN
        if after is not None:
            conditions += AFTER_KEY
            collection, name, part = after
            params += (collection, collection, name, name, part)
        return self._page(LIST, conditions, params, limit, states=states)

    def recent(
        self,
        tenant: str,
        kind: bytes,
        *,
        collection: bytes | None,
        scope: bytes | None,
        limit: int | None,
        states: bool,
    ) -> Query[StoredHeader]:
        """Transcripts without parts, newest first; see `listed`."""
        conditions, params = MAIN, _params(tenant, kind)
        for text, value in ((IN_COLLECTION, collection), (IN_SCOPE, scope)):
            if value is not None:
                conditions += text
                params.append(value)
        return self._page(RECENT, conditions, params, limit, states=states)

    def _page(
        self, template: str, conditions: str, params: list[Param], limit: int | None, *, states: bool
    ) -> Query[StoredHeader]:
        text = self._text(
            template,
            state="t.state" if states else "NULL",
            conditions=conditions,
            limit="" if limit is None else LIMIT,
        )
        return Query(text, (*params, *(() if limit is None else (limit,))), row=StoredHeader)


def _params(*values: Param) -> list[Param]:
    return list(values)
