"""The tables of checkpoints of one kind by their names, and the pieces of SQL that the statements share."""

from __future__ import annotations

from functools import lru_cache

from ....dialect.dialect import Dialect
from ....dialect.words import Parser, pieces_of
from .tables import Kind, checkpoint_schema, table_names

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
