"""Statements that remove checkpoints and rows that no checkpoint needs any more, and record their tokens.

A checkpoint is removed by clearing the id of its row. Then the parts of rows that no state needs are removed: texts,
payloads, and in the end the rows themselves, of which nothing is left but a link to their parents (*hollow* rows). That
is done for one row by `remove_unneeded`, which follows its parents and bases, and for all rows of a thread by `sweep`.
"""

from __future__ import annotations

from ....dialect.sql import SQL, Select
from ....dialect.statement import Statement
from ....records.ledger import OutcomeRow, record_each
from .tables import CheckpointDialect, ThreadKey
from .threads import ThreadId, guard_once

#: Records the first token if `threads.LOCK_ANY` found a thread that has not expired, else the second. No statement in
#: between changes LAST_INSERT_ID().
RECORD_EITHER = SQL("""
INSERT INTO {ledger} (tenant, token, recorded_at)
VALUES (:tenant, IF(LAST_INSERT_ID() = 1, :token, :token_if_expired), UTC_TIMESTAMP(6))
""")

#: One row if an operation recorded one of these tokens, else none. The row is 1 for the first token.
FIND_EITHER = Select(
    "SELECT l.token = :token FROM {ledger} l WHERE l.tenant = :tenant AND l.token IN (:token, :token_if_expired)",
    OutcomeRow,
)

GUARD_DELETE = guard_once(FIND_EITHER)

# Statements that record the tokens of checkpoints whose ids are about to be removed, if the checkpoints are so young
# that a repeated save might insert them again.

_TOKENS = "SELECT c.tenant, c.token, UTC_TIMESTAMP(6)\n  FROM {checkpoints} c"
_WITH_THREAD = "\n  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id"
_OF_NAMED = f"{_TOKENS}\n WHERE {{KEY.c}} AND c.checkpoint_id = :checkpoint_id AND {{YOUNG}}"

#: Of all checkpoints of a thread.
RECORD_ALL = record_each(f"{_TOKENS}\n WHERE {{KEY.c}} AND c.checkpoint_id IS NOT NULL AND {{YOUNG}}")

RECORD_NAMED = record_each(_OF_NAMED)

#: The same for a delete. If there is such a checkpoint, the token of the delete is recorded, too.
RECORD_DELETED = record_each(f"""{_OF_NAMED}
 UNION ALL
SELECT c.tenant, :token, UTC_TIMESTAMP(6)
  FROM {{checkpoints}} c
 WHERE {{KEY.c}} AND c.checkpoint_id = :checkpoint_id
""")

#: Of all but the newest checkpoints of a thread, whose ids `removing.CLEAR_OLDER_IDS` clears.
RECORD_OLDER = record_each("""SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM (SELECT tenant, token, created_at FROM {checkpoints}
         WHERE {KEY} AND checkpoint_id IS NOT NULL AND continues <> 2
         ORDER BY seq DESC LIMIT 1000000 OFFSET :keep) AS c
 WHERE {YOUNG}
""")

#: Of remaining rows from before an expiry.
RECORD_LEFT_BEHIND = record_each(f"""{_TOKENS}{_WITH_THREAD}
 WHERE {{KEY.c}} AND c.seq < t.first_seq AND c.checkpoint_id IS NOT NULL AND {{YOUNG}}
""")

#: Of a thread that has expired.
RECORD_EXPIRED = record_each(f"""{_TOKENS}{_WITH_THREAD}
 WHERE {{KEY.c}} AND t.expires_at <= UTC_TIMESTAMP(6) AND c.checkpoint_id IS NOT NULL AND {{YOUNG}}
""")


# Clearing ids

#: Clears the id of a checkpoint. Its seq becomes LAST_INSERT_ID(), for `remove_unneeded`.
CLEAR_ID = SQL("""
UPDATE {checkpoints} c
   SET {UNNAMED.c},
       c.token = IF(LAST_INSERT_ID(c.seq) >= 0, c.token, c.token)
 WHERE {KEY.c} AND c.checkpoint_id = :checkpoint_id
""")

#: Clears the ids of all but the newest checkpoints of a thread. Provisional ones (`continues` is 2) are not counted and
#: stay. MySQL requires a LIMIT with OFFSET; if there are more than 1,000,000, the next save clears the others.
CLEAR_OLDER_IDS = SQL("""
UPDATE {checkpoints} c
  JOIN (SELECT seq FROM {checkpoints}
         WHERE {KEY} AND checkpoint_id IS NOT NULL AND continues <> 2
         ORDER BY seq DESC LIMIT 1000000 OFFSET :keep) AS surplus ON surplus.seq = c.seq
   SET {UNNAMED.c},
       c.token = IF(LAST_INSERT_ID(c.seq) >= 0, c.token, c.token)
 WHERE {KEY.c}
""")

