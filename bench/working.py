"""Working memory: get, set, append, checkpoint and restore by storage, client library and size of the session.

A value has 200 bytes of JSON. Every contestant has its own sessions with the given number of variables; a round makes
each call once for every contestant, in a shuffled order. "Bare" is the minimum that a storage can do: one upsert or one
select by primary key on MySQL, on the same client library, committed durably; one SET or GET with redis-py. Connections
to MySQL use TLS. Redis and Valkey flush every write (`appendfsync always`). In the concurrent measurement, each of 32
sessions has a task or a thread, and a connection, and pauses for up to 0.2 s between calls, as agents do more than call
their memory; without pauses, a call waits for those of 31 others.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import sys
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from ci.private_servers import Redis, ServerMissing, Valkey
from locus_mysql import Database
from locus_mysql.families.working.storages.redis import RedisStorage
from locus_mysql.working import (
    InMemoryStorage,
    MySQLStorage,
    SyncWorkingMemory,
    WorkingMemory,
)

from .database import fresh_database
from .disk import administrator
from .environment import environment
from .floor import FLOORS, Floor
from .markdown import markdown_table
from .peers import Peers

#: Name of this measurement's own page.
PAGE = "working"

SIZES, QUICK_SIZES = (10, 100, 1_000), (10,)
#: Number of measured rounds, and of those that make and restore a checkpoint.
ROUNDS, QUICK_ROUNDS, CHECKPOINT_EVERY = 300, 20, 10
WARM_UP_ROUNDS = 5
SESSIONS, CALLS_AT_ONCE, QUICK_CALLS_AT_ONCE = 32, 25, 3
#: Maximum pause between the calls of a session, in seconds.
PAUSE_S = 0.2
#: Number of variables that change between two checkpoints of a session with 1,000.
CHANGED = 10

GET, SET, APPEND, CHECKPOINT, RESTORE = "get", "set", "append", "checkpoint", "restore"
OPERATIONS = (GET, SET, APPEND, CHECKPOINT, RESTORE)
MEMORY, REDIS, VALKEY, BARE_REDIS = "memory", "Redis", "Valkey", "bare, Redis"
AWAITED = ("mysql-connector", "aiomysql", "pymysql", "asyncmy")
BLOCKING = ("mysql-connector", "pymysql")
PERCENTILES = (50, 95, 99)

_VALUE = random.Random(4)


def value() -> str:
    """Return a text of 198 characters, whose JSON has 200 bytes."""
    return f"{_VALUE.getrandbits(792):0198x}"


class Contestant(ABC):
    """A storage on one client library, or its bare calls.

    Args:
        name: Its name.
        count: Number of its sessions.
    """

    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self.count = count

    @abstractmethod
    async def begin(self, size: int) -> None:
        """Create the sessions, each with a number of variables."""

    @abstractmethod
    def calls(self, session: int) -> dict[str, Callable[[str], Any]]:
        """Return the calls of a session by name; each takes a key and, on asynchronous sides, returns an awaitable."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections."""


class Ours(Contestant):
    """A storage of this package.

    Args:
        name: Its name.
        count: Number of its sessions.
        storage: The storage.
        blocking: Which side is measured.
    """

    def __init__(self, name: str, count: int, storage: Any, *, blocking: bool = False) -> None:
        super().__init__(name, count)
        self.storage = storage
        kind: Any = SyncWorkingMemory if blocking else WorkingMemory
        self.memories = [kind(f"{name}/{number}", storage) for number in range(count)]

    async def begin(self, size: int) -> None:
        """See `Contestant.begin`."""
        for memory in self.memories:
            await _done(memory.end())
            await _done(memory.set_many({_key(number): value() for number in range(size)}))

    def calls(self, session: int) -> dict[str, Callable[[str], Any]]:
        """See `Contestant.calls`."""
        memory = self.memories[session]
        made: list[str] = []

        async def made_awaited() -> None:
            made.append(await memory.create_checkpoint())

        def checkpoint(_: str) -> Any:
            if isinstance(memory, WorkingMemory):
                return made_awaited()
            made.append(memory.create_checkpoint())
            return None

        return {
            GET: memory.get,
            SET: lambda key: memory.set(key, value()),
            APPEND: lambda _: memory.append_scratchpad("x" * 100),
            CHECKPOINT: checkpoint,
            RESTORE: lambda _: memory.restore_checkpoint(made[-1]),
        }

    async def close(self) -> None:
        """See `Contestant.close`."""
        if isinstance(self.storage, MySQLStorage):
            await self.storage.database.aclose()
        else:
            await self.storage.aclose()


