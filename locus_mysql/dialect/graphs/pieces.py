"""Pieces of SQL that statements about graphs share; see `Statements`."""

from __future__ import annotations

from .new_rows import APART, OWN_PARTS

#: For how many seconds after a save that locked its thread's row others may only share that lock. Long enough that few
#: of a turn's saves have to lock it; short, as who looks for the threads saved to last looks that much further.
LAG_S = 60

PIECES = {
    "APART": str(APART),
    "OWN_PARTS": str(OWN_PARTS),
    "LAG_S": str(LAG_S),
    # When a thread has expired whose row was only made to be locked. No committed row has this time.
    "ONLY_LOCKED": "'1970-01-01'",
    # A thread that has not expired, for the alias t.
    "LIVE": "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))",
    # A thread to which a save may add without changing its row: it never expires, and its time is not too old.
    "CURRENT": "t.expires_at IS NULL AND t.updated_at > UTC_TIMESTAMP(6) - INTERVAL {LAG_S} SECOND",
    # The checkpoint that a save builds on is there, as the save knows it. A server that lost its newest commits may
    # have drawn the numbers of its parts again, for other content; but the token is random. Relies on the index named.
    "BASE_IS_THERE": """
   AND EXISTS (SELECT 1 FROM {versions} b
                WHERE b.tenant = %s AND b.thread_id = %s AND b.version_key = %s AND LOCATE(%s, b.tokens) > 0)""",
    # When a thread was saved to last, for the alias t. Relies on the index newest.
    "SAVED_AT": """GREATEST(t.updated_at, COALESCE((SELECT v.created_at
                                     FROM {versions} v
                                    WHERE v.tenant = t.tenant AND v.thread_id = t.thread_id
                                    ORDER BY v.seq DESC LIMIT 1), t.updated_at))""",
    # The time by which pages of threads are ordered. It lies between updated_at and LAG_S later by definition, also
    # where a server's clock went backwards, so no thread falls between two pages.
    "ORDERED_AT": "LEAST({SAVED_AT}, t.updated_at + INTERVAL {LAG_S} SECOND)",
    # The rows k from which a statement that loads checkpoints begins.
    "KEYS": "v.thread_id, v.ns_key, v.seq, v.version_key, v.parent_key, COALESCE(v.stored_seq, v.seq) AS stored_seq, "
    "IF(v.unlinked, 0, v.needs) AS needs, v.sources, t.epoch",
    # The number of a part that the sources of a row k name, and the seq of the row that holds it, if one does.
    "PART": "IF(s.part < {OWN_PARTS}, k.stored_seq * {OWN_PARTS} + s.part, s.part)",
    "ROW": "IF(s.part < {OWN_PARTS}, k.stored_seq, s.part DIV {OWN_PARTS})",
    "SOURCES": "JSON_TABLE(k.sources, '$[*]' COLUMNS (part BIGINT UNSIGNED PATH '$')) s",
    # Fails with error 3141 for the row of a call's token, in the ON DUPLICATE KEY UPDATE of writes.
    "ONCE": "idx = {writes}.idx + JSON_LENGTH(IF({writes}.tenant = '', '', '[]'))",
    # What a checkpoint's row takes, for the alias v, and what the parts take that it wrote and that stand apart.
    "ROW_BYTES": "LENGTH(v.payload) + COALESCE(LENGTH(v.chunk), 0) + COALESCE(LENGTH(v.metadata), 0)",
    "PARTS_OF_ROW": """IF(v.stored_seq IS NULL, 0,
                  COALESCE((SELECT SUM(LENGTH(p.chunk))
                              FROM {parts} p
                             WHERE p.tenant = v.tenant AND p.thread_id = v.thread_id
                               AND p.part >= v.stored_seq * {OWN_PARTS}
                               AND p.part < (v.stored_seq + 1) * {OWN_PARTS}), 0))""",
    # One thread of some.
    "SAMPLED": "MOD(CRC32(t.thread_id), %s) = 0 AND {LIVE}",
    # Checkpoints v, and each of their parts s as it is stored, in a row p or in a checkpoint's row o. A row whose
    # stored_seq is NULL holds its part itself. Where neither exists, damage removed the part.
    "WITH_PARTS": """{versions} v
  JOIN JSON_TABLE(v.sources, '$[*]' COLUMNS (part BIGINT UNSIGNED PATH '$')) s
  LEFT JOIN {parts} p ON p.tenant = v.tenant AND p.thread_id = v.thread_id
                     AND p.part = IF(s.part < {OWN_PARTS}, COALESCE(v.stored_seq, v.seq) * {OWN_PARTS} + s.part, s.part)
  LEFT JOIN {versions} o ON o.tenant = v.tenant AND o.thread_id = v.thread_id AND o.ns_key = v.ns_key
                        AND o.seq = IF(s.part < {OWN_PARTS}, COALESCE(v.stored_seq, v.seq), s.part DIV {OWN_PARTS})
                        AND o.stored_seq IS NULL""",
    # The numbers of the parts that the rows of a thread need which stay.
    "USED": """
       (SELECT DISTINCT IF(s.part < {OWN_PARTS}, COALESCE(v.stored_seq, v.seq) * {OWN_PARTS} + s.part, s.part) AS part
          FROM {versions} v
          JOIN JSON_TABLE(v.sources, '$[*]' COLUMNS (part BIGINT UNSIGNED PATH '$')) s
         WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden < 2) AS used""",
    # Only into the copy that was just made, which has this epoch.
    "COPIED": """
  JOIN {threads} d ON d.tenant = %s AND d.thread_id = %s AND d.epoch = %s
""",
}