#: Clears the ids of old checkpoints of an active thread, but never that of its newest one.
CLEAR_IDS_BEFORE = SQL("""
UPDATE {checkpoints} c
  JOIN (SELECT MAX(seq) AS seq FROM {checkpoints}
         WHERE {KEY} AND checkpoint_id IS NOT NULL) AS newest ON c.seq < newest.seq
   SET {UNNAMED.c}
 WHERE {KEY.c} AND c.checkpoint_id IS NOT NULL
   AND c.created_at < UTC_TIMESTAMP(6) - INTERVAL :age_us MICROSECOND
""")

# What one row leaves behind. Rows are found by the keys that a recursion returns. Without the hints, MySQL reads whole
# tables whose statistics are from when they were small.

#: Removes the text of the row whose id was just cleared if no state continues it, and the texts of unnamed rows that
#: only this row continued. Relies on the index parents.
FORGET_TEXT = SQL("""
UPDATE (WITH RECURSIVE unheld (seq, parent_seq, continues) AS (
          SELECT x.seq, x.parent_seq, x.continues FROM {checkpoints} x
           WHERE {KEY.x} AND x.seq = LAST_INSERT_ID() AND x.checkpoint_id IS NULL
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k WHERE {KEY.k} AND k.parent_seq = x.seq AND k.continues = 1)
          UNION ALL
          SELECT p.seq, p.parent_seq, p.continues
            FROM unheld
            STRAIGHT_JOIN {checkpoints} p FORCE INDEX (PRIMARY)
                ON {KEY.p} AND p.seq = unheld.parent_seq AND p.seq < unheld.seq
           WHERE unheld.continues = 1 AND p.checkpoint_id IS NULL
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k
                              WHERE {KEY.k} AND k.parent_seq = p.seq AND k.continues = 1 AND k.seq <> unheld.seq)
        ) SELECT seq FROM unheld) AS forgotten
  STRAIGHT_JOIN {checkpoints} c FORCE INDEX (PRIMARY) ON {KEY.c} AND c.seq = forgotten.seq
   SET c.search_text = NULL, c.pending_text = NULL, c.continues = 0
""")

#: Empties the payload of the row whose id was just cleared if no state builds on it, and the payloads of unnamed rows
#: on which only this row was built. Relies on the index bases.
STRIP_PAYLOAD = SQL("""
UPDATE (WITH RECURSIVE unused (seq, base_seq) AS (
          SELECT x.seq, x.base_seq FROM {checkpoints} x
           WHERE {KEY.x} AND x.seq = LAST_INSERT_ID() AND x.checkpoint_id IS NULL
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k WHERE {KEY.k} AND k.base_seq = x.seq AND k.seq <> x.seq)
          UNION ALL
          SELECT b.seq, b.base_seq
            FROM unused
            STRAIGHT_JOIN {checkpoints} b FORCE INDEX (PRIMARY)
                ON {KEY.b} AND b.seq = unused.base_seq AND b.seq < unused.seq
           WHERE b.checkpoint_id IS NULL
             AND NOT EXISTS (SELECT 1 FROM {checkpoints} k
                              WHERE {KEY.k} AND k.base_seq = b.seq AND k.seq <> b.seq AND k.seq <> unused.seq)
        ) SELECT seq FROM unused) AS strippable
  STRAIGHT_JOIN {checkpoints} c FORCE INDEX (PRIMARY) ON {KEY.c} AND c.seq = strippable.seq
   SET c.payload = '', c.base_seq = NULL
""")

#: Rows that follow hollow ones get the nearest parent that is needed for its content; then the hollow ones can be
#: deleted. Otherwise each save under the same id, or beyond keep_checkpoints, would leave a row. The piece is one of
#: those below. Relies on the index parents. The recursion goes up along hollow parents. It ends even where rows are
#: damaged, as it only goes to rows with a lower seq.
BYPASS_HOLLOW = SQL("""
UPDATE (WITH RECURSIVE up (seq, hollow_seq, parent_seq, continues) AS (
          SELECT k.seq, x.seq, x.parent_seq, IF(k.continues = 1 AND x.continues <> 1, 0, k.continues)
            FROM {rows}
            STRAIGHT_JOIN {checkpoints} k FORCE INDEX (parents)
                ON {KEY.k} AND k.parent_seq = x.seq AND k.seq > x.seq AND NOT ({HOLLOW.k})
           WHERE {KEY.x} AND {HOLLOW.x}
          UNION ALL
          SELECT up.seq, x.seq, x.parent_seq, IF(up.continues = 1 AND x.continues <> 1, 0, up.continues)
            FROM up
            STRAIGHT_JOIN {checkpoints} x FORCE INDEX (PRIMARY)
                ON {KEY.x} AND x.seq = up.parent_seq AND x.seq < up.hollow_seq AND {HOLLOW.x}
        )
        SELECT up.seq, up.parent_seq, up.continues
          FROM up
          LEFT JOIN {checkpoints} x ON {KEY.x} AND x.seq = up.parent_seq AND {HOLLOW.x}
         WHERE x.seq IS NULL) AS bypass
  STRAIGHT_JOIN {checkpoints} c FORCE INDEX (PRIMARY) ON {KEY.c} AND c.seq = bypass.seq
   SET c.parent_seq = bypass.parent_seq, c.continues = bypass.continues
""")

