"""Copies and rewrites of whole threads: statements and rows; without a server."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from locus_mysql.dialect import Query
from locus_mysql.dialect.checkpoints.maintenance import WholeRow
from locus_mysql.dialect.ledger import OutcomeRow
from locus_mysql.engine.operation import Duplicate
from locus_mysql.errors import ThreadExists, Unavailable
from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.new_checkpoint import EncodedCheckpoint, NewCheckpoint
from locus_mysql.families.checkpoints.state_rows import row_seal
from locus_mysql.families.checkpoints.thread_cache import Snapshot
from locus_mysql.families.checkpoints.whole_threads import rewritten

from .named_statements import (
    BIG,
    KEY,
    LONGER,
    Server,
    answer,
    done,
    names,
    new,
    operations,
    outdated,
    params,
    row_of,
    save,
)
from .states import CLEAR


def test_a_copy_is_one_transaction_that_is_recognised() -> None:
    ops = operations(ttl_s=60)
    save(ops, new(BIG))
    operation = ops.whole_threads.copy("tenant", "s", "t")
    batch = next(operation)
    assert names(batch) == "copy_thread record"
    token = params(batch, "record")[1]
    assert len(token) == 16
    assert batch.outcome_query == Query("find", ("tenant", token), row=OutcomeRow)
    assert params(batch, "copy_thread") == (
        "tenant",
        "s",
        "t",
        60_000_000,
        batch.outcome_query,
        CLEAR.of("tenant", "s").shift(CLEAR),
        False,
    )
    assert done(operation, answer(batch)) is True
    assert ops.context.cache.snapshot(KEY)[:5] == Snapshot()[:5]


def test_a_copy_of_nothing_or_onto_something() -> None:
    operation = operations().whole_threads.copy("tenant", "s", "t")
    next(operation)
    with pytest.raises(StopIteration) as ended:
        operation.throw(outdated())
    assert ended.value.value is False
    operation = operations().whole_threads.copy("tenant", "s", "t")
    next(operation)
    with pytest.raises(ThreadExists, match="'t'"):
        operation.throw(Duplicate("locus_threads", "PRIMARY", "twice"))
    operation = operations().whole_threads.copy("tenant", "s", "t")
    next(operation)
    restoring = operation.throw(Duplicate("locus_checkpoints", "PRIMARY", "twice"))
    assert names(restoring) == "restore_row"
    assert len(params(restoring, "restore_row")[2]) == 16
    with pytest.raises(ThreadExists):
        operation.send(answer(restoring))


def test_threads_with_old_messages_are_returned_by_id() -> None:
    server = Server(threads_with_old_messages=[[("a",), ("b",)]])
    assert server.run(
        operations().whole_threads.threads_with_old_messages("tenant", datetime(2026, 1, 1, tzinfo=UTC), "", 5)
    ) == [
        "a",
        "b",
    ]
    assert server.params("threads_with_old_messages") == [("tenant", "2026-01-01 00:00:00.000000", "", 5)]


CREATED_AT = datetime(2026, 1, 1)


def stored(ops: Any, *states: dict[str, Any], provisional: Iterable[int] = ()) -> list[WholeRow]:
    """Return the rows that the server stores after these saves, oldest first."""
    rows = []
    for seq, state in enumerate(states, start=1):
        lasting = seq not in provisional
        batch = save(ops, new(state, f"c{seq}" if lasting else None, provisional=not lasting), seq)
        row = row_of(batch)
        base = next((one.params for one in batch.statements if one.sql == "insert_after"), None)
        next_one = next((one.params for one in batch.statements if one.sql == "insert_next"), None)
        base_seq = next_one[-1] if next_one else base[-1][0] if base and base[-1] else None  # type: ignore[index]
        row_id = row.checkpoint_id if lasting else f"c{seq}"
        base_seq = seq if base_seq is None else base_seq
        parts = (seq, row.token, row.payload, row_id, base_seq, row.parent_seq, None, None, CREATED_AT, b"v" * 16)
        rows.append(WholeRow(*parts, seal=row_seal(CLEAR, row_id, row.token, None)))
    return rows


def upper(name: str, text: bytes) -> NewCheckpoint:
    state = json.loads(text)
    changed = {key: [item.upper() for item in value] for key, value in state.items()}
    return NewCheckpoint(
        lambda _: EncodedCheckpoint(encode(changed)), lambda delta: (f"text of {name}", bool(delta.news))
    )


def test_a_rewritten_thread_keeps_ids_order_and_lineage() -> None:
    ops = operations()
    third = {"messages": [*LONGER["messages"], "and more"]}
    rows = stored(ops, BIG, LONGER, third, provisional=[3])
    sequenced = rewritten(rows, upper, "t", CLEAR, compression="zlib")
    values = [one.row for one in sequenced]
    assert [(one.seq, one.base_seq, one.created_at) for one in sequenced] == [
        (1, 1, "2026-01-01 00:00:00.000000"),
        (2, 1, "2026-01-01 00:00:00.000000"),
        (3, 2, "2026-01-01 00:00:00.000000"),
    ]
    assert [(one.checkpoint_id, one.parent_seq, one.provisional) for one in values] == [
        ("c1", None, False),
        ("c2", 1, False),
        ("c3", 2, True),
    ]
    assert [(one.search_text, one.continues) for one in values] == [
        ("text of c1", False),
        ("text of c2", True),
        (None, False),
    ]
    assert {len(one.token) for one in values} == {16}
    assert len({one.token for one in values} | {row[1] for row in rows}) == 6


def test_a_row_without_a_name_is_skipped_and_its_successor_follows_the_nearest_named_row() -> None:
    ops = operations()
    third = {"messages": [*LONGER["messages"], "and more"]}
    rows = stored(ops, BIG, LONGER, third)
    rows[1] = rows[1]._replace(checkpoint_id=None)
    sequenced = rewritten(rows, upper, "t", CLEAR, compression="none")
    assert [(one.seq, one.base_seq, one.row.parent_seq) for one in sequenced] == [(1, 1, None), (3, 1, 1)]
    rows = [*rows[:2], rows[2]._replace(parent_seq=0)]  # its parent row does not exist
    assert rewritten(rows, upper, "t", CLEAR, compression="none")[1].row.parent_seq is None
    rows = [*rows[:2], rows[2]._replace(parent_seq=3)]  # itself
    assert rewritten(rows, upper, "t", CLEAR, compression="none")[1].row.parent_seq is None


def test_an_empty_text_is_treated_as_none() -> None:
    rows = stored(operations(), BIG)
    (sequenced,) = rewritten(rows, lambda *_: new(BIG), "t", CLEAR, compression="none")
    assert sequenced.row.search_text is None


def test_a_thread_is_rewritten_in_one_transaction_and_anew_if_it_was_saved_to() -> None:
    ops = operations()
    rows = stored(ops, BIG, LONGER)
    server = Server(read_thread=[rows, rows], lock_unchanged=[outdated(), 0])
    server.run(ops.whole_threads.rewrite(*KEY, upper))
    rewrites = "lock_unchanged guard record_all record delete_all put_row put_row"
    assert server.sent == ["read_thread", rewrites, "read_thread", rewrites]
    (*index, version, known), _ = server.params("lock_unchanged")
    assert (tuple(index), len(version), known) == (KEY, 16, b"v" * 16)
    assert server.params("record")[0] == ("tenant", version)
    assert ops.context.cache.snapshot(KEY)[:5] == Snapshot()[:5]
    busy = Server(read_thread=[rows] * 20, lock_unchanged=[outdated()] * 20)
    with pytest.raises(Unavailable, match="during every attempt"):
        busy.run(ops.whole_threads.rewrite(*KEY, upper))
    assert len(busy.params("lock_unchanged")) == 10
    nothing = Server()
    nothing.run(ops.whole_threads.rewrite(*KEY, upper))
    assert nothing.sent == ["read_thread"]
