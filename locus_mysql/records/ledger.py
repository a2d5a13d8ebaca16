"""The idempotency ledger of a family: one table with the tokens of writes that were carried out.

A write stores a random token in its own transaction. If the answer to the write is lost, the engine looks for the token
before it repeats the write; and a duplicate of its packet that arrives late fails by the primary key. Every family has
a ledger table of its own, with the role ``ledger``, and these statements and operations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from random import random
from typing import NamedTuple

from ..dialect import Query, Statement
from ..dialect.schema import Table
from ..dialect.sql import SQL, Dialect, Select
from ..engine.logs import HOUSEKEEPING, loggable
from ..engine.operation import IN_TRANSACTION, Batch, Operation, Results
from ..errors import LocusMySQLError

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

#: On average, one write in this number does housekeeping, unless its family has another number.
HOUSEKEEPING_EVERY = 64

#: The number of tokens that `FORGET_OLD` removes at most.
FORGOTTEN_AT_ONCE = 1_000


class OutcomeRow(NamedTuple):
    """The outcome of a write, if it has one."""

    outcome: int | None


class CountRow(NamedTuple):
    """The number of tokens."""

    tokens: int


#: Records the token of a write without an outcome. Fails with error 1062 if it is in the ledger.
RECORD = SQL("INSERT INTO {ledger} (tenant, token, recorded_at) VALUES (:tenant, :token, UTC_TIMESTAMP(6))")

#: Records the token of a write whose outcome is the number of rows that the statement before this affected: an INSERT,
#: UPDATE or DELETE. Undoes the batch if the server does not know the number.
RECORD_AFFECTED = SQL("""
INSERT INTO {ledger} (tenant, token, outcome, recorded_at) VALUES (:tenant, :token, {AFFECTED}, UTC_TIMESTAMP(6))
""")

#: The outcome of a write: one row if its token is in the ledger, else none.
FIND = Select("SELECT l.outcome FROM {ledger} l WHERE l.tenant = :tenant AND l.token = :token", OutcomeRow)

#: Removes tokens of writes that can no longer be repeated, of all tenants, a limited number. Relies on the index age.
FORGET_OLD = SQL("""
DELETE FROM {ledger} WHERE recorded_at < UTC_TIMESTAMP(6) - INTERVAL {RETENTION_S} SECOND LIMIT :limit
""")

#: The number of tokens of all tenants, and of one.
COUNT = Select("SELECT COUNT(*) FROM {ledger}", CountRow)
COUNT_OF_TENANT = Select("SELECT COUNT(*) FROM {ledger} WHERE tenant = :tenant", CountRow)

#: Seconds after which a job that was not claimed again counts as ended.
CLAIMED_S = 30

#: Claims a job for a holder, unless another one has claimed it lately: a row of no tenant, which expires like a token.
#: The assignments run left to right.
CLAIM = SQL("""
INSERT INTO {ledger} (tenant, token, outcome, recorded_at) VALUES ('', :job, :holder, UTC_TIMESTAMP(6))
    ON DUPLICATE KEY UPDATE
       outcome     = IF(recorded_at < UTC_TIMESTAMP(6) - INTERVAL :claimed_s SECOND, :holder, outcome),
       recorded_at = IF(outcome = :holder, UTC_TIMESTAMP(6), recorded_at)
""")


def table(name: str) -> Table:
    """Return the table of a ledger under this unquoted name."""
    return Table(name, DEFINITION.strip())


def record_outcome(outcome: str, rows: str) -> SQL:
    """Return a statement that records the token of a write with its outcome.

    Args:
        outcome: An aggregate of the rows, so that there is exactly one; no subquery: see docs/design/writes.md.
        rows: The tables and conditions after FROM.
    """
    return SQL(f"""
INSERT INTO {{ledger}} (tenant, token, outcome, recorded_at)
SELECT :tenant, :token, {outcome}, UTC_TIMESTAMP(6)
  FROM {rows}
""")  # noqa: S608 - constants


def record_each(select: str) -> SQL:
    """Return a statement that records the tokens that a SELECT finds; one in the ledger counts as recorded now.

    Args:
        select: Its columns are a tenant, a token and the time. Copied rows have the tokens of their source.
    """
    return SQL(f"""
INSERT INTO {{ledger}} (tenant, token, recorded_at)
{select}
    ON DUPLICATE KEY UPDATE recorded_at = UTC_TIMESTAMP(6)
""")


def affected_rows(results: Results, statement: Statement, outcome_query: Query[OutcomeRow]) -> int:
    """Return the number of rows that a statement affected, in this or an earlier attempt of its batch.

    Args:
        results: The results of the batch.
        statement: A statement of the batch, which is followed by `RECORD_AFFECTED`.
        outcome_query: `Batch.outcome_query`.
    """
    if results.earlier_attempt is None:
        return results.of(statement).affected
    return results.rows(outcome_query)[0].outcome or 0


def in_passing(housekeeping: Callable[[], Operation[object]], *, every: int = HOUSEKEEPING_EVERY) -> Operation[None]:
    """Run housekeeping after one in ``every`` writes."""
    if one_in(every):
        yield from logged(housekeeping())


def logged(housekeeping: Operation[object]) -> Operation[None]:
    """Run housekeeping after a write, which is complete by then: a failure is only logged, and repeated later."""
    try:
        yield from housekeeping
    except LocusMySQLError as error:
        HOUSEKEEPING.warning("A write was stored, but the housekeeping after it failed: %s.", loggable(error))


def one_in(count: int) -> bool:
    """Return True in one of ``count`` calls, at random.

    A counter would never reach ``count`` in processes that stop after a few writes. Always False in a program's own
    transaction, which must not lock what it did not ask for.
    """
    return not IN_TRANSACTION.get() and random() * count < 1  # noqa: S311 - spreads work, guards no secret


def forget_some(dialect: Dialect) -> Batch:
    """Return a batch that removes some tokens that no write is repeated with any more."""
    return Batch.of(FORGET_OLD(dialect, limit=FORGOTTEN_AT_ONCE))


def forget_old_tokens(dialect: Dialect) -> Operation[int]:
    """Remove the tokens of all tenants that no write is repeated with any more; return their number."""
    removed = 0
    while True:
        (forgotten,) = yield forget_some(dialect)
        removed += forgotten.affected
        if forgotten.affected < FORGOTTEN_AT_ONCE:
            return removed


def claim(dialect: Dialect, job: str, holder: int) -> Operation[bool]:
    """Claim a job on the tables of a family for `CLAIMED_S`; False if another holder has it. One round trip.

    It saves work, and nothing relies on it: what a job removes, it removes in transactions that check their conditions.

    Args:
        dialect: The family's.
        job: Its name.
        holder: A random number.
    """
    token = hashlib.sha256(job.encode()).digest()[:16]
    find = FIND(dialect, tenant="", token=token)
    results = yield Batch.of(CLAIM(dialect, job=token, holder=holder, claimed_s=CLAIMED_S), find)
    return any(row.outcome == holder for row in results.rows(find))
