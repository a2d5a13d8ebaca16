"""The floor of LangGraph's savers: the minimum cost of a step on asyncmy, in bare statements.

A put is one durable INSERT of the new bytes: the last message, and the checkpoint without its values. Writes are one
INSERT of their bytes, which LangGraph's serialiser makes for all. A get or a list is one SELECT of the whole
checkpoint's bytes, and LangGraph's decoding; storing these bytes beforehand is not measured.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from locus_mysql import MySQLConfig

NAME = "floor, asyncmy: bare statements"

_TABLES = (
    "CREATE TABLE floor_new (id INT AUTO_INCREMENT PRIMARY KEY, data LONGBLOB)",
    "CREATE TABLE floor_whole (id INT PRIMARY KEY, data LONGBLOB)",
)
_INSERT = "INSERT INTO floor_new (data) VALUES (%s)"


class BareSaver(BaseCheckpointSaver[Any]):
    """Stores and finds bytes, with no other feature of a saver.

    Args:
        cursor: A cursor of asyncmy with autocommit.
    """

    def __init__(self, cursor: Any) -> None:
        super().__init__()
        self._cursor = cursor
        self._put: Any = None

    async def keep_whole(self) -> None:
        """Store the checkpoint that `get` will read. Not measured."""
        if self._put is not None:
            await self._cursor.execute(
                "REPLACE INTO floor_whole VALUES (1, %s)", (self.serde.dumps_typed(self._put)[1],)
            )
            self._put = None

    async def aput(self, config: RunnableConfig, checkpoint: Any, metadata: Any, new_versions: Any) -> RunnableConfig:
        """Insert the new bytes."""
        head = self.serde.dumps_typed({**checkpoint, "channel_values": {}})[1]
        added = self.serde.dumps_typed(checkpoint["channel_values"]["messages"][-1:])[1]
        await self._cursor.execute(_INSERT, (head + added,))
        self._put = checkpoint
        return config

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Insert the bytes of writes."""
        await self._cursor.execute(_INSERT, (b"".join(self.serde.dumps_typed(value)[1] for _, value in writes),))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple:
        """Select the whole checkpoint and decode it."""
        await self._cursor.execute("SELECT data FROM floor_whole")
        ((data,),) = await self._cursor.fetchall()
        return CheckpointTuple(config, self.serde.loads_typed(("msgpack", data)), {})

    async def alist(self, config: Any, **_: Any) -> AsyncIterator[CheckpointTuple]:
        """Return the newest checkpoint alone."""
        yield await self.aget_tuple(config)


@dataclass
class Floor:
    """The contestant."""

    saves: BareSaver
    name: str = NAME

    async def saver(self) -> BaseCheckpointSaver[Any]:
        """See `Contestant.saver`."""
        await self.saves.keep_whole()
        return self.saves


async def open_floor(dsn: str) -> Floor:
    """Connect to an empty database without TLS."""
    from asyncmy import connect

    config = MySQLConfig(dsn=dsn)
    login = {"host": config.host, "port": config.port, "user": config.user}
    connection = await connect(
        **login, password=config.password.get_secret_value(), db=config.database, autocommit=True
    )
    cursor = connection.cursor()
    for definition in _TABLES:
        await cursor.execute(definition)
    return Floor(BareSaver(cursor))
