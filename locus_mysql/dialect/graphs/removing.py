"""Statements that remove checkpoints, keep their content that others need, and copy threads."""

from __future__ import annotations

from collections.abc import Sequence

from ..statement import Param, Query, Statement
from ..template import Statements, placeholders
from ..variants import OCEANBASE
from .result_rows import ThreadRow

HIDE_NAMED = (
    "UPDATE {checkpoints} c SET c.hidden = 1 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_key = %s"
)

# Relies on the index runs.
HIDE_RUNS = """
UPDATE {checkpoints} c SET c.hidden = 1
 WHERE c.tenant = %s AND c.run_key IN ({runs}) AND c.thread_id = %s AND c.hidden = 0
"""

# All but a number of the newest in each namespace, or in one.
HIDE_OLDER = """
UPDATE {checkpoints} c
  JOIN (SELECT x.ns_key, x.seq,
               ROW_NUMBER() OVER (PARTITION BY x.ns_key ORDER BY x.seq DESC) AS row_no
          FROM {checkpoints} x
         WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 0{namespace}) o
    ON o.ns_key = c.ns_key AND o.seq = c.seq
   SET c.hidden = 1
 WHERE c.tenant = %s AND c.thread_id = %s AND o.row_no > %s
"""
OF_NAMESPACE = " AND x.ns_key = %s"

# Those older than an age, except the newest of each namespace.
HIDE_BEFORE = """
UPDATE {checkpoints} c
  JOIN (SELECT x.ns_key, MAX(x.seq) AS seq
          FROM {checkpoints} x
         WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 0
         GROUP BY x.ns_key) newest
    ON newest.ns_key = c.ns_key AND c.seq < newest.seq
   SET c.hidden = 1
 WHERE c.tenant = %s AND c.thread_id = %s AND c.hidden = 0
   AND c.created_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
"""

# Threads of which HIDE_BEFORE hides any, in the order of the primary key.
THREADS_BEFORE = """
SELECT DISTINCT c.thread_id
  FROM {checkpoints} c
 WHERE c.tenant = %s AND c.thread_id > %s AND c.hidden = 0
   AND c.created_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
   AND EXISTS (SELECT 1 FROM {checkpoints} n
                WHERE n.tenant = c.tenant AND n.thread_id = c.thread_id AND n.ns_key = c.ns_key AND n.seq > c.seq
                  AND n.hidden = 0)
 ORDER BY c.thread_id
 LIMIT %s
"""

HIDE_BROKEN = """
UPDATE {checkpoints} x
  JOIN (SELECT DISTINCT c.ns_key, c.seq
          FROM {WITH_PARTS}
         WHERE c.tenant = %s AND c.thread_id = %s AND c.hidden = 0 AND p.part IS NULL AND o.seq IS NULL) AS broken
    ON broken.ns_key = x.ns_key AND broken.seq = x.seq
   SET x.hidden = 1
 WHERE x.tenant = %s AND x.thread_id = %s
"""
THREADS_WITH_BROKEN = """
SELECT DISTINCT c.thread_id
  FROM {WITH_PARTS}
 WHERE c.tenant = %s AND c.thread_id BETWEEN %s AND %s AND c.hidden = 0 AND p.part IS NULL AND o.seq IS NULL
"""

# LangGraph stores each call of a subgraph in a namespace of its own, <name>:<task id>, and names in the metadata the
# checkpoint of the graph itself that called it. A call is removed together with that checkpoint. If that was never
# stored, the call stays: its run may be storing it now. The key is that of the empty namespace.
HIDE_CALLS = """
UPDATE {checkpoints} c
  JOIN {checkpoints} r ON r.tenant = c.tenant AND r.thread_id = c.thread_id AND r.hidden > 0
                   AND r.checkpoint_key = UNHEX(LEFT(SHA2(CONCAT(CAST('0:' AS BINARY), CAST(JSON_UNQUOTE(JSON_EXTRACT(
                         IF(JSON_VALID(c.metadata), c.metadata, NULL), '$.parents.""')) AS BINARY)), 256), 32))
   SET c.hidden = 1
 WHERE c.tenant = %s AND c.thread_id = %s AND c.hidden = 0 AND LOCATE(':', c.ns) > 0
"""