DELETE_HOLLOW = SQL("DELETE x FROM {rows} WHERE {KEY.x} AND {HOLLOW.x}")

#: All rows of a thread. Relies on the index bases: hollow rows have no base_seq.
ALL_HOLLOW = {"rows": "{checkpoints} x FORCE INDEX (bases)"}

#: The row whose id was just cleared, if it is hollow, and its parents up to the first that is not.
HOLLOW_AND_ABOVE = {
    "rows": """(WITH RECURSIVE above (seq, parent_seq) AS (
                    SELECT x.seq, x.parent_seq FROM {checkpoints} x
                     WHERE {KEY.x} AND x.seq = LAST_INSERT_ID() AND {HOLLOW.x}
                    UNION ALL
                    SELECT p.seq, p.parent_seq
                      FROM above
                      STRAIGHT_JOIN {checkpoints} p FORCE INDEX (PRIMARY)
                          ON {KEY.p} AND p.seq = above.parent_seq AND p.seq < above.seq AND {HOLLOW.p}
                  ) SELECT seq FROM above) AS above
            STRAIGHT_JOIN {checkpoints} x FORCE INDEX (PRIMARY) ON {KEY.x} AND x.seq = above.seq"""
}


def remove_unneeded(sql: CheckpointDialect, key: ThreadKey) -> tuple[Statement, ...]:
    """Return the statements that remove what no row needs of the row whose seq is the last insert id."""
    return (
        FORGET_TEXT(sql, key),
        STRIP_PAYLOAD(sql, key),
        BYPASS_HOLLOW(sql, key, pieces=HOLLOW_AND_ABOVE),
        DELETE_HOLLOW(sql, key, pieces=HOLLOW_AND_ABOVE),
    )


# What all rows of a thread leave behind

# OceanBase has no recursive UNION DISTINCT (error 1235). With UNION ALL, a row is visited once for each path to it, so
# paths end at named rows, which begin paths of their own. They only go to rows with a lower seq, so they end even if
# damaged rows form a cycle.

#: Removes the search texts of unnamed rows that no named state continues.
SWEEP_TEXTS = SQL("""
UPDATE {checkpoints} c
  LEFT JOIN (WITH RECURSIVE held (seq, parent_seq, continues) AS (
               SELECT seq, parent_seq, continues FROM {checkpoints} WHERE {KEY} AND checkpoint_id IS NOT NULL
               UNION ALL
               SELECT p.seq, p.parent_seq, p.continues
                 FROM held
                 JOIN {checkpoints} p ON {KEY.p} AND p.seq = held.parent_seq AND p.seq < held.seq
                WHERE held.continues = 1 AND p.checkpoint_id IS NULL
             ) SELECT DISTINCT seq FROM held) AS held ON held.seq = c.seq
   SET c.search_text = NULL, c.pending_text = NULL, c.continues = 0
 WHERE {KEY.c} AND c.checkpoint_id IS NULL AND held.seq IS NULL
   AND (c.search_text IS NOT NULL OR c.pending_text IS NOT NULL)
""")

#: Empties the payloads of unnamed rows that no named state builds on. Relies on the index bases: rows already empty
#: have no base_seq.
SWEEP_PAYLOADS = SQL("""
UPDATE {checkpoints} c
  LEFT JOIN (WITH RECURSIVE needed (seq, base_seq) AS (
               SELECT seq, base_seq FROM {checkpoints} WHERE {KEY} AND checkpoint_id IS NOT NULL
               UNION ALL
               SELECT b.seq, b.base_seq
                 FROM needed
                 JOIN {checkpoints} b ON {KEY.b} AND b.seq = needed.base_seq AND b.seq < needed.seq
                                   AND b.checkpoint_id IS NULL
             ) SELECT DISTINCT seq FROM needed) AS needed ON needed.seq = c.seq
   SET c.payload = '', c.base_seq = NULL
 WHERE {KEY.c} AND c.checkpoint_id IS NULL AND c.base_seq IS NOT NULL AND needed.seq IS NULL
""")


def sweep(sql: CheckpointDialect, key: ThreadKey) -> tuple[Statement, ...]:
    """Return the statements that remove all rows of a thread, and parts of rows, that no named checkpoint needs."""
    return (
        SWEEP_TEXTS(sql, key),
        SWEEP_PAYLOADS(sql, key),
        BYPASS_HOLLOW(sql, key, pieces=ALL_HOLLOW),
        DELETE_HOLLOW(sql, key, pieces=ALL_HOLLOW),
    )


# Whole threads

DELETE_ALL = SQL("DELETE FROM {checkpoints} WHERE {KEY}")

#: Deletes the rows from before the thread last expired.
DELETE_LEFT_BEHIND = SQL("""
DELETE c FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE {KEY.c} AND c.seq < t.first_seq
""")

#: Threads that may have old checkpoints, page by page along the primary key.
THREADS_BEFORE = Select(
    """
SELECT t.thread_id
  FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id > :after AND t.created_at < UTC_TIMESTAMP(6) - INTERVAL :age_us MICROSECOND
 ORDER BY t.thread_id
 LIMIT :limit
""",
    ThreadId,
)
