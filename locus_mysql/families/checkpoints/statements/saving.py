"""Statements that insert a checkpoint under the seq that was taken before, and all checkpoints of a thread."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ....dialect.resealing import StoredRow, encrypted, shifted
from ....dialect.sql import SQL, Select
from ....records.ledger import FIND
from .threads import ThreadId, guard_once


class NewRow(NamedTuple):
    """A checkpoint to insert, without its thread and seq.

    Args:
        checkpoint_id: Its id.
        token: The token of the save.
        payload: Its state, sealed.
        seal: Covers its id, token and metadata.
        parent_seq: The seq of the state that it follows.
        continues: 0 if the row has all of its search text, 1 if it has only the text that its state adds to its
            parent's, and 2 if the state is provisional, which has no search text.
        metadata: Its metadata as text.
        metadata_keys: The keys by which it is found, as JSON.
        search_text: The text to index.
        unindexed: 1 if there is a text, which is not indexed yet.
        oldest_at: When its first exchange began, as text in UTC.
    """

    checkpoint_id: str
    token: bytes
    payload: bytes
    seal: int
    parent_seq: int | None = None
    continues: int = 0
    metadata: str | None = None
    metadata_keys: str | None = None
    search_text: str | None = None
    unindexed: int | None = None
    oldest_at: str | None = None

    @property
    def provisional(self) -> bool:
        """Return whether a later save will supersede it and delete it."""
        return self.continues == 2


#: Inserts a whole state without a parent, under the seq that was just taken. The thread's row is locked, so its
#: last_seq is that seq. The time is read by this statement, not by the one before, which may have waited for the lock
#: of another save.
INSERT_WHOLE = SQL("""
INSERT INTO {checkpoints} ({ROW})
SELECT t.tenant, t.thread_id, t.last_seq, :checkpoint_id, NULL, t.last_seq, {VALUES}, UTC_TIMESTAMP(6)
  FROM {threads} t
 WHERE {KEY.t}
""")

#: The same, as the child of the newest checkpoint; a lasting state follows the newest lasting one (`continues` is 2 for
#: provisional ones). The thread is locked, so no other save adds one meanwhile. ORDER BY names all columns of the
#: primary key, so that MySQL walks it backwards.
INSERT_WHOLE_AFTER_NEWEST = SQL("""
INSERT INTO {checkpoints} ({ROW})
SELECT n.tenant, n.thread_id, n.seq, :checkpoint_id, n.parent_seq, n.seq, {VALUES}, UTC_TIMESTAMP(6)
  FROM (SELECT t.tenant, t.thread_id, t.last_seq AS seq,
               (SELECT c.seq
                  FROM {checkpoints} c
                 WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.checkpoint_id IS NOT NULL
                   AND c.seq >= t.first_seq AND c.seq < t.last_seq AND (:continues = 2 OR c.continues <> 2)
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC LIMIT 1) AS parent_seq
          FROM {threads} t
         WHERE {KEY.t}) AS n
""")

#: The same for a state with a parent. It is inserted only if its parent, whose text it may continue, and its base still
#: exist and have the expected tokens: a thread that was deleted and created again may have other rows under these seqs.
#: The pieces are `WITH_BASE` or `WITHOUT_BASE`.
INSERT_AFTER = SQL("""
INSERT INTO {checkpoints} ({ROW})
SELECT t.tenant, t.thread_id, t.last_seq, :checkpoint_id, c.seq, {base_seq}, {VALUES}, UTC_TIMESTAMP(6)
  FROM {threads} t
  JOIN {checkpoints} c ON {KEY.c} AND c.seq = :parent_seq AND c.token = :parent_token{base}
 WHERE {KEY.t} AND {LIVE_ROW}
""")

#: The pieces of a state that builds on another one, and of one that does not.
WITH_BASE = {
    "base_seq": "b.seq",
    "base": "\n  JOIN {checkpoints} b ON {KEY.b} AND b.seq = :base_seq AND b.token = :base_token"
    " AND b.base_seq IS NOT NULL",
}
WITHOUT_BASE = {"base_seq": "t.last_seq", "base": ""}

#: The same after a seq was taken in a thread that no other process has written to, so that parent and base are not
#: looked up; that saves 0.15 ms of 1.2 ms. If no seq was taken, ROW_COUNT() is 0 and the statement fails with error
#: 3141, as `GUARD` does. INSERT ... SELECT would affect no row instead, but takes 0.04 ms more.
INSERT_NEXT = SQL("""
INSERT INTO {checkpoints} ({ROW})
VALUES (:tenant, :thread_id, CAST(IF(ROW_COUNT() = 1, LAST_INSERT_ID(), '') AS JSON), :checkpoint_id, :parent_seq,
        COALESCE(:base_seq, LAST_INSERT_ID()), {VALUES}, UTC_TIMESTAMP(6))
""")


class Saved(NamedTuple):
    """The seq of a row that was saved; None if the row was removed since."""

    seq: int | None


#: Checks whether a save was executed, before it is repeated. If its row was replaced, pruned or deleted since, the
#: token is in the ledger.
FIND_SAVED = Select(
    """
SELECT c.seq
  FROM {checkpoints} c
 WHERE {KEY.c} AND c.checkpoint_id = :checkpoint_id AND c.token = :token
 UNION ALL