# A child keeps the link to a deleted parent only if it still needs the parent's stored content. Of a parent's writes, a
# child needs its sends, which go to the channel __pregel_tasks. The columns that the row's checksum covers stay.
UNLINK_PARENTS = """
UPDATE {checkpoints} c
  JOIN {checkpoints} p ON p.tenant = c.tenant AND p.thread_id = c.thread_id AND p.checkpoint_key = c.parent_key
   SET c.unlinked = 1
 WHERE c.tenant = %s AND c.thread_id = %s AND c.hidden = 0 AND c.unlinked = 0 AND p.hidden > 0
   AND (c.needs = 0
        OR c.needs = 2 AND NOT EXISTS (SELECT 1 FROM {writes} w
                                        WHERE w.tenant = c.tenant AND w.thread_id = c.thread_id
                                          AND w.checkpoint_key = c.parent_key AND w.channel = '__pregel_tasks'))
"""

# Mark with 2 the hidden rows that no other row needs: neither as the parent that its values continue, directly or
# through others, nor as the parent whose writes it reads.
MARK_UNNEEDED = """
UPDATE {checkpoints} c
  LEFT JOIN (
    WITH RECURSIVE needed (checkpoint_key, parent_key, needs) AS (
      SELECT p.checkpoint_key, p.parent_key, IF(x.needs = 1 AND p.unlinked = 0, p.needs, 0)
        FROM {checkpoints} x
        JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.checkpoint_key = x.parent_key
       WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 0 AND x.needs > 0 AND x.unlinked = 0
       UNION
      SELECT p.checkpoint_key, p.parent_key, IF(n.needs = 1 AND p.unlinked = 0, p.needs, 0)
        FROM needed n
        JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.checkpoint_key = n.parent_key
       WHERE n.needs > 0
    ) SELECT DISTINCT checkpoint_key FROM needed) AS needed ON needed.checkpoint_key = c.checkpoint_key
   SET c.hidden = 2
 WHERE c.tenant = %s AND c.thread_id = %s AND c.hidden = 1 AND needed.checkpoint_key IS NULL
"""

# There is no recursive UNION DISTINCT (error 1235). UNION ALL would follow the line of each row to its beginning, so a
# line ends at a row that is not hidden, which has a line of its own; and, where damage made it a circle, after as many
# steps as the thread has rows.
OCEANBASE.instead_of(
    MARK_UNNEEDED,
    """
UPDATE {checkpoints} c
  LEFT JOIN (
    WITH RECURSIVE needed (checkpoint_key, parent_key, needs, steps) AS (
      SELECT p.checkpoint_key, p.parent_key, IF(x.needs = 1 AND p.unlinked = 0, p.needs, 0),
             (SELECT COUNT(*) FROM {checkpoints} a WHERE a.tenant = x.tenant AND a.thread_id = x.thread_id)
        FROM {checkpoints} x
        JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.checkpoint_key = x.parent_key AND p.hidden > 0
       WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 0 AND x.needs > 0 AND x.unlinked = 0
       UNION ALL
      SELECT p.checkpoint_key, p.parent_key, IF(n.needs = 1 AND p.unlinked = 0, p.needs, 0), n.steps - 1
        FROM needed n
        JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.checkpoint_key = n.parent_key AND p.hidden > 0
       WHERE n.needs > 0 AND n.steps > 0
    ) SELECT DISTINCT checkpoint_key FROM needed) AS needed ON needed.checkpoint_key = c.checkpoint_key
   SET c.hidden = 2
 WHERE c.tenant = %s AND c.thread_id = %s AND c.hidden = 1 AND needed.checkpoint_key IS NULL
""",
)

