"""Statements that store checkpoints and writes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from ..ledger import FORGOTTEN_AT_ONCE, RETENTION_S
from ..statement import Param, Statement
from ..template import Statements, placeholders
from ..variants import OCEANBASE
from .ledger import GraphLedger
from .new_rows import BaseKey, GraphCheckpointRow, WriteRow

# A whole save that continues from data its process has, in one statement: the row holds its own part, and the server
# assigns its seq. If the thread has changed, no row is affected. The shared lock keeps removals out until the end of
# the transaction. {base} is for a row that builds on parts of others; see `threads`. Two checkpoints with one id: error
# 1062.
INSERT_NEXT = """
INSERT INTO {checkpoints} (tenant, thread_id, ns_key, stored_seq, hidden, checkpoint_key, parent_key, checkpoint_id,
                        parent_id, ns, needs, sources, tokens, payload, metadata, run_key, chunk, created_at)
SELECT t.tenant, t.thread_id, %s, NULL, 0, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6)
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s AND t.epoch = %s AND {CURRENT}{base}
   FOR SHARE
"""

# Insert under the number just taken from the thread's row. Two checkpoints with one id: error 1062.
INSERT = """
INSERT INTO {checkpoints} (tenant, thread_id, ns_key, stored_seq, hidden, checkpoint_key, parent_key, checkpoint_id,
                        parent_id, ns, needs, sources, tokens, payload, metadata, run_key, created_at)
VALUES (%s, %s, %s, CAST({number} AS JSON), 0, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6)){then}
"""

# The number; error 3141 for a late duplicate of a save whose row was removed since, as with the guards of checkpoints.
UNLESS_RECORDED = """IF(EXISTS(SELECT 1 FROM {ledger} l WHERE l.tenant = %s AND l.token = %s), '',
                {APART} + LAST_INSERT_ID())"""

# The same after TAKE_SEQ_IN_EPOCH, in whose epoch nothing was removed; error 3141 if no number was taken.
IF_TAKEN = "IF(ROW_COUNT() = 1, {APART} + LAST_INSERT_ID(), '')"

# An existing checkpoint gets the new content and keeps its seq. The row keeps the tokens of the first save and of the
# last one; each save that replaced another one also recorded its token in the ledger. A save whose token is in either
# is a late duplicate, and fails with error 3141.
REPLACE = """
AS new
ON DUPLICATE KEY UPDATE
  tokens     = IF(CAST(IF(LOCATE(new.tokens, {checkpoints}.tokens) > 0
                          OR EXISTS(SELECT 1 FROM {ledger} l WHERE l.tenant = new.tenant AND l.token = new.tokens),
                          '', '1') AS JSON) = 1,
                  CONCAT(new.tokens, RIGHT({checkpoints}.tokens, 16)), ''),
  stored_seq = new.stored_seq,
  hidden     = 0,
  parent_key = new.parent_key,
  parent_id  = new.parent_id,
  needs      = new.needs,
  unlinked   = 0,
  sources    = new.sources,
  payload    = new.payload,
  metadata   = new.metadata,
  run_key    = new.run_key
"""

# A subquery in ON DUPLICATE KEY UPDATE may not name the new row, and an alias of VALUES may not have JSON (error 1235).
# So the row stands in a table to which the ledger is joined.
OCEANBASE.instead_of(
    INSERT,
    """
INSERT INTO {checkpoints} (tenant, thread_id, ns_key, stored_seq, hidden, checkpoint_key, parent_key, checkpoint_id,
                        parent_id, ns, needs, sources, tokens, payload, metadata, run_key, created_at)
SELECT new.tenant, new.thread_id, new.ns_key, new.stored_seq, 0, new.checkpoint_key, new.parent_key, new.checkpoint_id,
       new.parent_id, new.ns, new.needs, new.sources, new.tokens, new.payload, new.metadata, new.run_key,
       UTC_TIMESTAMP(6)
  FROM (SELECT %s AS tenant, %s AS thread_id, %s AS ns_key, CAST(CAST({number} AS JSON) AS UNSIGNED) AS stored_seq,
               %s AS checkpoint_key, %s AS parent_key, %s AS checkpoint_id, %s AS parent_id, %s AS ns, %s AS needs,
               %s AS sources, %s AS tokens, %s AS payload, %s AS metadata, %s AS run_key) AS new
  LEFT JOIN {ledger} recorded ON recorded.tenant = new.tenant AND recorded.token = new.tokens
 WHERE TRUE
 {then}
