"""Statements that save, delete and find checkpoints."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ..statement import Param, Query, Statement
from ..template import Statements

# Insert under the seq that was just taken. The thread's row is locked, so its last_seq is that seq. The time is read by
# this statement, not by the one before, which may have waited for the lock of another save.
INSERT_WHOLE = """
INSERT INTO {checkpoints} (tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, continues, token, payload,
  metadata, metadata_keys, pending_text, unindexed, oldest_at, seal, created_at)
SELECT t.tenant, t.thread_id, t.last_seq, %s, NULL, t.last_seq, %s, %s, %s, %s, %s, %s, %s, %s,
       %s, UTC_TIMESTAMP(6)
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s
"""

# The same, as the child of the newest checkpoint; a lasting state follows the newest lasting one (`continues` is 2 for
# provisional ones: see `NewRow`). The thread is locked, so no other save adds one meanwhile. ORDER BY names all columns
# of the primary key, so that MySQL walks it backwards.
INSERT_WHOLE_AFTER_NEWEST = """
INSERT INTO {checkpoints} (tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, continues, token, payload,
  metadata, metadata_keys, pending_text, unindexed, oldest_at, seal, created_at)
SELECT n.tenant, n.thread_id, n.seq, %s, n.parent_seq, n.seq, %s, %s, %s, %s, %s, %s, %s, %s,
       %s, UTC_TIMESTAMP(6)
  FROM (SELECT t.tenant, t.thread_id, t.last_seq AS seq,
               (SELECT c.seq
                  FROM {checkpoints} c
                 WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.checkpoint_id IS NOT NULL
                   AND c.seq >= t.first_seq AND c.seq < t.last_seq AND (%s OR c.continues <> 2)
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC LIMIT 1) AS parent_seq
          FROM {threads} t
         WHERE t.tenant = %s AND t.thread_id = %s) AS n
"""

# The same for a state with a parent. It is inserted only if its parent, whose text it may continue, and its base still
# exist and have the expected tokens: a thread that was deleted and created again may have other rows under these seqs.
# Without a base, the parameter of IF is 0, and the joined row b is the parent.
INSERT_AFTER = """
INSERT INTO {checkpoints} (tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, continues, token, payload,
  metadata, metadata_keys, pending_text, unindexed, oldest_at, seal, created_at)
SELECT t.tenant, t.thread_id, t.last_seq, %s, c.seq, IF(%s, b.seq, t.last_seq), %s, %s, %s, %s, %s, %s, %s, %s,
       %s, UTC_TIMESTAMP(6)
  FROM {threads} t
  JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.seq = %s AND c.token = %s
  JOIN {checkpoints} b ON b.tenant = t.tenant AND b.thread_id = t.thread_id AND b.seq = %s AND b.token = %s
                      AND IF(%s, b.base_seq IS NOT NULL, TRUE)
 WHERE t.tenant = %s AND t.thread_id = %s AND {LIVE_ROW}
"""

# The same after a seq was taken in a thread that no other process has written to, so that parent and base are not
# looked up; that saves 0.15 ms of 1.2 ms. If no seq was taken, ROW_COUNT() is 0 and the statement fails with error
# 3141, as `GUARD_LOCKED` does in `threads`. INSERT ... SELECT would affect no row instead, but takes 0.04 ms more.
INSERT_NEXT = """
INSERT INTO {checkpoints} (tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, continues, token, payload,
  metadata, metadata_keys, pending_text, unindexed, oldest_at, seal, created_at)
VALUES (%s, %s, CAST(IF(ROW_COUNT() = 1, LAST_INSERT_ID(), '') AS JSON), %s, %s, COALESCE(%s, LAST_INSERT_ID()), %s, %s,
        %s, %s, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6))
"""

# Checks whether a save was executed, before it is repeated. If its row was replaced, pruned or deleted since, the
# token is in the ledger.
FIND_SAVED = """
SELECT c.seq
  FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id = %s AND c.token = %s
 UNION ALL
SELECT NULL
  FROM {ledger} l
 WHERE l.tenant = %s AND l.token = %s
