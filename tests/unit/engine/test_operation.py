"""Batches: their results by statement, and their properties."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import pytest

from locus_mysql.dialect import Query, Statement
from locus_mysql.drivers.interface import Result
from locus_mysql.engine import operation
from locus_mysql.engine.operation import Batch, Duplicate, Outdated, Results, fetch
from locus_mysql.errors import CorruptCheckpoint

ONE, TWO, THREE = (Statement(f"SELECT {number}") for number in (1, 2, 3))
SAME = Statement("SELECT 2")
WRITE = Statement("INSERT INTO t VALUES (1)")


def results(count: int) -> list[Result]:
    return [Result(affected=number) for number in range(count)]


class Thread(NamedTuple):
    thread_id: str
    expires_at: datetime | None


THREADS = Query("SELECT thread_id, expires_at FROM t", row=Thread)


def run(query: Query[Thread], result: Result) -> list[Thread]:
    fetching = fetch(query)
    batch = next(fetching)
    assert batch.statements == (query,)
    with pytest.raises(StopIteration) as done:
        fetching.send(Results([result], batch))
    rows: list[Thread] = done.value.value
    return rows


def test_a_result_is_found_by_its_statement_object() -> None:
    batch = Batch.of(ONE, (SAME, TWO), THREE, outcome_query=WRITE)
    assert batch.statements == (ONE, SAME, TWO, THREE)
    assert batch.outcome_query is WRITE
    found = Results(results(4), batch)
    assert (found.of(TWO).affected, found.of(THREE).affected) == (2, 3)
    with pytest.raises(LookupError, match="INSERT INTO t"):
        found.of(WRITE)


def test_rows_have_the_names_that_their_query_declares() -> None:
    at = datetime(2026, 1, 1)
    rows = run(THREADS, Result([("a", None), ("b", at)]))
    assert rows == [Thread("a", None), Thread("b", at)]
    assert rows[1].expires_at == at
    assert run(THREADS, Result()) == []


@pytest.mark.parametrize("row", [("a",), ("a", None, 1), (None, None), (1, None), ("a", "2026-01-01"), ()])
def test_a_row_that_is_not_as_its_query_declares_is_refused(row: Any) -> None:
    with pytest.raises(CorruptCheckpoint, match="2 columns of certain types"):
        run(THREADS, Result([("a", None), row]))


def test_the_first_row_is_found_by_its_query() -> None:
    batch = Batch.of(ONE, THREADS)
    assert Results([Result(), Result([("a", None), ("b", None)])], batch).row(THREADS) == Thread("a", None)
    assert Results([Result(), Result()], batch).row(THREADS) is None


def test_the_row_that_recognised_a_batch_is_found_by_its_query() -> None:
    repeated = Results((), Batch.of(ONE, outcome_query=THREADS), ("a", None))
    assert repeated.row(THREADS) == Thread("a", None)
    assert repeated.earlier_attempt == ("a", None)


@pytest.mark.parametrize(
    ("batch", "only_reads"),
    [(Batch.of(ONE), True), (Batch((ONE, WRITE)), False), (Batch.of(Statement("WHATEVER")), False)],
)
def test_a_batch_knows_whether_it_only_reads(batch: Batch, only_reads: bool) -> None:
    assert batch.only_reads == only_reads


def test_a_rolled_back_batch_keeps_the_server_s_message() -> None:
    undone: Any = Duplicate("t", "PRIMARY", "its words")
    assert (str(undone), undone.table, undone.key) == ("its words", "t", "PRIMARY")
    assert str(Outdated("its words")) == "its words"
    assert not Results((), Batch(())).fate_unknown


@pytest.mark.parametrize(
    ("drawn", "chosen"), [(0.0, [1, 2, 32, 64]), (1 / 64, [1, 2, 32]), (1 / 33, [1, 2, 32]), (0.5, [1]), (0.999, [1])]
)
def test_one_call_in_some_is_chosen_at_random(monkeypatch: pytest.MonkeyPatch, drawn: float, chosen: list[int]) -> None:
    monkeypatch.setattr(operation, "random", lambda: drawn)
    assert [count for count in (1, 2, 32, 64) if operation.one_in(count)] == chosen
