"""Statements that find and describe checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..statement import Param, Statement
from ..template import Statements

#: Characters of a hit's text that are read, in which a snippet is looked for.
SNIPPET_CHARACTERS = 65_536

GET_METADATA = """
SELECT c.checkpoint_id, c.metadata, c.created_at
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL AND {LIVE}
 ORDER BY c.seq DESC
 LIMIT 1
"""

GET_METADATA_NAMED = """
SELECT c.checkpoint_id, c.metadata, c.created_at
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id = %s AND {LIVE}
"""

# Uses the multi-valued index metadata_pairs, which holds only hashes of keys and values, so the caller compares the
# metadata itself. Newest first.
FIND_BY_METADATA = """
SELECT c.thread_id, c.checkpoint_id, c.metadata, c.created_at, c.seq
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = %s AND JSON_OVERLAPS(c.metadata_keys, CAST(%s AS JSON)) AND c.checkpoint_id IS NOT NULL
   AND {LIVE}<behind>
 ORDER BY c.created_at DESC, c.seq DESC, c.thread_id DESC
 LIMIT %s
"""

# Behind the last checkpoint of the page before. No checkpoint's place in this order ever changes.
BEHIND_CHECKPOINT = """
   AND c.created_at <= CAST(%s AS DATETIME(6))
   AND (c.created_at < CAST(%s AS DATETIME(6)) OR c.seq < %s OR (c.seq = %s AND c.thread_id < %s))"""

# Move the text of checkpoints that were saved since the last time into the full-text index. Relies on the index
# pending. Each row is locked by its own key, so this waits for no save in progress. The index shows only what is
# committed.
INDEX_PENDING = """
UPDATE {checkpoints} c
  JOIN (SELECT tenant, thread_id, seq FROM {checkpoints} FORCE INDEX (pending)
         WHERE unindexed = 1 LIMIT %s {locking}) AS waiting
    ON waiting.tenant = c.tenant AND waiting.thread_id = c.thread_id AND waiting.seq = c.seq
   SET c.search_text = c.pending_text, c.pending_text = NULL, c.unindexed = NULL
 WHERE c.unindexed = 1
"""

# Uses the full-text index words. MySQL's own score, and so an order by it, depends on the texts of all tenants: the
# fewer of all rows hold a word, the higher it is. Here only its sign is used, which tells whether a text holds a word;
# the weight of a word depends on how many of the tenant's own hits hold it.
#
# A hit in a row without a name counts for a named state that follows it, and so holds the text too: the recursion goes
# down along the index parents until it finds one. Rows only follow older ones; that is stated as well, so that it also
# ends where rows are damaged.
SEARCH = """
WITH found AS (
  SELECT c.thread_id, c.seq, c.created_at{flags}
    FROM {checkpoints} c
    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
   WHERE MATCH (c.search_text) AGAINST (%s IN NATURAL LANGUAGE MODE) AND c.tenant = %s AND {LIVE}{bound}
), best AS (
  SELECT found.thread_id, found.seq, found.created_at, {score} AS score
    FROM found{held}
   ORDER BY score DESC, found.created_at DESC, found.seq DESC
   LIMIT %s
)
SELECT /*+ SET_VAR(cte_max_recursion_depth = 1000000) */
       best.thread_id, heir.checkpoint_id, heir.created_at, best.score,
       LEFT(hit.search_text, {snippet})
  FROM best
  JOIN {checkpoints} hit ON hit.tenant = %s AND hit.thread_id = best.thread_id AND hit.seq = best.seq
  JOIN LATERAL (
       WITH RECURSIVE heirs (seq, checkpoint_id, created_at) AS (
         SELECT x.seq, x.checkpoint_id, x.created_at FROM {checkpoints} x
          WHERE x.tenant = hit.tenant AND x.thread_id = hit.thread_id AND x.seq = hit.seq
         UNION ALL
         SELECT k.seq, k.checkpoint_id, k.created_at
           FROM heirs
           JOIN {checkpoints} k ON k.tenant = hit.tenant AND k.thread_id = hit.thread_id AND k.parent_seq = heirs.seq
                           AND k.seq > heirs.seq AND k.continues = 1
          WHERE heirs.checkpoint_id IS NULL
       )
       SELECT checkpoint_id, created_at FROM heirs WHERE checkpoint_id IS NOT NULL ORDER BY seq LIMIT 1) AS heir
 ORDER BY best.score DESC, heir.created_at DESC, best.seq DESC
