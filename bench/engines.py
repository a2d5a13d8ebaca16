"""MySQL beside OceanBase: the same calls by size of the conversation or session, on both engines in one run.

A save and a put add one message to a conversation of a Locus agent and of a LangGraph graph; a load and a `get_tuple`
read it in a process that did not write it, so without a cache. A set and a get are of one variable of 200 bytes in a
session of working memory. Every contestant is this package on PyMySQL, blocking, with one connection, on TCP without
TLS; both engines take turns in each round, in a shuffled order. The floor is a bare INSERT of the new message's JSON,
and a bare SELECT of the whole state's, on the same engine. Both servers are private, have one node and their data on
the same disk, and commit durably: MySQL flushes its redo log and its binary log, OceanBase writes its log with O_SYNC.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pymysql
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base.id import uuid6
from locus.core.state import AgentState

from ci.oceanbase_server import OceanBaseServer
from locus_mysql import Database, MySQLConfig, SyncMySQLCheckpointer
from locus_mysql.integrations.langgraph import MySQLSaver
from locus_mysql.working import MySQLStorage, SyncWorkingMemory

from .contestants import check_same
from .database import fresh_database
from .environment import environment
from .graphs import check_same as check_same_checkpoint
from .graphs import conversation
from .markdown import markdown_table
from .peers import Peers
from .states import agent_state, grown

#: Name of this measurement's own page.
PAGE = "engines"

SIZES, QUICK_SIZES = (10, 100, 1_000), (10,)
ROUNDS, QUICK_ROUNDS, WARM_UP_ROUNDS = 40, 4, 3

MYSQL, OCEANBASE = "MySQL", "OceanBase"
ENGINES = (MYSQL, OCEANBASE)
SAVE, LOAD, PUT, GET_TUPLE, SET, GET = "save", "load", "put", "get_tuple", "set", "get"
INSERT, SELECT = "floor: INSERT", "floor: SELECT"
OPERATIONS = (SAVE, LOAD, PUT, GET_TUPLE, SET, GET, INSERT, SELECT)
VALUE = "x" * 198


class Contestant:
    """The stores of one engine, with one conversation of each kind, and one session.

    Args:
        name: The engine.
        dsn: An empty database.
        stack: Closes the stores.
    """

    def __init__(self, name: str, dsn: str, stack: ExitStack) -> None:
        self.name = name
        config = MySQLConfig(dsn=dsn, driver="pymysql", pool_size=1, ssl_mode="DISABLED")
        uncached = config.model_copy(update={"cache_bytes": 0})
        self.database = stack.enter_context(Database(config))
        self.agents = stack.enter_context(SyncMySQLCheckpointer(config))
        self.agents_of_others = stack.enter_context(SyncMySQLCheckpointer(uncached))
        self.graphs = MySQLSaver(self.database)
        self.memory = SyncWorkingMemory("session", MySQLStorage(self.database))
        self.cursor = stack.enter_context(_bare(config)).cursor()
        self.thread: RunnableConfig = {"configurable": {"thread_id": "none", "checkpoint_ns": ""}}
        self.version: Any = None

    def begin(self, size: int) -> None:
        """Begin another conversation of a graph, and a session of this many variables."""
        self.thread = {"configurable": {"thread_id": f"graph/{size}", "checkpoint_ns": ""}}
        self.version = None
        self.memory.set_many({f"variable {number}": VALUE for number in range(size)})

    def save_and_load(self, state: AgentState) -> Iterator[tuple[str, float]]:
        """Save a state and load it; yield the times, in ms."""
        thread_id = "agent"
        yield SAVE, _timed(lambda: self.agents.save(state, thread_id))[1]
        loaded, taken_ms = _timed(lambda: self.agents_of_others.load(thread_id))
        check_same(self.name, loaded, state)
        yield LOAD, taken_ms

    def put_and_get(self, messages: Sequence[Any], step: int) -> Iterator[tuple[str, float]]:
        """Put a checkpoint with these messages and read it; yield the times, in ms."""
        self.version = self.graphs.get_next_version(self.version, None)
        checkpoint: Any = {
            "v": 4,
            "id": str(uuid6()),
            "ts": "2026-01-01T00:00:00+00:00",
            "channel_values": {"messages": list(messages)},
            "channel_versions": {"messages": self.version},
            "versions_seen": {"agent": {"messages": self.version}},
            "updated_channels": ["messages"],
        }
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        versions = {"messages": self.version}
        self.thread, taken_ms = _timed(lambda: self.graphs.put(self.thread, checkpoint, metadata, versions))
        yield PUT, taken_ms
        of_another_process = MySQLSaver(self.database)
        found, taken_ms = _timed(lambda: of_another_process.get_tuple(self.thread))
        check_same_checkpoint(self.name, found, checkpoint)
        yield GET_TUPLE, taken_ms

    def set_and_get(self, key: str, value: str) -> Iterator[tuple[str, float]]:
        """Set a variable and get it; yield the times, in ms."""
        yield SET, _timed(lambda: self.memory.set(key, value))[1]
        found, taken_ms = _timed(lambda: self.memory.get(key))
        if found != value:
            raise AssertionError(f"{self.name} got another value than was set")
        yield GET, taken_ms

    def insert_and_select(self, state: AgentState) -> Iterator[tuple[str, float]]:
        """Insert the JSON of the newest message and select the JSON of the whole state; yield the times, in ms."""
        new, whole = state.messages[-1].model_dump_json(), state.model_dump_json()
        yield INSERT, _timed(lambda: self.cursor.execute("INSERT INTO floor_new (state) VALUES (%s)", (new,)))[1]
        self.cursor.execute("REPLACE INTO floor_whole VALUES (1, %s)", (whole,))

        def select() -> Any:
            self.cursor.execute("SELECT state FROM floor_whole WHERE id = 1")
            return self.cursor.fetchall()

        yield SELECT, _timed(select)[1]


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure every size on MySQL, and on a private OceanBase server that is started here."""
    sizes, rounds = (QUICK_SIZES, QUICK_ROUNDS) if quick else (SIZES, ROUNDS)
    result: dict[str, Any] = {"environment": environment(dsn, Peers()), "rounds": rounds, "sizes": {}}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        oceanbase = stack.enter_context(OceanBaseServer(folder)).dsn
        result["environment"][OCEANBASE] = _version(oceanbase)
        for size in sizes:
            print(f"bench: engines, {size} messages or variables", file=sys.stderr, flush=True)
            result["sizes"][str(size)] = _at_size({MYSQL: dsn, OCEANBASE: oceanbase}, size, rounds)
    return result


