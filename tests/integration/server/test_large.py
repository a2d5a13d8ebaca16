"""Large request bodies and responses that clients do not read delay no other requests."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time

import pytest

from locus_mysql.server.application import create_app
from locus_mysql.server.limits import Limits

from ..conftest import MakeConfig
from .conftest import OpenClient
from .raw import PATIENCE_S, RawClient, state
from .running import running

pytestmark = pytest.mark.kept_tables("agents")

PATH = "/threads/t/checkpoints"

#: Requests the state that `save_a_large_state` saves.
ASK = b"GET /threads/t/checkpoints/c HTTP/1.1\r\nHost: HOST\r\n\r\n"

#: More than socket buffers hold if the client does not read.
LARGE_BYTES = 7_500_000


class Reader(RawClient):
    """A client with a small receive buffer."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        #: Seconds between two reads of up to 1 MB.
        self.pause_s = 0.0

    def read_all(self) -> bytes:
        """Return all bytes until the connection ends."""
        pieces = []
        with contextlib.suppress(ConnectionError):
            while piece := self.socket.recv(1 << 20):
                pieces.append(piece)
        return b"".join(pieces)

    def _more(self) -> None:
        time.sleep(self.pause_s)  # the client is slow
        end = len(self._left) + 1_000_000
        while len(self._left) < end and select.select([self.socket], [], [], self.pause_s)[0]:
            super()._more()


def save_a_large_state(url: str) -> None:
    with RawClient(url) as client:
        assert client.post(PATH, state(state={"messages": [], "note": "x" * LARGE_BYTES})).status == 200


def test_an_answer_that_nobody_reads_is_given_up_and_with_it_its_turn(make_config: MakeConfig) -> None:
    """Only one operation is carried out at once. A large answer keeps its turn until it is sent, or given up."""
    config = make_config(driver="pymysql", pool_size=1)
    with running(create_app(config, limits=Limits(send_s=0.5))) as url, Reader(url) as reader, RawClient(url) as other:
        save_a_large_state(url)
        reader.send(ASK)
        assert select.select([reader.socket], [], [], PATIENCE_S)[0]  # its answer has begun
        assert other.request("GET", PATH).status == 200
        assert len(reader.read_all()) < LARGE_BYTES


def test_a_slow_client_that_keeps_reading_receives_the_whole_response(make_config: MakeConfig) -> None:
    """The time limit for a client that does not read restarts with each piece, so the whole answer may take longer."""
    with running(create_app(make_config(driver="pymysql"), limits=Limits(send_s=2))) as url, Reader(url) as reader:
        save_a_large_state(url)
        began = time.monotonic()
        reader.send(ASK)
        reader.pause_s = 0.4
        answer = reader.answer()
        took_s = time.monotonic() - began
    assert json.loads(answer.body)["state"]["note"] == "x" * LARGE_BYTES
    assert took_s > 2


async def test_an_answer_beyond_the_limit_is_refused_before_it_fills_the_memory(
    open_client: OpenClient, make_config: MakeConfig
) -> None:
    client = open_client(limits=Limits(answer_bytes=100_000))
    assert (await client.post(PATH, json={"checkpoint_id": "c", "state": {"note": "x" * 200_000}})).status_code == 200
    refused = await client.get(f"{PATH}/c")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "answer_too_large")
    assert (await client.get(PATH)).json() == {"checkpoints": ["c"]}