"""

# Clear the id of a checkpoint. Its seq becomes LAST_INSERT_ID(), for the statements below.
CLEAR_ID = """
UPDATE {checkpoints} c
   SET {UNNAMED.c},
       c.token = IF(LAST_INSERT_ID(c.seq) >= 0, c.token, c.token)
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id = %s
"""

# The same, if the parent and the base of the row that will get this id still exist.
CLEAR_ID_FOR = """
UPDATE {checkpoints} x
  JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = %s AND c.seq = %s AND c.token = %s
  JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = %s AND b.token = %s
                      AND IF(%s, b.base_seq IS NOT NULL, TRUE)
  JOIN {threads} t ON t.tenant = %s AND t.thread_id = %s AND {LIVE_ROW}
   SET {UNNAMED.x},
       x.token = IF(LAST_INSERT_ID(x.seq) >= 0, x.token, x.token)
 WHERE x.tenant = %s AND x.thread_id = %s AND x.checkpoint_id = %s
"""

# Clear the ids of all but the newest checkpoints of a thread. Provisional ones (`continues` is 2) are not counted and
# stay. MySQL requires a LIMIT with OFFSET; if there are more than 1,000,000, the next save clears the others.
CLEAR_OLDER_IDS = """
UPDATE {checkpoints} c
  JOIN (SELECT seq FROM {checkpoints}
         WHERE tenant = %s AND thread_id = %s AND checkpoint_id IS NOT NULL AND continues <> 2
         ORDER BY seq DESC LIMIT 1000000 OFFSET %s) AS surplus ON surplus.seq = c.seq
   SET {UNNAMED.c},
       c.token = IF(LAST_INSERT_ID(c.seq) >= 0, c.token, c.token)
 WHERE c.tenant = %s AND c.thread_id = %s
"""

# Remove the text of the row whose id was just cleared if no state continues it, and the texts of unnamed rows that only
# this row continued.
FORGET_TEXT = """
UPDATE {checkpoints} c
  JOIN (WITH RECURSIVE unheld (seq, parent_seq, continues) AS (
          SELECT x.seq, x.parent_seq, x.continues FROM {checkpoints} x
           WHERE x.tenant = %s AND x.thread_id = %s AND x.seq = LAST_INSERT_ID() AND x.checkpoint_id IS NULL
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k
                              WHERE k.tenant = %s AND k.thread_id = %s AND k.parent_seq = x.seq AND k.continues = 1)
          UNION ALL
          SELECT p.seq, p.parent_seq, p.continues
            FROM unheld
            JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = unheld.parent_seq
                                AND p.seq < unheld.seq
           WHERE unheld.continues = 1 AND p.checkpoint_id IS NULL
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k
                              WHERE k.tenant = %s AND k.thread_id = %s AND k.parent_seq = p.seq AND k.continues = 1
                                AND k.seq <> unheld.seq)
        ) SELECT seq FROM unheld) AS forgotten ON forgotten.seq = c.seq
   SET c.search_text = NULL, c.pending_text = NULL, c.continues = 0
 WHERE c.tenant = %s AND c.thread_id = %s
"""

# Empty the payload of the row whose id was just cleared if no state builds on it, and the payloads of unnamed rows on
# which only this row was built. Relies on the index bases.
STRIP_PAYLOAD = """
UPDATE {checkpoints} c
  JOIN (WITH RECURSIVE unused (seq, base_seq) AS (
          SELECT x.seq, x.base_seq FROM {checkpoints} x
           WHERE x.tenant = %s AND x.thread_id = %s AND x.seq = LAST_INSERT_ID() AND x.checkpoint_id IS NULL
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k
                              WHERE k.tenant = %s AND k.thread_id = %s AND k.base_seq = x.seq AND k.seq <> x.seq)
          UNION ALL
          SELECT b.seq, b.base_seq
            FROM unused
            JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = %s AND b.seq = unused.base_seq
                                AND b.seq < unused.seq
           WHERE b.checkpoint_id IS NULL
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k
                              WHERE k.tenant = %s AND k.thread_id = %s AND k.base_seq = b.seq
                                AND k.seq <> b.seq AND k.seq <> unused.seq)
        ) SELECT seq FROM unused) AS strippable ON strippable.seq = c.seq
   SET c.payload = '', c.base_seq = NULL
 WHERE c.tenant = %s AND c.thread_id = %s
