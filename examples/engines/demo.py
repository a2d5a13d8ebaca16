"""The chapter on engines: a program on MySQL, on OceanBase without a server, and moved between both."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

from locus_mysql import MySQLCheckpointer, copy_threads
from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.embedded import stop_server
from locus_mysql.engine.execution import AsyncEngine
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.families.working.statements.tables import working_schema

from ..agents.agents import ASK_NAME
from ..database import own_tables
from ..display import Screen

HELLO = "Hello, I am Ada."
FIRST, SECOND = "ada/monday", "ada/tuesday"
#: Seconds until the program must have ended.
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Deployment:
    """A database in which the program keeps its memory.

    Args:
        config: Its configuration.
        dsn: Its DSN.
        others: The options that are the same in every database, as environment variables.
    """

    config: MySQLConfig
    dsn: str
    others: Mapping[str, str]

    async def turn(self, thread_id: str, prompt: str) -> str:
        """Run the program in a new process; return what it printed."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "examples.engines.program", thread_id, prompt),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **self.others, "LOCUS_MYSQL_DSN": self.dsn},
        )
        try:
            printed, _ = await asyncio.wait_for(process.communicate(), _PATIENCE_S)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return printed.decode().strip()


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run the chapter in separate tables, which are dropped at the end; return True if every check held.

    Args:
        config: The server, the database, the driver.
        stream: The output.

    Raises:
        LocusMySQLError: The database cannot be used.
    """
    began = time.monotonic()
    screen = Screen(stream)
    config = own_tables(config)
    others = {
        "LOCUS_MYSQL_TABLE_PREFIX": config.table_prefix,
        "LOCUS_MYSQL_TENANT": config.tenant or "",
        "LOCUS_MYSQL_DRIVER": config.driver,
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary) / "agent-memory"
        embedded = MySQLConfig(
            embedded=folder, table_prefix=config.table_prefix, tenant=config.tenant, driver=config.driver
        )
        server = Deployment(config, _dsn(config), others)
        beside = Deployment(embedded, f"mysql+embedded:///{folder}", others)
        try:
            screen.title(f"One program, two engines, through {config.driver}: only the DSN differs")
            there = await on_a_server(screen, server)
            await without_a_server(screen, beside, there)
            await moved_to_the_server(screen, beside, server)
        finally:
            stop_server(folder)
            await _drop_tables(config)
    screen.verdict(time.monotonic() - began)
    return not screen.failed


async def on_a_server(screen: Screen, deployment: Deployment) -> list[str]:
    """Run two turns, each in a process of its own, on the given server; return the answers."""
    screen.section("The program on a server")
    screen.line("engine", await _engine(deployment))
    answers = await _conversation(screen, deployment, FIRST)
    screen.check(answers[-1] == "Your name is Ada. (turn 2)", "the second process knows what the first one learned")
    return answers


async def without_a_server(screen: Screen, deployment: Deployment, expected: list[str]) -> None:
    """Run the same turns with the DSN of a folder: the program starts OceanBase beside itself."""
    screen.section("The same program, without a server")
    screen.line("DSN", "mysql+embedded:///…/agent-memory")
    answers = await _conversation(screen, deployment, SECOND)
    screen.check(answers == expected, "both engines give the same answers")
    version = await _engine(deployment)
    screen.line("engine", version)
    screen.check("OceanBase" in version, "it was OceanBase, started and ended with each process")


async def moved_to_the_server(screen: Screen, source: Deployment, target: Deployment) -> None:
    """Copy the conversation from the folder to the server, and go on there."""
    screen.section("Outgrown: the conversation moves to the server")
    async with MySQLCheckpointer(source.config) as old, MySQLCheckpointer(target.config) as new:
        report = await copy_threads(old, new, pattern=SECOND, verify=True)
        same = (await old.load(SECOND)) == (await new.load(SECOND))
    screen.line("copied", f"{report.copied} rows of {SECOND}, verified")
    screen.check(report.complete and report.copied == 3 and same, "the same state is in both databases")
    answer = await target.turn(SECOND, ASK_NAME)
    screen.line("agent", answer)
    screen.check(answer.startswith("Your name is Ada."), "on the server it knows what it learned in the folder")


async def _conversation(screen: Screen, deployment: Deployment, thread_id: str) -> list[str]:
    answers = []
    for prompt in (HELLO, ASK_NAME):
        screen.line("user", prompt)
        answers.append(await deployment.turn(thread_id, prompt))
        screen.line("agent", answers[-1])
    return answers


async def _engine(deployment: Deployment) -> str:
    engine, checkpoints = AsyncEngine(deployment.config), StoreOperations(deployment.config, "agents")
    try:
        return str((await engine.run(checkpoints.health_check(), checkpoints.schema))["server_version"])
    finally:
        await engine.close()


def _dsn(config: MySQLConfig) -> str:
    account = f"{quote(config.user, safe='')}:{quote(config.password_text, safe='')}"
    if config.unix_socket is not None:
        return f"mysql://{account}@/{config.database}?unix_socket={quote(str(config.unix_socket), safe='')}"
    addresses = ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in config.endpoints)
    return f"mysql://{account}@{addresses}/{config.database}"


async def _drop_tables(config: MySQLConfig) -> None:
    def drop(schema: Schema) -> Operation[None]:
        yield Batch.of(schema.drop())

    engine = AsyncEngine(config)
    try:
        for schema in (StoreOperations(config, "agents").schema, working_schema(config.table_prefix)):
            await engine.run(drop(schema))
    finally:
        await engine.close()
