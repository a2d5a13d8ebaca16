"""Who is measured: this project on its drivers, Locus' built-in backend, and the floor."""

from __future__ import annotations

from typing import Any, Protocol

from locus.core.state import AgentState
from locus.memory.backends.adapters import mysql_checkpointer as built_in_checkpointer

from locus_mysql import MySQLConfig, mysql_checkpointer

THREAD = "bench"


class Contestant(Protocol):
    """Saves and loads one conversation."""

    name: str

    async def save(self, state: AgentState) -> None:
        """Save the conversation's state."""

    async def load(self) -> AgentState | None:
        """Load it."""

    async def close(self) -> None:
        """Close the connections."""


class LocusMySQL:
    """This project."""

    def __init__(self, dsn: str, driver: str) -> None:
        self.name = f"locus-mysql ({driver})"
        self._checkpointer = mysql_checkpointer(dsn=dsn, driver=driver)

    async def save(self, state: AgentState) -> None:
        await self._checkpointer.save(state, THREAD + self.name)

    async def load(self) -> AgentState | None:
        return await self._checkpointer.load(THREAD + self.name)

    async def close(self) -> None:
        await self._checkpointer.close()


class BuiltIn:
    """Locus' own MySQL backend, on Connector/Python."""

    name = "Locus built-in (mysql-connector)"

    def __init__(self, dsn: str) -> None:
        self._checkpointer = built_in_checkpointer(dsn=dsn)

    async def save(self, state: AgentState) -> None:
        await self._checkpointer.save(state, THREAD)

    async def load(self) -> AgentState | None:
        return await self._checkpointer.load(THREAD)

    async def close(self) -> None:
        await self._checkpointer.close()


class Floor:
    """The least a durable save and a load can cost: one bare INSERT of the new message, one bare SELECT of the state.

    On Connector/Python, with the in-process encoding and decoding that no Locus checkpointer can avoid.
    """

    name = "floor (mysql-connector)"

    def __init__(self, dsn: str) -> None:
        self._config = MySQLConfig(dsn=dsn)
        self._connection: Any = None
        self._whole = b""

    async def _cursor(self) -> Any:
        from mysql.connector.aio import connect

        if self._connection is None:
            config = self._config
            self._connection = await connect(
                host=config.host,
                port=config.port,
                user=config.user,
                password=config.password.get_secret_value(),
                database=config.database,
                autocommit=True,
            )
            cursor = await self._connection.cursor()
            await cursor.execute("CREATE TABLE IF NOT EXISTS floor (id INT AUTO_INCREMENT PRIMARY KEY, state LONGBLOB)")
            await cursor.execute("CREATE TABLE IF NOT EXISTS whole (id INT PRIMARY KEY, state LONGBLOB)")
        return await self._connection.cursor()

    async def save(self, state: AgentState) -> None:
        cursor = await self._cursor()
        state.to_checkpoint()
        await cursor.execute("INSERT INTO floor (state) VALUES (%s)", (state.messages[-1].model_dump_json().encode(),))

    async def put_whole(self, state: AgentState) -> None:
        """Store the state for `load`; not measured."""
        cursor = await self._cursor()
        self._whole = state.model_dump_json().encode()
        await cursor.execute("REPLACE INTO whole VALUES (1, %s)", (self._whole,))

    async def load(self) -> AgentState | None:
        cursor = await self._cursor()
        await cursor.execute("SELECT state FROM whole WHERE id = 1")
        await cursor.fetchall()
        return None

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
