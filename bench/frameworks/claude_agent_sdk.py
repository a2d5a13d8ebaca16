"""The Claude Agent SDK: its own session store, the JSON lines of its program, and a simple table."""

from __future__ import annotations

import json
import ssl
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

from claude_agent_sdk import InMemorySessionStore, SessionKey, SessionStoreEntry

from locus_mysql import MySQLConfig
from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore

from .contestants import CONVERSATION, Contestant, Entrant, Framework, Turn

KEY: SessionKey = {"project_key": "bench", "session_id": CONVERSATION}
ENTRIES_PER_TURN = 2


class Store(Contestant):
    """A `SessionStore`."""

    def __init__(self, config: MySQLConfig, store: Any) -> None:
        super().__init__(config)
        self._store = store

    async def append(self, turn: Turn) -> None:
        """See `Contestant.append`."""
        await self._store.append(KEY, entries(turn))

    async def load(self) -> int:
        """See `Contestant.load`."""
        return len(await self._store.load(KEY) or ()) // ENTRIES_PER_TURN

    async def close(self) -> None:
        """See `Contestant.close`."""
        if isinstance(self._store, ClaudeSessionStore):
            await self._store.close()


class InMemory(Store):
    """The SDK's own store."""

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config, InMemorySessionStore())

    def stored_bytes(self) -> int:
        """See `Contestant.stored_bytes`: the JSON of the entries."""
        return sum(len(json.dumps(entry)) for entry in self._store.get_entries(KEY))


class JSONLines(Contestant):
    """A file of JSON lines, as the SDK's program keeps one: not flushed to the disk."""

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config)
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name) / f"{CONVERSATION}.jsonl"

    async def append(self, turn: Turn) -> None:
        """See `Contestant.append`."""
        with self._file.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries(turn))

    async def load(self) -> int:
        """See `Contestant.load`."""
        with self._file.open(encoding="utf-8") as file:
            return len([json.loads(line) for line in file]) // ENTRIES_PER_TURN

    async def close(self) -> None:
        """See `Contestant.close`."""
        self._folder.cleanup()

    def stored_bytes(self) -> int:
        """See `Contestant.stored_bytes`."""
        return self._file.stat().st_size


class Table(Contestant):
    """A row of JSON text per entry, on aiomysql and one connection: no ids, no summary, no checksum, no tenant."""

    TABLE = """CREATE TABLE entries (
        seq         BIGINT AUTO_INCREMENT PRIMARY KEY,
        project_key VARCHAR(255) NOT NULL,
        session_id  VARCHAR(255) NOT NULL,
        subpath     VARCHAR(255) NOT NULL,
        entry       LONGTEXT     NOT NULL,
        KEY by_session (project_key, session_id, subpath, seq)
    )"""
    INSERT = "INSERT INTO entries (project_key, session_id, subpath, entry) VALUES (%s, %s, %s, %s)"
    SELECT = "SELECT entry FROM entries WHERE project_key = %s AND session_id = %s AND subpath = '' ORDER BY seq"

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config)
        self._connection: Any = None

    async def append(self, turn: Turn) -> None:
        """See `Contestant.append`."""
        rows = [(*KEY.values(), "", json.dumps(entry)) for entry in entries(turn)]
        async with (await self._open()).cursor() as cursor:
            await cursor.executemany(self.INSERT, rows)

    async def load(self) -> int:
        """See `Contestant.load`."""
        async with (await self._open()).cursor() as cursor:
            await cursor.execute(self.SELECT, tuple(KEY.values()))
            return len([json.loads(entry) for (entry,) in await cursor.fetchall()]) // ENTRIES_PER_TURN

    async def close(self) -> None:
        """See `Contestant.close`."""
        if self._connection is not None:
            await self._connection.ensure_closed()

    async def _open(self) -> Any:
        if self._connection is None:
            from aiomysql import connect

            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            config = self.config
            self._connection = await connect(
                host=config.host,
                port=config.port,
                user=config.user,
                password=config.password.get_secret_value(),
                db=config.database,
                autocommit=True,
                ssl=context,
            )
            async with self._connection.cursor() as cursor:
                await cursor.execute(self.TABLE)
        return self._connection


def entries(turn: Turn) -> list[SessionStoreEntry]:
    """Return a turn as the entries that the SDK's program writes: fields of each line, and the message."""
    common: dict[str, Any] = {
        "isSidechain": False,
        "userType": "external",
        "cwd": "/srv/support",
        "sessionId": CONVERSATION,
        "version": "2.0.0",
        "gitBranch": "main",
    }
    found: list[Any] = []
    for index, (role, content) in enumerate((("user", turn.question), ("assistant", turn.answer))):
        number = 2 * turn.number + index
        found.append(
            {
                "parentUuid": str(UUID(int=number - 1)) if number else None,
                **common,
                "type": role,
                "message": {"role": role, "content": [{"type": "text", "text": content}]},
                "uuid": str(UUID(int=number)),
                "timestamp": f"2026-11-23T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z",
            }
        )
    return found


FRAMEWORK = Framework(
    title="Claude Agent SDK 0.2.187",
    entrants=(
        Entrant("locus-mysql, aiomysql", lambda config: Store(config, ClaudeSessionStore(config))),
        Entrant(
            "locus-mysql, mysql-connector", lambda config: Store(config, ClaudeSessionStore(config)), "mysql-connector"
        ),
        Entrant("a table of JSON texts, aiomysql", Table),
        Entrant("JSON lines in a file, not flushed", JSONLines),
        Entrant("InMemorySessionStore", InMemory),
    ),
    remark="The SDK has no SQL store of its own. Its in-memory store and its program's file are not durable.",
)
