"""A pytest plugin: gives LangGraph's tests our savers and stores instead of its own.

It is loaded with ``-p`` into the processes that run them. `LOCUS_UPSTREAM_DSN` names the server and schema,
`LOCUS_UPSTREAM_DRIVER` the driver, `LOCUS_UPSTREAM_PACKAGE` the package whose tests run. Where a test creates its own
database, it gets a tenant.
"""

from __future__ import annotations

import contextlib
import os
import re
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
from _pytest.runner import runtestprotocol
from left_out import TIMED, reason

from locus_mysql.integrations.langgraph import AsyncMySQLSaver, AsyncMySQLStore, MySQLSaver, MySQLStore

PACKAGE = os.environ["LOCUS_UPSTREAM_PACKAGE"]

#: How often each test runs. More than once measures how often a test fails that depends on the order of events.
REPETITIONS = int(os.environ.get("LOCUS_UPSTREAM_REPETITIONS", "1"))

#: Options of all savers and stores. Some tests start 60,000 concurrent calls, which wait for each other.
OPTIONS: dict[str, Any] = {
    "dsn": os.environ["LOCUS_UPSTREAM_DSN"],
    "driver": os.environ["LOCUS_UPSTREAM_DRIVER"],
    "pool_timeout_s": 600,
}

#: Number of attempts for a test that depends on the clock.
ATTEMPTS = 5

#: The database that LangGraph's tests share is empty for each test, so the tenant names process and test.
_process = os.urandom(8).hex()
_tests = 0


def options(where: str) -> dict[str, Any]:
    """Return options for a file, an in-memory database, or a database of a server."""
    tenant = os.urandom(16).hex() if where == ":memory:" else f"{_process}/{_tests}/{where[-80:]}"
    return {**OPTIONS, "tenant": tenant}


class Info:
    """The name of a connection's database, from which tests build the address of another connection."""

    def __init__(self, where: str) -> None:
        self.dbname = where.rpartition("/")[2]


class Connection:
    """A connection that tests open to create a database, or to pass to a saver."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.info = Info(where)

    def __class_getitem__(cls, _: object) -> type[Connection]:
        return cls

    @classmethod
    def connect(cls, where: str, **_: Any) -> Connection:
        return cls(where)

    def execute(self, *_: Any) -> None:
        """Do nothing: tenants need no creation."""

    def pipeline(self) -> Connection:
        return self

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class AsyncConnection(Connection):
    """The same, with asynchronous methods."""

    @classmethod
    async def connect(cls, where: str, **_: Any) -> AsyncConnection:  # type: ignore[override]
        return cls(where)

    async def execute(self, *_: Any) -> None:  # type: ignore[override]
        """Do nothing."""

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class Pool(AsyncConnection):
    """A pool of connections."""

    def __init__(self, where: str, **_: Any) -> None:
        super().__init__(where)


class Saver(MySQLSaver):
    """Our synchronous saver, created from a connection or an address."""

    def __init__(self, where: Any = ":memory:", pipe: Any = None, **more: Any) -> None:
        super().__init__(**options(getattr(where, "where", where)), **more)

    @classmethod
    @contextlib.contextmanager
    def from_conn_string(cls, conn_string: str, **more: Any) -> Iterator[Any]:
        with cls(conn_string) as saver:
            yield saver


class MemorySaver(Saver):
    """A saver that tests create and never close."""

    opened: ClassVar[list[Saver]] = []

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.opened.append(self)


class AsyncSaver(AsyncMySQLSaver):
    """Our asynchronous saver, created from a connection or an address."""

    def __init__(self, where: Any = ":memory:", pipe: Any = None, **more: Any) -> None:
        super().__init__(**options(getattr(where, "where", where)), **more)

    @classmethod
    @contextlib.asynccontextmanager
    async def from_conn_string(cls, conn_string: str, **more: Any) -> AsyncIterator[Any]:
        async with cls(conn_string) as saver:
            yield saver


class NoCursor:
    """A cursor with which fixtures prepare the tables of other stores; this one does nothing."""

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


class Store(MySQLStore):
    """Our synchronous store."""

    MIGRATIONS: ClassVar[list[str]] = []
    opened: ClassVar[list[Store]] = []

    def __init__(self, where: str = ":memory:", **more: Any) -> None:
        super().__init__(**options(where), index=more.get("index"), ttl=more.get("ttl"))
        self.opened.append(self)

    def _cursor(self) -> NoCursor:
        return NoCursor()

    @classmethod
    @contextlib.contextmanager
    def from_conn_string(cls, conn_string: str, **more: Any) -> Iterator[Any]:
        with cls(conn_string, **more) as store:
            yield store


class AsyncStore(AsyncMySQLStore):
    """Our asynchronous store."""

    MIGRATIONS: ClassVar[list[str]] = []

    def __init__(self, where: str = ":memory:", **more: Any) -> None:
        super().__init__(**options(where), index=more.get("index"), ttl=more.get("ttl"))

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
    """Do not import tests of serialisers and caches, which need further packages."""
    return True if collection_path.name in {"test_redis_cache.py", "test_encrypted.py", "test_jsonplus.py"} else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Create `REPETITIONS` tests of each."""
    if REPETITIONS > 1:
        metafunc.fixturenames.append("_repetition")
        metafunc.parametrize("_repetition", range(REPETITIONS))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the listed tests, and those of LangGraph's graph tests that do not use our savers."""
    why: Counter[str] = Counter()
    chosen = []
    for item in items:
        left_out = reason(PACKAGE, item.nodeid) if _gets_ours(item) else "gets no saver, or LangGraph's in memory"
        if not left_out:
            chosen.append(item)
        else:
            why[left_out] += 1
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
    print("\nLeft out:", *(f"{count} {text}" for text, count in why.items()), sep="\n  ")


def _gets_ours(item: pytest.Item) -> bool:
    if PACKAGE != "langgraph":
        return True
    module = item.getparent(pytest.Module)
    if module is not None and module.path.name == "test_prune_postgres.py":
        module.own_markers[:] = [mark for mark in module.own_markers if mark.name != "skipif"]  # needs no Docker here
        return True
    given = getattr(getattr(item, "callspec", None), "params", {})
    return any(str(given.get(name)).startswith("sqlite") for name in ("sync_checkpointer", "async_checkpointer"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Repeat tests that depend on the clock, as the plugins of LangGraph's repository do with marked tests."""
    if item.get_closest_marker("flaky") is None and not re.search(TIMED, item.nodeid):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(1, ATTEMPTS + 1):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if attempt == ATTEMPTS or not any(report.failed for report in reports):
            break
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_runtest_setup() -> None:
    """Give each test, and each attempt of a test, its own databases."""
    global _tests
    _tests += 1


def pytest_runtest_teardown() -> None:
    """Close what the test left open."""
    for opened in (MemorySaver.opened, Store.opened):
        while opened:
            opened.pop().close()
