"""Statements about the rows of threads: taking the next seq, locks, and lists of threads."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....dialect.sql import SQL, Select
from ....records.ledger import FIND

# Saving

#: Takes the next seq of a thread, as last insert id, and creates the thread if it does not exist. An expired thread
#: starts over: rows below first_seq no longer belong to it. Assignments are made from left to right, so that of
#: expires_at must come after those that read it.
TAKE_SEQ = SQL("""
INSERT INTO {threads} ({NEW_THREAD})
VALUES (:tenant, :thread_id, LAST_INSERT_ID(1), 1, :version, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), {EXPIRY})
ON DUPLICATE KEY UPDATE
  first_seq  = IF(expires_at <= UTC_TIMESTAMP(6), last_seq + 1, first_seq),
  created_at = IF(expires_at <= UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), created_at),
  last_seq   = LAST_INSERT_ID(last_seq + 1),
  version    = :version,
  updated_at = UTC_TIMESTAMP(6),
  expires_at = {EXPIRY}
""")

_TAKE_SEQ_OF_LIVE = """
UPDATE {threads}
   SET last_seq   = LAST_INSERT_ID(last_seq + 1),
       version    = :version,
       updated_at = UTC_TIMESTAMP(6),
       expires_at = {EXPIRY}
 WHERE {KEY} AND {LIVE}"""

#: The same for a thread that must exist and not have expired, because the save builds on one of its states.
TAKE_SEQ_OF_LIVE = SQL(_TAKE_SEQ_OF_LIVE)

#: The same if no other process has written to the thread since this version.
TAKE_SEQ_IF_UNCHANGED = SQL(f"{_TAKE_SEQ_OF_LIVE} AND version = :known_version")

# Locks for writes that save nothing. Each gives the thread another version; a guard must follow.

#: Locks a live thread. LAST_INSERT_ID() becomes 1 if the version was the known one.
LOCK = SQL("""
UPDATE {threads} SET version = IF(LAST_INSERT_ID(version = :known_version) >= 0, :version, version)
 WHERE {KEY} AND {LIVE}
""")

#: Locks a thread that may have expired. LAST_INSERT_ID() becomes 1 if it has not.
LOCK_ANY = SQL("UPDATE {threads} SET version = IF(LAST_INSERT_ID({LIVE}) >= 0, :version, version) WHERE {KEY}")

#: Locks a thread if no other process has written to it since this version.
LOCK_UNCHANGED = SQL("UPDATE {threads} SET version = :version WHERE {KEY} AND version = :known_version")

#: Undoes the batch, with error 3141, unless the statement before it locked a thread. Without the lock, another process
#: may create the thread at any moment, so the batch must not touch it.
GUARD = SQL("SELECT CAST(IF(ROW_COUNT() > 0, '1', '') AS JSON)")


def guard_once(outcome: Select[Any]) -> SQL:
    """Return a `GUARD` that also undoes the batch if it was already carried out.

    By a first try whose answer was lost while the second one waited for the lock; or by the second try, if the first
    packet arrives late.

    Args:
        outcome: Finds a row if the batch was carried out.
    """
    return SQL(f"SELECT CAST(IF(ROW_COUNT() > 0 AND NOT EXISTS ({outcome.text}), '1', '') AS JSON)")


#: `GUARD` for a batch that records its token in the ledger.
GUARD_ONCE = guard_once(FIND)

# Restoring and removing

#: Inserts the thread's row for checkpoints that have none.
RESTORE_ROW = SQL("""
INSERT INTO {threads} ({NEW_THREAD})
SELECT orphans.tenant, orphans.thread_id, orphans.newest, orphans.oldest, :version, orphans.created_at,
       UTC_TIMESTAMP(6), {EXPIRY}
  FROM (SELECT c.tenant, c.thread_id, MAX(c.seq) AS newest, MIN(c.seq) AS oldest, MIN(c.created_at) AS created_at
          FROM {checkpoints} c
         WHERE {KEY.c}
         GROUP BY c.tenant, c.thread_id) AS orphans
    ON DUPLICATE KEY UPDATE
       last_seq   = GREATEST(last_seq, orphans.newest), version = :version
