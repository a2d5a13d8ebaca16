"""Statements that remove checkpoints, keep their content that others need, and copy threads."""

from __future__ import annotations

from collections.abc import Sequence

from ..seals import shifted
from ..statement import Param, Query, Statement
from ..template import Statements, placeholders
from ..variants import OCEANBASE
from .result_rows import ThreadRow

HIDE_NAMED = "UPDATE {versions} v SET v.hidden = 1 WHERE v.tenant = %s AND v.thread_id = %s AND v.version_key = %s"

# Relies on the index runs.
HIDE_RUNS = """
UPDATE {versions} v SET v.hidden = 1
 WHERE v.tenant = %s AND v.run_key IN ({runs}) AND v.thread_id = %s AND v.hidden = 0
"""

# All but a number of the newest in each namespace, or in one.
HIDE_OLDER = """
UPDATE {versions} v
  JOIN (SELECT x.ns_key, x.seq,
               ROW_NUMBER() OVER (PARTITION BY x.ns_key ORDER BY x.seq DESC) AS row_no
          FROM {versions} x
         WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 0{namespace}) o
    ON o.ns_key = v.ns_key AND o.seq = v.seq
   SET v.hidden = 1
 WHERE v.tenant = %s AND v.thread_id = %s AND o.row_no > %s
"""
OF_NAMESPACE = " AND x.ns_key = %s"

# Those older than an age, except the newest of each namespace.
HIDE_BEFORE = """
UPDATE {versions} v
  JOIN (SELECT x.ns_key, MAX(x.seq) AS seq
          FROM {versions} x
         WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 0
         GROUP BY x.ns_key) newest
    ON newest.ns_key = v.ns_key AND v.seq < newest.seq
   SET v.hidden = 1
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 0
   AND v.created_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
"""

# Threads of which HIDE_BEFORE hides any, in the order of the primary key.
THREADS_BEFORE = """
SELECT DISTINCT v.thread_id
  FROM {versions} v
 WHERE v.tenant = %s AND v.thread_id > %s AND v.hidden = 0
   AND v.created_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
   AND EXISTS (SELECT 1 FROM {versions} n
                WHERE n.tenant = v.tenant AND n.thread_id = v.thread_id AND n.ns_key = v.ns_key AND n.seq > v.seq
                  AND n.hidden = 0)
 ORDER BY v.thread_id
 LIMIT %s
"""

HIDE_BROKEN = """
UPDATE {versions} x
  JOIN (SELECT DISTINCT v.ns_key, v.seq
          FROM {WITH_PARTS}
         WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 0 AND p.part IS NULL AND o.seq IS NULL) AS broken
    ON broken.ns_key = x.ns_key AND broken.seq = x.seq
   SET x.hidden = 1
 WHERE x.tenant = %s AND x.thread_id = %s
"""
THREADS_WITH_BROKEN = """
SELECT DISTINCT v.thread_id
  FROM {WITH_PARTS}
 WHERE v.tenant = %s AND v.thread_id BETWEEN %s AND %s AND v.hidden = 0 AND p.part IS NULL AND o.seq IS NULL
"""

# LangGraph stores each call of a subgraph in a namespace of its own, <name>:<task id>, and names in the metadata the
# checkpoint of the graph itself that called it. A call is removed together with that checkpoint. If that was never
# stored, the call stays: its run may be storing it now. The key is that of `keys.version_key` in the empty namespace.
HIDE_CALLS = """
UPDATE {versions} v
  JOIN {versions} r ON r.tenant = v.tenant AND r.thread_id = v.thread_id AND r.hidden > 0
                   AND r.version_key = UNHEX(LEFT(SHA2(CONCAT(CAST('0:' AS BINARY), CAST(JSON_UNQUOTE(JSON_EXTRACT(
                         IF(JSON_VALID(v.metadata), v.metadata, NULL), '$.parents.""')) AS BINARY)), 256), 32))
   SET v.hidden = 1
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 0 AND LOCATE(':', v.ns) > 0
"""

