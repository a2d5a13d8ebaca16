"""The idempotency ledger of working memory: the outcomes of its writes."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ledger
from ..statement import Statement
from ..variants import OCEANBASE
from .entries import ALL
from .pieces import SessionKey, named

# The number of rows. Also set as LAST_INSERT_ID, so that the answer carries it.
NUMBER_OF_ROWS = "LAST_INSERT_ID(COUNT(*))"

# In a transaction, the answer to INSERT … SELECT carries no LAST_INSERT_ID there; the answer to VALUES does.
OCEANBASE.instead_of(
    ledger.RECORD_OUTCOME,
    """
INSERT INTO {ledger} (tenant, token, outcome, recorded_at)
VALUES (%s, %s, LAST_INSERT_ID((SELECT {outcome} FROM {rows})), UTC_TIMESTAMP(6))
""",
    {NUMBER_OF_ROWS: "COUNT(*)"},
)

# The entries that the write will remove.
ENTRIES = """{sessions} s STRAIGHT_JOIN {listed}
       {entries} e ON {OF_SESSION} AND e.kind = %s AND {names} AND {LIVE_ENTRY}
 WHERE s.tenant = %s AND s.session_id = %s"""

# One row if a variable is as expected, so has this canonical form or (expected: none) does not exist; else none.
MATCH = """{sessions} s
  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = %s AND {LIVE_ENTRY}
 WHERE s.tenant = %s AND s.session_id = %s AND {expected}"""

# The numeric value of a variable.
NUMBER = "MAX(CAST(CONVERT(e.value USING ascii) AS SIGNED))"
VARIABLE = """{sessions} s
  JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = %s
 WHERE s.tenant = %s AND s.session_id = %s"""

# One row if a checkpoint exists, else none.
CHECKPOINT = """{sessions} s
  JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
 WHERE s.tenant = %s AND s.session_id = %s AND c.checkpoint_id = %s"""


class WorkingLedger(ledger.Ledger):
    """The ledger, and recording the outcomes of writes."""

    def record_count(
        self, key: SessionKey, token: bytes, kind: int, names: Sequence[str] | None = None, as_json: str = ""
    ) -> Statement:
        """Record the token of a write whose outcome is the number of entries that it will remove."""
        which = named(names, as_json) if names is not None else ALL
        params = (*which.table_params, kind, *which.params, *key)
        return self._record_outcome(key.tenant, token, NUMBER_OF_ROWS, ENTRIES, params, **which.pieces)

    def record_match(self, key: SessionKey, token: bytes, name: str, canonical: bytes | None) -> Statement:
        """Record the token of a write whose outcome is whether a variable is as expected."""
        expected = "e.name IS NULL" if canonical is None else "e.canonical = %s AND {SOUND}"
        params = (name, *key, *(() if canonical is None else (canonical,)))
        return self._record_outcome(key.tenant, token, NUMBER_OF_ROWS, MATCH, params, expected=expected)

    def record_number(self, key: SessionKey, token: bytes, name: str) -> Statement:
        """Record the token of a write whose outcome is a variable's new numeric value."""
        return self._record_outcome(key.tenant, token, NUMBER, VARIABLE, (name, *key))

    def record_existence(self, key: SessionKey, token: bytes, checkpoint_id: str) -> Statement:
        """Record the token of a write whose outcome is whether a checkpoint exists."""
        return self._record_outcome(key.tenant, token, NUMBER_OF_ROWS, CHECKPOINT, (*key, checkpoint_id))