class BareMySQL(Contestant):
    """One statement by primary key, on a client library without this package.

    Args:
        floor: The library.
        count: Number of sessions, each with a connection.
        dsn: An empty database.
    """

    TABLE = """CREATE TABLE IF NOT EXISTS bare (session_id VARCHAR(100), name VARCHAR(100), value LONGTEXT,
               PRIMARY KEY (session_id, name))"""
    UPSERT = "INSERT INTO bare VALUES (%s, %s, %s) AS new ON DUPLICATE KEY UPDATE value = new.value"
    SELECT = "SELECT value FROM bare WHERE session_id = %s AND name = %s"

    def __init__(self, floor: type[Floor], count: int, dsn: str) -> None:
        super().__init__(floor.name.replace("floor", "bare MySQL"), count)
        self.floors = [floor(dsn) for _ in range(count)]

    async def begin(self, size: int) -> None:
        """See `Contestant.begin`."""
        for number, floor in enumerate(self.floors):
            with warnings.catch_warnings(action="ignore"):  # the table already exists
                await floor._execute(self.TABLE)
            for key in range(size):
                await floor._execute(self.UPSERT, f"{self.name}/{number}", _key(key), value())

    def calls(self, session: int) -> dict[str, Callable[[str], Any]]:
        """See `Contestant.calls`."""
        floor, name = self.floors[session], f"{self.name}/{session}"

        async def get(key: str) -> Any:
            return await floor._execute(self.SELECT, name, key)

        async def put(key: str) -> Any:
            return await floor._execute(self.UPSERT, name, key, value())

        if self.name.endswith("blocking"):  # the blocking side's coroutines never wait
            return {GET: lambda key: run_through(get(key)), SET: lambda key: run_through(put(key))}
        return {GET: get, SET: put}

    async def close(self) -> None:
        """See `Contestant.close`."""
        for floor in self.floors:
            if floor._connection is not None:
                await floor.close()
                floor._connection = None