DELETE_WRITES = """
DELETE w FROM {writes} w
  JOIN {checkpoints} c ON c.tenant = w.tenant AND c.thread_id = w.thread_id AND c.checkpoint_key = w.checkpoint_key
 WHERE c.tenant = %s AND c.thread_id = %s AND c.hidden = 2
"""

# Before a row is deleted, its part moves to the table of parts if others need it.
MOVE_PARTS = """
INSERT INTO {parts} (tenant, thread_id, part, chunk)
SELECT x.tenant, x.thread_id, x.seq * {OWN_PARTS}, x.chunk
  FROM {checkpoints} x
  JOIN{USED} ON used.part = x.seq * {OWN_PARTS}
 WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 2 AND x.chunk IS NOT NULL
"""

DELETE_MARKED = "DELETE FROM {checkpoints} WHERE tenant = %s AND thread_id = %s AND hidden = 2"

DELETE_PARTS = """
DELETE p FROM {parts} p
  LEFT JOIN{USED} ON used.part = p.part
 WHERE p.tenant = %s AND p.thread_id = %s AND used.part IS NULL
"""

# Remove the row of a thread without checkpoints. At this point, it can only have writes that arrived before their
# checkpoint. A row that was inserted only to lock it is removed too.
DROP_IF_EMPTY = """
DELETE FROM {threads}
 WHERE tenant = %s AND thread_id = %s
   AND (expires_at = {ONLY_LOCKED}
        OR NOT EXISTS (SELECT 1 FROM {checkpoints} c WHERE c.tenant = %s AND c.thread_id = %s AND c.hidden = 0))
"""

# Threads with old writes whose checkpoint was never stored, or was removed before they arrived; in the order of the
# primary key.
THREADS_WITH_ORPHANS = """
SELECT DISTINCT w.thread_id
  FROM {writes} w
 WHERE w.tenant = %s AND w.thread_id > %s AND w.created_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
   AND NOT EXISTS (SELECT 1 FROM {checkpoints} c
                    WHERE c.tenant = w.tenant AND c.thread_id = w.thread_id AND c.checkpoint_key = w.checkpoint_key)
 ORDER BY w.thread_id
 LIMIT %s
"""

DELETE_ORPHANS = """
DELETE w FROM {writes} w
  LEFT JOIN {checkpoints} c ON c.tenant = w.tenant AND c.thread_id = w.thread_id AND c.checkpoint_key = w.checkpoint_key
 WHERE w.tenant = %s AND w.thread_id = %s AND c.checkpoint_key IS NULL
   AND w.created_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
"""

# Relies on the index runs.
THREADS_OF_RUNS = """
SELECT DISTINCT c.thread_id FROM {checkpoints} c WHERE c.tenant = %s AND c.run_key IN ({runs}) AND c.hidden = 0
"""

# Lock the source of a copy. OceanBase ignores FOR SHARE in an INSERT with ON DUPLICATE KEY UPDATE, as the next one is.
HOLD_SOURCE = "SELECT t.thread_id FROM {threads} t WHERE t.tenant = %s AND t.thread_id = %s FOR SHARE"

# Turn the row of a locked thread into that of a copy. If the source does not exist, no row is affected. A live
# destination fails with error 3141, which undoes the batch. The assignments run left to right.
COPY_THREAD = """
INSERT INTO {threads} (tenant, thread_id, last_seq, epoch, created_at, updated_at, expires_at)
SELECT t.tenant, %s, t.last_seq, %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s AND (t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))
    ON DUPLICATE KEY UPDATE
       last_seq   = t.last_seq + JSON_LENGTH(IF({threads}.expires_at <= UTC_TIMESTAMP(6), '[]', '')),
       epoch      = %s,
       created_at = UTC_TIMESTAMP(6),
       updated_at = UTC_TIMESTAMP(6),
       expires_at = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
"""

