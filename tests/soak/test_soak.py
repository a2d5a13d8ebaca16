"""Mixed work with random faults for a long time: nothing is lost, nothing leaks, and calls do not get slower.

Ten minutes by default, part of `ci/test --all` only. An hour, with the faults of an earlier run:

    LOCUS_MYSQL_TEST_SOAK_S=3600 LOCUS_MYSQL_TEST_SEED=7 .venv/bin/python -m pytest tests/soak
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import socket
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ci.local_server import LocalServer
from locus_mysql import Database, MySQLConfig

from ..cluster.load import HANGS_AFTER_S, READ_TIMEOUT_S, RETRY_DEADLINE_S, Load, Way
from ..integration.conftest import EVERY_SIDE, MADE_BEFORE
from ..integration.connecting import connect
from .resources import OWN_THREADS, Resources, measure, processor_s

SOAK_S = float(os.environ.get("LOCUS_MYSQL_TEST_SOAK_S", "600"))
SEED = int(os.environ.get("LOCUS_MYSQL_TEST_SEED", random.randrange(10**6)))

CLIENTS = 30
POOL_SIZE = 2  # fewer than the clients of a way, so that writes wait and share a packet

#: In each round, seconds without faults, in which the cost of calls is measured; and number of faults after that.
CALM_S, FAULTS_PER_ROUND = 8.0, 3

#: Fewest rounds, so that the first ones can be compared with the last ones.
ROUNDS = 4

#: How long the server stands still, in seconds.
FROZEN_S = 2.0

#: Largest ratio of the last third of the rounds to the first: of memory, and of the processor time of a call.
MEMORY_GROWTH, COST_GROWTH = 1.1, 1.25


class Round(NamedTuple):
    """The results of a round.

    Args:
        calls: Number of calls.
        acknowledged: Number of acknowledged writes.
        wrong: Numbers of lost, doubled, stale, hung and failed calls.
        calls_per_s: Throughput without faults.
        cost_ms: Processor time of a call without faults, of client and server together, in milliseconds.
        open: What the process held with open pools.
    """

    calls: int
    acknowledged: int
    wrong: tuple[int, int, int, int, int]
    calls_per_s: float
    cost_ms: float
    open: Resources


def cut(server: LocalServer) -> None:
    """Cut every connection of this process to the server."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile, or not connected
            if descriptor.is_socket():
                with socket.socket(fileno=os.dup(int(descriptor.name))) as connection:
                    if connection.getpeername()[1:2] == (server.port,):
                        connection.shutdown(socket.SHUT_RDWR)


def kill_sessions(server: LocalServer) -> None:
    """Kill every other session at the server."""
    with connect(MySQLConfig(dsn=server.dsn)) as connection, connection.cursor() as cursor:
        cursor.execute(SESSIONS)
        for (number,) in cursor.fetchall():
            with suppress(Exception):  # it may have ended
                cursor.execute(f"KILL {number}")


def freeze(server: LocalServer) -> None:
    """Suspend the server's process for a while."""
    os.kill(server.pid, signal.SIGSTOP)
    time.sleep(FROZEN_S)
    os.kill(server.pid, signal.SIGCONT)


FAULTS: dict[str, Callable[[LocalServer], None]] = {
    "connections cut": cut,
    "sessions killed": kill_sessions,
    "server frozen": freeze,
    "server restarted": lambda server: server.restart(),
    "server killed": lambda server: server.restart(crash=True),
}

SESSIONS = (
    "SELECT processlist_id FROM performance_schema.threads"
    " WHERE type = 'FOREGROUND' AND processlist_command <> 'Daemon' AND processlist_id <> CONNECTION_ID()"
)


def sessions(server: LocalServer) -> int:
    """Count the other sessions at the server."""
    with connect(MySQLConfig(dsn=server.dsn)) as connection, connection.cursor() as cursor:
        cursor.execute(SESSIONS)
        return len(cursor.fetchall())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    """Yield a durable server, which the test restarts and kills."""
    with LocalServer(tmp_path / "data", made_before=MADE_BEFORE) as running:
        yield running


