"""Calls that mypy must accept or refuse: it checks this file with the package (pyproject.toml); the file is never run.

A call with ``type: ignore`` must be refused: without an error there, mypy reports the comment as unused.
"""

from pathlib import Path
from typing import Any, assert_type

from agents import Agent, Runner, TResponseInputItem
from agents.memory import Session
from claude_agent_sdk import ClaudeAgentOptions, SessionStore, SessionStoreEntry
from google.adk.agents.llm_agent import LlmAgent
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.runners import Runner as AdkRunner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.session import Session as AdkSession
from key_value.aio.protocols.key_value import AsyncKeyValue
from key_value.aio.wrappers.encryption import FernetEncryptionWrapper
from locus.core.state import AgentState
from pydantic_ai import Conversation
from pydantic_ai.conversation_store import ConversationStore
from strands.memory import MemoryManager, MemoryStore
from strands.session import SnapshotSessionManager
from strands.session.repository_session_manager import RepositorySessionManager
from strands.session.session_repository import SessionRepository
from strands.storage import Storage
from strands.types.session import SessionMessage

from locus_mysql import CheckpointStore, Database, MySQLBackend, MySQLCheckpointer, SyncCheckpointStore
from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore
from locus_mysql.integrations.google_adk import AdkMemoryService, AdkSessionService
from locus_mysql.integrations.openai_agents import OpenAISession
from locus_mysql.integrations.py_key_value import KeyValueStore
from locus_mysql.integrations.pydantic_ai import PydanticConversationStore
from locus_mysql.integrations.strands import StrandsMemoryStore, StrandsSessionRepository, StrandsStorage

DSN = "mysql://user:password@localhost/app"
store = SyncCheckpointStore(DSN, pool_size=3, hosts=["a", "b"], ssl_ca="ca.pem", ssl_key=Path("key.pem"))
assert_type(store.save("t", {"a": 1}), str)


async def use() -> None:
    async with Database(DSN) as db:
        assert_type(await MySQLCheckpointer(db, tenant="acme").load("t"), AgentState | None)

    session_store: SessionStore = ClaudeSessionStore(DSN)
    assert_type(
        await ClaudeSessionStore(DSN).load({"project_key": "p", "session_id": "s"}), list[SessionStoreEntry] | None
    )
    ClaudeAgentOptions(session_store=session_store)
    conversations: ConversationStore = PydanticConversationStore(DSN)
    loaded: Conversation | None = await PydanticConversationStore(DSN).load("c", limit=20)
    await conversations.save(loaded or Conversation(), scope="ada")

    sessions: BaseSessionService = AdkSessionService(DSN)
    memory: BaseMemoryService = AdkMemoryService(DSN)
    assert_type(await AdkSessionService(DSN).get_session(app_name="a", user_id="u", session_id="s"), AdkSession | None)
    AdkRunner(app_name="a", agent=LlmAgent(name="a"), session_service=sessions, memory_service=memory)

    session: Session = OpenAISession("s", DSN, session_settings={"limit": 20})
    assert_type(await OpenAISession("s", DSN).get_items(limit=20), list[TResponseInputItem])
    assert_type(await OpenAISession("s", DSN).pop_item(), TResponseInputItem | None)
    await Runner.run(Agent(name="a"), "Hello", session=session)
    await Runner.run(Agent(name="a"), "Hello", session=OpenAISession("s", DSN))

    values: AsyncKeyValue = KeyValueStore(DSN)
    await FernetEncryptionWrapper(values, source_material="m", salt="s").put("k", {"v": 1}, ttl=60)
    assert_type(await KeyValueStore(DSN).get_many(["a", "b"], collection="c"), list[dict[str, Any] | None])

    storage: Storage = StrandsStorage(DSN)
    assert_type(await StrandsStorage(DSN).read("k"), bytes | None)
    assert_type(await StrandsStorage(DSN).namespace("n").list(), list[str])
    SnapshotSessionManager("s", storage=storage)
    SnapshotSessionManager("s", storage=StrandsStorage(DSN))
    repository: SessionRepository = StrandsSessionRepository(DSN)
    assert_type(StrandsSessionRepository(DSN).list_messages("s", "a", limit=20), list[SessionMessage])
    RepositorySessionManager("s", repository)
    facts: MemoryStore = StrandsMemoryStore(DSN, name="facts")
    MemoryManager(stores=[facts, StrandsMemoryStore(DSN, name="more", dims=3)])


SyncCheckpointStore(DSN, poolsize=3)  # type: ignore[call-arg]
CheckpointStore(DSN, pool_size="three")  # type: ignore[arg-type]
MySQLCheckpointer(poolsize=3)  # type: ignore[call-arg]
MySQLBackend(DSN, poolsize=3)  # type: ignore[call-arg]
Database(DSN, tenent="acme")  # type: ignore[call-arg]
store.save("t")  # type: ignore[call-arg]
store.save("t", 3)  # type: ignore[arg-type]
store.load("t", nonsense=1)  # type: ignore[call-arg]
