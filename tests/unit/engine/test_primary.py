"""Choice of the primary among several servers, and leaving a silent one; both sides, without a server."""

from __future__ import annotations

from typing import Any
from weakref import ref

import pytest

from locus_mysql.config import Endpoint, MySQLConfig
from locus_mysql.dialect import Statement
from locus_mysql.dialect.server_roles import (
    GROUP,
    MEMBERS,
    NO_LONGER_WRITTEN,
    ONLY_WHERE_WRITTEN,
    SPLITS,
    VIEW,
    WRITES,
)
from locus_mysql.drivers.interface import ConnectionLost, Result, ServerError
from locus_mysql.engine.cluster.topology import (
    BRIEFLY_S,
    LeadsToSecondary,
    NoPrimary,
    NotAMember,
    Topology,
    is_read_only,
)
from locus_mysql.engine.commands import CommandGenerator
from locus_mysql.engine.failures import NO_SEVERAL_STATEMENTS
from locus_mysql.engine.pool import Pool, ServerConnection
from locus_mysql.engine.servers import servers_of
from locus_mysql.engine.sides import AwaitedSide, BlockingSide

from .scripted import Driver, borrow, give_back, run

CONFIG = MySQLConfig(hosts=("a", "b", "c"), connect_timeout_s=10, read_timeout_s=20, write_timeout_s=30)
A, B, C = CONFIG.endpoints
SELECT = Statement("SELECT 1")

LOST = ConnectionLost("It gives no answer.")

#: Kinds of servers, and their answers to the probe of their role.
VIEW_1 = Result((("1712:1",),))
PRIMARY_ONE: dict[int, Any] = {3: [Result(((0,),)), Result(((1, "ONLINE"),)), VIEW_1], 1: [Result(((0,),))]}
SECONDARY_ONE: dict[int, Any] = {3: [Result(((1,),)), Result(((1, "ONLINE"),)), VIEW_1], 1: [Result(((1,),))]}
RECOVERING: dict[int, Any] = {3: [Result(((0,),)), Result(((1, "RECOVERING"),)), VIEW_1]}
SILENT: dict[int, Any] = {3: LOST, 1: LOST}
AWAY: dict[int, Any] = {0: ConnectionLost("Nobody is there.", connecting=True)}

pytestmark = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


class Servers:
    """Servers of given kinds, their known topology, and calls of one side."""

    def __init__(self, awaited: bool, *kinds: dict[int, Any], config: MySQLConfig = CONFIG) -> None:
        self.awaited, self.config = awaited, config
        self.kinds = dict(zip(config.endpoints, kinds, strict=True))
        self.driver: Any = Driver(self.answer)
        self.servers: Any = servers_of(config, self.driver)
        self.pool = Pool(config, AwaitedSide() if awaited else BlockingSide(), self.servers)

    def answer(self, endpoint: Endpoint, statements: tuple[Statement, ...]) -> Any:
        return self.kinds[endpoint].get(len(statements), [])

    async def connect(self) -> Any:
        return await self.run(self.servers.connect(self.pool))

    async def gone(self, silent: Endpoint) -> bool:
        return bool(await self.run(self.servers.is_replaced(silent)))

    @property
    def topology(self) -> Topology:
        return self.servers.topology

    async def run(self, steps: CommandGenerator[Any]) -> Any:
        return await run(steps, awaited=self.awaited)

    @property
    def ended(self) -> list[tuple[str, str]]:
        return [(one.endpoint.host, one.ended) for one in self.driver.opened]


async def test_servers_are_asked_in_turn_until_one_is_the_primary(awaited: bool) -> None:
    servers = Servers(awaited, SECONDARY_ONE, PRIMARY_ONE, PRIMARY_ONE)
    connection = await servers.connect()
    assert (connection.endpoint, connection.connection.closed) == (B, False)
    assert servers.ended == [("a", "closed"), ("b", "")]
    assert servers.driver.asked == [("a", (WRITES, MEMBERS, VIEW)), ("b", (WRITES, MEMBERS, VIEW))]
    assert servers.topology.order() == (B, A, C)
    await servers.connect()
    assert [one.endpoint for one in servers.driver.opened] == [A, B, B]


