"""The idempotency ledger of working memory: the outcomes of its writes."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ledger
from ..statement import Statement
from .entries import ALL
from .pieces import SessionKey, named

# The number of entries that the write will remove. Also set as LAST_INSERT_ID, so that the answer carries it.
COUNT = """LAST_INSERT_ID((SELECT COUNT(*) FROM {sessions} s STRAIGHT_JOIN {listed}
                       {entries} e ON {OF_SESSION} AND e.kind = %s AND {names} AND {LIVE_ENTRY}
                 WHERE s.tenant = %s AND s.session_id = %s))
"""

# 1 if a variable is as expected, so has this canonical form or (expected: none) does not exist;
# else 0. Also LAST_INSERT_ID.
MATCH = """LAST_INSERT_ID((SELECT COUNT(*) FROM {sessions} s
                  LEFT JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = %s AND {LIVE_ENTRY}
                 WHERE s.tenant = %s AND s.session_id = %s AND {expected}))
"""

# The numeric value of a variable.
NUMBER = """(SELECT CAST(CONVERT(e.value USING ascii) AS SIGNED)
   FROM {sessions} s JOIN {entries} e ON {OF_SESSION} AND e.kind = 1 AND e.name = %s
  WHERE s.tenant = %s AND s.session_id = %s)
"""

# 1 if a checkpoint exists, else 0. Also LAST_INSERT_ID.
EXISTS = """LAST_INSERT_ID(EXISTS (SELECT 1 FROM {sessions} s
                         JOIN {checkpoints} c ON c.tenant = s.tenant AND c.sid = s.sid
                        WHERE s.tenant = %s AND s.session_id = %s AND c.checkpoint_id = %s))
"""


class WorkingLedger(ledger.Ledger):
    """The ledger, and recording the outcomes of writes."""

    def record_count(
        self, key: SessionKey, token: bytes, kind: int, names: Sequence[str] | None = None, as_json: str = ""
    ) -> Statement:
        """Record the token of a write whose outcome is the number of entries that it will remove."""
        which = named(names, as_json) if names is not None else ALL
        params = (*which.table_params, kind, *which.params, *key)
        return self._record_outcome(key.tenant, token, COUNT, params, **which.pieces)

    def record_match(self, key: SessionKey, token: bytes, name: str, canonical: bytes | None) -> Statement:
        """Record the token of a write whose outcome is whether a variable is as expected."""
        expected = "e.name IS NULL" if canonical is None else "e.canonical = %s AND {SOUND}"
        params = (name, *key, *(() if canonical is None else (canonical,)))
        return self._record_outcome(key.tenant, token, MATCH, params, expected=expected)

    def record_number(self, key: SessionKey, token: bytes, name: str) -> Statement:
        """Record the token of a write whose outcome is a variable's new numeric value."""
        return self._record_outcome(key.tenant, token, NUMBER, (name, *key))

    def record_existence(self, key: SessionKey, token: bytes, checkpoint_id: str) -> Statement:
        """Record the token of a write whose outcome is whether a checkpoint exists."""
        return self._record_outcome(key.tenant, token, EXISTS, (*key, checkpoint_id))
