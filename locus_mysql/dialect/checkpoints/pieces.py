"""Pieces of SQL that statements about checkpoints share; see `Statements`."""

from __future__ import annotations

from collections.abc import Mapping

from ..words import pieces_of

#: Characters of a hit's text that a search returns.
SNIPPET_CHARACTERS = 65_536

# An unnamed row of which no state needs the payload or the text.
_HOLLOW = "{0}.checkpoint_id IS NULL AND {0}.base_seq IS NULL AND {0}.search_text IS NULL AND {0}.pending_text IS NULL"

# Assignments that remove the id of a row, whose seal is not checked from then on. Of the text, only the part before the
# separator is kept, which the states that follow share.
_UNNAMED = """{0}.checkpoint_id = NULL, {0}.metadata = NULL, {0}.metadata_keys = NULL, {0}.oldest_at = NULL,
       {0}.search_text = NULLIF(SUBSTRING_INDEX({0}.search_text, CHAR(30 USING utf8mb4), 1), ''),
       {0}.pending_text = NULLIF(SUBSTRING_INDEX({0}.pending_text, CHAR(30 USING utf8mb4), 1), '')"""


def _for_aliases(name: str, piece: str) -> Mapping[str, str]:
    """Return the piece for each alias that templates use, as in ``{HOLLOW.x}``."""
    return {f"{name}.{alias}": piece.replace("{0}", alias) for alias in ("c", "c0", "k", "p", "x")}


PIECES = {
    **pieces_of("c", "checkpoints"),
    # A thread that has not expired, for the alias t.
    "LIVE_THREAD": "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))",
    # The same, and a row that was saved since the thread last expired, for the aliases t and c.
    "LIVE_ROW": "{LIVE_THREAD} AND c.seq >= t.first_seq",
    # A row so young that a repeated save might insert it again, so a statement that removes it must record its token.
    # For the alias c.
    "YOUNG": "c.created_at > UTC_TIMESTAMP(6) - INTERVAL {RETENTION_S} SECOND",
    # The `expires_at` of a thread that has a row for a lease only.
    "LEASE_ONLY": "'1970-01-01'",
    # A thread without a current turn.
    "IDLE": "(turn_until IS NULL OR turn_until <= UTC_TIMESTAMP(6))",
    **_for_aliases("HOLLOW", _HOLLOW),
    **_for_aliases("UNNAMED", _UNNAMED),
    # A thread that may have a checkpoint saved since a time. A save reads the thread's time when it begins to wait for
    # the thread's lock, and the checkpoint's time when it has the lock.
    "SAVED_SINCE": "(%s IS NULL OR t.updated_at >= CAST(%s AS DATETIME(6)) - INTERVAL 1 HOUR)",
    # The bytes of a row, for the alias c.
    "SIZE": "c.payload_bytes + COALESCE(LENGTH(c.metadata), 0)"
    " + COALESCE(LENGTH(c.search_text), LENGTH(c.pending_text), 0)",
    "SNIPPET_CHARACTERS": str(SNIPPET_CHARACTERS),
    # For each row of `chosen`, the nearest named row among its parents: the recursion goes up until it finds one. It
    # also ends where rows are damaged, as it only goes to rows with a lower seq.
    "FOLLOWED": """followed (chosen_seq, seq, parent_seq, checkpoint_id) AS (
  SELECT chosen.seq, p.seq, p.parent_seq, p.checkpoint_id
    FROM chosen
    JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = chosen.parent_seq AND p.seq < chosen.seq
  UNION ALL
  SELECT followed.chosen_seq, p.seq, p.parent_seq, p.checkpoint_id
    FROM followed
    JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = followed.parent_seq
                        AND p.seq < followed.seq
   WHERE followed.checkpoint_id IS NULL
)""",
    # Places in threads, from JSON: an array of pairs of a thread and a seq.
    "POINTS": """points AS (
  SELECT j.number, j.thread_id COLLATE utf8mb4_0900_bin AS thread_id, j.seq
    FROM JSON_TABLE(%s, '$[*]' COLUMNS (number FOR ORDINALITY,
                                        thread_id VARCHAR(512) CHARACTER SET utf8mb4 PATH '$[0]',
                                        seq BIGINT UNSIGNED PATH '$[1]')) AS j
)""",
    # The threads of the candidates; none if there are too many candidates.
    "OF_CANDIDATES": """step AS (
  SELECT r.thread_id, r.updated_at
    FROM (SELECT DISTINCT candidates.thread_id FROM candidates) AS found
    STRAIGHT_JOIN {threads} r FORCE INDEX (PRIMARY) ON r.tenant = %s AND r.thread_id = found.thread_id
   WHERE (SELECT COUNT(*) FROM candidates) <= %s{within}
)""",
}