async def test_a_server_that_falls_silent_during_the_probe_is_dropped_and_tried_last(awaited: bool) -> None:
    servers = Servers(awaited, SILENT, AWAY, PRIMARY_ONE)
    connection = await servers.connect()
    assert connection.endpoint == C
    assert servers.ended == [("a", "aborted"), ("c", "")]
    assert servers.driver.limits == [10, 10, 10]
    servers.topology.failed(C, LOST)
    servers.kinds = {A: PRIMARY_ONE, B: PRIMARY_ONE, C: PRIMARY_ONE}
    assert (await servers.connect()).endpoint == A
    assert servers.driver.limits[3:] == [BRIEFLY_S]


async def test_without_a_primary_the_error_has_the_reason_of_each_server(awaited: bool) -> None:
    servers = Servers(awaited, SECONDARY_ONE, RECOVERING, AWAY)
    with pytest.raises(NoPrimary) as caught:
        await servers.connect()
    assert [type(reason) for reason in caught.value.reasons] == [ServerError, NotAMember, ConnectionLost]
    assert str(caught.value) == (
        "[1290] MySQL at a:3306 takes no writes (it is read-only); MySQL at b:3306 is no working member of its group: "
        "its state is RECOVERING; Nobody is there"
    )
    assert servers.ended == [("a", "closed"), ("b", "closed")]


async def test_each_packet_runs_only_while_the_server_takes_writes(awaited: bool) -> None:
    answers: dict[int, Any] = {**PRIMARY_ONE, 2: [Result(), Result(((7,),))]}
    servers = Servers(awaited, answers, AWAY, AWAY)
    connection = await servers.connect()
    assert await servers.run(connection.execute((SELECT,))) == [Result(((7,),))]
    assert servers.driver.asked[-1] == ("a", (ONLY_WHERE_WRITTEN, SELECT))
    answers[2] = ServerError(1411, f"Incorrect string value: '{NO_LONGER_WRITTEN}' for function uuid_to_bin")
    with pytest.raises(ServerError, match="a:3306 takes no writes") as caught:
        await servers.run(connection.execute((SELECT,)))
    assert is_read_only(caught.value)
    answers[2] = ServerError(1213, "Deadlock")
    with pytest.raises(ServerError, match="Deadlock"):
        await servers.run(connection.execute((SELECT,)))


ROUTER_VERSION = "9.7.4-router"
TAKES_WRITES, TAKES_NONE = Result(((0,),)), Result(((1,),))
IN_A_GROUP, IN_NO_GROUP = Result((("uuid",),)), Result((("",),))
ON_AURORA = Result((("3.05.2",),))  # the version of Aurora; its servers have no group


class OnlyAddress(Servers):
    """One address: the version in its greeting, and the server's answer to each statement."""

    def __init__(
        self, awaited: bool, version: str, answers: dict[Statement, Any], *, takes_none: bool = False, **options: Any
    ) -> None:
        super().__init__(awaited, {}, config=MySQLConfig(host="a", **options))
        self.answers = answers
        self.driver.greeting = version, takes_none

    def answer(self, endpoint: Endpoint, statements: tuple[Statement, ...]) -> Any:
        answers = [self.answers[statement] for statement in statements]
        errors = [answer for answer in answers if isinstance(answer, Exception)]
        return errors[0] if errors else answers


@pytest.mark.parametrize("group", [IN_A_GROUP, IN_NO_GROUP])
async def test_the_router_is_refused_where_it_leads_to_a_server_without_writes(awaited: bool, group: Result) -> None:
    address = OnlyAddress(awaited, ROUTER_VERSION, {WRITES: TAKES_NONE, GROUP: group})
    with pytest.raises(LeadsToSecondary, match="a:3306 takes no writes"):
        await address.connect()
    assert address.ended == [("a", "closed")]


async def test_each_packet_through_the_router_checks_that_it_reaches_the_primary(awaited: bool) -> None:
    answers: dict[Statement, Any] = {WRITES: TAKES_WRITES, GROUP: IN_A_GROUP}
    address = OnlyAddress(awaited, ROUTER_VERSION, answers)
    connection = await address.connect()
    answers |= {ONLY_WHERE_WRITTEN: Result(), SELECT: TAKES_WRITES}
    assert await address.run(connection.execute((SELECT,))) == [TAKES_WRITES]
    for error, gave_up in (
        (ServerError(1411, NO_LONGER_WRITTEN), False),
        (ServerError(1290, "read-only"), False),
        (ServerError(3100, "hook"), True),  # the group may have committed the transaction
    ):
        answers[ONLY_WHERE_WRITTEN] = error
        with pytest.raises(LeadsToSecondary) as caught:
            await address.run(connection.execute((SELECT,)))
        assert caught.value.gave_up == gave_up
    answers[ONLY_WHERE_WRITTEN] = ServerError(1213, "Deadlock")
    with pytest.raises(ServerError, match="Deadlock"):
        await address.run(connection.execute((SELECT,)))


