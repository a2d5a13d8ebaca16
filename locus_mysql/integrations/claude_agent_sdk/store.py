"""The session store of the Claude Agent SDK: `ClaudeSessionStore`."""

from __future__ import annotations

from typing import Unpack

from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...runtime.database import Database, share
from ...runtime.stores import AsyncStore, awaited
from .operations import SessionOperations


class ClaudeSessionStore(AsyncStore[SessionOperations]):
    """Keeps the transcripts of the Claude Agent SDK in MySQL: a `claude_agent_sdk.SessionStore` with all its methods.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to sessions.

    Example:
        ```python
        async with ClaudeSessionStore("mysql://user:password@localhost/app") as store:
            key = {"project_key": "support", "session_id": "6f9619ff-8b86-d011-b42d-00c04fc964ff"}
            await store.append(key, [{"type": "user", "uuid": "u-1", "message": {"role": "user", "content": "Hello"}}])
            assert [entry["uuid"] for entry in await store.load(key)] == ["u-1"]
            options = ClaudeAgentOptions(session_store=store, resume=key["session_id"])
        ```
    """

    def __init__(
        self, where: str | SecretStr | MySQLConfig | Database | None = None, **options: Unpack[Keywords]
    ) -> None:
        database, config, owned = share(where, options)
        super().__init__(SessionOperations(config), database, owned=owned)

    @awaited(SessionOperations.append)
    def append(self) -> None: ...
    @awaited(SessionOperations.load)
    def load(self) -> None: ...
    @awaited(SessionOperations.list_sessions)
    def list_sessions(self) -> None: ...
    @awaited(SessionOperations.list_session_summaries)
    def list_session_summaries(self) -> None: ...
    @awaited(SessionOperations.delete)
    def delete(self) -> None: ...
    @awaited(SessionOperations.list_subkeys)
    def list_subkeys(self) -> None: ...