# A payload for another thread, for the alias x: the checksum in its bytes 2 to 5 covers the thread's name, by XOR. A
# truncated payload is copied unchanged.
MOVED = """IF(LENGTH({x}.payload) < 5, {x}.payload, CONCAT(LEFT({x}.payload, 1), SUBSTRING({x}.payload, 2, 4) ^ UNHEX(
         LPAD(HEX(CRC32(CONCAT({x}.tenant, CHAR(0), {x}.thread_id)) ^ CRC32(CONCAT(d.tenant, CHAR(0), d.thread_id))),
              8, '0')),
         SUBSTRING({x}.payload, 6)))"""

# The operator ^ takes bytes for numbers there, as in MySQL 5.7.
OCEANBASE.instead_of(
    MOVED,
    """IF(LENGTH({x}.payload) < 5, {x}.payload, CONCAT(LEFT({x}.payload, 1), UNHEX(LPAD(HEX(
         CAST(CONV(HEX(SUBSTRING({x}.payload, 2, 4)), 16, 10) AS UNSIGNED)
         ^ CRC32(CONCAT({x}.tenant, CHAR(0), {x}.thread_id)) ^ CRC32(CONCAT(d.tenant, CHAR(0), d.thread_id))), 8, '0')),
         SUBSTRING({x}.payload, 6)))""",
)

COPY_CHECKPOINTS = """
INSERT INTO {checkpoints} (tenant, thread_id, ns_key, seq, checkpoint_key, parent_key, checkpoint_id, parent_id, ns,
                        stored_seq, hidden, needs, unlinked, sources, tokens, payload, metadata, run_key, chunk,
                        created_at)
SELECT c.tenant, d.thread_id, c.ns_key, c.seq, c.checkpoint_key, c.parent_key, c.checkpoint_id, c.parent_id, c.ns,
       c.stored_seq, c.hidden, c.needs, c.unlinked, c.sources, c.tokens, {moved}, c.metadata, c.run_key, c.chunk,
       c.created_at
  FROM {checkpoints} c{COPIED}
 WHERE c.tenant = %s AND c.thread_id = %s
"""

COPY_PARTS = """
INSERT INTO {parts} (tenant, thread_id, part, chunk)
SELECT p.tenant, d.thread_id, p.part, p.chunk
  FROM {parts} p{COPIED}
 WHERE p.tenant = %s AND p.thread_id = %s
"""

# If the destination already had writes, which arrived before their checkpoint, those of the source replace them.
COPY_WRITES = """
REPLACE INTO {writes} (tenant, thread_id, checkpoint_key, task_key, idx, task_id, task_path, channel, payload,
                       created_at)
SELECT w.tenant, d.thread_id, w.checkpoint_key, w.task_key, w.idx, w.task_id, w.task_path, w.channel, {moved},
       w.created_at
  FROM {writes} w{COPIED}
 WHERE w.tenant = %s AND w.thread_id = %s
"""


