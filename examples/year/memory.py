"""What the team's agents remember: `work` writes into every family, and `read_everything` reads all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from langgraph.checkpoint.base import empty_checkpoint
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import CheckpointStore, Database, MemoryStore, MySQLBackend, MySQLCheckpointer, MySQLConfig
from locus_mysql.integrations.langgraph import AsyncMySQLSaver
from locus_mysql.transcripts import NewItem, TranscriptKey, TranscriptStore
from locus_mysql.working import MySQLStorage, TaskState, WorkingMemory

#: What is stored, by family, kind and id.
Contents: TypeAlias = Mapping[tuple[str, ...], Any]

#: The kind and the collection of transcripts.
KIND, COLLECTION = "support-bot", "tickets"


async def work(config: MySQLConfig, month: str) -> None:
    """Let every family remember something of a month."""
    async with Database(config) as database:
        for dicts in (CheckpointStore(database), MySQLBackend(database)):
            for step in range(3):
                await dicts.save(month, {"month": month, "log": ["a parcel is late"] * step})
        await MySQLCheckpointer(database).save(
            AgentState(run_id=month).with_message(Message.user(f"Where is my parcel of {month}?")), month
        )
        graphs = AsyncMySQLSaver(database)
        checkpoint = {**empty_checkpoint(), "channel_values": {"month": month}, "channel_versions": {"month": 1}}
        thread = {"configurable": {"thread_id": month, "checkpoint_ns": ""}}
        stored = await graphs.aput(thread, checkpoint, {"source": "input", "step": 0}, {"month": 1})  # type: ignore[arg-type]  # plain dicts
        await graphs.aput_writes(stored, [("answer", f"in {month}")], "task-1")
        fact = {"text": f"Ada called in {month}"}
        await MemoryStore(database, dims=2).put(("users", "ada"), month, fact, embedding=[0.5, 0.25])
        session = WorkingMemory(month, MySQLStorage(database))
        await session.set_many({"city": "Bonn", "calls": len(month)})
        await session.append_scratchpad(f"a note of {month}")
        await session.set_task_state(TaskState(task_id=month))
        await session.create_checkpoint("month-end")
        await session.increment("calls")
        key = TranscriptKey(KIND, COLLECTION, month)
        await TranscriptStore(database).append(key, [NewItem({"text": f"Hello from {month}"}, "message-1")])


async def read_everything(config: MySQLConfig) -> dict[tuple[str, ...], Any]:
    """Return all that is stored: every state at every checkpoint, item, variable and note."""
    found: dict[tuple[str, ...], Any] = {}
    async with Database(config) as database:
        dicts, current, agents = CheckpointStore(database), MySQLBackend(database), MySQLCheckpointer(database)
        for thread in await dicts.list_threads():
            for saved in await dicts.history(thread):
                at = saved["checkpoint_id"]
                found["dicts", thread, at] = (await dicts.load(thread, at), await dicts.get_metadata(thread, at))
        for thread in await current.list_threads():
            found["current", thread] = (await current.load(thread), await current.get_metadata(thread))
        for thread in await agents.list_threads():
            for at in await agents.list_checkpoints(thread):
                found["agents", thread, at] = await agents.load(thread, at)
        async for one in AsyncMySQLSaver(database).alist(None):
            place = one.config["configurable"]
            found["graphs", place["thread_id"], place["checkpoint_id"]] = (
                one.checkpoint,
                one.metadata,
                one.pending_writes,
            )
        memories = MemoryStore(database, dims=2)
        for namespace in await memories.list_namespaces():
            for name in await memories.list_keys(namespace):
                embeddings = await memories.get_embeddings(namespace, name)
                found["memories", *namespace, name] = (await memories.get_item(namespace, name), embeddings)
        for name in {thread for family, thread, *_ in found if family == "dicts"}:
            found["working", name] = await _read_session(WorkingMemory(name, MySQLStorage(database)))
        transcripts = TranscriptStore(database)
        for transcript in await transcripts.list_transcripts(KIND, COLLECTION):
            read = await transcripts.read(transcript.key)
            items = [] if read is None else read.items
            found["transcripts", transcript.key.name] = [(item.item_id, item.content) for item in items]
    return found


async def _read_session(session: WorkingMemory) -> tuple[Any, ...]:
    """Return a session's variables, notes, task and checkpoints."""
    notes, task = await session.get_scratchpad(), await session.get_task_state()
    return await session.get_all(), notes, task, await session.list_checkpoints()
