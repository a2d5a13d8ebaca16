"""The HTTP service: saves and loads through it, compared with direct calls of a process that uses the database.

The service is `python -m locus_mysql serve` with tokens, with its defaults: one process, and each request is logged.
With `--workers 2` it has two processes. "Direct" is `CheckpointStore` in the measuring process, on the same client
library; calls through the service take and return a dict as well, over a minimal client. `MySQLCheckpointer` and
Locus' `HTTPCheckpointer` take and return an agent's state. Each conversation has a thread, saves after each message,
and loads after each save. Client, service and MySQL share the machine's processors: with many clients, the times are
those of all three together. A single client takes turns call by call; many clients take turns by slices.
"""

from __future__ import annotations

import asyncio
import gc
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from locus.core.state import AgentState
from locus.memory.backends import HTTPCheckpointer
from pydantic_core import from_json, to_json

from locus_mysql import CheckpointStore, MySQLCheckpointer
from locus_mysql.server.tokens import new_token

from .database import fresh_database
from .environment import environment
from .http_client import Connection, path_of
from .markdown import markdown_table
from .peers import Peers
from .states import agent_state, grown

#: Name of this measurement's own page.
PAGE = "server"

DRIVERS, QUICK_DRIVERS = ("mysql-connector", "aiomysql"), ("mysql-connector",)
#: Number of messages at the start of a conversation.
SIZES, QUICK_SIZES = (10, 100), (10,)
CLIENTS = 32
#: Measured rounds of one client. In each, every contestant saves and loads once.
ROUNDS, QUICK_ROUNDS, WARM_UP_ROUNDS = 300, 30, 20
#: With many clients: number of slices of each contestant, and of saves and loads of each client in a slice.
SLICES, QUICK_SLICES, CALLS = 8, 2, 10
#: Number of messages by which a conversation grows before the next one begins.
GROWS_BY = 50

DIRECT, SERVICE, WORKERS = "direct, CheckpointStore", "service", "service, --workers 2"
DIRECT_LOCUS, SERVICE_LOCUS = "direct, MySQLCheckpointer", "service, HTTPCheckpointer"
SAVE, LOAD = "save", "load"
PERCENTILES = (50, 95)

#: Seconds in which the service must start, and stop.
WAIT_S = 60.0


class Contestant(ABC):
    """Saves and loads states.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    async def connect(self, clients: int) -> None:
        """Prepare for a number of clients."""
        return

    @abstractmethod
    async def save(self, client: int, thread_id: str, checkpoint_id: str, state: Any) -> None:
        """Save a state."""

    @abstractmethod
    async def load(self, client: int, thread_id: str, checkpoint_id: str) -> Any:
        """Load the newest state."""

    def form(self, state: AgentState) -> Any:
        """Return a state in this contestant's form. Not measured."""
        return state.to_checkpoint()

    @abstractmethod
    async def close(self) -> None:
        """Close the connections."""


class Direct(Contestant):
    """`CheckpointStore`, called directly."""

    def __init__(self, dsn: str, driver: str) -> None:
        super().__init__(DIRECT)
        self._store = CheckpointStore(dsn, driver=driver)

    async def save(self, client: int, thread_id: str, checkpoint_id: str, state: Any) -> None:
        """See `Contestant.save`."""
        await self._store.save(thread_id, state, checkpoint_id)

    async def load(self, client: int, thread_id: str, checkpoint_id: str) -> Any:
        """See `Contestant.load`."""
        return await self._store.load(thread_id, checkpoint_id)

    async def close(self) -> None:
        """See `Contestant.close`."""
        await self._store.close()


class Service(Contestant):
    """The service, with a connection for each client."""

    def __init__(self, port: int, token: str, name: str = SERVICE) -> None:
        super().__init__(name)
        self._port = port
        self._token = token
        self._connections: list[Connection] = []

    async def connect(self, clients: int) -> None:
        """See `Contestant.connect`."""
        await self.close()  # the service closes idle connections, on a busy machine perhaps just before the next use
        self._connections = [await Connection.to(self._port, self._token) for _ in range(clients)]

    async def save(self, client: int, thread_id: str, checkpoint_id: str, state: Any) -> None:
        """See `Contestant.save`."""
        body = to_json({"checkpoint_id": checkpoint_id, "thread_id": thread_id, "state": state, "metadata": {}})
        await self._connections[client].ask("POST", path_of(thread_id), body)

    async def load(self, client: int, thread_id: str, checkpoint_id: str) -> Any:
        """See `Contestant.load`."""
        answer = await self._connections[client].ask("GET", path_of(thread_id, checkpoint_id))
        return from_json(answer, cache_strings="keys")["state"]

    async def close(self) -> None:
        """See `Contestant.close`."""
        for connection in self._connections:
            connection.close()


