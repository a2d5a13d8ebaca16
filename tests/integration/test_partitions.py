"""Partitioned tables behave like others, and the statements of each turn access one partition.

On OceanBase only; tests/integration/engines.py leaves this file out elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pymysql
import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import Database, SyncCheckpointStore, SyncMemoryStore, SyncMySQLBackend, SyncMySQLCheckpointer
from locus_mysql.cli import main as cli
from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.statement import Statement
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.drivers.wire.adapter import Adapter
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore
from locus_mysql.integrations.langgraph import MySQLSaver
from locus_mysql.working import MySQLStorage, SyncWorkingMemory, TaskState

from .conftest import MakeConfig
from .integrations.langgraph import graphs
from .proxy import WireProxy
from .test_state_machine import test_any_sequence_of_operations_from_two_stores_reads_as_a_dict_does as any_sequence

RunSQL = Callable[..., tuple[Any, ...]]

PARTITIONS = 4

#: The range of a look-up of the rows of one session or conversation, whose number a row that was read before gives.
LOOKED_UP = re.compile(r"range_cond\((?=.*\.tenant\b).*\[\w+\.sid = :\d+\]")

#: Number of other sessions with entries, and of their entries. In tables that are nearly empty, the server reads all.
OTHERS, ENTRIES = 40, 50

THREAD: Any = {"configurable": {"thread_id": "t"}}

STATE = AgentState(messages=[Message.user("Hello."), Message.assistant("Hello, Ada.")])


@pytest.fixture
def partitioned(database: str, run_sql: RunSQL, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Create the partitioned tables of all families, as the command prints them; return their names."""
    assert cli.main(["schema", "--engine", "oceanbase", "--partitions", str(PARTITIONS)]) == 0
    run_sql(f"USE {database}")
    for statement in capsys.readouterr().out.split(";\n"):
        if statement.strip():
            run_sql(statement)
    return [name for (name,) in run_sql(f"SHOW TABLES FROM {database}")]


def test_every_table_of_a_supported_family_has_its_partitions(
    partitioned: list[str], database: str, run_sql: RunSQL
) -> None:
    found = run_sql(
        "SELECT table_name, COUNT(partition_name) FROM information_schema.partitions WHERE table_schema = %s"
        " GROUP BY table_name",
        database,
    )
    assert dict(found) == dict.fromkeys(partitioned, PARTITIONS)
    assert {"locus_threads", "locus_store_checkpoints", "locus_state_ledger"} <= {*partitioned}


def test_indexes_are_those_of_tables_without_partitions(
    partitioned: list[str], make_config: MakeConfig, database: str, run_sql: RunSQL
) -> None:
    with SyncCheckpointStore(make_config(table_prefix="plain_")) as store:
        store.save("t", {})

    def indexes(table: str) -> set[tuple[str, str]]:
        query = (
            "SELECT index_name, column_name FROM information_schema.statistics"
            " WHERE table_schema = %s AND table_name = %s"
        )
        # Columns that the engine creates for an index have a number in their names.
        return {(name, re.sub(r"\d+", "", column)) for name, column in run_sql(query, database, table)}

    for role in ("threads", "checkpoints", "ledger"):
        assert indexes(f"locus_store_{role}") == indexes(f"plain_store_{role}") != set()


@pytest.mark.slow
def test_any_sequence_of_operations_on_partitioned_tables_reads_as_a_dict_does(
    partitioned: list[str], server_dsn: str, database: str, make_config: Any, proxy: WireProxy
) -> None:
    any_sequence(server_dsn, database, make_config, proxy)


