"""Calls that mypy must accept or refuse: it reads this file with the package (pyproject.toml), and nothing runs it.

A call with ``type: ignore`` must be refused: without an error there, mypy reports the comment as unused.
"""

from pathlib import Path
from typing import assert_type

from claude_agent_sdk import ClaudeAgentOptions, SessionStore, SessionStoreEntry
from google.adk.agents.llm_agent import LlmAgent
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.session import Session as AdkSession
from locus.core.state import AgentState

from locus_mysql import CheckpointStore, Database, MySQLBackend, MySQLCheckpointer, SyncCheckpointStore
from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore
from locus_mysql.integrations.google_adk import AdkMemoryService, AdkSessionService

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

    sessions: BaseSessionService = AdkSessionService(DSN)
    memory: BaseMemoryService = AdkMemoryService(DSN)
    assert_type(await AdkSessionService(DSN).get_session(app_name="a", user_id="u", session_id="s"), AdkSession | None)
    Runner(app_name="a", agent=LlmAgent(name="a"), session_service=sessions, memory_service=memory)


SyncCheckpointStore(DSN, poolsize=3)  # type: ignore[call-arg]
CheckpointStore(DSN, pool_size="three")  # type: ignore[arg-type]
MySQLCheckpointer(poolsize=3)  # type: ignore[call-arg]
MySQLBackend(DSN, poolsize=3)  # type: ignore[call-arg]
Database(DSN, tenent="acme")  # type: ignore[call-arg]
store.save("t")  # type: ignore[call-arg]
store.save("t", 3)  # type: ignore[arg-type]
store.load("t", nonsense=1)  # type: ignore[call-arg]
