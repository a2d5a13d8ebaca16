"""The chapter on agents, and their checks."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from locus.agent import Agent
from locus.agent.result import AgentResult
from locus.core.state import AgentState

from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer

from ..database import Database, own_tables
from ..display import Screen, size
from ..process import other_process
from .agents import (
    ASK_NAME,
    ASK_ORDER,
    CHARGE,
    COURIER,
    ORDER,
    TEA,
    executed,
    make_agent,
)
from .long_conversation import TURNS, converse

ADA, BRANCH, COPY = "ada", "ada/tea", "ada/copy"
BOB, OTHER_BOB = "user-Bob", "user-bob"
ACME, GLOBEX = "acme", "globex"


@dataclass(frozen=True)
class Stage:
    """The objects that every section uses."""

    screen: Screen
    config: MySQLConfig
    checkpointer: MySQLCheckpointer
    database: Database
    agent: Agent
    executions: Path
    #: The agent's state in memory at the end of each turn, by thread.
    held: dict[str, AgentState]

    async def turn(self, thread_id: str, prompt: str, *, who: str = "Ada") -> AgentResult:
        """Run and show a turn of the agent in this process."""
        result = await self.agent.arun(prompt, thread_id=thread_id)
        self.screen.line(who, prompt)
        self.screen.line("agent", result.text)
        self.held[thread_id] = result.state
        return result

    async def show_database(self) -> None:
        """Show the content of the database."""
        self.screen.database(await self.database.contents())


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run all sections in separate tables, which are dropped at the end; return True if every check held.

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
    database = Database(config)
    where = ", ".join(map(str, config.endpoints))
    with tempfile.TemporaryDirectory(prefix="locus-mysql-demo-") as folder:
        executions = Path(folder) / "executions"
        async with MySQLCheckpointer(config) as checkpointer:
            agent = make_agent(checkpointer, executions)
            try:
                version = await database.version()
                screen.title(f"Agents that remember, in MySQL {version} at {where} through {config.driver}")
                stage = Stage(screen, config, checkpointer, database, agent, executions, {})
                for section in SECTIONS:
                    await section(stage)
            finally:
                await database.drop()
    screen.verdict(time.monotonic() - began)
    return not screen.failed


async def conversation(stage: Stage) -> None:
    """Two turns: the second answer uses the name given in the first one."""
    stage.screen.section("A conversation of two turns, each saved")
    await stage.turn(ADA, "Hello, I am Ada.")
    await stage.show_database()
    second = await stage.turn(ADA, ASK_NAME)
    await stage.show_database()
    stage.screen.check("Ada" in second.text, "the second turn knew the name from the first one")
    stage.screen.check(await stage.checkpointer.load(ADA) == second.state, "loaded state equals the one in memory")


async def killed_turn(stage: Stage) -> None:
    """A turn is saved at each step, killed between two tools in another process, and finished in this one."""
    screen, checkpointer = stage.screen, stage.checkpointer
    screen.section("A turn killed half-way in another process, finished in this one")
    screen.line("Ada", ORDER)
    async with other_process(stage.config, stage.executions, ADA, ORDER, hang_in=COURIER) as other:
        called = [(await other.next_event()).get("calling"), (await other.next_event()).get("calling")]
        screen.line(f"pid {other.pid}", f"{CHARGE} done and saved; {COURIER} begun")
        exit_code = await other.kill()
        screen.line(f"pid {other.pid}", f"killed with SIGKILL, exit code {exit_code}")
    await stage.show_database()
    screen.check(called == [CHARGE, COURIER] and exit_code == -signal.SIGKILL, "it was killed inside its second tool")
    left = await checkpointer.load(ADA)
    finished = [execution.tool_name for execution in left.tool_executions] if left else []
    screen.check(finished == [CHARGE], f"what it left behind holds the finished call: {', '.join(finished)}")

    async for _ in stage.agent.continue_turn(ADA):
        pass
    state = await checkpointer.load(ADA)
    answered = (state.messages[-1].content or "") if state else ""
    screen.line("agent", f"{answered} (pid {os.getpid()}, Agent.continue_turn)")
    counts = executed(stage.executions)
    screen.line("executions", ", ".join(f"{name} {count}x" for name, count in counts.items()))
    await stage.show_database()
    screen.check(counts == {CHARGE: 1, COURIER: 2}, "the card was charged once; only the broken call was made again")
    finished_whole = "Friday" in answered and len(await checkpointer.list_checkpoints(ADA)) == 3
    screen.check(finished_whole, "the turn was finished, and is one checkpoint: the third")


async def another_process(stage: Stage) -> None:
    """A process that has never seen the thread continues it, and this process sees the result at once."""
    stage.screen.section("Another process continues the thread")
    async with other_process(stage.config, stage.executions, ADA, ASK_ORDER) as other:
        answered = (await other.next_event()).get("answer", "")
        stage.screen.line("Ada", ASK_ORDER)
        stage.screen.line(f"pid {other.pid}", answered)
    await stage.show_database()
    stage.screen.check("espresso machine" in answered, "it knew the order, which it never saw being made")
    state = await stage.checkpointer.load(ADA)
    stage.screen.check(state is not None and state.messages[-1].content == answered, "its turn is visible here at once")


async def side_by_side(stage: Stage) -> None:
    """Two users with similar ids at the same time; then two tenants with the same thread id."""
    screen, checkpointer = stage.screen, stage.checkpointer
    screen.section(f"Two users side by side, {BOB} and {OTHER_BOB}; two tenants")
    await asyncio.gather(
        stage.turn(BOB, "Hello, I am Robert.", who=BOB), stage.turn(OTHER_BOB, "Hello, I am Bobby.", who=OTHER_BOB)
    )
    asked = await asyncio.gather(*(stage.agent.arun(ASK_NAME, thread_id=user) for user in (BOB, OTHER_BOB)))
    answers = [result.text for result in asked]
    screen.line("agent", f"to {BOB}: {answers[0]}  To {OTHER_BOB}: {answers[1]}")
    screen.check(answers == ["Your name is Robert.", "Your name is Bobby."], "neither sees the other's conversation")
    await stage.turn(BOB, ORDER, who=BOB)
    await stage.show_database()
    for tenant, name in ((ACME, "Ann"), (GLOBEX, "Gus")):
        with checkpointer.tenant_scope(tenant):
            await stage.agent.arun(f"Hello, I am {name}.", thread_id="1")
    seen = {}
    for tenant in (ACME, GLOBEX):
        with checkpointer.tenant_scope(tenant):
            name_known = (await stage.agent.arun(ASK_NAME, thread_id="1")).text
            seen[tenant] = (name_known, await checkpointer.list_threads())
            screen.line(tenant, f"thread 1: {name_known}  All its threads: {', '.join(seen[tenant][1])}")
    expected = {ACME: ("Your name is Ann.", ["1"]), GLOBEX: ("Your name is Gus.", ["1"])}
    screen.check(seen == expected, "one thread id, two tenants, two threads; neither lists the other's")


async def inspection(stage: Stage) -> None:
    """Compare a saved state with the agent's state in memory, field by field."""
    screen = stage.screen
    screen.section(f"What was saved of {BOB}'s last turn, field by field")
    state = await stage.checkpointer.load(BOB)
    if state is None:
        screen.check(False, "it can be loaded")
        return
    roles = [message.role.value for message in state.messages]
    screen.line("messages", f"{len(roles)}: {' '.join(roles)}")
    for execution in state.tool_executions:
        arguments = ", ".join(map(str, execution.arguments.values()))
        screen.line("tool call", f"{execution.tool_name}({arguments}) -> {execution.result}")
    history = ", ".join(f"{value:.2f}" for value in state.confidence_history)
    screen.line("confidence", f"{state.confidence:.2f} of {state.confidence_threshold:.2f}, after {history}")
    screen.line(
        "run", f"iteration {state.iteration}, {state.total_tokens_used} tokens, {len(state.reasoning_steps)} steps"
    )
    calls = [call.name for message in state.messages for call in message.tool_calls]
    results = [message.name for message in state.messages if message.role.value == "tool"]
    screen.check(calls == results == [CHARGE, COURIER], "every call with its result, in order")
    risen = list(state.confidence_history) == sorted(state.confidence_history) and len(state.confidence_history) == 2
    screen.check(risen and state.confidence == state.confidence_history[-1], "confidence with its history")
    held = stage.held[BOB]
    same = [name for name in AgentState.model_fields if getattr(state, name) == getattr(held, name)]
    everything = len(AgentState.model_fields)
    screen.check(len(same) == everything, f"{len(same)} of {everything} fields equal to those in memory")


