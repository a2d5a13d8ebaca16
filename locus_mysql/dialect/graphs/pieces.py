"""Pieces of SQL that statements about graphs share; see `Statements`."""

from __future__ import annotations

from .new_rows import APART, OWN_PARTS

#: Seconds after a save that locked its thread's row exclusively, during which other saves need a shared lock only.
#: Those do not update the row, so its `updated_at` may be this much too old. A longer time lets more saves share the
#: lock; a shorter one lets lists of the most recently saved threads read fewer rows.
LAG_S = 60

PIECES = {
    "APART": str(APART),
    "OWN_PARTS": str(OWN_PARTS),
    "LAG_S": str(LAG_S),
    # The `expires_at` of a row that was inserted only to lock it. No committed row has it.
    "ONLY_LOCKED": "'1970-01-01'",
    # A thread that has not expired, for the alias t.
    "LIVE_THREAD": "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))",
    # A thread to which a save may add without updating the thread's row: it never expires, and its `updated_at` is
    # recent enough.
    "CURRENT": "t.expires_at IS NULL AND t.updated_at > UTC_TIMESTAMP(6) - INTERVAL {LAG_S} SECOND",
    # The checkpoint that a save builds on exists, and is the one that the save expects. Its number does not prove that:
    # a server that lost its newest commits may assign it again, for other content. So the random token is compared,
    # too. Relies on the index named.
    "BASE_IS_THERE": """
   AND EXISTS (SELECT 1 FROM {versions} b
                WHERE b.tenant = %s AND b.thread_id = %s AND b.version_key = %s AND LOCATE(%s, b.tokens) > 0)""",
    # The time of a thread's newest checkpoint, for the alias t. Relies on the index newest.
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
    # In the ON DUPLICATE KEY UPDATE of writes: fails with error 3141 if the duplicate is the row of a call's token, so
    # if the call was carried out already.
    "ONCE": "idx = {writes}.idx + JSON_LENGTH(IF({writes}.tenant = '', '', '[]'))",
    # The bytes of a checkpoint's row, for the alias v, and those of the parts that it wrote into rows of their own.
    "ROW_BYTES": "LENGTH(v.payload) + COALESCE(LENGTH(v.chunk), 0) + COALESCE(LENGTH(v.metadata), 0)",
    "PARTS_OF_ROW": """IF(v.stored_seq IS NULL, 0,
                  COALESCE((SELECT SUM(LENGTH(p.chunk))
                              FROM {parts} p
                             WHERE p.tenant = v.tenant AND p.thread_id = v.thread_id
                               AND p.part >= v.stored_seq * {OWN_PARTS}
                               AND p.part < (v.stored_seq + 1) * {OWN_PARTS}), 0))""",
    # A sample of the threads: about one in %s, by a hash of the id.
    "SAMPLED": "MOD(CRC32(t.thread_id), %s) = 0 AND {LIVE_THREAD}",
    # Checkpoints v, and each of their parts s as it is stored, in a row p or in a checkpoint's row o. A row whose
    # stored_seq is NULL holds its part itself. Where neither exists, damage removed the part.
    "WITH_PARTS": """{versions} v
  JOIN JSON_TABLE(v.sources, '$[*]' COLUMNS (part BIGINT UNSIGNED PATH '$')) s
  LEFT JOIN {parts} p ON p.tenant = v.tenant AND p.thread_id = v.thread_id
                     AND p.part = IF(s.part < {OWN_PARTS}, COALESCE(v.stored_seq, v.seq) * {OWN_PARTS} + s.part, s.part)
  LEFT JOIN {versions} o ON o.tenant = v.tenant AND o.thread_id = v.thread_id AND o.ns_key = v.ns_key
                        AND o.seq = IF(s.part < {OWN_PARTS}, COALESCE(v.stored_seq, v.seq), s.part DIV {OWN_PARTS})
                        AND o.stored_seq IS NULL""",
    # The numbers of the parts that a thread's remaining rows need.
    "USED": """
       (SELECT DISTINCT IF(s.part < {OWN_PARTS}, COALESCE(v.stored_seq, v.seq) * {OWN_PARTS} + s.part, s.part) AS part
          FROM {versions} v
          JOIN JSON_TABLE(v.sources, '$[*]' COLUMNS (part BIGINT UNSIGNED PATH '$')) s
         WHERE v.tenant = %s AND v.thread_id = %s AND v.hidden < 2) AS used""",
    # Joins the copy that was just created, which has this epoch.
    "COPIED": """
  JOIN {threads} d ON d.tenant = %s AND d.thread_id = %s AND d.epoch = %s
""",
}
