"""Saves: the statements that are sent, and the reaction to each answer; without a server."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.dialect import Query
from locus_mysql.dialect.checkpoints.saving import Saved
from locus_mysql.dialect.ledger import RETENTION_S
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.operation import Duplicate, Outdated
from locus_mysql.errors import CheckpointExists, ParentMissing
from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.new_checkpoint import EncodedCheckpoint, NewCheckpoint, ParentRule
from locus_mysql.families.checkpoints.thread_cache import Snapshot

from ...driven import Landed
from .named_statements import BIG, KEY, LONGER, RETIRE, answer, done, names, new, operations, params, row_of, save


def saved_before(ops: Any) -> Any:
    """Let a store know that it saved a checkpoint of this id."""
    ops.context.known_ids.put((KEY, "saved before"), True)
    return ops


@pytest.mark.parametrize(
    ("options", "what", "sent"),
    [
        ({}, new(BIG), "take_seq guard insert_whole_after_newest delete_left_behind"),
        ({}, new(BIG, "c"), "take_seq guard insert_whole_after_newest delete_left_behind"),
        (
            {},
            new(BIG, "saved before"),
            f"take_seq guard record_named clear_id insert_whole_after_newest delete_left_behind {RETIRE}",
        ),
        ({}, new(BIG, "c", provisional=True), "take_seq guard insert_whole_after_newest delete_left_behind"),
        (
            {"ttl_s": RETENTION_S - 1},
            new(BIG),
            "take_seq guard insert_whole_after_newest record_left_behind delete_left_behind",
        ),
        ({"ttl_s": RETENTION_S}, new(BIG), "take_seq guard insert_whole_after_newest delete_left_behind"),
        (
            {"keep_checkpoints": 3},
            new(BIG),
            f"take_seq guard insert_whole_after_newest delete_left_behind record_older clear_older_ids {RETIRE}",
        ),
        (
            {"keep_checkpoints": 3},
            new(BIG, provisional=True),
            "take_seq guard insert_whole_after_newest delete_left_behind",
        ),
    ],
)
def test_a_first_save(options: dict[str, Any], what: NewCheckpoint, sent: str) -> None:
    batch = save(saved_before(operations(**options)), what)
    assert names(batch) == sent
    row = row_of(batch)
    assert new(BIG).provisional is False
    assert (row.parent_seq, row.continues, row.provisional) == (None, False, what.provisional)
    assert batch.outcome_query == Query("find_saved", (*KEY, row.checkpoint_id, row.token), row=Saved)
    assert params(batch, "guard") == (batch.outcome_query,)
    assert params(batch, "take_seq")[2:] == (
        row.token,
        None if "ttl_s" not in options else options["ttl_s"] * 1_000_000,
    )


@pytest.mark.parametrize(
    ("options", "what", "sent"),
    [
        ({}, new(LONGER), "take_seq_if_unchanged insert_next"),
        ({}, new({"a": 1}), "take_seq_if_unchanged insert_next"),
        ({}, new(LONGER, "c"), "take_seq_if_unchanged insert_next"),
        (
            {},
            new(LONGER, "saved before"),
            f"take_seq_of_live guard record_named clear_id_for insert_after {RETIRE}",
        ),
        ({}, new(LONGER, "c", provisional=True), "take_seq_if_unchanged insert_next"),
        (
            {"keep_checkpoints": 3},
            new(LONGER),
            f"take_seq_if_unchanged insert_next record_older clear_older_ids {RETIRE}",
        ),
    ],
)
def test_a_next_save(options: dict[str, Any], what: NewCheckpoint, sent: str) -> None:
    ops = saved_before(operations(**options))
    first = row_of(save(ops, new(BIG), seq=4))
    batch = save(ops, what, seq=5)
    assert names(batch) == sent
    row, parent = row_of(batch), (4, first.token)
    assert row.parent_seq == 4
    whole = what.encode(None).state.text() == encode({"a": 1}).text()
    if "insert_next" in sent:
        assert params(batch, "insert_next") == (*KEY, row, None if whole else 4)
        assert params(batch, "take_seq_if_unchanged")[-1] == first.token
    else:
        assert params(batch, "insert_after") == (*KEY, row, parent, parent)
        assert params(batch, "clear_id_for") == (*KEY, "saved before", parent, parent)
        assert params(batch, "record_named") == (*KEY, "saved before")
    if "keep_checkpoints" in options:
        assert params(batch, "clear_older_ids")[-1] == params(batch, "record_older")[-1] == 3


def test_a_state_that_stands_alone_is_looked_for_without_a_base() -> None:
    ops = saved_before(operations())
    first = row_of(save(ops, new(BIG), seq=4))
    batch = save(ops, new({"a": 1}, "saved before"), seq=5)
    assert params(batch, "insert_after") == (*KEY, row_of(batch), (4, first.token), None)


def test_a_save_after_the_newest_checkpoint_is_conditional_on_the_known_version() -> None:
    ops = operations()
    first = row_of(save(ops, new(BIG), seq=4))
    batch = save(ops, new(LONGER, must_be_new=True, checkpoint_id="c", parent=ParentRule.NEWEST), seq=5)
    assert names(batch) == "take_seq_if_unchanged insert_next"
    assert params(batch, "take_seq_if_unchanged")[-1] == first.token
    moved = save(saved_before(ops), new(BIG, "saved before", parent=ParentRule.NEWEST), seq=6)
    assert names(moved) == f"take_seq_if_unchanged guard record_named clear_id_for insert_after {RETIRE}"
    assert params(moved, "take_seq_if_unchanged")[-1] == row_of(batch).token


def test_a_save_that_is_never_fast_enough_follows_the_newest_without_building_on_it() -> None:
    ops = operations()
    save(ops, new(BIG), seq=4)
    operation = ops.saving.save(*KEY, new(LONGER, parent=ParentRule.NEWEST))
    sent = names(next(operation))
    for _ in range(100):
        if "take_seq_if_unchanged" not in sent:
            break
        since = operation.throw(Outdated("somebody was faster"))
        assert names(since) == "since"
        newest = operation.send(answer(since, since=Result(rows=[])))
        assert names(newest) == "newest"
        damaged = [(b"v" * 16, 0, 5, b"t" * 16, b"damaged", *(None,) * 15)]
        sent = names(operation.send(answer(newest, newest=Result(rows=damaged))))
    assert sent == "take_seq guard insert_whole_after_newest delete_left_behind"


def test_a_named_parent_must_exist() -> None:
    operation = operations().saving.save(*KEY, new(BIG, parent="p"))
    inspection = next(operation)
    assert names(inspection) == "named"
    with pytest.raises(ParentMissing, match="'p'"):
        operation.send(answer(inspection, named=Result(rows=[])))


def test_search_text_is_of_lasting_states_and_only_where_it_is_wanted() -> None:
    assert row_of(save(operations(), new(BIG, text="words"))).search_text == "words"
    assert row_of(save(operations(), new(BIG))).search_text is None
    assert row_of(save(operations(search=False), new(BIG, text="words"))).search_text is None
    assert row_of(save(operations(), new(BIG, text="words", provisional=True))).search_text is None
    adds = NewCheckpoint(lambda _: EncodedCheckpoint(encode(BIG)), lambda _: ("words", True))
    assert row_of(save(operations(), adds)).continues is True
    assert row_of(save(operations(search=False), adds)).continues is False


def test_a_given_token_is_stored_and_the_cached_state_helps_to_encode_the_next() -> None:
    ops = operations()
    assert row_of(save(ops, new(BIG, token=b"a token that is "))).token == b"a token that is "
    memos: list[object] = []

    def encode_with(memo: object) -> EncodedCheckpoint:
        memos.append(memo)
        return EncodedCheckpoint(encode(BIG), memo="kept", memo_bytes=4)

    for _ in range(2):
        save(ops, NewCheckpoint(encode_with, lambda _: ("", False)))
    assert memos == [None, "kept"]
    state = ops.context.cache.snapshot(KEY).state
    assert state is not None
    assert state.memo_bytes == 4
    before = state.hashed["messages"]
    save(ops, new(BIG))
    now = ops.context.cache.snapshot(KEY).state
    assert now is not None
    assert now.hashed["messages"] is before  # not hashed again


def test_an_id_is_replaced_if_the_server_refuses_it_as_new_and_at_once_the_next_time() -> None:
    ops = operations()
    save(ops, new(BIG))
    operation = ops.saving.save(*KEY, new(LONGER, "c"))
    assert names(next(operation)) == "take_seq_if_unchanged insert_next"
    replacing = f"take_seq_of_live guard record_named clear_id_for insert_after {RETIRE}"
    again = operation.throw(Duplicate("locus_checkpoints", "named", "twice"))
    assert names(again) == replacing
    assert done(operation, answer(again)) == "c"
    assert names(save(ops, new(BIG, "c"))) == replacing
    assert "clear_id" not in names(save(ops, new(BIG, "d")))


def test_an_id_that_was_refused_because_it_must_be_new_is_replaced_at_once() -> None:
    ops = operations()
    save(ops, new(BIG))
    operation = ops.saving.save(*KEY, new(LONGER, "c", must_be_new=True))
    next(operation)
    with pytest.raises(CheckpointExists):
        operation.throw(Duplicate("locus_checkpoints", "named", "twice"))
    assert "clear_id_for" in names(next(ops.saving.save(*KEY, new(LONGER, "c"))))


def test_a_provisional_checkpoint_with_an_existing_id_replaces_it() -> None:
    ops = operations()
    save(ops, new(BIG))
    operation = ops.saving.save(*KEY, new(LONGER, "c", provisional=True))
    next(operation)
    again = operation.throw(Duplicate("locus_checkpoints", "named", "twice"))
    assert names(again) == f"take_seq_of_live guard record_named clear_id_for insert_after {RETIRE}"
    assert done(operation, answer(again)) == "c"


def test_a_missing_thread_row_is_restored_and_the_state_is_saved_whole() -> None:
    ops = operations(ttl_s=60)
    save(ops, new(BIG))
    operation = ops.saving.save(*KEY, new(LONGER))
    next(operation)
    restoring = operation.throw(Duplicate("locus_checkpoints", "PRIMARY", "twice"))
    ((restore_row, (*key, token, ttl_us)),) = [(one.sql, one.params) for one in restoring.statements]
    assert (restore_row, tuple(key), len(str(token) and token), ttl_us) == ("restore_row", KEY, 16, 60_000_000)  # type: ignore[arg-type]
    assert names(operation.send(answer(restoring))).startswith("take_seq guard insert_whole")


def test_a_save_of_an_earlier_attempt_that_was_deleted_since_is_not_cached() -> None:
    ops = operations()
    save(ops, new(BIG))
    operation = ops.saving.save(*KEY, new(LONGER, "c"))
    next(operation)
    assert done(operation, Landed(None)) == "c"
    assert ops.context.cache.snapshot(KEY)[:5] == Snapshot()[:5]
    operation = ops.saving.save(*KEY, new(BIG, "c"))
    next(operation)
    assert done(operation, Landed(9)) == "c"
    assert ops.context.cache.snapshot(KEY).newest[0].seq == 9


def test_a_save_after_the_newest_was_deleted_is_of_a_whole_state() -> None:
    ops = operations()
    save(ops, new(BIG), seq=4)
    operation = ops.removing.delete(*KEY, "c")
    done(operation, answer(next(operation), clear_id=Result(affected=1, last_insert_id=4)))
    assert ops.context.cache.snapshot(KEY).version is not None
    assert names(save(ops, new(LONGER))) == "take_seq guard insert_whole_after_newest delete_left_behind"
