"""Pieces of SQL that statements about checkpoints share; see `Statements`."""

from __future__ import annotations

from collections.abc import Mapping

from ..checksums import checksum_sql

#: Characters of a hit's text that a search returns.
SNIPPET_CHARACTERS = 65_536

# An unnamed row that no state needs: neither its payload nor its text.
_HOLLOW = "{0}.checkpoint_id IS NULL AND {0}.base_seq IS NULL AND {0}.search_text IS NULL AND {0}.pending_text IS NULL"

# The checksum of a row is that of its content, combined by XOR with that of its place, so that the server can replace
# either without reading the other. What was wrong before stays wrong: see `SOUND`.
_CONTENT = checksum_sql((), ("{0}.checkpoint_id", "{0}.metadata", "{0}.token"))
_PLACE = "CRC32(CONCAT_WS(0x00, {0}.tenant, {0}.thread_id, {0}.seq, {0}.parent_seq))"

# Whether a row is as it was written: its id, its metadata, its token, its thread, its seq and its parent.
_SOUND = f"{{0}}.checksum = {_CONTENT} ^ {_PLACE}"

# Replacing the content of a row in its checksum by that of an unnamed one.
_UNNAMED_CHECKSUM = f"{{0}}.checksum = {{0}}.checksum ^ {_CONTENT} ^ CRC32(CONCAT_WS(0x00, '', '', CRC32({{0}}.token)))"

# Taking the name from a row. Assignments run left to right, so the checksum is the first. Of the text,
# only what the states that follow share is kept: what is before the separator.
_UNNAMED = f"""{_UNNAMED_CHECKSUM},
       {{0}}.checkpoint_id = NULL, {{0}}.metadata = NULL, {{0}}.metadata_keys = NULL, {{0}}.oldest_at = NULL,
       {{0}}.search_text = NULLIF(SUBSTRING_INDEX({{0}}.search_text, CHAR(30 USING utf8mb4), 1), ''),
       {{0}}.pending_text = NULLIF(SUBSTRING_INDEX({{0}}.pending_text, CHAR(30 USING utf8mb4), 1), '')"""


def _for_aliases(name: str, piece: str) -> Mapping[str, str]:
    """A piece for each alias of a table with which a template may use it, as in ``{HOLLOW.x}``."""
    return {f"{name}.{alias}": piece.replace("{0}", alias) for alias in ("c", "c0", "k", "p", "x")}


PIECES = {
    # A thread that has not expired, for the alias t.
    "LIVE_THREAD": "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))",
    # The same, and a row of it that an expiry did not leave behind, for the aliases t and c.
    "LIVE_ROW": "{LIVE_THREAD} AND c.seq >= t.first_seq",
    # A row so young that a repeated save might make it again: whoever removes it records its token. For the alias c.
    "YOUNG": "c.created_at > UTC_TIMESTAMP(6) - INTERVAL {RETENTION_S} SECOND",
    # When a thread expired that has a row for a lease only.
    "LEASE_ONLY": "'1970-01-01'",
    # A thread on which no turn is held.
    "IDLE": "(turn_until IS NULL OR turn_until <= UTC_TIMESTAMP(6))",
    **_for_aliases("HOLLOW", _HOLLOW),
    **_for_aliases("UNNAMED", _UNNAMED),
    **_for_aliases("PLACE", _PLACE),
    **_for_aliases("SOUND", _SOUND),
    # The place of a row that is inserted by VALUES: the columns have got their values by then.
    "PLACE": "CRC32(CONCAT_WS(0x00, tenant, thread_id, seq, parent_seq))",
    # A thread in which there may be a checkpoint that was saved since a time. A save takes the time of the thread's row
    # when it begins to wait for the thread's lock, and that of the checkpoint's when it has it.
    "SAVED_SINCE": "(%s IS NULL OR t.updated_at >= CAST(%s AS DATETIME(6)) - INTERVAL 1 HOUR)",
    # What a row takes, for the alias c.
    "SIZE": "c.payload_bytes + COALESCE(LENGTH(c.metadata), 0)"
    " + COALESCE(LENGTH(c.search_text), LENGTH(c.pending_text), 0)",
    "SNIPPET_CHARACTERS": str(SNIPPET_CHARACTERS),
    # Of each checkpoint that was `chosen`, the nearest named one that it follows: the recursion goes up until it finds
    # one. Rows only follow older ones; that is stated as well, so that it also ends where rows are damaged; and it ends
    # at an unnamed row that does not fit its checksum.
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
    "PLACES": """places AS (
  SELECT j.place, j.thread_id COLLATE utf8mb4_0900_bin AS thread_id, j.seq
    FROM JSON_TABLE(%s, '$[*]' COLUMNS (place FOR ORDINALITY,
                                        thread_id VARCHAR(512) CHARACTER SET utf8mb4 PATH '$[0]',
                                        seq BIGINT UNSIGNED PATH '$[1]')) AS j
)""",
    # If there are more candidates than wanted, these threads are not examined.
    "OF_CANDIDATES": """step AS (
  SELECT r.thread_id, r.updated_at
    FROM (SELECT DISTINCT candidates.thread_id FROM candidates) AS found
    STRAIGHT_JOIN {threads} r ON r.tenant = %s AND r.thread_id = found.thread_id
   WHERE (SELECT COUNT(*) FROM candidates) <= %s{within}
)""",
}
