"""The chapter on failover: the primary of a group is killed in the middle of a turn."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TextIO

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.statement import Query
from locus_mysql.engine.execution import AsyncEngine
from locus_mysql.engine.operation import fetch
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer

from ..agents.agents import ASK_ORDER, CHARGE, COURIER, ORDER, executed, make_agent
from ..database import Database, own_tables
from ..display import Screen
from ..process import other_process

ADA = "ada"

#: Limit for the retries of a call, in seconds: longer than a group's election takes, also on a busy machine.
RETRY_DEADLINE_S = 90.0


class PrimaryRow(NamedTuple):
    """The port of the primary, and the file with its process id."""

    port: int
    pid_file: str


PRIMARY = Query("SELECT @@port, @@pid_file", row=PrimaryRow)


@dataclass
class Group:
    """The group of servers, which run on this machine.

    Args:
        config: The members as ``hosts``.
    """

    config: MySQLConfig
    killed: PrimaryRow | None = None
    called_at: dict[str, float] = field(default_factory=dict)

    async def primary(self) -> PrimaryRow:
        """Ask the primary for its port and its process."""
        engine = AsyncEngine(self.config)
        try:
            (row,) = await engine.run(fetch(PRIMARY))
        finally:
            await engine.close()
        return row

    def kill_at(self, tool: str, primary: PrimaryRow, called: str) -> None:
        """Kill the primary when this tool is called; note the time of each call."""
        self.called_at[called] = time.monotonic()
        if called == tool:
            os.kill(int(Path(primary.pid_file).read_text()), signal.SIGKILL)
            self.killed = primary


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run the chapter in separate tables, which are dropped at the end; return True if every check held.

    Args:
        config: The members of a group as ``hosts``, all on this machine; the primary is killed. And the driver.
        stream: The output.

    Raises:
        LocusMySQLError: The database cannot be used.
    """
    logging.getLogger("locus").setLevel(logging.ERROR)
    began = time.monotonic()
    screen = Screen(stream)
    config = own_tables(config).model_copy(update={"retry_deadline_s": RETRY_DEADLINE_S})
    database = Database(config)
    with tempfile.TemporaryDirectory(prefix="locus-mysql-demo-") as folder:
        try:
            screen.title(f"A conversation outlives its primary, in a group of three through {config.driver}")
            async with MySQLCheckpointer(config) as checkpointer:
                await killed_primary(screen, Group(config), checkpointer, Path(folder) / "executions")
            await another_process(screen, config, Path(folder) / "executions")
        finally:
            await database.drop()
    screen.verdict(time.monotonic() - began)
    return not screen.failed


async def killed_primary(screen: Screen, group: Group, checkpointer: MySQLCheckpointer, executions: Path) -> None:
    """The primary is killed while a tool of the agent runs; the turn continues with the next primary."""
    screen.section("The primary is killed in the middle of a turn")
    old = await group.primary()
    agent = make_agent(checkpointer, executions, lambda called: group.kill_at(CHARGE, old, called))
    hello = "Hello, I am Ada."
    for_greeting = await agent.arun(hello, thread_id=ADA)
    screen.line("Ada", hello)
    screen.line("agent", for_greeting.text)
    screen.line("Ada", ORDER)
    result = await agent.arun(ORDER, thread_id=ADA)
    new = await group.primary()
    screen.line("killed", f"the primary at port {old.port}, with SIGKILL, while the agent ran {CHARGE}")
    waited_s = group.called_at[COURIER] - group.called_at[CHARGE]
    screen.line("waited", f"{waited_s:.1f} s from {CHARGE} to {COURIER}: the save between them waited for the election")
    screen.line("primary", f"the server at port {new.port}")
    screen.line("agent", result.text)
    screen.check(group.killed == old and new.port != old.port, "another server is the primary")
    screen.check("Friday" in result.text, "the turn was finished, without an error")
    counts = executed(executions)
    screen.check(counts == {CHARGE: 1, COURIER: 1}, "the card was charged once, the courier booked once")
    screen.check(await checkpointer.load(ADA) == result.state, "loaded state equals the one in memory")
    screen.check(len(await checkpointer.list_checkpoints(ADA)) == 2, "each turn is stored once")


async def another_process(screen: Screen, config: MySQLConfig, executions: Path) -> None:
    """A process that starts after the failover finds the new primary, and continues the conversation."""
    screen.section("A process that starts afterwards continues the thread")
    async with other_process(config, executions, ADA, ASK_ORDER) as other:
        answered = (await other.next_event()).get("answer", "")
        screen.line("Ada", ASK_ORDER)
        screen.line(f"pid {other.pid}", answered)
    screen.check("espresso machine" in answered, "it found the new primary, and the order")
