"""Transactions that a process has seen, and the choice of a secondary for a call; without a server."""

from __future__ import annotations

import logging
import secrets
from typing import Any

import pytest

from locus_mysql.config import Endpoint, MySQLConfig
from locus_mysql.dialect import Statement
from locus_mysql.dialect.server_roles import CARRIED_OUT, LAGS, MEMBERS, READS, only_after
from locus_mysql.drivers.interface import ConnectionLost, Result, ServerError
from locus_mysql.engine.gtid_tracker import REGISTER, GtidTracker
from locus_mysql.engine.operation import Batch, Results
from locus_mysql.engine.secondaries import LAG_S, PRIMARY_ONLY_S, Secondaries, SecondaryRead, is_behind
from locus_mysql.engine.secondary import SECONDARY
from locus_mysql.engine.servers import ServerConnection
from locus_mysql.engine.topology import NoSecondary, NotASecondary, Topology
from locus_mysql.errors import ReadOnlyServer

from . import scripted
from .conftest import Clock

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
SELECT, INSERT = Statement("SELECT 1"), Statement("INSERT INTO t VALUES (1)")
BEHIND = ServerError(1411, f"Incorrect string value: '{LAGS}' for function uuid_to_bin")


def carried_out(executed: str, owned: str = "", mode: str = "ON") -> Result:
    return Result(((owned, executed, mode),))


@pytest.fixture
def hosts() -> tuple[str, ...]:
    """Names of servers that no other test uses."""
    return tuple(f"{name}-{secrets.token_hex(4)}" for name in "abc")


def test_seen_transactions_only_grow_and_include_those_being_committed() -> None:
    tracker = GtidTracker()
    assert tracker.required_set() == ""
    tracker.record(carried_out(f"{A}:1-5", f"{A}:6#31"), tracker.begin(), primary=True)
    assert tracker.required_set() == f"{A}:1-6"
    tracker.record(carried_out(f"{A}:1-3"), tracker.begin(), primary=False)  # a secondary with fewer transactions
    assert tracker.required_set() == f"{A}:1-6"
    tracker.record(carried_out(f"{A}:1-9"), tracker.begin(), primary=False)  # one with more transactions
    assert tracker.required_set() == f"{A}:1-9"


def test_a_transaction_that_was_never_committed_is_not_awaited_forever() -> None:
    tracker = GtidTracker()
    tracker.record(carried_out(f"{A}:1-5", f"{A}:6#31"), tracker.begin(), primary=True)
    tracker.forget_committing()
    assert tracker.required_set() is None  # until the primary has answered
    tracker.record(carried_out(f"{A}:1-5", f"{A}:6#31"), tracker.begin(), primary=True)
    assert tracker.required_set() == f"{A}:1-6"  # still on its way
    tracker.forget_committing()
    tracker.record(carried_out(f"{A}:1-5"), tracker.begin(), primary=True)
    assert tracker.required_set() == f"{A}:1-5"


def test_after_a_lost_answer_seen_transactions_come_from_the_primary_s_next_answer() -> None:
    tracker = GtidTracker()
    earlier = tracker.begin()
    tracker.record_incomplete()
    assert tracker.required_set() is None
    tracker.record(carried_out(f"{A}:1-5"), earlier, primary=True)  # it may be older than the lost answer
    assert tracker.required_set() is None
    tracker.record(carried_out(f"{A}:1-6"), tracker.begin(), primary=False)
    assert tracker.required_set() is None
    tracker.record(carried_out(f"{A}:1-7"), tracker.begin(), primary=True)
    assert tracker.required_set() == f"{A}:1-7"
    tracker.record(carried_out(f"{A}:1-7"), earlier, primary=True)
    assert tracker.required_set() == f"{A}:1-7"


def test_without_gtids_only_the_primary_will_do() -> None:
    tracker = GtidTracker()
    tracker.record(carried_out("", mode="OFF_PERMISSIVE"), tracker.begin(), primary=True)
    assert (tracker.required_set(), tracker.primary_has_gtids) == (None, False)
    tracker.record(carried_out(f"{A}:1", mode="ON"), tracker.begin(), primary=True)
    assert (tracker.required_set(), tracker.primary_has_gtids) == (f"{A}:1-1", True)


