"""The tables of checkpoints, their names by kind, and the pieces of SQL that their statements share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from ....dialect.schema import Schema, Table
from ....dialect.sql import Dialect
from ....dialect.statement import fill
from ....dialect.words import TENANT_WORD, Parser, index_keys, needed_index, pieces_of
from ....records import ledger

#: The kind of states in a set of tables. Each kind has tables of its own, so a state of one kind is never read,
#: replaced or deleted as another.
Kind: TypeAlias = Literal["agents", "dicts", "current"]

#: The part between the prefix and the role in the names of a kind's tables.
INFIXES: Mapping[Kind, str] = {"agents": "", "dicts": "store_", "current": "state_"}

#: The roles of the tables, in the order in which they are created.
ROLES = ("threads", "checkpoints", "ledger")


#: Written into the comment of each table. See "Changing the layout of the tables" in CONTRIBUTING.md.
LAYOUT_VERSION = 1


class ThreadKey(NamedTuple):
    """A thread of a tenant."""

    tenant: str
    thread_id: str


# One row per thread. Every write to the thread locks it, so writers of one thread wait for each other. last_seq rises
# with every save. version is random and changes with every write: a process whose version is current has current data.
# Checkpoints with a seq below first_seq are from before the thread last expired.
THREADS = """
(
  tenant      VARCHAR(128)    NOT NULL,
  thread_id   VARCHAR(512)    NOT NULL,
  last_seq    BIGINT UNSIGNED NOT NULL,
  first_seq   BIGINT UNSIGNED NOT NULL,
  version     BINARY(16)      NOT NULL,
  created_at  DATETIME(6)     NOT NULL,
  updated_at  DATETIME(6)     NOT NULL,
  expires_at  DATETIME(6)     NULL,
  PRIMARY KEY (tenant, thread_id),
  KEY recent (tenant, updated_at, thread_id),
  KEY expiry (expires_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
"""

# One row per saved state. checkpoint_id NULL: the checkpoint was deleted, replaced or pruned, and its row is kept
# because states build on it (base_seq) or because it holds text of theirs (search_text). A whole state has its own seq
# as base_seq; a row whose payload is no longer needed has an empty payload and base_seq NULL. search_text is the text
# that a state adds to its parent's (continues 1) or all of its text (continues 0); a provisional state has none
# (continues 2). A save writes it to pending_text and sets unindexed to 1, which costs little; later, and before every
# search, it is moved to search_text, which the full-text index covers. An index on a prefix of pending_text would do as
# well, but InnoDB then keeps all of the text in undo records, one of which grows too big (error 1713) when the key of a
# deleted row is used again.
#
# payload carries its own seal. seal covers checkpoint_id, metadata and token; see `runtime/sealing.py`.
#
# payload_bytes exists for statements about sizes: LENGTH(payload) reads the whole payload, most of which is on other
# pages.
#
# metadata_pairs begins with the array: after tenant, MySQL 9.7.4 may choose the index to look rows up by tenant alone,
# and then misses rows (a join over 5 threads of 3 rows, forced onto it, returns 3 rows of 15).
#
# metadata_pairs, and recent above, name all columns by which pages are ordered. InnoDB has those of the primary key in
# every index anyway, so this takes no space; but if an index is forced, MySQL 8.0 and 8.4 do not use the order of
# columns that it does not name, and sort all of a tenant's entries for a page.
CHECKPOINTS = """
(
  tenant        VARCHAR(128)    NOT NULL,
  thread_id     VARCHAR(512)    NOT NULL,
  seq           BIGINT UNSIGNED NOT NULL,
  checkpoint_id VARCHAR(128)    NULL,
  parent_seq    BIGINT UNSIGNED NULL,
  base_seq      BIGINT UNSIGNED NULL,
  continues     TINYINT         NOT NULL,
  token         BINARY(16)      NOT NULL,
  payload       LONGBLOB        NOT NULL,
  payload_bytes INT UNSIGNED    AS (LENGTH(payload)) STORED NOT NULL,
  metadata      MEDIUMTEXT      NULL,
  metadata_keys JSON            NULL,
  search_text   LONGTEXT        COLLATE utf8mb4_0900_ai_ci NULL,
  {tenant_word},
  pending_text  LONGTEXT        COLLATE utf8mb4_0900_ai_ci NULL,
  unindexed     TINYINT         NULL,
  oldest_at     DATETIME(6)     NULL,
  seal          INT UNSIGNED    NOT NULL,
  created_at    DATETIME(6)     NOT NULL,
  PRIMARY KEY (tenant, thread_id, seq),
  UNIQUE KEY named (tenant, thread_id, checkpoint_id),
  KEY bases (tenant, thread_id, base_seq),
  KEY parents (tenant, thread_id, parent_seq),
  KEY metadata_pairs ((CAST(metadata_keys AS UNSIGNED ARRAY)), tenant, thread_id, seq){search}
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
"""


# The token of the row that a row of the table builds on; NULL if it builds on no other.
BASE_ROW = """(SELECT b.token
          FROM `{table}` b
         WHERE b.tenant = `{table}`.tenant AND b.thread_id = `{table}`.thread_id AND b.seq = `{table}`.base_seq
           AND b.seq < `{table}`.seq)"""


def checkpoint_schema(table_prefix: str, kind: Kind, *, search: bool, search_parser: Parser) -> Schema:
    """The tables of one kind of states.

    Args:
        table_prefix: The prefix of their names.
        kind: The kind of states.
        search: Whether there is a full-text index.
        search_parser: Its parser.
    """
    names = table_names(table_prefix, kind)
    keys = index_keys(search_parser) if search else ()
    pieces = {"tenant_word": TENANT_WORD, "search": "".join(f",\n  {key}" for key in keys)}
    definitions = {
        "threads": THREADS,
        "checkpoints": fill(CHECKPOINTS, pieces),
    }
    needed = needed_index(
        names["checkpoints"], search_parser, "Set search=False, or set encryption=, if other programs use it"
    )
    tables = tuple(Table(names[role], definition.strip()) for role, definition in definitions.items())
    return Schema(
        kind,
        LAYOUT_VERSION,
        (*tables, ledger.table(names["ledger"])),
        (needed,) if search else (),
        encrypts=True,
    )


def table_names(table_prefix: str, kind: Kind) -> dict[str, str]:
    """The unquoted names of the tables by their roles."""
    return {role: f"{table_prefix}{INFIXES[kind]}{role}" for role in ROLES}


#: Characters of a hit's text that a search returns.
SNIPPET_CHARACTERS = 65_536

# An unnamed row of which no state needs the payload or the text.
_HOLLOW = "{0}.checkpoint_id IS NULL AND {0}.base_seq IS NULL AND {0}.search_text IS NULL AND {0}.pending_text IS NULL"

# Assignments that remove the id of a row, whose seal is not checked from then on. Of the text, only the part before the
# separator is kept, which the states that follow share.
_UNNAMED = """{0}.checkpoint_id = NULL, {0}.metadata = NULL, {0}.metadata_keys = NULL, {0}.oldest_at = NULL,
       {0}.search_text = NULLIF(SUBSTRING_INDEX({0}.search_text, CHAR(30 USING utf8mb4), 1), ''),
       {0}.pending_text = NULLIF(SUBSTRING_INDEX({0}.pending_text, CHAR(30 USING utf8mb4), 1), '')"""

_LIVE = "({0}expires_at IS NULL OR {0}expires_at > UTC_TIMESTAMP(6))"


def _for_aliases(name: str, piece: str, aliases: str) -> dict[str, str]:
    """Return the piece for some aliases of tables, as in ``{HOLLOW.x}``."""
    return {f"{name}.{alias}": piece.replace("{0}", alias) for alias in aliases}


PIECES = {
    **pieces_of("c", "checkpoints"),
    # The thread that a call is about.
    "KEY": "tenant = :tenant AND thread_id = :thread_id",
    **_for_aliases("KEY", "{0}.tenant = :tenant AND {0}.thread_id = :thread_id", "bckptx"),
    # A thread that has not expired, without an alias, and for the alias t.
    "LIVE": _LIVE.replace("{0}", ""),
    "LIVE_THREAD": _LIVE.replace("{0}", "t."),
    # The same, and a row that was saved since the thread last expired, for the aliases t and c.
    "LIVE_ROW": "{LIVE_THREAD} AND c.seq >= t.first_seq",
    # The time at which a thread that is saved now will expire.
    "EXPIRY": "UTC_TIMESTAMP(6) + INTERVAL :ttl_us MICROSECOND",
    # A row so young that a repeated save might insert it again, so a statement that removes it must record its token.
    # For the alias c.
    "YOUNG": "c.created_at > UTC_TIMESTAMP(6) - INTERVAL {RETENTION_S} SECOND",
    # The columns of a new thread, and those of a row; the values of a `NewRow`, for the columns from `continues` on.
    "NEW_THREAD": "tenant, thread_id, last_seq, first_seq, version, created_at, updated_at, expires_at",
    "ROW": "tenant, thread_id, seq, checkpoint_id, parent_seq, base_seq, continues, token, payload,\n"
    "  metadata, metadata_keys, pending_text, unindexed, oldest_at, seal, created_at",
    "VALUES": ":continues, :token, :payload, :metadata, :metadata_keys, :search_text, :unindexed, :oldest_at, :seal",
    **_for_aliases("HOLLOW", _HOLLOW, "kpx"),
    **_for_aliases("UNNAMED", _UNNAMED, "cx"),
    # A thread that may have a checkpoint saved since a time. A save reads the thread's time when it begins to wait for
    # the thread's lock, and the checkpoint's time when it has the lock.
    # The bytes of a row, for the alias c.
    "SIZE": "c.payload_bytes + COALESCE(LENGTH(c.metadata), 0)"
    " + COALESCE(LENGTH(c.search_text), LENGTH(c.pending_text), 0)",
    # For each row of `chosen`, the nearest named row among its parents: the recursion goes up until it finds one. It
    # also ends where rows are damaged, as it only goes to rows with a lower seq.
    "FOLLOWED": """followed (chosen_seq, seq, parent_seq, checkpoint_id) AS (
  SELECT chosen.seq, p.seq, p.parent_seq, p.checkpoint_id
    FROM chosen
    JOIN {checkpoints} p ON {KEY.p} AND p.seq = chosen.parent_seq AND p.seq < chosen.seq
  UNION ALL
  SELECT followed.chosen_seq, p.seq, p.parent_seq, p.checkpoint_id
    FROM followed
    JOIN {checkpoints} p ON {KEY.p} AND p.seq = followed.parent_seq AND p.seq < followed.seq
   WHERE followed.checkpoint_id IS NULL
)""",
}


class CheckpointDialect(Dialect):
    """The tables of one kind of states.

    Args:
        table_prefix: The prefix of the tables' names; validated by the configuration.
        kind: The kind of states.
        search: Whether the tables are created with a full-text index.
        search_parser: The parser of that index.
    """

    def __init__(self, table_prefix: str, kind: Kind, *, search: bool, search_parser: Parser) -> None:
        schema = checkpoint_schema(table_prefix, kind, search=search, search_parser=search_parser)
        self.search_parser: Parser = search_parser
        super().__init__(schema, table_names(table_prefix, kind), PIECES)


@lru_cache(maxsize=64)
def checkpoint_dialect(
    table_prefix: str = "locus_", kind: Kind = "agents", *, search: bool = True, search_parser: Parser = "default"
) -> CheckpointDialect:
    """Return the dialect of these tables, which all stores share; see `CheckpointDialect`."""
    return CheckpointDialect(table_prefix, kind, search=search, search_parser=search_parser)
