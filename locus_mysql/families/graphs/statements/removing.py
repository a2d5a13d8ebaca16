"""Statements that remove checkpoints, keep their content that others need, and copy threads."""

from __future__ import annotations

from ....dialect.resealing import StoredRow, encrypted, shifted
from ....dialect.sql import SQL, Select
from .threads import RECORD_MARKED, ThreadRow

#: Hide a checkpoint.
HIDE_NAMED = SQL("""
UPDATE {checkpoints} c SET c.hidden = 1
WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.checkpoint_key = :checkpoint_key
""")

#: Hide the checkpoints of runs. Relies on the index runs.
HIDE_RUNS = SQL("""
UPDATE {checkpoints} c SET c.hidden = 1
 WHERE c.tenant = :tenant AND c.run_key IN (:run_keys) AND c.thread_id = :thread_id AND c.hidden = 0
""")

#: Hide all but a number of the newest in each namespace, or in one.
HIDE_OLDER = SQL("""
UPDATE {checkpoints} c
  JOIN (SELECT x.ns_key, x.seq,
               ROW_NUMBER() OVER (PARTITION BY x.ns_key ORDER BY x.seq DESC) AS row_no
          FROM {checkpoints} x
         WHERE x.tenant = :tenant AND x.thread_id = :thread_id AND x.hidden = 0{namespace}) o
    ON o.ns_key = c.ns_key AND o.seq = c.seq
   SET c.hidden = 1
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND o.row_no > :keep
""")
OF_NAMESPACE = " AND x.ns_key = :ns_key"

#: Hide those older than an age, except the newest of each namespace.
HIDE_BEFORE = SQL("""
UPDATE {checkpoints} c
  JOIN (SELECT x.ns_key, MAX(x.seq) AS seq
          FROM {checkpoints} x
         WHERE x.tenant = :tenant AND x.thread_id = :thread_id AND x.hidden = 0
         GROUP BY x.ns_key) newest
    ON newest.ns_key = c.ns_key AND c.seq < newest.seq
   SET c.hidden = 1
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.hidden = 0
   AND c.created_at < UTC_TIMESTAMP(6) - INTERVAL :age_us MICROSECOND
""")

#: Threads of which HIDE_BEFORE hides any, in the order of the primary key.
THREADS_BEFORE = Select(
    """
SELECT DISTINCT c.thread_id
  FROM {checkpoints} c
 WHERE c.tenant = :tenant AND c.thread_id > :after AND c.hidden = 0
   AND c.created_at < UTC_TIMESTAMP(6) - INTERVAL :age_us MICROSECOND
   AND EXISTS (SELECT 1 FROM {checkpoints} n
                WHERE n.tenant = c.tenant AND n.thread_id = c.thread_id AND n.ns_key = c.ns_key AND n.seq > c.seq
                  AND n.hidden = 0)
 ORDER BY c.thread_id
 LIMIT :limit
""",
    ThreadRow,
)

#: Hide checkpoints of which a part is missing.
HIDE_BROKEN = SQL("""
UPDATE {checkpoints} x
  JOIN (SELECT DISTINCT c.ns_key, c.seq FROM {WITH_PARTS}
         WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.hidden = 0
           AND p.part IS NULL AND o.seq IS NULL) AS broken
    ON broken.ns_key = x.ns_key AND broken.seq = x.seq
   SET x.hidden = 1
 WHERE x.tenant = :tenant AND x.thread_id = :thread_id
""")

#: Threads with such checkpoints, from one id to another.
THREADS_WITH_BROKEN = Select(
    """
SELECT DISTINCT c.thread_id FROM {WITH_PARTS}
 WHERE c.tenant = :tenant AND c.thread_id BETWEEN :first AND :last AND c.hidden = 0
   AND p.part IS NULL AND o.seq IS NULL
""",
    ThreadRow,
)

