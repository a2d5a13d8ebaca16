"""The chapter on an incident: the commands show what the agent knew at which time."""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path
from typing import TextIO

from locus.agent import Agent
from locus.core.events import TerminateEvent

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer

from ..agents.agents import ORDER, TEA, make_agent
from ..database import Database, own_tables
from ..display import Screen
from ..shell import Shell

NIGHT = "night/7"

#: Escape sequences that would rename the terminal's window, and colour the following text.
TRICK = "I am \x1b]0;owned\x07\x1b[31mEve."


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run the chapter in separate tables, which are dropped at the end; return True if every check held.

    Args:
        config: The server, the database, the driver.
        stream: The output.

    Raises:
        LocusMySQLError: The database cannot be used.
    """
    logging.getLogger("locus").setLevel(logging.ERROR)
    began = time.monotonic()
    screen = Screen(stream)
    config = own_tables(config)
    where = ", ".join(map(str, config.endpoints))
    database = Database(config)
    try:
        async with MySQLCheckpointer(config) as checkpointer:
            with tempfile.TemporaryDirectory() as folder:
                screen.title(f"Looking inside what agents keep, at {where} through {config.driver}")
                agent = make_agent(checkpointer, Path(folder, "executions"))
                shell = Shell(screen, config)
                between = await the_night(screen, agent, checkpointer)
                await the_morning(screen, shell, between)
                await the_trick(screen, shell, agent)
                await the_end(screen, shell)
    finally:
        await database.drop()
    screen.verdict(time.monotonic() - began)
    return not screen.failed


async def the_night(screen: Screen, agent: Agent, checkpointer: MySQLCheckpointer) -> str:
    """A customer orders one thing, and later another; return a time between the two."""
    screen.section("At night, a customer and an agent")
    await _turn(screen, agent, ORDER)
    saved = await checkpointer.get_metadata(NIGHT)
    assert saved is not None  # noqa: S101 - the turn was saved
    await _turn(screen, agent, TEA)
    newest = await checkpointer.get_metadata(NIGHT)
    screen.check(newest is not None and newest["created_at"] > saved["created_at"], "both turns are saved")
    return str(saved["created_at"])


async def the_morning(screen: Screen, shell: Shell, between: str) -> None:
    """Show what the agent knew at that time, and what changed since."""
    screen.section("In the morning: what did it know then, and what changed?")
    then = await shell.run("show", NIGHT, "--at", between)
    knew = "comes on Friday" in then.out and "Ceylon" not in then.out
    screen.check(then.code == 0 and knew, "then, it knew of the espresso machine, and of no tea")
    changed = await shell.run("diff", NIGHT, "--since", between)
    screen.check(changed.code == 1 and f"+ user\n  {TEA}" in changed.out, "the difference shows the added messages")
    found = await shell.run("search", "espresso")
    screen.check(found.code == 0 and NIGHT in found.out, "where a word was said is found")


async def the_trick(screen: Screen, shell: Shell, agent: Agent) -> None:
    """Show a message with terminal control sequences."""
    screen.section("A message that would take over the terminal in which it is read")
    await _say(agent, TRICK)
    shown = await shell.run("show", NIGHT, "--last", "2")
    screen.check("\x1b" not in shown.out and "␛]0;owned␇␛[31mEve." in shown.out, "it is shown, and not obeyed")


async def the_end(screen: Screen, shell: Shell) -> None:
    """Show that a deletion needs a confirmation."""
    screen.section("Deleted, but not by accident")
    refused = await shell.run("rm", NIGHT)
    screen.check(refused.code == 2 and "--yes" in refused.err, "where nobody can be asked, nothing is deleted")
    done = await shell.run("rm", NIGHT, "--yes")
    screen.check(done.code == 0 and done.err.startswith("Deleted"), "with --yes, it is")


async def _turn(screen: Screen, agent: Agent, prompt: str) -> None:
    screen.line("customer", prompt)
    screen.line("agent", await _say(agent, prompt))


async def _say(agent: Agent, prompt: str) -> str:
    said = ""
    async for event in agent.run(prompt, thread_id=NIGHT):
        if isinstance(event, TerminateEvent):
            said = event.final_message or ""
    return said