async def time_travel(stage: Stage) -> None:
    """Rewind to before the order, branch from there, and copy the whole thread."""
    screen, checkpointer = stage.screen, stage.checkpointer
    screen.section("Back in time: the state before the order, and a branch from it")
    history = await checkpointer.history(ADA)
    for entry in history:
        after = f"  after {entry['parent_id'][:8]}" if entry["parent_id"] else ""
        screen.line(entry["checkpoint_id"][:8], f"{entry['created_at']:%H:%M:%S.%f}  {entry['size_bytes']:4} B{after}")
    times = [entry["created_at"] for entry in history]
    if not screen.check(len(times) == 4 and times == sorted(times, reverse=True), "four turns, newest first"):
        return
    before = history[2]["checkpoint_id"]
    then = await checkpointer.load(ADA, before)
    ordered = then is None or any(message.role.value == "tool" for message in then.messages)
    screen.check(not ordered, f"{before[:8]} is the conversation before the order")
    await stage.agent.fork(ADA, before, new_thread_id=BRANCH)
    await stage.turn(BRANCH, TEA)
    branched = await stage.turn(BRANCH, ASK_ORDER)
    original = await checkpointer.load(ADA)
    screen.check(branched.text == "Nothing yet.", "in the branch the order was never made")
    screen.check(
        original is not None
        and len(original.tool_history) == 0
        and await _ids(stage, ADA) == [entry["checkpoint_id"] for entry in history],
        "the first thread is as it was",
    )
    found = await checkpointer.query_by_metadata("forked_from", ADA)
    screen.check([info["thread_id"] for info in found] == [BRANCH], "the branch is found by its metadata, forked_from")
    await checkpointer.copy_thread(ADA, COPY)
    screen.check(
        await _ids(stage, COPY) == await _ids(stage, ADA), "copy_thread copies a thread with its whole history"
    )
    await stage.show_database()


