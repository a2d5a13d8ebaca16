"""The chapter on the Claude Agent SDK: a killed session, two writers, and the SDK's suite."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from itertools import count
from typing import Any, TextIO

from claude_agent_sdk import SessionStoreEntry, get_session_messages_from_store, list_sessions_from_store
from claude_agent_sdk.testing import run_session_store_conformance

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore
from locus_mysql.integrations.claude_agent_sdk.store import ClaudeOperations
from locus_mysql.runtime.database import Database

from ..display import Screen
from ..frame import chapter
from ..process import options_of, running
from .agent_worker import AgentShift
from .entries import DIRECTORY, KEY, SESSION, TURNS, turn
from .scripted_model import ScriptedModel
from .worker import Shift


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
        store = ClaudeSessionStore(database)
        screen.title(f"Sessions of the Claude Agent SDK in MySQL at {this.where}")
        await agent(screen, store, config)
        await killed(screen, store, config)
        await shared(screen, store, config)
        await suite(screen, database)
    return not screen.failed


async def agent(screen: Screen, store: ClaudeSessionStore, config: MySQLConfig) -> None:
    """An agent runs in a process that is killed between two turns; another one, without its files, continues."""
    screen.section("An agent of the SDK, killed between two turns, continued on another machine")
    session, answers = None, []
    with ScriptedModel().serving() as model, tempfile.TemporaryDirectory() as folder:
        directory = tempfile.mkdtemp(dir=folder)
        for prompt in ("I am Ada.", "Who am I?"):
            shift = AgentShift(
                options=options_of(config),
                model=model.url,
                directory=directory,
                home=tempfile.mkdtemp(dir=folder),
                prompt=prompt,
                session=session,
            )
            async with running("examples.claude.agent_worker", shift) as other:
                event = await other.next_event()
                session = event.get("session")
                answers.append(event.get("answer", ""))
                screen.line("Ada", prompt)
                screen.line("agent", f"{answers[-1]} (pid {other.pid})")
                screen.check(await other.kill() == -9, "its process was ended by SIGKILL")
        screen.check(model.heard == [2, 4], "in the second turn, the model got the messages of the first one")
        messages = await get_session_messages_from_store(store, session or "", directory)
        said = [text for one in messages if (text := _text(one.message))]
        screen.check([one for one in said if one in answers] == answers, "the session has both turns, once each")


async def killed(screen: Screen, store: ClaudeSessionStore, config: MySQLConfig) -> None:
    """A process is killed between two turns; this one continues the session."""
    screen.section("A process stores a turn, and is killed before the next one")
    shift = Shift(options=options_of(config), turn=0)
    async with running("examples.claude.worker", shift) as other:
        stored = (await other.next_event()).get("entries", "")
        screen.line(f"pid {other.pid}", f"stored {stored} entries")
        screen.check(await other.kill() == -9, "it was ended by SIGKILL")
    await store.append(KEY, [*turn(0), *turn(1)])
    messages = [_text(one.message) for one in await get_session_messages_from_store(store, SESSION, DIRECTORY)]
    for text in messages:
        screen.line("session", text)
    said = [text for both in TURNS[:2] for text in both]
    screen.check(messages == said, "this process sent the first turn again with the second: all is there once")


async def shared(screen: Screen, store: ClaudeSessionStore, config: MySQLConfig) -> None:
    """Two processes write to one session at the same time, and repeat each other's entries."""
    screen.section("Two processes on one session")
    titles: list[SessionStoreEntry] = []
    for number in range(20):
        title: Any = {"type": "custom-title", "customTitle": f"Router {number}"}
        titles.append(title)
    async with running("examples.claude.worker", Shift(options=options_of(config), turn=2)) as other:
        await asyncio.gather(other.next_event(), *(store.append(KEY, [title, *turn(2)]) for title in titles))
    entries = await store.load(KEY) or []
    screen.line("session", f"{len(entries)} entries, {len(titles)} of them titles without a uuid")
    screen.check(len(entries) == 4 + 2 + len(titles), "entries with a uuid are there once, the others each time")
    (listed,) = await list_sessions_from_store(store, DIRECTORY)
    newest = [str(entry.get("customTitle")) for entry in entries if entry["type"] == "custom-title"][-1]
    screen.line("summary", listed.summary)
    screen.check(listed.summary == newest, "the summary is that of the entry that was stored last")


async def suite(screen: Screen, database: Database) -> None:
    """The SDK's own suite for session stores."""
    screen.section("The SDK's conformance suite for session stores")
    tenants = count()
    failed = ""
    try:
        await run_session_store_conformance(lambda: ClaudeSessionStore(database, tenant=f"contract {next(tenants)}"))
    except AssertionError as error:
        failed = f"{error}"
    screen.check(not failed, f"all 14 contracts{f': {failed}' if failed else ' hold'}")


def _text(message: object) -> str:
    content = message["content"] if isinstance(message, Mapping) else ""
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)


def _schemas(config: MySQLConfig) -> list[Schema]:
    return [ClaudeOperations(config).schema]
