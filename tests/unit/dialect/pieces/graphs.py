"""The pieces that calls give to the statements of graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locus_mysql.families.graphs.statements import inspection, loading, removing, saving, threads
from locus_mysql.families.graphs.statements.tables import graph_dialect

PACKAGE = "locus_mysql.families.graphs"
DIALECT = graph_dialect("p_")

#: See `every_statement`.
PIECES: Mapping[tuple[str, str], Sequence[str]] = {
    ("PAGE", "which"): ("", threads.AFTER, threads.MATCHING),
    ("", "base"): ("", "{BASE_IS_THERE}"),
    ("", "cached"): ("", loading.NOT_CACHED),
    ("READ_ONE", "chosen"): (loading.NEWEST, loading.NAMED),
    ("READ_SEVERAL", "chosen"): (loading.SEVERAL, loading.SEVERAL),
    ("READ_SEVERAL", "conditions"): ("", "".join(loading.CONDITIONS.values())),
    ("", "conditions"): ("", "".join(inspection.CONDITIONS.values())),
    ("", "holds"): ("", inspection.HOLDS),
    ("", "namespace"): ("", removing.OF_NAMESPACE),
    ("", "number"): (saving.IF_TAKEN, saving.UNLESS_RECORDED),
    ("", "table"): ("{checkpoints}", "{parts}"),
    ("", "task"): ("", loading.OF_TASK),
    ("", "then"): (saving.KEEP, saving.KEEP_FIRST, saving.KEEP_LAST),
}
