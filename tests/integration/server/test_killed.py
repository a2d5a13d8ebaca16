"""Workers and MySQL are killed under six writers: acknowledged writes stay, and none takes effect twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from ci.local_server import LocalServer

from ...thoroughness import FULL
from ..commands import dsn_of
from ..conftest import MakeConfig
from .test_serve import PATIENCE_S, Service
from .test_workers import workers_of

WRITERS = 6

#: Acknowledged writes of each writer between two kills.
BETWEEN = 3

#: Seconds until a request that was not acknowledged is sent again.
PAUSE_S = 0.05

#: One driver for each kill, unless a run is full: `tests/faults` kills MySQL under every driver.
KILLS = [("worker", "mysql-connector"), ("mysql", "pymysql")]
if FULL:
    KILLS += [("service", "pymysql"), ("mysql", "mysql-connector")]


@dataclass
class Writer:
    """One client, which repeats unacknowledged writes unchanged, except increments, which it sends once.

    Args:
        number: The number of the client.
        url: URL of the service.
    """

    number: int
    url: str
    saved: int = 0
    tried_increments: int = 0
    increments: int = 0
    done: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Write until `done`."""
        with httpx.Client(base_url=self.url, timeout=PATIENCE_S) as client:
            while not self.done.is_set():
                self._save(client)
                self.tried_increments += 1
                self.increments += self._sent(client, "POST", f"/sessions/s{self.number}/variables/n/increment", {})

    def _save(self, client: httpx.Client) -> None:
        number = self.saved
        item_key = {"namespace": ["w", str(self.number)], "key": str(number)}
        new = {"checkpoint_id": f"c{number}", "state": {"number": number, "messages": []}}
        self._until_sent(client, "POST", f"/threads/w{self.number}/checkpoints", new)
        self._until_sent(client, "PUT", "/memories/item", {**item_key, "value": number})
        self._until_sent(client, "PUT", f"/sessions/s{self.number}/variables/v{number}", {"value": number})
        self.saved += 1

    def _until_sent(self, client: httpx.Client, method: str, path: str, body: object) -> None:
        end = time.monotonic() + PATIENCE_S
        while not self._sent(client, method, path, body):
            assert time.monotonic() < end, f"{method} {path} was never acknowledged"

    def _sent(self, client: httpx.Client, method: str, path: str, body: object) -> bool:
        """Return whether a request was acknowledged; False while the service or its database is unavailable."""
        try:
            answer = client.request(method, path, json=body)
        except httpx.TransportError:
            self.done.wait(PAUSE_S)
            return False
        assert answer.status_code in {200, 503}, answer.text
        if answer.status_code == 503:
            self.done.wait(PAUSE_S)
        return answer.status_code == 200

    def check(self, client: httpx.Client) -> None:
        """Check that every acknowledged write is stored once and in order."""
        ids = client.get(f"/threads/w{self.number}/checkpoints", params={"limit": 100_000}).json()["checkpoints"]
        acknowledged = [f"c{number}" for number in reversed(range(self.saved))]
        assert ids in (acknowledged, [f"c{self.saved}", *acknowledged])  # the last answer may have been lost
        variables = client.get(f"/sessions/s{self.number}/variables").json()["variables"]
        sum_ = variables.pop("n", 0)
        assert self.increments <= sum_ <= self.tried_increments
        for number in range(self.saved):
            state = client.get(f"/threads/w{self.number}/checkpoints/c{number}").json()["state"]
            assert state == {"number": number, "messages": []}
            item_key = {"namespace": ["w", str(self.number)], "key": str(number)}
            assert client.get("/memories/item", params=item_key).json()["value"] == number
            assert variables[f"v{number}"] == number


@contextmanager
def writing(url: str) -> Iterator[list[Writer]]:
    writers = [Writer(number, url) for number in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        running = [pool.submit(writer.run) for writer in writers]
        try:
            yield writers
        finally:
            for writer in writers:
                writer.done.set()
        for one in running:
            one.result(PATIENCE_S)


def each_goes_on(writers: list[Writer]) -> None:
    """Wait until each writer has more acknowledged writes."""
    wanted = [writer.saved + BETWEEN for writer in writers]
    end = time.monotonic() + PATIENCE_S
    while any(writer.saved < least for writer, least in zip(writers, wanted, strict=True)):
        assert time.monotonic() < end, "a writer does not go on"
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("killed", "driver"), KILLS)
def test_nothing_acknowledged_is_lost_and_nothing_doubled_when_one_is_killed(
    own_config: MakeConfig, own_server: LocalServer, killed: str, driver: str
) -> None:
    dsn = f"{dsn_of(own_config())}?driver={driver}"
    workers = ["--workers", "3"] if killed == "worker" else []
    service = Service(dsn, *workers)
    port = service.url.rpartition(":")[2]

    def kill_service() -> None:
        nonlocal service
        service.stop(signal.SIGKILL)
        service = Service(dsn, "--port", port)

    kills: dict[str, Callable[[], None]] = {
        "worker": lambda: os.kill(min(workers_of(service)), signal.SIGKILL),
        "service": kill_service,
        "mysql": lambda: own_server.restart(crash=True),
    }
    try:
        with writing(service.url) as writers:
            for _ in range(3 if killed == "worker" else 2):
                each_goes_on(writers)
                kills[killed]()
            each_goes_on(writers)
        with httpx.Client(base_url=service.url, timeout=PATIENCE_S) as client:
            for writer in writers:
                writer.check(client)
    finally:
        service.stop(signal.SIGKILL)