class Recorded:
    """Records the statements that adapters send."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[Statement] = []
        translate = Adapter._translated

        def translated(adapter: Any, statements: Sequence[Statement], variant: Any) -> Sequence[Statement]:
            made = translate(adapter, statements, variant)
            self.statements += made
            return made

        monkeypatch.setattr(Adapter, "_translated", translated)

    def plans(self, config: MySQLConfig) -> dict[str, str]:
        """Return the plans of the statements about tables."""
        kinds = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "REPLACE")
        about = [one for one in self.statements if one.sql.lstrip("( \n").startswith(kinds) and "`locus_" in one.sql]
        (endpoint,) = config.endpoints
        # Plans show values, and a token is binary: it is no valid text in any character set.
        connection = pymysql.connect(
            host=endpoint.host,
            port=endpoint.port,
            user=config.user,
            password=config.password_text,
            database=config.database,
            use_unicode=False,
        )
        plans = {}
        with connection, connection.cursor() as cursor:
            for one in about:
                cursor.execute("EXPLAIN " + one.sql, one.params)
                plans[one.sql] = b"\n".join(line for (line,) in cursor.fetchall()).decode(errors="replace")
        return plans


def accessed(plan: str) -> list[str]:
    """Return the partitions of each table that a plan reads.

    Not included are the partitions to which an INSERT writes, and those in which the other table of a join is looked up
    by its primary key: the rows' keys decide them, and the plan lists all. A look-up whose range has the columns of the
    partition key, of which a row that was read before gives one, is in one partition for each such row.
    """
    operators = dict(re.findall(r"^\|(\d+)\s*\|\W*([A-Z][A-Z_ ]*)", plan, re.MULTILINE))
    sections = re.split(r"\n\s+(\d+) - ", plan)[1:]
    details = zip(sections[::2], sections[1::2], strict=True)
    return [
        "p0" if operators[number].startswith("DISTRIBUTED TABLE") and LOOKED_UP.search(detail) else found
        for number, detail in details
        if "INSERT" not in operators[number]
        and not ("DISTRIBUTED TABLE GET" in operators[number] and re.search(r"range_cond\(.*:\d", detail))
        for found in re.findall(r"partitions\(([^)]*)\)", detail)
    ]


def test_a_plan_shows_how_many_partitions_a_statement_reads(
    partitioned: list[str], database: str, run_sql: RunSQL
) -> None:
    plan = run_sql("EXPLAIN SELECT * FROM locus_store_threads WHERE tenant = 'a'")
    assert accessed("\n".join(row[0] for row in plan)) == ["p[0-3]"]
    plan = run_sql("EXPLAIN SELECT * FROM locus_store_threads WHERE tenant = 'a' AND thread_id = 'b'")
    (one,) = accessed("\n".join(row[0] for row in plan))
    assert re.fullmatch(r"p\d", one)


def use_checkpoints(config: MySQLConfig) -> Iterator[None]:
    """Connect, yield, then save and load checkpoints."""
    with (
        SyncCheckpointStore(config) as dicts,
        SyncMySQLBackend(config) as current,
        SyncMySQLCheckpointer(config) as agents,
    ):
        for one in (dicts, current):
            one.load("t")  # checks the tables, and opens the connection
        agents.load("t")
        yield
        for step in range(4):
            dicts.save("t", {"step": step, "log": ["x" * 2_000 * (n + 1) for n in range(step)]}, metadata={"a": step})
            current.save("t", {"step": step})
            agents.save(STATE, "t")
        dicts.save("t", {"step": 9}, "named")
        dicts.save("t", {"step": 10}, "named")
        assert dicts.load("t") == {"step": 10}
        assert dicts.load("t", "named") == {"step": 10}
        assert dicts.exists("t")
        assert dicts.list_checkpoints("t")
        assert current.load("t") == {"step": 3}
        assert agents.load("t") is not None


def use_graphs(config: MySQLConfig) -> Iterator[None]:
    """Connect, yield, then run a graph, as LangGraph does, and read its history."""
    with MySQLSaver(config) as saver:
        saver.get_tuple(THREAD)
        yield
        graph = graphs.chat().compile(checkpointer=saver)
        for text in ("one", "x" * 5_000, "three"):
            graph.invoke({"messages": [("user", text)]}, THREAD)
        history = list(graph.get_state_history(THREAD))
        assert len(history) == 9
        assert len(MySQLSaver(config).get_tuple(THREAD).checkpoint["channel_values"]["messages"]) == 6
        graph.update_state(history[4].config, {"messages": [("user", "another")]})


def use_working_memory(config: MySQLConfig) -> Iterator[None]:
    """Connect, yield, then set and get variables, notes and the state of a task."""
    with Database(config) as db:
        storage = MySQLStorage(db)
        for number in range(OTHERS):
            SyncWorkingMemory(f"s{number}", storage).set_many({f"v{index}": index for index in range(ENTRIES)})
        memory = SyncWorkingMemory("s", storage)
        yield
        for number in range(3):
            memory.set("a", number)
            memory.append_scratchpad(f"note {number}")
        memory.set_many({"b": 1, "c": 2})
        memory.increment("b")
        memory.set_task_state(TaskState(task_id="trip"))
        assert memory.get_all() == {"a": 2, "b": 2, "c": 2}
        assert memory.exists("a")
        assert len(memory.get_scratchpad()) == 3
        assert memory.get_task_state() is not None


def use_transcripts(config: MySQLConfig) -> Iterator[None]:
    """Connect, yield, then append to a conversation and read it."""
    key = TranscriptKey("kind", "project", "conversation")
    with SyncTranscriptStore(config) as store:
        for number in range(OTHERS):
            store.append(key._replace(name=f"c{number}"), [NewItem(index) for index in range(ENTRIES)])
        yield
        for number in range(3):
            store.append(key, [NewItem({"n": number}, f"id {number}"), NewItem("text")])
        assert len(store.read(key).items) == 6
        assert len(store.read(key, last=2).items) == 2
        assert store.get(key) is not None


def use_memories(config: MySQLConfig) -> Iterator[None]:
    """Connect, yield, then write and read items."""
    with SyncMemoryStore(config, dims=3) as memories:
        memories.get(("n",), "k")  # checks the tables, and opens the connection
        yield
        memories.put(("n",), "k", {"v": 1}, metadata={"m": 1}, embedding=[1, 2, 3], text="green tea", ttl_s=60)
        memories.put(("n",), "k", {"v": 2}, embeddings=[[1, 2, 3], [3, 2, 1]], if_version=1)
        for n in range(3):
            memories.put(("n",), str(n), n, embedding=[n, 1, 0])
        assert memories.get(("n",), "k", refresh=True) == {"v": 2}
        assert memories.get_batch([(("n",), "k"), (("n",), "1")])
        assert memories.exists(("n",), "k")
        assert memories.list_keys(("n",)) == ["0", "1", "2", "k"]
        assert memories.get_embeddings(("n",), "1") == [[1, 1, 0]]
        assert memories.delete(("n",), "k")
        memories.clear_namespace(("n",))


@pytest.mark.parametrize("pipeline", [True, False])
@pytest.mark.parametrize("use", [use_checkpoints, use_graphs, use_memories, use_working_memory, use_transcripts])
def test_the_calls_of_each_turn_touch_one_partition_of_each_table(
    use: Callable[[MySQLConfig], Iterator[None]],
    pipeline: bool,
    partitioned: list[str],
    database: str,
    run_sql: RunSQL,
    make_config: MakeConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = make_config(driver="pymysql", pipeline=pipeline, cache_bytes=0)
    calls = use(config)
    next(calls)
    for table in partitioned:
        if "working" in table or "transcript" in table:
            run_sql(f"ANALYZE TABLE {database}.{table}")
    recorded = Recorded(monkeypatch)
    assert list(calls) == []
    monkeypatch.undo()
    plans = recorded.plans(config)
    assert len(plans) > 5
    several = {
        text: accessed(plan)
        for text, plan in plans.items()
        if not all(re.fullmatch(r"p\d", one) for one in accessed(plan))
    }
    assert several == {}


def test_the_families_that_are_left_out_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schema", "--engine", "oceanbase", "--partitions", "8"]) == 0
    printed = capsys.readouterr().out
    assert "PARTITION BY KEY (tenant, thread_id) PARTITIONS 8;" in printed
    assert set(re.findall(r"COMMENT='locus-mysql layout \d+, (\w+)'", printed)) <= OCEANBASE.families
