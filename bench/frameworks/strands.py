"""Strands Agents: snapshots in a storage, beside the framework's own in files and in memory."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from strands.storage import InMemoryStorage, LocalFileStorage, Storage

from locus_mysql import MySQLConfig
from locus_mysql.integrations.strands import StrandsStorage

from .contestants import CONVERSATION, Contestant, Entrant, Framework, Turn

AGENT = "support"
LATEST = f"session/{CONVERSATION}/scopes/agent/{AGENT}/snapshots/snapshot_latest.json"
MESSAGES_PER_TURN = 2


class Snapshots(Contestant):
    """A `Storage`, written to as `SnapshotSessionManager` does: the whole agent after each turn."""

    def __init__(self, config: MySQLConfig, storage: Storage) -> None:
        super().__init__(config)
        self._storage = storage
        self._messages: list[Any] = []

    async def append(self, turn: Turn) -> None:
        """See `Contestant.append`."""
        self._messages += messages(turn)
        await self._storage.write(LATEST, snapshot(self._messages, turn.number))

    async def load(self) -> int:
        """See `Contestant.load`."""
        data = await self._storage.read(LATEST)
        return len(json.loads(data or b"{}")["data"]["messages"]) // MESSAGES_PER_TURN

    async def close(self) -> None:
        """See `Contestant.close`."""
        if isinstance(self._storage, StrandsStorage):
            await self._storage.close()


class SnapshotsInMemory(Snapshots):
    """The framework's storage in memory."""

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config, InMemoryStorage())

    def stored_bytes(self) -> int:
        """See `Contestant.stored_bytes`: the last snapshot."""
        return len(snapshot(self._messages, 0))


class SnapshotsInFiles(Snapshots):
    """The framework's storage in files, which it does not flush."""

    def __init__(self, config: MySQLConfig) -> None:
        self._folder = tempfile.TemporaryDirectory()
        super().__init__(config, LocalFileStorage(self._folder.name))

    async def close(self) -> None:
        """See `Contestant.close`."""
        self._folder.cleanup()

    def stored_bytes(self) -> int:
        """See `Contestant.stored_bytes`."""
        return bytes_of_files(Path(self._folder.name))


def bytes_of_files(folder: Path) -> int:
    """Return the sizes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def messages(turn: Turn) -> list[Any]:
    """Return a turn as messages."""
    return [
        {"role": role, "content": [{"text": text}], "tracking_id": f"{2 * turn.number + index:032x}"}
        for index, (role, text) in enumerate((("user", turn.question), ("assistant", turn.answer)))
    ]


def snapshot(messages: list[Any], number: int) -> bytes:
    """Return the bytes that `SnapshotSessionManager` writes for an agent with these messages."""
    data = {
        "messages": messages,
        "state": {"turns": number},
        "conversation_manager_state": {"__name__": "NullConversationManager", "removed_message_count": 0},
        "interrupt_state": {"interrupts": {}, "context": {}, "activated": False},
        "model_state": {},
        "system_prompt": "Help with routers.",
    }
    whole = {
        "scope": "agent",
        "schema_version": "1.0",
        "created_at": f"2026-11-23T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000000Z",
        "data": data,
        "app_data": {},
    }
    return json.dumps(whole, ensure_ascii=False).encode()


FRAMEWORK = Framework(
    title="Strands Agents 1.62.0, snapshots",
    entrants=(
        Entrant("locus-mysql, aiomysql", lambda config: Snapshots(config, StrandsStorage(config))),
        Entrant(
            "locus-mysql, mysql-connector",
            lambda config: Snapshots(config, StrandsStorage(config)),
            "mysql-connector",
        ),
        Entrant("LocalFileStorage, not flushed", SnapshotsInFiles),
        Entrant("InMemoryStorage", SnapshotsInMemory),
    ),
    remark="The framework encodes and writes the whole agent after each turn; it has no SQL store.",
)
