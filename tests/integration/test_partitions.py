"""Partitioned tables behave like others, and the statements of each turn access one partition.

On OceanBase only; tests/integration/engines.py leaves this file out elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pymysql
import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import SyncCheckpointStore, SyncMemoryStore, SyncMySQLBackend, SyncMySQLCheckpointer
from locus_mysql.cli import main as cli
from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.statement import Statement
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.drivers.wire.adapter import Adapter

from .conftest import MakeConfig
from .proxy import WireProxy
from .test_state_machine import test_any_sequence_of_operations_from_two_stores_reads_as_a_dict_does as any_sequence

RunSQL = Callable[..., tuple[Any, ...]]

PARTITIONS = 4

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
    by its primary key: the rows' keys decide them, and the plan lists all.
    """
    operators = dict(re.findall(r"^\|(\d+)\s*\|\W*([A-Z][A-Z_ ]*)", plan, re.MULTILINE))
    sections = re.split(r"\n\s+(\d+) - ", plan)[1:]
    details = zip(sections[::2], sections[1::2], strict=True)
    return [
        found
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


@pytest.mark.parametrize("pipeline", [True, False])
def test_saves_and_loads_touch_one_partition_of_each_table(
    pipeline: bool,
    partitioned: list[str],
    make_config: MakeConfig,
    no_housekeeping: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = make_config(driver="pymysql", pipeline=pipeline, cache_bytes=0)
    with (
        SyncCheckpointStore(config) as dicts,
        SyncMySQLBackend(config) as current,
        SyncMySQLCheckpointer(config) as agents,
    ):
        for one in (dicts, current):
            one.load("t")  # checks the tables, and opens the connection
        agents.load("t")
        recorded = Recorded(monkeypatch)
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
        monkeypatch.undo()
    assert_one_partition_each(recorded.plans(config))


@pytest.mark.parametrize("pipeline", [True, False])
def test_writes_and_reads_of_an_item_touch_one_partition_of_each_table(
    pipeline: bool, partitioned: list[str], make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(driver="pymysql", pipeline=pipeline)
    with SyncMemoryStore(config, dims=3) as memories:
        memories.get(("n",), "k")  # checks the tables, and opens the connection
        recorded = Recorded(monkeypatch)
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
        monkeypatch.undo()
    assert_one_partition_each(recorded.plans(config))


def assert_one_partition_each(plans: dict[str, str]) -> None:
    """Assert that each plan reads one partition of each table."""
    assert len(plans) > 10
    several = {
        text: plan for text, plan in plans.items() if not all(re.fullmatch(r"p\d", one) for one in accessed(plan))
    }
    assert {text: accessed(plan) for text, plan in several.items()} == {}


def test_the_families_that_are_left_out_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schema", "--engine", "oceanbase", "--partitions", "8"]) == 0
    printed = capsys.readouterr().out
    assert "PARTITION BY KEY (tenant, thread_id) PARTITIONS 8;" in printed
    assert set(re.findall(r"COMMENT='locus-mysql layout \d+, (\w+)'", printed)) <= OCEANBASE.families