#: LangGraph stores each call of a subgraph in a namespace of its own, <name>:<task id>, and names in the metadata the
#: checkpoint of the graph itself that called it. A call is removed together with that checkpoint. If that was never
#: stored, the call stays: its run may be storing it now. The key is that of the empty namespace.
HIDE_CALLS = SQL("""
UPDATE {checkpoints} c
  JOIN {checkpoints} r ON r.tenant = c.tenant AND r.thread_id = c.thread_id AND r.hidden > 0
                   AND r.checkpoint_key = UNHEX(LEFT(SHA2(CONCAT(CAST('0:' AS BINARY), CAST(JSON_UNQUOTE(JSON_EXTRACT(
                         IF(JSON_VALID(c.metadata), c.metadata, NULL), '$.parents.""')) AS BINARY)), 256), 32))
   SET c.hidden = 1
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.hidden = 0 AND LOCATE(':', c.ns) > 0
""")

#: A child keeps the link to a deleted parent only if it still needs the parent's stored content. Of a parent's writes,
#: a child needs its sends, which go to the channel __pregel_tasks. The columns that the row's seal covers stay.
UNLINK_PARENTS = SQL("""
UPDATE {checkpoints} c
  JOIN {checkpoints} p ON p.tenant = c.tenant AND p.thread_id = c.thread_id AND p.checkpoint_key = c.parent_key
   SET c.unlinked = 1
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.hidden = 0 AND c.unlinked = 0 AND p.hidden > 0
   AND (c.needs = 0
        OR c.needs = 2 AND NOT EXISTS (SELECT 1 FROM {writes} w
                                        WHERE w.tenant = c.tenant AND w.thread_id = c.thread_id
                                          AND w.checkpoint_key = c.parent_key AND w.channel = '__pregel_tasks'))
""")

#: Mark with 2 the hidden rows that no other row needs: neither as the parent that its values continue, directly or
#: through others, nor as the parent whose writes it reads.
#:
#: OceanBase has no recursive UNION DISTINCT (error 1235). UNION ALL would follow the line of each row to its beginning,
#: so a line ends at a row that is not hidden, which has a line of its own; and, where damage made it a circle, after as
#: many steps as the thread has rows.
MARK_UNNEEDED = SQL(
    """
UPDATE {checkpoints} c
  LEFT JOIN (
    WITH RECURSIVE needed (checkpoint_key, parent_key, needs) AS (
      SELECT p.checkpoint_key, p.parent_key, IF(x.needs = 1 AND p.unlinked = 0, p.needs, 0)
        FROM {checkpoints} x
        JOIN {checkpoints} p ON p.tenant = :tenant AND p.thread_id = :thread_id AND p.checkpoint_key = x.parent_key
       WHERE x.tenant = :tenant AND x.thread_id = :thread_id AND x.hidden = 0 AND x.needs > 0 AND x.unlinked = 0
       UNION
      SELECT p.checkpoint_key, p.parent_key, IF(n.needs = 1 AND p.unlinked = 0, p.needs, 0)
        FROM needed n
        JOIN {checkpoints} p ON p.tenant = :tenant AND p.thread_id = :thread_id AND p.checkpoint_key = n.parent_key
       WHERE n.needs > 0
    ) SELECT DISTINCT checkpoint_key FROM needed) AS needed ON needed.checkpoint_key = c.checkpoint_key
   SET c.hidden = 2
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.hidden = 1 AND needed.checkpoint_key IS NULL
""",
    oceanbase="""
UPDATE {checkpoints} c
  LEFT JOIN (
    WITH RECURSIVE needed (checkpoint_key, parent_key, needs, steps) AS (
      SELECT p.checkpoint_key, p.parent_key, IF(x.needs = 1 AND p.unlinked = 0, p.needs, 0),
             (SELECT COUNT(*) FROM {checkpoints} a WHERE a.tenant = x.tenant AND a.thread_id = x.thread_id)
        FROM {checkpoints} x
        JOIN {checkpoints} p ON p.tenant = :tenant AND p.thread_id = :thread_id AND p.checkpoint_key = x.parent_key
                            AND p.hidden > 0
       WHERE x.tenant = :tenant AND x.thread_id = :thread_id AND x.hidden = 0 AND x.needs > 0 AND x.unlinked = 0
       UNION ALL
      SELECT p.checkpoint_key, p.parent_key, IF(n.needs = 1 AND p.unlinked = 0, p.needs, 0), n.steps - 1
        FROM needed n
        JOIN {checkpoints} p ON p.tenant = :tenant AND p.thread_id = :thread_id AND p.checkpoint_key = n.parent_key
                            AND p.hidden > 0
       WHERE n.needs > 0 AND n.steps > 0
    ) SELECT DISTINCT checkpoint_key FROM needed) AS needed ON needed.checkpoint_key = c.checkpoint_key
   SET c.hidden = 2
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.hidden = 1 AND needed.checkpoint_key IS NULL
""",
)

