"""The pieces that calls give to the statements of graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locus_mysql.families.graphs.statements import inspection, loading, moving, removing, saving, threads
from locus_mysql.families.graphs.statements.dialect import graph_dialect

PACKAGE = "locus_mysql.families.graphs"
DIALECT = graph_dialect("p_")

#: See `every_statement`.
PIECES: Mapping[tuple[str, str], Sequence[str]] = {
    ("", "after"): ("", threads.AFTER),
    ("", "base"): ("", "{BASE_IS_THERE}"),
    ("", "chosen"): (loading.NEWEST, loading.NAMED, loading.SEVERAL, moving.NEXT),
    ("", "conditions"): ("",),
    ("", "holds"): ("", inspection.HOLDS),
    ("", "known"): ("", loading.NOT_KNOWN),
    ("", "namespace"): ("", removing.OF_NAMESPACE),
    ("", "number"): (saving.IF_TAKEN, saving.UNLESS_RECORDED),
    ("", "table"): ("{checkpoints}", "{parts}"),
    ("", "task"): ("", loading.OF_TASK),
    ("", "then"): (saving.KEEP, saving.KEEP_FIRST, saving.KEEP_LAST),
}