class OfLocus(Contestant):
    """A checkpointer of Locus' interface."""

    def __init__(self, name: str, checkpointer: Any) -> None:
        super().__init__(name)
        self._checkpointer = checkpointer

    def form(self, state: AgentState) -> Any:
        """See `Contestant.form`."""
        return state

    async def save(self, client: int, thread_id: str, checkpoint_id: str, state: Any) -> None:
        """See `Contestant.save`."""
        await self._checkpointer.save(state, thread_id, checkpoint_id)

    async def load(self, client: int, thread_id: str, checkpoint_id: str) -> Any:
        """See `Contestant.load`."""
        return await self._checkpointer.load(thread_id, checkpoint_id)

    async def close(self) -> None:
        """See `Contestant.close`."""
        await self._checkpointer.close()


class Conversation:
    """A conversation of a contestant: the states that it saves in order.

    Args:
        contestant: The contestant that saves them.
        states: The states.
        client: The number of the contestant's client.
    """

    def __init__(self, contestant: Contestant, states: Sequence[AgentState], client: int = 0) -> None:
        self._states = [contestant.form(state) for state in states]
        self._contestant = contestant
        self._client = client
        self._saved = 0
        self._thread_id = ""
        self._last = ""

    async def save(self) -> float:
        """Save the next state; return the time in milliseconds."""
        index = self._saved % len(self._states)
        if not index:
            self._thread_id = f"conversation/{uuid4().hex}"
        self._saved += 1
        self._last = uuid4().hex
        begin = time.perf_counter()
        await self._contestant.save(self._client, self._thread_id, self._last, self._states[index])
        return (time.perf_counter() - begin) * 1_000

    async def load(self) -> float:
        """Load the last saved state; return the time in milliseconds."""
        begin = time.perf_counter()
        loaded = await self._contestant.load(self._client, self._thread_id, self._last)
        taken = (time.perf_counter() - begin) * 1_000
        assert loaded == self._states[(self._saved - 1) % len(self._states)], "another state was loaded"
        return taken


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure every driver and size, with one client and with many."""
    return {"environment": environment(dsn, Peers()), "cases": asyncio.run(_measure(dsn, quick))}


async def _measure(dsn: str, quick: bool) -> dict[str, Any]:
    cases: dict[str, Any] = {}
    for driver in QUICK_DRIVERS if quick else DRIVERS:
        for size in QUICK_SIZES if quick else SIZES:
            print(f"bench: server, {driver}, {size} messages", file=sys.stderr, flush=True)
            states = await states_from(size)
            with (
                fresh_database(dsn) as own,
                running_service(own, driver) as one_process,
                running_service(own, driver, workers=2) as two_processes,
            ):
                case = cases.setdefault(driver, {}).setdefault(str(size), {})
                everyone = contestants(own, driver, one_process, two_processes)
                case["alone"] = await alone(everyone, states, QUICK_ROUNDS if quick else ROUNDS)
                case["at_once"] = await at_once(everyone, states, QUICK_SLICES if quick else SLICES)
                for one in everyone:
                    await one.close()
    return cases


def contestants(dsn: str, driver: str, one_process: Running, two_processes: Running) -> list[Contestant]:
    """Return all contestants."""
    url = f"http://127.0.0.1:{one_process.port}"
    return [
        Direct(dsn, driver),
        Service(one_process.port, one_process.token),
        Service(two_processes.port, two_processes.token, WORKERS),
        OfLocus(DIRECT_LOCUS, MySQLCheckpointer(dsn, driver=driver)),
        OfLocus(SERVICE_LOCUS, HTTPCheckpointer(url, headers={"Authorization": f"Bearer {one_process.token}"})),
    ]


async def states_from(size: int) -> list[AgentState]:
    """Return the states of a conversation, each one message longer than the previous one.

    Args:
        size: Number of messages of the first state.
    """
    states, source = [await agent_state(size)], random.Random(5)
    while len(states) < GROWS_BY:
        states.append(grown(states[-1], source))
    return states


async def alone(everyone: Sequence[Contestant], states: Sequence[AgentState], rounds: int) -> dict[str, Any]:
    """Measure one client of each contestant, in turns."""
    taken: dict[str, dict[str, list[float]]] = {one.name: {SAVE: [], LOAD: []} for one in everyone}
    conversations = {one.name: Conversation(one, states) for one in everyone}
    for one in everyone:
        await one.connect(1)
    order, source = list(everyone), random.Random(2)
    for number in range(-WARM_UP_ROUNDS, rounds):
        source.shuffle(order)
        gc.collect()
        for one in order:
            saved, loaded = await conversations[one.name].save(), await conversations[one.name].load()
            if number >= 0:
                taken[one.name][SAVE].append(saved)
                taken[one.name][LOAD].append(loaded)
    return {name: {what: percentiles(times) for what, times in one.items()} for name, one in taken.items()}


async def at_once(everyone: Sequence[Contestant], states: Sequence[AgentState], slices: int) -> dict[str, Any]:
    """Measure many concurrent clients of each contestant; the contestants take turns by slices."""
    taken: dict[str, dict[str, list[float]]] = {one.name: {SAVE: [], LOAD: []} for one in everyone}
    seconds: dict[str, dict[str, list[float]]] = {one.name: {SAVE: [], LOAD: []} for one in everyone}
    conversations = {one.name: [Conversation(one, states, client) for client in range(CLIENTS)] for one in everyone}
    order, source = list(everyone), random.Random(3)
    for number in range(-1, slices):
        source.shuffle(order)
        for one in order:
            gc.collect()
            for what in (SAVE, LOAD):
                await one.connect(CLIENTS)
                begin = time.perf_counter()
                times = await asyncio.gather(*(_calls(each, what) for each in conversations[one.name]))
                if number >= 0:
                    seconds[one.name][what].append(time.perf_counter() - begin)
                    taken[one.name][what] += [time for client in times for time in client]
    return {
        name: {
            what: {
                **percentiles(times),
                "per_s": CLIENTS * CALLS / statistics.median(seconds[name][what]),
            }
            for what, times in one.items()
        }
        for name, one in taken.items()
    }


async def _calls(conversation: Conversation, what: str) -> list[float]:
    call = conversation.save if what == SAVE else conversation.load
    return [await call() for _ in range(CALLS)]


@dataclass(frozen=True)
class Running:
    """A service in its own process.

    Args:
        pid: The id of its process.
        port: The port on which it listens.
        token: A token for it.
    """

    pid: int
    port: int
    token: str


@contextmanager
def running_service(dsn: str, driver: str, workers: int = 1) -> Iterator[Running]:
    """Start a service on a database; stop it at the end."""
    made = new_token("bench", "default", "write")
    with tempfile.TemporaryDirectory() as folder:
        (tokens := Path(folder, "tokens.toml")).write_text(made.entry)
        log = Path(folder, "log")
        with log.open("w") as output:
            command = ["-m", "locus_mysql", "serve", "--dsn", f"{dsn}?driver={driver}", "--port", "0"]
            command += ["--tokens", str(tokens), "--workers", str(workers)]
            process = subprocess.Popen([sys.executable, *command], stderr=output)
        try:
            yield Running(process.pid, _port_of(process, log), made.secret)
        finally:
            process.terminate()
            try:
                process.wait(WAIT_S)
            finally:
                process.kill()


def _port_of(process: subprocess.Popen[bytes], log: Path) -> int:
    """Read the port from a service's output."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if serving := re.search(r"Serving at http://127\.0\.0\.1:(\d+)", log.read_text()):
            return int(serving[1])
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(f"the service did not start: {log.read_text()}")


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """Return median and 95th percentile."""
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {f"p{at}": cuts[at - 1] for at in PERCENTILES}