class BareRedis(Contestant):
    """GET and SET with redis-py."""

    def __init__(self, name: str, count: int, url: str) -> None:
        super().__init__(name, count)
        from redis.asyncio import Redis as Client

        self.client = Client.from_url(url)

    async def begin(self, size: int) -> None:
        """See `Contestant.begin`."""
        for session in range(self.count):
            for key in range(size):
                await self.client.set(f"bare/{session}/{_key(key)}", value())

    def calls(self, session: int) -> dict[str, Callable[[str], Any]]:
        """See `Contestant.calls`."""
        return {
            GET: lambda key: self.client.get(f"bare/{session}/{key}"),
            SET: lambda key: self.client.set(f"bare/{session}/{key}", value()),
        }

    async def close(self) -> None:
        """See `Contestant.close`."""
        await self.client.aclose()


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure every size, then 32 concurrent sessions, and the bytes that a checkpoint writes."""
    return {"environment": environment(dsn, Peers()), **asyncio.run(_measure(dsn, quick))}


async def _measure(dsn: str, quick: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"missing": {}, "sizes": {}, "at_once": {}, "without_pause": {}}
    with _servers(result["missing"]) as servers:
        for size in QUICK_SIZES if quick else SIZES:
            _say(f"{size} variables")
            async with _Contestants(dsn, servers, 1) as everyone:
                result["sizes"][str(size)] = await _alone(everyone, size, QUICK_ROUNDS if quick else ROUNDS)
        _say(f"{SESSIONS} sessions at once")
        async with _Contestants(dsn, servers, SESSIONS) as everyone:
            for one in everyone:
                calls = QUICK_CALLS_AT_ONCE if quick else CALLS_AT_ONCE
                await one.begin(10 if quick else 100)
                for what, pause_s in (("at_once", PAUSE_S), ("without_pause", 0.0)):
                    result[what][one.name] = await _at_once(one, 10 if quick else 100, calls, pause_s)
                await one.close()  # the server accepts fewer connections than all of them would need
    result["checkpoint_bytes"] = await _checkpoint_bytes(dsn, 100 if quick else 1_000)
    return result


class _Contestants:
    """Return all contestants, each with its own database."""

    def __init__(self, dsn: str, servers: dict[str, str], count: int) -> None:
        self.dsn, self.servers, self.count = dsn, servers, count
        self.stack = ExitStack()
        self.everyone: list[Contestant] = []

    async def __aenter__(self) -> list[Contestant]:
        own, count = self.stack.enter_context(fresh_database(self.dsn)), self.count
        for driver in AWAITED:
            database = Database(own, driver=driver, pool_size=count)
            self.everyone.append(Ours(f"MySQL, {driver}", count, MySQLStorage(database)))
        for driver in BLOCKING:
            database = Database(own, driver=driver, pool_size=count)
            self.everyone.append(Ours(f"MySQL, {driver}, blocking", count, MySQLStorage(database), blocking=True))
        self.everyone += [BareMySQL(floor, count, own) for floor in FLOORS]
        for name, url in self.servers.items():
            self.everyone += [
                Ours(name, count, RedisStorage(url)),
                Ours(f"{name}, blocking", count, RedisStorage(url), blocking=True),
                BareRedis(f"bare, {name}", count, url),
            ]
        self.everyone.append(Ours(MEMORY, count, InMemoryStorage()))
        return self.everyone

    async def __aexit__(self, *error: object) -> None:
        for one in self.everyone:
            await one.close()
        self.stack.close()


async def _alone(everyone: Sequence[Contestant], size: int, rounds: int) -> dict[str, Any]:
    """Measure one session of each contestant, in turns."""
    taken: dict[str, dict[str, list[float]]] = {one.name: {} for one in everyone}
    calls = {}
    for one in everyone:
        await one.begin(size)
        calls[one.name] = one.calls(0)
    order, source = list(everyone), random.Random(2)
    for number in range(rounds + WARM_UP_ROUNDS):
        source.shuffle(order)
        gc.collect()
        for one in order:
            key = _key(source.randrange(size))
            for name, call in calls[one.name].items():
                if name in (CHECKPOINT, RESTORE) and number % CHECKPOINT_EVERY:
                    continue
                begin = time.perf_counter()
                await _done(call(key))
                if number >= WARM_UP_ROUNDS:
                    taken[one.name].setdefault(name, []).append((time.perf_counter() - begin) * 1_000)
    return {name: {what: _percentiles(times) for what, times in one.items()} for name, one in taken.items()}


async def _at_once(one: Contestant, size: int, count: int, pause_s: float) -> dict[str, Any]:
    """Measure all sessions of one contestant concurrently, with pauses of at most the given seconds between calls."""
    taken: dict[str, list[float]] = {GET: [], SET: []}
    calls = [one.calls(session) for session in range(one.count)]

    async def awaited(session: int) -> None:
        source = random.Random(session)
        for number in range(count + 2):
            for what in (SET, GET):
                await asyncio.sleep(source.uniform(0, pause_s))
                begin = time.perf_counter()
                await _done(calls[session][what](_key(source.randrange(size))))
                if number >= 2:
                    taken[what].append((time.perf_counter() - begin) * 1_000)

    if one.name.endswith("blocking"):
        threads = [threading.Thread(target=lambda n=n: asyncio.run(awaited(n))) for n in range(one.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
    else:
        await asyncio.gather(*(awaited(session) for session in range(one.count)))
    return {what: _percentiles(times) for what, times in taken.items()}


async def _checkpoint_bytes(dsn: str, size: int) -> dict[str, int]:
    """Return the bytes of a session, and those that a checkpoint writes after ten of its variables changed."""
    with fresh_database(dsn) as own, Database(own, driver="pymysql") as database, administrator(own) as cursor:

        def stored() -> int:
            cursor.execute("SELECT COALESCE(SUM(LENGTH(value) + LENGTH(name)), 0) FROM locus_working_history")
            return int(cursor.fetchone()[0])

        memory = SyncWorkingMemory("session", database)
        memory.set_many({_key(number): value() for number in range(size)})
        memory.create_checkpoint()
        before = stored()
        memory.set_many({_key(number): value() for number in range(CHANGED)})
        memory.create_checkpoint()
        return {"session": memory.stats().size_bytes, "checkpoint": stored() - before}


@contextmanager
def _servers(missing: dict[str, str]) -> Iterator[dict[str, str]]:
    """Start Redis and Valkey, as far as they are available."""
    with ExitStack() as stack:
        urls = {}
        for name, kind in ((REDIS, Redis), (VALKEY, Valkey)):
            try:
                urls[name] = stack.enter_context(kind.start(_say)).url
            except ServerMissing as error:
                missing[name] = str(error)
        yield urls


async def _done(outcome: Any) -> Any:
    """Return the result of a call of either side."""
    return await outcome if hasattr(outcome, "__await__") else outcome


def run_through(coroutine: Any) -> Any:
    """Return the result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waited")


