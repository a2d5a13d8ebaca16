"""Which of several servers is connected to as the primary, and when a silent one is left; both sides, no server."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.config import Endpoint, MySQLConfig
from locus_mysql.dialect import Statement
from locus_mysql.dialect.servers import MEMBERS, NO_LONGER_WRITTEN, ONLY_WHERE_WRITTEN, WRITES
from locus_mysql.drivers.interface import ConnectionLost, Result, ServerError
from locus_mysql.engine.primary import PRIMARY
from locus_mysql.engine.topology import BRIEFLY_S, NoPrimary, NotAMember, Topology, is_read_only

from .scripted import Driver, result_of

CONFIG = MySQLConfig(hosts=("a", "b", "c"), connect_timeout_s=10, read_timeout_s=20, write_timeout_s=30)
A, B, C = CONFIG.endpoints
SELECT = Statement("SELECT 1")

LOST = ConnectionLost("It gives no answer.")
DENIED = ServerError(1142, "SELECT command denied")

#: What a server may be, and its answers to what it is asked first.
PRIMARY_ONE: dict[int, Any] = {2: [Result(((0,),)), Result(((1, "ONLINE"),))], 1: [Result(((0,),))]}
SECONDARY_ONE: dict[int, Any] = {2: [Result(((1,),)), Result(((1, "ONLINE"),))], 1: [Result(((1,),))]}
RECOVERING: dict[int, Any] = {2: [Result(((0,),)), Result(((1, "RECOVERING"),))]}
SILENT: dict[int, Any] = {2: LOST, 1: LOST}
AWAY: dict[int, Any] = {0: ConnectionLost("Nobody is there.", connecting=True)}
PRIVATE: dict[int, Any] = {2: DENIED, 1: [Result(((0,),))]}

pytestmark = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])


class Servers:
    """Servers of a kind each, the topology that is known of them, and calls of one side."""

    def __init__(self, awaited: bool, *kinds: dict[int, Any], config: MySQLConfig = CONFIG) -> None:
        self.awaited, self.config = awaited, config
        self.kinds = dict(zip(config.endpoints, kinds, strict=True))
        self.topology = Topology(config.endpoints)
        self.driver: Any = Driver(self.answer)

    def answer(self, endpoint: Endpoint, statements: tuple[Statement, ...]) -> Any:
        return self.kinds[endpoint].get(len(statements), [])

    async def connect(self) -> Any:
        connect = PRIMARY.connect_async if self.awaited else PRIMARY.connect
        return await result_of(connect(self.config, self.driver, self.topology))

    async def gone(self, silent: Endpoint) -> bool:
        gone = PRIMARY.gone_async if self.awaited else PRIMARY.gone
        return bool(await result_of(gone(self.config, self.driver, self.topology, silent)))

    @property
    def ended(self) -> list[tuple[str, str]]:
        return [(one.endpoint.host, one.ended) for one in self.driver.opened]


async def test_servers_are_asked_in_turn_until_one_is_the_primary(awaited: bool) -> None:
    servers = Servers(awaited, SECONDARY_ONE, PRIMARY_ONE, PRIMARY_ONE)
    connection = await servers.connect()
    assert (connection.endpoint, connection.closed) == (B, False)
    assert servers.ended == [("a", "closed"), ("b", "")]
    assert servers.driver.asked == [("a", (WRITES, MEMBERS)), ("b", (WRITES, MEMBERS))]
    assert servers.topology.order() == (B, A, C)
    await servers.connect()
    assert [one.endpoint for one in servers.driver.opened] == [A, B, B]


async def test_a_single_server_is_asked_nothing(awaited: bool) -> None:
    single = MySQLConfig(host="a")
    servers = Servers(awaited, SECONDARY_ONE, config=single)
    connection = await servers.connect()
    assert connection is servers.driver.opened[0]
    assert servers.driver.asked == []
    servers.kinds[single.endpoints[0]] = AWAY
    with pytest.raises(ConnectionLost, match="Nobody"):
        await servers.connect()


async def test_one_that_falls_silent_while_it_is_asked_is_dropped_and_tried_last(awaited: bool) -> None:
    servers = Servers(awaited, SILENT, AWAY, PRIMARY_ONE)
    connection = await servers.connect()
    assert connection.endpoint == C
    assert servers.ended == [("a", "aborted"), ("c", "")]
    assert servers.driver.limits == [10, 10, 10]
    servers.topology.failed(C, LOST)
    servers.kinds = {A: PRIMARY_ONE, B: PRIMARY_ONE, C: PRIMARY_ONE}
    assert (await servers.connect()).endpoint == A
    assert servers.driver.limits[3:] == [BRIEFLY_S]


async def test_where_none_is_the_primary_each_says_why(awaited: bool) -> None:
    servers = Servers(awaited, SECONDARY_ONE, RECOVERING, AWAY)
    with pytest.raises(NoPrimary) as caught:
        await servers.connect()
    assert [type(reason) for reason in caught.value.reasons] == [ServerError, NotAMember, ConnectionLost]
    assert str(caught.value) == (
        "[1290] MySQL at a:3306 takes no writes (read_only is on); MySQL at b:3306 is no working member of its group: "
        "its state is RECOVERING; Nobody is there"
    )
    assert caught.value.answered
    assert servers.ended == [("a", "closed"), ("b", "closed")]


async def test_a_user_who_may_not_see_the_group_is_asked_less_once_and_for_all(awaited: bool) -> None:
    servers = Servers(awaited, PRIVATE, PRIMARY_ONE, PRIMARY_ONE)
    assert (await servers.connect()).endpoint == A
    assert (await servers.connect()).endpoint == A
    assert [len(statements) for _, statements in servers.driver.asked] == [2, 1, 1]
    refusing = Servers(awaited, {2: ServerError(1064, "syntax"), 1: []}, PRIMARY_ONE, PRIMARY_ONE)
    assert (await refusing.connect()).endpoint == B
    assert refusing.ended == [("a", "closed"), ("b", "")]


async def test_what_interrupts_the_questions_drops_the_connection(awaited: bool) -> None:
    servers = Servers(awaited, {2: KeyboardInterrupt()}, PRIMARY_ONE, PRIMARY_ONE)
    with pytest.raises(KeyboardInterrupt):
        await servers.connect()
    assert servers.ended == [("a", "aborted")]


async def test_each_packet_runs_only_while_the_server_takes_writes(awaited: bool) -> None:
    answers: dict[int, Any] = {**PRIMARY_ONE, 3: [Result(), Result(((7,),)), Result(((8,),))]}
    servers = Servers(awaited, answers, AWAY, AWAY)
    connection = await servers.connect()
    assert await result_of(connection.execute((SELECT, SELECT))) == [Result(((7,),)), Result(((8,),))]
    assert servers.driver.asked[-1] == ("a", (ONLY_WHERE_WRITTEN, SELECT, SELECT))
    answers[3] = ServerError(1411, f"Incorrect string value: '{NO_LONGER_WRITTEN}' for function uuid_to_bin")
    with pytest.raises(ServerError, match="a:3306 takes no writes") as caught:
        await result_of(connection.execute((SELECT, SELECT)))
    assert is_read_only(caught.value)
    answers[3] = ServerError(1213, "Deadlock")
    with pytest.raises(ServerError, match="Deadlock"):
        await result_of(connection.execute((SELECT, SELECT)))
    assert connection.server_version == "9.7.4"
    assert connection.max_allowed_packet == 1_000_000
    assert connection.traffic is servers.driver.opened[0].traffic
    await result_of(connection.ping())
    assert servers.driver.opened[0].pings == 1
    await result_of(connection.close())
    assert servers.ended == [("a", "closed")]
    assert connection.closed


@pytest.mark.parametrize(
    ("kinds", "left"),
    [
        pytest.param((SILENT, PRIMARY_ONE, AWAY), True, id="another one is the primary"),
        pytest.param((AWAY, SECONDARY_ONE, PRIMARY_ONE), True, id="the last one is"),
        pytest.param((PRIMARY_ONE, PRIMARY_ONE, PRIMARY_ONE), False, id="several take writes, and it is only slow"),
        pytest.param((SILENT, SECONDARY_ONE, AWAY), False, id="none is"),
    ],
)
async def test_a_silent_server_is_left_where_another_one_is_the_primary_by_now(
    awaited: bool, kinds: tuple[dict[int, Any], ...], left: bool
) -> None:
    servers = Servers(awaited, *kinds)
    servers.topology.is_primary(A)
    assert await servers.gone(A) is left
    assert all(ended for _, ended in servers.ended)
    assert set(servers.driver.limits) == {BRIEFLY_S}
    if left:
        assert servers.topology.order()[0] in {B, C}
        assert servers.kinds[servers.topology.order()[0]] is PRIMARY_ONE
    else:
        asked = [endpoint for endpoint, _ in servers.driver.asked]
        assert asked.count("b") == 1
        assert asked.count("c") == 0
