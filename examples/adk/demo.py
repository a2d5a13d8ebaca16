"""The chapter on Google ADK: a killed conversation, two writers, a stale session, long-term memory."""

from __future__ import annotations

import asyncio
from typing import TextIO

from google.adk.events.event import Event
from google.genai.types import Content, Part

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.families.memories.embedding import EmbeddingOptions
from locus_mysql.integrations.google_adk import AdkMemoryService, AdkSessionService, StaleSessionError
from locus_mysql.integrations.google_adk.memories import AdkMemoryOperations
from locus_mysql.integrations.google_adk.sessions import AdkSessionOperations
from locus_mysql.memory import HashingEmbedder
from locus_mysql.runtime.database import Database

from ..display import Screen
from ..frame import chapter
from ..process import options_of, running
from .worker import APP, USER, Shift, insist, runner_on, say

#: The user's messages in the first session, before and after its process is killed.
FIRST, SECOND = "My router blinks red.", "It is green now."

TURNS_EACH = 5


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run the chapter in separate tables, which are dropped at the end; return True if every check held.

    Args:
        config: The server, the database, the driver.
        stream: The output.

    Raises:
        LocusMySQLError: The database cannot be used.
    """
    async with chapter(config, stream, _schemas) as this, Database(this.config) as database:
        screen, config, embedder = this.screen, this.config, HashingEmbedder()
        sessions = AdkSessionService(database)
        memory = AdkMemoryService(database, dims=embedder.dims, embed=embedder)
        screen.title(f"A Google ADK agent with its sessions in MySQL at {this.where}")
        await killed(screen, sessions, config)
        await shared(screen, sessions, config)
        await stale(screen, sessions)
        await remembered(screen, sessions, memory)
    return not screen.failed


async def killed(screen: Screen, sessions: AdkSessionService, config: MySQLConfig) -> None:
    """A process is killed between two turns; this one continues the conversation."""
    screen.section("A process runs two turns of an agent, and is killed before the third one")
    await sessions.create_session(app_name=APP, user_id=USER, session_id="router")
    shift = Shift(options=options_of(config), session="router", texts=[FIRST, "I am Ada."])
    async with running("examples.adk.worker", shift) as other:
        for text in shift["texts"]:
            screen.line("user", text)
            screen.line(f"pid {other.pid}", (await other.next_event()).get("answer", ""))
        screen.check(await other.kill() == -9, "it was ended by SIGKILL")
    screen.line("user", SECOND)
    answer = await say(runner_on(sessions), "router", SECOND)
    screen.line("this process", answer)
    screen.check(answer == f"You have said 3 things, first: {FIRST}", "the agent has the whole conversation here")
    state = await sessions.get_user_state(app_name=APP, user_id=USER)
    screen.check(state == {"name": "Ada"}, "what its tool wrote to the user's state is there, too")


async def shared(screen: Screen, sessions: AdkSessionService, config: MySQLConfig) -> None:
    """Two processes run turns of one session at the same time."""
    screen.section("Two processes on one session")
    await sessions.create_session(app_name=APP, user_id=USER, session_id="shared")
    theirs = [f"Theirs {number}" for number in range(TURNS_EACH)]
    ours = [f"Ours {number}" for number in range(TURNS_EACH)]
    runner = runner_on(sessions)
    async with running(
        "examples.adk.worker", Shift(options=options_of(config), session="shared", texts=theirs)
    ) as other:

        async def follow() -> None:
            for _ in theirs:
                await other.next_event()

        async def talk() -> None:
            for text in ours:
                await insist(runner, "shared", text)

        await asyncio.gather(follow(), talk())
    session = await sessions.get_session(app_name=APP, user_id=USER, session_id="shared")
    events = session.events if session is not None else []
    said = [_text(event) for event in events if event.author == "user"]
    screen.line("session", f"{len(events)} events, {len(said)} of them said by users")
    screen.check({*ours, *theirs} <= set(said), "each message was stored, in the order of the commits")
    screen.check(len({event.id for event in events}) == len(events), "and no event twice")


async def stale(screen: Screen, sessions: AdkSessionService) -> None:
    """A session object is refused after an event was appended with another one."""
    screen.section("A session object that is out of date")
    one = await sessions.create_session(app_name=APP, user_id=USER, session_id="stale")
    other = await sessions.get_session(app_name=APP, user_id=USER, session_id="stale")
    late = _said("I was late.")
    if other is not None:
        await sessions.append_event(other, _said("I was first."))
    refused = False
    try:
        await sessions.append_event(one, late)
    except StaleSessionError:
        refused = True
    screen.check(refused, "StaleSessionError: nothing was stored")
    again = await sessions.get_session(app_name=APP, user_id=USER, session_id="stale")
    if again is not None:
        await sessions.append_event(again, late)
    stored = await sessions.get_session(app_name=APP, user_id=USER, session_id="stale")
    texts = [_text(event) for event in stored.events] if stored is not None else []
    screen.check(texts == ["I was first.", "I was late."], "appended to the session as it is now, the event is there")


async def remembered(screen: Screen, sessions: AdkSessionService, memory: AdkMemoryService) -> None:
    """In another session, the agent's tool finds a message of the first one."""
    screen.section("Long-term memory, by word and by meaning")
    session = await sessions.get_session(app_name=APP, user_id=USER, session_id="router")
    if session is not None:
        await memory.add_session_to_memory(session)
    await sessions.create_session(app_name=APP, user_id=USER, session_id="later")
    question = "Do you remember what blinks?"
    screen.line("user", question)
    answer = await say(runner_on(sessions, memory), "later", question)
    screen.line("agent", answer)
    screen.check(FIRST in answer, "the agent's tool found it in the memory of another session")


def _said(text: str) -> Event:
    return Event(author="user", invocation_id="1", content=Content(role="user", parts=[Part(text=text)]))


def _text(event: Event) -> str:
    return "".join(part.text or "" for part in (event.content.parts if event.content else None) or ())


def _schemas(config: MySQLConfig) -> list[Schema]:
    memories = AdkMemoryOperations(config, EmbeddingOptions(), 10)
    return [AdkSessionOperations(config).schema, memories.schema]