async def search(stage: Stage) -> None:
    """Find conversations by words in their messages."""
    screen, checkpointer = stage.screen, stage.checkpointer
    screen.section("A search in the conversations")
    hits = await checkpointer.search("Ceylon tea")
    for hit in hits:
        screen.line(hit["thread_id"], f"{hit['score']:.2f}  {hit['snippet']}")
    screen.check(bool(hits) and {hit["thread_id"] for hit in hits} == {BRANCH}, "tea was only spoken of in the branch")
    espresso = [hit["thread_id"] for hit in await checkpointer.search("espresso")]
    screen.line("espresso", ", ".join(espresso))
    screen.check(
        {ADA, BOB} <= set(espresso) and OTHER_BOB not in espresso, f"espresso by Ada and {BOB}, not {OTHER_BOB}"
    )
    with checkpointer.tenant_scope(ACME):
        screen.check(await checkpointer.search("espresso") == [], f"{ACME} finds nothing of another tenant's")


async def storage(stage: Stage) -> None:
    """Compare the stored size of a long conversation with that of whole states."""
    screen = stage.screen
    screen.section(f"A conversation of {TURNS} turns, beside what whole states would take")
    measures = await converse(stage.checkpointer, stage.database)
    for measure in measures:
        ratio = measure.whole_bytes / measure.stored_bytes
        screen.line(
            f"{measure.turns} turns",
            f"{size(measure.stored_bytes):>7} stored, {size(measure.whole_bytes):>7} as whole states: 1/{ratio:.0f}",
        )
    last = measures[-1]
    await stage.show_database()
    screen.check(last.whole_bytes >= 30 * last.stored_bytes, "at least thirty times less")
    screen.check(last.loads_exactly, "and the first, the middle and the last checkpoint load exactly")


async def _ids(stage: Stage, thread_id: str) -> list[str]:
    return list(await stage.checkpointer.list_checkpoints(thread_id, 1000))


SECTIONS: tuple[Callable[[Stage], Awaitable[None]], ...] = (
    conversation,
    killed_turn,
    another_process,
    side_by_side,
    inspection,
    time_travel,
    search,
    storage,
)
