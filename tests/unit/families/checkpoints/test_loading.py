"""Loads: the statements that are sent, the cached rows, and the counters; without a server."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.dialect import Query
from locus_mysql.dialect.checkpoints.loading import CHAIN_ROWS, LineageRow
from locus_mysql.drivers.interface import Result
from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.thread_cache import Snapshot
from locus_mysql.runtime.stats import STATES

from .named_statements import BIG, KEY, TOKEN, done, names, new, operations, row_of, save


def looked_up(ops: Any) -> tuple[int, int]:
    return ops.context.counters.looked_up(STATES, hit=True), ops.context.counters.looked_up(STATES, hit=False)


def test_cache_hits_and_misses_are_counted() -> None:
    ops = operations()

    def load(result: Result) -> None:
        operation = ops.loading.load(*KEY)
        next(operation)
        try:
            operation.send([result])
            operation.send([Result()])
        except StopIteration:
            return

    load(Result())  # nothing is cached
    save(ops, new(BIG))
    load(Result(rows=((1,),)))  # kept, and still the newest
    assert looked_up(ops) == (1, 1)
    load(Result())  # kept, but no longer the newest
    assert looked_up(ops) == (1, 2)
    unkept = operations(cache_bytes=0)
    payload = row_of(save(unkept, new(BIG))).payload
    operation = unkept.loading.load(*KEY)
    assert names(next(operation)) == "rows"
    assert done(operation, [Result(rows=((payload,),))]).text() == encode(BIG).text()
    assert looked_up(unkept) == (0, 1)
    operation = unkept.loading.load(*KEY)
    next(operation)
    assert names(operation.send([Result()])) == "newest"


def test_a_state_loaded_from_rows_is_cached_and_not_read_again() -> None:
    ops = operations()
    batch = save(ops, new(BIG))
    snapshot = ops.context.cache.snapshot(KEY)
    ops.context.cache.remember(KEY, snapshot, snapshot.with_state(None, 0))
    operation = ops.loading.load(*KEY)
    assert names(next(operation)) == "rows"
    done(operation, [Result(rows=((row_of(batch).payload,),))])
    assert names(next(ops.loading.load(*KEY))) == "unchanged"


def test_a_checkpoint_that_builds_on_many_rows_is_read_with_all_of_them() -> None:
    row = row_of(save(operations(), new(BIG, "c")))
    columns = [column for seq in range(CHAIN_ROWS) for column in (9 - seq, b"t" * 16, b"payload")]
    full = (b"v" * 16, 1, None, 1, *columns)
    ops = operations()
    operation = ops.loading.load(*KEY, "c")
    assert names(next(operation)) == "named"
    every = operation.send([Result(rows=(full,))])
    assert every.statements == (Query("all_rows", (*KEY, "c"), row=LineageRow),)
    state = done(operation, [Result(rows=((2, row.token, row.payload, b"v" * 16, None, row.seal),))])
    assert state.text() == encode(BIG).text()
    snapshot = ops.context.cache.snapshot(KEY)
    assert (snapshot.lineages[0][0].seq, snapshot.newest, snapshot.version) == (2, (), b"v" * 16)
    operation = ops.loading.load_row(*KEY, "another")
    next(operation)
    assert done(operation, [Result()]) is None


def test_a_thread_whose_newest_checkpoint_is_not_there_is_forgotten() -> None:
    ops = operations()
    save(ops, new(BIG))
    operation = ops.loading.load(*KEY)
    next(operation)
    assert names(operation.send([Result()])) == "newest"
    assert done(operation, [Result()]) is None
    assert ops.context.cache.snapshot(KEY)[:5] == Snapshot()[:5]


@pytest.mark.parametrize(("rows", "token"), [((), None), ((("c", TOKEN),), TOKEN)])
def test_the_token_of_the_newest_checkpoint(rows: Any, token: bytes | None) -> None:
    operation = operations().loading.newest_token(*KEY)
    assert names(next(operation)) == "newest"
    assert done(operation, [Result(rows=rows)]) == token


def test_the_newest_checkpoint_is_loaded_by_its_id_from_the_cache() -> None:
    ops = operations()
    save(ops, new(BIG, "mine"))
    operation = ops.loading.load(*KEY, "mine")
    assert names(next(operation)) == "unchanged"
    assert done(operation, [Result(rows=((1,),))]).text() == encode(BIG).text()
    assert names(next(ops.loading.load(*KEY, "another"))) == "named"
    operation = ops.loading.load(*KEY, "mine")
    next(operation)
    assert names(operation.send([Result()])) == "named"  # another process wrote to the thread
    assert looked_up(ops) == (1, 1)


def test_a_checkpoint_loaded_by_its_id_is_cached_if_it_is_the_newest() -> None:
    row = row_of(save(operations(), new(BIG, "mine")))
    for version, then in ((row.token, "unchanged"), (b"v" * 16, "named")):
        ops = operations()
        operation = ops.loading.load(*KEY, "mine")
        next(operation)
        found = (version, 0, None, row.seal, 7, row.token, row.payload, *[None] * 3 * (CHAIN_ROWS - 1))
        done(operation, [Result(rows=(found,))])
        assert names(next(ops.loading.load(*KEY, "mine"))) == then


def test_a_load_by_id_returns_no_newer_checkpoint_while_another_python_thread_loads_a_shared_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ops = operations()
    save(ops, new(BIG, "mine"))
    answers = iter([False])
    monkeypatch.setattr(ops.context.cache, "is_shared", lambda _: next(answers, True))
    operation = ops.loading.load(*KEY, "mine")
    assert names(next(operation)) == "unchanged"
    assert names(operation.send([Result()])) == "named"


def test_rows_are_read_at_once_after_a_cached_checkpoint_was_not_found_by_its_id() -> None:
    ops = operations()
    save(ops, new(BIG, "mine"))
    operation = ops.loading.load(*KEY, "mine")
    assert names(next(operation)) == "unchanged"
    assert names(operation.send([Result()])) == "named"
    assert done(operation, [Result()]) is None
    assert names(next(ops.loading.load(*KEY, "mine"))) == "named"
