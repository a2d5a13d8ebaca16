"""The tables of graphs, the pieces of SQL that their statements share, and the keys of names of any length."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ....dialect.schema import Schema, Table
from ....dialect.sql import Dialect
from ....errors import InvalidInput
from ....records import ledger
from ....runtime.arguments import check_text

#: Ids of checkpoints and tasks, in characters. Namespaces may be of any length.
ID_LIMIT = 512

_KEY_BYTES = 16


def check_id(value: object, what: str) -> str:
    """Check an id: text of 1 to 512 characters."""
    text = check_text(value, what)
    if not 1 <= len(text) <= ID_LIMIT:
        raise InvalidInput(f"{what} has {len(text)} characters; it must have 1 to {ID_LIMIT}.")
    return text


def ns_key(ns: str) -> bytes:
    """The key of a namespace."""
    return _digest(_encoded(ns))


def checkpoint_key(ns: str, checkpoint_id: str) -> bytes:
    """The key of a checkpoint. The length comes first, so that different pairs of texts have different bytes."""
    space = _encoded(ns)
    return _digest(b"%d:%b%b" % (len(space), space, _encoded(checkpoint_id)))


def task_key(task_id: str) -> bytes:
    """The key of a task."""
    return _digest(_encoded(task_id))


def run_key(run_id: str) -> bytes:
    """The key of a run."""
    return _digest(_encoded(run_id))


def _encoded(name: str) -> bytes:
    """Encode a name.

    Raises:
        InvalidInput: It contains a lone surrogate.
    """
    try:
        return name.encode()
    except UnicodeEncodeError:
        return check_text(name, f"The id or namespace {name!r:.60}").encode()


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text, usedforsecurity=False).digest()[:_KEY_BYTES]


#: The family in the comments of its tables.
FAMILY = "graphs"

#: Written into the comment of each table. See "Changing the layout of the tables" in CONTRIBUTING.md.
LAYOUT_VERSION = 1

# One row per thread. epoch is random, and changes when anything of the thread is removed or the thread is created
# again: parts that existed under an epoch exist as long as the epoch is the same. updated_at is the time of the last
# save that locked the row exclusively, and last_seq counts these saves. A save that only shares the lock changes
# nothing here and may follow up to LAG_S seconds later (see `threads`): the time of the last save is that of the newest
# checkpoint.
THREADS = """
(
  tenant      VARCHAR(128)    NOT NULL,
  thread_id   VARCHAR(512)    NOT NULL,
  last_seq    BIGINT UNSIGNED NOT NULL,
  epoch       BINARY(8)       NOT NULL,
  created_at  DATETIME(6)     NOT NULL,
  updated_at  DATETIME(6)     NOT NULL,
  expires_at  DATETIME(6)     NULL,
  PRIMARY KEY (tenant, thread_id),
  KEY recent (tenant, updated_at),
  KEY expiry (expires_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
"""

# One row per checkpoint. A namespace and an id may be of any length, so keys hold their digests: ns_key of the
# namespace, checkpoint_key of namespace and id, parent_key of the parent's.
#
# seq: assigned by the server, in the order in which it stored the checkpoints of all threads, and unique within one (a
#   copied thread has those of its source).
# sources: the parts of which the values consist. A number below 1024 is a part of this row, number
#   stored_seq * 1024 + part; a larger one is the number of a part of another row, in the same namespace.
# payload: small values, and how the parts are joined.
# chunk: the part of a row whose stored_seq is NULL; its number is seq * 1024. It is written once, never changed, and
#   moved to the table of parts if it is needed when the row is deleted.
# tokens: those of the last save that wrote the row and of the first, 16 bytes each. A repeated save finds its own here,
#   or in the ledger. If history is kept, it is one token, and a digest of the content in 15 bytes.
# hidden: the checkpoint was deleted, and its row is kept because others need it.
# needs: 0 nothing of the parent, 1 all of it, as its values continue the parent's, 2 the parent's writes.
# unlinked: the parent was deleted and is no longer needed. The row's seal covers needs and the parent,
#   so these columns stay unchanged.
CHECKPOINTS = """
(
  tenant         VARCHAR(128)    NOT NULL,
  thread_id      VARCHAR(512)    NOT NULL,
  ns_key         BINARY(16)      NOT NULL,
  seq            BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  checkpoint_key BINARY(16)      NOT NULL,
  parent_key     BINARY(16)      NULL,
  checkpoint_id  VARCHAR(512)    NOT NULL,
  parent_id      VARCHAR(512)    NULL,
  ns             MEDIUMTEXT      NOT NULL,
  stored_seq     BIGINT UNSIGNED NULL,
  hidden         TINYINT         NOT NULL,
  needs          TINYINT         NOT NULL,
  unlinked       TINYINT         NOT NULL DEFAULT 0,
  sources        JSON            NOT NULL,
  tokens         VARBINARY(32)   NOT NULL,
  payload        LONGBLOB        NOT NULL,
  metadata       MEDIUMTEXT      NULL,
  run_key        BINARY(16)      NULL,
  chunk          LONGBLOB        NULL,
  created_at     DATETIME(6)     NOT NULL,
  PRIMARY KEY (tenant, thread_id, ns_key, seq),
  KEY drawn (seq),
  KEY newest (tenant, thread_id, seq),
  UNIQUE KEY named (tenant, thread_id, checkpoint_key),
  KEY runs (tenant, run_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
"""

# The parts of large values that are not in a checkpoint's row: what a value adds to the one it continues, or a whole
# value. Written once, never changed.
PARTS = """
(
  tenant      VARCHAR(128)    NOT NULL,
  thread_id   VARCHAR(512)    NOT NULL,
  part        BIGINT UNSIGNED NOT NULL,
  chunk       LONGBLOB        NOT NULL,
  PRIMARY KEY (tenant, thread_id, part)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
"""

# The writes of tasks at a checkpoint, for the next one. They may arrive before the checkpoint. Rows with an empty
# tenant and thread_id, which no thread has, are the tokens of calls: checkpoint_key is the token. They stay for a
# quarter of an hour, so that a repeated call, or a late duplicate of its packet, is recognised.
WRITES = """
(
  tenant         VARCHAR(128)    NOT NULL,
  thread_id      VARCHAR(512)    NOT NULL,
  checkpoint_key BINARY(16)      NOT NULL,
  task_key       BINARY(16)      NOT NULL,
  idx            INT             NOT NULL,
  task_id        VARCHAR(512)    NOT NULL,
  task_path      MEDIUMTEXT      NOT NULL,
  channel        MEDIUMTEXT      NOT NULL,
  payload        LONGBLOB        NOT NULL,
  created_at     DATETIME(6)     NOT NULL,
  PRIMARY KEY (tenant, thread_id, checkpoint_key, task_key, idx)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
"""

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


def graph_schema(table_prefix: str) -> Schema:
    """The tables of the family with one prefix."""
    names = table_names(table_prefix)
    definitions = {"threads": THREADS, "checkpoints": CHECKPOINTS, "parts": PARTS, "writes": WRITES}
    tables = tuple(Table(names[role], definition.strip()) for role, definition in definitions.items())
    return Schema(FAMILY, LAYOUT_VERSION, (*tables, ledger.table(names["ledger"])), encrypts=True)


def table_names(table_prefix: str) -> dict[str, str]:
    """The unquoted names of the tables by their roles, in the order in which they are made."""
    return {
        "threads": f"{table_prefix}graph_threads",
        "checkpoints": f"{table_prefix}graph_checkpoints",
        "parts": f"{table_prefix}graph_parts",
        "writes": f"{table_prefix}graph_writes",
        "ledger": f"{table_prefix}graph_ledger",
    }


def conditions(texts: Mapping[str, str], given: Mapping[str, Any]) -> str:
    """Return the conditions, of those by the name of their parameter, whose parameter has a value."""
    return "".join([text for name, text in texts.items() if given.get(name) is not None])
