"""Statements that store checkpoints and writes, and the rows that they store."""

from __future__ import annotations

from typing import NamedTuple

from ....dialect.sql import SQL, Select
from ....records.ledger import record_each

#: The largest part, in bytes, that a save may store in its own row.
OWN_CHUNK_BYTES = 262_144


class GraphCheckpointRow(NamedTuple):
    """A checkpoint to insert, without its thread and seq.

    Args:
        ns_key: Digest of the namespace.
        checkpoint_key: Digest of namespace and id.
        parent_key: The parent's, or None.
        checkpoint_id: The id.
        parent_id: The parent's id, or None.
        ns: The namespace.
        needs: 0 if it needs nothing of its parent, 1 if all of it, 2 if its writes.
        sources: JSON array of the numbers of its parts.
        tokens: The save's token, 16 bytes; then the digest of the content, 15 bytes, if history is kept.
        payload: Its bytes.
        metadata: JSON text for queries, or None.
        run_key: Digest of the run that made it, or None.
    """

    ns_key: bytes
    checkpoint_key: bytes
    parent_key: bytes | None
    checkpoint_id: str
    parent_id: str | None
    ns: str
    needs: int
    sources: str
    tokens: bytes
    payload: bytes
    metadata: str | None
    run_key: bytes | None


class BaseKey(NamedTuple):
    """The key of a checkpoint that a new one builds on, and the token of the save that wrote it."""

    base_key: bytes
    base_token: bytes


class NewPartRow(NamedTuple):
    """A part of a checkpoint, in its order."""

    slot: int
    chunk: bytes


class WriteRow(NamedTuple):
    """One write of a task, without its thread and checkpoint."""

    task_key: bytes
    idx: int
    task_id: str
    task_path: str
    channel: str
    payload: bytes


class EpochRow(NamedTuple):
    """The epoch of a thread."""

    epoch: bytes


class SavedRow(NamedTuple):
    """A row that says that a write was carried out."""

    saved: int


# Of both: {base} is empty, or {BASE_IS_THERE} for a row that builds on parts of others.

#: Store a whole checkpoint that continues from data its process has, in one statement: the row holds its own part, and
#: the server assigns its seq, the last insert id. If the thread has changed, no row is affected. The shared lock keeps
#: removals out until the end of the transaction. A save may add to a thread without updating its row if it never
#: expires, and its `updated_at` is recent enough. Two checkpoints with one id: error 1062.
INSERT_SHARING = SQL("""
INSERT INTO {checkpoints} (tenant, thread_id, ns_key, stored_seq, hidden, checkpoint_key, parent_key, checkpoint_id,
       parent_id, ns, needs, sources, tokens, payload, metadata, run_key, chunk, created_at)
SELECT t.tenant, t.thread_id, :ns_key, NULL, 0, :checkpoint_key, :parent_key, :checkpoint_id, :parent_id, :ns, :needs,
       :sources, :tokens, :payload, :metadata, :run_key, :chunk, UTC_TIMESTAMP(6)
  FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id = :thread_id AND t.epoch = :epoch
   AND t.expires_at IS NULL AND t.updated_at > UTC_TIMESTAMP(6) - INTERVAL {LAG_S} SECOND{base}
   FOR SHARE
""")

#: Take the next number of a thread, the last insert id, unless its epoch has changed. The statement after it reads
#: ROW_COUNT().
TAKE_SEQ_IN_EPOCH = SQL("""
UPDATE {threads}
   SET last_seq   = LAST_INSERT_ID(last_seq + 1),
       updated_at = UTC_TIMESTAMP(6),
       expires_at = UTC_TIMESTAMP(6) + INTERVAL :ttl_us MICROSECOND
 WHERE tenant = :tenant AND thread_id = :thread_id AND epoch = :epoch AND {LIVE}{base}
""")

#: Take the next number of a thread that is locked. An expired thread starts again. The assignments run left to right;
#: expires_at must come after those that read it.
TAKE_SEQ = SQL("""
UPDATE {threads}
   SET epoch      = IF(expires_at <= UTC_TIMESTAMP(6), :epoch, epoch),
       created_at = IF(expires_at <= UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), created_at),
       last_seq   = LAST_INSERT_ID(last_seq + 1),
       updated_at = UTC_TIMESTAMP(6),
       expires_at = UTC_TIMESTAMP(6) + INTERVAL :ttl_us MICROSECOND
 WHERE tenant = :tenant AND thread_id = :thread_id
""")

EPOCH = Select("SELECT epoch FROM {threads} WHERE tenant = :tenant AND thread_id = :thread_id", EpochRow)

#: {number} after TAKE_SEQ. Error 3141 for a late duplicate of a save whose row was removed since.
UNLESS_RECORDED = """IF(EXISTS(SELECT 1 FROM {ledger} l WHERE l.tenant = :tenant AND l.token = :token), '',
                {APART} + LAST_INSERT_ID())"""

#: {number} after TAKE_SEQ_IN_EPOCH, in whose epoch nothing was removed. Error 3141 if no number was taken.
IF_TAKEN = "IF(ROW_COUNT() = 1, {APART} + LAST_INSERT_ID(), '')"

