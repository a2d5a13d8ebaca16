"""Statements that load a checkpoint: its row, and the rows that it builds on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ..statement import Query, Statement
from ..template import Statements, placeholders
from ..variants import OCEANBASE

#: The maximum number of rows that `newest` and `named` read: a checkpoint's and those that it builds on. In this form,
#: a row takes the server a quarter of the time of a separate look-up. In a conversation of 120 turns no state builds on
#: more rows; with 250 to 500 turns, one in eight does.
CHAIN_ROWS = 6

#: The maximum number of rows that are sent to a process of those saved since it read the thread.
SINCE_ROWS = 16

# The newest checkpoint is the last saved one. If that was deleted, this returns the thread without a row.
LOAD_NEWEST = """
SELECT {columns}
  FROM {threads} t
  LEFT JOIN {checkpoints} c0 ON c0.tenant = t.tenant AND c0.thread_id = t.thread_id AND c0.seq = t.last_seq
                            AND c0.seq >= t.first_seq AND c0.checkpoint_id IS NOT NULL
  {bases}
 WHERE t.tenant = %s AND t.thread_id = %s AND {LIVE_THREAD}
"""

LOAD_NAMED = """
SELECT {columns}
  FROM {threads} t
  JOIN {checkpoints} c0 ON c0.tenant = t.tenant AND c0.thread_id = t.thread_id AND c0.checkpoint_id = %s
                       AND c0.seq >= t.first_seq
  {bases}
 WHERE t.tenant = %s AND t.thread_id = %s AND {LIVE_THREAD}
"""

# A base is found by its whole primary key; the row that builds on it has its seq. So MySQL reads it while it plans the
# statement, as a constant, and has nothing left to execute; that takes half the time of a recursion. A row without a
# base has its own seq as base_seq; comparing the two seqs ends the chain.
BASE_OF_ROW = """
  LEFT JOIN {checkpoints} c{row} ON c{row}.tenant = t.tenant AND c{row}.thread_id = t.thread_id
                            AND c{row}.seq = c{above}.base_seq AND c{row}.seq < c{above}.seq
"""

# Every row, newest first. The recursion carries keys only, as payloads would be copied into a temporary table. A row
# builds on older ones, and on at most 130; the bounds end the recursion on damaged rows, which the reader then detects.
LOAD_ALL = """
WITH RECURSIVE lineage (seq, base_seq, version) AS (
  (SELECT c.seq, c.base_seq, t.version
     FROM {checkpoints} c
     JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
    WHERE c.tenant = %s AND c.thread_id = %s AND {which} AND {LIVE_ROW}{newest})
  UNION ALL
  SELECT b.seq, b.base_seq, lineage.version
    FROM lineage
    JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   LIMIT 500
)
SELECT c.seq, c.token, c.payload, lineage.version, {sealed}
  FROM lineage
  JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = %s AND c.seq = lineage.seq
 ORDER BY c.seq DESC
"""
NEWEST = "\n    ORDER BY c.seq DESC LIMIT 1"

# What the seal of a checkpoint covers, and the seal, in its own row only.
SEALED = "IF(c.checkpoint_id = %s, c.metadata, NULL), IF(c.checkpoint_id = %s, c.seal, NULL)"

# There is no LIMIT in a recursion (error 3575).
OCEANBASE.instead_of(
    LOAD_ALL,
    """
WITH RECURSIVE chosen AS (
  SELECT c.seq, c.base_seq, t.version
    FROM {checkpoints} c
    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
   WHERE c.tenant = %s AND c.thread_id = %s AND {which} AND {LIVE_ROW}
   ORDER BY c.seq DESC
   LIMIT 1
),
lineage (seq, base_seq, version, hops) AS (
  SELECT seq, base_seq, version, 1 FROM chosen
  UNION ALL
  SELECT b.seq, b.base_seq, lineage.version, lineage.hops + 1
    FROM lineage
    JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   WHERE lineage.hops < 500
)
SELECT c.seq, c.token, c.payload, lineage.version, {sealed}
  FROM lineage
  JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = %s AND c.seq = lineage.seq
 ORDER BY c.seq DESC
""",
)

# The rows saved since a state that a process has: a range of the primary key. The row of that state shows whether it
# still exists, and so whether all rows that it builds on do.
LOAD_SINCE = """
SELECT t.version, c.seq, c.base_seq, c.token, IF(c.seq = %s, NULL, c.payload), c.checkpoint_id IS NOT NULL
  FROM {threads} t
  JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
 WHERE t.tenant = %s AND t.thread_id = %s AND c.seq >= %s AND {LIVE_ROW}
 ORDER BY c.seq DESC
 LIMIT %s
