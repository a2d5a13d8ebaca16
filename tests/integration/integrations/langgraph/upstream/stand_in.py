"""A pytest plugin: LangGraph's tests get our savers and stores where they ask for its own.

It runs in a process of its own, with ``-p``. `LOCUS_UPSTREAM_DSN` names the server and schema, `LOCUS_UPSTREAM_DRIVER`
the driver, `LOCUS_UPSTREAM_PACKAGE` whose tests they are. What is a database of its own to a test is a tenant here.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar

import langgraph.checkpoint.memory
import langgraph.checkpoint.postgres
import langgraph.checkpoint.postgres.aio
import langgraph.checkpoint.sqlite
import langgraph.checkpoint.sqlite.aio
import langgraph.store.memory
import langgraph.store.postgres
import langgraph.store.sqlite
import psycopg
import psycopg_pool
import pytest
from left_out import reason

from locus_mysql.integrations.langgraph import AsyncMySQLSaver, AsyncMySQLStore, MySQLSaver, MySQLStore

PACKAGE = os.environ["LOCUS_UPSTREAM_PACKAGE"]
DRIVER = os.environ["LOCUS_UPSTREAM_DRIVER"]

#: Counts the tests, as each finds the database that they share empty.
_tests = 0


def options(where: str) -> dict[str, Any]:
    """Those of a saver or store for a file, a database in memory or a database of a server."""
    name = os.urandom(16).hex() if where == ":memory:" else f"{_tests}/{os.getpid()}/{where}"[-100:]
    return {"dsn": os.environ["LOCUS_UPSTREAM_DSN"], "driver": DRIVER, "tenant": name, "pool_timeout_s": 300}


class Connection:
    """A connection to a database, as far as tests make one to hand it to a saver."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __class_getitem__(cls, _: object) -> type[Connection]:
        return cls

    @classmethod
    def connect(cls, where: str, **_: Any) -> Connection:
        return cls(where)

    def execute(self, *_: Any) -> None:
        """Nothing: a tenant need not be made."""

    def pipeline(self) -> Connection:
        return self

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class AsyncConnection(Connection):
    """The same, awaited."""

    @classmethod
    async def connect(cls, where: str, **_: Any) -> AsyncConnection:  # type: ignore[override]
        return cls(where)

    async def execute(self, *_: Any) -> None:  # type: ignore[override]
        """Nothing."""

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class Pool(AsyncConnection):
    """A pool of them."""

    def __init__(self, where: str, **_: Any) -> None:
        super().__init__(where)


class Saver(MySQLSaver):
    """Ours under the name of a synchronous one, made from a connection or a text."""

    def __init__(self, where: Any = ":memory:", pipe: Any = None, **more: Any) -> None:
        super().__init__(**options(getattr(where, "where", where)), **more)

    @classmethod
    @contextlib.contextmanager
    def from_conn_string(cls, conn_string: str, **more: Any) -> Iterator[Any]:
        with cls(conn_string) as saver:
            yield saver


class MemorySaver(Saver):
    """One that tests make and never close."""

    opened: ClassVar[list[Saver]] = []

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.opened.append(self)


class NoCursor:
    """Where fixtures prepare tables of the other stores: there is nothing to do."""

    def execute(self, *_: Any) -> _Done:
        return _Done()

    def __enter__(self) -> NoCursor:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def __aenter__(self) -> NoCursor:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class _Done:
    def __await__(self) -> Iterator[None]:
        yield from ()


class AsyncSaver(AsyncMySQLSaver):
    """Ours under the name of an asynchronous one."""

    def __init__(self, where: Any = ":memory:", pipe: Any = None, **more: Any) -> None:
        super().__init__(**options(getattr(where, "where", where)), **more)

    @classmethod
    @contextlib.asynccontextmanager
    async def from_conn_string(cls, conn_string: str, **more: Any) -> AsyncIterator[Any]:
        async with cls(conn_string) as saver:
            yield saver


