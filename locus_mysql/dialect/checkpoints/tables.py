"""The tables: their definition, and how to tell whether they are there and ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ..statement import Statement
from ..tables import LAYOUT_COMMENT

#: What the states in a set of tables are. Each kind has tables of its own: what was saved as one kind is never read,
#: replaced or deleted as another.
Kind: TypeAlias = Literal["agents", "dicts", "current"]

#: What stands between the prefix and the role in the names of a kind's tables.
INFIXES: Mapping[Kind, str] = {"agents": "", "dicts": "store_", "current": "state_"}

#: The roles of the tables, in the order in which they are made.
ROLES = ("threads", "checkpoints", "settled")

#: Written into the tables' comments. Raised when a change of layout needs a migration.
LAYOUT_VERSION = 1

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

# Tokens of operations that were carried out and of which nothing else is left to tell: see `settled`.
SETTLED = """
CREATE TABLE IF NOT EXISTS {settled} (
  tenant     VARCHAR(128) NOT NULL,
  token      BINARY(16)   NOT NULL,
  settled_at DATETIME(6)  NOT NULL,
  PRIMARY KEY (tenant, token),
  KEY age (settled_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
  COMMENT='{comment}'
"""

# What there is under the tables' names, and whether there is a full-text index.
DESCRIBE = """
SELECT t.TABLE_NAME, t.TABLE_COMMENT,
       EXISTS (SELECT 1 FROM information_schema.STATISTICS s
                WHERE s.TABLE_SCHEMA = t.TABLE_SCHEMA AND s.TABLE_NAME = t.TABLE_NAME AND s.INDEX_NAME = 'words')
  FROM information_schema.TABLES t
 WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN (%s, %s, %s)
"""


class SchemaStatements:
    """Statements that make and check the tables of one kind of states.

    Args:
        names: The unquoted names of the tables by their roles.
        kind: What the states are.
        search: Whether to make a full-text index.
        search_parser: Its parser.
    """

    def __init__(
        self, names: Mapping[str, str], kind: Kind, *, search: bool, search_parser: Literal["default", "ngram"]
    ) -> None:
        self.names = names
        self._kind = kind
        self._search = search
        self._search_parser = search_parser

    @property
    def layout_version(self) -> int:
        """The layout that this version of the package uses."""
        return LAYOUT_VERSION

    @property
    def comment(self) -> str:
        """What the comment of each table is: the layout, and the kind of the states."""
        return f"{LAYOUT_COMMENT}{LAYOUT_VERSION}, {self._kind}"

    def describe(self) -> Statement:
        """Name, comment and presence of a full-text index of each table there is."""
        return Statement(DESCRIBE.strip(), tuple(self.names[role] for role in ROLES))

    def create(self) -> tuple[Statement, ...]:
        """Make the tables that are missing; safe to run by many processes at once."""
        search = "".join(f",\n  {key}" for key in self._search_keys()) if self._search else ""
        quoted = {role: f"`{name}`" for role, name in self.names.items()}
        return tuple(
            Statement(template.format(**quoted, comment=self.comment, search=search).strip())
            for template in (THREADS, CHECKPOINTS, SETTLED)
        )

    def add_search(self) -> Statement:
        """Add the full-text index to a table made without one; rebuilds the table."""
        added = ", ".join(f"ADD {key}" for key in self._search_keys())
        return Statement(f"ALTER TABLE `{self.names['checkpoints']}` {added}")

    def refusal(self, searched: Mapping[str, bool]) -> str | None:
        """Why tables of the right layout cannot be used: they lack the full-text index that is wanted."""
        table = self.names["checkpoints"]
        if not self._search or searched[table.casefold()]:
            return None
        return (
            f"Table {table!r} was made without a full-text index. Set search=False, or add the index: "
            f"{self.add_search().sql}"
        )

    def drop(self) -> Statement:
        """Drop the tables with all that is in them."""
        return Statement("DROP TABLE IF EXISTS " + ", ".join(f"`{self.names[role]}`" for role in reversed(ROLES)))

    def _search_keys(self) -> tuple[str, str]:
        """The index of words, and the one that finds text not yet in it."""
        parser = " WITH PARSER ngram" if self._search_parser == "ngram" else ""
        return "KEY pending (unindexed)", f"FULLTEXT KEY words (search_text){parser}"