"""

# Rows with known keys: a look-up by primary key. They still belong to the newest checkpoint if the thread's version is
# unchanged.
LOAD_ROWS = """
SELECT c.payload
  FROM {threads} t
  JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND t.version = %s AND c.seq IN ({seqs}) AND {LIVE_ROW}
 ORDER BY c.seq DESC
"""


class LineageRow(NamedTuple):
    """A row of a checkpoint, or one that it builds on.

    Args:
        seq: Its seq.
        token: Its token.
        payload: The delta of its state to that of the row it builds on.
        version: The version of the thread.
        metadata: The metadata of the checkpoint, if it was asked for by its id and this is its row.
        seal: The seal of this row.
    """

    seq: int
    token: bytes
    payload: bytes
    version: bytes
    metadata: str | None = None
    seal: int | None = None


class SinceRow(NamedTuple):
    """A row saved since another one, or that one, without its payload."""

    version: bytes
    seq: int
    base_seq: int | None
    token: bytes
    payload: bytes | None
    named: int


class KnownRow(NamedTuple):
    """A row whose key is known."""

    payload: bytes


def rows_of(chain: Sequence[Any]) -> list[LineageRow] | None:
    """Return the rows in the result of `LoadingStatements.newest` or `named`, in the form of `all_rows`.

    None if there are more rows, or if the newest checkpoint is not the last saved one: then use `all_rows`.
    """
    version, more, metadata, seal, *columns = chain
    if more or columns[0] is None:
        return None
    rows = (columns[at : at + 3] for at in range(0, len(columns), 3) if columns[at] is not None)
    return [LineageRow(seq, token, payload, version, metadata, seal) for seq, token, payload in rows]


class LoadingStatements(Statements):
    """Loading checkpoints."""

    @cached_property
    def _newest(self) -> str:
        return self._chain(LOAD_NEWEST, "NULL, NULL")

    @cached_property
    def _named(self) -> str:
        return self._chain(LOAD_NAMED, "c0.metadata, c0.seal")

    def _chain(self, template: str, sealed: str) -> str:
        """Fill in a template with the columns of all rows of a chain, and the joins that find them."""
        last = CHAIN_ROWS - 1
        columns = ["t.version", f"c{last}.base_seq < c{last}.seq", sealed]
        columns += [f"c{row}.seq, c{row}.token, c{row}.payload" for row in range(CHAIN_ROWS)]
        bases = [self._text(BASE_OF_ROW, row=str(row), above=str(row - 1)) for row in range(1, CHAIN_ROWS)]
        return self._text(template, columns=",\n       ".join(columns), bases="\n  ".join(bases))

    def newest(self, tenant: str, thread_id: str) -> Statement:
        """The newest checkpoint, as one row for `rows_of`; none if there is no thread."""
        return Statement(self._newest, (tenant, thread_id))

    def since(self, tenant: str, thread_id: str, seq: int) -> Query[SinceRow]:
        """The rows saved since this one, and itself without its payload, newest first.

        If there are more than `SINCE_ROWS`, this one is not returned.
        """
        return Query(self._text(LOAD_SINCE), (seq, tenant, thread_id, seq, SINCE_ROWS), row=SinceRow)

    def named(self, tenant: str, thread_id: str, checkpoint_id: str) -> Statement:
        """A checkpoint by its id, as one row for `rows_of`; none if there is none."""
        return Statement(self._named, (checkpoint_id, tenant, thread_id))

    def all_rows(self, tenant: str, thread_id: str, checkpoint_id: str | None) -> Query[LineageRow]:
        """The row of a checkpoint, or of the newest, and all rows it builds on."""
        key = (tenant, thread_id)
        if checkpoint_id is None:
            text = self._text(LOAD_ALL, which="c.checkpoint_id IS NOT NULL", newest=NEWEST, sealed="NULL, NULL")
            return Query(text, key * 3, row=LineageRow)
        text = self._text(LOAD_ALL, which="c.checkpoint_id = %s", newest="", sealed=SEALED)
        return Query(text, (*key, checkpoint_id, *key, checkpoint_id, checkpoint_id, *key), row=LineageRow)

    def rows(self, tenant: str, thread_id: str, version: bytes, seqs: Sequence[int]) -> Query[KnownRow]:
        """Rows by their seqs, newest first; none if the thread has another version."""
        text = self._text(LOAD_ROWS, seqs=placeholders(len(seqs)))
        return Query(text, (tenant, thread_id, version, *seqs), row=KnownRow)