""".replace("{snippet}", str(SNIPPET_CHARACTERS))

# How many hits there are, and how many of them hold each part of the query.
COUNT_HITS = ", (SELECT COUNT(*) AS hits{counts} FROM found) AS held"

# The newest checkpoint of each of the most recent threads. It is the first row of a walk backwards along the primary
# key. The order must name all columns of that key: by seq alone, MySQL 9.7 sorts all rows of the thread.
LIST_WITH_METADATA = """
SELECT recent.thread_id, newest.checkpoint_id, newest.metadata, newest.created_at
  FROM (SELECT t.tenant, t.thread_id, t.first_seq, t.updated_at
          FROM {threads} t
         WHERE t.tenant = %s AND (t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))
         ORDER BY t.updated_at DESC, t.thread_id DESC
         LIMIT %s) AS recent
  JOIN LATERAL (SELECT c.checkpoint_id, c.metadata, c.created_at
                  FROM {checkpoints} c
                 WHERE c.tenant = recent.tenant AND c.thread_id = recent.thread_id AND c.checkpoint_id IS NOT NULL
                   AND c.seq >= recent.first_seq
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                 LIMIT 1) AS newest
 ORDER BY recent.updated_at DESC, recent.thread_id DESC
"""

# The states of several checkpoints at once: for each that is chosen, its row and those it builds on, newest first. Both
# bounds are for damaged rows: a row builds on older ones only, and on far fewer than 500.
LOAD_CHOSEN = """
WITH RECURSIVE chosen AS ({chosen}),
lineage (thread_id, chosen_seq, seq, base_seq, hops) AS (
  SELECT thread_id, seq, seq, base_seq, 0 FROM chosen
  UNION ALL
  SELECT lineage.thread_id, lineage.chosen_seq, b.seq, b.base_seq, lineage.hops + 1
    FROM lineage
    JOIN {checkpoints} b ON b.tenant = %s AND b.thread_id = lineage.thread_id AND b.seq = lineage.base_seq
                        AND b.seq < lineage.seq
   WHERE lineage.hops < 500
)
SELECT chosen.thread_id, chosen.checkpoint_id, chosen.metadata, chosen.created_at, c.seq, c.token, c.payload,
       chosen.ordered_at
  FROM chosen
  LEFT JOIN lineage ON lineage.thread_id = chosen.thread_id AND lineage.chosen_seq = chosen.seq
  LEFT JOIN {checkpoints} c ON c.tenant = %s AND c.thread_id = lineage.thread_id AND c.seq = lineage.seq
 ORDER BY chosen.place, c.seq DESC
"""

# The newest checkpoint of each of some threads, most recently saved first. A thread without any, which only damage
# leaves behind, is given without a checkpoint, so that a page with it has as many threads as were asked for.
CHOOSE_NEWEST = """
SELECT recent.thread_id, newest.*, recent.updated_at AS ordered_at,
       ROW_NUMBER() OVER (ORDER BY recent.updated_at DESC, recent.thread_id DESC) AS place
  FROM (SELECT t.tenant, t.thread_id, t.first_seq, t.updated_at
          FROM {threads} t
         WHERE t.tenant = %s AND (t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))<behind>
         ORDER BY t.updated_at DESC, t.thread_id DESC
         LIMIT %s) AS recent
  LEFT JOIN LATERAL (SELECT c.seq, c.base_seq, c.checkpoint_id, c.metadata, c.created_at
                  FROM {checkpoints} c
                 WHERE c.tenant = recent.tenant AND c.thread_id = recent.thread_id AND c.checkpoint_id IS NOT NULL
                   AND c.seq >= recent.first_seq
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                 LIMIT 1) AS newest ON TRUE
"""

# Behind the last thread of the page before. The place of a thread changes only if somebody saves to it.
BEHIND_THREAD = """
           AND t.updated_at <= CAST(%s AS DATETIME(6))
           AND (t.updated_at < CAST(%s AS DATETIME(6)) OR t.thread_id < %s)"""

# Checkpoints with one of some metadata keys, newest first, as FIND_BY_METADATA.
CHOOSE_BY_METADATA = """
SELECT found.*, found.created_at AS ordered_at,
       ROW_NUMBER() OVER (ORDER BY found.created_at DESC, found.seq DESC, found.thread_id DESC) AS place
  FROM (SELECT c.thread_id, c.seq, c.base_seq, c.checkpoint_id, c.metadata, c.created_at
          FROM {checkpoints} c
          JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
         WHERE c.tenant = %s AND JSON_OVERLAPS(c.metadata_keys, CAST(%s AS JSON)) AND c.checkpoint_id IS NOT NULL
           AND {LIVE}<behind>
         ORDER BY c.created_at DESC, c.seq DESC, c.thread_id DESC
         LIMIT %s) AS found