def test_databases_on_the_same_servers_share_seen_transactions_and_start_in_doubt_if_used_before() -> None:
    servers = [Endpoint(secrets.token_hex(4), port) for port in (1, 2)]
    first = REGISTER.get_or_create(servers)
    assert first is REGISTER.get_or_create(reversed(servers)) is REGISTER.get(frozenset(servers))
    assert first.required_set() == ""
    others = [Endpoint(secrets.token_hex(4), port) for port in (1, 2)]
    REGISTER.use(others)
    assert REGISTER.get(frozenset(others)) is None
    assert REGISTER.get_or_create(others).required_set() is None


@pytest.mark.parametrize(
    ("reads", "batch", "asked"),
    [
        ("primary", Batch.query(SELECT), False),
        ("primary", Batch.of(SELECT), False),
        ("primary", Batch.of(INSERT), False),
        ("secondary", Batch.query(SELECT), True),
        ("secondary", Batch.of(SELECT), False),
        ("secondary", Batch.of(INSERT), False),
        ("inspect", Batch.query(SELECT), True),
        ("inspect", Batch.of(SELECT, SELECT), True),
    ],
)
def test_a_secondary_is_used_only_as_configured(hosts: tuple[str, ...], reads: Any, batch: Batch, asked: bool) -> None:
    several = Secondaries(MySQLConfig(hosts=hosts, reads=reads))
    several.check(batch)
    assert isinstance(several.secondary_read(batch), SecondaryRead) is asked
    assert (several.gtid_tracker is not None) is (reads != "primary")
    single = Secondaries(MySQLConfig(host=hosts[0], reads=reads))
    assert single.secondary_read(batch) is None
    assert single.gtid_tracker is None


@pytest.mark.parametrize("batch", [Batch.of(INSERT), Batch.of(SELECT, INSERT), Batch((SELECT, INSERT), atomic=False)])
@pytest.mark.parametrize("several", [True, False])
def test_with_reads_inspect_nothing_is_written(hosts: tuple[str, ...], batch: Batch, several: bool) -> None:
    where: dict[str, Any] = {"hosts": hosts} if several else {"host": hosts[0]}
    with pytest.raises(ReadOnlyServer, match="reads='inspect'"):
        Secondaries(MySQLConfig(reads="inspect", **where)).check(batch)
    Secondaries(MySQLConfig(reads="secondary", **where)).check(batch)


def test_a_process_that_reads_secondaries_records_transactions_of_all_its_databases(hosts: tuple[str, ...]) -> None:
    app = Secondaries(MySQLConfig(hosts=hosts))
    assert app.gtid_tracker is None
    report = Secondaries(MySQLConfig(hosts=hosts[::-1], reads="inspect"))
    assert app.gtid_tracker is report.gtid_tracker
    assert (
        report.secondary_read(Batch.of(SELECT)) is None
    )  # transactions that the other one saw before were not recorded
    report.gtid_tracker.record(carried_out(f"{A}:1-5"), report.gtid_tracker.begin(), primary=True)  # type: ignore[union-attr]
    assert report.secondary_read(Batch.of(SELECT)) is not None


def test_the_primary_answers_for_a_while_after_a_secondary_could_not_which_is_logged_once(
    hosts: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "locus_mysql.servers")
    clock = Clock()
    config = MySQLConfig(hosts=hosts, reads="secondary")
    secondaries, batch = Secondaries(config, clock), Batch.query(SELECT)
    secondaries.record_failure(ServerError(1064, "You have an error in your SQL syntax near 'x'"))  # of the batch
    assert secondaries.secondary_read(batch) is not None
    lost = ConnectionLost("MySQL at a gave no answer")
    for error in (lost, lost, NoSecondary([lost, ServerError(1045, "Access denied for 'secret'")])):
        secondaries.record_failure(error)
        assert secondaries.secondary_read(batch) is None
        clock.now += PRIMARY_ONLY_S - 0.1
        assert secondaries.secondary_read(batch) is None
        clock.now += 0.2
        assert secondaries.secondary_read(batch) is not None
    secondaries.record_answer()
    secondaries.record_answer()
    assert is_behind(BEHIND)
    secondaries.record_failure(BEHIND)
    clock.now += 2 * PRIMARY_ONLY_S
    assert secondaries.secondary_read(batch) is None  # the primary must answer first
    begins = "The primary answers instead of a secondary: "
    assert [record.getMessage() for record in caplog.records] == [
        begins + "MySQL at a gave no answer.",
        begins + "MySQL at a gave no answer; error 1045.",
        "Secondaries answer again.",
        begins + "it lags behind what this process has seen.",
    ]


