"""Servers are killed or frozen while threads and tasks write to one session: no write is lost or doubled.

Without a fallback, writers repeat their calls, or give some up: on MySQL, and on Redis with ``appendonly yes`` and
``appendfsync always``. With a fallback, every call succeeds.
"""

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
from locus_mysql.engine.operation import drive_awaited, drive_blocking
from locus_mysql.errors import Unavailable
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.fallback import FallbackStorage
from locus_mysql.families.working.storages.interface import Storage
from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.families.working.storages.redis import RedisStorage
from locus_mysql.working import SyncWorkingMemory

from .....thoroughness import FULL
from ....conftest import MakeConfig
from ..servers import OwnServer

KILLS = 4 if FULL else 2
PATIENCE_S = 120.0
ADDRESS = calls.Address("tenant", "session")
LIMITS = calls.Limits(scratchpad_entries=10**9, checkpoints=10_000)


@dataclass
class Writer:
    """A writer, which repeats each call until it is answered, or abandons it."""

    name: str
    storage: Storage
    stop: threading.Event
    appended: list[bytes] = field(default_factory=list)
    given_up: set[bytes] = field(default_factory=set)
    counted: int = 0
    perhaps_counted: int = 0
    written: set[bytes] = field(default_factory=set)
    checkpoints: set[str] = field(default_factory=set)
    answered: int = 0
    failed: int = 0
    offline: int = 0

    @property
    def degraded(self) -> bool:
        """Return whether the fallback serves."""
        return isinstance(self.storage, FallbackStorage) and self.storage.degraded

    def run(self) -> Generator[calls.Call | float, Any, None]:
        """Yield calls and pauses, in seconds."""
        number, count = 0, calls.Increment(f"count {self.name}", 1)
        while not self.stop.is_set():
            number += 1
            note = f'"{self.name}:{number:06}"'.encode()
            self.offline += self.degraded
            answered = yield from self._until_answered(calls.Append(note), gives_up=number % 3 == 0)
            self.appended.append(note) if answered else self.given_up.add(note)
            answered = yield from self._until_answered(count, gives_up=not number % 5)
            self.counted += answered
            self.perhaps_counted += not answered
            value = calls.Variable(f"value {self.name}", note)
            answered = yield from self._until_answered(calls.Write((value,)), gives_up=number % 7 == 0)
            self.written = {note} if answered else {*self.written, note}
            if number % 50 == 0:
                checkpoint_id = secrets.token_hex(16)
                yield from self._until_answered(calls.CreateCheckpoint(checkpoint_id), gives_up=False)
                self.checkpoints.add(checkpoint_id)

    def _until_answered(
        self, command: calls.Command[Any], *, gives_up: bool
    ) -> Generator[calls.Call | float, Any, bool]:
        call = calls.Call("write", ADDRESS, (command,), LIMITS, token=secrets.token_bytes(16))
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                yield call
            except Unavailable:
                self.failed += 1
                assert time.monotonic() < deadline
                yield 0.02
                if gives_up:
                    return False
            else:
                self.answered += 1
                yield 0.02 if self.degraded else 0.001  # at full speed, a fallback accepts more than is replayed
                return True


