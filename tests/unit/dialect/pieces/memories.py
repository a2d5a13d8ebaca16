"""The pieces that calls give to the statements of memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locus_mysql.dialect.words import WordSearch
from locus_mysql.families.memories.statements import items, vectors
from locus_mysql.families.memories.statements.tables import MemoryDialect, Range

PACKAGE = "locus_mysql.families.memories"
DIALECT = MemoryDialect("p_")

#: See `every_statement`.
PIECES: Mapping[tuple[str, str], Sequence[str]] = {
    ("", "range"): (Range(b"a").condition("i"), Range(b"a", exact=True).condition("i"), ""),
    ("_NEAR", "range"): (Range(b"a").owned("s"), Range(b"a", exact=True).owned("s")),
    ("", "filter"): ("", " AND i.version > :value_0 AND i.version < :metadata_0"),
    ("", "gone"): ("", vectors._GONE),
    ("REMOVE_SIGNS", "gone"): ("", vectors._GONE_OF_SIGNS),
    ("", "locking"): ("", " FOR UPDATE SKIP LOCKED"),
    ("", "of_tenant"): ("", " AND i.tenant = :tenant"),
    ("_LIST", "after"): ("", items._OLDER),
    ("_PAGE", "after"): ("", vectors._AFTER, items._AFTER),
    ("LOOSE", "limit"): ("", " LIMIT :limit"),
    ("", "loose"): ("SELECT 1",),
    ("_STATE", "more"): ("", vectors._KNOWN_TOKENS + vectors._CHANGES, vectors._EMBEDDINGS),
    ("_STATE", "since"): ("v.path = :path0 AND v.stamp > :stamp0",),
    ("_STATE", "of_vectors"): (Range(b"a").condition("v"), ""),
    ("_NEAR", "join"): ("", vectors._ITEMS_OF_SIGNS),
    **{("_NEAR", name): (text,) for name, text in vectors._distance_by_parts(16).items()},
    **{("_NEAR", name): ("64",) for name in ("buffer", "other_model", "place")},
    ("_WORDS", "waiting"): ("", items._WAITING),
    **{("_WORDS", name): (text,) for name, text in WordSearch("t", ["a", "b c"], "default", "i").pieces.items()},
}