DELETE_WRITES = SQL("""
DELETE w FROM {writes} w
  JOIN {checkpoints} c ON c.tenant = w.tenant AND c.thread_id = w.thread_id AND c.checkpoint_key = w.checkpoint_key
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.hidden = 2
""")

#: Before a row is deleted, its part moves to the table of parts if others need it.
MOVE_PARTS = SQL("""
INSERT INTO {parts} (tenant, thread_id, part, chunk)
SELECT x.tenant, x.thread_id, x.seq * {OWN_PARTS}, x.chunk
  FROM {checkpoints} x
  JOIN{USED} ON used.part = x.seq * {OWN_PARTS}
 WHERE x.tenant = :tenant AND x.thread_id = :thread_id AND x.hidden = 2 AND x.chunk IS NOT NULL
""")

DELETE_MARKED = SQL("DELETE FROM {checkpoints} WHERE tenant = :tenant AND thread_id = :thread_id AND hidden = 2")

DELETE_PARTS = SQL("""
DELETE p FROM {parts} p
  LEFT JOIN{USED} ON used.part = p.part
 WHERE p.tenant = :tenant AND p.thread_id = :thread_id AND used.part IS NULL
""")

#: Remove the row of a thread without checkpoints. At this point, it can only have writes that arrived before their
#: checkpoint. A row that was inserted only to lock it is removed too.
DROP_IF_EMPTY = SQL("""
DELETE FROM {threads}
 WHERE tenant = :tenant AND thread_id = :thread_id
   AND (expires_at = {ONLY_LOCKED}
        OR NOT EXISTS (SELECT 1 FROM {checkpoints} c
                     WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.hidden = 0))
""")

#: Remove hidden rows that are not needed, with their writes and parts; and the thread if nothing is left.
REMOVE_HIDDEN = (
    UNLINK_PARENTS,
    MARK_UNNEEDED,
    RECORD_MARKED,
    DELETE_WRITES,
    MOVE_PARTS,
    DELETE_MARKED,
    DELETE_PARTS,
    DROP_IF_EMPTY,
)

#: Threads with old writes whose checkpoint was never stored, or was removed before they arrived; in the order of the
#: primary key.
THREADS_WITH_ORPHANS = Select(
    """
SELECT DISTINCT w.thread_id
  FROM {writes} w
 WHERE w.tenant = :tenant AND w.thread_id > :after AND w.created_at < UTC_TIMESTAMP(6) - INTERVAL :age_us MICROSECOND
   AND NOT EXISTS (SELECT 1 FROM {checkpoints} c
                    WHERE c.tenant = w.tenant AND c.thread_id = w.thread_id AND c.checkpoint_key = w.checkpoint_key)
 ORDER BY w.thread_id
 LIMIT :limit
""",
    ThreadRow,
)

#: Remove a thread's writes older than an age that have no checkpoint.
DELETE_ORPHANS = SQL("""
DELETE w FROM {writes} w
  LEFT JOIN {checkpoints} c ON c.tenant = w.tenant AND c.thread_id = w.thread_id AND c.checkpoint_key = w.checkpoint_key
 WHERE w.tenant = :tenant AND w.thread_id = :thread_id AND c.checkpoint_key IS NULL
   AND w.created_at < UTC_TIMESTAMP(6) - INTERVAL :age_us MICROSECOND
""")

#: Threads with checkpoints of runs. Relies on the index runs.
THREADS_OF_RUNS = Select(
    """
SELECT DISTINCT c.thread_id FROM {checkpoints} c WHERE c.tenant = :tenant AND c.run_key IN (:run_keys) AND c.hidden = 0
""",
    ThreadRow,
)

