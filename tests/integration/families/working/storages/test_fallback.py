"""MySQL is killed or frozen while threads and tasks write to one session: no write is lost or duplicated."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from ci.local_server import LocalServer
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.interface import Storage
from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.families.working.storages.redis import RedisStorage
from locus_mysql.families.working.values import variable
from locus_mysql.working import FallbackStorage, SyncWorkingMemory
from tests.storage_contract import CHECKS, Check

from .....thoroughness import FULL
from ....conftest import MakeConfig
from ...checkpoints.conftest import side_name
from ..conftest import OwnServer

PATIENCE_S = 120.0
ADDRESS = calls.Address("tenant", "session")
LIMITS = calls.Limits(scratchpad_entries=10**9, checkpoints=10_000)
SIDES = [("aiomysql", False), ("aiomysql", True)]

#: MySQL has its own contract tests; a short run only includes the checks that a fallback relies on.
WANTED = [check for check in CHECKS if FULL or check.begin.__module__.endswith((".stamps", ".writers"))]


@pytest.mark.slow
@pytest.mark.kept_tables("working")
@pytest.mark.parametrize("side", SIDES, ids=side_name)
@pytest.mark.parametrize("check", WANTED, ids=lambda check: check.name)
async def test_the_fallback_storage_keeps_the_contract_while_mysql_is_available(
    check: Check, make_config: MakeConfig, side: tuple[str, bool]
) -> None:
    storage = FallbackStorage(MySQLStorage(make_config(driver=side[0])), timeout_s=60.0)
    try:
        await check.run(storage) if side[1] else check.run_blocking(storage)
        assert not storage.degraded
    finally:
        await storage.aclose()


@dataclass
class Writer:
    """A writer, each of whose calls must succeed."""

    name: str
    storage: FallbackStorage
    stop: threading.Event
    notes: list[bytes] = field(default_factory=list)
    count: int = 0
    value: bytes = b""
    checkpoints: set[str] = field(default_factory=set)
    offline: int = 0

    def run(self) -> Generator[calls.Call]:
        """Yield calls; each is acknowledged before the next one is requested."""
        while not self.stop.is_set():
            note = f'"{self.name}:{len(self.notes):06}"'.encode()
            self.offline += self.storage.degraded
            yield self._call(calls.Append(note))
            self.notes.append(note)
            yield self._call(calls.Increment(f"count {self.name}", 1))
            self.count += 1
            yield self._call(calls.Write((variable(f"value {self.name}", note),)))
            self.value = note
            if len(self.notes) % 50 == 0:
                checkpoint_id = secrets.token_hex(16)
                yield self._call(calls.CreateCheckpoint(checkpoint_id))
                self.checkpoints.add(checkpoint_id)

    def _call(self, command: calls.Command[Any]) -> calls.Call:
        return calls.Call("write", ADDRESS, (command,), LIMITS, token=secrets.token_bytes(16))

    @property
    def pause_s(self) -> float:
        """The pause between writes: at full speed, the fallback accepts more than the primary can replay."""
        return 0.02 if self.storage.degraded else 0.001

    def write(self) -> None:
        for call in self.run():
            self.storage.execute_blocking(call)
            time.sleep(self.pause_s)

    async def write_awaited(self) -> None:
        for call in self.run():
            await self.storage.execute(call)
            await asyncio.sleep(self.pause_s)


class Writers:
    """Three threads, and three tasks."""

    def __init__(self, storage: FallbackStorage) -> None:
        self.storage, self.stop = storage, threading.Event()
        self.of_threads = [Writer(f"thread {number}", storage, self.stop) for number in range(3)]
        self.of_tasks = [Writer(f"task {number}", storage, self.stop) for number in range(3)]
        self.all = self.of_threads + self.of_tasks
        self.errors: list[BaseException] = []

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        jobs = [*(writer.write for writer in self.of_threads), lambda: asyncio.run(self._in_tasks())]
        threads = [threading.Thread(target=self._guard, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stop.set()
            for thread in threads:
                thread.join(PATIENCE_S)
        assert self.errors == []
        assert not any(thread.is_alive() for thread in threads)

    async def _in_tasks(self) -> None:
        await asyncio.gather(*(writer.write_awaited() for writer in self.of_tasks))
        await self.storage.primary.aclose()

    def _guard(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            self.errors.append(error)
            self.stop.set()

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not (condition() or self.errors):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def go_on(self, *, degraded: bool) -> None:
        """Wait until all writers have written some notes while the primary was available, or unavailable."""
        self.until(lambda: self.storage.degraded is degraded)
        before = {writer.name: len(writer.notes) for writer in self.all}
        self.until(lambda: all(len(writer.notes) >= before[writer.name] + 5 for writer in self.all))

    @property
    def offline(self) -> int:
        """Return the number of notes written while the primary was unavailable."""
        return sum(writer.offline for writer in self.all)

    def check(self, kept: Storage) -> None:
        """Check that the primary contains every acknowledged write once and in order."""
        deadline = time.monotonic() + PATIENCE_S
        while self.storage.flush_blocking():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert self.storage.condition(ADDRESS).lost == ()
        found: Any = kept.execute_blocking(
            calls.Call("read", ADDRESS, (calls.ReadNotes(), calls.ListCheckpoints()))
        ).results
        notes, checkpoints = found
        for writer in self.all:
            assert [note for note in notes if note.startswith(f'"{writer.name}:'.encode())] == writer.notes
            keys = (f"count {writer.name}", f"value {writer.name}")
            values: Any = kept.execute_blocking(calls.Call("read", ADDRESS, (calls.Read(keys),))).results[0]
            assert int(values[keys[0]].value) == writer.count == len(writer.notes)
            assert values[keys[1]].value == writer.value
            assert writer.checkpoints <= {one.checkpoint_id for one in checkpoints}
        assert len(notes) == sum(len(writer.notes) for writer in self.all)
        assert self.offline > 0


def over(primary: Storage, fallback: Any = "memory") -> FallbackStorage:
    return FallbackStorage(
        primary, fallback, timeout_s=0.5, first_retry_s=0.05, longest_retry_s=0.5, max_pending=1_000_000
    )


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_when_mysql_is_killed(own_server: LocalServer, own_config: MakeConfig) -> None:
    config = own_config(driver="aiomysql")
    storage = over(MySQLStorage(config))
    with SyncWorkingMemory("before", storage) as memory:
        memory.set("a", 1)
    writers = Writers(storage)
    with writers.writing():
        deadline, kills = time.monotonic() + PATIENCE_S, 0
        while kills < 3 or not writers.offline:  # if the server restarts in time, calls wait for it: no outage
            writers.go_on(degraded=False)
            own_server.restart(crash=True)
            kills += 1
            assert time.monotonic() < deadline
        writers.go_on(degraded=False)
    kept = MySQLStorage(config)
    writers.check(kept)
    kept.close()
    storage.close()


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_when_mysql_freezes(own_server: LocalServer, own_config: MakeConfig) -> None:
    config = own_config(driver="aiomysql")
    storage = over(MySQLStorage(config))
    with SyncWorkingMemory("before", storage) as memory:
        memory.set("a", 1)
    writers = Writers(storage)
    with writers.writing():
        for _ in range(3):
            writers.go_on(degraded=False)
            os.kill(own_server.pid, signal.SIGSTOP)
            try:
                writers.go_on(degraded=True)
            finally:
                os.kill(own_server.pid, signal.SIGCONT)
        writers.go_on(degraded=False)
    kept = MySQLStorage(config)
    writers.check(kept)
    kept.close()
    storage.close()


@pytest.mark.slow
def test_redis_falls_back_on_mysql_and_that_on_memory(
    own_redis: OwnServer, own_server: LocalServer, own_config: MakeConfig
) -> None:
    second = over(MySQLStorage(own_config(driver="aiomysql")))
    storage = over(RedisStorage(own_redis.url, timeout_s=60.0), second)
    with SyncWorkingMemory("before", second) as memory:
        memory.set("a", 1)
    writers = Writers(storage)
    with writers.writing():
        writers.go_on(degraded=False)
        own_redis.kill()
        writers.go_on(degraded=True)
        assert not second.degraded
        own_server.restart(crash=True)
        writers.go_on(degraded=True)
        own_redis.start()
        writers.go_on(degraded=False)
    kept = RedisStorage(own_redis.url, timeout_s=60.0)
    writers.check(kept)
    kept.close()
    storage.close()
