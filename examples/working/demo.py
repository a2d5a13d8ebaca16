"""The chapter on working memory: a session survives the death of its process and of its Redis."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TextIO

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Schema
from locus_mysql.families.working.statements.tables import working_schema
from locus_mysql.families.working.storages.fallback import FallbackStorage
from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.families.working.storages.redis import RedisStorage
from locus_mysql.families.working.store import WorkingMemory
from locus_mysql.runtime.database import Database

from ..display import Screen
from ..frame import chapter
from ..process import options_of, running
from .agents import BEGIN, HOTEL, TICKETS, TRAIN, make_agent
from .redis_server import PrivateRedis, private_redis
from .worker import Step

#: Timeout of calls to Redis. A killed Redis refuses connections at once, so this applies only to a slow one.
PATIENCE_S = 30.0

NOTES = [
    "She wants a window seat.",
    "ICE 105 has a window seat left.",
    "Rheinblick is near the station.",
    "Paid.",
]


@dataclass(frozen=True)
class Stage:
    """The objects that every section uses."""

    screen: Screen
    mysql: MySQLStorage
    redis: PrivateRedis
    session: WorkingMemory

    async def turn(self, prompt: str) -> str:
        """Run and show a turn of an agent without its own memory."""
        began = time.monotonic()
        result = await make_agent(self.session).arun(prompt)
        self.screen.line("Ada", prompt)
        self.screen.line("agent", f"{result.text} ({(time.monotonic() - began) * 1000:.0f} ms)")
        return str(result.text)

    @contextlib.asynccontextmanager
    async def of_another_process(self) -> AsyncIterator[WorkingMemory]:
        """The session as another process finds it in Redis."""
        storage = RedisStorage(self.redis.url, timeout_s=PATIENCE_S)
        try:
            yield WorkingMemory("trip", storage)
        finally:
            await storage.aclose()


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run the chapter in separate tables and a private Redis; return True if every check held.

    Args:
        config: The MySQL server, the database, the driver.
        stream: The output.

    Raises:
        LocusMySQLError: The database cannot be used, or Redis is not available.
    """
    logging.getLogger("locus").setLevel(logging.ERROR)
    logging.getLogger("locus_mysql.working").setLevel(logging.ERROR)  # the sections report outages themselves
    async with chapter(config, stream, _schemas) as this, Database(this.config) as database:
        screen = this.screen
        screen.title(f"What agents have in hand, at {', '.join(map(str, this.config.endpoints))} and in a Redis")
        await killed(screen, this.config, database)
        with private_redis() as redis:
            mysql = MySQLStorage(database)
            on_redis = RedisStorage(redis.url, timeout_s=PATIENCE_S)
            storage = FallbackStorage(on_redis, FallbackStorage(mysql, "memory"), timeout_s=PATIENCE_S)
            try:
                stage = Stage(screen, mysql, redis, WorkingMemory("trip", storage))
                await worked(stage)
                await redis_killed(stage)
                await redis_restarted(stage)
                await conflicting_write(stage)
            finally:
                await storage.aclose()
    return not screen.failed


async def killed(screen: Screen, config: MySQLConfig, database: Database) -> None:
    """A process is killed between two steps of its task; another one continues."""
    screen.section("A process that is killed between two steps, and another one that continues")
    async with WorkingMemory("night-train", database) as session:
        await make_agent(session).arun(BEGIN)
        step = Step(options=options_of(config), session_id="night-train", prompt=TRAIN)
        async with running("examples.working.worker", step) as other:
            answer = (await other.next_event()).get("answer", "")
            screen.line("Ada", TRAIN)
            screen.line(f"pid {other.pid}", answer)
            screen.line(f"pid {other.pid}", f"killed with SIGKILL, exit code {await other.kill()}")
        task = await session.get_task_state()
        notes = await session.get_scratchpad()
        screen.check(
            task is not None and (task.description, task.current_step) == ("Train found", 1) and notes == NOTES[:2],
            "this one finds task, notes and variables as they were, on MySQL",
        )
        await session.end()


async def worked(stage: Stage) -> None:
    """An agent works, with its session on Redis."""
    stage.screen.section("A session on Redis, with MySQL behind it, and this process behind that")
    await stage.turn(BEGIN)
    await stage.turn(TRAIN)
    async with stage.of_another_process() as elsewhere:
        held = await elsewhere.get_scratchpad()
    stage.screen.check(held == NOTES[:2] and not (await stage.session.stats()).degraded, "Redis has it, and serves it")


async def redis_killed(stage: Stage) -> None:
    """Redis is killed; the agent continues."""
    screen = stage.screen
    screen.section("Redis is killed while the agent works")
    screen.line("Redis", f"killed with SIGKILL, exit code {stage.redis.kill()}")
    answer = await stage.turn(HOTEL)
    screen.check("step 2 of 3" in answer, "the agent continues after step 1: MySQL has its state without Redis")
    stats = await stage.session.stats()
    screen.line("stats", f"degraded {stats.degraded}, {stats.pending} writes pending")
    screen.check(stats.degraded and stats.pending > 0, "the session says that it is served by its fallback")
    kept = await WorkingMemory("trip", stage.mysql, tenant=stage.session.tenant).get("hotel")
    screen.check(kept == {"name": "Rheinblick", "nights": 2}, "which is MySQL")


async def redis_restarted(stage: Stage) -> None:
    """Redis is restarted, and receives the writes of the outage."""
    screen = stage.screen
    screen.section("Redis is started again")
    stage.redis.start()
    storage = stage.session.storage
    left = await storage.flush() if isinstance(storage, FallbackStorage) else 0
    async with stage.of_another_process() as elsewhere:
        task, notes = await elsewhere.get_task_state(), await elsewhere.get_scratchpad()
        screen.line("notes", " ".join(notes))
        screen.check(left == 0 and notes == NOTES[:3], "it has each note once, in order, those made without it too")
        screen.check(task is not None and task.current_step == 2, "and the state of the task")
    await stage.turn(TICKETS)
    stats = await stage.session.stats()
    async with stage.of_another_process() as elsewhere:
        task = await elsewhere.get_task_state()
    screen.check(
        not stats.degraded and not stats.lost and task is not None and task.status == "completed",
        "it serves the session again, and nothing was lost",
    )


async def conflicting_write(stage: Stage) -> None:
    """Another process writes first when Redis is back: its value is kept, and the discarded write is reported."""
    screen = stage.screen
    screen.section("Another process is faster when Redis is back once more")
    stage.redis.kill()
    await stage.session.set("hotel", "the one at the station")
    stage.redis.start()
    async with stage.of_another_process() as elsewhere:
        await elsewhere.set("hotel", "none, she stays with friends")
        storage = stage.session.storage
        if isinstance(storage, FallbackStorage):
            await storage.flush()
        held = await elsewhere.get("hotel")
    lost = (await stage.session.stats()).lost
    screen.line("hotel", held)
    screen.line("lost", "; ".join(lost))
    screen.check(held == "none, she stays with friends", "what it wrote is not written over")
    screen.check(any("hotel" in one for one in lost), "and what lost is named, not dropped in silence")
    await stage.session.end()


def _schemas(config: MySQLConfig) -> list[Schema]:
    return [working_schema(config.table_prefix)]
