"""The contestants: this project on its drivers, Locus' built-in backend, and Locus' backends on other servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from locus.core.state import AgentState
from locus.memory.backends.adapters import mysql_checkpointer as built_in_checkpointer
from locus.memory.retention import MESSAGE_TIME_KEY

from locus_mysql import SyncMySQLCheckpointer, mysql_checkpointer

from .peers import Peers

DRIVERS = ("mysql-connector", "aiomysql", "pymysql", "asyncmy")
SYNC_DRIVERS = ("mysql-connector", "pymysql")
#: Maximum number of connections of the other contestants: their default, except that of Redis' client. This project
#: uses its own default.
POOL_SIZE = 10
#: Redis' client does not wait for a free connection; it fails beyond its limit of 100.
REDIS_POOL_SIZE = 256

OURS = "locus-mysql, mysql-connector"
OURS_BLOCKING = "locus-mysql, pymysql, blocking"
BUILT_IN = "Locus built-in MySQL"
POSTGRESQL = "Locus PgCheckpointer"
REDIS = "Locus redis_checkpointer"


#: The id of a thread that does not exist. A request for it opens a connection.
NO_THREAD = "no thread"


class Contestant(Protocol):
    """Saves and loads conversations."""

    name: str

    async def connect(self) -> None:
        """Open a connection without reading or writing a conversation."""

    async def save(self, state: AgentState, thread_id: str) -> None:
        """Save a state of a conversation."""

    async def prepare_load(self, state: AgentState) -> None:
        """Prepare the load of this state. Called between its save and its load; not measured."""

    async def load(self, thread_id: str) -> AgentState | None:
        """Load the newest state of a conversation."""

    async def close(self) -> None:
        """Close the connections."""


class Asynchronous:
    """A checkpointer of Locus' interface."""

    def __init__(self, name: str, checkpointer: Any) -> None:
        self.name = name
        self._checkpointer = checkpointer

    async def connect(self) -> None:
        """See `Contestant.connect`."""
        await self._checkpointer.exists(NO_THREAD)

    async def save(self, state: AgentState, thread_id: str) -> None:
        """See `Contestant.save`."""
        await self._checkpointer.save(state, thread_id)

    async def prepare_load(self, state: AgentState) -> None:
        """See `Contestant.prepare_load`."""

    async def load(self, thread_id: str) -> AgentState | None:
        """See `Contestant.load`."""
        return await self._checkpointer.load(thread_id)

    async def close(self) -> None:
        """See `Contestant.close`."""
        await self._checkpointer.close()


class Synchronous:
    """This project's blocking side; the coroutines here never wait."""

    def __init__(self, name: str, checkpointer: SyncMySQLCheckpointer) -> None:
        self.name = name
        self._checkpointer = checkpointer

    async def connect(self) -> None:
        """See `Contestant.connect`."""
        self._checkpointer.exists(NO_THREAD)

    async def save(self, state: AgentState, thread_id: str) -> None:
        """See `Contestant.save`."""
        self._checkpointer.save(state, thread_id)

    async def prepare_load(self, state: AgentState) -> None:
        """See `Contestant.prepare_load`."""

    async def load(self, thread_id: str) -> AgentState | None:
        """See `Contestant.load`."""
        return self._checkpointer.load(thread_id)

    async def close(self) -> None:
        """See `Contestant.close`."""
        self._checkpointer.close()


def ours(dsn: str, driver: str) -> Contestant:
    """Return this project on one driver."""
    return Asynchronous(f"locus-mysql, {driver}", mysql_checkpointer(dsn=dsn, driver=driver))


def ours_blocking(dsn: str, driver: str) -> Contestant:
    """Return this project's blocking side on one driver."""
    return Synchronous(f"locus-mysql, {driver}, blocking", SyncMySQLCheckpointer(dsn=dsn, driver=driver))


def built_in(dsn: str) -> Contestant:
    """Return Locus' own MySQL backend, on Connector/Python."""
    return Asynchronous(BUILT_IN, built_in_checkpointer(dsn=dsn, max_pool_size=POOL_SIZE))


def on_other_servers(peers: Peers) -> Iterator[Contestant]:
    """Return Locus' checkpointers for the available servers."""
    if peers.postgresql is not None:
        from locus.memory.backends.pg_checkpointer import PgCheckpointer

        yield Asynchronous(POSTGRESQL, PgCheckpointer(peers.postgresql.url, max_pool_size=POOL_SIZE))
    if peers.redis is not None:
        from locus.memory.backends.adapters import redis_checkpointer

        yield Asynchronous(REDIS, redis_checkpointer(f"{peers.redis.url}?max_connections={REDIS_POOL_SIZE}"))


def check_same(name: str, loaded: AgentState | None, saved: AgentState) -> None:
    """Raise an error if the loaded state is not the saved one; PgCheckpointer adds the time of saving to messages."""
    if loaded is None:
        raise AssertionError(f"{name} loaded nothing")
    if loaded != saved and _without_times(loaded) != saved:
        raise AssertionError(f"{name} loaded another state than was saved")


def _without_times(state: AgentState) -> AgentState:
    messages = tuple(
        message.model_copy(
            update={"metadata": {key: value for key, value in message.metadata.items() if key != MESSAGE_TIME_KEY}}
        )
        for message in state.messages
    )
    return state.model_copy(update={"messages": messages})