def test_missing_gtids_are_logged(hosts: tuple[str, ...], caplog: pytest.LogCaptureFixture) -> None:
    secondaries = Secondaries(MySQLConfig(hosts=hosts, reads="secondary"))
    assert secondaries.gtid_tracker is not None
    secondaries.gtid_tracker.record(carried_out("", mode="OFF"), secondaries.gtid_tracker.begin(), primary=True)
    assert secondaries.secondary_read(Batch.query(SELECT)) is None
    assert "gtid_mode" in caplog.text


def test_any_server_but_the_primary_may_be_tried_and_those_that_did_not_answer_last() -> None:
    servers = tuple(Endpoint(name, 3306) for name in "abcd")
    topology = Topology(servers)
    firsts = {topology.secondaries()[0] for _ in range(200)}
    assert firsts == set(servers)
    topology.is_primary(servers[0])
    topology.failed(servers[1], ConnectionLost("gone"))
    orders = {topology.secondaries() for _ in range(200)}
    assert orders == {(servers[2], servers[3], servers[1]), (servers[3], servers[2], servers[1])}


def test_only_the_error_of_a_lagging_secondary_means_that_it_lags() -> None:
    assert is_behind(BEHIND)
    for other in (
        ServerError(1411, "Incorrect datetime value"),
        ServerError(1064, f"near '{LAGS}'"),
        ConnectionLost(LAGS),
    ):
        assert not is_behind(other)


def test_a_later_database_does_not_know_what_an_earlier_one_saw(hosts: tuple[str, ...]) -> None:
    first = Secondaries(MySQLConfig(hosts=hosts, reads="secondary"))
    assert first.gtid_tracker is not None
    assert first.gtid_tracker.required_set() == ""
    del first
    later = Secondaries(MySQLConfig(hosts=hosts, reads="secondary"))
    assert later.gtid_tracker is not None
    assert later.gtid_tracker.required_set() is None  # the transactions seen by the first one are not stored any more


def test_without_seen_transactions_a_secondary_does_not_wait(hosts: tuple[str, ...]) -> None:
    secondaries = Secondaries(MySQLConfig(hosts=hosts, reads="secondary"))
    secondary_read = secondaries.secondary_read(Batch.query(SELECT))
    assert secondary_read is not None
    connection: Any = Connection([Result((("found",),)), carried_out("")])
    assert list(ask(secondary_read, connection)) == [Result((("found",),))]
    assert connection.asked == [(SELECT, CARRIED_OUT)]


def ask(secondary_read: SecondaryRead, connection: Any) -> Results:
    """Query a secondary on a connection of the blocking side; return its results."""
    return scripted.run_blocking(secondary_read.execute(ServerConnection(connection, Endpoint("a", 3306), None)))


class Connection:
    """Gives scripted answers and records the statements."""

    server_version, max_allowed_packet, closed = "9.7.4", 1_000_000, False

    def __init__(self, *answers: list[Result] | ServerError) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Statement, ...]] = []
        self.ended = ""

    def execute(self, statements: tuple[Statement, ...]) -> list[Result]:
        self.asked.append(statements)
        answer = self.answers.pop(0)
        if isinstance(answer, ServerError):
            raise answer
        return answer

    def close(self) -> None:
        self.ended = "closed"

    def abort(self) -> None:
        self.ended = "aborted"


