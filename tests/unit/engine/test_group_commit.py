"""How much is sent together, and what others learn when the call that sends ends."""

from __future__ import annotations

from locus_mysql.dialect import Statement
from locus_mysql.drivers.interface import ConnectionLost
from locus_mysql.engine.group_commit import MAX_WRITES, CommitGroup, QueuedWrite, size_bytes
from locus_mysql.engine.operation import Batch


def write(name: str, size: int = 0) -> QueuedWrite:
    statements = (Statement(f"UPDATE {name}", ("x" * size,)),)
    return QueuedWrite(Batch(statements, outcome_query=Statement("SELECT 1"), lock=(name,)))


def test_a_group_has_limits_of_number_and_bytes() -> None:
    woken: list[bool] = []
    group, waiting = CommitGroup(write("a")), [write(f"m{number}") for number in range(MAX_WRITES)]
    added = [group.add(one, lambda: woken.append(True)) for one in waiting]
    assert added == [True] * (MAX_WRITES - 1) + [False]
    group.abandon()
    assert len(woken) == MAX_WRITES - 1
    assert isinstance(waiting[0].outcome, ConnectionLost)
    small = CommitGroup(write("a"), max_bytes=size_bytes(write("a").batch) + size_bytes(write("b", 100).batch))
    assert not small.add(write("c", 200), lambda: None)
    assert small.add(write("b", 100), lambda: None)
    assert small.full
    assert CommitGroup(write("a", 10_000_000)).full