_COLUMNS = """
INSERT INTO {checkpoints} (tenant, thread_id, ns_key, stored_seq, hidden, checkpoint_key, parent_key, checkpoint_id,
       parent_id, ns, needs, sources, tokens, payload, metadata, run_key, created_at)
"""
_VALUES = """VALUES (:tenant, :thread_id, :ns_key, CAST({number} AS JSON), 0, :checkpoint_key, :parent_key,
       :checkpoint_id, :parent_id, :ns, :needs, :sources, :tokens, :payload, :metadata, :run_key, UTC_TIMESTAMP(6))"""
_REPLACED = """
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

#: Insert a checkpoint under the number just taken from the thread's row. Two checkpoints with one id: error 1062.
INSERT = SQL(_COLUMNS + _VALUES)

#: The same, but an existing checkpoint gets the new content and keeps its seq. The row keeps the tokens of the first
#: save and of the last one; each save that replaced another one also recorded its token in the ledger. A save whose
#: token is in either is a late duplicate, and fails with error 3141.
#:
#: In OceanBase, a subquery in ON DUPLICATE KEY UPDATE may not name the new row, and an alias of VALUES may not have
#: JSON (error 1235). So the row stands in a table to which the ledger is joined.
REPLACE = SQL(
    f"{_COLUMNS}{_VALUES} AS new{_REPLACED}",
    oceanbase=_COLUMNS
    + """SELECT new.tenant, new.thread_id, new.ns_key, new.stored_seq, 0, new.checkpoint_key, new.parent_key,
       new.checkpoint_id, new.parent_id, new.ns, new.needs, new.sources, new.tokens, new.payload, new.metadata,
       new.run_key, UTC_TIMESTAMP(6)
  FROM (SELECT :tenant AS tenant, :thread_id AS thread_id, :ns_key AS ns_key,
               CAST(CAST({number} AS JSON) AS UNSIGNED) AS stored_seq, :checkpoint_key AS checkpoint_key,
               :parent_key AS parent_key, :checkpoint_id AS checkpoint_id, :parent_id AS parent_id, :ns AS ns,
               :needs AS needs, :sources AS sources, :tokens AS tokens, :payload AS payload, :metadata AS metadata,
               :run_key AS run_key) AS new
  LEFT JOIN {ledger} recorded ON recorded.tenant = new.tenant AND recorded.token = new.tokens
 WHERE TRUE
"""
    + _REPLACED.replace(
        "EXISTS(SELECT 1 FROM {ledger} l WHERE l.tenant = new.tenant AND l.token = new.tokens)",
        "recorded.token IS NOT NULL",
    ),
)

#: After REPLACE: record the save's token, if it replaced a checkpoint.
RECORD_IF_REPLACED = record_each("SELECT :tenant, :tokens, UTC_TIMESTAMP(6) FROM DUAL WHERE {AFFECTED} = 2")

#: Store parts of the checkpoint just inserted. LAST_INSERT_ID() is no longer the number taken: the INSERT before set it
#: to the row's seq.
INSERT_PARTS = SQL("""
INSERT INTO {parts} (tenant, thread_id, part, chunk) VALUES [rows: (:tenant, :thread_id, (
SELECT c.stored_seq FROM {checkpoints} c
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.checkpoint_key = :checkpoint_key) * {OWN_PARTS} + :slot,
 :chunk)]
""")

#: One row or two if this is the token of a save that was carried out, even if its row was replaced or removed since; or
#: the digest of the checkpoint's content.
FIND_SAVED = Select(
    """
SELECT 1 FROM {checkpoints} c
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.checkpoint_key = :checkpoint_key
   AND LOCATE(:token, c.tokens) > 0
 UNION ALL
SELECT 1 FROM {ledger} l
 WHERE l.tenant = :tenant AND l.token = :token
""",
    SavedRow,
)

#: Store writes of a task, once: a later write of the same task and index is a retry, and changes nothing. Special
#: writes, with a negative index, are replaced. The first row is the token of the call; a separate statement for it
#: would make a transaction, which takes twice as long. A late duplicate finds that row, and fails with error 3141.
INSERT_WRITES = SQL("""
INSERT INTO {writes} (tenant, thread_id, checkpoint_key, task_key, idx, task_id, task_path, channel, payload,
       created_at)
VALUES ('', '', :token, '', 0, '', '', '', '', UTC_TIMESTAMP(6)), [rows: (:tenant, :thread_id, :checkpoint_key,
:task_key, :idx, :task_id, :task_path, :channel, :payload, UTC_TIMESTAMP(6))] {then}
""")
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

#: One row if the call with this token stored its writes.
FIND_WRITTEN = Select(
    "SELECT 1 FROM {writes} w WHERE w.tenant = '' AND w.thread_id = '' AND w.checkpoint_key = :token", SavedRow
)

#: Remove tokens of calls that are no longer repeated, of all tenants. They sort by the time of their callers' clocks,
#: so that only old ones are read; their age is by the server's clock.
FORGET_WRITTEN = SQL("""
DELETE FROM {writes}
 WHERE tenant = '' AND thread_id = '' AND checkpoint_key < :before
   AND created_at < UTC_TIMESTAMP(6) - INTERVAL {RETENTION_S} SECOND
 LIMIT :limit
""")
