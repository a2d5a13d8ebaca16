"""The pieces that calls give to the statements of working."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locus_mysql.families.working.statements import reading, writing
from locus_mysql.families.working.statements.tables import working_dialect

PACKAGE = "locus_mysql.families.working"
DIALECT = working_dialect("p_")

#: See `every_statement`.
PIECES: Mapping[tuple[str, str], Sequence[str]] = {
    ("", "condition"): (
        reading.NAMED,
        reading.OF_VARIABLES,
        reading.EXPIRING,
        reading.NAMES_AND_TASK,
        reading.LAST_NOTES,
        reading.EVERYTHING,
    ),
    ("KEEP", "condition"): (writing.OF_NAMES, writing.UP_TO),
    ("SESSIONS", "conditions"): ("", reading.LIKE),
    ("ADVANCE", "assignments"): ("stamp = :new_stamp, kept = :new_kept",),
    ("RECORD", "more"): ("", writing.RECORD_OTHERS),
    ("REMOVE_FROM", "table"): writing.OTHER_TABLES,
}