class Soak:
    """Rounds of load on every side of every driver.

    Args:
        server: The server.
    """

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self.done: Counter[str] = Counter()
        self.rounds: list[Round] = []
        #: What stale loads returned, and why calls failed.
        self.messages: list[str] = []
        self._begun = 0
        self._random = random.Random(SEED)
        limits: dict[str, Any] = {
            "retry_deadline_s": RETRY_DEADLINE_S,
            "read_timeout_s": READ_TIMEOUT_S,
            "pool_timeout_s": RETRY_DEADLINE_S,
            "pool_size": POOL_SIZE,
        }
        self.ways = [
            Way(side, "direct", Database(MySQLConfig(dsn=server.dsn, driver=side.rpartition("-")[0], **limits)))
            for side in EVERY_SIDE
        ]

    async def round(self) -> Round:
        """Run new clients: first without faults, then with some."""
        self._begun += 1
        load = Load(self.ways, CLIENTS, first=self._begun * CLIENTS, prefix=f"round {self._begun}:")
        load.start()
        await load.go_on(1, HANGS_AFTER_S)
        calls_per_s, cost_ms = await self._calm(load)
        for _ in range(FAULTS_PER_ROUND):
            fault = self._random.choice(list(FAULTS))
            self.done[fault] += 1
            await asyncio.to_thread(FAULTS[fault], self.server)
            await load.go_on(1, HANGS_AFTER_S)
        await load.end()
        verdicts = [await client.check() for client in load.clients]
        waits = [wait for client in load.clients for wait in client.waits]
        wrong = (
            sum(verdict.lost for verdict in verdicts),
            sum(verdict.doubled for verdict in verdicts),
            sum(len(client.stale) for client in load.clients),
            sum(wait > HANGS_AFTER_S for wait in waits),
            sum(len(client.failed) for client in load.clients),
        )
        self.messages += [message for client in load.clients for message in (*client.stale, *client.failed)]
        acknowledged = sum(client.acknowledged for client in load.clients)
        held = measure(await asyncio.to_thread(sessions, self.server))
        self.rounds.append(Round(len(waits), acknowledged, wrong, calls_per_s, cost_ms, held))
        return self.rounds[-1]

    async def _calm(self, load: Load) -> tuple[float, float]:
        """Return throughput, and processor time of a call in milliseconds, while there are no faults."""

        def now() -> tuple[int, float, float]:
            calls = sum(len(client.waits) for client in load.clients)
            return calls, time.monotonic(), processor_s(os.getpid()) + processor_s(self.server.pid)

        calls, began, used = now()
        await asyncio.sleep(CALM_S)
        calls_later, ended, used_later = now()
        done = calls_later - calls
        return done / (ended - began), 1000 * (used_later - used) / done

    async def close(self) -> Resources:
        """Close the pools, and return what the process holds then."""
        for way in self.ways:
            await way.database.aclose()
        held = await asyncio.to_thread(sessions, self.server)
        end = time.monotonic() + HANGS_AFTER_S
        while held and time.monotonic() < end:  # the server ends a session some time after it was closed
            await asyncio.sleep(0.1)
            held = await asyncio.to_thread(sessions, self.server)
        return measure(held)


async def test_a_long_time_of_faults_leaves_nothing_behind(
    server: LocalServer, record_property: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "locus_mysql")  # a message for each connection, which pytest would keep
    with ThreadPoolExecutor(2 * CLIENTS, thread_name_prefix=OWN_THREADS) as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        soak = Soak(server)
        await soak.round()  # imports, caches and tables are made
        before = await soak.close()
        began = time.monotonic()
        soak.rounds.clear()
        while time.monotonic() < began + SOAK_S or len(soak.rounds) < ROUNDS:
            finished = await soak.round()
            assert finished.wrong == (0, 0, 0, 0, 0), (SEED, finished, soak.messages)
            assert finished.open.connections <= POOL_SIZE * len(soak.ways), (SEED, finished)
        took_s = time.monotonic() - began
        after = await soak.close()
    report(soak, before, after, took_s, record_property)
    assert (after.connections, after.tasks) == (before.connections, before.tasks)
    assert after.descriptors <= before.descriptors
    assert after.threads <= before.threads
    for limit, values in (
        (MEMORY_GROWTH, [one.open.resident_mb for one in soak.rounds]),
        (COST_GROWTH, [one.cost_ms for one in soak.rounds]),
    ):
        first, last = ends_of(values)
        assert last <= limit * first


def ends_of(values: list[float]) -> tuple[float, float]:
    """Return the medians of the first and the last third."""
    third = max(1, len(values) // 3)
    return statistics.median(values[:third]), statistics.median(values[-third:])


def report(soak: Soak, before: Resources, after: Resources, took_s: float, record_property: Any) -> None:
    """Record the results, which are printed at the end."""
    record_property("seed", SEED)
    record_property("minutes", round(took_s / 60, 1))
    record_property("rounds", len(soak.rounds))
    record_property("faults", dict(soak.done))
    record_property("calls", sum(one.calls for one in soak.rounds))
    record_property("acknowledged writes", sum(one.acknowledged for one in soak.rounds))
    wrong = zip(*(one.wrong for one in soak.rounds), strict=True)
    record_property("lost, doubled, stale, hung, failed", tuple(map(sum, wrong)))
    record_property("most connections while open", max(one.open.connections for one in soak.rounds))
    record_property("before, pools closed", before._asdict())
    record_property("after, pools closed", after._asdict())
    for name, values in (
        ("calls per second without faults, first and last third", [one.calls_per_s for one in soak.rounds]),
        ("processor time of a call in ms, first and last third", [one.cost_ms for one in soak.rounds]),
        ("resident MB with open pools, first and last third", [one.open.resident_mb for one in soak.rounds]),
    ):
        record_property(name, tuple(round(value, 2) for value in ends_of(values)))