""",
    {
        REPLACE: REPLACE.replace("AS new\n", "").replace(
            "EXISTS(SELECT 1 FROM {ledger} l WHERE l.tenant = new.tenant AND l.token = new.tokens)",
            "recorded.token IS NOT NULL",
        )
    },
)

# LAST_INSERT_ID() is no longer the number taken: the INSERT before set it to the row's seq.
INSERT_PARTS = "INSERT INTO {parts} (tenant, thread_id, part, chunk) VALUES {rows}"
PART_VALUES = """(%s, %s, (SELECT c.stored_seq FROM {checkpoints} c
          WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_key = %s) * {OWN_PARTS} + %s, %s)"""

# Finds out whether a save was carried out, even if its row was replaced or removed since.
FIND_SAVED = """
SELECT 1
  FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_key = %s AND LOCATE(%s, c.tokens) > 0
 UNION ALL
SELECT 1
  FROM {ledger} l
 WHERE l.tenant = %s AND l.token = %s
"""

# A write is stored once: a later one of the same task and index is a retry, and changes nothing. Special writes, with a
# negative index, are replaced. The first row is the token of the call; a separate statement for it would make a
# transaction, which takes twice as long. A late duplicate finds that row, and fails with error 3141.
INSERT_WRITES = """
INSERT INTO {writes} (tenant, thread_id, checkpoint_key, task_key, idx, task_id, task_path, channel, payload,
                        created_at)
VALUES ('', '', %s, '', 0, '', '', '', '', UTC_TIMESTAMP(6)), {rows} {then}
"""
WRITE_VALUES = "(%s, %s, %s, %s, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6))"
KEEP = "ON DUPLICATE KEY UPDATE {ONCE}"
KEEP_FIRST = """
AS new
ON DUPLICATE KEY UPDATE
  {ONCE},
  task_path = IF(new.idx < 0, new.task_path, {writes}.task_path),
  channel   = IF(new.idx < 0, new.channel, {writes}.channel),
  payload   = IF(new.idx < 0, new.payload, {writes}.payload)
"""
KEEP_LAST = """
AS new
ON DUPLICATE KEY UPDATE
  {ONCE},
  task_path = new.task_path,
  channel   = new.channel,
  payload   = new.payload
"""

FIND_WRITTEN = "SELECT 1 FROM {writes} w WHERE w.tenant = '' AND w.thread_id = '' AND w.checkpoint_key = %s"

# Tokens sort by the time of their callers' clocks, so that only old ones are read; their age is by the server's clock.
FORGET_WRITTEN = """
DELETE FROM {writes}
 WHERE tenant = '' AND thread_id = '' AND checkpoint_key < %s
   AND created_at < UTC_TIMESTAMP(6) - INTERVAL {RETENTION_S} SECOND
 LIMIT %s