"""

# Of each checkpoint that was `chosen`, the nearest named one that it follows: the recursion goes up until it finds one.
# Rows only follow older ones; that is stated as well, so that it also ends where rows are damaged.
FOLLOWED = """
followed (chosen_seq, seq, parent_seq, checkpoint_id) AS (
  SELECT chosen.seq, p.seq, p.parent_seq, p.checkpoint_id
    FROM chosen
    JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = chosen.parent_seq AND p.seq < chosen.seq
  UNION ALL
  SELECT followed.chosen_seq, p.seq, p.parent_seq, p.checkpoint_id
    FROM followed
    JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = followed.parent_seq
                        AND p.seq < followed.seq
   WHERE followed.checkpoint_id IS NULL
)
"""

# The newest checkpoints of a thread, each with the one that it follows.
HISTORY = """
WITH RECURSIVE chosen AS (
  SELECT c.seq, c.checkpoint_id, c.parent_seq, c.created_at, c.payload_bytes AS size_bytes, c.metadata
    FROM {checkpoints} c FORCE INDEX (PRIMARY)
    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
   WHERE c.tenant = %s AND c.thread_id = %s AND c.checkpoint_id IS NOT NULL AND {LIVE}
   ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
   LIMIT %s
),
{FOLLOWED}
SELECT /*+ SET_VAR(cte_max_recursion_depth = 1000000) */
       chosen.checkpoint_id, followed.checkpoint_id, chosen.created_at, chosen.size_bytes, chosen.metadata
  FROM chosen
  LEFT JOIN followed ON followed.chosen_seq = chosen.seq AND followed.checkpoint_id IS NOT NULL
 ORDER BY chosen.seq DESC
""".replace("{FOLLOWED}", FOLLOWED.strip())

DISK_USAGE = """
SELECT COUNT(DISTINCT c.thread_id), COUNT(c.checkpoint_id), COUNT(*), COALESCE(SUM(c.payload_bytes), 0),
       COALESCE(SUM(LENGTH(COALESCE(c.search_text, c.pending_text))), 0), COALESCE(SUM(LENGTH(c.metadata)), 0)
  FROM {checkpoints} c
 WHERE c.tenant = %s
