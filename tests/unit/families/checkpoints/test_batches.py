"""What operations send, by the names of the statements, and how they go on by the answers; no server."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Generator, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Statement
from locus_mysql.dialect.checkpoints.dialect import CheckpointDialect
from locus_mysql.dialect.checkpoints.loading import CHAIN_ROWS
from locus_mysql.dialect.checkpoints.queries import CheckpointPlace
from locus_mysql.dialect.checkpoints.saving import NewRow
from locus_mysql.dialect.template import KEPT_S
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.operation import Batch, Duplicate, Outdated, Results
from locus_mysql.errors import (
    Conflict,
    InvalidInput,
    ParentMissing,
    ThreadExists,
    TurnLost,
    Unavailable,
)
from locus_mysql.families.checkpoints import maintenance as cleaning
from locus_mysql.families.checkpoints import querying
from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.conditions import NO_CHECKPOINT, Condition, expecting
from locus_mysql.families.checkpoints.leases import Lease, check_turn
from locus_mysql.families.checkpoints.new import Encoded, NewCheckpoint, ParentRule
from locus_mysql.families.checkpoints.operations import CheckpointOperations
from locus_mysql.families.checkpoints.rows import rewritten
from locus_mysql.families.checkpoints.thread_cache import Snapshot
from locus_mysql.runtime import sampling as chance
from locus_mysql.runtime.stats import STATES

KEY = ("tenant", "t")
BIG = {"messages": ["x" * 500 for _ in range(20)]}
LONGER = {"messages": [*BIG["messages"], "more"]}


class Named:
    """A dialect whose statements are their own names, with their arguments as parameters."""

    names = {"checkpoints": "locus_checkpoints"}  # noqa: RUF012 - as a dialect has it

    def __getattr__(self, group: str) -> Any:
        return _Group(group)


class _Group:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        def statement(*arguments: Any, **options: Any) -> Any:
            one = Statement(method, (*arguments, *options.values()))
            return (
                (one, Statement(f"{method}_2")) if method in {"retire_unnamed", "sweep", "acquire", "release"} else one
            )

        return statement


@pytest.fixture(autouse=True)
def no_housekeeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "one_in", lambda one_in: False)


def operations(**options: Any) -> CheckpointOperations:
    named: Any = Named()
    return CheckpointOperations(MySQLConfig(**options), named)


def new(state: dict[str, Any], checkpoint_id: str | None = None, text: str = "", **options: Any) -> NewCheckpoint:
    return NewCheckpoint(lambda _: Encoded(encode(state)), lambda _: (text, False), checkpoint_id, **options)


def names(batch: Batch) -> str:
    return " ".join(statement.sql for statement in batch.statements)


def params(batch: Batch, name: str) -> tuple[Any, ...]:
    return next(statement.params for statement in batch.statements if statement.sql == name)


def row_of(batch: Batch) -> NewRow:
    return next(p for one in batch.statements for p in one.params if isinstance(p, NewRow))  # type: ignore[comparison-overlap]


def answer(batch: Batch, fate_unknown: bool = False, **by_name: Result) -> Results:
    """One row affected by each statement, unless told otherwise by its name."""
    given = defaultdict(lambda: Result(affected=1, last_insert_id=1), by_name)
    return Results([given[one.sql] for one in batch.statements], batch.names, fate_unknown=fate_unknown)


def done(operation: Generator[Batch, Results, Any], results: Results) -> Any:
    with pytest.raises(StopIteration) as ended:
        operation.send(results)
    return ended.value.value


def save(ops: CheckpointOperations, what: NewCheckpoint, seq: int = 1) -> Batch:
    operation = ops.save(*KEY, what)
    batch = next(operation)
    done(operation, answer(batch, **{name: Result(affected=1, last_insert_id=seq) for name in TAKES}))
    return batch


TAKES = ("take_seq", "take_seq_of_live", "take_seq_if_unchanged")
RETIRE = "retire_unnamed retire_unnamed_2"


@pytest.mark.parametrize(
    ("options", "what", "sent"),
    [
        ({}, new(BIG), "take_seq guard insert_whole_after_newest delete_left_behind"),
        (
            {},
            new(BIG, "c"),
            f"take_seq guard settle_named unname insert_whole_after_newest delete_left_behind {RETIRE}",
        ),
        ({}, new(BIG, "c", provisional=True), "take_seq guard insert_whole_after_newest delete_left_behind"),
        (
            {"ttl_s": KEPT_S - 1},
            new(BIG),
            "take_seq guard insert_whole_after_newest settle_left_behind delete_left_behind",
        ),
        ({"ttl_s": KEPT_S}, new(BIG), "take_seq guard insert_whole_after_newest delete_left_behind"),
        (
            {"keep_checkpoints": 3},
            new(BIG),
            f"take_seq guard insert_whole_after_newest delete_left_behind settle_older unname_older {RETIRE}",
        ),
        (
            {"keep_checkpoints": 3},
            new(BIG, provisional=True),
            "take_seq guard insert_whole_after_newest delete_left_behind",
        ),
    ],
)
def test_a_first_save(options: dict[str, Any], what: NewCheckpoint, sent: str) -> None:
    batch = save(operations(**options), what)
    assert names(batch) == sent
    row = row_of(batch)
    assert new(BIG).provisional is False
    assert (row.parent_seq, row.continues, row.provisional) == (None, False, what.provisional)
    assert batch.landed == Statement("find_saved", (*KEY, row.checkpoint_id, row.token))
    assert params(batch, "guard") == (batch.landed,)
    assert params(batch, "take_seq")[2:] == (
        row.token,
        None if "ttl_s" not in options else options["ttl_s"] * 1_000_000,
    )


@pytest.mark.parametrize(
    ("options", "what", "sent"),
    [
        ({}, new(LONGER), "take_seq_if_unchanged insert_next"),
        ({}, new({"a": 1}), "take_seq_if_unchanged insert_next"),
        (
            {},
            new(LONGER, "c"),
            f"take_seq_of_live guard settle_named unname_for insert_after {RETIRE}",
        ),
        ({}, new(LONGER, "c", provisional=True), "take_seq_if_unchanged insert_next"),
        (
            {"keep_checkpoints": 3},
            new(LONGER),
            f"take_seq_if_unchanged insert_next settle_older unname_older {RETIRE}",
        ),
    ],
)
def test_a_next_save(options: dict[str, Any], what: NewCheckpoint, sent: str) -> None:
    ops = operations(**options)
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
        assert params(batch, "unname_for") == (*KEY, "c", parent, parent)
        assert params(batch, "settle_named") == (*KEY, "c")
    if "keep_checkpoints" in options:
        assert params(batch, "unname_older")[-1] == params(batch, "settle_older")[-1] == 3


def test_a_state_that_stands_alone_is_looked_for_without_a_base() -> None:
    ops = operations()
    first = row_of(save(ops, new(BIG), seq=4))
    batch = save(ops, new({"a": 1}, "c"), seq=5)
    assert params(batch, "insert_after") == (*KEY, row_of(batch), (4, first.token), None)


def test_what_follows_the_newest_checkpoint_is_sent_while_the_thread_has_the_version_that_is_known() -> None:
    ops = operations()
    first = row_of(save(ops, new(BIG), seq=4))
    batch = save(ops, new(LONGER, must_be_new=True, checkpoint_id="c", parent=ParentRule.NEWEST), seq=5)
    assert names(batch) == "take_seq_if_unchanged insert_next"
    assert params(batch, "take_seq_if_unchanged")[-1] == first.token
    moved = save(ops, new(BIG, "c", parent=ParentRule.NEWEST), seq=6)
    assert names(moved) == f"take_seq_if_unchanged guard settle_named unname_for insert_after {RETIRE}"
    assert params(moved, "take_seq_if_unchanged")[-1] == row_of(batch).token


def test_a_save_that_is_never_fast_enough_follows_the_newest_without_building_on_it() -> None:
    ops = operations()
    save(ops, new(BIG), seq=4)
    operation = ops.save(*KEY, new(LONGER, parent=ParentRule.NEWEST))
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


def test_a_parent_that_is_named_is_looked_for_and_must_be_there() -> None:
    operation = operations().save(*KEY, new(BIG, parent="p"))
    inspection = next(operation)
    assert names(inspection) == "named"
    with pytest.raises(ParentMissing, match="'p'"):
        operation.send(answer(inspection, named=Result(rows=[])))


def test_search_text_is_of_lasting_states_and_only_where_it_is_wanted() -> None:
    assert row_of(save(operations(), new(BIG, text="words"))).search_text == "words"
    assert row_of(save(operations(), new(BIG))).search_text is None
    assert row_of(save(operations(search=False), new(BIG, text="words"))).search_text is None
    assert row_of(save(operations(), new(BIG, text="words", provisional=True))).search_text is None
    adds = NewCheckpoint(lambda _: Encoded(encode(BIG)), lambda _: ("words", True))
    assert row_of(save(operations(), adds)).continues is True
    assert row_of(save(operations(search=False), adds)).continues is False


def test_a_token_that_is_given_is_the_row_s_and_what_was_kept_helps_to_encode_the_next_state() -> None:
    ops = operations()
    assert row_of(save(ops, new(BIG, token=b"a token that is "))).token == b"a token that is "
    memos: list[object] = []

    def encode_with(memo: object) -> Encoded:
        memos.append(memo)
        return Encoded(encode(BIG), memo="kept", memo_bytes=4)

    for _ in range(2):
        save(ops, NewCheckpoint(encode_with, lambda _: ("", False)))
    assert memos == [None, "kept"]
    state = ops.memory.snapshot(KEY).state
    assert state is not None
    assert state.memo_bytes == 4
    before = state.hashed["messages"]
    save(ops, new(BIG))
    now = ops.memory.snapshot(KEY).state
    assert now is not None
    assert now.hashed["messages"] is before  # not hashed again


@pytest.mark.parametrize(("affected", "swept"), [(0, False), (1, False), (2, True)])
def test_a_save_that_prunes_several_sweeps(affected: int, swept: bool) -> None:
    operation = operations(keep_checkpoints=3).save(*KEY, new(BIG))
    batch = next(operation)
    results = answer(batch, unname_older=Result(affected=affected))
    if swept:
        sweeping = operation.send(results)
        assert names(sweeping) == "lock guard sweep sweep_2"
        assert len(params(sweeping, "lock")[2]) == 16
        done(operation, answer(batch))
    else:
        done(operation, results)
    assert operations().save(*KEY, new(BIG)) is not None


def test_a_provisional_id_that_exists_is_replaced_and_asked_for_anew() -> None:
    ops = operations()
    save(ops, new(BIG))
    operation = ops.save(*KEY, new(LONGER, "c", provisional=True))
    next(operation)
    again = operation.throw(Duplicate("locus_checkpoints", "named", "twice"))
    assert names(again) == f"take_seq_of_live guard settle_named unname_for insert_after {RETIRE}"
    assert done(operation, answer(again)) == "c"


def test_rows_in_the_way_are_adopted_and_the_state_is_saved_whole() -> None:
    ops = operations(ttl_s=60)
    save(ops, new(BIG))
    operation = ops.save(*KEY, new(LONGER))
    next(operation)
    adopting = operation.throw(Duplicate("locus_checkpoints", "PRIMARY", "twice"))
    ((adopt, (*place, token, ttl_us)),) = [(one.sql, one.params) for one in adopting.statements]
    assert (adopt, tuple(place), len(str(token) and token), ttl_us) == ("adopt", KEY, 16, 60_000_000)  # type: ignore[arg-type]
    assert names(operation.send(answer(adopting))).startswith("take_seq guard insert_whole")


def test_what_was_saved_by_an_earlier_try_and_is_gone_since_is_not_remembered() -> None:
    ops = operations()
    save(ops, new(BIG))
    operation = ops.save(*KEY, new(LONGER, "c"))
    next(operation)
    assert done(operation, Results([], {}, landed=(None,))) == "c"
    assert ops.memory.snapshot(KEY)[:5] == Snapshot()[:5]
    operation = ops.save(*KEY, new(BIG, "c"))
    next(operation)
    assert done(operation, Results([], {}, landed=(9,))) == "c"
    assert ops.memory.snapshot(KEY).newest[0].seq == 9


@pytest.mark.parametrize("landed", [9, None])
def test_a_save_that_prunes_and_landed_before_sweeps_as_it_cannot_tell_how_many_it_pruned(landed: int | None) -> None:
    ops = operations(keep_checkpoints=3)
    operation = ops.save(*KEY, new(BIG, "c"))
    next(operation)
    sweep = operation.send(Results([], {}, landed=(landed,)))
    assert names(sweep) == "lock guard sweep sweep_2"
    assert done(operation, answer(sweep)) == "c"


# Conditions and turns.


def lease(ops: CheckpointOperations, where: tuple[str, str] = KEY) -> Lease:
    """A turn that the test is in."""
    taken = Lease(where, 20.0)
    ops.turns.enter(taken)
    return taken


TOKEN = b"token of the row"


@pytest.mark.parametrize(
    ("condition", "sent", "params_sent"),
    [
        (Condition(newest_id="x"), "newest_has_id", "x"),
        (Condition(newest_id=NO_CHECKPOINT), "newest_has_id", None),
        (Condition(newest_token=TOKEN), "newest_has_token", TOKEN),
        (Condition(newest_token=NO_CHECKPOINT), "newest_has_token", None),
        (Condition(lease=Lease(KEY, 20.0)), "fence", None),
    ],
)
def test_a_condition_is_checked_in_the_transaction(condition: Condition, sent: str, params_sent: object) -> None:
    assert condition
    assert not Condition()
    ops = operations()
    operation = ops.save(*KEY, new(BIG), condition)
    batch = next(operation)
    assert names(batch) == f"take_seq guard {sent} insert_whole_after_newest delete_left_behind"
    wanted = condition.lease.token if condition.lease else params_sent
    assert params(batch, sent) == (*KEY, wanted)
    done(operation, answer(batch))
    operation = ops.save(*KEY, new(LONGER), condition)
    batch = next(operation)
    assert names(batch) == f"take_seq_if_unchanged insert_next {sent}"
    done(operation, answer(batch))
    operation = ops.save(*KEY, new(LONGER, "c"), condition)
    assert names(next(operation)).startswith(f"take_seq_of_live guard {sent} settle_named")


def outdated(fate_unknown: bool = False) -> Outdated:
    return Outdated("a guard failed", fate_unknown=fate_unknown)


def three(newest: Iterable[Any] = (), named: Iterable[Any] = (), whose: Iterable[Any] = ()) -> Results:
    return Results([Result(rows=tuple(rows)) for rows in (newest, named, whose)], {})


@pytest.mark.parametrize(
    ("condition", "found", "expected", "newest"),
    [
        (Condition(newest_id="x"), three([("y", TOKEN)]), "x", "y"),
        (Condition(newest_id="x"), three(), "x", None),
        (Condition(newest_id=NO_CHECKPOINT), three([("y", TOKEN)]), None, "y"),
        (Condition(newest_token=TOKEN), three([("y", b"another")], [("x",)]), "x", "y"),
        (Condition(newest_token=TOKEN), three([("y", b"another")]), None, "y"),
        (Condition(newest_token=TOKEN), three(), None, None),
        (Condition(newest_token=NO_CHECKPOINT), three([("y", TOKEN)]), None, "y"),
    ],
)
@pytest.mark.parametrize("fate_unknown", [False, True])
def test_a_condition_that_does_not_hold_is_a_conflict(
    condition: Condition, found: Results, expected: str | None, newest: str | None, fate_unknown: bool
) -> None:
    operation = operations().save(*KEY, new(BIG, token=b"t" * 16), condition)
    next(operation)
    asked = operation.throw(outdated(fate_unknown))
    assert names(asked) == "newest name_of whose"
    assert params(asked, "name_of")[-1] == (TOKEN if condition.newest_token is TOKEN else b"")
    assert params(asked, "whose")[-1] == b""
    if fate_unknown:  # what was sent first may arrive late: it must do nothing then
        settling = operation.send(found)
        assert settling.statements == (Statement("settle", ("tenant", b"t" * 16)),)
        assert settling.landed == Statement("find", ("tenant", b"t" * 16))
        found = answer(settling)
    with pytest.raises(Conflict) as caught:
        operation.send(found)
    assert (caught.value.expected, caught.value.newest) == (expected, newest)


@pytest.mark.parametrize("whose", [[], [(0, 5_000_000)], [(1, None)], [(1, 0)], [(1, -1)]])
def test_a_turn_that_is_somebody_else_s_or_over_is_lost(whose: list[tuple[int, int | None]]) -> None:
    ops = operations()
    held = lease(ops)
    operation = ops.save(*KEY, new(BIG))
    assert "fence" in names(next(operation))
    asked = operation.throw(outdated())
    assert params(asked, "whose")[-1] == held.token
    with pytest.raises(TurnLost):
        operation.send(three(whose=whose))
    assert held.lost
    with pytest.raises(TurnLost):  # at once, without asking
        next(ops.save(*KEY, new(BIG)))
    with pytest.raises(TurnLost):
        next(ops.delete(*KEY))
    assert "fence" not in names(next(ops.save("tenant", "another", new(BIG))))


def test_a_condition_that_holds_all_the_same_is_tried_again_for_a_while() -> None:
    ops = operations()
    held = lease(ops)
    save(ops, new(BIG))
    operation = ops.save(*KEY, new(LONGER), Condition(newest_id="x", newest_token=TOKEN))
    sent = names(next(operation))
    assert sent == "take_seq_if_unchanged insert_next newest_has_id newest_has_token fence"
    for count in range(10):
        operation.throw(outdated())
        sent = names(operation.send(three([("x", TOKEN)], whose=[(1, 5_000_000)])))
        beginning = "take_seq_of_live" if count == 0 else "take_seq"
        assert sent.startswith(f"{beginning} guard newest_has_id newest_has_token fence")
    operation.throw(outdated())
    with pytest.raises(Unavailable, match="all the time"):
        operation.send(three([("x", TOKEN)], whose=[(1, 5_000_000)]))
    assert not held.lost


def test_a_thread_that_has_no_checkpoint_as_was_expected_is_tried_again() -> None:
    operation = operations().save(*KEY, new(BIG), Condition(NO_CHECKPOINT, NO_CHECKPOINT))
    next(operation)
    operation.throw(outdated())
    assert names(operation.send(three())).startswith("take_seq guard newest_has_id newest_has_token")


def test_what_a_caller_expects_is_a_checkpoint_s_id_or_none() -> None:
    assert expecting(None) == Condition()
    assert expecting(NO_CHECKPOINT) == Condition(newest_id=NO_CHECKPOINT)
    assert expecting("x") == Condition(newest_id="x")
    with pytest.raises(InvalidInput):
        expecting("")


# Deleting and copying.


def test_a_thread_is_deleted_under_its_lock() -> None:
    ops = operations()
    save(ops, new(BIG))
    operation = ops.delete(*KEY)
    batch = next(operation)
    assert names(batch) == "lock_any guard settle_rows settle_either delete_all drop"
    token, if_expired = params(batch, "settle_either")[1:]
    assert len(token) == len(if_expired) == 16
    assert token != if_expired
    assert batch.landed == Statement("find_either", ("tenant", token, if_expired))
    assert params(batch, "lock_any") == (*KEY, token)
    assert done(operation, answer(batch)) is True
    assert ops.memory.snapshot(KEY)[:5] == Snapshot()[:5]
    operation = ops.delete(*KEY)
    assert done(operation, answer(next(operation), lock_any=Result(affected=1, last_insert_id=2))) is False
    for landed, found in ((1, True), (0, False)):
        operation = ops.delete(*KEY)
        next(operation)
        assert done(operation, Results([], {}, landed=(landed,))) is found


def test_within_a_turn_the_turn_outlives_what_is_deleted() -> None:
    ops = operations()
    held = lease(ops)
    batch = next(ops.delete(*KEY))
    assert names(batch) == "lock_any guard fence settle_rows settle_either delete_all keep_lease"
    assert params(batch, "fence") == (*KEY, held.token)
    sent = names(next(ops.delete(*KEY, "c")))
    assert sent == f"lock guard fence settle_deleted unname {RETIRE} keep_lease_if_empty"


@pytest.mark.parametrize("checkpoint_id", [None, "c"])
@pytest.mark.parametrize("fate_unknown", [False, True])
@pytest.mark.parametrize("in_turn", [False, True])
def test_a_delete_that_finds_nothing(checkpoint_id: str | None, fate_unknown: bool, in_turn: bool) -> None:
    ops = operations()
    save(ops, new(BIG))
    if in_turn:
        lease(ops)
    operation = ops.delete(*KEY, checkpoint_id)
    next(operation)
    later: list[str] = []
    outcome: Any = None
    try:
        batch = operation.throw(outdated(fate_unknown))
        while True:
            later.append(names(batch))
            batch = operation.send(three(whose=[(1, 5)]) if "whose" in later[-1] else answer(batch))
    except StopIteration as ended:
        outcome = ended.value
    assert outcome is False
    assert later == ["settle"] * fate_unknown + ["newest name_of whose"] * in_turn
    assert ops.memory.snapshot(KEY)[:5] == Snapshot()[:5]


def test_a_checkpoint_is_deleted_under_its_thread_s_lock() -> None:
    ops = operations()
    version = row_of(save(ops, new(BIG), seq=4)).token
    operation = ops.delete(*KEY, "c")
    batch = next(operation)
    assert names(batch) == f"lock guard settle_deleted unname {RETIRE} drop_if_empty"
    token = params(batch, "lock")[2]
    assert params(batch, "lock") == (*KEY, token, version)
    assert params(batch, "settle_deleted") == (*KEY, "c", token)
    assert batch.landed == Statement("find", ("tenant", token))
    assert done(operation, answer(batch, unname=Result(affected=1, last_insert_id=3))) is True
    assert ops.memory.snapshot(KEY).newest[0].seq == 4
    assert ops.memory.snapshot(KEY).version == token
    operation = ops.delete(*KEY, "c")
    unchanged = {"lock": Result(affected=1, last_insert_id=0), "unname": Result(affected=1, last_insert_id=4)}
    assert done(operation, answer(next(operation), **unchanged)) is True
    assert ops.memory.snapshot(KEY).newest == ()
    assert ops.memory.snapshot(KEY).version == token
    assert params(next(operations().delete(*KEY, "c")), "lock")[-1] == b""


@pytest.mark.parametrize("fate_unknown", [False, True])
def test_a_checkpoint_that_is_not_there_is_not_deleted(fate_unknown: bool) -> None:
    ops = operations()
    save(ops, new(BIG), seq=4)
    operation = ops.delete(*KEY, "c")
    batch = next(operation)
    results = answer(batch, fate_unknown=fate_unknown, unname=Result(affected=0, last_insert_id=4))
    if fate_unknown:
        settling = operation.send(results)
        assert names(settling) == "settle"
        results = answer(settling)
    assert done(operation, results) is False
    assert ops.memory.snapshot(KEY).newest[0].seq == 4
    operation = ops.delete(*KEY, "c")
    next(operation)
    assert done(operation, Results([], {}, landed=(1,))) is True
    assert ops.memory.snapshot(KEY)[:5] == Snapshot()[:5]


def test_a_delete_whose_first_answer_was_lost_settles_nothing_if_it_deleted() -> None:
    operation = operations().delete(*KEY, "c")
    assert done(operation, answer(next(operation), fate_unknown=True)) is True


def test_a_save_after_the_newest_was_deleted_is_of_a_whole_state() -> None:
    ops = operations()
    save(ops, new(BIG), seq=4)
    operation = ops.delete(*KEY, "c")
    done(operation, answer(next(operation), unname=Result(affected=1, last_insert_id=4)))
    assert ops.memory.snapshot(KEY).version is not None
    assert names(save(ops, new(LONGER))) == "take_seq guard insert_whole_after_newest delete_left_behind"


def test_a_copy_is_one_transaction_that_is_recognised() -> None:
    ops = operations(ttl_s=60)
    save(ops, new(BIG))
    operation = ops.copy_thread("tenant", "s", "t")
    batch = next(operation)
    assert names(batch) == "copy_thread settle"
    token = params(batch, "settle")[1]
    assert len(token) == 16
    assert batch.landed == Statement("find", ("tenant", token))
    assert params(batch, "copy_thread") == ("tenant", "s", "t", 60_000_000, batch.landed)
    assert done(operation, answer(batch)) is True
    assert ops.memory.snapshot(KEY)[:5] == Snapshot()[:5]


@pytest.mark.parametrize("fate_unknown", [False, True])
def test_a_copy_of_nothing_or_onto_something(fate_unknown: bool) -> None:
    operation = operations().copy_thread("tenant", "s", "t")
    next(operation)
    if fate_unknown:
        settling = operation.throw(outdated(fate_unknown=True))
        assert names(settling) == "settle"
        assert done(operation, answer(settling)) is False
    else:
        with pytest.raises(StopIteration) as ended:
            operation.throw(outdated())
        assert ended.value.value is False
    operation = operations().copy_thread("tenant", "s", "t")
    next(operation)
    with pytest.raises(ThreadExists, match="'t'"):
        operation.throw(Duplicate("locus_threads", "PRIMARY", "twice"))
    operation = operations().copy_thread("tenant", "s", "t")
    next(operation)
    adopting = operation.throw(Duplicate("locus_checkpoints", "PRIMARY", "twice"))
    assert names(adopting) == "adopt"
    assert len(params(adopting, "adopt")[2]) == 16
    with pytest.raises(ThreadExists):
        operation.send(answer(adopting))


@pytest.mark.parametrize(
    "call",
    [
        lambda ops, name: ops.save("tenant", name, new(BIG)),
        lambda ops, name: ops.load("tenant", name),
        lambda ops, name: ops.load_row("tenant", name),
        lambda ops, name: ops.exists("tenant", name),
        lambda ops, name: ops.delete("tenant", name),
        lambda ops, name: ops.list_checkpoints("tenant", name),
        lambda ops, name: ops.copy_thread("tenant", name, "t"),
        lambda ops, name: ops.copy_thread("tenant", "t", name),
        lambda ops, name: ops.get_metadata("tenant", name),
        lambda ops, name: ops.history("tenant", name),
        lambda ops, name: ops.get_disk_usage("tenant", name),
        lambda ops, name: ops.save("tenant", "t", new(BIG, name)),
        lambda ops, name: ops.load("tenant", "t", name),
        lambda ops, name: ops.exists("tenant", "t", name),
        lambda ops, name: ops.delete("tenant", "t", name),
        lambda ops, name: ops.get_metadata("tenant", "t", name),
    ],
)
def test_an_id_that_cannot_be_kept_is_refused_before_anything_is_sent(call: Any) -> None:
    with pytest.raises(InvalidInput):
        next(call(operations(), ""))


# Loading.


def looked_up(ops: CheckpointOperations) -> tuple[int, int]:
    return ops.counters.looked_up(STATES, hit=True), ops.counters.looked_up(STATES, hit=False)


def test_hits_and_misses_of_what_is_kept_are_counted() -> None:
    ops = operations()

    def load(result: Result) -> None:
        operation = ops.load(*KEY)
        next(operation)
        try:
            operation.send(Results([result], {}))
            operation.send(Results([Result()], {}))
        except StopIteration:
            return

    load(Result())  # nothing is known
    save(ops, new(BIG))
    load(Result(rows=((1,),)))  # kept, and still the newest
    assert looked_up(ops) == (1, 1)
    load(Result())  # kept, but no longer the newest
    assert looked_up(ops) == (1, 2)
    unkept = operations(cache_bytes=0)
    payload = row_of(save(unkept, new(BIG))).payload
    operation = unkept.load(*KEY)
    assert names(next(operation)) == "rows"
    assert done(operation, Results([Result(rows=((payload,),))], {})).text() == encode(BIG).text()
    assert looked_up(unkept) == (0, 1)
    operation = unkept.load(*KEY)
    next(operation)
    assert names(operation.send(Results([Result()], {}))) == "newest"


def test_what_is_loaded_by_its_rows_is_kept_and_not_read_again() -> None:
    ops = operations()
    batch = save(ops, new(BIG))
    snapshot = ops.memory.snapshot(KEY)
    ops.memory.remember(KEY, snapshot, snapshot.with_state(None, 0))
    operation = ops.load(*KEY)
    assert names(next(operation)) == "rows"
    done(operation, Results([Result(rows=((row_of(batch).payload,),))], {}))
    assert names(next(ops.load(*KEY))) == "unchanged"


def test_a_checkpoint_that_builds_on_many_rows_is_read_with_all_of_them() -> None:
    row = row_of(save(operations(), new(BIG)))
    full = (b"v" * 16, 1, *[column for seq in range(CHAIN_ROWS) for column in (9 - seq, b"t" * 16, b"payload")])
    ops = operations()
    operation = ops.load(*KEY, "c")
    assert names(next(operation)) == "named"
    every = operation.send(Results([Result(rows=(full,))], {}))
    assert every.statements == (Statement("all_rows", (*KEY, "c")),)
    state = done(operation, Results([Result(rows=((2, row.token, row.payload, b"v" * 16),))], {}))
    assert state.text() == encode(BIG).text()
    snapshot = ops.memory.snapshot(KEY)
    assert (snapshot.lineages[0][0].seq, snapshot.newest, snapshot.version) == (2, (), b"v" * 16)
    operation = ops.load_row(*KEY, "another")
    next(operation)
    assert done(operation, Results([Result()], {})) is None


def test_a_thread_whose_newest_checkpoint_is_not_there_is_forgotten() -> None:
    ops = operations()
    save(ops, new(BIG))
    operation = ops.load(*KEY)
    next(operation)
    assert names(operation.send(Results([Result()], {}))) == "newest"
    assert done(operation, Results([Result()], {})) is None
    assert ops.memory.snapshot(KEY)[:5] == Snapshot()[:5]


@pytest.mark.parametrize(("rows", "token"), [((), None), ((("c", TOKEN),), TOKEN)])
def test_the_token_of_the_newest_checkpoint(rows: Any, token: bytes | None) -> None:
    operation = operations().newest_token(*KEY)
    assert names(next(operation)) == "newest"
    assert done(operation, Results([Result(rows=rows)], {})) == token


# Finding.

AT = datetime(2026, 1, 1)


def hits(*names: str, value: str = "1") -> tuple[Any, ...]:
    return tuple(("t", name, f'{{"a":{value}}}', AT, seq) for seq, name in enumerate(names))


def test_pages_are_asked_for_until_there_are_enough_matches() -> None:
    server = Server(find_by_metadata=[[*hits("x"), *hits("y", value="true")], hits("z"), hits("never")])
    found = server.run(operations().query_by_metadata("tenant", "a", 1, 2))
    assert [info["checkpoint_id"] for info in found] == ["x", "z"]
    keys = server.params("find_by_metadata")[0][1]
    assert server.params("find_by_metadata") == [
        ("tenant", keys, 2, None),
        ("tenant", keys, 100, CheckpointPlace(str(AT), 0, "t")),
    ]
    enough = Server(find_by_metadata=[hits("x", "y"), hits("never")])
    assert len(enough.run(operations().query_by_metadata("tenant", "a", 1, 2))) == 2
    assert len(enough.sent) == 1
    few = Server(find_by_metadata=[hits("x"), hits("never")])
    assert len(few.run(operations().query_by_metadata("tenant", "a", 1, 2))) == 1
    other_name = Server(find_by_metadata=[(("t", "x", '{"b":1}', AT, 1),)])
    assert other_name.run(operations().query_by_metadata("tenant", "a", 1)) == []


def state_rows(*names: str, value: str = "1", state: dict[str, Any] | None = None) -> list[Any]:
    row = row_of(save(operations(), new(state or BIG)))
    return [(name, name, f'{{"a":{value}}}', AT, 1, row.token, row.payload, AT) for name in names]


def test_states_are_asked_for_until_there_are_enough_matches() -> None:
    pages = [[*state_rows("x"), *state_rows("y", value="true")], state_rows("z"), state_rows("never")]
    server = Server(load_by_metadata=pages)
    found = server.run(operations().states_by_metadata("tenant", "a", 1, 2))
    assert [(info["checkpoint_id"], state) for info, state in found] == [("x", BIG), ("z", BIG)]
    assert [(size, behind) for *_, size, behind in server.params("load_by_metadata")] == [
        (2, None),
        (100, CheckpointPlace(str(AT), 1, "y")),
    ]
    enough = Server(load_by_metadata=[state_rows("x", "y"), state_rows("never")])
    assert len(enough.run(operations().states_by_metadata("tenant", "a", 1, 2))) == 2
    assert len(enough.sent) == 1


def test_newest_states_are_looked_through_a_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(querying, "SEARCH_DATA_PAGE", 2)
    first = [*state_rows("x", state={"a": 1}), *state_rows("y", state={"a": 2})]
    second = [*state_rows("z", state={"b": 1}), *state_rows("w", state={"a": 1})]
    server = Server(load_newest=[first, second, []])
    found = server.run(operations().search_data("tenant", "a", 1))
    assert [(one["thread_id"], one["checkpoint_id"], one["data"]) for one in found] == [
        ("x", "x", {"a": 1}),
        ("w", "w", {"a": 1}),
    ]
    assert found[0]["updated_at"].tzinfo is not None
    assert [behind for *_, behind in server.params("load_newest")] == [None, (str(AT), "y"), (str(AT), "w")]
    enough = Server(load_newest=[first, second])
    assert len(enough.run(operations().search_data("tenant", "a", 1, 1))) == 1
    assert len(enough.sent) == 1


def test_a_search_gives_each_checkpoint_once_by_its_best_text() -> None:
    rows = [("t", "x", AT, 2.0, "the word"), ("t", "x", AT, 1.0, "another word"), ("t", "y", AT, 0.5, "word")]
    server = Server(search=[[*rows, ("t", "z", AT, 0.1, "word")]])
    found = server.run(operations().search("tenant", "word", 2))
    assert [(hit["checkpoint_id"], hit["score"], hit["snippet"]) for hit in found] == [
        ("x", 2.0, "the word"),
        ("y", 0.5, "word"),
    ]
    assert server.sent == ["index_pending search"]


def test_a_secondary_is_searched_for_what_the_primary_has_indexed() -> None:
    server = Server()
    server.run(operations(hosts=("a", "b"), reads="secondary").search("tenant", "word"))
    assert server.sent == ["index_pending", "search"]


@pytest.mark.parametrize(("query", "limit"), [("", 10), (" \t", 10), ("*", 10), ("word", 0)])
def test_nothing_is_asked_where_nothing_can_be_found(query: str, limit: int) -> None:
    server = Server()
    assert server.run(operations().search("tenant", query, limit)) == []
    assert server.sent == []


@pytest.mark.parametrize(
    "call",
    [
        lambda ops: ops.search_data("tenant", 5, 1),
        lambda ops: ops.search_data("tenant", "a", 1, -1),
        lambda ops: ops.list_threads("tenant", pattern=5),
        lambda ops: ops.list_threads("tenant", -1),
        lambda ops: ops.list_threads("tenant", 1, "*", -1),
        lambda ops: ops.count("tenant", 5),
        lambda ops: ops.states_by_metadata("tenant", 5, 1),
        lambda ops: ops.query_by_metadata("tenant", "a", 1, -1),
        lambda ops: ops.search("tenant", "word", -1),
        lambda ops: ops.list_with_metadata("tenant", -1),
        lambda ops: ops.history("tenant", "t", -1),
    ],
)
def test_what_cannot_be_asked_is_refused(call: Any) -> None:
    with pytest.raises(InvalidInput):
        next(call(operations()))


def test_without_a_limit_so_many_are_given() -> None:
    ops = operations()
    limits = [
        next(ops.list_threads("tenant")).statements[0].params[1:],
        next(ops.list_checkpoints(*KEY)).statements[0].params[2:],
        next(ops.query_by_metadata("tenant", "a", 1)).statements[0].params[2:],
        next(ops.states_by_metadata("tenant", "a", 1)).statements[0].params[2:],
        next(ops.list_with_metadata("tenant")).statements[0].params[1:],
        next(ops.history(*KEY)).statements[0].params[2:],
    ]
    assert limits == [("*", 100, 0), (10,), (100, None), (100, None), (100,), (100,)]


# Cleaning.


def test_what_a_save_does_for_others_is_left_to_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "one_in", lambda one_in: one_in == turn)
    sent: dict[tuple[int, int | None, str], list[str]] = {}
    for turn in (0, cleaning.SAVES_PER_INDEXING, cleaning.SAVES_PER_CLEANING):
        for ttl_s in (None, 60):
            for text in ("", "words"):
                operation = operations(ttl_s=ttl_s).save(*KEY, new(BIG, text=text))
                batch = next(operation)
                after: list[str] = []
                try:
                    while True:
                        rows = {"expired": Result(rows=(("owner", "gone"),)), "count_named": Result(rows=((1,),))}
                        batch = operation.send(answer(batch, **rows))
                        after.append(names(batch) + ("" if batch.atomic else " apart"))
                        if "expired" in after[-1]:
                            assert batch.statements[0].params == (None, cleaning.CLEANED_PER_SAVE)
                        if "lock_idle" in after[-1]:
                            assert params(batch, "lock_idle")[:2] == ("owner", "gone")
                            assert params(batch, "lock_idle")[3] >= 365_000 * 86_400_000_000
                        if "index" in after[-1]:
                            assert params(batch, "index_pending") == (cleaning.INDEXED_PER_SAVE, True)
                except StopIteration:
                    sent[turn, ttl_s, text] = after
    removes = "lock_idle guard count_named settle_rows settle delete_all drop"
    assert {key: after for key, after in sent.items() if after} == {
        (cleaning.SAVES_PER_INDEXING, None, "words"): ["index_pending forget_old apart"],
        (cleaning.SAVES_PER_INDEXING, 60, "words"): ["index_pending forget_old apart"],
        (cleaning.SAVES_PER_CLEANING, 60, ""): ["expired", removes],
        (cleaning.SAVES_PER_CLEANING, 60, "words"): ["expired", removes],
    }


def its_turns(monkeypatch: pytest.MonkeyPatch, drawn: float) -> list[int]:
    monkeypatch.setattr(chance, "random", lambda: drawn)
    return [one_in for one_in in (1, 2, 32, 64) if chance.one_in(one_in)]


def test_its_turn_comes_once_in_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert its_turns(monkeypatch, 0.0) == [1, 2, 32, 64]
    assert its_turns(monkeypatch, 1 / 64) == [1, 2, 32]
    assert its_turns(monkeypatch, 1 / 33) == [1, 2, 32]
    assert its_turns(monkeypatch, 0.5) == [1]
    assert its_turns(monkeypatch, 0.999) == [1]


class Server:
    """Answers the statements of a vacuum, by their names, from lists of pages."""

    def __init__(self, **pages: list[Any]) -> None:
        self.pages = pages
        self.sent: list[str] = []
        self.asked: list[Statement] = []

    def run(self, operation: Generator[Batch, Results, Any]) -> Any:
        results: Any = None
        error: Exception | None = None
        try:
            while True:
                batch = operation.throw(error) if error else operation.send(results)
                self.sent.append(names(batch))
                self.asked.extend(batch.statements)
                results, error = self.answer(batch)
        except StopIteration as ended:
            return ended.value

    def answer(self, batch: Batch) -> tuple[Results | None, Exception | None]:
        found = []
        landed = None
        for one in batch.statements:
            given = self.pages[one.sql].pop(0) if self.pages.get(one.sql) else ()
            if isinstance(given, Exception):
                return None, given
            if given == "landed":
                landed = (1,)
                given = ()
            result = Result(affected=given) if isinstance(given, int) else Result(rows=tuple(given))
            found.append(result)
        return Results([] if landed else found, batch.names, landed=landed), None

    def params(self, name: str) -> list[tuple[Any, ...]]:
        return [one.params for one in self.asked if one.sql == name]


REMOVES = "{} guard count_named settle_rows settle delete_all drop"
PRUNES = "lock guard delete_left_behind settle_rows unname_before sweep sweep_2"


def test_a_vacuum_removes_idle_and_expired_threads_whole_and_prunes_the_others() -> None:
    server = Server(
        orphaned=[[("lost",)]],
        expired=[[("owner", "gone")]],
        threads_before=[[("idle", 1), ("used", 0), ("busy", 0), ("saved", 1)]],
        count_named=[[(3,)], [(5,)]],
        unname_before=[7],
        lock=[0, outdated()],
        lock_idle=[0, 0, outdated()],
    )
    ops = operations(ttl_s=60)
    for name in ("gone", "idle", "saved"):
        save_to(ops, name)
    assert server.run(ops.vacuum("tenant", 2)) == 3 + 5 + 7
    idle = REMOVES.format("lock_idle")
    assert server.sent == [
        "orphaned",
        "adopt",
        "forget_old",
        "expired",
        idle,
        "threads_before",
        idle,
        PRUNES,
        PRUNES,
        idle,
    ]
    day_us = 86_400_000_000
    assert server.params("orphaned") == [("tenant", cleaning.PAGE)]
    assert [(*place, ttl) for *place, _, ttl in server.params("adopt")] == [("tenant", "lost", 60_000_000)]
    assert server.params("expired") == [("tenant", cleaning.PAGE)]
    assert server.params("threads_before") == [("tenant", 2 * day_us, "", cleaning.PAGE)]
    assert [(*place, age) for *place, _, age in server.params("lock_idle")] == [
        ("owner", "gone", cleaning._NEVER_US),
        ("tenant", "idle", 2 * day_us),
        ("tenant", "saved", 2 * day_us),
    ]
    assert server.params("unname_before")[0] == ("tenant", "used", 2 * day_us)
    assert all(len(token) == 16 for *_, token, _ in server.params("lock_idle"))
    assert all(len(token) == 16 for *_, token in server.params("lock"))
    assert all(len(token) == 16 for *_, token, _ in server.params("adopt"))
    assert server.params("settle")[0] == ("owner", server.params("lock_idle")[0][2])
    assert ops.memory.snapshot(("tenant", "idle"))[:5] == Snapshot()[:5]
    assert ops.memory.snapshot(("tenant", "saved"))[:5] == Snapshot()[:5]


def save_to(ops: CheckpointOperations, thread_id: str) -> None:
    operation = ops.save("tenant", thread_id, new(BIG))
    done(operation, answer(next(operation)))


def test_a_vacuum_goes_on_as_long_as_there_are_full_pages() -> None:
    threads = [(f"t{number:03}", 0) for number in range(cleaning.PAGE)]
    server = Server(
        orphaned=[[("x",)] * cleaning.PAGE, [("y",)]],
        expired=[[("tenant", "x")] * cleaning.PAGE, [("tenant", "x")]],
        threads_before=[threads, [("last", 0)]],
        count_named=[[(1,)]] * (cleaning.PAGE + 1),
        unname_before=[1] * (cleaning.PAGE + 1),
    )
    assert server.run(operations().vacuum("tenant")) == 2 * (cleaning.PAGE + 1)
    assert [after for _, _, after, _ in server.params("threads_before")] == ["", threads[-1][0]]
    assert {age for _, age, _, _ in server.params("threads_before")} == {30 * 86_400_000_000}
    assert len(server.params("adopt")) == cleaning.PAGE + 1
    assert len(server.params("lock_idle")) == cleaning.PAGE + 1


def test_threads_with_old_messages_are_told_by_their_ids() -> None:
    server = Server(threads_with_old_messages=[[("a", 1), ("b", 2)]])
    assert server.run(operations().threads_with_old_messages("tenant", datetime(2026, 1, 1, tzinfo=UTC), "", 5)) == [
        "a",
        "b",
    ]
    assert server.params("threads_with_old_messages") == [("tenant", "2026-01-01 00:00:00.000000", "", 5)]


def test_a_tenant_is_forgotten_thread_by_thread_until_there_is_none() -> None:
    server = Server(
        tenant_threads=[[("a",), ("b",)], [("c",)], []],
        count_named=[[(2,)], [(1,)], [(4,)]],
        lock_any=[0, "landed", 0],
    )
    ops = operations()
    for name in "abc":
        save_to(ops, name)
    assert server.run(ops.forget_tenant("tenant")) == 2 + 4  # what had landed is not counted again
    removes = REMOVES.format("lock_any")
    page = ["orphaned", "tenant_threads"]
    assert server.sent == [*page, removes, removes, *page, removes, *page, "forget_old"]
    assert server.params("tenant_threads")[0] == ("tenant", cleaning.PAGE)
    tokens = [token for *_, token in server.params("lock_any")]
    assert [token for _, token in server.params("settle")] == tokens
    assert len(set(tokens)) == 3
    assert {len(token) for token in tokens} == {16}
    assert all(ops.memory.snapshot(("tenant", name))[:5] == Snapshot()[:5] for name in "abc")


@pytest.mark.parametrize("days", [True, "1", -1, 365_001, float("nan"), None])
def test_an_age_that_is_none_is_refused(days: Any) -> None:
    with pytest.raises(InvalidInput, match="older_than_days"):
        next(operations().vacuum("tenant", days))
    for allowed in (0, 0.5, 365_000):
        next(operations().vacuum("tenant", allowed))


# Rewriting.

CREATED_AT = datetime(2026, 1, 1)


def stored(ops: CheckpointOperations, *states: dict[str, Any], provisional: Iterable[int] = ()) -> list[Any]:
    """Rows as the server keeps them after these saves, oldest first."""
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
        rows.append((seq, row.token, row.payload, row_id, base_seq, row.parent_seq, None, None, CREATED_AT, b"v" * 16))
    return rows


def upper(name: str, text: bytes) -> NewCheckpoint:
    state = json.loads(text)
    changed = {key: [item.upper() for item in value] for key, value in state.items()}
    return NewCheckpoint(lambda _: Encoded(encode(changed)), lambda delta: (f"text of {name}", bool(delta.news)))


def test_a_rewritten_thread_keeps_ids_order_and_lineage() -> None:
    ops = operations()
    third = {"messages": [*LONGER["messages"], "and more"]}
    rows = stored(ops, BIG, LONGER, third, provisional=[3])
    placed = rewritten(rows, upper, "t", compression="zlib")
    values = [one.row for one in placed]
    assert [(one.seq, one.base_seq, one.created_at) for one in placed] == [
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


def test_a_row_without_a_name_is_left_out_and_what_follows_it_follows_the_nearest_that_has_one() -> None:
    ops = operations()
    third = {"messages": [*LONGER["messages"], "and more"]}
    rows = stored(ops, BIG, LONGER, third)
    rows[1] = (*rows[1][:3], None, *rows[1][4:])
    placed = rewritten(rows, upper, "t", compression="none")
    assert [(one.seq, one.base_seq, one.row.parent_seq) for one in placed] == [(1, 1, None), (3, 1, 1)]
    rows = [*rows[:2], (*rows[2][:5], 0, *rows[2][6:])]  # said to follow a row that is not there
    assert rewritten(rows, upper, "t", compression="none")[1].row.parent_seq is None
    rows = [*rows[:2], (*rows[2][:5], 3, *rows[2][6:])]  # itself
    assert rewritten(rows, upper, "t", compression="none")[1].row.parent_seq is None


def test_a_text_that_is_empty_is_none() -> None:
    rows = stored(operations(), BIG)
    (placed,) = rewritten(rows, lambda *_: new(BIG), "t", compression="none")
    assert placed.row.search_text is None


def test_a_thread_is_rewritten_in_one_transaction_and_anew_if_it_was_saved_to() -> None:
    ops = operations()
    rows = stored(ops, BIG, LONGER)
    server = Server(read_thread=[rows, rows], lock_unchanged=[outdated(), 0])
    server.run(ops.rewrite_thread(*KEY, upper))
    rewrites = "lock_unchanged guard settle_rows settle delete_all put_row put_row"
    assert server.sent == ["read_thread", rewrites, "read_thread", rewrites]
    (*place, version, known), _ = server.params("lock_unchanged")
    assert (tuple(place), len(version), known) == (KEY, 16, b"v" * 16)
    assert server.params("settle")[0] == ("tenant", version)
    assert ops.memory.snapshot(KEY)[:5] == Snapshot()[:5]
    busy = Server(read_thread=[rows] * 20, lock_unchanged=[outdated()] * 20)
    with pytest.raises(Unavailable, match="quiet"):
        busy.run(ops.rewrite_thread(*KEY, upper))
    assert len(busy.params("lock_unchanged")) == 10
    nothing = Server()
    nothing.run(ops.rewrite_thread(*KEY, upper))
    assert nothing.sent == ["read_thread"]


# Leases.


def acquire(rows: Iterable[Any], fate_unknown: bool = False) -> tuple[Any, bytes, Lease, list[str]]:
    """What taking a turn returns, the token asked with, the lease, and what was sent."""
    held = Lease(KEY, 20.0)
    token = held.token
    operation = operations().leases.acquire(held)
    batch = next(operation)
    sent = [names(batch)]
    assert params(batch, "acquire")[:4] == (*KEY, token, 20_000_000)
    assert len(params(batch, "acquire")[4]) == 16
    try:
        batch = operation.send(answer(batch, fate_unknown=fate_unknown, acquire_2=Result(rows=tuple(rows))))
        sent.append(names(batch))
        assert batch.landed == Statement("find", ("tenant", token))
        operation.send(answer(batch))
    except StopIteration as ended:
        return ended.value, token, held, sent
    raise AssertionError("it went on")


@pytest.mark.parametrize("fate_unknown", [False, True])
@pytest.mark.parametrize(
    ("rows", "waits_s"),
    [
        ([(1, 20_000_000)], None),
        ([(1, 0)], 0.0),
        ([(1, None)], 0.0),
        ([(1, -5)], 0.0),
        ([(0, 2_500_000)], 2.5),
        ([(0, None)], 0.0),
        ([(0, -5)], 0.0),
        ([], 0.0),
    ],
)
def test_a_turn_is_taken_or_it_is_told_how_long_it_is_somebody_else_s(
    rows: list[Any], waits_s: float | None, fate_unknown: bool
) -> None:
    outcome, token, held, sent = acquire(rows, fate_unknown)
    assert outcome == waits_s
    assert sent == ["acquire acquire_2", *(["settle"] * fate_unknown)]
    assert (held.token != token) == (fate_unknown and waits_s is not None)
    assert len(held.token) == 16


@pytest.mark.parametrize(("affected", "held"), [(1, True), (0, False)])
def test_a_turn_is_renewed_or_lost(affected: int, held: bool) -> None:
    lease_of = Lease(KEY, 20.0)
    operation = operations().leases.renew(lease_of)
    batch = next(operation)
    assert batch.statements == (Statement("renew", (*KEY, lease_of.token, 20_000_000)),)
    assert done(operation, answer(batch, renew=Result(affected=affected))) is held


@pytest.mark.parametrize("settle", [False, True])
def test_a_turn_is_given_back_and_what_may_still_take_it_is_kept_from_it(settle: bool) -> None:
    held = Lease(KEY, 20.0)
    release = operations().leases.release
    operation = release(held, settle=True) if settle else release(held)
    batch = next(operation)
    if settle:
        assert batch.statements == (Statement("settle", ("tenant", held.token)),)
        batch = operation.send(answer(batch))
    assert names(batch) == "release release_2"
    assert params(batch, "release") == (*KEY, held.token)
    done(operation, answer(batch))


def test_a_turn_that_is_over_is_none_to_write_in(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Lease(KEY, 20.0)
    held.check()
    held.ended = True
    with pytest.raises(TurnLost, match="has ended"):
        held.check()
    held.lost = True
    with pytest.raises(TurnLost, match="has ended"):
        held.check()
    held.ended = False
    with pytest.raises(TurnLost, match="not renewed in time"):
        held.check()
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert not held.here
    with pytest.raises(TurnLost, match="parent"):
        held.check()


def test_turns_are_of_their_thread_and_store_and_end_where_they_were_entered() -> None:
    ops, other = operations(), operations()
    outer, inner = lease(ops), lease(ops, ("tenant", "another"))
    assert ops.turns.of(KEY) is outer
    assert ops.turns.of(("tenant", "another")) is inner
    assert other.turns.of(KEY) is None
    ops.turns.leave(inner)
    assert ops.turns.of(("tenant", "another")) is None
    assert ops.turns.of(KEY) is outer
    ops.turns.leave(outer)
    assert ops.turns.of(KEY) is None


class Lock:
    """A lock that can be referred to weakly."""


def test_those_who_wait_for_a_thread_share_a_lock_as_long_as_one_has_it() -> None:
    turns: Any = operations().turns
    lock = turns.lock(KEY, Lock)
    assert turns.lock(KEY, Lock) is lock
    assert turns.lock(("tenant", "another"), Lock) is not lock
    turns.begin_in_child()
    assert turns.lock(KEY, Lock) is not lock


@pytest.mark.parametrize(
    ("wait_s", "lease_s"),
    [(-1, 20), (86_401, 20), (True, 20), ("1", 20), (1, 0.4), (1, 3_601), (1, float("nan")), (1, None), (1, True)],
)
def test_times_of_a_turn_have_limits(wait_s: Any, lease_s: Any) -> None:
    with pytest.raises(InvalidInput, match="number of seconds"):
        check_turn(wait_s, lease_s)
    assert check_turn(0, 0.5) == (0.0, 0.5)
    assert check_turn(86_400, 3_600) == (86_400.0, 3_600.0)


def test_the_names_are_those_of_statements() -> None:
    """Else a test here would tell of nothing."""
    real: Any = CheckpointDialect()
    for group, methods in {
        "threads": "take_seq take_seq_of_live take_seq_if_unchanged lock lock_any lock_idle lock_unchanged guard drop",
        "checkpoints": "insert_whole insert_whole_after_newest insert_after insert_next unname unname_for unname_older"
        " retire_unnamed delete_all",
        "ledger": "settle settle_either settle_named settle_older settle_rows settle_deleted find find_either",
        "turns": "fence newest_has_id newest_has_token whose acquire renew release keep_lease keep_lease_if_empty",
        "maintenance": "sweep copy_thread expired threads_before unname_before count_named read_thread put_row",
    }.items():
        for method in methods.split():
            assert callable(getattr(getattr(real, group), method))