# A child keeps the link to a deleted parent only if it still needs the parent's stored content. Of a parent's writes, a
# child needs its sends, which go to the channel __pregel_tasks. The columns that the row's seal covers stay.
UNLINK_PARENTS = """
UPDATE {versions} v
  JOIN {versions} p ON p.tenant = v.tenant AND p.thread_id = v.thread_id AND p.version_key = v.parent_key
   SET v.unlinked = 1
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 0 AND v.unlinked = 0 AND p.hidden > 0
   AND (v.needs = 0
        OR v.needs = 2 AND NOT EXISTS (SELECT 1 FROM {writes} w
                                        WHERE w.tenant = v.tenant AND w.thread_id = v.thread_id
                                          AND w.version_key = v.parent_key AND w.channel = '__pregel_tasks'))
"""

# Mark with 2 the hidden rows that no other row needs: neither as the parent that its values continue, directly or
# through others, nor as the parent whose writes it reads.
MARK_UNNEEDED = """
UPDATE {versions} v
  LEFT JOIN (
    WITH RECURSIVE needed (version_key, parent_key, needs) AS (
      SELECT p.version_key, p.parent_key, IF(x.needs = 1 AND p.unlinked = 0, p.needs, 0)
        FROM {versions} x
        JOIN {versions} p ON p.tenant = %s AND p.thread_id = %s AND p.version_key = x.parent_key
       WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 0 AND x.needs > 0 AND x.unlinked = 0
       UNION
      SELECT p.version_key, p.parent_key, IF(n.needs = 1 AND p.unlinked = 0, p.needs, 0)
        FROM needed n
        JOIN {versions} p ON p.tenant = %s AND p.thread_id = %s AND p.version_key = n.parent_key
       WHERE n.needs > 0
    ) SELECT DISTINCT version_key FROM needed) AS needed ON needed.version_key = v.version_key
   SET v.hidden = 2
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 1 AND needed.version_key IS NULL
"""

# There is no recursive UNION DISTINCT (error 1235). UNION ALL would follow the line of each row to its beginning, so a
# line ends at a row that is not hidden, which has a line of its own; and, where damage made it a circle, after as many
# steps as the thread has rows.
OCEANBASE.instead_of(
    MARK_UNNEEDED,
    """
UPDATE {versions} v
  LEFT JOIN (
    WITH RECURSIVE needed (version_key, parent_key, needs, steps) AS (
      SELECT p.version_key, p.parent_key, IF(x.needs = 1 AND p.unlinked = 0, p.needs, 0),
             (SELECT COUNT(*) FROM {versions} c WHERE c.tenant = x.tenant AND c.thread_id = x.thread_id)
        FROM {versions} x
        JOIN {versions} p ON p.tenant = %s AND p.thread_id = %s AND p.version_key = x.parent_key AND p.hidden > 0
       WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 0 AND x.needs > 0 AND x.unlinked = 0
       UNION ALL
      SELECT p.version_key, p.parent_key, IF(n.needs = 1 AND p.unlinked = 0, p.needs, 0), n.steps - 1
        FROM needed n
        JOIN {versions} p ON p.tenant = %s AND p.thread_id = %s AND p.version_key = n.parent_key AND p.hidden > 0
       WHERE n.needs > 0 AND n.steps > 0
    ) SELECT DISTINCT version_key FROM needed) AS needed ON needed.version_key = v.version_key
   SET v.hidden = 2
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 1 AND needed.version_key IS NULL
""",
)

DELETE_WRITES = """
DELETE w FROM {writes} w
  JOIN {versions} v ON v.tenant = w.tenant AND v.thread_id = w.thread_id AND v.version_key = w.version_key
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 2
"""

# Before a row is deleted, its part moves to the table of parts if others need it.
MOVE_PARTS = """
INSERT INTO {parts} (tenant, thread_id, part, chunk)
SELECT x.tenant, x.thread_id, x.seq * {OWN_PARTS}, x.chunk
  FROM {versions} x
  JOIN{USED} ON used.part = x.seq * {OWN_PARTS}
 WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 2 AND x.chunk IS NOT NULL
"""

