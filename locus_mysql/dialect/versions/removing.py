"""Statements that remove checkpoints, keep what others need of them, and copy threads."""

from __future__ import annotations

from collections.abc import Sequence

from ..statement import Param, Statement
from ..template import Statements
from .rows import OWN_PARTS

HIDE_NAMED = "UPDATE {versions} v SET v.hidden = 1 WHERE v.tenant = %s AND v.thread_id = %s AND v.version_key = %s"

# Relies on the index runs.
HIDE_RUNS = """
UPDATE {versions} v SET v.hidden = 1
 WHERE v.tenant = %s AND v.run_key IN (<runs>) AND v.thread_id = %s AND v.hidden = 0
"""

# All but the newest few of each namespace, or of one.
HIDE_OLDER = """
UPDATE {versions} v
  JOIN (SELECT x.ns_key, x.seq,
               ROW_NUMBER() OVER (PARTITION BY x.ns_key ORDER BY x.seq DESC) AS place
          FROM {versions} x
         WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 0<namespace>) o
    ON o.ns_key = v.ns_key AND o.seq = v.seq
   SET v.hidden = 1
 WHERE v.tenant = %s AND v.thread_id = %s AND o.place > %s
"""
OF_NAMESPACE = " AND x.ns_key = %s"

# Those older than an age, but for the newest of each namespace.
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

# LangGraph stores each call of a subgraph in a namespace of its own, <name>:<task id>, and says in the metadata which
# checkpoint of the graph itself called it. A call goes with that one. If that one was never stored, the call stays: its
# run may be storing it now. The key is that of `versions.keys.version_key` in the empty namespace.
HIDE_CALLS = """
UPDATE {versions} v
  JOIN {versions} r ON r.tenant = v.tenant AND r.thread_id = v.thread_id AND r.hidden > 0
                   AND r.version_key = UNHEX(LEFT(SHA2(CONCAT(CAST('0:' AS BINARY), CAST(JSON_UNQUOTE(JSON_EXTRACT(
                         IF(JSON_VALID(v.metadata), v.metadata, '{{}}'), '$.parents.""')) AS BINARY)), 256), 32))
   SET v.hidden = 1
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 0 AND LOCATE(':', v.ns) > 0
"""

# A parent that is no longer there is named only if the child still needs what is kept of it. Of a parent's writes a
# child needs its sends, which go to the channel __pregel_tasks.
UNNAME_PARENTS = """
UPDATE {versions} v
  JOIN {versions} p ON p.tenant = v.tenant AND p.thread_id = v.thread_id AND p.version_key = v.parent_key
   SET v.parent_id = NULL, v.needs = 0
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 0 AND v.parent_id IS NOT NULL AND p.hidden > 0
   AND (v.needs = 0
        OR v.needs = 2 AND NOT EXISTS (SELECT 1 FROM {writes} w
                                        WHERE w.tenant = v.tenant AND w.thread_id = v.thread_id
                                          AND w.version_key = v.parent_key AND w.channel = '__pregel_tasks'))
"""

# Of the hidden rows, those that no other row needs: neither as the parent its values go on from, and so on up the line,
# nor as the parent whose writes it reads. They are marked 2.
MARK_UNNEEDED = """
UPDATE /*+ SET_VAR(cte_max_recursion_depth = 1000000) */ {versions} v
  LEFT JOIN (
    WITH RECURSIVE needed (version_key, parent_key, needs) AS (
      SELECT p.version_key, p.parent_key, IF(x.needs = 1, p.needs, 0)
        FROM {versions} x
        JOIN {versions} p ON p.tenant = %s AND p.thread_id = %s AND p.version_key = x.parent_key
       WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 0 AND x.needs > 0
       UNION
      SELECT p.version_key, p.parent_key, IF(n.needs = 1, p.needs, 0)
        FROM needed n
        JOIN {versions} p ON p.tenant = %s AND p.thread_id = %s AND p.version_key = n.parent_key
       WHERE n.needs > 0
    ) SELECT DISTINCT version_key FROM needed) AS needed ON needed.version_key = v.version_key
   SET v.hidden = 2
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 1 AND needed.version_key IS NULL
"""