def store_options(given: dict[str, Any]) -> dict[str, Any]:
    """What of a store's options ours knows; the others say how the other stores connect and index."""
    index = given.get("index")
    if index is not None:
        index = {key: value for key, value in index.items() if key not in {"ann_index_config", "text_fields"}}
        fields = given["index"].get("text_fields")  # so SQLite's store calls them
        if fields is not None:
            index["fields"] = [fields] if isinstance(fields, str) else fields
    return {"index": index, "ttl": given.get("ttl")}


class Store(MySQLStore):
    """Ours under the name of a synchronous store."""

    MIGRATIONS: ClassVar[list[str]] = []
    opened: ClassVar[list[Store]] = []

    def __init__(self, where: str = ":memory:", **more: Any) -> None:
        super().__init__(**options(where), **store_options(more))
        self.opened.append(self)

    def _cursor(self) -> NoCursor:
        return NoCursor()

    @classmethod
    @contextlib.contextmanager
    def from_conn_string(cls, conn_string: str, **more: Any) -> Iterator[Any]:
        with cls(conn_string, **more) as store:
            yield store


class AsyncStore(AsyncMySQLStore):
    """Ours under the name of an asynchronous store."""

    MIGRATIONS: ClassVar[list[str]] = []

    def __init__(self, where: str = ":memory:", **more: Any) -> None:
        super().__init__(**options(where), **store_options(more))

    def _cursor(self) -> NoCursor:
        return NoCursor()

    @classmethod
    @contextlib.asynccontextmanager
    async def from_conn_string(cls, conn_string: str, **more: Any) -> AsyncIterator[Any]:
        async with cls(conn_string, **more) as store:
            yield store


def _stand_in() -> None:
    psycopg.Connection = Connection  # type: ignore[misc, assignment]
    psycopg.AsyncConnection = AsyncConnection  # type: ignore[misc, assignment]
    psycopg_pool.ConnectionPool = psycopg_pool.AsyncConnectionPool = Pool  # type: ignore[misc, assignment]
    for module in (langgraph.checkpoint.sqlite, langgraph.checkpoint.postgres):
        for name in {"SqliteSaver", "PostgresSaver"} & vars(module).keys():
            setattr(module, name, Saver)
    for module in (langgraph.checkpoint.sqlite.aio, langgraph.checkpoint.postgres.aio):
        for name in {"AsyncSqliteSaver", "AsyncPostgresSaver"} & vars(module).keys():
            setattr(module, name, AsyncSaver)
    for module in (langgraph.store.sqlite, langgraph.store.sqlite.aio, langgraph.store.postgres):
        for name in {"SqliteStore", "PostgresStore"} & vars(module).keys():
            setattr(module, name, Store)
        for name in {"AsyncSqliteStore", "AsyncPostgresStore"} & vars(module).keys():
            setattr(module, name, AsyncStore)
    if PACKAGE == "langgraph-checkpoint":
        langgraph.checkpoint.memory.InMemorySaver = MemorySaver  # type: ignore[misc, assignment]
        langgraph.checkpoint.memory.MemorySaver = MemorySaver  # type: ignore[misc, assignment]
        langgraph.store.memory.InMemoryStore = Store  # type: ignore[misc, assignment]


_stand_in()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Do not import what is about serialisers and caches, as it needs packages of its own."""
    return True if collection_path.name in {"test_redis_cache.py", "test_encrypted.py", "test_jsonplus.py"} else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is listed, and of LangGraph's graph tests what needs no saver of ours."""
    why: Counter[str] = Counter()
    chosen = []
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        savers = {str(given.get(name)) for name in ("sync_checkpointer", "async_checkpointer")}
        ours = PACKAGE != "langgraph" or any(saver.startswith("sqlite") for saver in savers)
        left_out = reason(PACKAGE, item.nodeid) if ours else "needs no saver, or gets LangGraph's in memory"
        if not left_out:
            chosen.append(item)
        else:
            why[left_out] += 1
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
    print("\nLeft out:", *(f"{count} {text}" for text, count in why.items()), sep="\n  ")


def pytest_runtest_setup() -> None:
    """Databases of one test are not those of another."""
    global _tests
    _tests += 1


def pytest_runtest_teardown() -> None:
    """Close what the test did not."""
    for opened in (MemorySaver.opened, Store.opened):
        while opened:
            opened.pop().close()