class Driver:
    """Opens prepared connections by host name."""

    def __init__(self, connections: dict[str, Connection]) -> None:
        self.connections = connections

    def connect(self, config: MySQLConfig, endpoint: Endpoint) -> Connection:
        if endpoint.host not in self.connections:
            raise ConnectionLost(f"Cannot connect to MySQL at {endpoint}", connecting=True)
        return self.connections[endpoint.host]


def is_secondary(read_only: int = 1, mode: str = "ON", state: str = "ONLINE") -> list[Result]:
    return [Result(((read_only, mode),)), Result(((1, state),))]


async def test_a_query_waits_for_seen_transactions_and_records_the_server_s(hosts: tuple[str, ...]) -> None:
    secondaries = Secondaries(MySQLConfig(hosts=hosts, reads="secondary"))
    assert secondaries.gtid_tracker is not None
    secondaries.gtid_tracker.record(carried_out(f"{A}:1-5"), secondaries.gtid_tracker.begin(), primary=True)
    secondary_read = secondaries.secondary_read(Batch.query(SELECT))
    assert secondary_read is not None
    answer = Result((("found",),))
    connection: Any = Connection([Result(), answer, carried_out(f"{A}:1-8")])
    results = ask(secondary_read, connection)
    assert list(results) == [answer]
    assert not results.fate_unknown
    assert connection.asked == [(only_after(f"{A}:1-5", LAG_S), SELECT, CARRIED_OUT)]
    assert secondaries.gtid_tracker.required_set() == f"{A}:1-8"
    other_mode: Any = Connection([Result(), answer, carried_out(f"{A}:1-9", mode="OFF")])
    ask(secondary_read, other_mode)
    assert secondaries.gtid_tracker.primary_has_gtids  # only the primary can answer that
    behind: Any = Connection(BEHIND)
    with pytest.raises(ServerError):
        ask(secondary_read, behind)
    assert behind.ended == "aborted"


