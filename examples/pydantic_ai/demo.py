"""The chapter on Pydantic AI: a killed conversation, two writers, and forks."""

from __future__ import annotations

import asyncio
from typing import TextIO

from pydantic_ai.conversation_store import ConversationConflict

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.integrations.pydantic_ai import PydanticConversationStore
from locus_mysql.integrations.pydantic_ai.conversations import ConversationOperations
from locus_mysql.runtime.database import Database

from ..display import Screen
from ..frame import chapter
from ..process import options_of, running
from .agent import CONVERSATION, CUSTOMER, questions, turn
from .worker import Shift

#: Turns that each of two processes runs at the same time.
EACH = 5


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
        store = PydanticConversationStore(database)
        screen.title(f"Conversations of Pydantic AI in MySQL at {this.where}")
        await killed(screen, store, config)
        await shared(screen, store, config)
        await forked(screen, store)
    return not screen.failed


async def killed(screen: Screen, store: PydanticConversationStore, config: MySQLConfig) -> None:
    """A process is killed between two turns; this one continues the conversation."""
    screen.section("A process runs a turn, and is killed before the next one")
    shift = Shift(options=options_of(config), questions=["My router blinks red."])
    async with running("examples.pydantic_ai.worker", shift) as other:
        screen.line(f"pid {other.pid}", (await other.next_event()).get("answer", ""))
        screen.check(await other.kill() == -9, "it was ended by SIGKILL")
    answer = await turn(store, "What did I ask first?")
    screen.line("this process", answer)
    screen.check(answer == "Question 2. You began with: My router blinks red.", "the conversation goes on here")


async def shared(screen: Screen, store: PydanticConversationStore, config: MySQLConfig) -> None:
    """Two processes run turns of one conversation at the same time."""
    screen.section("Two processes on one conversation")
    theirs, mine = ([f"{who} {number}" for number in range(EACH)] for who in ("theirs", "mine"))
    refused = 0
    async with running("examples.pydantic_ai.worker", Shift(options=options_of(config), questions=theirs)) as other:
        reported = asyncio.create_task(other.next_event())
        for question in mine:
            while True:
                try:
                    await turn(store, question)
                    break
                except ConversationConflict:
                    refused += 1
        screen.line("refused", f"{refused} of mine, {(await reported).get('refused')} of theirs; each was run again")
    conversation = await store.load(CONVERSATION, scope=CUSTOMER)
    asked = [] if conversation is None else questions(conversation.messages)
    screen.line("conversation", f"{len(asked)} questions")
    screen.check(sorted(asked[2:]) == sorted(theirs + mine), "every turn of both is there once")


async def forked(screen: Screen, store: PydanticConversationStore) -> None:
    """A fork shares the history of a conversation, and keeps it when the conversation is deleted."""
    screen.section("A fork, and the deletion of what it was forked from")
    fork = await store.fork(CONVERSATION, at=2, new_conversation_id="router-7-again")
    entries = await store.load_entries(CONVERSATION) or []
    await store.delete(CONVERSATION)
    listed = [one.conversation_id for one in await store.list_conversations(scope=CUSTOMER)]
    screen.check(listed == ["router-7-again"], "of the customer's conversations, the fork is left")
    screen.check(await store.load("router-7-again") == fork, "it has its whole history")
    try:
        await store.read_entry(entries[-1].id)
        gone = False
    except LookupError:
        gone = True
    screen.check(gone, "entries that only the deleted conversation had are deleted")


def _schemas(config: MySQLConfig) -> list[Schema]:
    return [ConversationOperations(config).schema]
