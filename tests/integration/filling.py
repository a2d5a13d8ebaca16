"""A little in the tables of every family: `fill` writes it, and `check` reads it and writes once more."""

from __future__ import annotations

from langgraph.checkpoint.base import empty_checkpoint
from locus.core.messages import Message
from locus.core.state import AgentState
from pydantic import BaseModel

from locus_mysql import (
    MySQLConfig,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLBackend,
    SyncMySQLCheckpointer,
    SyncWorkingMemory,
    TaskState,
)
from locus_mysql.integrations.langgraph import MySQLSaver
from locus_mysql.integrations.memu import MemuDatabase, RecallDatabase
from locus_mysql.transcripts import NewItem, SyncTranscriptStore, TranscriptKey

STATES = [{"step": step, "log": ["a line of the log of a thread"] * step} for step in range(1, 4)]
AGENT = AgentState(run_id="run-1").with_message(Message.user("Where is my parcel?"))
THREAD = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
KEY = TranscriptKey("support-bot", "tickets", "4711")


class UserModel(BaseModel):
    """The scope of memU's records."""

    user_id: str


def fill(config: MySQLConfig) -> None:
    """Write a little into the tables of every family."""
    with SyncCheckpointStore(config) as dicts, SyncMySQLBackend(config) as current:
        for state in STATES:
            dicts.save("t", state, metadata={"step": state["step"]})
            current.save("t", state)
    with SyncMySQLCheckpointer(config) as agents:
        agents.save(AGENT, "t")
    with MySQLSaver(config) as graphs:
        checkpoint = {**empty_checkpoint(), "channel_values": {"a": 1}, "channel_versions": {"a": 1}}
        written = graphs.put(THREAD, checkpoint, {"source": "input", "step": 0}, {"a": 1})
        graphs.put_writes(written, [("a", 2)], "task-1")
    with SyncMemoryStore(config, dims=2) as memories:
        memories.put(("users", "ada"), "tea", {"text": "Ada likes tea"}, embedding=[0.5, 0.25])
    with SyncWorkingMemory("s", config) as working:
        working.set_many({"city": "Bonn", "seats": 2})
        working.append_scratchpad("a note")
        working.set_task_state(TaskState(task_id="trip"))
        working.create_checkpoint("before")
    with SyncTranscriptStore(config) as transcripts:
        transcripts.append(KEY, [NewItem({"text": "Where is my parcel?"}, "message-1")])
    memu = MemuDatabase(config, user_model=UserModel)
    memu.memory_item_repo.create_item(
        memory_type="profile", summary="Ada likes tea", embedding=[0.5, 0.25], user_data={"user_id": "ada"}
    )
    memu.close()
    with RecallDatabase(config, user_model=UserModel) as recall:
        ada = {"user_id": "ada"}
        file = recall.recall_file_repo.get_or_create_recall_file(
            name="drinks", description="What Ada drinks", embedding=[0.5, 0.25], user_data=ada
        )
        recall.recall_file_segment_repo.create_segment(
            recall_file_id=file.id, text="Ada likes tea", embedding=[0.5, 0.25], user_data=ada
        )
        recall.resource_repo.create_resource(
            url="tea.md", local_path="tea.md", caption=None, embedding=[0.5, 0.25], user_data=ada, track="workspace"
        )


def check(config: MySQLConfig) -> None:
    """Read it, and write once more."""
    with SyncCheckpointStore(config) as dicts, SyncMySQLBackend(config) as current:
        assert dicts.load("t") == current.load("t") == STATES[-1]
        assert len(dicts.list_checkpoints("t")) == len(STATES)
        assert len(dicts.search("thread")) > 0
        dicts.save("t", {"step": 4})
    with SyncMySQLCheckpointer(config) as agents:
        loaded = agents.load("t")
        assert loaded is not None
        assert loaded.messages == AGENT.messages
    with MySQLSaver(config) as graphs:
        found = graphs.get_tuple(THREAD)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"a": 1}
        assert found.pending_writes == [("task-1", "a", 2)]
    with SyncMemoryStore(config, dims=2) as memories:
        item = memories.get(("users", "ada"), "tea")
        assert item is not None
        assert item == {"text": "Ada likes tea"}
    with SyncWorkingMemory("s", config) as working:
        assert working.get_all() == {"city": "Bonn", "seats": 2}
        assert len(working.list_checkpoints()) == 1
    with SyncTranscriptStore(config) as transcripts:
        assert [one.content for one in transcripts.read(KEY).items] == [{"text": "Where is my parcel?"}]
    memu = MemuDatabase(config, user_model=UserModel)
    (record,) = memu.memory_item_repo.list_items(where={"user_id": "ada"}).values()
    assert record.summary == "Ada likes tea"
    memu.close()
    with RecallDatabase(config, user_model=UserModel) as recall:
        (segment,) = recall.segments
        assert (segment.text, recall.recall_files[segment.recall_file_id].name) == ("Ada likes tea", "drinks")
        ((found, _),) = recall.resource_repo.vector_search_resources([0.5, 0.25], 1, {"track": "workspace"})
        assert recall.resources[found].url == "tea.md"
