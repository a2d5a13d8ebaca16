"""Deletions: the statements that are sent, and the reaction to each answer; without a server."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.dialect import Query
from locus_mysql.dialect.ledger import OutcomeRow
from locus_mysql.drivers.interface import Result
from locus_mysql.families.checkpoints.thread_cache import Snapshot

from ...driven import Landed
from .named_statements import (
    BIG,
    KEY,
    RETIRE,
    answer,
    done,
    lease,
    names,
    new,
    operations,
    outdated,
    params,
    row_of,
    save,
    three,
)


def test_a_turn_outlives_the_deletion_of_its_thread() -> None:
    ops = operations()
    held = lease(ops)
    batch = next(ops.removing.delete(*KEY))
    assert names(batch) == "lock_any guard fence record_all record_either delete_all keep_lease"
    assert params(batch, "fence") == (*KEY, held.token)
    sent = names(next(ops.removing.delete(*KEY, "c")))
    assert sent == f"lock guard fence record_deleted clear_id {RETIRE} keep_lease_if_empty"


@pytest.mark.parametrize("checkpoint_id", [None, "c"])
@pytest.mark.parametrize("in_turn", [False, True])
def test_a_delete_that_finds_nothing(checkpoint_id: str | None, in_turn: bool) -> None:
    ops = operations()
    save(ops, new(BIG))
    if in_turn:
        lease(ops)
    operation = ops.removing.delete(*KEY, checkpoint_id)
    next(operation)
    later: list[str] = []
    outcome: Any = None
    try:
        batch = operation.throw(outdated())
        while True:
            later.append(names(batch))
            batch = operation.send(three(whose=[(1, 5)]) if "whose" in later[-1] else answer(batch))
    except StopIteration as ended:
        outcome = ended.value
    assert outcome is False
    assert later == ["newest name_of whose"] * in_turn
    assert ops.context.cache.snapshot(KEY)[:5] == Snapshot()[:5]


def test_a_checkpoint_is_deleted_under_its_thread_s_lock() -> None:
    ops = operations()
    version = row_of(save(ops, new(BIG), seq=4)).token
    operation = ops.removing.delete(*KEY, "c")
    batch = next(operation)
    assert names(batch) == f"lock guard record_deleted clear_id {RETIRE} drop_if_empty"
    token = params(batch, "lock")[2]
    assert params(batch, "lock") == (*KEY, token, version)
    assert params(batch, "record_deleted") == (*KEY, "c", token)
    assert batch.outcome_query == Query("find", ("tenant", token), row=OutcomeRow)
    assert done(operation, answer(batch, clear_id=Result(affected=1, last_insert_id=3))) is True
    assert ops.context.cache.snapshot(KEY).newest[0].seq == 4
    assert ops.context.cache.snapshot(KEY).version == token
    operation = ops.removing.delete(*KEY, "c")
    unchanged = {"lock": Result(affected=1, last_insert_id=0), "clear_id": Result(affected=1, last_insert_id=4)}
    assert done(operation, answer(next(operation), **unchanged)) is True
    assert ops.context.cache.snapshot(KEY).newest == ()
    assert ops.context.cache.snapshot(KEY).version == token
    assert params(next(operations().removing.delete(*KEY, "c")), "lock")[-1] == b""


def test_a_checkpoint_that_is_not_there_is_not_deleted() -> None:
    ops = operations()
    save(ops, new(BIG), seq=4)
    operation = ops.removing.delete(*KEY, "c")
    batch = next(operation)
    assert done(operation, answer(batch, clear_id=Result(affected=0, last_insert_id=4))) is False
    assert ops.context.cache.snapshot(KEY).newest[0].seq == 4
    operation = ops.removing.delete(*KEY, "c")
    next(operation)
    assert done(operation, Landed(1)) is True
    assert ops.context.cache.snapshot(KEY)[:5] == Snapshot()[:5]