def _at_size(dsns: dict[str, str], size: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the median times, in ms, by engine and operation."""
    with ExitStack() as stack:
        everyone = [
            Contestant(name, stack.enter_context(fresh_database(dsn)), stack.enter_context(ExitStack()))
            for name, dsn in dsns.items()
        ]
        for one in everyone:
            one.begin(size)
        taken: dict[str, dict[str, list[float]]] = {one.name: {name: [] for name in OPERATIONS} for one in everyone}
        state, source = asyncio.run(agent_state(size)), random.Random(2)
        messages = conversation(size + rounds + WARM_UP_ROUNDS)
        for number in range(-WARM_UP_ROUNDS, rounds):
            state = grown(state, source)
            value = f"{source.getrandbits(792):0198x}"
            steps: list[Callable[[Contestant], Iterator[tuple[str, float]]]] = [
                lambda one, state=state: one.save_and_load(state),
                lambda one, end=size + number + WARM_UP_ROUNDS: one.put_and_get(messages[:end], end),
                lambda one, value=value: one.set_and_get(f"variable {source.randrange(size)}", value),
                lambda one, state=state: one.insert_and_select(state),
            ]
            for step in steps:
                gc.collect()
                for one in source.sample(everyone, len(everyone)):
                    for operation, taken_ms in step(one):
                        if number >= 0:
                            taken[one.name][operation].append(taken_ms)
    return {
        name: {operation: statistics.median(times) for operation, times in one.items()} for name, one in taken.items()
    }


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a call and its time in ms."""
    begin = time.perf_counter()
    result = call()
    return result, (time.perf_counter() - begin) * 1_000


@contextmanager
def _bare(config: MySQLConfig) -> Iterator[pymysql.Connection[Any]]:
    """Yield a connection of PyMySQL to a database with the tables of the floor."""
    connection = pymysql.connect(
        host=config.host,
        port=config.port,
        user=config.user,
        password=config.password_text,
        database=config.database,
        autocommit=True,
        ssl_disabled=True,
    )
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE floor_new (id INT AUTO_INCREMENT PRIMARY KEY, state LONGBLOB)")
        cursor.execute("CREATE TABLE floor_whole (id INT PRIMARY KEY, state LONGBLOB)")
        yield connection


def _version(dsn: str) -> str:
    config = MySQLConfig(dsn=dsn)
    connection = pymysql.connect(host=config.host, port=config.port, user=config.user, password=config.password_text)
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@version_comment")
        ((version,),) = cursor.fetchall()
    return str(version)


def table(result: dict[str, Any]) -> str:
    """Return the times of both engines by operation and size, with OceanBase's as a multiple of MySQL's."""
    rows = []
    for operation in OPERATIONS:
        cells = []
        for measured in result["sizes"].values():
            mysql, oceanbase = (measured[engine][operation] for engine in ENGINES)
            cells += [f"{mysql:.3g} / {oceanbase:.3g}", f"{oceanbase / mysql:.1f}"]
        rows.append([operation, *cells])
    heading = [f"{MYSQL} / {OCEANBASE}, median ms"]
    for size in result["sizes"]:
        heading += [f"{int(size):,}", "times"]
    about = " ".join((__doc__ or "").split("\n\n")[1].split())
    return "\n\n".join([about, f"{result['rounds']} rounds.", markdown_table(heading, rows)])
