"""Statements that find and describe checkpoints, and count threads. They only read, but for `INDEX_PENDING`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from ....dialect.sql import SQL, Select
from ....dialect.statement import Query
from ....dialect.words import WordSearch
from .tables import SNIPPET_CHARACTERS, CheckpointDialect

# Single threads and checkpoints


class Exists(NamedTuple):
    """A checkpoint, or a thread, that exists."""

    one: int


THREAD_EXISTS = Select("SELECT 1 FROM {threads} t WHERE {KEY.t} AND {LIVE_THREAD}", Exists)

CHECKPOINT_EXISTS = Select(
    """
SELECT 1
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE {KEY.c} AND c.checkpoint_id = :checkpoint_id AND {LIVE_ROW}
""",
    Exists,
)


class ListedId(NamedTuple):
    """The id of a checkpoint."""

    checkpoint_id: str


#: Ids of a thread's checkpoints, newest first.
LIST_IDS = Select(
    """
SELECT c.checkpoint_id
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE {KEY.c} AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}
 ORDER BY c.seq DESC
 LIMIT :limit
""",
    ListedId,
)


class MetadataRow(NamedTuple):
    """A checkpoint without its state; ``seal`` covers its id, token and metadata."""

    checkpoint_id: str
    metadata: str | None
    created_at: datetime
    token: bytes
    seal: int


#: A checkpoint of a thread, or the newest; the piece is that of `loading.OF_NAMED` or `loading.OF_NEWEST`.
GET_METADATA = Select(
    """
SELECT c.checkpoint_id, c.metadata, c.created_at, c.token, c.seal
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE {KEY.c} AND {which} AND {LIVE_ROW}
 ORDER BY c.seq DESC
 LIMIT 1
""",
    MetadataRow,
)


#: Checkpoints of a thread, newest first, each with the nearest named one that it follows. The pieces choose them, name
#: the index, and say what their size is.
CHOSEN = """WITH RECURSIVE chosen AS (
  SELECT c.seq, c.base_seq, c.checkpoint_id, c.parent_seq, c.created_at, {size} AS size_bytes, c.metadata,
         c.token, c.seal
    FROM {checkpoints} c{hint}
    JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
   WHERE {KEY.c} AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}{which}
   ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
   LIMIT :limit
),
{FOLLOWED}"""
NEWEST_FIRST = {"which": "", "hint": " FORCE INDEX (PRIMARY)", "size": "c.payload_bytes"}


class HistoryRow(NamedTuple):
    """A checkpoint in the history of its thread."""

    seq: int
    checkpoint_id: str
    parent_id: str | None
    created_at: datetime
    size_bytes: int
    metadata: str | None
    token: bytes
    seal: int


#: The checkpoints of a thread, each with the one that it follows; the pieces are those of `CHOSEN`.
HISTORY = Select(
    f"""{CHOSEN}
SELECT chosen.seq, chosen.checkpoint_id, followed.checkpoint_id, chosen.created_at, chosen.size_bytes, chosen.metadata,
       chosen.token, chosen.seal
  FROM chosen
  LEFT JOIN followed ON followed.chosen_seq = chosen.seq AND followed.checkpoint_id IS NOT NULL
 ORDER BY chosen.seq DESC
""",
    HistoryRow,
)

# Checkpoints by their metadata


class FoundRow(NamedTuple):
    """A checkpoint of any thread without its state."""

    thread_id: str
    checkpoint_id: str
    metadata: str | None
    created_at: datetime
    token: bytes
    seal: int
    seq: int


#: Uses the multi-valued index metadata_pairs, which holds only hashes of keys and values, so the caller compares the
#: metadata itself. Newest first.
FIND_BY_METADATA = Select(
    """
SELECT c.thread_id, c.checkpoint_id, c.metadata, c.created_at, c.token, c.seal, c.seq
  FROM {checkpoints} c
  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
 WHERE c.tenant = :tenant AND JSON_OVERLAPS(c.metadata_keys, CAST(:keys AS JSON)) AND c.checkpoint_id IS NOT NULL
   AND {LIVE_ROW}{after}
 ORDER BY c.created_at DESC, c.seq DESC, c.thread_id DESC
 LIMIT :limit