"""

# Delete the row whose id was just cleared if no state follows it, and those unnamed rows before it that no other state
# follows. Relies on the indexes parents and bases. A base is always an ancestor, so it has a state that follows it;
# only where parents are damaged, a row is kept because a named state builds on it.
REMOVE_LEAF = """
DELETE c FROM {checkpoints} c
  JOIN (WITH RECURSIVE gone (seq, parent_seq) AS (
          SELECT x.seq, x.parent_seq FROM {checkpoints} x
           WHERE x.tenant = %s AND x.thread_id = %s AND x.seq = LAST_INSERT_ID() AND x.checkpoint_id IS NULL
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k
                              WHERE k.tenant = %s AND k.thread_id = %s AND k.parent_seq = x.seq)
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k
                              WHERE k.tenant = %s AND k.thread_id = %s AND k.base_seq = x.seq
                                AND k.checkpoint_id IS NOT NULL)
          UNION ALL
          SELECT p.seq, p.parent_seq
            FROM gone
            JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = gone.parent_seq
                                AND p.seq < gone.seq
           WHERE p.checkpoint_id IS NULL
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k
                              WHERE k.tenant = %s AND k.thread_id = %s AND k.parent_seq = p.seq AND k.seq <> gone.seq)
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k
                              WHERE k.tenant = %s AND k.thread_id = %s AND k.base_seq = p.seq
                                AND k.checkpoint_id IS NOT NULL)
        ) SELECT seq FROM gone) AS removable ON removable.seq = c.seq
 WHERE c.tenant = %s AND c.thread_id = %s
"""

# The row whose id was just cleared may now be needed only as the link between its parent and the states that follow it.
# Those get its parent as theirs, and the row is deleted. Otherwise each save under the same id, or beyond
# keep_checkpoints, would leave a row.
BYPASS = """
UPDATE {checkpoints} c
  JOIN {checkpoints} x ON x.tenant = %s AND x.thread_id = %s AND x.seq = LAST_INSERT_ID() AND {HOLLOW.x}
   SET c.continues = IF(c.continues = 1 AND x.continues <> 1, 0, c.continues), c.parent_seq = x.parent_seq
 WHERE c.tenant = %s AND c.thread_id = %s AND c.parent_seq = x.seq
"""

REMOVE_BYPASSED = """
DELETE x FROM {checkpoints} x
 WHERE x.tenant = %s AND x.thread_id = %s AND x.seq = LAST_INSERT_ID() AND {HOLLOW.x}
"""

DELETE_ALL = "DELETE FROM {checkpoints} WHERE tenant = %s AND thread_id = %s"

# Rows from before the thread last expired.
DELETE_LEFT_BEHIND = """
DELETE c FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.seq < t.first_seq
"""

EXISTS_ANY = """
SELECT 1 FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s AND {LIVE_THREAD}
"""

EXISTS_NAMED = """
SELECT 1
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id = %s AND {LIVE_ROW}
"""

LIST_IDS = """
SELECT c.checkpoint_id
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}
 ORDER BY c.seq DESC
 LIMIT %s
"""


class Saved(NamedTuple):
    """The seq of a row that was saved; None if the row was removed since."""

    seq: int | None


class Exists(NamedTuple):
    """A checkpoint, or a thread, that exists."""

    one: int


class ListedId(NamedTuple):
    """The id of a checkpoint."""

    checkpoint_id: str


#: The seq and token of a row.
RowKey: TypeAlias = tuple[int, bytes]


class NewRow(NamedTuple):
    """A checkpoint to insert, without its thread and seq. ``seal`` covers its id, token and metadata.

    The column `continues` is 0 if the row has all of its search text, 1 if it has only the text that its state adds to
    its parent's, and 2 if the state is provisional, which has no search text.
    """

    checkpoint_id: str
    token: bytes
    payload: bytes
    seal: int
    parent_seq: int | None = None
    continues: bool = False
    provisional: bool = False
    metadata: str | None = None
    metadata_keys: str | None = None
    search_text: str | None = None
    oldest_at: str | None = None

    @property
    def params(self) -> tuple[Param, ...]:
        """The row's values in the order of the insert statements."""
        return (
            self.checkpoint_id,
            self.parent_seq,
            2 if self.provisional else int(self.continues),
            self.token,
            self.payload,
            self.metadata,
            self.metadata_keys,
            self.search_text,
            None if self.search_text is None else 1,
            self.oldest_at,
            self.seal,
        )