"""

#: Parts larger than this get a statement each, so that one packet need not hold them all.
_LARGE_BYTES = 262_144
_PART_PARAMS = 7


class SavingStatements(Statements):
    """Storing checkpoints and writes.

    Args:
        pieces: See `Statements`.
        ledger: The ledger.
    """

    def __init__(self, pieces: Mapping[str, str], ledger: GraphLedger) -> None:
        super().__init__(pieces)
        self._ledger = ledger

    def insert_next(
        self, tenant: str, thread_id: str, epoch: bytes, row: GraphCheckpointRow, base: BaseKey | None
    ) -> Statement:
        """Store a checkpoint with one part at most, its seq as last insert id; affects no row if the thread changed.

        Fails with error 1062 if the id is taken.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            epoch: The thread's, as far as is known.
            row: The checkpoint.
            base: The checkpoint whose parts it builds on; it must be there.
        """
        chunk = row.chunks[0] if row.chunks else None
        text = self._text(INSERT_NEXT, base="" if base is None else "{BASE_IS_THERE}")
        whose = () if base is None else (tenant, thread_id, *base)
        return Statement(text, (row.ns_key, *row.params, chunk, tenant, thread_id, epoch, *whose))

    def insert(
        self, tenant: str, thread_id: str, row: GraphCheckpointRow, *, in_epoch: bool, replace: bool
    ) -> tuple[Statement, ...]:
        """Insert a checkpoint and its parts under the number just taken; the checkpoint first.

        Fails with error 3141 if it is a late duplicate of a save that was carried out.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            row: The checkpoint.
            in_epoch: Whether the number was taken by `take_seq_in_epoch`; fails with error 3141 if that took none.
            replace: Whether a checkpoint of the same id takes the new content; fails with error 1062 otherwise.
        """
        number = IF_TAKEN if in_epoch else UNLESS_RECORDED
        text = self._text(INSERT, number=number, then=REPLACE if replace else "")
        unless_recorded = () if in_epoch else (tenant, row.tokens[:16])
        statement = Statement(text, (tenant, thread_id, row.ns_key, *unless_recorded, *row.params))
        recorded = (self._ledger.record_if_replaced(tenant, row.tokens),) if replace else ()
        return (statement, *recorded, *self._insert_parts(tenant, thread_id, row.checkpoint_key, row.chunks))

    def _insert_parts(
        self, tenant: str, thread_id: str, checkpoint_key: bytes, chunks: Sequence[bytes]
    ) -> list[Statement]:
        groups: list[list[Param]] = []
        size_bytes = 0
        for slot, chunk in enumerate(chunks):
            size_bytes += len(chunk)
            if not groups or size_bytes > _LARGE_BYTES:
                groups.append([])
                size_bytes = len(chunk)
            groups[-1] += [tenant, thread_id, tenant, thread_id, checkpoint_key, slot, chunk]
        return [
            Statement(
                self._text(INSERT_PARTS, rows=placeholders(len(group) // _PART_PARAMS, self._text(PART_VALUES))),
                tuple(group),
            )
            for group in groups
        ]

    def find_saved(self, tenant: str, thread_id: str, checkpoint_key: bytes, token: bytes) -> Statement:
        """One row if this is the token of a save that was carried out, or the digest of the checkpoint's content."""
        return Statement(self._text(FIND_SAVED), (tenant, thread_id, checkpoint_key, token, tenant, token))

    def insert_writes(
        self,
        tenant: str,
        thread_id: str,
        checkpoint_key: bytes,
        token: bytes,
        rows: Sequence[WriteRow],
        *,
        replace: bool,
    ) -> Statement:
        """Store writes of a task, once: fails with error 3141 if the call was carried out already.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            checkpoint_key: The checkpoint.
            token: The call's, as `new_token` makes it.
            rows: The writes.
            replace: Whether all that exist are replaced; else only those with an index below 0.
        """
        params: list[Param] = [token]
        for row in rows:
            params += [
                tenant,
                thread_id,
                checkpoint_key,
                row.task_key,
                row.idx,
                row.task_id,
                row.task_path,
                row.channel,
            ]
            params.append(row.payload)
        some_replace = any(row.idx < 0 for row in rows)
        then = KEEP_LAST if replace else KEEP_FIRST if some_replace else KEEP
        text = self._text(INSERT_WRITES, rows=placeholders(len(rows), WRITE_VALUES), then=then)
        return Statement(text, tuple(params))

    def find_written(self, token: bytes) -> Statement:
        """One row if the call with this token stored its writes."""
        return Statement(self._text(FIND_WRITTEN), (token,))

    def forget_written(self) -> Statement:
        """Remove up to `FORGOTTEN_AT_ONCE` tokens of calls that are no longer repeated, of all tenants."""
        return Statement(self._text(FORGET_WRITTEN), (new_token(time.time() - RETENTION_S)[:8], FORGOTTEN_AT_ONCE))


def new_token(now_s: float | None = None) -> bytes:
    """Return a token for a call that stores writes: 8 bytes of the time, and 8 random ones."""
    microseconds = int((time.time() if now_s is None else now_s) * 1_000_000)
    return microseconds.to_bytes(8) + os.urandom(8)
