"""The pieces that calls give to the statements of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locus_mysql.dialect.words import WordSearch
from locus_mysql.families.checkpoints import estimates
from locus_mysql.families.checkpoints.statements import (
    inspection,
    loading,
    queries,
    removing,
    saving,
)
from locus_mysql.families.checkpoints.statements.tables import checkpoint_dialect

PACKAGE = "locus_mysql.families.checkpoints"
DIALECT = checkpoint_dialect("p_")

_ALL, _SOME = (
    inspection.Which(),
    inspection.Which(before_seq=5, checkpoint_id="c", saved_by="2026-01-01"),
)
_SEARCHES = (
    WordSearch("tenant", ["tea"], "default", "c").pieces,
    WordSearch("tenant", ["tea", "green tea"], "default", "c").pieces,
    WordSearch("tenant", ["tea", "green tea"], "ngram", "c").pieces,
)

#: See `every_statement`.
PIECES: Mapping[tuple[str, str], Sequence[str]] = {
    ("INSERT_AFTER", "base_seq"): (saving.WITH_BASE["base_seq"], "t.last_seq"),
    ("", "base"): (saving.WITH_BASE["base"], ""),
    ("GET_METADATA", "which"): (loading.OF_NEWEST["which"], loading.OF_NAMED["which"]),
    **{("LOAD_ALL", name): (loading.OF_NEWEST[name], loading.OF_NAMED[name]) for name in loading.OF_NAMED},
    ("", "rows"): (removing.ALL_HOLLOW["rows"], removing.HOLLOW_AND_ABOVE["rows"]),
    ("FIND_BY_METADATA", "after"): ("", queries.AFTER_CHECKPOINT),
    ("LOAD_BY_METADATA", "after"): ("", queries.AFTER_CHECKPOINT),
    ("LOAD_NEWEST_OF_EACH", "after"): ("", queries.AFTER_THREAD),
    ("INDEX_PENDING", "locking"): ("", queries.SKIP_LOCKED["locking"]),
    **{("_SEARCH", name): tuple(one.get(name, "") for one in _SEARCHES) for name in _SEARCHES[1]},
    ("_SEARCH", "bound"): ("", " LIMIT 5"),
    ("_SEARCH", "waiting"): ("", queries._WAITING),
    ("ESTIMATE", "range"): (*estimates.RANGES.values(), estimates.BEGINNING),
    **{("", name): (_ALL.pieces[name], _SOME.pieces[name]) for name in _ALL.pieces},
}
