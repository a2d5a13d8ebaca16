"""Turns: taken, renewed, released and lost; without a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from locus_mysql.dialect import Query, Statement
from locus_mysql.dialect.ledger import OutcomeRow
from locus_mysql.drivers.interface import Result
from locus_mysql.errors import InvalidInput, TurnLost
from locus_mysql.families.checkpoints.leases import Lease, check_turn

from .named_statements import KEY, answer, done, lease, names, operations, params


def acquire(rows: Iterable[Any], fate_unknown: bool = False) -> tuple[Any, Lease]:
    """Take a turn; return the result, and the lease."""
    held = Lease(KEY, 20.0)
    operation = operations().leases.acquire(held)
    batch = next(operation)
    assert params(batch, "acquire")[:4] == (*KEY, held.token, 20_000_000)
    assert len(params(batch, "acquire")[4]) == 16
    return done(operation, answer(batch, fate_unknown=fate_unknown, acquire_2=Result(rows=tuple(rows)))), held


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
def test_a_turn_is_taken_or_the_remaining_time_of_its_owner_is_returned(
    rows: list[Any], waits_s: float | None, fate_unknown: bool
) -> None:
    outcome, held = acquire(rows, fate_unknown)
    assert outcome == waits_s
    assert held.may_arrive == fate_unknown


@pytest.mark.parametrize(("affected", "held"), [(1, True), (0, False)])
def test_a_turn_is_renewed_or_lost(affected: int, held: bool) -> None:
    lease_of = Lease(KEY, 20.0)
    operation = operations().leases.renew(lease_of)
    batch = next(operation)
    assert batch.statements == (Statement("renew", (*KEY, lease_of.token, 20_000_000)),)
    assert done(operation, answer(batch, renew=Result(affected=affected))) is held


@pytest.mark.parametrize("may_arrive", [False, True])
def test_a_turn_is_released_and_a_late_request_cannot_take_it(may_arrive: bool) -> None:
    held = Lease(KEY, 20.0)
    held.may_arrive = may_arrive
    operation = operations().leases.release(held)
    batch = next(operation)
    if may_arrive:
        assert batch.statements == (Statement("record", ("tenant", held.token)),)
        assert batch.outcome_query == Query("find", ("tenant", held.token), row=OutcomeRow)
        batch = operation.send(answer(batch))
    assert names(batch) == "release release_2"
    assert params(batch, "release") == (*KEY, held.token)
    done(operation, answer(batch))


def test_writing_in_an_expired_turn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert ops.context.turns.of(KEY) is outer
    assert ops.context.turns.of(("tenant", "another")) is inner
    assert other.context.turns.of(KEY) is None
    ops.context.turns.leave(inner)
    assert ops.context.turns.of(("tenant", "another")) is None
    assert ops.context.turns.of(KEY) is outer
    ops.context.turns.leave(outer)
    assert ops.context.turns.of(KEY) is None


class Lock:
    """A lock that can be referred to weakly."""


def test_waiters_for_a_thread_share_a_lock_while_it_is_held() -> None:
    turns: Any = operations().context.turns
    lock = turns.lock(KEY, Lock)
    assert turns.lock(KEY, Lock) is lock
    assert turns.lock(("tenant", "another"), Lock) is not lock
    turns.reset_in_child()
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
