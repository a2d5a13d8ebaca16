"""The idempotency ledger of a family: one table with the tokens of writes that were carried out.

A write stores a random token in its own transaction. If the answer to the write is lost, the engine looks for the token
before it repeats the write; and a duplicate of its packet that arrives late fails by the primary key. Every family has
a ledger table of its own with this layout, and these statements.
"""

from __future__ import annotations

from typing import NamedTuple

from .schema import Table
from .statement import Param, Query, Statement
from .template import Statements

#: ``outcome`` is the answer of the write, if it has one.
DEFINITION = """
(
  tenant      VARCHAR(128) NOT NULL,
  token       BINARY(16)   NOT NULL,
  outcome     BIGINT       NULL,
  recorded_at DATETIME(6)  NOT NULL,
  PRIMARY KEY (tenant, token),
  KEY age (recorded_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin
"""

#: Seconds for which a write that was carried out can be recognised. No write is repeated for that long: see
#: ``retry_deadline_s``.
RETENTION_S = 900

#: `Ledger.forget_old` removes at most this many tokens.
FORGOTTEN_AT_ONCE = 1_000

# The number of rows that the statement before this one affected. A server that fails to send an answer, because the
# connection broke, carries out the rest of the packet; but after the first statement whose answer it fails to send,
# ROW_COUNT() is -1 instead of that number. So -1 undoes the batch, with error 3141; the client repeats it.
AFFECTED = "(ROW_COUNT() + JSON_LENGTH(IF(ROW_COUNT() >= 0, '[]', '')))"

RECORD = "INSERT INTO {ledger} (tenant, token, recorded_at) VALUES (%s, %s, UTC_TIMESTAMP(6))"

# The statement before it must be an INSERT, UPDATE or DELETE.
RECORD_AFFECTED = """
INSERT INTO {ledger} (tenant, token, outcome, recorded_at) VALUES (%s, %s, {AFFECTED}, UTC_TIMESTAMP(6))
"""

# The outcome is an aggregate, so that there is exactly one row. It is no subquery: see docs/design/writes.md.
RECORD_OUTCOME = """
INSERT INTO {ledger} (tenant, token, outcome, recorded_at)
SELECT %s, %s, {outcome}, UTC_TIMESTAMP(6)
  FROM {rows}
"""

RECORD_KNOWN = "INSERT INTO {ledger} (tenant, token, outcome, recorded_at) VALUES (%s, %s, %s, UTC_TIMESTAMP(6))"

# A token may be in the ledger already: copied rows have the tokens of their source.
RECORD_EACH = """
INSERT INTO {ledger} (tenant, token, recorded_at)
{select}
    ON DUPLICATE KEY UPDATE recorded_at = UTC_TIMESTAMP(6)
"""

FIND = "SELECT l.outcome FROM {ledger} l WHERE l.tenant = %s AND l.token = %s"

# Relies on the index age.
FORGET_OLD = "DELETE FROM {ledger} WHERE recorded_at < UTC_TIMESTAMP(6) - INTERVAL {RETENTION_S} SECOND LIMIT %s"

COUNT = "SELECT COUNT(*) FROM {ledger}"
COUNT_OF_TENANT = "SELECT COUNT(*) FROM {ledger} WHERE tenant = %s"


def table(name: str) -> Table:
    """The table of a ledger under this unquoted name."""
    return Table(name, DEFINITION.strip())


class OutcomeRow(NamedTuple):
    """The outcome of a write, if it has one; see `FIND`."""

    outcome: int | None


class CountRow(NamedTuple):
    """The number of tokens; see `COUNT`."""

    tokens: int


class Ledger(Statements):
    """Recording the tokens of writes, finding them, and forgetting them after `RETENTION_S`."""

    def record(self, tenant: str, token: bytes) -> Statement:
        """Record the token of a write without an outcome. Fails with error 1062 if it is in the ledger."""
        return Statement(self._text(RECORD), (tenant, token))

    def record_affected(self, tenant: str, token: bytes) -> Statement:
        """Record the token of a write whose outcome is the number of rows that the statement before this affected.

        That statement is an INSERT, UPDATE or DELETE. Undoes the batch if the server does not know the number.
        """
        return Statement(self._text(RECORD_AFFECTED), (tenant, token))

    def record_known(self, tenant: str, token: bytes, outcome: int) -> Statement:
        """Record the token of a write with an outcome that the client knows."""
        return Statement(self._text(RECORD_KNOWN), (tenant, token, outcome))

    def _record_outcome(
        self, tenant: str, token: bytes, outcome: str, rows: str, params: tuple[Param, ...], **pieces: str
    ) -> Statement:
        """Record the token of a write with its outcome.

        Args:
            tenant: The tenant of the write.
            token: The token.
            outcome: A constant: an aggregate of the rows, a whole number or NULL.
            rows: A constant: the tables and conditions after FROM.
            params: The parameters of the rows.
            pieces: The pieces of the rows.
        """
        return Statement(self._text(RECORD_OUTCOME, outcome=outcome, rows=rows, **pieces), (tenant, token, *params))

    def _record_each(self, select: str, params: tuple[Param, ...], **pieces: str) -> Statement:
        """Record tokens that a SELECT finds; those that are in the ledger count as recorded now.

        Args:
            select: A constant. Its columns are a tenant, a token and the time.
            params: Its parameters.
            pieces: Its pieces.
        """
        return Statement(self._text(RECORD_EACH, select=select, **pieces), params)

    def find(self, tenant: str, token: bytes) -> Query[OutcomeRow]:
        """The outcome of a write: one row if its token is in the ledger, else none."""
        return Query(self._text(FIND), (tenant, token), row=OutcomeRow)

    def forget_old(self) -> Statement:
        """Remove up to `FORGOTTEN_AT_ONCE` tokens of writes that can no longer be repeated, of all tenants."""
        return Statement(self._text(FORGET_OLD), (FORGOTTEN_AT_ONCE,))

    def count(self, tenant: str | None = None) -> Query[CountRow]:
        """The number of tokens of a tenant, or of all tenants."""
        text, params = (COUNT, ()) if tenant is None else (COUNT_OF_TENANT, (tenant,))
        return Query(self._text(text), params, row=CountRow)
