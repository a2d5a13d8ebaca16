"""The floor: the minimum cost of a durable save and a load, on each client library without this package.

A save is one bare INSERT of the new messages' JSON, and ``to_checkpoint()``, which no Locus checkpointer avoids. A load
is one bare SELECT of the state's JSON, and its decoding: JSON decoder and ``AgentState.from_checkpoint``.
"""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from locus.core.state import AgentState
from pydantic_core import from_json

from locus_mysql import MySQLConfig

TABLES = (
    "CREATE TABLE IF NOT EXISTS floor_new (id INT AUTO_INCREMENT PRIMARY KEY, state LONGBLOB)",
    "CREATE TABLE IF NOT EXISTS floor_whole (id INT PRIMARY KEY, state LONGBLOB)",
)
INSERT = "INSERT INTO floor_new (state) VALUES (%s)"
REPLACE = "REPLACE INTO floor_whole VALUES (1, %s)"
SELECT = "SELECT state FROM floor_whole WHERE id = 1"


class Floor(ABC):
    """The floor on one client library. Text is sent as text, as aiomysql can no longer send bytes."""

    name = "floor"

    def __init__(self, dsn: str) -> None:
        self._config = MySQLConfig(dsn=dsn)
        self._connection: Any = None
        self._messages_saved = 0

    async def connect(self) -> None:
        """See `Contestant.connect`."""
        await self._execute("SELECT 1")

    async def save(self, state: AgentState, thread_id: str) -> None:
        """Insert the new messages, and make the checkpoint's dict, which every checkpointer needs."""
        state.to_checkpoint()
        known = self._messages_saved if len(state.messages) > self._messages_saved else 0
        new = ",".join(message.model_dump_json() for message in state.messages[known:])
        await self._execute(INSERT, new)
        self._messages_saved = len(state.messages)

    async def prepare_load(self, state: AgentState) -> None:
        """See `Contestant.prepare_load`."""
        await self.keep_whole(state)

    async def keep_whole(self, state: AgentState) -> None:
        """Store the state for `load`. Not measured."""
        await self._execute(REPLACE, state.model_dump_json())

    async def load(self, thread_id: str) -> AgentState:
        """Select the state's JSON and decode it."""
        ((text,),) = await self._execute(SELECT)
        state = AgentState.from_checkpoint(from_json(text, cache_strings="keys"))
        self._messages_saved = len(state.messages)
        return state

    async def _execute(self, statement: str, *values: str) -> Sequence[Any]:
        """Run a statement and return its rows. The first one opens the connection."""
        if self._connection is None:
            await self._connect()
            for definition in TABLES:
                await self._run(definition)
        return await self._run(statement, *values)

    @abstractmethod
    async def close(self) -> None:
        """Close the connection."""

    @abstractmethod
    async def _connect(self) -> None:
        """Connect."""

    @abstractmethod
    async def _run(self, statement: str, *values: str) -> Sequence[Any]:
        """Run a statement; return its rows."""

    def _login(self) -> dict[str, Any]:
        config = self._config
        return {
            "host": config.host,
            "port": config.port,
            "user": config.user,
            "password": config.password.get_secret_value(),
            "autocommit": True,
        }


class ConnectorFloor(Floor):
    """The floor on Connector/Python's asynchronous side."""

    name = "floor, mysql-connector"

    async def _connect(self) -> None:
        from mysql.connector.aio import connect

        self._connection = await connect(**self._login(), database=self._config.database)

    async def _run(self, statement: str, *values: str) -> Sequence[Any]:
        async with await self._connection.cursor() as cursor:
            await cursor.execute(statement, values)
            return await cursor.fetchall() if cursor.with_rows else ()

    async def close(self) -> None:
        """See `Floor.close`."""
        await self._connection.close()


class AiomysqlFloor(Floor):
    """The floor on aiomysql; asyncmy has the same interface."""

    name = "floor, aiomysql"

    async def _connect(self) -> None:
        from aiomysql import connect

        await self._open_with(connect)

    async def _open_with(self, connect: Any) -> None:
        self._connection = await connect(**self._login(), db=self._config.database, ssl=_encrypted())

    async def _run(self, statement: str, *values: str) -> Sequence[Any]:
        async with self._connection.cursor() as cursor:
            await cursor.execute(statement, values or None)
            return await cursor.fetchall()

    async def close(self) -> None:
        """See `Floor.close`."""
        await self._connection.ensure_closed()


class AsyncmyFloor(AiomysqlFloor):
    """The floor on asyncmy."""

    name = "floor, asyncmy"

    async def _connect(self) -> None:
        from asyncmy import connect

        await self._open_with(connect)


class BlockingConnectorFloor(Floor):
    """The floor on Connector/Python's blocking side, in pure Python as this project uses it."""

    name = "floor, mysql-connector, blocking"

    async def _connect(self) -> None:
        from mysql.connector import connect

        self._connection = connect(**self._login(), database=self._config.database, use_pure=True)

    async def _run(self, statement: str, *values: str) -> Sequence[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.with_rows else ()

    async def close(self) -> None:
        """See `Floor.close`."""
        self._connection.close()


class PyMySQLFloor(Floor):
    """The floor on PyMySQL."""

    name = "floor, pymysql, blocking"

    async def _connect(self) -> None:
        from pymysql import connect

        self._connection = connect(**self._login(), database=self._config.database, ssl=_encrypted())

    async def _run(self, statement: str, *values: str) -> Sequence[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return cursor.fetchall()

    async def close(self) -> None:
        """See `Floor.close`."""
        self._connection.close()


def _encrypted() -> ssl.SSLContext:
    """Return a TLS context that accepts any certificate, as all contestants do here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


FLOORS = (ConnectorFloor, AiomysqlFloor, AsyncmyFloor, BlockingConnectorFloor, PyMySQLFloor)


def floor_of(contestant: str) -> str:
    """Return the name of the floor of one of this project's contestants: the same library and processes."""
    library = contestant.removeprefix("locus-mysql, ")
    return PyMySQLFloor.name if library == "pymysql" else f"floor, {library}"
