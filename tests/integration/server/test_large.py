"""Large request bodies and responses that clients do not read delay no other requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from locus_mysql.server import dispatching
from locus_mysql.server.application import create_app
from locus_mysql.server.bodies import LARGE_BYTES as LARGE_BODY_BYTES
from locus_mysql.server.bodies import json_of
from locus_mysql.server.limits import Limits
from locus_mysql.server.listening import ClientConnection

from ..conftest import MakeConfig
from .raw import PATIENCE_S, RawClient, state
from .running import running
from .test_serve import until

pytestmark = pytest.mark.kept_tables("agents")

PATH = "/threads/t/checkpoints"

#: Requests the state that `save_a_large_state` saves.
ASK = b"GET /threads/t/checkpoints/c HTTP/1.1\r\nHost: HOST\r\n\r\n"

#: More than socket buffers hold if the client does not read.
LARGE_BYTES = 12_000_000


class Reader(RawClient):
    """A client with a small receive buffer."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)

    def read_all(self) -> bytes:
        """Return all bytes until the connection ends."""
        pieces = []
        with contextlib.suppress(ConnectionError):
            while piece := self.socket.recv(1 << 20):
                pieces.append(piece)
        return b"".join(pieces)


async def test_others_are_served_while_a_large_body_is_parsed(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing blocks in this test, so it must run in a thread. A small body is parsed without a thread."""
    began, goes_on = threading.Event(), threading.Event()
    parsed_in: list[threading.Thread] = []

    def slowly(body: bytes, limits: Limits) -> Any:
        parsed_in.append(threading.current_thread())
        if len(body) > LARGE_BODY_BYTES:
            began.set()
            assert goes_on.wait(PATIENCE_S)
        return json_of(body, limits)

    monkeypatch.setattr(dispatching, "json_of", slowly)
    body = {"checkpoint_id": "large", "state": {"messages": [], "note": "x" * LARGE_BODY_BYTES}}
    saving = asyncio.create_task(client.post(PATH, json=body))
    try:
        assert await asyncio.to_thread(began.wait, PATIENCE_S)
        small = await client.post(PATH, json={"checkpoint_id": "small", "state": {"messages": []}})
        assert small.status_code == 200
        assert not saving.done()
    finally:
        goes_on.set()
        assert (await saving).status_code == 200
    assert (await client.get(f"{PATH}/large")).json() == {"state": body["state"]}
    assert [one is threading.current_thread() for one in parsed_in] == [False, True]


def save_a_large_state(url: str) -> None:
    with RawClient(url) as client:
        assert client.post(PATH, state(state={"messages": [], "note": "x" * LARGE_BYTES})).status == 200


def test_an_answer_that_nobody_reads_is_given_up_and_with_it_the_place_of_its_client(make_config: MakeConfig) -> None:
    """Only one connection is allowed, so other requests are served once that connection is closed."""
    readers: list[Reader] = []

    def is_served(client: RawClient, request: bytes) -> bool:
        with contextlib.suppress(ConnectionError):  # refused, and closed before the answer was read
            client.send(request)
            return client.socket.recv(12) == b"HTTP/1.1 200"
        return False

    def other_is_served() -> bool:
        with RawClient(url) as other:
            return is_served(other, b"GET /health HTTP/1.1\r\nHost: HOST\r\n\r\n")

    def reader_is_served() -> bool:
        readers.append(stack.enter_context(Reader(url)))
        return is_served(readers[-1], ASK)

    with (
        running(create_app(make_config(driver="pymysql"), limits=Limits(connections=1, send_s=0.5))) as url,
        contextlib.ExitStack() as stack,
    ):
        save_a_large_state(url)
        until(reader_is_served, "the answer's beginning")
        until(other_is_served, "the end of the connection that is not read")
        assert len(readers[-1].read_all()) < LARGE_BYTES


def test_a_slow_client_that_keeps_reading_receives_the_whole_response(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit for a client that does not read restarts with each piece, so the whole answer may take longer."""
    waits: list[str] = []

    def counted(name: str) -> Callable[[ClientConnection], None]:
        whole = getattr(ClientConnection, name)

        def called(self: ClientConnection) -> None:
            waits.append(name)
            whole(self)

        return called

    for name in ("pause_writing", "resume_writing"):
        monkeypatch.setattr(ClientConnection, name, counted(name))
    with running(create_app(make_config(driver="pymysql"))) as url, Reader(url) as reader:
        save_a_large_state(url)
        reader.send(ASK)
        until(lambda: waits, "the wait for the client")
        answer = reader.answer()
    assert len(answer.body) > LARGE_BYTES
    assert json.loads(answer.body)["state"]["note"] == "x" * LARGE_BYTES
    assert waits.count("resume_writing") >= 5


def test_unread_bytes_count_like_unsent_bytes(make_config: MakeConfig) -> None:
    """Otherwise, clients that send requests and do not read the answers would fill the memory."""
    limits = Limits(body_bytes=LARGE_BYTES + 10_000, bodies_bytes=2 * LARGE_BYTES + 20_000)
    with running(create_app(make_config(driver="pymysql"), limits=limits)) as url:
        save_a_large_state(url)
        with RawClient(url) as other:
            with Reader(url) as reader:
                reader.send(ASK)
                assert select.select([reader.socket], [], [], PATIENCE_S)[0]  # its answer has begun
                refused = other.request("GET", PATH + "/c")
                assert (refused.status, refused.code) == (429, "too_many_requests")
                assert other.request("GET", PATH).status == 200
            until(lambda: other.request("GET", PATH + "/c").status == 200, "the end of what was not read")
