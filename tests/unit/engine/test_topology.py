"""The order in which servers are tried, and detection of the primary by its answers."""

from __future__ import annotations

import pytest
from mysql.connector import errorcode

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.server_roles import MEMBERS, NO_LONGER_WRITTEN, VIEW, WRITES
from locus_mysql.drivers.interface import ConnectionLost, DriverError, Result, ServerError
from locus_mysql.engine.cluster.topology import (
    BRIEFLY_S,
    SUSPECTED_FOR_S,
    NotAMember,
    Topology,
    as_read_only,
    check_answers,
    is_read_only,
)

from .conftest import Clock

CONFIG = MySQLConfig(hosts=("a", "b:33", "c"), connect_timeout_s=10)
A, B, C = CONFIG.endpoints
SILENT = ConnectionLost("no answer")


@pytest.fixture
def topology(clock: Clock) -> Topology:
    return Topology(CONFIG.endpoints, clock)


def test_a_server_that_did_not_answer_comes_last_for_a_while_with_a_short_timeout(
    topology: Topology, clock: Clock
) -> None:
    topology.is_primary(A)
    topology.failed(A, SILENT)
    assert topology.order() == (B, C, A)
    assert topology.limits(CONFIG, A).connect_timeout_s == BRIEFLY_S
    assert topology.limits(CONFIG, B) is CONFIG
    clock.now += SUSPECTED_FOR_S + 1
    assert topology.order() == (A, B, C)
    assert topology.limits(CONFIG, A) is CONFIG


def test_a_short_time_out_of_the_user_stays(topology: Topology) -> None:
    brief = CONFIG.model_copy(update={"connect_timeout_s": 0.5})
    topology.failed(A, SILENT)
    assert topology.limits(brief, A) is brief


def test_without_the_privilege_members_are_queried_only_once(topology: Topology) -> None:
    assert topology.questions() == (WRITES, MEMBERS, VIEW)
    assert not topology.asks_less_after(ServerError(1064, "syntax"))
    assert topology.questions() == (WRITES, MEMBERS, VIEW)
    assert topology.asks_less_after(
        ServerError(1142, "SELECT command denied to user 'a'@'b' for table 'replication_group_member_stats'")
    )
    assert topology.questions() == (WRITES, MEMBERS)
    assert topology.asks_less_after(ServerError(1142, "denied"))
    assert topology.questions() == (WRITES,)
    assert not topology.asks_less_after(ServerError(1142, "denied"))


@pytest.mark.parametrize("name", ["TABLEACCESS", "COLUMNACCESS", "SPECIFIC_ACCESS"])
def test_any_missing_privilege_counts(topology: Topology, name: str) -> None:
    assert topology.asks_less_after(ServerError(getattr(errorcode, f"ER_{name}_DENIED_ERROR"), "denied"))
    assert not topology.may_see_members


def answers(read_only: int, *members: tuple[int, str]) -> list[Result]:
    return [Result(rows=[(read_only,)]), Result(rows=members)]


@pytest.mark.parametrize(
    "answers",
    [
        answers(0),
        answers(0, (1, "ONLINE"), (0, "ONLINE"), (0, "ONLINE")),
        answers(0, (0, "RECOVERING"), (1, "ONLINE"), (0, "UNREACHABLE")),
        answers(0)[:1],
    ],
)
def test_a_server_that_takes_writes_is_the_primary(answers: list[Result]) -> None:
    check_answers(answers, A)


@pytest.mark.parametrize(
    ("answers", "kind", "words"),
    [
        (answers(1), ServerError, "a:3306 takes no writes"),
        (answers(1)[:1], ServerError, "a:3306 takes no writes"),
        (answers(1, (1, "ONLINE"), (0, "ONLINE")), ServerError, "takes no writes"),
        (answers(1, (1, "RECOVERING"), (0, "ONLINE")), NotAMember, "RECOVERING"),
        (answers(0, (0, "OFFLINE")), NotAMember, "OFFLINE"),
        (answers(0, (1, "ERROR")), NotAMember, "ERROR"),
        (answers(0, (0, "UNREACHABLE"), (1, "ONLINE"), (0, "UNREACHABLE")), NotAMember, "cut off"),
        (answers(0, (0, "UNREACHABLE"), (1, "ONLINE")), NotAMember, "cut off"),
    ],
)
def test_a_server_that_takes_none_or_is_outside_of_its_group_is_not(
    answers: list[Result], kind: type[DriverError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        check_answers(answers, A)
    assert is_read_only(caught.value) == (kind is ServerError)


def with_view(view: str | None) -> list[Result]:
    return [*answers(0, (1, "ONLINE"), (0, "ONLINE")), Result(rows=[(view,)])]


def test_a_primary_with_an_older_view_of_the_group_was_expelled(topology: Topology) -> None:
    topology.check_primary(with_view("1712:9"), A)
    topology.check_primary(with_view("1712:10"), B)
    with pytest.raises(NotAMember, match=r"a:3306 has not detected yet that its group has expelled it\."):
        topology.check_primary(with_view("1712:9"), A)
    topology.check_primary(with_view("1712:10"), B)
    topology.check_primary(with_view("1712:11"), A)  # it has joined again


def test_views_of_another_group_or_of_none_are_not_compared(topology: Topology) -> None:
    topology.check_primary(with_view("1712:9"), A)
    for view in ("1801:2", None, "", "x"):
        topology.check_primary(with_view(view), B)
    topology.check_primary(answers(0)[:1], B)
    topology.check_primary([*answers(0), Result()], B)
    with pytest.raises(NotAMember):
        topology.check_primary(with_view("1801:1"), B)


def test_only_the_refusal_of_a_server_that_takes_no_writes_any_more_is_taken_for_one() -> None:
    refused = ServerError(1411, f"Incorrect string value: '{NO_LONGER_WRITTEN}' for function uuid_to_bin")
    assert is_read_only(as_read_only(refused, A))
    for other in (ServerError(1411, "Incorrect datetime value"), ServerError(1213, "Deadlock")):
        assert as_read_only(other, A) is other
