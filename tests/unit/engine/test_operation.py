"""Batches: their results by name, and what is sent of them."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.dialect import Statement
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.operation import Batch, Duplicate, Outdated, Results
from locus_mysql.engine.transaction import BEGIN, COMMIT, is_transaction, to_return, to_send

ONE, TWO, THREE = (Statement(f"SELECT {number}") for number in (1, 2, 3))
SAME = Statement("SELECT 2")
WRITE = Statement("INSERT INTO t VALUES (1)")


def results(count: int) -> list[Result]:
    return [Result(affected=number) for number in range(count)]


def test_results_are_found_by_the_place_of_the_very_statement() -> None:
    batch = Batch.named(ONE, (SAME, TWO), THREE, landed=WRITE, two=TWO, three=THREE)
    assert batch.statements == (ONE, SAME, TWO, THREE)
    assert batch.landed is WRITE
    found = Results(results(4), batch.names)
    assert (found.named("two").affected, found.named("three").affected) == (2, 3)


def test_a_batch_is_one_transaction_unless_it_is_one_statement_or_is_not_to_be() -> None:
    for batch, one in (
        (Batch.of(ONE, TWO), True),
        (Batch.of(ONE, TWO, THREE), True),
        (Batch.named(ONE, TWO), True),
        (Batch.of(ONE), False),
        (Batch.query(ONE), False),
        (Batch((ONE, TWO), atomic=False), False),
    ):
        assert is_transaction(batch) is one
        assert to_send(batch) == ((BEGIN, *batch.statements, COMMIT) if one else batch.statements)
        came = results(len(to_send(batch)))
        returned = to_return(batch, came, fate_unknown=one)
        assert list(returned) == (came[1:-1] if one else came)
        assert returned.fate_unknown is one
        assert returned.landed is None


@pytest.mark.parametrize(
    ("batch", "feeds_no_save", "only_reads"),
    [
        (Batch.of(ONE), False, True),
        (Batch.query(ONE), True, True),
        (Batch((ONE, WRITE)), False, False),
        (Batch.of(Statement("WHATEVER")), False, False),
    ],
)
def test_what_a_secondary_may_answer_is_said_of_a_batch(batch: Batch, feeds_no_save: bool, only_reads: bool) -> None:
    assert (batch.feeds_no_save, batch.only_reads) == (feeds_no_save, only_reads)


def test_what_undid_a_batch_has_the_server_s_words() -> None:
    undone: Any = Duplicate("t", "PRIMARY", "its words")
    assert (str(undone), undone.table, undone.key) == ("its words", "t", "PRIMARY")
    assert str(Outdated("its words")) == "its words"
    assert not Outdated("its words").fate_unknown
    assert Outdated("its words", fate_unknown=True).fate_unknown
    assert not Results((), {}).fate_unknown