def _key(number: int) -> str:
    return f"variable {number:05}"


def _percentiles(times: list[float]) -> dict[str, float]:
    if len(times) < 2:
        return {f"p{at}": times[0] for at in PERCENTILES}
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {f"p{at}": cuts[at - 1] for at in PERCENTILES}


def bare_of(contestant: str) -> str:
    """Return the name of the bare calls of a contestant's storage."""
    if contestant.startswith("MySQL, "):
        library = contestant.removeprefix("MySQL, ")
        return f"bare MySQL, {'pymysql, blocking' if library == 'pymysql' else library}"
    return f"bare, {contestant.removesuffix(', blocking')}"


def table(result: dict[str, Any]) -> str:
    """Return a table for each size, and one for many concurrent sessions."""
    parts = [" ".join((__doc__ or "").split("\n\n", 1)[1].split())]
    for size, measured in result["sizes"].items():
        rows = [[name, *(_shown(one.get(what)) for what in OPERATIONS)] for name, one in measured.items()]
        heading = ["", *OPERATIONS]
        parts += [f"A session of {int(size):,} variables: p50 / p95 / p99, ms", markdown_table(heading, rows)]
    rows = [[name, *(_shown(one.get(what)) for what in (GET, SET))] for name, one in result["at_once"].items()]
    parts += [f"{SESSIONS} sessions at once: p50 / p95 / p99, ms", markdown_table(["", GET, SET], rows)]
    rows = [[name, *(_shown(one.get(what)) for what in (GET, SET))] for name, one in result["without_pause"].items()]
    parts += [f"{SESSIONS} sessions without a pause: p50 / p95 / p99, ms", markdown_table(["", GET, SET], rows)]
    written = result["checkpoint_bytes"]
    parts += [
        f"A checkpoint of which {CHANGED} variables had changed writes {written['checkpoint']:,} bytes of values and "
        f"keys; the session has {written['session']:,}."
    ]
    parts += [f"Left out: {name}: {reason}" for name, reason in result["missing"].items()]
    return "\n\n".join(parts)


def _shown(times: dict[str, float] | None) -> str:
    return "-" if times is None else " / ".join(f"{time:.2f}" for time in times.values())


def _say(message: str) -> None:
    print(f"bench: working, {message}", file=sys.stderr, flush=True)
