"""The pieces that calls give to the statements of transcripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locus_mysql.families.transcripts.statements import reading, writing
from locus_mysql.families.transcripts.statements.tables import transcript_dialect

PACKAGE = "locus_mysql.families.transcripts"
DIALECT = transcript_dialect("p_")

#: See `every_statement`.
PIECES: Mapping[tuple[str, str], Sequence[str]] = {
    ("ITEMS", "range"): (
        "",
        reading.AFTER + reading.BEFORE + reading.UNTIL,
        " AND (i.seq BETWEEN :first_0 AND :last_0 OR i.seq >= :first_1)",
    ),
    ("ITEMS", "direction"): (" DESC", ""),
    ("ITEMS", "offset"): ("", reading.OFFSET),
    ("LIST", "state"): ("t.state", "NULL"),
    ("LIST", "order"): (reading.BY_KEY, reading.NEWEST_FIRST),
    ("LIST", "limit"): ("", reading.LIMIT),
    ("LIST", "conditions"): (
        "",
        reading.IN_COLLECTION
        + reading.NAMED
        + reading.IN_SCOPE
        + reading.BEGINS
        + reading.UNDIVIDED
        + reading.MAIN
        + reading.AFTER_KEY,
    ),
    ("LOCK", "expiry"): (writing.NEVER, writing.AFTER),
    ("LOCK", "later"): (writing.REPLACED, writing.LATEST),
    ("", "which"): ("{KEY}", "{GROUP}"),
}
