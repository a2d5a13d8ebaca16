"""No statement takes the NULL of a subquery that did not run, because the statement was killed, for its value."""

from __future__ import annotations

import pytest

from .every_statement import every_statement
from .subqueries import unreported

REPORTED_BY_LAST_ROW = "the row after those found reports the kill"
SHOWN = "the inspector shows one value less, once"
TWO_FAULTS = "it finds a late duplicate of a write, which would have to be killed, too"

#: The statements that have such subqueries, and why each is accepted.
ACCEPTED = {
    "checkpoints removing.GUARD_DELETE": TWO_FAULTS,
    "checkpoints saving.GUARD_SAVE": TWO_FAULTS,
    "checkpoints threads.GUARD_ONCE": TWO_FAULTS,
    "graphs threads.BEGIN_EPOCH": "the thread keeps the time of an earlier save",
    "graphs inspection.HISTORY": SHOWN,
    "graphs saving.INSERT": TWO_FAULTS,
    "graphs saving.INSERT_PARTS": "a part without a number fails, error 1048",
    "graphs saving.INSERT_SHARING": "the save goes on under the thread's lock",
    "graphs inspection.MARKERS": "a page refreshes once more",
    "graphs threads.PAGE": "it reads more rows to find the same",
    "graphs saving.REPLACE": TWO_FAULTS,
    "graphs saving.TAKE_SEQ_IN_EPOCH": "the save reads its base, and is repeated",
    "memories inspection.ITEM": SHOWN,
    "memories vectors.ADD": "an embedding without a stamp fails, error 1048",
    "memories vectors.PURGE": "a later maintenance removes the rows",
    "memu restore_item": "a copy stores one item without the link to its resource",
    "transcripts reading.SIZES": REPORTED_BY_LAST_ROW,
    "transcripts reading.ITEMS": REPORTED_BY_LAST_ROW,
}

A = "(SELECT x.a FROM `p_x` x WHERE x.b = %s)"


def test_a_kill_is_reported_by_every_statement() -> None:
    found = {f"{folder} {name}" for folder, name, statement in every_statement() if unreported(statement.sql)}
    assert found == {*ACCEPTED}


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {A}",
        f"SELECT t.b, COALESCE({A}, 0) FROM `p_t` t",
        f"SELECT CAST(IF({A} = %s, '1', '') AS JSON)",
        f"SELECT EXISTS {A}",
        f"SELECT 1 FROM `p_t` t WHERE t.a = {A}",
        f"SELECT 1 FROM `p_t` t JOIN `p_u` u ON u.a >= {A}",
        f"DELETE FROM `p_t` WHERE EXISTS {A}",
        f"INSERT INTO `p_t` (a) VALUES ({A})",
        f"INSERT INTO `p_t` (a) SELECT {A}",
        f"INSERT INTO `p_t` (a) VALUES (1) ON DUPLICATE KEY UPDATE a = {A}",
        f"(SELECT 1) UNION ALL (SELECT {A})",
    ],
)
def test_a_subquery_whose_null_is_taken_for_its_value_is_found(sql: str) -> None:
    assert len(unreported(sql)) == 1


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT MAX({A})",
        f"SELECT CAST(IF(MAX(NOT EXISTS {A}), '1', '') AS JSON)",
        f"SELECT x.a FROM {A} AS x",
        f"SELECT d.a FROM `p_t` t JOIN LATERAL {A} AS d",
        f"WITH x AS {A} SELECT x.a FROM x",
        f"DELETE FROM `p_t` WHERE NOT EXISTS {A}",
        f"UPDATE `p_t` SET a = {A}",
        "SELECT 1 FROM `p_t` t WHERE EXISTS (SELECT 1 FROM `p_x` x WHERE x.a = t.a)",
    ],
)
def test_one_that_mysql_reads_as_a_table_or_checks_for_a_kill_is_not(sql: str) -> None:
    assert unreported(sql) == []
