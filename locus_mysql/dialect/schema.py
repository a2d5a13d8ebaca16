"""The tables: their definition, and how to tell whether they are there and ours."""

from __future__ import annotations

from typing import Literal

from .statement import Statement

#: Written into the tables' comments. Raised when a change of layout needs a migration.
LAYOUT_VERSION = 1

LAYOUT_COMMENT = "locus-mysql layout "

# One row per thread. It is locked by every write to the thread, so writers of one thread wait for each other.
# last_seq rises with every save. version is random and another after every write: who knows it knows the thread as it
# is. Rows of checkpoints below first_seq were left behind by an expiry.
THREADS = """
CREATE TABLE IF NOT EXISTS {threads} (
  tenant      VARCHAR(128)    NOT NULL,
  thread_id   VARCHAR(512)    NOT NULL,
  last_seq    BIGINT UNSIGNED NOT NULL,
  first_seq   BIGINT UNSIGNED NOT NULL,
  version     BINARY(16)      NOT NULL,
  created_at  DATETIME(6)     NOT NULL,
  updated_at  DATETIME(6)     NOT NULL,
  expires_at  DATETIME(6)     NULL,
  PRIMARY KEY (tenant, thread_id),
  KEY recent (tenant, updated_at),
  KEY expiry (expires_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
  COMMENT='{comment}'
"""

# One row per saved state. checkpoint_id NULL: the checkpoint was deleted, replaced or pruned, and its row is kept
# because states build on it (base_seq) or because it holds text of theirs (search_text). A row that stands by itself
# has its own seq as base_seq; one whose payload nothing needs any more has an empty payload and base_seq NULL.
# search_text is the text a state adds to its parent's (continues 1) or all of its text (continues 0); a provisional
# state has none (continues 2). A save writes it to pending_text and sets unindexed to 1, which costs little; later, and
# before every search, it is moved to search_text, which the full-text index covers. An index on a prefix of
# pending_text would serve as well, but makes InnoDB keep all of the text in undo records, of which one then grows too
# big (error 1713) where a deleted row's key is used again.
#
# metadata_pairs begins with the array: behind tenant, MySQL 9.7.4 may choose it to look rows up by tenant alone, and
# then misses rows (a join over 5 threads of 3 rows, forced onto it, gives 3 rows of 15).
CHECKPOINTS = """
CREATE TABLE IF NOT EXISTS {checkpoints} (
  tenant        VARCHAR(128)    NOT NULL,
  thread_id     VARCHAR(512)    NOT NULL,
  seq           BIGINT UNSIGNED NOT NULL,
  checkpoint_id VARCHAR(128)    NULL,
  parent_seq    BIGINT UNSIGNED NULL,
  base_seq      BIGINT UNSIGNED NULL,
  continues     TINYINT         NOT NULL,
  token         BINARY(16)      NOT NULL,
  payload       LONGBLOB        NOT NULL,
  metadata      MEDIUMTEXT      NULL,
  metadata_keys JSON            NULL,
  search_text   LONGTEXT        COLLATE utf8mb4_0900_ai_ci NULL,
  pending_text  LONGTEXT        COLLATE utf8mb4_0900_ai_ci NULL,
  unindexed     TINYINT         NULL,
  oldest_at     DATETIME(6)     NULL,
  created_at    DATETIME(6)     NOT NULL,
  PRIMARY KEY (tenant, thread_id, seq),
  UNIQUE KEY named (tenant, thread_id, checkpoint_id),
  KEY bases (tenant, thread_id, base_seq),
  KEY parents (tenant, thread_id, parent_seq),
  KEY metadata_pairs ((CAST(metadata_keys AS UNSIGNED ARRAY)), tenant){search}
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
  COMMENT='{comment}'
"""

# What there is under the tables' names, and whether there is a full-text index.
DESCRIBE = """
SELECT t.TABLE_NAME, t.TABLE_COMMENT,
       EXISTS (SELECT 1 FROM information_schema.STATISTICS s
                WHERE s.TABLE_SCHEMA = t.TABLE_SCHEMA AND s.TABLE_NAME = t.TABLE_NAME AND s.INDEX_NAME = 'words')
  FROM information_schema.TABLES t
 WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN (%s, %s)
"""


class SchemaStatements:
    """Statements that make and check the tables.

    Args:
        threads_table: Unquoted name of the table of threads.
        checkpoints_table: Unquoted name of the table of checkpoints.
        search: Whether to make a full-text index.
        search_parser: Its parser.
    """

    def __init__(
        self,
        threads_table: str,
        checkpoints_table: str,
        *,
        search: bool,
        search_parser: Literal["default", "ngram"],
    ) -> None:
        self._threads = threads_table
        self._checkpoints = checkpoints_table
        self._search = search
        self._search_parser = search_parser
        #: Their unquoted names.
        self.names = (threads_table, checkpoints_table)
        #: The layout that this version of the package uses.
        self.layout_version = LAYOUT_VERSION

    def describe(self) -> Statement:
        """Name, comment and presence of a full-text index of each table there is."""
        return Statement(DESCRIBE.strip(), (self._threads, self._checkpoints))

    def create(self) -> tuple[Statement, Statement]:
        """Make the tables that are missing; safe to run by many processes at once."""
        comment = f"{LAYOUT_COMMENT}{LAYOUT_VERSION}"
        search = "".join(f",\n  {key}" for key in self._search_keys()) if self._search else ""
        return (
            Statement(THREADS.format(threads=f"`{self._threads}`", comment=comment).strip()),
            Statement(CHECKPOINTS.format(checkpoints=f"`{self._checkpoints}`", comment=comment, search=search).strip()),
        )

    def refusal(self, searched: dict[str, bool]) -> str | None:
        """Why tables of the right layout cannot be used: they lack the full-text index that is wanted."""
        if not self._search or searched[self._checkpoints.casefold()]:
            return None
        return (
            f"Table {self._checkpoints!r} was made without a full-text index. Set search=False, or add the index: "
            f"{self.add_search().sql}"
        )

    def add_search(self) -> Statement:
        """Add the full-text index to a table made without one; rebuilds the table."""
        added = ", ".join(f"ADD {key}" for key in self._search_keys())
        return Statement(f"ALTER TABLE `{self._checkpoints}` {added}")

    def _search_keys(self) -> tuple[str, str]:
        """The index of words, and the one that finds text not yet in it."""
        parser = " WITH PARSER ngram" if self._search_parser == "ngram" else ""
        return "KEY pending (unindexed)", f"FULLTEXT KEY words (search_text){parser}"
