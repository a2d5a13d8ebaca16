"""Conditions of saves and deletions are checked in the transaction, and explained if they do not hold."""

from __future__ import annotations

import pytest

from locus_mysql.drivers.interface import Result
from locus_mysql.engine.operation import Duplicate
from locus_mysql.errors import Conflict, InvalidInput, TurnLost, Unavailable
from locus_mysql.families.checkpoints.leases import Lease
from locus_mysql.families.checkpoints.preconditions import NO_CHECKPOINT, Precondition, expecting

from .named_statements import (
    BIG,
    KEY,
    LONGER,
    TOKEN,
    answer,
    done,
    lease,
    names,
    new,
    operations,
    outdated,
    params,
    save,
    three,
)


@pytest.mark.parametrize(
    ("condition", "sent", "params_sent"),
    [
        (Precondition(newest_id="x"), "newest_has_id", "x"),
        (Precondition(newest_id=NO_CHECKPOINT), "newest_has_id", None),
        (Precondition(newest_token=TOKEN), "newest_has_token", TOKEN),
        (Precondition(newest_token=NO_CHECKPOINT), "newest_has_token", None),
        (Precondition(lease=Lease(KEY, 20.0)), "fence", None),
    ],
)
def test_a_condition_is_checked_in_the_transaction(condition: Precondition, sent: str, params_sent: object) -> None:
    assert condition
    assert not Precondition()
    ops = operations()
    operation = ops.saving.save(*KEY, new(BIG), condition)
    batch = next(operation)
    assert names(batch) == f"take_seq guard {sent} insert_whole_after_newest delete_left_behind"
    wanted = condition.lease.token if condition.lease else params_sent
    assert params(batch, sent) == (*KEY, wanted)
    done(operation, answer(batch))
    operation = ops.saving.save(*KEY, new(LONGER), condition)
    batch = next(operation)
    assert names(batch) == f"take_seq_if_unchanged insert_next {sent}"
    done(operation, answer(batch))
    operation = ops.saving.save(*KEY, new(LONGER, "c"), condition)
    assert names(next(operation)) == f"take_seq_if_unchanged insert_next {sent}"
    replacing = operation.throw(Duplicate("locus_checkpoints", "named", "the thread has this id"))
    assert names(replacing).startswith(f"take_seq_of_live guard {sent} record_named")


@pytest.mark.parametrize(
    ("condition", "found", "expected", "newest"),
    [
        (Precondition(newest_id="x"), three([("y", TOKEN)]), "x", "y"),
        (Precondition(newest_id="x"), three(), "x", None),
        (Precondition(newest_id=NO_CHECKPOINT), three([("y", TOKEN)]), None, "y"),
        (Precondition(newest_token=TOKEN), three([("y", b"another")], [("x",)]), "x", "y"),
        (Precondition(newest_token=TOKEN), three([("y", b"another")]), None, "y"),
        (Precondition(newest_token=TOKEN), three(), None, None),
        (Precondition(newest_token=NO_CHECKPOINT), three([("y", TOKEN)]), None, "y"),
    ],
)
def test_a_condition_that_does_not_hold_is_a_conflict(
    condition: Precondition, found: list[Result], expected: str | None, newest: str | None
) -> None:
    operation = operations().saving.save(*KEY, new(BIG, token=b"t" * 16), condition)
    next(operation)
    asked = operation.throw(outdated())
    assert names(asked) == "newest name_of whose"
    assert params(asked, "name_of")[-1] == (TOKEN if condition.newest_token is TOKEN else b"")
    assert params(asked, "whose")[-1] == b""
    with pytest.raises(Conflict) as caught:
        operation.send(found)
    assert (caught.value.expected, caught.value.newest) == (expected, newest)


@pytest.mark.parametrize("whose", [[], [(0, 5_000_000)], [(1, None)], [(1, 0)], [(1, -1)]])
def test_a_turn_of_another_owner_or_an_expired_one_is_lost(whose: list[tuple[int, int | None]]) -> None:
    ops = operations()
    held = lease(ops)
    operation = ops.saving.save(*KEY, new(BIG))
    assert "fence" in names(next(operation))
    asked = operation.throw(outdated())
    assert params(asked, "whose")[-1] == held.token
    with pytest.raises(TurnLost):
        operation.send(three(whose=whose))
    assert held.lost
    with pytest.raises(TurnLost):  # at once, without a query
        next(ops.saving.save(*KEY, new(BIG)))
    with pytest.raises(TurnLost):
        next(ops.removing.delete(*KEY))
    assert "fence" not in names(next(ops.saving.save("tenant", "another", new(BIG))))


def test_a_refused_batch_whose_condition_holds_is_repeated_for_a_while() -> None:
    ops = operations()
    held = lease(ops)
    save(ops, new(BIG))
    operation = ops.saving.save(*KEY, new(LONGER), Precondition(newest_id="x", newest_token=TOKEN))
    sent = names(next(operation))
    assert sent == "take_seq_if_unchanged insert_next newest_has_id newest_has_token fence"
    for count in range(10):
        operation.throw(outdated())
        sent = names(operation.send(three([("x", TOKEN)], whose=[(1, 5_000_000)])))
        beginning = "take_seq_of_live" if count == 0 else "take_seq"
        assert sent.startswith(f"{beginning} guard newest_has_id newest_has_token fence")
    operation.throw(outdated())
    with pytest.raises(Unavailable, match="during every attempt"):
        operation.send(three([("x", TOKEN)], whose=[(1, 5_000_000)]))
    assert not held.lost


def test_a_thread_that_has_no_checkpoint_as_was_expected_is_tried_again() -> None:
    operation = operations().saving.save(*KEY, new(BIG), Precondition(NO_CHECKPOINT, NO_CHECKPOINT))
    next(operation)
    operation.throw(outdated())
    assert names(operation.send(three())).startswith("take_seq guard newest_has_id newest_has_token")


def test_an_expected_checkpoint_is_an_id_or_none() -> None:
    assert expecting(None) == Precondition()
    assert expecting(NO_CHECKPOINT) == Precondition(newest_id=NO_CHECKPOINT)
    assert expecting("x") == Precondition(newest_id="x")
    with pytest.raises(InvalidInput):
        expecting("")