class CheckpointStatements(Statements):
    """Saving, deleting and finding checkpoints."""

    def insert_whole(self, tenant: str, thread_id: str, row: NewRow) -> Statement:
        """Insert a whole state without a parent."""
        checkpoint_id, _, *values = row.params
        return Statement(self._text(INSERT_WHOLE), (checkpoint_id, *values, tenant, thread_id))

    def insert_whole_after_newest(self, tenant: str, thread_id: str, row: NewRow) -> Statement:
        """The same, as the child of the newest checkpoint. A seq must have been taken."""
        checkpoint_id, _, *values = row.params
        text = self._text(INSERT_WHOLE_AFTER_NEWEST)
        return Statement(text, (checkpoint_id, *values, int(row.provisional), tenant, thread_id))

    def insert_after(self, tenant: str, thread_id: str, row: NewRow, parent: RowKey, base: RowKey | None) -> Statement:
        """Insert a state with a parent and perhaps a base; affects no row if one of them is missing."""
        checkpoint_id, _, *values = row.params
        builds = int(base is not None)
        rows = (*parent, *(base or parent), builds)
        return Statement(self._text(INSERT_AFTER), (checkpoint_id, builds, *values, *rows, tenant, thread_id))

    def insert_next(self, tenant: str, thread_id: str, row: NewRow, base_seq: int | None) -> Statement:
        """Like `insert_after`, directly after a `take_seq_if_unchanged`; undoes the batch if that took no seq."""
        checkpoint_id, parent_seq, *values = row.params
        return Statement(self._text(INSERT_NEXT), (tenant, thread_id, checkpoint_id, parent_seq, base_seq, *values))

    def find_saved(self, tenant: str, thread_id: str, checkpoint_id: str, token: bytes) -> Query[Saved]:
        """The seq of a row that this save wrote; None if it was removed since."""
        params = (tenant, thread_id, checkpoint_id, token, tenant, token)
        return Query(self._text(FIND_SAVED), params, row=Saved)

    def clear_id(self, tenant: str, thread_id: str, checkpoint_id: str) -> Statement:
        """Clear the id of a checkpoint."""
        return Statement(self._text(CLEAR_ID), (tenant, thread_id, checkpoint_id))

    def clear_id_for(
        self, tenant: str, thread_id: str, checkpoint_id: str, parent: RowKey, base: RowKey | None
    ) -> Statement:
        """Clear the id of a checkpoint if `insert_after` with the same parent and base will find them."""
        key = (tenant, thread_id)
        rows = (*key, *parent, *key, *(base or parent), int(base is not None))
        return Statement(self._text(CLEAR_ID_FOR), (*rows, *key, *key, checkpoint_id))

    def clear_older_ids(self, tenant: str, thread_id: str, keep: int) -> Statement:
        """Clear the ids of all but the newest ``keep`` checkpoints."""
        return Statement(self._text(CLEAR_OLDER_IDS), (tenant, thread_id, keep, tenant, thread_id))

    def remove_unneeded(self, tenant: str, thread_id: str) -> tuple[Statement, ...]:
        """Remove the parts of the row whose seq is the last insert id that no other row needs."""
        key = (tenant, thread_id)
        return (
            Statement(self._text(FORGET_TEXT), key * 5),
            Statement(self._text(STRIP_PAYLOAD), key * 5),
            Statement(self._text(REMOVE_LEAF), key * 7),
            Statement(self._text(BYPASS), key * 2),
            Statement(self._text(REMOVE_BYPASSED), key),
        )

    def delete_all(self, tenant: str, thread_id: str) -> Statement:
        """Delete every row of a thread."""
        return Statement(self._text(DELETE_ALL), (tenant, thread_id))

    def delete_left_behind(self, tenant: str, thread_id: str) -> Statement:
        """Delete the rows from before the thread last expired."""
        return Statement(self._text(DELETE_LEFT_BEHIND), (tenant, thread_id))

    def exists(self, tenant: str, thread_id: str, checkpoint_id: str | None) -> Query[Exists]:
        """One row if the checkpoint, or any checkpoint of the thread, exists, else none."""
        if checkpoint_id is None:
            return Query(self._text(EXISTS_ANY), (tenant, thread_id), row=Exists)
        return Query(self._text(EXISTS_NAMED), (tenant, thread_id, checkpoint_id), row=Exists)

    def list_ids(self, tenant: str, thread_id: str, limit: int) -> Query[ListedId]:
        """Ids of a thread's checkpoints, newest first."""
        return Query(self._text(LIST_IDS), (tenant, thread_id, limit), row=ListedId)