async def test_a_splitting_port_is_refused_also_while_only_the_primary_answers(awaited: bool) -> None:
    answers: dict[Statement, Any] = {WRITES: TAKES_WRITES, GROUP: IN_A_GROUP, SPLITS: Result()}
    address = OnlyAddress(awaited, ROUTER_VERSION, answers, pipeline=False)
    with pytest.raises(ServerError, match="splits reads from writes") as caught:
        await address.connect()
    assert caught.value.errno == NO_SEVERAL_STATEMENTS
    assert address.ended == [("a", "closed")]
    answers[SPLITS] = ServerError(1064, "You have an error in your SQL syntax")
    assert (await address.connect()).connection is address.driver.opened[1]


@pytest.mark.parametrize(
    ("group", "refused"), [(IN_A_GROUP, True), (ON_AURORA, True), (IN_NO_GROUP, False), (Result(()), False)]
)
async def test_a_single_read_only_server_is_refused_only_if_it_is_a_secondary_of_a_group_or_a_reader_of_aurora(
    awaited: bool, group: Result, refused: bool
) -> None:
    answers = {WRITES: TAKES_NONE, GROUP: group}
    address = OnlyAddress(awaited, "9.7.4", answers, takes_none=True)
    if refused:
        with pytest.raises(LeadsToSecondary):
            await address.connect()
    else:
        assert type(await address.connect()) is ServerConnection


@pytest.mark.parametrize("version", ["9.7.4", ROUTER_VERSION])
async def test_only_to_read_any_single_address_is_used_and_asked_nothing(awaited: bool, version: str) -> None:
    address = OnlyAddress(awaited, version, {}, takes_none=True, read_only=True, pipeline=False)
    assert type(await address.connect()) is ServerConnection
    assert address.driver.asked == []


async def connected(awaited: bool) -> tuple[Servers, list[Any]]:
    """Return three servers, and three connections of the pool to the first of them."""
    servers = Servers(awaited, PRIMARY_ONE, SECONDARY_ONE, SECONDARY_ONE)
    connections = [await servers.run(borrow(servers.pool)) for _ in range(3)]
    return servers, connections


async def test_calls_on_one_of_several_servers_are_watched_and_pings_are_as_well(awaited: bool) -> None:
    servers, (lent, *_) = await connected(awaited)
    calls, seen = servers.servers.watch(servers.pool), []
    servers.kinds[A] = {}
    servers.driver.answers = lambda *_: seen.append(calls.waiting()) or [Result(), Result()]
    await servers.run(lent.execute((SELECT,)))
    lent.connection.try_ping = lambda: seen.append(calls.waiting())
    await servers.run(lent.ping())
    assert seen == [[lent], [lent]]
    assert calls.waiting() == []


async def test_a_call_that_cannot_be_watched_is_not_sent(awaited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(connection: Any) -> None:
        raise RuntimeError("no thread can be started any more")

    servers, (lent, *_) = await connected(awaited)
    monkeypatch.setattr(servers.servers.watch(servers.pool), "begin", fail)
    asked = len(servers.driver.asked)
    with pytest.raises(RuntimeError, match="no thread"):
        await servers.run(lent.execute((SELECT,)))
    assert len(servers.driver.asked) == asked


async def test_a_silent_server_is_left_once_another_one_is_the_primary(awaited: bool) -> None:
    servers, (silent, waiting, idle) = await connected(awaited)
    calls = servers.servers.watch(servers.pool)
    await servers.run(give_back(servers.pool, idle))
    for one in (silent, waiting):
        calls.begin(one)
    await servers.run(servers.servers.look_for_another(ref(servers.pool), silent))
    assert [one.connection.ended for one in (silent, waiting, idle)] == ["", "", ""]
    servers.kinds |= {A: SILENT, B: PRIMARY_ONE}
    await servers.run(servers.servers.look_for_another(ref(servers.pool), silent))
    ended = "aborted" if awaited else "interrupted"
    assert [one.connection.ended for one in (silent, waiting, idle)] == [ended, ended, "aborted"]
    new = await servers.run(borrow(servers.pool))
    assert new.endpoint == B
    await servers.run(give_back(servers.pool, silent, LOST))
    await servers.run(give_back(servers.pool, new))
    assert new.connection.ended == ""  # connections to the new primary are kept
    for one in (silent, waiting):
        calls.end(one)
