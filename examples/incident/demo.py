"""The chapter on an incident: the commands show what the agent knew at which time."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import TextIO

from locus.agent import Agent
from locus.core.events import TerminateEvent

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer

from ..agents.agents import ORDER, TEA, make_agent
from ..display import Screen
from ..frame import chapter
from ..shell import Shell

THREAD = "night/7"

#: Escape sequences that would rename the terminal's window, and colour the following text.
ESCAPES = "I am \x1b]0;owned\x07\x1b[31mEve."


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run the chapter in separate tables, which are dropped at the end; return True if every check held.

    Args:
        config: The server, the database, the driver.
        stream: The output.

    Raises:
        LocusMySQLError: The database cannot be used.
    """
    logging.getLogger("locus").setLevel(logging.ERROR)
    async with chapter(config, stream, _schemas) as this, MySQLCheckpointer(this.config) as checkpointer:
        screen, shell = this.screen, Shell(this.screen, this.config)
        screen.title(f"Looking inside what agents keep, at {this.where}")
        with tempfile.TemporaryDirectory() as folder:
            agent = make_agent(checkpointer, Path(folder, "executions"))
            between = await two_turns(screen, agent, checkpointer)
            await inspected(screen, shell, between)
            await escape_sequences(screen, shell, agent)
            await deleted(screen, shell)
    return not screen.failed


async def two_turns(screen: Screen, agent: Agent, checkpointer: MySQLCheckpointer) -> str:
    """A customer orders one thing, and later another; return a time between the two."""
    screen.section("At night, a customer and an agent")
    await _turn(screen, agent, ORDER)
    saved = await checkpointer.get_metadata(THREAD)
    assert saved is not None  # noqa: S101 - the turn was saved
    await _turn(screen, agent, TEA)
    newest = await checkpointer.get_metadata(THREAD)
    screen.check(newest is not None and newest["created_at"] > saved["created_at"], "both turns are saved")
    return str(saved["created_at"])


async def inspected(screen: Screen, shell: Shell, between: str) -> None:
    """Show what the agent knew at that time, and what changed since."""
    screen.section("In the morning: what did it know then, and what changed?")
    then = await shell.run("show", THREAD, "--at", between)
    knew = "comes on Friday" in then.out and "Ceylon" not in then.out
    screen.check(then.code == 0 and knew, "then, it knew of the espresso machine, and of no tea")
    changed = await shell.run("diff", THREAD, "--since", between)
    screen.check(changed.code == 1 and f"+ user\n  {TEA}" in changed.out, "the difference shows the added messages")
    found = await shell.run("search", "espresso")
    screen.check(found.code == 0 and THREAD in found.out, "a search finds the conversation by a word")


async def escape_sequences(screen: Screen, shell: Shell, agent: Agent) -> None:
    """Show a message with terminal control sequences."""
    screen.section("A message that would take over the terminal in which it is read")
    await _say(agent, ESCAPES)
    shown = await shell.run("show", THREAD, "--last", "2")
    screen.check("\x1b" not in shown.out and "␛]0;owned␇␛[31mEve." in shown.out, "it is shown, and not obeyed")


async def deleted(screen: Screen, shell: Shell) -> None:
    """Show that a deletion needs a confirmation."""
    screen.section("Deleted, but not by accident")
    refused = await shell.run("rm", THREAD)
    screen.check(refused.code == 2 and "--yes" in refused.err, "where nobody can be asked, nothing is deleted")
    done = await shell.run("rm", THREAD, "--yes")
    screen.check(done.code == 0 and done.err.startswith("Deleted"), "with --yes, it is")


async def _turn(screen: Screen, agent: Agent, prompt: str) -> None:
    screen.line("customer", prompt)
    screen.line("agent", await _say(agent, prompt))


async def _say(agent: Agent, prompt: str) -> str:
    answer = ""
    async for event in agent.run(prompt, thread_id=THREAD):
        if isinstance(event, TerminateEvent):
            answer = event.final_message or ""
    return answer


def _schemas(config: MySQLConfig) -> list[Schema]:
    return [StoreOperations(config, "agents").schema]
