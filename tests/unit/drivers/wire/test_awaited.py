"""Commands and answers on an asyncio transport, without a server."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from locus_mysql.drivers.interface import Result, Traffic
from locus_mysql.drivers.wire.awaited import CommandProtocol
from locus_mysql.drivers.wire.literals import PING, Command, query


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