""")


class ThreadId(NamedTuple):
    """The id of a thread."""

    thread_id: str


#: Threads that have checkpoints but no row. No statement here leaves such checkpoints, but damage may.
ORPHANED = Select(
    """
SELECT DISTINCT c.thread_id
  FROM {checkpoints} c
  LEFT JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = :tenant AND t.thread_id IS NULL
 LIMIT :limit
""",
    ThreadId,
)

#: Finds a row if the thread still has this version.
UNCHANGED = SQL("SELECT 1 FROM {threads} t WHERE {KEY.t} AND t.version = :version AND {LIVE_THREAD}")

_EMPTY = "NOT EXISTS (SELECT 1 FROM {checkpoints} c WHERE {KEY.c} AND c.checkpoint_id IS NOT NULL)"

# A thread without checkpoints has no row.

DROP = SQL("DELETE FROM {threads} WHERE {KEY}")

DROP_IF_EMPTY = SQL(f"{DROP.text} AND {_EMPTY}")

# Lists


class Number(NamedTuple):
    """A number of rows."""

    number: int


#: Walks backwards along the index recent, which ends with thread_id. Both columns must be sorted in the same direction;
#: otherwise MySQL sorts all threads.
LIST = Select(
    """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id LIKE :pattern
   AND {LIVE_THREAD}
 ORDER BY t.updated_at DESC, t.thread_id DESC
 LIMIT :limit OFFSET :offset
""",
    ThreadId,
)

COUNT = Select(
    "SELECT COUNT(*) FROM {threads} t WHERE t.tenant = :tenant AND t.thread_id LIKE :pattern AND {LIVE_THREAD}", Number
)

# Preconditions


def _newest_is(column: str) -> SQL:
    """Return a statement that undoes the batch unless the newest checkpoint below the seq just taken is this one."""
    return SQL(f"""
SELECT CAST(IF(MAX((SELECT c.{column}
                      FROM {{checkpoints}} c
                     WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id AND c.checkpoint_id IS NOT NULL
                       AND c.seq >= t.first_seq AND c.seq < t.last_seq
                     ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC LIMIT 1) <=> :{column}), '1', '') AS JSON)
  FROM {{threads}} t
 WHERE {{KEY.t}}
""")


#: Undo the batch unless this is the newest checkpoint, None for no checkpoint, by its id or the token of its row.
#: ORDER BY names all columns of the primary key, so that MySQL walks along it backwards to the first row. MAX: see
#: docs/design/writes.md.
NEWEST_HAS_ID, NEWEST_HAS_TOKEN = _newest_is("checkpoint_id"), _newest_is("token")


class Newest(NamedTuple):
    """The newest checkpoint of a thread."""

    checkpoint_id: str
    token: bytes


NEWEST = Select(
    """
SELECT c.checkpoint_id, c.token
  FROM {threads} t
  JOIN {checkpoints} c ON c.tenant = t.tenant AND c.thread_id = t.thread_id
 WHERE {KEY.t} AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}
 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
 LIMIT 1
""",
    Newest,
)


class Named(NamedTuple):
    """The name of a checkpoint; None if it was deleted."""

    checkpoint_id: str | None


#: The name of the checkpoint with a token. Reads the thread's rows; used only for an error message.
NAME_OF = Select("SELECT c.checkpoint_id FROM {checkpoints} c WHERE {KEY.c} AND c.token = :token LIMIT 1", Named)

#: The ids of threads along the primary key.
THREADS_AFTER = Select(
    """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id > :after AND t.thread_id LIKE :pattern
   AND {LIVE_THREAD}
 ORDER BY t.thread_id
 LIMIT :limit
""",
    ThreadId,
)