""",
    FoundRow,
)

#: After the last checkpoint of the previous page: the fields of a `CheckpointPosition`. A checkpoint's position in this
#: order never changes.
AFTER_CHECKPOINT = """
   AND c.created_at <= CAST(:saved_at AS DATETIME(6))
   AND (c.created_at < CAST(:saved_at AS DATETIME(6)) OR c.seq < :seq OR (c.seq = :seq AND c.thread_id < :thread_id))"""


class CheckpointPosition(NamedTuple):
    """The position of a checkpoint among all of a tenant's, newest first.

    Args:
        saved_at: When it was saved, as text.
        seq: Its seq.
        thread_id: Its thread.
    """

    saved_at: str
    seq: int
    thread_id: str


# Checkpoints with their states


class ChosenRow(NamedTuple):
    """A chosen checkpoint, and one of the rows that it builds on. A thread without checkpoints has only its id."""

    thread_id: str
    checkpoint_id: str | None
    metadata: str | None
    created_at: datetime | None
    seal: int | None
    seq: int | None
    token: bytes | None
    payload: bytes | None
    ordered_at: datetime


def _load_chosen(chosen: str) -> Select[ChosenRow]:
    """Return a statement that loads several checkpoints: each one's row and those that it builds on, newest first.

    Both bounds are for damaged rows: a row builds on older ones only, and on far fewer than 500.
    """
    return Select(
        f"""
WITH RECURSIVE chosen AS ({chosen}),
lineage (thread_id, chosen_seq, seq, base_seq, hops) AS (
  SELECT thread_id, seq, seq, base_seq, 0 FROM chosen
  UNION ALL
  SELECT lineage.thread_id, lineage.chosen_seq, b.seq, b.base_seq, lineage.hops + 1
    FROM lineage
    JOIN {{checkpoints}} b ON b.tenant = :tenant AND b.thread_id = lineage.thread_id AND b.seq = lineage.base_seq
                        AND b.seq < lineage.seq
   WHERE lineage.hops < 500
)
SELECT chosen.thread_id, chosen.checkpoint_id, chosen.metadata, chosen.created_at, chosen.seal,
       c.seq, c.token, c.payload, chosen.ordered_at
  FROM chosen
  LEFT JOIN lineage ON lineage.thread_id = chosen.thread_id AND lineage.chosen_seq = chosen.seq
  LEFT JOIN {{checkpoints}} c ON c.tenant = :tenant AND c.thread_id = lineage.thread_id AND c.seq = lineage.seq
 ORDER BY chosen.row_no, c.seq DESC
""",
        ChosenRow,
    )


#: The newest checkpoint of each of some threads, most recently saved first. A thread without checkpoints, which only
#: damage can cause, is returned without one, so that the page has as many threads as requested.
LOAD_NEWEST_OF_EACH = _load_chosen("""
SELECT recent.thread_id, newest.*, recent.updated_at AS ordered_at,
       ROW_NUMBER() OVER (ORDER BY recent.updated_at DESC, recent.thread_id DESC) AS row_no
  FROM (SELECT t.tenant, t.thread_id, t.first_seq, t.updated_at
          FROM {threads} t
         WHERE t.tenant = :tenant AND {LIVE_THREAD}{after}
         ORDER BY t.updated_at DESC, t.thread_id DESC
         LIMIT :limit) AS recent
  LEFT JOIN LATERAL (SELECT c.seq, c.base_seq, c.checkpoint_id, c.metadata, c.created_at, c.seal
                  FROM {checkpoints} c
                 WHERE c.tenant = recent.tenant AND c.thread_id = recent.thread_id AND c.checkpoint_id IS NOT NULL
                   AND c.seq >= recent.first_seq
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                 LIMIT 1) AS newest ON TRUE
""")

#: After the last thread of the previous page. A thread's position changes only when it is saved to.
AFTER_THREAD = """
           AND t.updated_at <= CAST(:saved_at AS DATETIME(6))
           AND (t.updated_at < CAST(:saved_at AS DATETIME(6)) OR t.thread_id < :thread_id)"""

#: Checkpoints with one of some metadata keys, newest first, as `FIND_BY_METADATA`.
LOAD_BY_METADATA = _load_chosen("""
SELECT tagged.*, tagged.created_at AS ordered_at,
       ROW_NUMBER() OVER (ORDER BY tagged.created_at DESC, tagged.seq DESC, tagged.thread_id DESC) AS row_no
  FROM (SELECT c.thread_id, c.seq, c.base_seq, c.checkpoint_id, c.metadata, c.created_at, c.seal
          FROM {checkpoints} c
          JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
         WHERE c.tenant = :tenant AND JSON_OVERLAPS(c.metadata_keys, CAST(:keys AS JSON))
           AND c.checkpoint_id IS NOT NULL AND {LIVE_ROW}{after}
         ORDER BY c.created_at DESC, c.seq DESC, c.thread_id DESC
         LIMIT :limit) AS tagged
