"""The chapter on turns: two clicks, a closed browser tab and a killed worker, and each time one refund."""

from __future__ import annotations

import asyncio
import time
from typing import Any, TextIO

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.errors import ThreadBusy
from locus_mysql.families.graphs.operations import GraphOperations
from locus_mysql.integrations.langgraph import AsyncMySQLSaver

from ..display import Screen
from ..frame import chapter
from ..process import options_of, running
from .graph import compiled, thread
from .worker import Assignment

#: How long a turn outlives its worker, in seconds.
LEASE_S = 1.0


class Requests:
    """What a web application does with a request for a thread: it runs the graph in a turn.

    Args:
        saver: The checkpointer.
    """

    def __init__(self, saver: AsyncMySQLSaver) -> None:
        self.saver = saver
        self.refunds = 0
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.graph = compiled(saver, self._refunding)

    async def _refunding(self) -> None:
        self.begun.set()
        await self.go_on.wait()
        self.refunds += 1

    async def handle(self, thread_id: str, given: Any, wait_s: float = 0) -> str:
        """Run the graph from a message, or with None from where it stopped; return what the client is shown."""
        try:
            async with self.saver.turn(thread_id, wait_s=wait_s):
                state = await self.graph.ainvoke(given, thread(thread_id), durability="sync")
        except ThreadBusy:
            return "409, your request is being worked on"
        return ", ".join(state["log"])


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run the chapter in separate tables, which are dropped at the end; return True if every check held.

    Args:
        config: The server, the database, the driver.
        stream: The output.

    Raises:
        LocusMySQLError: The database cannot be used.
    """
    async with chapter(config, stream, _schemas) as this, AsyncMySQLSaver(this.config) as saver:
        this.screen.title(f"One turn at a time, in MySQL at {this.where}")
        await double_click(this.screen, Requests(saver))
        await closed_tab(this.screen, Requests(saver))
        await crashed_worker(this.screen, Requests(saver), this.config)
    return not this.screen.failed


async def double_click(screen: Screen, requests: Requests) -> None:
    """Two requests for one thread at the same time: one runs, the other is refused at once."""
    screen.section("The double click: two requests for one thread")
    first = asyncio.create_task(requests.handle("click", {"log": []}))
    await requests.begun.wait()
    second = await requests.handle("click", {"log": []})
    requests.go_on.set()
    screen.line("first", await first)
    screen.line("second", second)
    screen.check(requests.refunds == 1 and second.startswith("409"), "one refund; the second click changed nothing")


async def closed_tab(screen: Screen, requests: Requests) -> None:
    """A request is cancelled in the middle of a node: its turn ends with it."""
    screen.section("The closed browser tab: a request is cancelled in the middle of a step")
    request = asyncio.create_task(requests.handle("tab", {"log": []}))
    await requests.begun.wait()
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    requests.go_on.set()
    again = await requests.handle("tab", None)
    screen.line("again", again)
    screen.check(again == "looked up, refunded", "the turn was free at once, and the graph went on at its second node")
    screen.check(requests.refunds == 1, "one refund")


async def crashed_worker(screen: Screen, requests: Requests, config: MySQLConfig) -> None:
    """A worker is killed: another one goes on once its lease has ended."""
    screen.section("The crashed worker: another one goes on after its lease")
    given = Assignment(options=options_of(config), thread_id="crash", lease_s=LEASE_S)
    async with running("examples.turns.worker", given) as worker:
        await worker.next_event()
        busy = await requests.handle("crash", None)
        screen.line("meanwhile", busy)
        screen.check(busy.startswith("409"), f"worker {worker.pid} has the turn")
        await worker.kill()
    began = time.monotonic()
    requests.go_on.set()
    again = await requests.handle("crash", None, wait_s=30)
    screen.line("again", f"{again}, {time.monotonic() - began:.1f} s after kill -9")
    screen.check(again == "looked up, refunded", "taken over where the killed worker had stopped")


def _schemas(config: MySQLConfig) -> list[Schema]:
    return [GraphOperations(config).sql.schema]
