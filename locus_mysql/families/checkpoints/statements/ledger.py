"""Statements that record tokens of checkpoints in the idempotency ledger.

A repeated save is detected by its token in the row that it wrote. So an operation that replaces, prunes or deletes a
row records the token of the row; and a delete, a copy or a rewrite records a token of its own.
"""

from __future__ import annotations

from ....dialect.sql import SQL, Select
from ....records.ledger import OutcomeRow, record_each
from .threads import guard_once

#: Records the first token if `threads.LOCK_ANY` found a thread that has not expired, else the second. No statement in
#: between changes LAST_INSERT_ID().
RECORD_EITHER = SQL("""
INSERT INTO {ledger} (tenant, token, recorded_at)
VALUES (:tenant, IF(LAST_INSERT_ID() = 1, :token, :token_if_expired), UTC_TIMESTAMP(6))
""")

#: One row if an operation recorded one of these tokens, else none. The row is 1 for the first token.
FIND_EITHER = Select(
    "SELECT l.token = :token FROM {ledger} l WHERE l.tenant = :tenant AND l.token IN (:token, :token_if_expired)",
    OutcomeRow,
)

GUARD_DELETE = guard_once(FIND_EITHER)

# Statements that record the tokens of checkpoints whose ids are about to be removed, if the checkpoints are so young
# that a repeated save might insert them again.

_TOKENS = "SELECT c.tenant, c.token, UTC_TIMESTAMP(6)\n  FROM {checkpoints} c"
_WITH_THREAD = "\n  JOIN {threads} t ON t.tenant = c.tenant AND t.thread_id = c.thread_id"
_OF_NAMED = f"{_TOKENS}\n WHERE {{KEY.c}} AND c.checkpoint_id = :checkpoint_id AND {{YOUNG}}"

#: Of all checkpoints of a thread.
RECORD_ALL = record_each(f"{_TOKENS}\n WHERE {{KEY.c}} AND c.checkpoint_id IS NOT NULL AND {{YOUNG}}")

RECORD_NAMED = record_each(_OF_NAMED)

#: The same for a delete. If there is such a checkpoint, the token of the delete is recorded, too.
RECORD_DELETED = record_each(f"""{_OF_NAMED}
 UNION ALL
SELECT c.tenant, :token, UTC_TIMESTAMP(6)
  FROM {{checkpoints}} c
 WHERE {{KEY.c}} AND c.checkpoint_id = :checkpoint_id
""")

#: Of all but the newest checkpoints of a thread, whose ids `removing.CLEAR_OLDER_IDS` clears.
RECORD_OLDER = record_each("""SELECT c.tenant, c.token, UTC_TIMESTAMP(6)
  FROM (SELECT tenant, token, created_at FROM {checkpoints}
         WHERE {KEY} AND checkpoint_id IS NOT NULL AND continues <> 2
         ORDER BY seq DESC LIMIT 1000000 OFFSET :keep) AS c
 WHERE {YOUNG}
""")

#: Of remaining rows from before an expiry.
RECORD_LEFT_BEHIND = record_each(f"""{_TOKENS}{_WITH_THREAD}
 WHERE {{KEY.c}} AND c.seq < t.first_seq AND c.checkpoint_id IS NOT NULL AND {{YOUNG}}
""")

#: Of a thread that has expired.
RECORD_EXPIRED = record_each(f"""{_TOKENS}{_WITH_THREAD}
 WHERE {{KEY.c}} AND t.expires_at <= UTC_TIMESTAMP(6) AND c.checkpoint_id IS NOT NULL AND {{YOUNG}}
""")
