"""The chapter on Pydantic AI Harness: a killed run, its memory, and two writers."""

from __future__ import annotations

import asyncio
from typing import TextIO

from pydantic_ai_harness.memory import MemoryConflictError, MemoryOperation
from pydantic_ai_harness.step_persistence import continue_run

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.integrations.pydantic_ai_harness import PydanticMemoryStore, PydanticStepStore
from locus_mysql.integrations.pydantic_ai_harness.run_operations import RunOperations
from locus_mysql.runtime.database import Database

from ..display import Screen
from ..frame import chapter
from ..process import options_of, running
from .agent import CONVERSATION, CUSTOMER, NOTE, make_agent
from .worker import Shift

#: The notebook of the customer's agent.
NOTEBOOK = f"{CUSTOMER}/main/MEMORY.md"

#: Lines that each of two writers adds to one file.
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
        screen.title(f"Memory and steps of Pydantic AI Harness in MySQL at {this.where}")
        await killed(screen, database, config)
        await remembered(screen, database)
        await shared(screen, config)
    return not screen.failed


async def killed(screen: Screen, database: Database, config: MySQLConfig) -> None:
    """A process is killed in a tool call; this one sees which call is unresolved, and continues the run."""
    screen.section("A process is killed while a tool restarts the customer's router")
    shift = Shift(options=options_of(config), question="Restart my Lynx 7.")
    async with running("examples.pydantic_ai_harness.worker", shift) as other:
        screen.line(f"pid {other.pid}", (await other.next_event()).get("event", ""))
        screen.check(await other.kill() == -9, "it was ended by SIGKILL")
    steps = PydanticStepStore(database)
    (run,) = await steps.list_runs(conversation_id=CONVERSATION)
    unresolved = await steps.list_unresolved_tool_effects(run_id=run.run_id)
    screen.line("unresolved", ", ".join(effect.tool_name for effect in unresolved))
    screen.check([effect.tool_name for effect in unresolved] == ["restart"], "the call that may have run is known")
    history = await continue_run(steps, run_id=run.run_id)
    result = await make_agent(database).run(message_history=history, conversation_id=CONVERSATION)
    screen.line("this process", result.output)
    screen.check(result.output == "Done, after write_memory and restart.", "the run goes on here, behind its last step")
    screen.check(len(await steps.list_runs(conversation_id=CONVERSATION)) == 2, "both runs are in the conversation")


async def remembered(screen: Screen, database: Database) -> None:
    """What the killed process noted is found in another conversation."""
    screen.section("Another conversation, and the memory of the first")
    result = await make_agent(database).run("Which router do I have?")
    found = any(NOTE in str(message) for message in result.all_messages())
    screen.line("this process", result.output)
    screen.check(found, "the note of the killed process reaches the model")
    file = await PydanticMemoryStore(database).read(NOTEBOOK, max_chars=1_000)
    screen.check(file is not None and file.content.count(NOTE) == 1, "it is there once")


async def shared(screen: Screen, config: MySQLConfig) -> None:
    """Two writers, each with its own connections, add lines to one file; each line is an operation."""
    screen.section("Two writers of one file")
    refused = 0

    async def add(store: PydanticMemoryStore, line: str) -> None:
        nonlocal refused
        while True:
            file = await store.read("shared/lines.md", max_chars=1_000)
            content, version = ("", None) if file is None else (file.content, file.version)
            try:
                await store.write(
                    "shared/lines.md",
                    f"{content}{line}\n",
                    expected_version=version,
                    operation=MemoryOperation(id=line, fingerprint=line),
                )
                return
            except MemoryConflictError:
                refused += 1

    async def write(name: str) -> None:
        async with PydanticMemoryStore(config) as store:
            for number in range(EACH):
                await add(store, f"{name} {number}")
            await add(store, f"{name} 0")  # repeated: not carried out again

    await asyncio.gather(write("one"), write("two"))
    async with PydanticMemoryStore(config) as store:
        file = await store.read("shared/lines.md", max_chars=1_000)
    lines = [] if file is None else file.content.splitlines()
    screen.line("refused", f"{refused} writes to an outdated version; each was done again")
    wanted = sorted(f"{name} {number}" for name in ("one", "two") for number in range(EACH))
    screen.check(sorted(lines) == wanted, "every line of both is there once")


def _schemas(config: MySQLConfig) -> tuple[Schema, ...]:
    return (RunOperations(config).schema,)