""")


#: The newest checkpoint of each of the most recent threads. It is the first row of a walk backwards along the primary
#: key. The order must name all columns of that key: by seq alone, MySQL 9.7 sorts all rows of the thread.
LIST_WITH_METADATA = Select(
    """
SELECT recent.thread_id, newest.checkpoint_id, newest.metadata, newest.created_at, newest.token,
       newest.seal, newest.seq
  FROM (SELECT t.tenant, t.thread_id, t.first_seq, t.updated_at
          FROM {threads} t
         WHERE t.tenant = :tenant AND {LIVE_THREAD}
         ORDER BY t.updated_at DESC, t.thread_id DESC
         LIMIT :limit) AS recent
  JOIN LATERAL (SELECT c.checkpoint_id, c.metadata, c.created_at, c.token, c.seal, c.seq
                  FROM {checkpoints} c
                 WHERE c.tenant = recent.tenant AND c.thread_id = recent.thread_id AND c.checkpoint_id IS NOT NULL
                   AND c.seq >= recent.first_seq
                 ORDER BY c.tenant DESC, c.thread_id DESC, c.seq DESC
                 LIMIT 1) AS newest
 ORDER BY recent.updated_at DESC, recent.thread_id DESC
""",
    FoundRow,
)

# Search by words

#: Moves the text of new checkpoints of all tenants into the full-text index. The piece is `SKIP_LOCKED`, to skip those
#: that another session is writing or indexing, or empty. Relies on the index pending. Each row is locked by its own
#: key, so this waits for no save in progress. A full-text search finds committed rows only.
INDEX_PENDING = SQL("""
UPDATE {checkpoints} c
  JOIN (SELECT tenant, thread_id, seq FROM {checkpoints} FORCE INDEX (pending)
         WHERE unindexed = 1 LIMIT :limit {locking}) AS waiting
    ON waiting.tenant = c.tenant AND waiting.thread_id = c.thread_id AND waiting.seq = c.seq
   SET c.search_text = c.pending_text, c.pending_text = NULL, c.unindexed = NULL
 WHERE c.unindexed = 1
""")
SKIP_LOCKED = {"locking": "FOR UPDATE SKIP LOCKED"}
WAITING_FOR_LOCKS = {"locking": ""}

#: The maximum number of hits that a search of an inspector examines, and of rows that wait for the index.
BOUND, WAITING_ROWS = 5_000, 2_000


class HitRow(NamedTuple):
    """A text that matches a search, and the checkpoint that it belongs to."""

    thread_id: str
    checkpoint_id: str
    created_at: datetime
    score: float | Decimal
    text: str


# Uses the full-text index: see `words`. MySQL's own score depends on the texts of all tenants: the fewer of all rows
# contain a word, the higher it is.
#
# A hit in an unnamed row counts for a named state that follows it and so contains the text, too: the recursion goes
# down along the index parents until it finds one. It also ends where rows are damaged, as it only goes to rows with a
# higher seq.
_SEARCH = Select(
    f"""
