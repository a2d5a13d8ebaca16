"""The tables of graphs."""

from __future__ import annotations

from .. import ledger
from ..schema import Schema, Table

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