SELECT NULL
  FROM {ledger} l
 WHERE l.tenant = :tenant AND l.token = :token
""",
    Saved,
)

GUARD_SAVE = guard_once(FIND_SAVED)

#: Clears the id of the checkpoint that a row will replace, if `INSERT_AFTER` with the same pieces will find the row's
#: parent and base. Its seq becomes LAST_INSERT_ID(), for `removing.remove_unneeded`.
CLEAR_REPLACED_ID = SQL("""
UPDATE {checkpoints} x
  JOIN {checkpoints} c ON {KEY.c} AND c.seq = :parent_seq AND c.token = :parent_token{base}
  JOIN {threads} t ON {KEY.t} AND {LIVE_ROW}
   SET {UNNAMED.x},
       x.token = IF(LAST_INSERT_ID(x.seq) >= 0, x.token, x.token)
 WHERE {KEY.x} AND x.checkpoint_id = :checkpoint_id
""")


# Copying a thread

#: Locks both threads.
LOCK_BOTH = Select(
    """
SELECT t.thread_id FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id IN (:source, :destination) ORDER BY t.thread_id FOR UPDATE
""",
    ThreadId,
)

#: Copying takes two statements, so the source must exist and be locked, and the copy must not have been made yet:
#: otherwise error 3141 undoes the batch. MAX: see docs/design/writes.md.
SOURCE_HELD = SQL(f"""
SELECT CAST(IF(MAX(NOT EXISTS ({FIND.text})), '1', '') AS JSON) FROM {{threads}} t
 WHERE t.tenant = :tenant AND t.thread_id = :source AND {{LIVE_THREAD}}
   FOR UPDATE
""")

#: Removes the rows of an expired destination.
DELETE_EXPIRED = SQL("""
DELETE c FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE {KEY.c} AND t.expires_at <= UTC_TIMESTAMP(6)
""")

DROP_EXPIRED = SQL("DELETE FROM {threads} WHERE {KEY} AND expires_at <= UTC_TIMESTAMP(6)")

#: Fails with error 1062 if the destination exists and has not expired.
COPY_THREAD = SQL("""
INSERT INTO {threads} ({NEW_THREAD})
SELECT t.tenant, :destination, t.last_seq, t.first_seq, UUID_TO_BIN(UUID()), t.created_at, UTC_TIMESTAMP(6), {EXPIRY}
  FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id = :source
""")

#: Seals cover the thread, so those of a copy are other ones: see `Sealing.shift`.
COPY_ROWS = SQL(f"""
INSERT INTO {{checkpoints}} ({{ROW}})
SELECT c.tenant, :destination, c.seq, c.checkpoint_id, c.parent_seq, c.base_seq, c.continues, c.token,
       {shifted("c.payload")}, c.metadata, c.metadata_keys, COALESCE(c.search_text, c.pending_text),
       IF(COALESCE(c.search_text, c.pending_text) IS NULL, NULL, 1), c.oldest_at,
       c.seal ^ :shift, c.created_at
  FROM {{checkpoints}} c
  JOIN {{threads}} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = :tenant AND c.thread_id = :source AND c.seq >= t.first_seq
""")

#: A row that only a program with keys can copy.
ENCRYPTED = Select(
    f"SELECT c.payload FROM {{checkpoints}} c WHERE {{KEY.c}} AND {encrypted('c.payload')} LIMIT 1", StoredRow
)

# Rewriting the states of a thread: read them as stored, and put rows with the same seqs.

#: Ids of threads with a checkpoint whose oldest message is from before a time.
THREADS_WITH_OLD_MESSAGES = Select(
    """
SELECT DISTINCT c.thread_id
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = :tenant AND c.thread_id > :after AND c.oldest_at < :before AND c.checkpoint_id IS NOT NULL
   AND {LIVE_ROW}
 ORDER BY c.thread_id
 LIMIT :limit
""",
    ThreadId,
)


class WholeRow(NamedTuple):
    """A row of a thread that is rewritten."""

    seq: int
    token: bytes
    payload: bytes
    checkpoint_id: str | None
    base_seq: int | None
    parent_seq: int | None
    metadata: str | None
    metadata_keys: str | None
    created_at: datetime
    version: bytes
    seal: int


#: Every row of a thread, oldest first.
READ_THREAD = Select(
    """
SELECT c.seq, c.token, c.payload, c.checkpoint_id, c.base_seq, c.parent_seq, c.metadata, c.metadata_keys, c.created_at,
       t.version, c.seal
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE {KEY.c} AND {LIVE_ROW}
 ORDER BY c.seq
""",
    WholeRow,
)


class SequencedRow(NamedTuple):
    """A row with its seq in the thread.

    Args:
        row: Its values.
        seq: Its seq.
        base_seq: The seq of the row it builds on; its own if it builds on no other row.
        created_at: Its time, as text in UTC.
    """

    row: NewRow
    seq: int
    base_seq: int
    created_at: str


#: Inserts a `NewRow` at a given seq of a locked thread, with its time; None means now.
PUT_ROW = SQL("""
INSERT INTO {checkpoints} ({ROW})
VALUES (:tenant, :thread_id, :seq, :checkpoint_id, :parent_seq, :base_seq, {VALUES},
        COALESCE(:created_at, UTC_TIMESTAMP(6)))
""")
