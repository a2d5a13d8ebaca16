"""Statements that load a checkpoint: its row, and the rows that it builds on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....dialect.sql import SQL, Select

#: The maximum number of rows that `LOAD_NEWEST` and `LOAD_NAMED` read: a checkpoint's and those that it builds on. In
#: this form, a row takes the server a quarter of the time of a separate look-up. In a conversation of 120 turns no
#: state builds on more rows; with 250 to 500 turns, one in eight does.
CHAIN_ROWS = 6

#: The maximum number of rows that are sent to a process of those saved since it read the thread.
SINCE_ROWS = 16


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


_COLUMNS = ",\n       ".join(f"c{row}.seq, c{row}.token, c{row}.payload" for row in range(CHAIN_ROWS))
_MORE = f"c{CHAIN_ROWS - 1}.base_seq < c{CHAIN_ROWS - 1}.seq"

# A base is found by its whole primary key; the row that builds on it has its seq. So MySQL reads it while it plans the
# statement, as a constant, and has nothing left to execute; that takes half the time of a recursion. A row without a
# base has its own seq as base_seq; comparing the two seqs ends the chain.
_BASES = "".join(
    f"""
  LEFT JOIN {{checkpoints}} c{row} ON c{row}.tenant = t.tenant AND c{row}.thread_id = t.thread_id
                            AND c{row}.seq = c{row - 1}.base_seq AND c{row}.seq < c{row - 1}.seq"""
    for row in range(1, CHAIN_ROWS)
)

#: The newest checkpoint, as one row for `rows_of`; none if there is no thread. It is the last saved one. If that was
#: deleted, this returns the thread without a row.
LOAD_NEWEST = SQL(f"""
SELECT t.version, {_MORE}, NULL, NULL,
       {_COLUMNS}
  FROM {{threads}} t
  LEFT JOIN {{checkpoints}} c0 ON c0.tenant = t.tenant AND c0.thread_id = t.thread_id AND c0.seq = t.last_seq
                            AND c0.seq >= t.first_seq AND c0.checkpoint_id IS NOT NULL{_BASES}
 WHERE {{KEY.t}} AND {{LIVE_THREAD}}
""")

#: A checkpoint by its id, as one row for `rows_of`; none if there is none.
LOAD_NAMED = SQL(f"""
SELECT t.version, {_MORE}, c0.metadata, c0.seal,
       {_COLUMNS}
  FROM {{threads}} t
  JOIN {{checkpoints}} c0 ON c0.tenant = t.tenant AND c0.thread_id = t.thread_id AND c0.checkpoint_id = :checkpoint_id
                       AND c0.seq >= t.first_seq{_BASES}
 WHERE {{KEY.t}} AND {{LIVE_THREAD}}
""")


def rows_of(chain: Sequence[Any]) -> list[LineageRow] | None:
    """Return the rows in the result of `LOAD_NEWEST` or `LOAD_NAMED`, in the form of `LOAD_ALL`.

    None if there are more rows, or if the newest checkpoint is not the last saved one: then use `LOAD_ALL`.
    """
    version, more, metadata, seal, *columns = chain
    if more or columns[0] is None:
        return None
    rows = (columns[at : at + 3] for at in range(0, len(columns), 3) if columns[at] is not None)
    return [LineageRow(seq, token, payload, version, metadata, seal) for seq, token, payload in rows]


#: The row of a checkpoint and all rows that it builds on, newest first; the pieces are `OF_NEWEST` or `OF_NAMED`. The
#: recursion carries keys only, as payloads would be copied into a temporary table. A row builds on older ones, and on
#: at most 130; the bounds end the recursion on damaged rows, which the reader then detects. OceanBase has no LIMIT in a
#: recursion (error 3575).
LOAD_ALL = Select(
    """
WITH RECURSIVE chosen AS (
  SELECT c.seq, c.base_seq, t.version
    FROM {checkpoints} c
    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
   WHERE {KEY.c} AND {which} AND {LIVE_ROW}
   ORDER BY c.seq DESC
   LIMIT 1
),
lineage (seq, base_seq, version, hops) AS (
  SELECT seq, base_seq, version, 1 FROM chosen
  UNION ALL
  SELECT b.seq, b.base_seq, lineage.version, lineage.hops + 1
    FROM lineage
    JOIN {checkpoints} b ON {KEY.b} AND b.seq = lineage.base_seq AND b.seq < lineage.seq
   WHERE lineage.hops < 500
)
SELECT c.seq, c.token, c.payload, lineage.version, {sealed}
  FROM lineage
  JOIN {checkpoints} c ON {KEY.c} AND c.seq = lineage.seq
 ORDER BY c.seq DESC
""",
    LineageRow,
)
OF_NEWEST = {"which": "c.checkpoint_id IS NOT NULL", "sealed": "NULL, NULL"}
OF_NAMED = {
    "which": "c.checkpoint_id = :checkpoint_id",
    # What the seal of a checkpoint covers, and the seal, in its own row only.
    "sealed": "IF(c.checkpoint_id = :checkpoint_id, c.metadata, NULL),"
    " IF(c.checkpoint_id = :checkpoint_id, c.seal, NULL)",
}


class SinceRow(NamedTuple):
    """A row saved since another one, or that one, without its payload."""

    version: bytes
    seq: int
    base_seq: int | None
    token: bytes
    payload: bytes | None
    named: int


#: The rows saved since a state that a process has, newest first, and the row of that state without its payload: a range
#: of the primary key. That row shows whether the state still exists, and so whether all rows that it builds on do. If
#: there are more than `SINCE_ROWS`, it is not returned.
LOAD_SINCE = Select(
    f"""
SELECT t.version, c.seq, c.base_seq, c.token, IF(c.seq = :seq, NULL, c.payload), c.checkpoint_id IS NOT NULL
  FROM {{threads}} t
  JOIN {{checkpoints}} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
 WHERE {{KEY.t}} AND c.seq >= :seq AND {{LIVE_ROW}}
 ORDER BY c.seq DESC
 LIMIT {SINCE_ROWS}
""",
    SinceRow,
)


class KnownRow(NamedTuple):
    """A row whose key is known."""

    payload: bytes


#: Rows by their seqs, newest first; none if the thread has another version. A look-up by primary key. They still belong
#: to the newest checkpoint if the thread's version is unchanged.
LOAD_ROWS = Select(
    """
SELECT c.payload
  FROM {threads} t
  JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
 WHERE {KEY.c} AND t.version = :version AND c.seq IN (:seqs) AND {LIVE_ROW}
 ORDER BY c.seq DESC
""",
    KnownRow,
)
