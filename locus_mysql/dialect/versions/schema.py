"""The tables of the family: their definition, and how to tell whether they are there and ours."""

from __future__ import annotations

from collections.abc import Mapping

from ..statement import Statement
from ..tables import LAYOUT_COMMENT

#: Written into the tables' comments. Raised when a change of layout needs a migration.
LAYOUT_VERSION = 1

# One row per thread. A save takes the next seq under its lock. epoch is random, and another one after anything of the
# thread was removed or the thread was made anew: parts that were there under an epoch are there as long as it lasts.
THREADS = """
CREATE TABLE IF NOT EXISTS {threads} (
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
  COMMENT='{comment}'
"""

# One row per checkpoint, in the order in which the server took them. A namespace and an id may be of any length, so
# keys hold their digests: ns_key of the namespace, version_key of namespace and id, parent_key of the parent's.
# sources lists the parts that the values are put together from: below 1024 it is a part of this very row, number
# stored_seq * 1024 + part; above, the number of another one's. payload holds small values and says how the parts fit.
# tokens are the marks of the saves that wrote the row, newest first: a save that is repeated finds its own among them.
# hidden: the checkpoint was deleted, and its row is kept because others need it. needs: 0 nothing of the parent, 1 all
# of it, as its values go on from it, 2 the parent's writes.
VERSIONS = """
CREATE TABLE IF NOT EXISTS {versions} (
  tenant        VARCHAR(128)    NOT NULL,
  thread_id     VARCHAR(512)    NOT NULL,
  ns_key        BINARY(16)      NOT NULL,
  seq           BIGINT UNSIGNED NOT NULL,
  version_key   BINARY(16)      NOT NULL,
  parent_key    BINARY(16)      NULL,
  checkpoint_id VARCHAR(512)    NOT NULL,
  parent_id     VARCHAR(512)    NULL,
  ns            MEDIUMTEXT      NOT NULL,
  stored_seq    BIGINT UNSIGNED NOT NULL,
  hidden        TINYINT         NOT NULL,
  needs         TINYINT         NOT NULL,
  sources       JSON            NOT NULL,
  tokens        VARBINARY(128)  NOT NULL,
  payload       LONGBLOB        NOT NULL,
  metadata      MEDIUMTEXT      NULL,
  run_key       BINARY(16)      NULL,
  created_at    DATETIME(6)     NOT NULL,
  PRIMARY KEY (tenant, thread_id, ns_key, seq),
  UNIQUE KEY named (tenant, thread_id, version_key),
  KEY runs (tenant, run_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
  COMMENT='{comment}'
"""

# The parts of large values: what a value added to the one it goes on from, or all of it. Written once, never changed.
PARTS = """
CREATE TABLE IF NOT EXISTS {parts} (
  tenant      VARCHAR(128)    NOT NULL,
  thread_id   VARCHAR(512)    NOT NULL,
  part        BIGINT UNSIGNED NOT NULL,
  chunk       LONGBLOB        NOT NULL,
  PRIMARY KEY (tenant, thread_id, part)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
  COMMENT='{comment}'
"""

# What tasks wrote at a checkpoint, for the next one. A task's writes may arrive before the checkpoint they belong to.
WRITES = """
CREATE TABLE IF NOT EXISTS {writes} (
  tenant      VARCHAR(128)    NOT NULL,
  thread_id   VARCHAR(512)    NOT NULL,
  version_key BINARY(16)      NOT NULL,
  task_key    BINARY(16)      NOT NULL,
  idx         INT             NOT NULL,
  task_id     VARCHAR(512)    NOT NULL,
  task_path   MEDIUMTEXT      NOT NULL,
  channel     MEDIUMTEXT      NOT NULL,
  tokens      VARBINARY(128)  NOT NULL,
  payload     LONGBLOB        NOT NULL,
  created_at  DATETIME(6)     NOT NULL,
  PRIMARY KEY (tenant, thread_id, version_key, task_key, idx)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
  COMMENT='{comment}'
"""

# What there is under the tables' names. The last column is there for families with a full-text index.
DESCRIBE = """
SELECT t.TABLE_NAME, t.TABLE_COMMENT, 0
  FROM information_schema.TABLES t
 WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN (%s, %s, %s, %s)
"""


class VersionsSchema:
    """Statements that make and check the tables.

    Args:
        tables: Their unquoted names by their roles: threads, versions, parts, writes.
    """

    def __init__(self, tables: Mapping[str, str]) -> None:
        #: Their unquoted names by their roles.
        self.names = tables
        #: The layout that this version of the package uses.
        self.layout_version = LAYOUT_VERSION
        #: What the comment of each table is.
        self.comment = f"{LAYOUT_COMMENT}{LAYOUT_VERSION}, versions"

    def describe(self) -> Statement:
        """Name and comment of each table there is."""
        return Statement(DESCRIBE.strip(), tuple(self.names.values()))

    def create(self) -> tuple[Statement, ...]:
        """Make the tables that are missing; safe to run by many processes at once."""
        quoted = {role: f"`{name}`" for role, name in self.names.items()}
        texts = (THREADS, VERSIONS, PARTS, WRITES)
        return tuple(Statement(text.format(**quoted, comment=self.comment).strip()) for text in texts)

    def refusal(self, searched: Mapping[str, bool]) -> str | None:
        """None: tables of the right layout are all that is needed."""
        return None