def added(result: dict[str, Any], what: str) -> float:
    """Return the maximum number of milliseconds that the service adds to a call's median, over drivers and sizes."""
    return max(
        case["alone"][SERVICE][what]["p50"] - case["alone"][DIRECT][what]["p50"]
        for sizes in result["cases"].values()
        for case in sizes.values()
    )


def throughput(result: dict[str, Any], what: str, name: str) -> float:
    """Return the minimum of the service's throughput as a share of the direct one, over all drivers and sizes."""
    return min(
        case["at_once"][name][what]["per_s"] / case["at_once"][DIRECT][what]["per_s"]
        for sizes in result["cases"].values()
        for case in sizes.values()
    )


def table(result: dict[str, Any]) -> str:
    """Return a table for each driver and size."""
    parts = [" ".join((__doc__ or "").split("\n\n", 1)[1].split())]
    for driver, sizes in result["cases"].items():
        for size, case in sizes.items():
            rows = []
            for name, one in case["alone"].items():
                many = case["at_once"][name]
                rows.append(
                    [
                        name,
                        *(f"{one[what]['p50']:.2f} / {one[what]['p95']:.2f}" for what in (SAVE, LOAD)),
                        *(f"{many[what]['per_s']:.0f}" for what in (SAVE, LOAD)),
                        *(f"{many[what]['p50']:.1f} / {many[what]['p95']:.1f}" for what in (SAVE, LOAD)),
                    ]
                )
            heading = ["", SAVE, LOAD, f"{SAVE}s/s", f"{LOAD}s/s", f"{SAVE}, {CLIENTS}", f"{LOAD}, {CLIENTS}"]
            parts += [
                f"{driver}, from {size} messages: p50 / p95 in ms of one client; calls a second, and p50 / p95 in ms, "
                f"of {CLIENTS} clients",
                markdown_table(heading, rows),
            ]
    return "\n\n".join(parts)
