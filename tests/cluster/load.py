"""Clients of every family that write, read back and measure how long each call takes: `Load`.

Each client writes to data of its own, so that every acknowledged write can be found again exactly once.
"""

from __future__ import annotations

import asyncio
import random
import time
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from locus_mysql import (
    CheckpointStore,
    Database,
    MemoryStore,
    MySQLCheckpointSaver,
    MySQLConfig,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLCheckpointSaver,
    SyncWorkingMemory,
    WorkingMemory,
)
from locus_mysql.errors import Unavailable
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore

#: Limits in seconds: for the retries of a call, and for one answer.
RETRY_DEADLINE_S = 90.0
READ_TIMEOUT_S = 20.0

#: A call that takes longer counts as hanging: its deadline, one last answer, and a margin for a busy machine.
HANGS_AFTER_S = RETRY_DEADLINE_S + READ_TIMEOUT_S + 10.0

#: Longest pause of a client between two writes, in seconds; real agents wait much longer for their models.
PAUSE_S = 0.2

#: Writes after which a client of checkpoints or graphs begins another thread.
THREAD_LENGTH = 200


class Way(NamedTuple):
    """One side of a driver, and the addresses it connects to.

    Args:
        side: As in `EVERY_SIDE`.
        path: ``direct`` or ``Router``.
        database: The connections.
    """

    side: str
    path: str
    database: Database

    async def run(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a method of a store of this side."""
        if self.side.endswith("-sync"):
            return await asyncio.to_thread(method, *args, **options)
        return await method(*args, **options)

    def store(self, awaited: Callable[..., Any], blocking: Callable[..., Any], *first: Any) -> Any:
        """Open a store of this side."""
        return (blocking if self.side.endswith("-sync") else awaited)(*first, self.database)


class Verdict(NamedTuple):
    """A client's writes, compared with the tables.

    Args:
        lost: Acknowledged writes that are missing.
        doubled: Writes that are stored more than once.
    """

    lost: int
    doubled: int


@dataclass
class Client:
    """One client.

    Args:
        family: What it calls.
        way: How it connects.
        name: The name under which it writes.
    """

    family: Family
    way: Way
    name: str
    tried: int = 0
    #: Number of acknowledged writes, the newest of them, and the unacknowledged writes.
    acknowledged: int = 0
    newest_acknowledged: int = 0
    unacknowledged: set[int] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)
    #: The loads that returned an older write than the newest acknowledged one.
    stale: list[str] = field(default_factory=list)
    #: For each call the time of its end, and its duration in seconds.
    ends: array[float] = field(default_factory=lambda: array("d"))
    waits: array[float] = field(default_factory=lambda: array("d"))

    def __post_init__(self) -> None:
        first = (self.name,) if self.family.of_client else ()
        self.store = self.way.store(self.family.awaited, self.family.blocking, *first)

    async def run(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method of the store."""
        return await self.way.run(getattr(self.store, method), *args, **options)

    async def work(self, stop: asyncio.Event) -> None:
        """Repeatedly write and read back, until the event is set."""
        while not stop.is_set():
            self.tried += 1
            number = self.tried
            if await self._timed(self.family.write(self, number)) is _FAILED:
                self.unacknowledged.add(number)
            else:
                self.acknowledged += 1
                self.newest_acknowledged = number
            newest = await self._timed(self.family.newest(self))
            if newest is not _FAILED and newest < self.newest_acknowledged:
                self.stale.append(f"{self.name} ({self.way.side}): {newest} instead of {self.newest_acknowledged}")
            await asyncio.sleep(random.uniform(0, PAUSE_S))

    async def _timed(self, call: Awaitable[Any]) -> Any:
        began = time.monotonic()
        try:
            return await call
        except Unavailable as error:
            self.failed.append(str(error))
            return _FAILED
        finally:
            ended = time.monotonic()
            self.ends.append(ended)
            self.waits.append(ended - began)

    async def check(self) -> Verdict:
        """Compare the tables with the acknowledged writes."""
        if self.family.stored is None:  # writes whose call failed may have been carried out
            item = await self.run("get_item", ("load", self.name), "item")
            version, newest = (0, 0) if item is None else (item.version, int(item.value["number"]))
            lost = max(self.acknowledged - version, int(newest < self.newest_acknowledged))
            return Verdict(max(lost, 0), max(version - self.tried, 0))
        stored = Counter(await self.family.stored(self))
        tried = set(range(1, self.tried + 1))
        doubled = sum(times - 1 for times in stored.values()) + len(stored.keys() - tried)
        return Verdict(len(tried - self.unacknowledged - stored.keys()), doubled)


_FAILED = object()


class Family(NamedTuple):
    """The calls of one family's clients, with which each writes numbers, counted from 1.

    Args:
        awaited: The class of the asynchronous store.
        blocking: The class of the blocking one.
        write: Writes a number.
        newest: Loads the newest number.
        stored: Loads all stored numbers, duplicates included; None if `Client.check` needs only an item's version.
        of_client: Whether a store belongs to one client, by its name.
    """

    awaited: Callable[..., Any]
    blocking: Callable[..., Any]
    write: Callable[[Client, int], Awaitable[Any]]
    newest: Callable[[Client], Awaitable[int]]
    stored: Callable[[Client], Awaitable[Sequence[int]]] | None
    of_client: bool = False


def thread_of(client: Client, number: int) -> str:
    return f"{client.name} {number // THREAD_LENGTH}"


def threads_of(client: Client) -> list[str]:
    return [f"{client.name} {thread}" for thread in range(client.tried // THREAD_LENGTH + 1)]


async def save(client: Client, number: int) -> None:
    """Save without an id, so that a save that is carried out twice creates two checkpoints."""
    state = {"number": number, "messages": [f"turn {turn}" for turn in range(number % THREAD_LENGTH)]}
    await client.run("save", thread_of(client, number), state, metadata={"number": number})


async def saved_newest(client: Client) -> int:
    state = await client.run("load", thread_of(client, client.newest_acknowledged))
    return 0 if state is None else int(state["number"])


async def saved(client: Client) -> list[int]:
    histories = [await client.run("history", thread, 10 * THREAD_LENGTH) for thread in threads_of(client)]
    return [int(entry["metadata"]["number"]) for entries in histories for entry in entries]


async def put(client: Client, number: int) -> None:
    """Put a graph's checkpoint with its parent."""
    parent = number - 1 if number % THREAD_LENGTH and number - 1 not in client.unacknowledged else None
    await client.run(
        "put",
        thread_id=thread_of(client, number),
        checkpoint_id=f"{number:06d}",
        checkpoint_data={"number": number, "messages": [f"turn {number}"]},
        parent_checkpoint_id=None if parent is None else f"{parent:06d}",
    )


async def put_newest(client: Client) -> int:
    record = await client.run("get", thread_id=thread_of(client, client.newest_acknowledged))
    return 0 if record is None else int(record["checkpoint"]["number"])


async def put_before(client: Client) -> list[int]:
    return [
        int(record["checkpoint"]["number"])
        for thread in threads_of(client)
        for record in await client.run("list_checkpoints", thread_id=thread, limit=10 * THREAD_LENGTH)
    ]


async def remember(client: Client, number: int) -> None:
    """Write one item again and again; its version counts the writes that were carried out."""
    await client.run("put", ("load", client.name), "item", {"number": number})


async def remembered(client: Client) -> int:
    item = await client.run("get_item", ("load", client.name), "item")
    return 0 if item is None else int(item.value["number"])


async def note(client: Client, number: int) -> None:
    """Append to a session's scratchpad, where a note that is appended twice is stored twice."""
    await client.run("append_scratchpad", str(number))


async def noted_newest(client: Client) -> int:
    notes = await client.run("get_scratchpad", 1)
    return int(notes[-1]) if notes else 0


async def noted(client: Client) -> list[int]:
    return [int(one) for one in await client.run("get_scratchpad")]


async def append(client: Client, number: int) -> None:
    """Append an item without an id, so that an append that is carried out twice stores two items."""
    await client.run("append", TranscriptKey("load", "", client.name), [NewItem(number)])


async def appended(client: Client, **part: int) -> list[int]:
    read = await client.run("read", TranscriptKey("load", "", client.name), **part)
    return [] if read is None else [int(item.content) for item in read.items]


async def appended_newest(client: Client) -> int:
    return ([0, *await appended(client, last=1)])[-1]


FAMILIES = (
    Family(CheckpointStore, SyncCheckpointStore, save, saved_newest, saved),
    Family(MySQLCheckpointSaver, SyncMySQLCheckpointSaver, put, put_newest, put_before),
    Family(MemoryStore, SyncMemoryStore, remember, remembered, None),
    Family(WorkingMemory, SyncWorkingMemory, note, noted_newest, noted, of_client=True),
    Family(TranscriptStore, SyncTranscriptStore, append, appended_newest, appended),
)


class Load:
    """Clients that work at the same time.

    Args:
        ways: The ways of connecting. The next client takes the next family and the next way, so that all pairs occur.
        number: Number of clients.
        first: Number of the first client.
        prefix: Prefix of the names of everything they write.
    """

    def __init__(self, ways: Sequence[Way], number: int, *, first: int = 0, prefix: str = "client") -> None:
        self.clients = [
            Client(FAMILIES[index % len(FAMILIES)], ways[index % len(ways)], f"{prefix} {index}")
            for index in range(first, first + number)
        ]
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start all clients."""
        self._tasks = [asyncio.create_task(client.work(self._stop)) for client in self.clients]

    async def go_on(self, writes: int, within_s: float) -> None:
        """Wait until each client has this many more acknowledged writes."""
        wanted = {client.name: client.acknowledged + writes for client in self.clients}
        deadline = time.monotonic() + within_s
        while behind := [one for one in self.clients if one.acknowledged < wanted[one.name]]:
            for task in self._tasks:
                if task.done():
                    task.result()
            assert time.monotonic() < deadline, [(one.name, one.way.side, one.way.path, one.failed) for one in behind]
            await asyncio.sleep(0.05)

    async def end(self) -> None:
        """Stop the clients after their current calls."""
        self._stop.set()
        await asyncio.gather(*self._tasks)


def open_ways(sides: Iterable[str], direct: dict[str, Any], through_router: dict[str, Any]) -> list[Way]:
    """Every side on both paths.

    Args:
        sides: As in `EVERY_SIDE`.
        direct: The options that connect to the members.
        through_router: The options that connect to the Router's port for writes.
    """
    limits = {"retry_deadline_s": RETRY_DEADLINE_S, "read_timeout_s": READ_TIMEOUT_S, "pool_timeout_s": 60.0}
    return [
        Way(side, path, Database(MySQLConfig(driver=side.rpartition("-")[0], **limits, **options)))
        for side in sides
        for path, options in (("direct", direct), ("Router", through_router))
    ]
