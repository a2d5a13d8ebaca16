"""The names of the tables, and the pieces of SQL that statements about graphs share: `graph_dialect`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ....dialect.dialect import Dialect
from .tables import graph_schema, table_names

#: The maximum number of parts that one checkpoint may have of its own. Smaller numbers of parts mean those of the row
#: itself.
OWN_PARTS = 1024

#: The stored_seq of a row that does not hold its part itself is the sum of this and the number of the save within its
#: thread: more than any seq that the server assigns.
APART = 1 << 40

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
    # A thread that has not expired; the second one for the alias t.
    "LIVE": "(expires_at IS NULL OR expires_at > UTC_TIMESTAMP(6))",
    "LIVE_THREAD": "(t.expires_at IS NULL OR t.expires_at > UTC_TIMESTAMP(6))",
    # The checkpoint that a save builds on exists, and is the one that the save expects. Its number does not prove that:
    # a server that lost its newest commits may assign it again, for other content. So the random token is compared,
    # too. Relies on the index named.
    "BASE_IS_THERE": """
   AND EXISTS (SELECT 1 FROM {checkpoints} b WHERE b.tenant = :tenant AND b.thread_id = :thread_id
               AND b.checkpoint_key = :base_key AND LOCATE(:base_token, b.tokens) > 0)""",
    # The time of a thread's newest checkpoint, for the alias t. Relies on the index newest.
    "SAVED_AT": """GREATEST(t.updated_at, COALESCE((SELECT c.created_at
                                     FROM {checkpoints} c
                                    WHERE c.tenant = t.tenant AND c.thread_id = t.thread_id
                                    ORDER BY c.seq DESC LIMIT 1), t.updated_at))""",
    # The time by which pages of threads are ordered. It lies between updated_at and LAG_S later by definition, also
    # where a server's clock went backwards, so no thread falls between two pages.
    "ORDERED_AT": "LEAST({SAVED_AT}, t.updated_at + INTERVAL {LAG_S} SECOND)",
    # The rows k from which a statement that loads checkpoints begins.
    "KEYS": "c.thread_id, c.ns_key, c.seq, c.checkpoint_key, c.parent_key, "
    "COALESCE(c.stored_seq, c.seq) AS stored_seq, IF(c.unlinked, 0, c.needs) AS needs, c.sources, t.epoch",
    # The number of a part that the sources of a row k name, and the seq of the row that holds it, if one does.
    "PART": "IF(s.part < {OWN_PARTS}, k.stored_seq * {OWN_PARTS} + s.part, s.part)",
    "ROW": "IF(s.part < {OWN_PARTS}, k.stored_seq, s.part DIV {OWN_PARTS})",
    # In the ON DUPLICATE KEY UPDATE of writes: fails with error 3141 if the duplicate is the row of a call's token, so
    # if the call was carried out already.
    "ONCE": "idx = {writes}.idx + JSON_LENGTH(IF({writes}.tenant = '', '', '[]'))",
    # The bytes of a checkpoint's row, for the alias c, and those of the parts that it wrote into rows of their own.
    "ROW_BYTES": "LENGTH(c.payload) + COALESCE(LENGTH(c.chunk), 0) + COALESCE(LENGTH(c.metadata), 0)",
    "PARTS_OF_ROW": """IF(c.stored_seq IS NULL, 0,
                  COALESCE((SELECT SUM(LENGTH(p.chunk))
                              FROM {parts} p
                             WHERE p.tenant = c.tenant AND p.thread_id = c.thread_id
                               AND p.part >= c.stored_seq * {OWN_PARTS}
                               AND p.part < (c.stored_seq + 1) * {OWN_PARTS}), 0))""",
    # A sample of the threads: about one in `one_in`, by a hash of the id.
    "SAMPLED": "MOD(CRC32(t.thread_id), :one_in) = 0 AND {LIVE_THREAD}",
    # Checkpoints c, and each of their parts s as it is stored, in a row p or in a checkpoint's row o. A row whose
    # stored_seq is NULL holds its part itself. Where neither exists, damage removed the part.
    "WITH_PARTS": """{checkpoints} c
  JOIN JSON_TABLE(c.sources, '$[*]' COLUMNS (part BIGINT UNSIGNED PATH '$')) s
  LEFT JOIN {parts} p ON p.tenant = c.tenant AND p.thread_id = c.thread_id
                     AND p.part = IF(s.part < {OWN_PARTS}, COALESCE(c.stored_seq, c.seq) * {OWN_PARTS} + s.part, s.part)
  LEFT JOIN {checkpoints} o ON o.tenant = c.tenant AND o.thread_id = c.thread_id AND o.ns_key = c.ns_key
                        AND o.seq = IF(s.part < {OWN_PARTS}, COALESCE(c.stored_seq, c.seq), s.part DIV {OWN_PARTS})
                        AND o.stored_seq IS NULL""",
    # The numbers of the parts that a thread's remaining rows need.
    "USED": """
       (SELECT DISTINCT IF(s.part < {OWN_PARTS}, COALESCE(c.stored_seq, c.seq) * {OWN_PARTS} + s.part, s.part) AS part
          FROM {checkpoints} c
          JOIN JSON_TABLE(c.sources, '$[*]' COLUMNS (part BIGINT UNSIGNED PATH '$')) s
         WHERE c.tenant = :tenant AND c.thread_id = :thread_id AND c.hidden < 2) AS used""",
    # Joins the copy that was just created, which has this epoch.
    "COPIED": """
  JOIN {threads} d ON d.tenant = :tenant AND d.thread_id = :destination AND d.epoch = :epoch
""",
}


class ThreadKey(NamedTuple):
    """The key of a thread."""

    tenant: str
    thread_id: str


@lru_cache
def graph_dialect(table_prefix: str) -> Dialect:
    """Return the names and pieces for the tables with one prefix, which the configuration has validated."""
    return Dialect(graph_schema(table_prefix), table_names(table_prefix), PIECES)


def conditions(texts: Mapping[str, str], given: Mapping[str, Any]) -> str:
    """Return the conditions, of those by the name of their parameter, whose parameter has a value."""
    return "".join([text for name, text in texts.items() if given.get(name) is not None])
