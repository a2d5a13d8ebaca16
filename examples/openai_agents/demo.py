"""The chapter on the OpenAI Agents SDK: a killed session, two writers, and the SDK's own tests."""

from __future__ import annotations

import asyncio
import random
from typing import Any, TextIO

from agents.memory import Session, SQLiteSession

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.integrations.openai_agents import OpenAISession
from locus_mysql.integrations.openai_agents.session import OpenAIOperations
from locus_mysql.runtime.database import Database

from ..display import Screen
from ..frame import chapter
from ..own_suite import own_suite
from ..process import options_of, running
from .assistant import SESSION, TURNS, take_turn, text_of
from .worker import Shift

#: Notes that each of two processes adds, and random calls that are compared.
NOTES, CALLS = 20, 100


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
        session = OpenAISession(SESSION, database)
        screen.title(f"Sessions of the OpenAI Agents SDK in MySQL at {this.where}")
        await killed(screen, session, config)
        await shared(screen, session, config)
        await compared(screen, OpenAISession("compared", database))
        await own_suite(screen, config, "openai-agents")
    return not screen.failed


async def killed(screen: Screen, session: OpenAISession, config: MySQLConfig) -> None:
    """A process is killed between two turns; this one continues the session."""
    screen.section("A process takes a turn, and is killed before the next one")
    shift = Shift(options=options_of(config), turn=0, notes=0)
    async with running("examples.openai_agents.worker", shift) as other:
        stored = (await other.next_event()).get("items", "")
        screen.line(f"pid {other.pid}", f"stored {stored} items")
        screen.check(await other.kill() == -9, "it was ended by SIGKILL")
    received = await take_turn(session, 1)
    for text in received:
        screen.line("model", text)
    screen.check(received == [*TURNS[0], TURNS[1][0]], "in this process, the model received the turn of the other one")
    texts = [text_of(item) for item in await session.get_items()]
    screen.check(texts == [text for both in TURNS for text in both], "both turns are there once, in order")


async def shared(screen: Screen, session: OpenAISession, config: MySQLConfig) -> None:
    """Two processes write to one session at the same time."""
    screen.section("Two processes on one session")
    before = len(await session.get_items())
    shift = Shift(options=options_of(config), turn=None, notes=NOTES)
    popped: list[str] = []
    async with running("examples.openai_agents.worker", shift) as other:
        ended = asyncio.create_task(other.next_event())
        added = 0
        while not ended.done() or added < NOTES:
            await session.add_items([{"role": "user", "content": f"Note {added} of this process"}])
            added += 1
            if added % 5 == 0:
                popped.append(text_of(await session.pop_item()))
        await ended
    texts = [text_of(item) for item in (await session.get_items())[before:]]
    screen.line("session", f"{NOTES} notes of the other process, {added} of this one, {len(popped)} popped")
    expected = [f"Note {number} of the other process" for number in range(NOTES)]
    expected += [f"Note {number} of this process" for number in range(added)]
    screen.check(sorted([*texts, *popped]) == sorted(expected), "each note was stored once, and popped once at most")
    last = [text_of(item) for item in await session.get_items(limit=5)]
    screen.check(last == texts[-5:], "get_items(limit=5) returns the last 5, the oldest of them first")


async def compared(screen: Screen, session: Session) -> None:
    """The SDK's session in SQLite, and this one, after the same calls."""
    screen.section("The same calls to the SDK's SQLiteSession")
    reference = SQLiteSession("compared")
    choice = random.Random(7)  # noqa: S311 - not for secrets
    same = True
    for number in range(CALLS):
        call = choice.choice(("add", "add", "get", "pop", "clear" if number % 10 == 0 else "add"))
        limit = choice.choice((None, 0, 1, 3, -1))
        results = [await _call(one, call, number, limit) for one in (session, reference)]
        same = same and results[0] == results[1]
    same = same and await session.get_items() == await reference.get_items()
    reference.close()
    screen.check(same, f"{CALLS} random calls returned the same")


async def _call(session: Session, call: str, number: int, limit: int | None) -> Any:
    if call == "add":
        return await session.add_items([{"role": "user", "content": f"{number}.{one}"} for one in range(number % 3)])
    if call == "get":
        return await session.get_items(limit)
    return await session.pop_item() if call == "pop" else await session.clear_session()


def _schemas(config: MySQLConfig) -> list[Schema]:
    return [OpenAIOperations(config, SESSION).schema]
