"""Commands and answers on an asyncio transport, without a server."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from locus_mysql.drivers.interface import Result, Traffic
from locus_mysql.drivers.wire.awaited import CommandProtocol
from locus_mysql.drivers.wire.literals import PING, Command, query
from locus_mysql.drivers.wire.results import ErrorPacket, ProtocolSurprise

from .answers import TEXT, Done, Refused, Rows, encoded

ROWS = Rows([TEXT], [(b"a" * 1000,), (None,)])
RESULT = Result([("a" * 1000,), (None,)])


class Transport:
    """Records written bytes; the test acts as the server."""

    def __init__(self, tls: object) -> None:
        self.tls = tls
        self.protocol: Any = None
        self.written = b""
        self.aborted = False

    def set_protocol(self, protocol: asyncio.BufferedProtocol) -> None:
        self.protocol = protocol

    def receive(self, data: bytes) -> None:
        """Pass the server's bytes to the protocol, each time as many as fit into its buffer."""
        while data:
            buffer = self.protocol.get_buffer(-1)
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            self.protocol.buffer_updated(count)
            data = data[count:]

    def write(self, data: bytes) -> None:
        self.written += data

    def get_extra_info(self, name: str) -> object:
        assert name == "ssl_object"
        return self.tls

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        assert (high, low) == (1, 0)  # any unsent byte pauses the protocol

    def abort(self) -> None:
        self.aborted = True


class Talk:
    """A protocol and its transport."""

    def __init__(self, write_s: float = 5, read_s: float = 5, tls: object = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.transport = Transport(tls)
        self.unread = False
        self.traffic = Traffic()
        self.protocol = CommandProtocol(
            self.transport, self.loop, lambda: self.unread, self.traffic, write_s=write_s, read_s=read_s
        )

    async def call(self, command: Command, within_s: float = 5) -> asyncio.Task[list[Result]]:
        task = asyncio.create_task(self.protocol.call(command, self.loop.time() + within_s))
        await asyncio.sleep(0)
        return task


@pytest.fixture
async def talk() -> Talk:
    return Talk()


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_an_answer_is_read_in_any_pieces(talk: Talk, size: int) -> None:
    asked = await talk.call(query(b"SELECT"))
    answer = encoded([ROWS, Done(2)])
    for begin in range(0, len(answer), size):
        assert not asked.done()
        talk.transport.receive(answer[begin : begin + size])
    assert await asked == [RESULT, Result((), 2, 0)]
    assert talk.transport.written == query(b"SELECT").wire


async def test_an_error_is_raised_and_the_next_command_answered(talk: Talk) -> None:
    asked = await talk.call(query(b"SELECT"))
    talk.transport.receive(encoded([Refused(1064, "no")]))
    with pytest.raises(ErrorPacket):
        await asked
    asked = await talk.call(PING)
    talk.transport.receive(encoded([Done()]))
    assert await asked == [Result()]


async def test_a_deadline_ends_the_waiting(talk: Talk) -> None:
    asked = await talk.call(PING, within_s=0.01)
    with pytest.raises(TimeoutError):
        await asked


@pytest.mark.parametrize(
    ("limits", "sent"),
    [({"read_s": 0.01}, True), ({"write_s": 0.01}, False)],
    ids=["no answer", "not sent"],
)
async def test_sending_and_the_answer_have_a_limit_each(limits: dict[str, float], sent: bool) -> None:
    talk = Talk(**{"write_s": 3600, "read_s": 3600, **limits})
    if not sent:
        talk.protocol.pause_writing()
    with pytest.raises(TimeoutError):
        await (await talk.call(PING, within_s=3600))


async def test_the_limit_of_the_answer_begins_when_everything_was_sent() -> None:
    talk = Talk(write_s=3600, read_s=0.01)
    talk.protocol.pause_writing()
    asked = await talk.call(PING, within_s=3600)
    await asyncio.sleep(0.05)
    assert not asked.done()
    talk.protocol.resume_writing()
    with pytest.raises(TimeoutError):
        await asked
    talk.protocol.resume_writing()  # no caller waits
    asked = await talk.call(PING, within_s=0.01)  # the deadline of a call ends it before its limits
    with pytest.raises(TimeoutError):
        await asked


@pytest.mark.parametrize(("size", "has_both"), [(1_000, False), (100_000, True)])
async def test_over_tls_a_large_command_has_both_limits_together_because_asyncio_does_not_report_when_it_was_sent(
    size: int, has_both: bool
) -> None:
    talk = Talk(write_s=3600, read_s=0.01, tls="an SSL object")
    asked = await talk.call(query(b"x" * size), within_s=3600)
    await asyncio.wait([asked], timeout=0.2 if has_both else 60)
    assert asked.done() is not has_both
    talk.protocol.connection_lost(None)
    with pytest.raises(ConnectionResetError if has_both else TimeoutError):
        await asked


async def test_an_invalid_answer_raises_an_error(talk: Talk) -> None:
    asked = await talk.call(PING)
    talk.transport.receive(b"HTTP/1.1")
    with pytest.raises(ProtocolSurprise):
        await asked


@pytest.mark.parametrize("how", ["eof", "lost", "lost with a reason"])
async def test_a_connection_lost_while_waiting_or_idle_is_reported(talk: Talk, how: str) -> None:
    asked = await talk.call(PING)
    if how == "eof":
        assert not talk.transport.protocol.eof_received()
    else:
        talk.transport.protocol.connection_lost(OSError("broken") if "reason" in how else None)
    for waiting in (asked, await talk.call(PING)):
        with pytest.raises(ConnectionResetError, match="broken" if "reason" in how else "closed the connection"):
            await waiting


async def test_data_without_a_command_ends_the_connection(talk: Talk) -> None:
    talk.transport.receive(encoded([Refused(4031, "inactivity")], number=0))
    assert talk.transport.aborted
    with pytest.raises(ConnectionResetError, match="4031: inactivity"):
        await (await talk.call(PING))
    assert talk.transport.written == b""


async def test_an_abandoned_answer_is_never_taken_for_the_next_one(talk: Talk) -> None:
    asked = await talk.call(query(b"SELECT"))
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    talk.transport.receive(encoded([ROWS]))
    assert talk.transport.aborted
    with pytest.raises(ConnectionResetError):
        await (await talk.call(PING))


async def test_a_failure_that_comes_with_a_cancellation_or_to_an_abandoned_call_is_not_logged(
    talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    asked = await talk.call(PING)
    talk.transport.protocol.connection_lost(None)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    Talk().transport.protocol.connection_lost(None)
    gc.collect()
    assert caplog.records == []


def test_a_call_whose_event_loop_was_closed_ends_with_the_exception_that_is_thrown_into_it() -> None:
    """Another error would be treated as a lost connection, and the call would be repeated while it is being freed."""
    loop = asyncio.new_event_loop()

    async def begin() -> Talk:
        return Talk()

    talk = loop.run_until_complete(begin())
    calling = talk.protocol.call(PING, loop.time() + 5)
    waiting = calling.send(None)
    waiting.add_done_callback(lambda future: None)  # as a task does
    loop.close()
    with pytest.raises(GeneratorExit):
        calling.throw(GeneratorExit)