DELETE_MARKED = "DELETE FROM {versions} WHERE tenant = %s AND thread_id = %s AND hidden = 2"

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
        OR NOT EXISTS (SELECT 1 FROM {versions} v WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 0))
"""

# Threads with old writes whose checkpoint was never stored, or was removed before they arrived; in the order of the
# primary key.
THREADS_WITH_ORPHANS = """
SELECT DISTINCT w.thread_id
  FROM {writes} w
 WHERE w.tenant = %s AND w.thread_id > %s AND w.created_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
   AND NOT EXISTS (SELECT 1 FROM {versions} v
                    WHERE v.tenant = w.tenant AND v.thread_id = w.thread_id AND v.version_key = w.version_key)
 ORDER BY w.thread_id
 LIMIT %s
"""

DELETE_ORPHANS = """
DELETE w FROM {writes} w
  LEFT JOIN {versions} v ON v.tenant = w.tenant AND v.thread_id = w.thread_id AND v.version_key = w.version_key
 WHERE w.tenant = %s AND w.thread_id = %s AND v.version_key IS NULL
   AND w.created_at < UTC_TIMESTAMP(6) - INTERVAL %s MICROSECOND
"""

# Relies on the index runs.
THREADS_OF_RUNS = """
SELECT DISTINCT v.thread_id FROM {versions} v WHERE v.tenant = %s AND v.run_key IN ({runs}) AND v.hidden = 0
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

# Seals cover the thread, so those of a copy are other ones: see `Sealing.shift`.
COPY_VERSIONS = """
INSERT INTO {versions} (tenant, thread_id, ns_key, seq, version_key, parent_key, checkpoint_id, parent_id, ns,
                        stored_seq, hidden, needs, unlinked, sources, tokens, payload, metadata, run_key, chunk,
                        created_at)
SELECT v.tenant, d.thread_id, v.ns_key, v.seq, v.version_key, v.parent_key, v.checkpoint_id, v.parent_id, v.ns,
       v.stored_seq, v.hidden, v.needs, v.unlinked, v.sources, v.tokens, {payload}, v.metadata, v.run_key, {chunk},
       v.created_at
  FROM {versions} v{COPIED}
 WHERE v.tenant = %s AND v.thread_id = %s
"""

COPY_PARTS = """
INSERT INTO {parts} (tenant, thread_id, part, chunk)
SELECT p.tenant, d.thread_id, p.part, {chunk}
  FROM {parts} p{COPIED}
 WHERE p.tenant = %s AND p.thread_id = %s
"""

# If the destination already had writes, which arrived before their checkpoint, those of the source replace them.
COPY_WRITES = """
REPLACE INTO {writes} (tenant, thread_id, version_key, task_key, idx, task_id, task_path, channel, payload, created_at)
SELECT w.tenant, d.thread_id, w.version_key, w.task_key, w.idx, w.task_id, w.task_path, w.channel, {payload},
       w.created_at
  FROM {writes} w{COPIED}
 WHERE w.tenant = %s AND w.thread_id = %s
"""


class RemovingStatements(Statements):
    """Removing checkpoints and copying threads."""

    def hide_named(self, tenant: str, thread_id: str, version_key: bytes) -> Statement:
        """Hide a checkpoint."""
        return Statement(self._text(HIDE_NAMED), (tenant, thread_id, version_key))

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

    def copy_content(
        self, tenant: str, source: str, destination: str, epoch: bytes, shift: int
    ) -> tuple[Statement, ...]:
        """Copy the content of a thread whose row was copied under this epoch; copies nothing if it was not."""
        params = (tenant, destination, epoch, tenant, source)
        return (
            Statement(
                self._text(COPY_VERSIONS, payload=shifted("v.payload"), chunk=shifted("v.chunk")),
                (shift, shift, *params),
            ),
            Statement(self._text(COPY_PARTS, chunk=shifted("p.chunk")), (shift, *params)),
            Statement(self._text(COPY_WRITES, payload=shifted("w.payload")), (shift, *params)),
        )
