"""The OpenAI Agents SDK: its sessions in SQLite, and on MySQL with SQLAlchemy and tables that the benchmark creates."""

from __future__ import annotations

import json
import ssl
import tempfile
from pathlib import Path
from typing import Any

from agents import TResponseInputItem
from agents.memory import Session, SQLiteSession

from locus_mysql import MySQLConfig
from locus_mysql.integrations.openai_agents import OpenAISession

from .contestants import CONVERSATION, Contestant, Entrant, Framework, Turn

ITEMS_PER_TURN = 2


class Conversation(Contestant):
    """A `Session`."""

    session: Session

    async def append(self, turn: Turn) -> None:
        """See `Contestant.append`."""
        await self.session.add_items(items(turn))

    async def load(self) -> int:
        """See `Contestant.load`."""
        return len(await self.session.get_items()) // ITEMS_PER_TURN


class Ours(Conversation):
    """This package's session."""

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config)
        self.session = self._ours = OpenAISession(CONVERSATION, config)

    async def close(self) -> None:
        """See `Contestant.close`."""
        await self._ours.close()


class InSQLite(Conversation):
    """The SDK's session in a SQLite file, which is flushed only when SQLite checkpoints its write-ahead log."""

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config)
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name) / "sessions.db"
        self.session = self._theirs = SQLiteSession(CONVERSATION, self._file)

    async def close(self) -> None:
        """See `Contestant.close`."""
        self._theirs.close()
        self._folder.cleanup()

    def stored_bytes(self) -> int:
        """See `Contestant.stored_bytes`: the file with its log."""
        return sum(file.stat().st_size for file in self._file.parent.iterdir())


class BySQLAlchemy(Conversation):
    """The SDK's session on MySQL with aiomysql. It cannot create its tables there, so `TABLES` defines them."""

    TABLES = (
        """CREATE TABLE agent_sessions (
            session_id VARCHAR(255) PRIMARY KEY,
            created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL,
            updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
        )""",
        """CREATE TABLE agent_messages (
            id           INTEGER AUTO_INCREMENT PRIMARY KEY,
            session_id   VARCHAR(255) NOT NULL,
            message_data TEXT NOT NULL,
            created_at   TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL,
            KEY idx_agent_messages_session_time (session_id, created_at),
            FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE
        )""",
    )

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config)
        self._engine: Any = None

    async def append(self, turn: Turn) -> None:
        """See `Contestant.append`."""
        await self._open()
        await super().append(turn)

    async def load(self) -> int:
        """See `Contestant.load`."""
        await self._open()
        return await super().load()

    async def close(self) -> None:
        """See `Contestant.close`."""
        if self._engine is not None:
            await self._engine.dispose()

    async def _open(self) -> None:
        if self._engine is not None:
            return
        from agents.extensions.memory.sqlalchemy_session import SQLAlchemySession
        from sqlalchemy import URL, text
        from sqlalchemy.ext.asyncio import create_async_engine

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        config = self.config
        url = URL.create(
            "mysql+aiomysql",
            config.user,
            config.password.get_secret_value(),
            config.host,
            config.port,
            config.database,
        )
        self._engine = create_async_engine(url, connect_args={"ssl": context})
        async with self._engine.begin() as connection:
            for table in self.TABLES:
                await connection.execute(text(table))
        self.session = SQLAlchemySession(CONVERSATION, engine=self._engine)


def items(turn: Turn) -> list[TResponseInputItem]:
    """Return a turn as the items that the SDK's runner adds."""
    answer: TResponseInputItem = {
        "id": f"msg_{turn.number:032x}",
        "content": [{"annotations": [], "text": turn.answer, "type": "output_text", "logprobs": []}],
        "role": "assistant",
        "status": "completed",
        "type": "message",
    }
    return json.loads(json.dumps([{"content": turn.question, "role": "user"}, answer]))


FRAMEWORK = Framework(
    title="OpenAI Agents SDK 0.24.0",
    entrants=(
        Entrant("locus-mysql, aiomysql", Ours),
        Entrant("locus-mysql, mysql-connector", Ours, "mysql-connector"),
        Entrant("SQLAlchemySession on MySQL, aiomysql", BySQLAlchemy),
        Entrant("SQLiteSession in a file", InSQLite),
    ),
    remark="SQLAlchemySession cannot create tables on MySQL: these are made by hand. SQLiteSession is not durable.",
)