def test_a_secondary_is_one_that_takes_no_writes_and_has_gtids_and_is_asked_so_now_and_then(
    hosts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = MySQLConfig(hosts=hosts, reads="inspect")
    topology = Topology(config.endpoints)
    refused = ServerError(1142, "SELECT command denied")
    connections = {
        hosts[0]: Connection(is_secondary(read_only=0)),
        hosts[1]: Connection(refused, [Result(((1, "ON"),))], [Result()], [Result(((1, "ON"),)), Result()]),
    }
    driver: Any = Driver(connections)
    for _ in range(50):  # in random order: repeat until each of the two others was tried first
        connections[hosts[0]].answers = [is_secondary(read_only=0)]
        connections[hosts[1]].answers = [refused, [Result(((1, "ON"),))]]
        topology = Topology(config.endpoints)
        opened = scripted.run_blocking(SECONDARY.connect(config, driver, topology))
        assert opened.endpoint.host == hosts[1]
        if connections[hosts[0]].ended and topology.order()[0].host == hosts[0]:
            break
    assert connections[hosts[0]].ended == "closed"
    assert topology.order()[0].host == hosts[0]  # the primary, which the earlier calls identified
    assert connections[hosts[1]].asked[-2:] == [(READS, MEMBERS), (READS,)]
    connections[hosts[1]].answers = [[Result((("a",),))], [Result(((0, "ON"),)), Result()]]
    assert scripted.run_blocking(opened.execute((SELECT,))) == [Result((("a",),))]
    monkeypatch.setattr("locus_mysql.engine.secondary.CHECK_EVERY_S", 0.0)
    with pytest.raises(NotASecondary, match="is the primary"):
        scripted.run_blocking(opened.execute((SELECT,)))
    assert connections[hosts[1]].asked[-2:] == [(SELECT,), (READS, SELECT)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (is_secondary(mode="OFF"), "gtid_mode"),
        (is_secondary(state="RECOVERING"), "its state is RECOVERING"),
        (is_secondary(read_only=0), "is the primary"),
    ],
)
def test_without_a_secondary_the_error_has_the_reason_of_each_server(
    hosts: tuple[str, ...], answer: list[Result], words: str
) -> None:
    config = MySQLConfig(hosts=hosts, reads="inspect")
    driver: Any = Driver({hosts[0]: Connection(answer)})
    with pytest.raises(NoSecondary, match=words) as caught:
        scripted.run_blocking(SECONDARY.connect(config, driver, Topology(config.endpoints)))
    assert "Cannot connect" in str(caught.value)
    assert len(caught.value.reasons) == len(hosts)


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("first", "ended"),
    [
        pytest.param(ConnectionLost("It gives no answer."), "aborted", id="silent"),
        pytest.param(ServerError(1064, "syntax"), "closed", id="refusing"),
        pytest.param([Result(((1, "OFF"),)), Result()], "closed", id="no GTIDs"),
        pytest.param(KeyboardInterrupt(), "aborted", id="interrupted"),
    ],
)
async def test_an_unsuitable_secondary_is_dropped(
    hosts: tuple[str, ...], awaited: bool, first: Any, ended: str
) -> None:
    config = MySQLConfig(hosts=hosts[:2], reads="inspect", connect_timeout_s=30)
    bad, good = config.endpoints
    working = [Result(((1, "ON"),)), Result()]

    def answer(endpoint: Endpoint, statements: tuple[Statement, ...]) -> Any:
        return [] if not statements else first if endpoint == bad else working

    driver: Any = scripted.Driver(answer)
    connect, is_gone = SECONDARY.connect, SECONDARY.is_gone
    topology = Topology((bad,))
    with pytest.raises((NoSecondary, KeyboardInterrupt)) as caught:
        await scripted.run(connect(config, driver, topology), awaited=awaited)
    assert driver.opened[0].ended == ended
    if not isinstance(first, KeyboardInterrupt):
        assert len(caught.value.reasons) == 1  # type: ignore[union-attr]
        assert await scripted.run(is_gone(config, driver, topology, bad), awaited=awaited) is True
    several = Topology((bad, good))
    if isinstance(first, ConnectionLost):
        several.failed(bad, first)
        for _ in range(20):  # the silent one is tried last
            assert (await scripted.run(connect(config, driver, several), awaited=awaited)).endpoint == good
        assert several.secondaries() == (good, bad)
        fresh = Topology((bad, good))
        with pytest.raises(NoSecondary):
            await scripted.run(connect(config, driver, fresh_one := Topology((bad,))), awaited=awaited)
        assert fresh_one.limits(config, bad).connect_timeout_s < 30
        assert fresh.limits(config, bad).connect_timeout_s == 30
    driver.opened.clear()
    assert await scripted.run(is_gone(config, driver, several, good), awaited=awaited) is False
    assert driver.opened[0].ended == "closed"
    connection = await scripted.run(connect(config, driver, Topology((good,))), awaited=awaited)
    assert not connection.connection.closed
    assert set(driver.limits) == {2.0}


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
async def test_without_the_privilege_group_members_are_not_queried(hosts: tuple[str, ...], awaited: bool) -> None:
    config = MySQLConfig(hosts=hosts, reads="inspect")
    script: list[Any] = [ServerError(1142, "SELECT command denied"), [Result(((1, "ON"),))]]
    driver: Any = scripted.Driver(lambda endpoint, statements: script.pop(0) if statements else [])
    topology = Topology(config.endpoints)
    connection = await scripted.run(SECONDARY.connect(config, driver, topology), awaited=awaited)
    assert not connection.connection.closed
    assert [statements for _, statements in driver.asked] == [(READS, MEMBERS), (READS,)]
    assert len({host for host, _ in driver.asked}) == 1
    assert not topology.may_see_members


async def test_a_secondary_that_turned_out_to_be_the_primary_is_known_as_such(hosts: tuple[str, ...]) -> None:
    config = MySQLConfig(hosts=hosts, reads="inspect")
    last = config.endpoints[-1]
    driver: Any = scripted.Driver(lambda endpoint, statements: [Result(((0, "ON"),)), Result()] if statements else [])
    topology = Topology(config.endpoints)
    assert scripted.run_blocking(SECONDARY.is_gone(config, driver, topology, last))
    assert topology.order()[0] == last
