"""The tables of versions."""

from __future__ import annotations

from .. import ledger
from ..schema import Schema, Table

#: The family in the comments of its tables.
FAMILY = "versions"

#: Written into the tables' comments. Raised when a change of layout needs a migration.
LAYOUT_VERSION = 3

# One row per thread. epoch is random, and another one after anything of the thread was removed or the thread was made
# anew: parts that were there under an epoch are there as long as it lasts. updated_at is the time of the last save that
# locked the row, and last_seq counts these. A save that only shares the lock changes nothing here, so it may come up to
# LAG_S seconds later (see `threads`): its newest checkpoint has the time of the last save.
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

# One row per checkpoint, in the order in which the server took them: seq is drawn by the server for all threads, and is
# unique within one (a copied thread has those of its source). A namespace and an id may be of any length, so keys hold
# their digests: ns_key of the namespace, version_key of namespace and id, parent_key of the parent's.
# sources lists the parts that the values are put together from: below 1024 it is a part of this very row, number
# stored_seq * 1024 + part; above, the number of another one's, of the same namespace. payload holds small values and
# says how the parts fit.
# chunk is the part of a row whose stored_seq is NULL: its number is seq * 1024. It is written once, never changed, and
# moves to the table of parts if it is needed when the row goes.
# tokens are the marks of the last save that wrote the row and of the first, 16 bytes each: a repeated save finds its
# own there, or in the ledger. Where history is kept it is one mark, and a digest of the content in 15 bytes.
# hidden: the checkpoint was deleted, and its row is kept because others need it. needs: 0 nothing of the parent, 1 all
# of it, as its values go on from it, 2 the parent's writes. unlinked: the parent was deleted, and nothing of it is
# needed any more; the row's checksum covers needs and the parent, so these stay as they were.
VERSIONS = """
(
  tenant        VARCHAR(128)    NOT NULL,
  thread_id     VARCHAR(512)    NOT NULL,
  ns_key        BINARY(16)      NOT NULL,
  seq           BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  version_key   BINARY(16)      NOT NULL,
  parent_key    BINARY(16)      NULL,
  checkpoint_id VARCHAR(512)    NOT NULL,
  parent_id     VARCHAR(512)    NULL,
  ns            MEDIUMTEXT      NOT NULL,
  stored_seq    BIGINT UNSIGNED NULL,
  hidden        TINYINT         NOT NULL,
  needs         TINYINT         NOT NULL,
  unlinked      TINYINT         NOT NULL DEFAULT 0,
  sources       JSON            NOT NULL,
  tokens        VARBINARY(32)   NOT NULL,
  payload       LONGBLOB        NOT NULL,
  metadata      MEDIUMTEXT      NULL,
  run_key       BINARY(16)      NULL,
  chunk         LONGBLOB        NULL,
  created_at    DATETIME(6)     NOT NULL,
  PRIMARY KEY (tenant, thread_id, ns_key, seq),
  KEY drawn (seq),
  KEY newest (tenant, thread_id, seq),
  UNIQUE KEY named (tenant, thread_id, version_key),
  KEY runs (tenant, run_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
"""

# The parts of large values that stand in no checkpoint's row: what a value added to the one it goes on from, or all of
# it. Written once, never changed.
PARTS = """
(
  tenant      VARCHAR(128)    NOT NULL,
  thread_id   VARCHAR(512)    NOT NULL,
  part        BIGINT UNSIGNED NOT NULL,
  chunk       LONGBLOB        NOT NULL,
  PRIMARY KEY (tenant, thread_id, part)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
"""

# What tasks wrote at a checkpoint, for the next one. A task's writes may arrive before the checkpoint they belong to.
# Rows whose tenant and thread_id are empty, as no thread's are, are the tokens of calls: version_key is the token. They
# stay for a quarter of an hour, so that a repeated call, or a late duplicate of its packet, is recognised.
WRITES = """
(
  tenant      VARCHAR(128)    NOT NULL,
  thread_id   VARCHAR(512)    NOT NULL,
  version_key BINARY(16)      NOT NULL,
  task_key    BINARY(16)      NOT NULL,
  idx         INT             NOT NULL,
  task_id     VARCHAR(512)    NOT NULL,
  task_path   MEDIUMTEXT      NOT NULL,
  channel     MEDIUMTEXT      NOT NULL,
  payload     LONGBLOB        NOT NULL,
  created_at  DATETIME(6)     NOT NULL,
  PRIMARY KEY (tenant, thread_id, version_key, task_key, idx)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
"""


def graph_schema(table_prefix: str) -> Schema:
    """The tables of the family with one prefix."""
    names = table_names(table_prefix)
    definitions = {"threads": THREADS, "versions": VERSIONS, "parts": PARTS, "writes": WRITES}
    tables = tuple(Table(names[role], definition.strip()) for role, definition in definitions.items())
    return Schema(FAMILY, LAYOUT_VERSION, (*tables, ledger.table(names["ledger"])))


def table_names(table_prefix: str) -> dict[str, str]:
    """The unquoted names of the tables by their roles, in the order in which they are made."""
    return {
        "threads": f"{table_prefix}version_threads",
        "versions": f"{table_prefix}versions",
        "parts": f"{table_prefix}version_parts",
        "writes": f"{table_prefix}version_writes",
        "ledger": f"{table_prefix}version_ledger",
    }
