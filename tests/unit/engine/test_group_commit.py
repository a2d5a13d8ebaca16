"""Which writes are sent together, and the outcome of each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from locus_mysql.config import Endpoint
from locus_mysql.dialect import Statement
from locus_mysql.drivers.interface import ConnectionLost, Result, ServerError
from locus_mysql.engine.group_commit import (
    BEGIN,
    COMMIT,
    MAX_WRITES,
    ROLLBACK,
    SEND_ALONE,
    CommitGroup,
    QueuedWrite,
    size_bytes,
)
from locus_mysql.engine.loops import run_blocking
from locus_mysql.engine.operation import Batch
from locus_mysql.engine.pool import ServerConnection

#: MySQL's errors of a unique key that exists, and of a wait for a lock.
DUPLICATE, LOCK_WAIT = 1062, 1205

#: The statements of this module's writes have the number of bytes of a few words, and those that limit waits begin so.
LIMITS, RESTORES = "SET @locus_row_wait", "SET SESSION"


def write(name: str, statements: int = 2, size: int = 0, lock: str = "") -> QueuedWrite:
    steps = tuple(Statement(f"UPDATE {name}{number}", ("x" * size,)) for number in range(statements))
    return QueuedWrite(Batch(steps, outcome_query=Statement("SELECT 1"), lock=(lock or name,)))


def group_of(*writes: QueuedWrite) -> CommitGroup:
    group = CommitGroup(writes[0])
    for one in writes[1:]:
        assert group.add(one, lambda: None)
    return group


class Connection:
    """Refuses packets that have a statement, with an error; else answers each statement with its number.

    Args:
        refused: The statements and their errors.
        knows_index: Whether the errors say which statement was refused.
        times: How often each is refused.
    """

    def __init__(
        self, refused: dict[str, Exception] | None = None, *, knows_index: bool = True, times: int = 1_000
    ) -> None:
        self.refused = refused or {}
        self.knows_index = knows_index
        self.times = dict.fromkeys(self.refused, times)
        self.packets: list[list[str]] = []
        self.closed = False

    def execute(self, statements: Sequence[Statement]) -> list[Result]:
        self.packets.append([statement.sql for statement in statements])
        for index, statement in enumerate(statements):
            error = self.refused.get(statement.sql)
            if error is not None and self.times[statement.sql]:
                self.times[statement.sql] -= 1
                if isinstance(error, ServerError):
                    error.statement_index = index if self.knows_index else None
                raise error
        return [Result((), affected) for affected in range(len(statements))]

    def abort(self) -> None:
        self.closed = True

    @property
    def transactions(self) -> list[list[str]]:
        """The statements of each packet between BEGIN and COMMIT; ROLLBACK for those that undo one."""
        found = []
        for sqls in self.packets:
            if sqls[0] == ROLLBACK.sql:
                assert sqls[1] == COMMIT.sql
                assert sqls[2].startswith(RESTORES)
                found.append([ROLLBACK.sql])
            else:
                assert sqls[0].startswith(LIMITS)
                assert sqls[1] == BEGIN.sql
                assert sqls[-2] == COMMIT.sql
                assert sqls[-1].startswith(RESTORES)
                found.append(sqls[2:-2])
        return found


def send(group: CommitGroup, connection: Any) -> None:
    run_blocking(group.send(ServerConnection(connection, Endpoint("h", 1))))


def affected(outcome: Any) -> list[int]:
    return [result.affected for result in outcome]


def test_all_are_sent_alone_if_the_driver_does_not_say_which_was_refused() -> None:
    writes = [write(name) for name in "abc"]
    connection = Connection({"UPDATE b1": ServerError(DUPLICATE, "taken")}, knows_index=False)
    send(group_of(*writes), connection)
    assert connection.transactions[1:] == [[ROLLBACK.sql]]
    assert all(one.outcome is SEND_ALONE for one in writes)


def test_the_others_learn_that_the_answer_was_lost_if_the_call_that_sends_is_ended() -> None:
    own, other = write("a"), write("b")
    woken: list[bool] = []
    group = CommitGroup(own)
    group.add(other, lambda: woken.append(True))
    assert other.taken
    assert not woken
    group.abandon()
    assert woken
    assert isinstance(other.outcome, ConnectionLost)


def test_a_group_has_limits_of_number_and_bytes() -> None:
    def wake() -> None:
        """Do nothing: no call waits here."""

    group = CommitGroup(write("a"))
    assert [group.add(write(f"m{n}"), wake) for n in range(MAX_WRITES)] == [True] * (MAX_WRITES - 1) + [False]
    small = CommitGroup(write("a"), max_bytes=size_bytes(write("a").batch) + size_bytes(write("b", size=100).batch))
    assert not small.add(write("c", size=200), wake)
    assert small.add(write("b", size=100), wake)
    assert small.full
    assert CommitGroup(write("a", size=10_000_000)).full


def test_whatever_is_refused_the_others_are_carried_out() -> None:
    source = random.Random(5)
    for _ in range(300):
        names = [f"n{number}" for number in range(source.randint(2, MAX_WRITES))]
        refused = {name for name in names if source.random() < 0.4}
        writes = {name: write(name, source.randint(1, 3)) for name in source.sample(names, len(names))}
        errors = {f"UPDATE {name}0": ServerError(DUPLICATE, name) for name in refused}
        send(group_of(*writes.values()), Connection(dict(errors)))
        for name, one in writes.items():
            if name in refused:
                assert one.outcome is errors[f"UPDATE {name}0"]
            else:
                assert len(affected(one.outcome)) == len(one.batch.statements)