class RemovingStatements(Statements):
    """Removing checkpoints and copying threads."""

    def hide_named(self, tenant: str, thread_id: str, checkpoint_key: bytes) -> Statement:
        """Hide a checkpoint."""
        return Statement(self._text(HIDE_NAMED), (tenant, thread_id, checkpoint_key))

    def hide_runs(self, tenant: str, thread_id: str, run_keys: Sequence[bytes]) -> Statement:
        """Hide the checkpoints of runs."""
        text = self._text(HIDE_RUNS, runs=placeholders(len(run_keys)))
        return Statement(text, (tenant, *run_keys, thread_id))

    def hide_older(self, tenant: str, thread_id: str, keep: int, ns_key: bytes | None) -> Statement:
        """Hide all but the newest ``keep`` of each namespace, or of one."""
        key: tuple[Param, ...] = (tenant, thread_id)
        text = self._text(HIDE_OLDER, namespace="" if ns_key is None else OF_NAMESPACE)
        return Statement(text, (*key, *(() if ns_key is None else (ns_key,)), *key, keep))

    def hide_calls(self, tenant: str, thread_id: str) -> Statement:
        """Hide the calls of subgraphs whose calling checkpoint was hidden."""
        return Statement(self._text(HIDE_CALLS), (tenant, thread_id))

    def hide_before(self, tenant: str, thread_id: str, age_us: int) -> Statement:
        """Hide checkpoints older than an age, except the newest of each namespace."""
        key = (tenant, thread_id)
        return Statement(self._text(HIDE_BEFORE), (*key, *key, age_us))

    def hide_broken(self, tenant: str, thread_id: str) -> Statement:
        """Hide checkpoints of which a part is missing."""
        return Statement(self._text(HIDE_BROKEN), (tenant, thread_id) * 2)

    def threads_with_broken(self, tenant: str, first: str, last: str) -> Query[ThreadRow]:
        """Ids of threads that have such checkpoints, from one id to another."""
        return Query(self._text(THREADS_WITH_BROKEN), (tenant, first, last), row=ThreadRow)

    def threads_before(self, tenant: str, after: str, age_us: int, limit: int) -> Query[ThreadRow]:
        """Return the ids, after a given one and in order, of threads that have such checkpoints."""
        return Query(self._text(THREADS_BEFORE), (tenant, after, age_us, limit), row=ThreadRow)

    def remove_hidden(self, tenant: str, thread_id: str, record: Statement) -> tuple[Statement, ...]:
        """Remove hidden rows that are not needed, with their writes and parts; and the thread if nothing is left.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            record: The statement that records the tokens of rows marked to be removed.
        """
        key = (tenant, thread_id)
        return (
            Statement(self._text(UNLINK_PARENTS), key),
            Statement(self._text(MARK_UNNEEDED), key * 4),
            record,
            Statement(self._text(DELETE_WRITES), key),
            Statement(self._text(MOVE_PARTS), key * 2),
            Statement(self._text(DELETE_MARKED), key),
            Statement(self._text(DELETE_PARTS), key * 2),
            Statement(self._text(DROP_IF_EMPTY), key * 2),
        )

    def threads_with_orphans(self, tenant: str, after: str, age_us: int, limit: int) -> Query[ThreadRow]:
        """Return ids, after a given one and in order, of threads with old writes that have no checkpoint."""
        return Query(self._text(THREADS_WITH_ORPHANS), (tenant, after, age_us, limit), row=ThreadRow)

    def delete_orphans(self, tenant: str, thread_id: str, age_us: int) -> Statement:
        """Remove a thread's writes older than an age that have no checkpoint."""
        return Statement(self._text(DELETE_ORPHANS), (tenant, thread_id, age_us))

    def threads_of_runs(self, tenant: str, run_keys: Sequence[bytes]) -> Query[ThreadRow]:
        """Ids of threads that have checkpoints of runs."""
        text = self._text(THREADS_OF_RUNS, runs=placeholders(len(run_keys)))
        return Query(text, (tenant, *run_keys), row=ThreadRow)

    def hold_source(self, tenant: str, source: str) -> Query[ThreadRow]:
        """Lock the source of a copy until the end of the batch."""
        return Query(self._text(HOLD_SOURCE), (tenant, source), row=ThreadRow)

    def copy_thread(self, tenant: str, source: str, destination: str, epoch: bytes, ttl_us: int | None) -> Statement:
        """Turn the row of a locked thread into that of a copy; affects no row if there is no source.

        Fails with error 3141 if the destination is live.
        """
        params = (destination, epoch, ttl_us, tenant, source, epoch, ttl_us)
        return Statement(self._text(COPY_THREAD), params)

    def copy_content(self, tenant: str, source: str, destination: str, epoch: bytes) -> tuple[Statement, ...]:
        """Copy the content of a thread whose row was copied under this epoch; copies nothing if it was not."""
        params = (tenant, destination, epoch, tenant, source)
        return (
            Statement(self._text(COPY_CHECKPOINTS, moved=MOVED, x="c"), params),
            Statement(self._text(COPY_PARTS), params),
            Statement(self._text(COPY_WRITES, moved=MOVED, x="w"), params),
        )
