"""Which batches are sent together, and what each call learns."""

from __future__ import annotations

import gc
import random
from collections.abc import Sequence
from typing import Any

import pytest

from locus_mysql.config import Endpoint
from locus_mysql.dialect import Statement
from locus_mysql.drivers.interface import ConnectionLost, Result, ServerError
from locus_mysql.engine.group_commit import ALONE, MOST_TOGETHER, Group, Member, size_bytes
from locus_mysql.engine.loops import run_blocking
from locus_mysql.engine.operation import Batch
from locus_mysql.engine.servers import ServerConnection
from locus_mysql.engine.transaction import BEGIN, COMMIT, ROLLBACK

#: The error of a unique key that exists.
DUPLICATE = 1062


def member(name: str, statements: int = 2, size: int = 0) -> Member:
    steps = tuple(Statement(f"UPDATE {name}{number}", ("x" * size,)) for number in range(statements))
    return Member(Batch(steps, landed=Statement("SELECT 1"), lock=(name,)))


def group_of(*members: Member) -> Group:
    group = Group(members[0])
    for one in members[1:]:
        assert group.add(one, lambda: None)
    return group


class Connection:
    """Refuses packets that have a statement, with an error; else answers each statement with its number."""

    def __init__(self, refused: dict[str, Exception] | None = None, *, knows_place: bool = True) -> None:
        self.refused = refused or {}
        self.knows_place = knows_place
        self.packets: list[list[str]] = []
        self.closed = False

    def execute(self, statements: Sequence[Statement]) -> list[Result]:
        self.packets.append([statement.sql for statement in statements])
        for place, statement in enumerate(statements):
            error = self.refused.get(statement.sql)
            if error is not None:
                if isinstance(error, ServerError):
                    error.place = place if self.knows_place else None
                raise error
        return [Result((), affected) for affected in range(len(statements))]

    def abort(self) -> None:
        self.closed = True


def send(group: Group, connection: Any) -> Any:
    return run_blocking(group.send(ServerConnection(connection, Endpoint("h", 1), None)))


def affected(outcome: Any) -> list[int]:
    return [result.affected for result in outcome]


def test_the_batches_are_one_transaction_in_the_order_of_their_locks() -> None:
    own, first, last = member("b"), member("a", 1), member("c", 3)
    connection = Connection()
    results = send(group_of(own, last, first), connection)
    assert connection.packets == [
        [BEGIN.sql, "UPDATE a0", "UPDATE b0", "UPDATE b1", *(f"UPDATE c{n}" for n in range(3)), COMMIT.sql]
    ]
    assert (affected(first.outcome), affected(results), affected(last.outcome)) == ([1], [2, 3], [4, 5, 6])


@pytest.mark.parametrize("refused", ["a", "b", "c"])
def test_the_batch_that_is_refused_goes_alone_and_the_others_together_again(refused: str) -> None:
    members = {name: member(name) for name in "abc"}
    connection = Connection({f"UPDATE {refused}1": ServerError(DUPLICATE, "taken")})
    own = send(group_of(*members.values()), connection)
    assert len(connection.packets) == 3
    assert connection.packets[1] == [ROLLBACK.sql]
    assert connection.packets[2] == [
        BEGIN.sql,
        *(f"UPDATE {name}{n}" for name in "abc" if name != refused for n in range(2)),
        COMMIT.sql,
    ]
    outcomes = {"a": own if own is not None else ALONE, "b": members["b"].outcome, "c": members["c"].outcome}
    assert [name for name, outcome in outcomes.items() if outcome is ALONE] == [refused]


def test_all_go_alone_if_the_driver_does_not_say_which_was_refused() -> None:
    members = [member(name) for name in "abc"]
    connection = Connection({"UPDATE b1": ServerError(DUPLICATE, "taken")}, knows_place=False)
    assert send(group_of(*members), connection) is None
    assert connection.packets[1:] == [[ROLLBACK.sql]]
    assert [one.outcome for one in members[1:]] == [ALONE, ALONE]


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (COMMIT.sql, ServerError(1213, "deadlock")),
        ("UPDATE b0", ServerError(1317, "interrupted")),
        ("UPDATE b0", ServerError(1290, "read-only")),
        ("UPDATE b0", ConnectionLost("gone")),
    ],
)
def test_all_learn_an_error_that_each_would_have_got(refused: str, error: Exception) -> None:
    members = [member(name) for name in "abc"]
    connection = Connection({refused: error})
    with pytest.raises(type(error)):
        send(group_of(*members), connection)
    assert [one.outcome for one in members[1:]] == [error, error]
    assert len(connection.packets) == 1


def test_the_others_learn_that_the_answer_was_lost_if_the_call_that_sends_is_ended() -> None:
    members = [member(name) for name in "abc"]
    steps = group_of(*members).send(ServerConnection(Connection(), Endpoint("h", 1), None))  # type: ignore[arg-type]
    next(steps)
    steps.close()
    assert all(isinstance(one.outcome, ConnectionLost) for one in members[1:])


def test_a_call_notices_that_the_one_that_took_its_batch_has_vanished() -> None:
    own, other = member("a"), member("b")
    group: Group | None = group_of(own, other)
    other.check_sender()
    assert other.outcome is None
    assert group is not None
    group = None
    gc.collect()
    other.check_sender()
    assert isinstance(other.outcome, ConnectionLost)


def test_a_group_has_limits_of_number_and_bytes() -> None:
    wake = lambda: None  # noqa: E731
    group = Group(member("a"))
    assert [group.add(member(f"m{n}"), wake) for n in range(MOST_TOGETHER)] == [True] * (MOST_TOGETHER - 1) + [False]
    small = Group(member("a"), most_bytes=size_bytes(member("a").batch) + size_bytes(member("b", size=100).batch))
    assert not small.add(member("c", size=200), wake)
    assert small.add(member("b", size=100), wake)
    assert small.full
    assert Group(member("a", size=10_000_000)).full


def test_every_order_of_refusals_gives_each_call_one_outcome() -> None:
    source = random.Random(5)
    for _ in range(300):
        names = [f"n{number}" for number in range(source.randint(2, MOST_TOGETHER))]
        refused = {name for name in names if source.random() < 0.4}
        members = {name: member(name, source.randint(1, 3)) for name in source.sample(names, len(names))}
        connection = Connection({f"UPDATE {name}0": ServerError(DUPLICATE, "taken") for name in refused})
        group = group_of(*members.values())
        own = send(group, connection)
        for name, one in members.items():
            outcome = own if one is group.own else one.outcome
            assert outcome is not None or one is group.own
            if name in refused:
                assert outcome in {None, ALONE}
            elif outcome is not None and outcome is not ALONE:
                assert len(outcome) == len(one.batch.statements)  # type: ignore[arg-type]
        done = [
            name for name, one in members.items() if (own if one is group.own else one.outcome) not in (None, ALONE)
        ]
        assert len(done) >= len(names) - len(refused) - 1, "at most the last one of a packet goes alone as well"