DELETE_WRITES = """
DELETE w FROM {writes} w
  JOIN {versions} v ON v.tenant = w.tenant AND v.thread_id = w.thread_id AND v.version_key = w.version_key
 WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 2
"""

# The numbers of the parts that the rows which stay need.
_USED = """
       (SELECT DISTINCT IF(s.part < <own>, COALESCE(v.stored_seq, v.seq) * <own> + s.part, s.part) AS part
          FROM {versions} v
          JOIN JSON_TABLE(v.sources, '$[*]' COLUMNS (part BIGINT UNSIGNED PATH '$')) s
         WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden < 2) AS used"""

# A row that goes leaves its part where others need it.
MOVE_PARTS = """
INSERT INTO {parts} (tenant, thread_id, part, chunk)
SELECT x.tenant, x.thread_id, x.seq * <own>, x.chunk
  FROM {versions} x
  JOIN<used> ON used.part = x.seq * <own>
 WHERE x.tenant = %s AND x.thread_id = %s AND x.hidden = 2 AND x.chunk IS NOT NULL
""".replace("<used>", _USED).replace("<own>", str(OWN_PARTS))

DELETE_MARKED = "DELETE FROM {versions} WHERE tenant = %s AND thread_id = %s AND hidden = 2"

DELETE_PARTS = """
DELETE p FROM {parts} p
  LEFT JOIN<used> ON used.part = p.part
 WHERE p.tenant = %s AND p.thread_id = %s AND used.part IS NULL
""".replace("<used>", _USED).replace("<own>", str(OWN_PARTS))

# A thread without checkpoints is no thread. What is left of it by then are writes that came before their checkpoint.
DROP_IF_EMPTY = """
DELETE FROM {threads}
 WHERE tenant = %s AND thread_id = %s
   AND NOT EXISTS (SELECT 1 FROM {versions} v WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden = 0)
"""

# Threads with old writes whose checkpoint never came, or went while they were on their way; in the order of the primary
# key.
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
SELECT DISTINCT v.thread_id FROM {versions} v WHERE v.tenant = %s AND v.run_key IN (<runs>) AND v.hidden = 0
"""

COPY_THREAD = """
INSERT INTO {threads} (tenant, thread_id, last_seq, epoch, created_at, updated_at, expires_at)
SELECT t.tenant, %s, t.last_seq, %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND
  FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s AND (t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))
"""

COPY_VERSIONS = """
INSERT INTO {versions} (tenant, thread_id, ns_key, seq, version_key, parent_key, checkpoint_id, parent_id, ns,
                        stored_seq, hidden, needs, sources, tokens, payload, metadata, run_key, chunk, created_at)
SELECT v.tenant, %s, v.ns_key, v.seq, v.version_key, v.parent_key, v.checkpoint_id, v.parent_id, v.ns,
       v.stored_seq, v.hidden, v.needs, v.sources, v.tokens, v.payload, v.metadata, v.run_key, v.chunk, v.created_at
  FROM {versions} v
 WHERE v.tenant = %s AND v.thread_id = %s
"""

COPY_PARTS = """
INSERT INTO {parts} (tenant, thread_id, part, chunk)
SELECT p.tenant, %s, p.part, p.chunk FROM {parts} p WHERE p.tenant = %s AND p.thread_id = %s
"""

# Where the destination had writes that came before their checkpoint, those of the source win.
COPY_WRITES = """
REPLACE INTO {writes} (tenant, thread_id, version_key, task_key, idx, task_id, task_path, channel, tokens, payload,
                       created_at)
SELECT w.tenant, %s, w.version_key, w.task_key, w.idx, w.task_id, w.task_path, w.channel, w.tokens, w.payload,
       w.created_at
  FROM {writes} w
 WHERE w.tenant = %s AND w.thread_id = %s
"""

LOCK_SOURCE = """
SELECT 1 FROM {threads} t
 WHERE t.tenant = %s AND t.thread_id = %s AND (t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6)) FOR SHARE
