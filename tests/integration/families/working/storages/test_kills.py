"""A storage's server is killed and started again while several threads and tasks write to one session.

No acknowledged write is lost, none counts twice, and notes keep their order: on MySQL, and on Redis with ``appendonly
yes`` and ``appendfsync always``.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ci.local_server import LocalServer
from locus_mysql.errors import Unavailable
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.interface import Storage
from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.families.working.storages.redis import RedisStorage

from .....thoroughness import FULL
from ....conftest import MakeConfig
from ..servers import OwnServer

KILLS = 4 if FULL else 2
PATIENCE_S = 120.0
ADDRESS = calls.Address("tenant", "session")
LIMITS = calls.Limits(scratchpad_entries=10**9)


@dataclass
class Writer:
    """A writer, which repeats each call until it is answered, or abandons it."""

    name: str
    stop: threading.Event
    appended: list[bytes] = field(default_factory=list)
    given_up: set[bytes] = field(default_factory=set)
    counted: int = 0
    perhaps_counted: int = 0
    written: set[bytes] = field(default_factory=set)
    answered: int = 0
    failed: int = 0

    def run(self) -> Generator[calls.Call, calls.Reply | Unavailable, None]:
        """Yield calls, and receive their replies or errors."""
        number = 0
        while not self.stop.is_set():
            number += 1
            note = f"{self.name}:{number:06}".encode()
            reply = yield from self._until_answered(calls.Append(note), gives_up=number % 3 == 0)
            (self.appended.append if reply else self.given_up.add)(note)
            reply = yield from self._until_answered(calls.Increment(f"count {self.name}", 1), gives_up=number % 5 == 0)
            self.counted += reply is not None
            self.perhaps_counted += reply is None
            value = calls.Variable(f"value {self.name}", note)
            reply = yield from self._until_answered(calls.Write((value,)), gives_up=number % 7 == 0)
            self.written = {note} if reply else {*self.written, note}

    def _until_answered(
        self, command: calls.Command[Any], *, gives_up: bool
    ) -> Generator[calls.Call, calls.Reply | Unavailable, calls.Reply | None]:
        call = calls.Call("write", ADDRESS, (command,), LIMITS, token=secrets.token_bytes(16))
        deadline = time.monotonic() + PATIENCE_S
        while True:
            reply = yield call
            if isinstance(reply, calls.Reply):
                self.answered += 1
                return reply
            self.failed += 1
            assert time.monotonic() < deadline, reply
            if gives_up:
                return None


def write_blocking(storage: Storage, writer: Writer) -> None:
    run = writer.run()
    call = next(run)
    while True:
        try:
            answer: calls.Reply | Unavailable = storage.execute_blocking(call)
        except Unavailable as error:
            answer = error
            time.sleep(0.02)
        try:
            call = run.send(answer)
        except StopIteration:
            return


async def write_awaited(storage: Storage, writer: Writer) -> None:
    run = writer.run()
    call = next(run)
    while True:
        try:
            answer: calls.Reply | Unavailable = await storage.execute(call)
        except Unavailable as error:
            answer = error
            await asyncio.sleep(0.02)
        try:
            call = run.send(answer)
        except StopIteration:
            return


async def write_in_tasks(storage: Storage, writers: list[Writer]) -> None:
    await asyncio.gather(*(write_awaited(storage, writer) for writer in writers))
    await storage.aclose()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill_while_writing(storage: Storage, crash: Callable[[], None], restart: Callable[[], None]) -> None:
    """Let three threads and three tasks write while a server is killed several times, and check the stored data."""
    stop = threading.Event()
    in_threads = [Writer(f"thread {number}", stop) for number in range(3)]
    in_tasks = [Writer(f"task {number}", stop) for number in range(3)]
    writers = in_threads + in_tasks
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    jobs: list[Callable[[], None]] = [
        *((lambda writer=writer: write_blocking(storage, writer)) for writer in in_threads),  # type: ignore[misc]
        lambda: asyncio.run(write_in_tasks(storage, in_tasks)),
    ]
    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    try:
        for _ in range(KILLS):
            before = [replace(writer) for writer in writers]
            wait_until(
                lambda before=before: (
                    errors
                    or all(  # type: ignore[misc]
                        now.answered >= then.answered + 20 for now, then in zip(writers, before, strict=True)
                    )
                )
            )
            crash()
            wait_until(
                lambda before=before: (
                    errors
                    or any(  # type: ignore[misc]
                        now.failed > then.failed for now, then in zip(writers, before, strict=True)
                    )
                )
            )
            restart()
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert errors == []
    check_what_is_kept(storage, writers)
    assert sum(writer.failed for writer in writers) >= KILLS


def check_what_is_kept(storage: Storage, writers: Sequence[Writer]) -> None:
    """Check that every acknowledged write is stored once, in order, and that others come from abandoned calls."""
    found: Any = storage.execute_blocking(calls.Call("read", ADDRESS, (calls.ReadNotes(),))).results[0]
    assert len(set(found)) == len(found), "a note is there twice"
    for writer in writers:
        mine = [note for note in found if note.startswith(f"{writer.name}:".encode())]
        assert mine == sorted(mine), "notes are out of order"
        assert set(writer.appended) - set(mine) == set(), "an acknowledged note is lost"
        assert set(mine) - set(writer.appended) <= writer.given_up
        keys = (f"count {writer.name}", f"value {writer.name}")
        values: Any = storage.execute_blocking(calls.Call("read", ADDRESS, (calls.Read(keys),))).results[0]
        count = int(values[keys[0]].value)
        assert writer.counted <= count <= writer.counted + writer.perhaps_counted
        assert values[keys[1]].value in writer.written


def test_nothing_acknowledged_is_lost_or_doubled_when_redis_is_killed(own_redis: OwnServer) -> None:
    storage = RedisStorage(own_redis.url, timeout_s=60.0)
    kill_while_writing(storage, own_redis.kill, own_redis.start)
    storage.close()


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["aiomysql", "mysql-connector"])
def test_nothing_acknowledged_is_lost_or_doubled_when_mysql_is_killed(
    driver: str, own_server: LocalServer, own_config: MakeConfig
) -> None:
    """Runs without a fallback and without the package's own retries, so that every failure reaches the writers."""
    storage = MySQLStorage(own_config(driver=driver, retry_deadline_s=0))
    kill_while_writing(storage, lambda: own_server.restart(crash=True), lambda: None)
    storage.close()
