"""The chapter on Strands Agents: a killed agent, snapshots, two processes on one session, its own tests."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any, TextIO

from strands.storage import InMemoryStorage, Storage
from strands.types.exceptions import StorageError

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.families.transcripts.operations import TranscriptOperations
from locus_mysql.integrations.strands import StrandsSessionRepository, StrandsStorage
from locus_mysql.runtime.database import Database

from ..display import Screen, size
from ..frame import chapter
from ..own_suite import own_suite
from ..process import options_of, running
from .support import AGENT, NOTES_SESSION, SESSION, TURNS, add_notes, begin_notes, take_turn, text_of
from .worker import Shift

SNAPSHOTS = f"session/{SESSION}/scopes/agent/{AGENT}/snapshots/"

#: Snapshots of a growing conversation, notes that each of two processes adds, and random calls that are compared.
GROWING, NOTES, CALLS = 64, 10, 100


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run the chapter in separate tables, which are dropped at the end; return True if every check held.

    Args:
        config: The server, the database, the driver.
        stream: The output.

    Raises:
        LocusMySQLError: The database cannot be used.
    """
    async with chapter(config, stream, _schemas) as this, Database(this.config) as database:
        screen, config = this.screen, this.config
        storage = StrandsStorage(database)
        screen.title(f"Strands Agents in MySQL at {this.where}")
        await killed(screen, storage, config)
        await growing(screen, storage, database)
        await shared(screen, config)
        await compared(screen, storage.namespace("compared"))
        await own_suite(screen, config, "strands-agents")
    return not screen.failed


async def killed(screen: Screen, storage: StrandsStorage, config: MySQLConfig) -> None:
    """A process is killed between two turns; this one continues the agent."""
    screen.section("A process takes a turn, and is killed before the next one")
    shift = Shift(options=options_of(config), turn=0, notes=[])
    async with running("examples.strands.worker", shift) as other:
        screen.line(f"pid {other.pid}", f"stored {(await other.next_event()).get('keys', '')} snapshots")
        screen.check(await other.kill() == -9, "it was ended by SIGKILL")
    received = await take_turn(storage, 1)
    for text in received:
        screen.line("model", text)
    screen.check(received == [*TURNS[0], TURNS[1][0]], "in this process, the model received the turn of the other one")
    for key in (keys := await storage.list(SNAPSHOTS)):
        screen.line("key", key.removeprefix(SNAPSHOTS))
    stored = json.loads(await storage.read(f"{SNAPSHOTS}snapshot_latest.json") or b"{}")
    texts = [text_of(message) for message in stored["data"]["messages"]]
    screen.check(
        texts == [text for both in TURNS for text in both] and len(keys) == 3,
        "both turns are there once, in order, and each turn has a snapshot to go back to",
    )


async def growing(screen: Screen, storage: StrandsStorage, database: Database) -> None:
    """Each snapshot holds the whole conversation, and is stored as what it adds."""
    screen.section("Snapshots of a growing conversation")
    messages: list[Any] = []
    written: dict[str, bytes] = {}
    for number in range(GROWING):
        text = " ".join(str(random.Random(number * 97 + word).random()) for word in range(40))  # noqa: S311 - not for secrets
        messages.append({"role": "user", "content": [{"text": text}]})
        key = f"{SNAPSHOTS.replace(AGENT, 'growing')}immutable_history/snapshot_{number:03}.json"
        written[key] = json.dumps({"data": {"messages": messages}}).encode()
        await storage.write(key, written[key])
    stored = await stored_bytes(database)
    total = sum(map(len, written.values()))
    screen.database(f"{GROWING} snapshots of {size(total)} take {size(stored)}")
    screen.check(stored * 5 < total, "they take less than a fifth of their bytes")
    same = [await storage.read(key) == data for key, data in written.items()]
    screen.check(all(same), "each one comes back byte by byte")


async def shared(screen: Screen, config: MySQLConfig) -> None:
    """Two processes write to one session of a repository at the same time."""
    screen.section("Two processes on one session")
    options = options_of(config)
    if config.driver == "asyncmy":  # which has no blocking side, and a repository is blocking
        options["driver"] = "pymysql"
    ours = [f"Note {number} of this process" for number in range(NOTES)]
    theirs = [f"Note {number} of the other process" for number in range(NOTES)]
    with StrandsSessionRepository(MySQLConfig(**options)) as repository:
        await asyncio.to_thread(begin_notes, repository)
        async with running("examples.strands.worker", Shift(options=options, turn=None, notes=theirs)) as other:
            taken = await asyncio.to_thread(add_notes, repository, ours)
            taken += int((await other.next_event())["taken"])
        found = await asyncio.to_thread(repository.list_messages, NOTES_SESSION, AGENT)
    screen.line("session", f"{len(found)} notes; {taken} times the other process had taken the id first")
    screen.check(
        sorted(text_of(one.message) for one in found) == sorted([*ours, *theirs]),
        "each note is there once: none was replaced by another of its id",
    )
    screen.check([one.message_id for one in found] == list(range(2 * NOTES)), "the ids have no gap")


async def compared(screen: Screen, storage: Storage) -> None:
    """The framework's storage in memory, and this one, after the same calls."""
    screen.section("The same calls to the framework's InMemoryStorage")
    reference: Storage = InMemoryStorage()
    choice = random.Random(7)  # noqa: S311 - not for secrets
    same = True
    for number in range(CALLS):
        call, key = (
            choice.choice(("write", "read", "list", "delete")),
            choice.choice(("a", "a/b", "/a//b/", "", "..", "é")),
        )
        results = [await _call(one, call, key, number) for one in (storage, reference)]
        same = same and results[0] == results[1]
    screen.check(same, f"{CALLS} random calls returned the same")


async def _call(storage: Storage, call: str, key: str, number: int) -> Any:
    try:
        if call == "write":
            return await storage.write(key, b"%d" % number)
        if call == "list":
            return await storage.list(key)
        return await storage.read(key) if call == "read" else await storage.delete(key)
    except StorageError as error:
        return str(error)


async def stored_bytes(database: Database) -> int:
    """Return the bytes of all snapshots on the server."""
    operations = StoreOperations(database.config)
    usage = await database.asynchronous.run(operations.get_disk_usage(), operations.schema)
    return usage["total_bytes"]


def _schemas(config: MySQLConfig) -> tuple[Schema, ...]:
    return StoreOperations(config).schema, TranscriptOperations(config).schema