"""


class RemovingStatements(Statements):
    """Removing checkpoints and copying threads."""

    def hide_named(self, tenant: str, thread_id: str, version_key: bytes) -> Statement:
        """Take a checkpoint out of its thread."""
        return Statement(self._text(HIDE_NAMED), (tenant, thread_id, version_key))

    def hide_runs(self, tenant: str, thread_id: str, run_keys: Sequence[bytes]) -> Statement:
        """Take the checkpoints of runs out of a thread."""
        text = self._text(HIDE_RUNS).replace("<runs>", ", ".join(["%s"] * len(run_keys)))
        return Statement(text, (tenant, *run_keys, thread_id))

    def hide_older(self, tenant: str, thread_id: str, keep: int, ns_key: bytes | None) -> Statement:
        """Take all but the newest ``keep`` of each namespace, or of one, out of a thread."""
        key: tuple[Param, ...] = (tenant, thread_id)
        text = self._text(HIDE_OLDER).replace("<namespace>", "" if ns_key is None else OF_NAMESPACE)
        return Statement(text, (*key, *(() if ns_key is None else (ns_key,)), *key, keep))

    def hide_calls(self, tenant: str, thread_id: str) -> Statement:
        """Take the calls of subgraphs out of a thread whose calling checkpoint was taken out of it."""
        return Statement(self._text(HIDE_CALLS), (tenant, thread_id))

    def hide_before(self, tenant: str, thread_id: str, age_us: int) -> Statement:
        """Take checkpoints older than an age out of a thread, but for the newest of each namespace."""
        key = (tenant, thread_id)
        return Statement(self._text(HIDE_BEFORE), (*key, *key, age_us))

    def threads_before(self, tenant: str, after: str, age_us: int, limit: int) -> Statement:
        """Ids of threads that have such checkpoints, those behind an id, in order."""
        return Statement(self._text(THREADS_BEFORE), (tenant, after, age_us, limit))

    def remove_hidden(self, tenant: str, thread_id: str, settle: Statement) -> tuple[Statement, ...]:
        """Remove what is hidden and not needed, with its writes and parts; and the thread if nothing is left.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            settle: Leaves the tokens of what is marked to be removed.
        """
        key = (tenant, thread_id)
        return (
            Statement(self._text(UNNAME_PARENTS), key),
            Statement(self._text(MARK_UNNEEDED), key * 4),
            settle,
            Statement(self._text(DELETE_WRITES), key),
            Statement(self._text(MOVE_PARTS), key * 2),
            Statement(self._text(DELETE_MARKED), key),
            Statement(self._text(DELETE_PARTS), key * 2),
            Statement(self._text(DROP_IF_EMPTY), key * 2),
        )

    def threads_with_orphans(self, tenant: str, after: str, age_us: int, limit: int) -> Statement:
        """Ids of threads that have writes older than an age without a checkpoint, those behind an id, in order."""
        return Statement(self._text(THREADS_WITH_ORPHANS), (tenant, after, age_us, limit))

    def delete_orphans(self, tenant: str, thread_id: str, age_us: int) -> Statement:
        """Remove a thread's writes older than an age that have no checkpoint."""
        return Statement(self._text(DELETE_ORPHANS), (tenant, thread_id, age_us))

    def threads_of_runs(self, tenant: str, run_keys: Sequence[bytes]) -> Statement:
        """Ids of threads that have checkpoints of runs."""
        text = self._text(THREADS_OF_RUNS).replace("<runs>", ", ".join(["%s"] * len(run_keys)))
        return Statement(text, (tenant, *run_keys))

    def copy(
        self, tenant: str, source: str, destination: str, epoch: bytes, ttl_us: int | None
    ) -> tuple[Statement, ...]:
        """Copy a thread's row; the second statement affects a row if there is one, and fails with 1062 if both are."""
        key = (tenant, source)
        return (
            Statement(self._text(LOCK_SOURCE), key),
            Statement(self._text(COPY_THREAD), (destination, epoch, ttl_us, *key)),
        )

    def copy_content(self, tenant: str, source: str, destination: str) -> tuple[Statement, ...]:
        """Copy what is in a thread whose row was copied."""
        copies = (COPY_VERSIONS, COPY_PARTS, COPY_WRITES)
        return tuple(Statement(self._text(text), (destination, tenant, source)) for text in copies)
