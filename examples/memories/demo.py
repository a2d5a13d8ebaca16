"""The chapter on memories: facts from one conversation, used in another one, found by similarity."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from locus.agent import Agent

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.families.memories.hashing import HashingEmbedder
from locus_mysql.families.memories.operations import MemoryOperations
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer
from locus_mysql.integrations.locus.memory import MySQLMemory
from locus_mysql.runtime.database import Database

from ..display import Screen
from ..frame import chapter
from ..process import options_of, running
from .agents import make_agent
from .worker import Question

ADA, BOB = ("users", "ada", "user"), ("users", "bob", "user")
DRINK, HOME, TRADE = "I drink green tea in the morning.", "I live in Lisbon, near the river.", "I repair violins."
ASK_DRINK, ASK_HOME, ASK_TRADE = "What could we drink?", "Which city am I living in?", "Could I fix this violin?"
COFFEE = "I drink black coffee now."


@dataclass(frozen=True)
class Stage:
    """The objects that every section uses."""

    screen: Screen
    config: MySQLConfig
    memory: MySQLMemory
    agent: Agent

    async def turn(self, thread_id: str, prompt: str, *, user: str = "ada") -> str:
        """Run and show a turn of the agent in this process."""
        result = await self.agent.arun(prompt, thread_id=thread_id, metadata={"user": user})
        self.screen.line(user.capitalize(), prompt)
        self.screen.line("agent", result.text)
        return str(result.text)


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run the chapter in separate tables, which are dropped at the end; return True if every check held.

    Args:
        config: The server, the database, the driver.
        stream: The output.

    Raises:
        LocusMySQLError: The database cannot be used.
    """
    logging.getLogger("locus").setLevel(logging.ERROR)
    async with chapter(config, stream, _schemas) as this, Database(this.config) as database:
        screen = this.screen
        memory = MySQLMemory(database, embedder=HashingEmbedder())
        screen.title(f"What agents know for longer than a conversation, at {this.where}")
        stage = Stage(screen, this.config, memory, make_agent(MySQLCheckpointer(database), memory))
        await stored(stage)
        await used(stage)
        await apart(stage)
        await changed(stage)
    return not screen.failed


async def stored(stage: Stage) -> None:
    """A user states facts about herself in one conversation; they are stored separately from it."""
    screen = stage.screen
    screen.section("A conversation in which an agent learns facts")
    for prompt in (DRINK, HOME, TRADE):
        await stage.turn("monday", prompt)
    facts = await stage.memory.search(ADA)
    for fact in facts:
        embedding = await stage.memory.get_embedding(ADA, fact.key) or []
        screen.line(fact.key, f"{fact.value['content']} ({len(embedding)} numbers)")
    screen.check({fact.key for fact in facts} == {"drink", "live", "repair"}, "each is an item of its own")


async def used(stage: Stage) -> None:
    """In another conversation, partly in another process, each question receives the fact that fits it."""
    screen = stage.screen
    screen.section("Another conversation, begun by another process")
    question = Question(options=options_of(stage.config), user="ada", thread_id="friday", prompt=ASK_DRINK)
    async with running("examples.memories.worker", question) as other:
        first = (await other.next_event()).get("answer", "")
        screen.line("Ada", ASK_DRINK)
        screen.line(f"pid {other.pid}", first)
    screen.check(first == "As I recall: The user drinks green tea in the morning.", "it knew the one that fits")
    second = await stage.turn("friday", ASK_HOME)
    third = await stage.turn("friday", ASK_TRADE)
    screen.check(
        "Lisbon" in second and "violins" not in second and third == "As I recall: The user repairs violins.",
        "so did this one: of three facts, each question found its own",
    )


async def apart(stage: Stage) -> None:
    """Another user, and a user whose name has the same beginning, receive none of her facts."""
    screen = stage.screen
    screen.section("Other users ask the same")
    answers = [await stage.turn(f"of-{user}", ASK_DRINK, user=user) for user in ("bob", "ada2")]
    screen.check(answers == ["I do not know."] * 2, "they receive none of her facts")
    acme = stage.config.model_copy(update={"tenant": "acme"})
    async with MySQLMemory(acme, embedder=HashingEmbedder()) as elsewhere:
        found: Sequence[object] = await elsewhere.search(ADA, ASK_DRINK)
    screen.check(not found, "nor is another tenant, under the same name")


async def changed(stage: Stage) -> None:
    """A newer fact replaces one, and another is deleted."""
    screen = stage.screen
    screen.section("A fact changes, and one is forgotten")
    await stage.turn("saturday", COFFEE)
    answered = await stage.turn("sunday", ASK_DRINK)
    item = await stage.memory.get_item(ADA, "drink")
    screen.check("coffee" in answered and "tea" not in answered, "the new one is found, the old one is gone")
    version = item.version if item else 0
    screen.check(version > 1, f"under its key, now in version {version}")
    await stage.memory.delete(ADA, "drink")
    left = [fact.key for fact in await stage.memory.search(ADA, ASK_DRINK)]
    screen.line("left", ", ".join(sorted(left)))
    screen.check(sorted(left) == ["live", "repair"], "what was deleted is found by nobody")


def _schemas(config: MySQLConfig) -> list[Schema]:
    return [StoreOperations(config, "agents").schema, MemoryOperations(config).schema]