#: Lock the source of a copy until the end of the batch. OceanBase ignores FOR SHARE in an INSERT with ON DUPLICATE KEY
#: UPDATE, as the next one is.
HOLD_SOURCE = Select(
    "SELECT t.thread_id FROM {threads} t WHERE t.tenant = :tenant AND t.thread_id = :thread_id FOR SHARE", ThreadRow
)

#: Turn the row of a locked thread, the destination, into that of a copy. If the source does not exist, no row is
#: affected. A live destination fails with error 3141, which undoes the batch. The assignments run left to right.
COPY_THREAD = SQL("""
INSERT INTO {threads} (tenant, thread_id, last_seq, epoch, created_at, updated_at, expires_at)
SELECT t.tenant, :destination, t.last_seq, :epoch,
UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL :ttl_us MICROSECOND
  FROM {threads} t
 WHERE t.tenant = :tenant AND t.thread_id = :thread_id AND {LIVE_THREAD}
    ON DUPLICATE KEY UPDATE
       last_seq   = t.last_seq + JSON_LENGTH(IF({threads}.expires_at <= UTC_TIMESTAMP(6), '[]', '')),
       epoch      = :epoch,
       created_at = UTC_TIMESTAMP(6),
       updated_at = UTC_TIMESTAMP(6),
       expires_at = UTC_TIMESTAMP(6) + INTERVAL :ttl_us MICROSECOND
""")


#: Copy the content of a thread to the destination whose row was copied under this epoch; copies nothing if it was not.
#: Seals cover the thread, so those of a copy are other ones: see `Sealing.shift`. If the destination already had
#: writes, which arrived before their checkpoint, those of the source replace them.
COPY_CONTENT = (
    SQL(f"""
INSERT INTO {{checkpoints}} (tenant, thread_id, ns_key, seq, checkpoint_key, parent_key, checkpoint_id, parent_id, ns,
                        stored_seq, hidden, needs, unlinked, sources, tokens, payload, metadata, run_key, chunk,
                        created_at)
SELECT c.tenant, d.thread_id, c.ns_key, c.seq, c.checkpoint_key, c.parent_key, c.checkpoint_id, c.parent_id, c.ns,
       c.stored_seq, c.hidden, c.needs, c.unlinked, c.sources, c.tokens, {shifted("c.payload")}, c.metadata, c.run_key,
       {shifted("c.chunk")}, c.created_at
  FROM {{checkpoints}} c{{COPIED}}
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id
"""),
    SQL(f"""
INSERT INTO {{parts}} (tenant, thread_id, part, chunk)
SELECT p.tenant, d.thread_id, p.part, {shifted("p.chunk")}
  FROM {{parts}} p{{COPIED}}
 WHERE p.tenant = :tenant AND p.thread_id = :thread_id
"""),
    SQL(f"""
REPLACE INTO {{writes}} (tenant, thread_id, checkpoint_key, task_key, idx, task_id, task_path, channel, payload,
                       created_at)
SELECT w.tenant, d.thread_id, w.checkpoint_key, w.task_key, w.idx, w.task_id, w.task_path, w.channel,
       {shifted("w.payload")}, w.created_at
  FROM {{writes}} w{{COPIED}}
 WHERE w.tenant = :tenant AND w.thread_id = :thread_id
"""),
)

#: Content that only a program with keys can copy.
ENCRYPTED = Select(
    f"""
SELECT c.payload FROM {{checkpoints}} c
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND {encrypted("c.payload")}
 UNION ALL
SELECT c.chunk FROM {{checkpoints}} c
 WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND {encrypted("c.chunk")}
 UNION ALL
SELECT p.chunk FROM {{parts}} p WHERE p.tenant = :tenant AND p.thread_id = :thread_id AND {encrypted("p.chunk")}
 UNION ALL
SELECT w.payload FROM {{writes}} w WHERE w.tenant = :tenant AND w.thread_id = :thread_id AND {encrypted("w.payload")}
 LIMIT 1
""",
    StoredRow,
)