"""

DISK_USAGE_OF_THREAD = DISK_USAGE.rstrip() + " AND c.thread_id = %s\n"

HEALTH = "SELECT VERSION(), @@global.read_only, UTC_TIMESTAMP(6)"


class CheckpointPlace(NamedTuple):
    """The place of a checkpoint among all of a tenant's, newest first.

    Args:
        created_at: When it was saved, as text.
        seq: Its seq.
        thread_id: Its thread.
    """

    created_at: str
    seq: int
    thread_id: str


class QueryStatements(Statements):
    """Finding and describing checkpoints."""

    def get_metadata(self, tenant: str, thread_id: str, checkpoint_id: str | None) -> Statement:
        """Id, metadata and time of a checkpoint, or of the thread's newest."""
        if checkpoint_id is None:
            return Statement(self._text(GET_METADATA), (tenant, thread_id))
        return Statement(self._text(GET_METADATA_NAMED), (tenant, thread_id, checkpoint_id))

    def find_by_metadata(self, tenant: str, keys: str, limit: int, behind: CheckpointPlace | None = None) -> Statement:
        """Thread, id, metadata, time and seq of checkpoints with one of these metadata keys, newest first.

        Args:
            tenant: Whose.
            keys: The metadata keys.
            limit: At most this many.
            behind: The last checkpoint of the page before; None for the first page.
        """
        condition, params = _behind(behind)
        text = self._text(FIND_BY_METADATA.replace("<behind>", condition))
        return Statement(text, (tenant, keys, *params, limit))

    def load_newest(self, tenant: str, limit: int, behind: tuple[str, str] | None = None) -> Statement:
        """The newest checkpoint of some threads, most recently saved first.

        Of each the rows that it builds on: thread, id, metadata, time, three columns of the row, and when the thread
        was saved to. A thread without a checkpoint has one row without an id.

        Args:
            tenant: Whose.
            limit: At most this many threads.
            behind: When the last thread of the page before was saved to, and its id; None for the first page.
        """
        condition = "" if behind is None else BEHIND_THREAD
        params = () if behind is None else (behind[0], *behind)
        chosen = CHOOSE_NEWEST.strip().replace("<behind>", condition)
        return Statement(self._text(LOAD_CHOSEN.replace("{chosen}", chosen)), (tenant, *params, limit, tenant, tenant))

    def load_by_metadata(self, tenant: str, keys: str, limit: int, behind: CheckpointPlace | None = None) -> Statement:
        """As `find_by_metadata`, with the rows of each checkpoint, in the columns of `load_newest`."""
        condition, params = _behind(behind)
        chosen = CHOOSE_BY_METADATA.strip().replace("<behind>", condition)
        return Statement(
            self._text(LOAD_CHOSEN.replace("{chosen}", chosen)), (tenant, keys, *params, limit, tenant, tenant)
        )

    def index_pending(self, limit: int, *, skip_locked: bool = False) -> Statement:
        """Index the text of checkpoints that were saved since the last time, whatever their tenant.

        Args:
            limit: The most checkpoints to index.
            skip_locked: Leave out those that another session is writing to, or indexing, just now.
        """
        locking = "FOR UPDATE SKIP LOCKED" if skip_locked else ""
        return Statement(self._text(INDEX_PENDING.replace("{locking}", locking)), (limit,))

    def search(self, tenant: str, query: str, parts: Sequence[str], limit: int, bound: int | None = None) -> Statement:
        """Thread, id, time, score and the first `SNIPPET_CHARACTERS` of the text of the best hits.

        Args:
            tenant: Whose checkpoints to search.
            query: Words and phrases. A hit holds at least one of them.
            parts: Those of its words and phrases that count for the score.
            limit: The most hits to return.
            bound: The most hits to look at, which are then those that the index gives first; None for all.
        """
        places = range(len(parts) if len(parts) > 1 else 0)  # one part is held by every hit
        holds = "MATCH (c.search_text) AGAINST (%s IN NATURAL LANGUAGE MODE) > 0"
        flags = "".join(f",\n         {holds} AS holds{n}" for n in places)
        counts = "".join(f", SUM(holds{n}) AS hits{n}" for n in places)
        held = COUNT_HITS.replace("{counts}", counts) if places else ""
        score = " + ".join(f"IF(found.holds{n}, LN(1 + held.hits / held.hits{n}), 0)" for n in places) or "LN(2)"
        text = SEARCH.replace("{flags}", flags).replace("{held}", held).replace("{score}", score)
        text = text.replace("{bound}", "" if bound is None else f"\n   LIMIT {bound:d}")
        return Statement(self._text(text), (*(parts[n] for n in places), query, tenant, limit, tenant))

    def list_with_metadata(self, tenant: str, limit: int) -> Statement:
        """Thread, id, metadata and time of the newest checkpoint of recent threads."""
        return Statement(self._text(LIST_WITH_METADATA), (tenant, limit))

    def history(self, tenant: str, thread_id: str, limit: int) -> Statement:
        """Of a thread's checkpoints, newest first: id, id of the one before, time, stored bytes and metadata."""
        key = (tenant, thread_id)
        return Statement(self._text(HISTORY), (*key, limit, *key, *key))

    def disk_usage(self, tenant: str, thread_id: str | None) -> Statement:
        """Threads, checkpoints, rows, and bytes of payloads, of search text and of metadata."""
        if thread_id is None:
            return Statement(self._text(DISK_USAGE), (tenant,))
        return Statement(self._text(DISK_USAGE_OF_THREAD), (tenant, thread_id))

    def health(self) -> Statement:
        """Version, whether the server is read-only, and its time."""
        return Statement(HEALTH)


def _behind(place: CheckpointPlace | None) -> tuple[str, tuple[Param, ...]]:
    """The condition that a checkpoint is behind a place, and its parameters."""
    if place is None:
        return "", ()
    return BEHIND_CHECKPOINT, (place.created_at, place.created_at, place.seq, place.seq, place.thread_id)