WITH found AS (
  (SELECT c.thread_id, c.seq, c.created_at{{flags}}
     FROM {{checkpoints}} c
     JOIN {{threads}} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
    WHERE {{indexed}} AND c.tenant = :tenant AND {{LIVE_ROW}}{{having}}{{bound}}){{waiting}}
), best AS (
  SELECT found.thread_id, found.seq, found.created_at, {{score}} AS score
    FROM found{{weights}}
   ORDER BY score DESC, found.created_at DESC, found.seq DESC
   LIMIT :limit
)
SELECT best.thread_id, heir.checkpoint_id, heir.created_at, best.score,
       LEFT(COALESCE(hit.search_text, hit.pending_text), {SNIPPET_CHARACTERS})
  FROM best
  JOIN {{checkpoints}} hit ON hit.tenant = :tenant AND hit.thread_id = best.thread_id AND hit.seq = best.seq
  JOIN LATERAL (
       WITH RECURSIVE heirs (seq, checkpoint_id, created_at) AS (
         SELECT x.seq, x.checkpoint_id, x.created_at FROM {{checkpoints}} x
          WHERE x.tenant = hit.tenant AND x.thread_id = hit.thread_id AND x.seq = hit.seq
         UNION ALL
         SELECT k.seq, k.checkpoint_id, k.created_at
           FROM heirs
           JOIN {{checkpoints}} k ON k.tenant = hit.tenant AND k.thread_id = hit.thread_id AND k.parent_seq = heirs.seq
                           AND k.seq > heirs.seq AND k.continues = 1
          WHERE heirs.checkpoint_id IS NULL
       )
       SELECT checkpoint_id, created_at FROM heirs WHERE checkpoint_id IS NOT NULL ORDER BY seq LIMIT 1) AS heir
 ORDER BY best.score DESC, heir.created_at DESC, best.seq DESC
""",
    HitRow,
)

# Text that is not in the full-text index yet, found by the index pending. There is little, as writers move it
# regularly; an inspector may not.
_WAITING = f"""
  UNION ALL
  (SELECT c.thread_id, c.seq, c.created_at{{pending_flags}}
     FROM (SELECT tenant, thread_id, seq FROM {{checkpoints}} FORCE INDEX (pending)
            WHERE unindexed = 1 LIMIT {WAITING_ROWS}) AS w
     JOIN {{checkpoints}} c ON c.tenant = w.tenant AND c.thread_id = w.thread_id AND c.seq = w.seq
     JOIN {{threads}} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id
    WHERE {{pending}} AND c.tenant = :tenant AND c.unindexed = 1 AND {{LIVE_ROW}})"""


def search(
    sql: CheckpointDialect, tenant: str, parts: Sequence[str], limit: int, *, inspects: bool = False
) -> Query[HitRow]:
    """Return the best hits, with the first `SNIPPET_CHARACTERS` of their texts.

    Args:
        sql: The tables.
        tenant: The tenant whose checkpoints are searched.
        parts: Words and phrases. A hit holds at least one of them.
        limit: The maximum number of hits to return.
        inspects: Whether to examine at most `BOUND` hits, the first ones of the index, and texts not yet indexed.
    """
    words = WordSearch(tenant, parts, sql.search_parser, "c")
    bound, waiting = (f" LIMIT {BOUND}", _WAITING) if inspects else ("", "")
    pieces = {**words.pieces, "bound": bound, "waiting": waiting}
    return _SEARCH(sql, pieces=pieces, tenant=tenant, limit=limit, **words.values)


# Sizes and numbers


class UsageRow(NamedTuple):
    """Disk usage of checkpoints."""

    threads: int
    checkpoints: int
    rows: int
    payload_bytes: int | Decimal
    search_bytes: int | Decimal
    metadata_bytes: int | Decimal


_DISK_USAGE = """
SELECT COUNT(DISTINCT c.thread_id), COUNT(c.checkpoint_id), COUNT(*), COALESCE(SUM(c.payload_bytes), 0),
       COALESCE(SUM(LENGTH(COALESCE(c.search_text, c.pending_text))), 0), COALESCE(SUM(LENGTH(c.metadata)), 0)
  FROM {checkpoints} c
 WHERE """
DISK_USAGE = Select(f"{_DISK_USAGE}c.tenant = :tenant", UsageRow)
DISK_USAGE_OF_THREAD = Select(f"{_DISK_USAGE}{{KEY.c}}", UsageRow)
