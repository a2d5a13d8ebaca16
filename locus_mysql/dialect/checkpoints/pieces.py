"""Pieces of SQL that statements about checkpoints share; see `Statements`."""

from __future__ import annotations

from collections.abc import Mapping

from ..checksums import checksum_sql
from ..words import pieces_of

#: Characters of a hit's text that a search returns.
SNIPPET_CHARACTERS = 65_536

# An unnamed row of which no state needs the payload or the text.
_HOLLOW = "{0}.checkpoint_id IS NULL AND {0}.base_seq IS NULL AND {0}.search_text IS NULL AND {0}.pending_text IS NULL"

# The checksum of a row is the XOR of those of its content and of its key, so that the server can replace either
# without reading the other. A wrong checksum stays wrong when a part is replaced: see `SOUND`.
_CONTENT = checksum_sql((), ("{0}.checkpoint_id", "{0}.metadata", "{0}.token"))
_PLACE = "CRC32(CONCAT_WS(0x00, {0}.tenant, {0}.thread_id, {0}.seq, {0}.parent_seq))"

# Whether a row is as it was written: its id, its metadata, its token, its thread, its seq and its parent.
_SOUND = f"{{0}}.checksum = {_CONTENT} ^ {_PLACE}"

# Assignment that replaces the content in a row's checksum by that of an unnamed row.
_UNNAMED_CHECKSUM = f"{{0}}.checksum = {{0}}.checksum ^ {_CONTENT} ^ CRC32(CONCAT_WS(0x00, '', '', CRC32({{0}}.token)))"

# Assignments that remove the id of a row. They run left to right, so the checksum comes first. Of the text, only the
# part before the separator is kept, which the states that follow share.
_UNNAMED = f"""{_UNNAMED_CHECKSUM},
       {{0}}.checkpoint_id = NULL, {{0}}.metadata = NULL, {{0}}.metadata_keys = NULL, {{0}}.oldest_at = NULL,
       {{0}}.search_text = NULLIF(SUBSTRING_INDEX({{0}}.search_text, CHAR(30 USING utf8mb4), 1), ''),
       {{0}}.pending_text = NULLIF(SUBSTRING_INDEX({{0}}.pending_text, CHAR(30 USING utf8mb4), 1), '')"""


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
    **_for_aliases("PLACE", _PLACE),
    **_for_aliases("SOUND", _SOUND),
    # The key of a row in an INSERT … VALUES, where the columns already have their values.
    "PLACE": "CRC32(CONCAT_WS(0x00, tenant, thread_id, seq, parent_seq))",
    # A thread that may have a checkpoint saved since a time. A save reads the thread's time when it begins to wait for
    # the thread's lock, and the checkpoint's time when it has the lock.
    "SAVED_SINCE": "(%s IS NULL OR t.updated_at >= CAST(%s AS DATETIME(6)) - INTERVAL 1 HOUR)",
    # The bytes of a row, for the alias c.
    "SIZE": "c.payload_bytes + COALESCE(LENGTH(c.metadata), 0)"
    " + COALESCE(LENGTH(c.search_text), LENGTH(c.pending_text), 0)",
    "SNIPPET_CHARACTERS": str(SNIPPET_CHARACTERS),
    # For each row of `chosen`, the nearest named row among its parents: the recursion goes up until it finds one. It
    # also ends where rows are damaged: it only goes to rows with a lower seq, and stops at an unnamed row whose
    # checksum is wrong.
    "FOLLOWED": """followed (chosen_seq, seq, parent_seq, checkpoint_id, sound) AS (
  SELECT chosen.seq, p.seq, p.parent_seq, p.checkpoint_id, p.checkpoint_id IS NOT NULL OR {SOUND.p}
    FROM chosen
    JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = chosen.parent_seq AND p.seq < chosen.seq
  UNION ALL
  SELECT followed.chosen_seq, p.seq, p.parent_seq, p.checkpoint_id, p.checkpoint_id IS NOT NULL OR {SOUND.p}
    FROM followed
    JOIN {checkpoints} p ON p.tenant = %s AND p.thread_id = %s AND p.seq = followed.parent_seq
                        AND p.seq < followed.seq
   WHERE followed.checkpoint_id IS NULL AND followed.sound
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
