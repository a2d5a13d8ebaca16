"""Servers that send slowly, out of order or malformed: a call ends in time, and never returns another call's answer."""

from __future__ import annotations

import time

import pytest

from locus_mysql.dialect.statement import Statement
from locus_mysql.drivers.interface import ConnectionLost

from ...unit.drivers.wire.answers import TEXT, Done, Refused, Rows, encoded, framed
from ..conftest import MakeConfig
from ..proxy import WireProxy
from .conftest import Connect
from .sides import DriverSide, each_way_of_reading

pytestmark = pytest.mark.slow

#: Timeouts in these tests, and the longest duration of a call, in seconds. A byte arrives every 0.05 s.
LIMIT_S = 0.4
NEVER_S = 30.0

WRONG = Rows([TEXT], [(b"another's",)])


@pytest.mark.parametrize("after_bytes", [0, 100], ids=["the greeting", "the login"])
@pytest.mark.parametrize("mode", ["DISABLED", "REQUIRED"])
async def test_a_server_that_drips_ends_with_the_connect_timeout(
    side: DriverSide, make_config: MakeConfig, proxy: WireProxy, mode: str, after_bytes: int
) -> None:
    proxy.drip(after_bytes=after_bytes)
    start = time.monotonic()
    with pytest.raises(ConnectionLost) as caught:
        await side.open(make_config(host="127.0.0.1", port=proxy.port, ssl_mode=mode, connect_timeout_s=LIMIT_S))
    assert caught.value.connecting
    assert time.monotonic() - start < NEVER_S


@each_way_of_reading
@pytest.mark.parametrize("mode", ["DISABLED", "REQUIRED"])
@pytest.mark.parametrize("pipeline", [True, False])
async def test_an_answer_that_drips_ends_with_the_read_timeout(
    connect: Connect, proxy: WireProxy, mode: str, pipeline: bool
) -> None:
    line = await connect(
        host="127.0.0.1",
        port=proxy.port,
        ssl_mode=mode,
        read_timeout_s=LIMIT_S,
        write_timeout_s=NEVER_S,
        pipeline=pipeline,
    )
    proxy.drip()
    start = time.monotonic()
    with pytest.raises(ConnectionLost, match="time limit"):
        await line.execute(Statement("SELECT REPEAT('x', 1000)"), Statement("SELECT 1"))
    assert time.monotonic() - start < NEVER_S
    assert line.closed


@each_way_of_reading
@pytest.mark.parametrize(("mode", "read_timeout_s"), [("DISABLED", NEVER_S), ("REQUIRED", LIMIT_S)])
async def test_a_server_that_reads_nothing_ends_with_the_write_timeout(
    connect: Connect, proxy: WireProxy, mode: str, read_timeout_s: float
) -> None:
    line = await connect(
        host="127.0.0.1", port=proxy.port, ssl_mode=mode, read_timeout_s=read_timeout_s, write_timeout_s=LIMIT_S
    )
    proxy.black_hole()
    start = time.monotonic()
    with pytest.raises(ConnectionLost, match="time limit"):
        await line.execute(Statement("SELECT LENGTH(%s)", ("x" * 30_000_000,)))
    assert time.monotonic() - start < NEVER_S
    assert line.closed


@each_way_of_reading
async def test_a_result_that_comes_late_is_never_the_next_one_s(connect: Connect, proxy: WireProxy) -> None:
    line = await connect(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    assert await line.value("SELECT 'mine'") == "mine"
    proxy.inject(encoded([WRONG]))
    with pytest.raises(ConnectionLost):
        await line.value("SELECT 'mine'")
    assert line.closed


READ, WRITE = Statement("SELECT 1"), Statement("SET @mine = 1")


@each_way_of_reading
@pytest.mark.parametrize(
    ("statements", "answer"),
    [
        ((READ,), encoded([Done()])),
        ((WRITE,), encoded([WRONG])),
        ((READ, WRITE), encoded([Done(), WRONG])),
        ((READ,), encoded([WRONG, WRONG])),
        ((READ, READ), encoded([WRONG])),
        ((READ,), encoded([WRONG]) + encoded([WRONG])),
        ((READ,), encoded([WRONG], number=2)),
        ((READ,), encoded([Refused(1062, "out of turn")], number=2)),
        ((READ,), framed([b"\xff\x26\x04no state"])),
        ((READ,), framed([b"\xff\x26"])),
        ((READ,), framed([b"\xff\0\0#HY000no error of the server's"])),
        ((READ,), framed([b"\xff\xd7\x07#HY000a client's error"])),
    ],
    ids=[
        "no rows for a SELECT",
        "rows for a SET",
        "in another order",
        "one too many",
        "one too few",
        "one behind the last",
        "another number",
        "an error with another number",
        "an error without state",
        "an error cut short",
        "an error numbered 0",
        "an error numbered 2007",
    ],
)
async def test_an_answer_that_cannot_be_the_statements_drops_the_connection(
    connect: Connect, proxy: WireProxy, statements: tuple[Statement, ...], answer: bytes
) -> None:
    line = await connect(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    proxy.answer_instead(answer)
    with pytest.raises(ConnectionLost):
        await line.execute(*statements)
    assert line.closed


@each_way_of_reading
async def test_a_ping_that_is_answered_with_rows_drops_the_connection(connect: Connect, proxy: WireProxy) -> None:
    line = await connect(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    proxy.answer_instead(encoded([WRONG]))
    with pytest.raises(ConnectionLost):
        await line.ping()
    assert line.closed