class Writers:
    """Three threads, and three tasks."""

    def __init__(self, storage: Storage) -> None:
        self.storage, self.stop = storage, threading.Event()
        self.in_threads = [Writer(f"thread {number}", storage, self.stop) for number in range(3)]
        self.in_tasks = [Writer(f"task {number}", storage, self.stop) for number in range(3)]
        self.all = self.in_threads + self.in_tasks
        self.errors: list[BaseException] = []

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        jobs = [*(lambda one=one: self._in_thread(one) for one in self.in_threads), lambda: asyncio.run(self._tasks())]  # type: ignore[misc]
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

    def _in_thread(self, writer: Writer) -> None:
        drive_blocking(
            writer.run(),
            lambda step: time.sleep(step) if isinstance(step, float) else self.storage.execute_blocking(step),
        )

    async def _in_task(self, writer: Writer) -> None:
        await drive_awaited(
            writer.run(), lambda step: asyncio.sleep(step) if isinstance(step, float) else self.storage.execute(step)
        )

    async def _tasks(self) -> None:
        await asyncio.gather(*map(self._in_task, self.in_tasks))
        primary = self.storage.primary if isinstance(self.storage, FallbackStorage) else self.storage
        await primary.aclose()

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

    def go_on(self, *, degraded: bool = False) -> None:
        """Wait until all writers have got further answers while the primary was available, or unavailable."""
        self.until(lambda: self.all[0].degraded is degraded)
        before = [one.answered for one in self.all]
        self.until(lambda: all(one.answered >= then + 20 for one, then in zip(self.all, before, strict=True)))

    @property
    def failed(self) -> int:
        return sum(one.failed for one in self.all)

    @property
    def offline(self) -> int:
        """Return the number of notes written while the primary was unavailable."""
        return sum(one.offline for one in self.all)

    def check(self, kept: Storage) -> None:
        """Check that each acknowledged write is stored once, in order, and that others come from abandoned calls."""
        if isinstance(self.storage, FallbackStorage):
            self.until(lambda: not self.storage.flush_blocking())  # type: ignore[attr-defined]
            assert self.storage.condition(ADDRESS).lost == ()
            assert (self.failed, self.offline > 0) == (0, True)
        call = calls.Call("read", ADDRESS, (calls.ReadNotes(), calls.ListCheckpoints(), calls.ReadAll()))
        found: Any = kept.execute_blocking(call).results
        notes, checkpoints, values = found
        assert len(set(notes)) == len(notes), "a note is there twice"
        for writer in self.all:
            mine = [note for note in notes if note.startswith(f'"{writer.name}:'.encode())]
            assert mine == sorted(mine), "notes are out of order"
            assert set(writer.appended) - set(mine) == set(), "an acknowledged note is lost"
            assert set(mine) - set(writer.appended) <= writer.given_up
            count = int(values[f"count {writer.name}"].value)
            assert writer.counted <= count <= writer.counted + writer.perhaps_counted
            assert values[f"value {writer.name}"].value in writer.written
            assert writer.checkpoints <= {one.checkpoint_id for one in checkpoints}


def kill_while_writing(storage: Storage, crash: Callable[[], None], restart: Callable[[], None]) -> None:
    """Kill a server several times while writers write, and check the stored data."""
    writers = Writers(storage)
    with writers.writing():
        for _ in range(KILLS):
            writers.go_on()
            failed = writers.failed
            crash()
            writers.until(lambda failed=failed: writers.failed > failed)  # type: ignore[misc]
            restart()
    writers.check(storage)
    storage.close()


def test_nothing_acknowledged_is_lost_or_doubled_when_redis_is_killed(own_redis: OwnServer) -> None:
    kill_while_writing(RedisStorage(own_redis.url, timeout_s=60.0), own_redis.kill, own_redis.start)


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["aiomysql", "mysql-connector"] if FULL else ["aiomysql"])
def test_nothing_acknowledged_is_lost_or_doubled_when_mysql_is_killed(
    driver: str, own_server: LocalServer, own_config: MakeConfig
) -> None:
    """Runs without the package's own retries, so that every failure reaches the writers."""
    storage = MySQLStorage(own_config(driver=driver, retry_deadline_s=0))
    kill_while_writing(storage, lambda: own_server.restart(crash=True), lambda: None)


def over(primary: Storage, fallback: Any = "memory") -> FallbackStorage:
    """Return a storage whose fallback has been used already."""
    storage = FallbackStorage(
        primary, fallback, timeout_s=0.5, first_retry_s=0.05, longest_retry_s=0.5, max_pending=1_000_000
    )
    with SyncWorkingMemory("before", storage) as memory:
        memory.set("a", 1)
    return storage


@pytest.mark.slow
@pytest.mark.parametrize("freezes", [False, True], ids=["killed", "frozen"])
def test_nothing_is_lost_or_doubled_with_a_fallback(
    freezes: bool, own_server: LocalServer, own_config: MakeConfig
) -> None:
    config = own_config(driver="aiomysql")
    storage = over(MySQLStorage(config))
    writers = Writers(storage)
    with writers.writing():
        deadline, outages = time.monotonic() + PATIENCE_S, 0
        while outages < KILLS or not writers.offline:  # if the server restarts in time, calls wait for it: no outage
            writers.go_on()
            if freezes:
                os.kill(own_server.pid, signal.SIGSTOP)
                try:
                    writers.go_on(degraded=True)
                finally:
                    os.kill(own_server.pid, signal.SIGCONT)
            else:
                own_server.restart(crash=True)
            outages += 1
            assert time.monotonic() < deadline
        writers.go_on()
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
    writers = Writers(storage)
    with writers.writing():
        writers.go_on()
        own_redis.kill()
        writers.go_on(degraded=True)
        assert not second.degraded
        own_server.restart(crash=True)
        writers.go_on(degraded=True)
        own_redis.start()
        writers.go_on()
    kept = RedisStorage(own_redis.url, timeout_s=60.0)
    writers.check(kept)
    kept.close()
    storage.close()
