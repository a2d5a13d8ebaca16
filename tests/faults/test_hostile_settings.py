"""Calls on every family and framework under settings of the server that would change what their statements do.

The settings are those of my.cnf or of a parameter group (`SET GLOBAL`), or come from `init_connect`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from locus_mysql import (
    CheckpointStore,
    Database,
    MemoryStore,
    MySQLCheckpointSaver,
    MySQLConfig,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLCheckpointSaver,
    SyncWorkingMemory,
    WorkingMemory,
)
from locus_mysql.cli import main as cli
from locus_mysql.integrations.langgraph import AsyncMySQLSaver, MySQLSaver
from locus_mysql.memory import Put
from locus_mysql.transcripts import NewItem, SyncTranscriptStore, TranscriptKey, TranscriptStore

from ..either_side import AnyStore
from ..integration.conftest import ONE_OF_EACH, MakeConfig
from ..integration.integrations.langgraph.graphs import chat
from .workloads import WORKLOADS, Workload

pytestmark = pytest.mark.slow

RunSQL = Callable[..., tuple[Any, ...]]

#: Groups of settings that do not hide each other's effects.
HOSTILE: dict[str, dict[str, str]] = {
    "for people at a terminal, and for plans": {
        "completion_type": "'CHAIN'",
        "sql_select_limit": "1",
        "sql_safe_updates": "1",
        "max_join_size": "1",
        "group_concat_max_len": "4",
        "sql_auto_is_null": "1",
        "cte_max_recursion_depth": "0",
        "autocommit": "0",
        "transaction_isolation": "'SERIALIZABLE'",
        "time_zone": "'+14:00'",
        "lc_messages": "'de_DE'",
        "lc_time_names": "'ja_JP'",
        "sql_mode": "'ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION,"
        "REAL_AS_FLOAT,TIME_TRUNCATE_FRACTIONAL,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
        "div_precision_increment": "0",
        "default_week_format": "6",
        "max_sort_length": "4",
        "sql_warnings": "1",
        "sql_notes": "0",
        "profiling": "1",
        "terminology_use_previous": "'BEFORE_8_0_26'",
        "internal_tmp_mem_storage_engine": "'MEMORY'",
        "windowing_use_high_precision": "0",
        "range_optimizer_max_mem_size": "1",
        "eq_range_index_dive_limit": "1",
        "max_seeks_for_key": "1",
        "optimizer_prune_level": "0",
        "optimizer_search_depth": "1",
        "optimizer_trace": "'enabled=on'",
        "end_markers_in_json": "1",
        "explain_format": "'JSON'",
        "optimizer_switch": "'index_merge=off,index_condition_pushdown=off,mrr=off,materialization=off,semijoin=off,"
        "use_index_extensions=off,condition_fanout_filter=off,derived_merge=off,use_invisible_indexes=on,"
        "skip_scan=off,hash_join=off,subquery_to_derived=on,prefer_ordering_index=off,"
        "derived_condition_pushdown=off'",
        "information_schema_stats_expiry": "0",
        "sql_quote_show_create": "0",
        "block_encryption_mode": "'aes-256-cbc'",
        "default_collation_for_utf8mb4": "'utf8mb4_general_ci'",
        "session_track_gtids": "'OWN_GTID'",
        "session_track_schema": "0",
        "session_track_state_change": "1",
        "session_track_system_variables": "'*'",
        "session_track_transaction_info": "'CHARACTERISTICS'",
        "binlog_row_value_options": "'PARTIAL_JSON'",
        "binlog_row_image": "'MINIMAL'",
        "innodb_ft_enable_stopword": "0",
        "ft_boolean_syntax": "' +-><()~*:\"\"&|'",
    },
    "for imports and small machines": {
        "completion_type": "'RELEASE'",
        "sql_select_limit": "0",
        "transaction_read_only": "1",
        "transaction_isolation": "'READ-UNCOMMITTED'",
        "foreign_key_checks": "0",
        "unique_checks": "0",
        "tmp_table_size": "1024",
        "max_heap_table_size": "16384",
        "set_operations_buffer_size": "16384",
        "sort_buffer_size": "32768",
        "join_buffer_size": "128",
        "read_rnd_buffer_size": "1",
        "net_buffer_length": "1024",
        "big_tables": "1",
        "sql_buffer_result": "1",
        "low_priority_updates": "1",
        "auto_increment_increment": "7",
        "auto_increment_offset": "3",
        "last_insert_id": "77",
        "timestamp": "1000000000",
        "rand_seed1": "1",
        "use_secondary_engine": "'FORCED'",
        "max_error_count": "0",
        "character_set_client": "'latin1'",
        "character_set_connection": "'latin1'",
        "character_set_results": "'latin1'",
    },
}

#: Settings that others in their group might hide: once more, each alone.
ALONE = ("completion_type", "sql_select_limit", "sql_safe_updates", "max_join_size", "group_concat_max_len")

#: An account without privileges may not set these for its session.
RESTRICTED = frozenset(
    {"net_buffer_length", "low_priority_updates", "max_error_count", "internal_tmp_mem_storage_engine"}
    | {"binlog_row_value_options", "binlog_row_image", "ft_boolean_syntax"}
)

#: There is no global value of these.
OF_SESSIONS = frozenset({"last_insert_id", "timestamp", "rand_seed1", "use_secondary_engine"})

ROWS = 30


async def many_rows(config: MySQLConfig, side: str) -> Any:
    """Write and read more rows of every family than a small limit lets through."""
    awaited, database = side.endswith("-async"), Database(config)

    def opened(asynchronous: Any, blocking: Any, *arguments: Any, **options: Any) -> AnyStore:
        return AnyStore((asynchronous if awaited else blocking)(*arguments, database, **options))

    states = opened(CheckpointStore, SyncCheckpointStore, keep_checkpoints=20)
    graphs = opened(MySQLCheckpointSaver, SyncMySQLCheckpointSaver)
    memories = opened(MemoryStore, SyncMemoryStore, dims=2)
    working = opened(WorkingMemory, SyncWorkingMemory, "many")
    transcripts = opened(TranscriptStore, SyncTranscriptStore)
    found: dict[str, Any] = {}
    try:
        for number in range(ROWS):
            state = {"step": number, "log": [f"entry {one} of plums" for one in range(number)]}
            await states.save("long", state, f"c{number}", {"even": number % 2 == 0})
            await graphs.put(
                thread_id="long",
                checkpoint_id=f"c{number:02}",
                checkpoint_data=state,
                parent_checkpoint_id=f"c{number - 1:02}" if number else None,
            )
        for number in range(5):
            await states.save(f"short {number}", {"n": number}, "only", {"even": True})
        found["checkpoints"] = await states.list_checkpoints("long", 100)
        found["first"] = await states.load("long", found["checkpoints"][-1])
        found["threads"] = await states.list_threads(), await states.count()
        found["even"] = sorted(
            (one["thread_id"], one["checkpoint_id"]) for one in await states.query_by_metadata("even", True)
        )
        found["plums"] = [hit["thread_id"] for hit in await states.search("plums")]
        found["data"] = [one["thread_id"] for one in await states.search_data("$.n", 3)]
        found["removed"] = await states.delete("long", "c20")
        found["vacuumed"] = await states.vacuum(older_than_days=365), await graphs.vacuum(older_than_days=365)
        found["graph"] = [one["checkpoint_id"] for one in await graphs.list_checkpoints(thread_id="long", limit=100)]
        found["pruned"] = await graphs.prune(thread_id="long", keep=3)
        found["rest"] = (await graphs.get(thread_id="long"))["checkpoint"]
        await memories.put_batch(
            [
                Put(("n", f"{one % 3}"), f"{one:02}", {"n": one, "text": f"{one} plums"}, embedding=[one, 1])
                for one in range(ROWS)
            ]
        )
        found["keys"] = await memories.list_keys(("n", "1")), await memories.list_namespaces(("n",))
        found["by words"] = sorted(hit.item.key for hit in await memories.search(("n",), query="plums", limit=100))
        nearest = await memories.search(("n",), embedding=[1, 1], filter={"n": {"$gt": 3}}, limit=100)
        found["nearest"] = [hit.item.key for hit in nearest]
        found["cleared"] = await memories.clear_namespace(("n", "2")), await memories.count(("n",))
        await working.set_many({f"key {number}": number for number in range(ROWS)})
        before = await working.create_checkpoint("before")
        await working.delete_many([f"key {number}" for number in range(20)])
        await working.restore_checkpoint(before)
        found["variables"] = await working.get_all()
        key = TranscriptKey("hostile", "settings", "many")
        await transcripts.append(key, [NewItem(number) for number in range(ROWS)])
        found["items"] = [item.content for item in (await transcripts.read(key)).items]
    finally:
        await database.aclose() if awaited else database.close()
    return found


async def all_calls(workload: type[Workload], config: MySQLConfig, side: str) -> Any:
    """Make the calls of a workload, and read with another store what they leave."""
    store, observer = workload(config, side), workload(config, side)
    try:
        await store.stored()
        return [await call() for call in store.calls()], await observer.stored()
    finally:
        await store.close()
        await observer.close()


def run_calls(workload: type[Workload], config: MySQLConfig, side: str) -> Any:
    return asyncio.run(all_calls(workload, config, side))


async def run_of_a_graph(config: MySQLConfig, side: str) -> Any:
    """Run LangGraph's graph with a saver, and list the history."""
    how: Any = {"configurable": {"thread_id": "chat"}}
    if side.endswith("-async"):
        async with AsyncMySQLSaver(config) as saver:
            graph = chat().compile(checkpointer=saver)
            for said in ("Hello", "Lisbon", "plums"):
                await graph.ainvoke({"messages": [("user", said)]}, how)
            history = [snapshot async for snapshot in graph.aget_state_history(how)]
    else:
        with MySQLSaver(config) as saver:
            graph = chat().compile(checkpointer=saver)
            for said in ("Hello", "Lisbon", "plums"):
                graph.invoke({"messages": [("user", said)]}, how)
            history = list(graph.get_state_history(how))
    return [[message.content for message in snapshot.values.get("messages", ())] for snapshot in history]


def dsn_of(config: MySQLConfig, **options: str) -> str:
    """Return the DSN of a configuration."""
    password = quote(config.password.get_secret_value(), safe="")
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"mysql://{config.user}:{password}@{config.host}:{config.port}/{config.database}?{query}"


def commands(config: MySQLConfig, folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the operators' commands on what `many_rows` left."""
    file, dsn = folder / f"{config.tenant}.jsonl", dsn_of(config)
    own = ["--dsn", dsn, "--driver", config.driver]
    found: list[Any] = []

    def run(*arguments: str, tenant: str = config.tenant) -> str:
        status = cli.main([*arguments, "--tenant", tenant])
        printed = capsys.readouterr()
        found.append((status, printed.err.replace(config.tenant, "…") if status else ""))
        return printed.out

    run("health", *own)
    for family in ("dicts", "memories", "working", "transcripts", "graphs"):
        run("export", str(file), "--family", family, *own)
        found.append(len(file.read_text().splitlines()))
        run("import", str(file), *own, tenant=f"{config.tenant}-imported")
        run("vacuum", "--family", family, "--older-than-days", "365", *own)
    run("copy", "--family", "memories", "--from", dsn, "--to", dsn_of(config, table_prefix="copied_"))
    found.append(
        json.loads(run("stats", "--family", "memories", "--table-prefix", "copied_", *own, "--json"))["stored"]
    )
    return found


class Server:
    """The tests' own server, and an ordinary account of it.

    Args:
        sql: Runs a statement as the administrator.
    """

    def __init__(self, sql: RunSQL) -> None:
        self.sql = sql

    @contextmanager
    def under(self, way: str, settings: Mapping[str, str]) -> Iterator[None]:
        """Give every new session these settings."""
        if way == "init_connect":
            names = [name for name in settings if name not in RESTRICTED]
            hostile = "SET " + ", ".join(f"SESSION {name} = {settings[name]}" for name in names)
            self.sql("SET GLOBAL init_connect = %s", f"{hostile}; START TRANSACTION")
            try:
                yield
            finally:
                self.sql("SET GLOBAL init_connect = DEFAULT")
            return
        names = [name for name in settings if name not in OF_SESSIONS]
        self.sql("SET GLOBAL " + ", GLOBAL ".join(f"{name} = {settings[name]}" for name in names))
        try:
            yield
        finally:
            # With PAD_CHAR_TO_FULL_LENGTH and the like, a new session of the administrator works as well.
            self.sql("SET GLOBAL " + ", GLOBAL ".join(f"{name} = DEFAULT" for name in names))


@pytest.fixture
def server_of_others(own_sql: RunSQL) -> Iterator[Server]:
    own_sql("CREATE USER ordinary@'%' IDENTIFIED BY 'secret'")
    own_sql("GRANT ALL ON `locus\\_test\\_%`.* TO ordinary@'%'")
    yield Server(own_sql)
    own_sql("DROP USER ordinary@'%'")


@pytest.fixture
def ordinary(own_config: MakeConfig) -> MakeConfig:
    """Return ``ordinary(**options)``: a configuration for the ordinary account."""
    return lambda **options: own_config(**{"user": "ordinary", "password": SecretStr("secret"), **options})


def outcomes(
    config: MySQLConfig, side: str, folder: Path, capsys: pytest.CaptureFixture[str], only: Collection[str] = ()
) -> dict[str, Any]:
    """Return what every part of the story, or some, returns and leaves behind, without times; or its error."""
    more = config.model_copy(update={"tenant": f"{config.tenant}-more"})
    parts: dict[str, Callable[[], Any]] = {
        **{
            workload.title: partial(run_calls, workload, config, side)
            for workload in WORKLOADS
            if workload.stores.of(side) is not None
        },
        "many rows": lambda: asyncio.run(many_rows(more, side)),
        "LangGraph": lambda: asyncio.run(run_of_a_graph(more, side)),
        "commands": lambda: commands(more, folder, capsys),
    }
    found: dict[str, Any] = {}
    for name, part in parts.items():
        if only and name not in only:
            continue
        try:
            found[name] = part()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


@pytest.mark.parametrize("side", ONE_OF_EACH)
def test_no_setting_of_the_server_changes_what_calls_do(
    ordinary: MakeConfig,
    server_of_others: Server,
    side: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LOCUS_MYSQL_DSN", raising=False)
    options: Any = {"driver": side.rpartition("-")[0], "retry_deadline_s": 5}
    expected = outcomes(ordinary(**options, tenant="calm"), side, tmp_path, capsys)
    assert {name: one for name, one in expected.items() if isinstance(one, str)} == {}
    differing: dict[str, Any] = {}

    def compare(title: str, way: str, settings: Mapping[str, str], only: Collection[str] = ()) -> None:
        tenant = f"tenant {len(titles)}"
        titles.append(title)
        with server_of_others.under(way, settings):
            found = outcomes(ordinary(**options, tenant=tenant), side, tmp_path, capsys, only)
        if wrong := {name: one for name, one in found.items() if one != expected[name]}:
            differing[title] = wrong

    titles: list[str] = []
    for group, settings in HOSTILE.items():
        for way in ("my.cnf", "init_connect"):
            compare(f"{group}, {way}", way, settings)
    for name in ALONE:
        value = next(settings[name] for settings in HOSTILE.values() if name in settings)
        compare(name, "my.cnf", {name: value}, only=("many rows",))
    assert differing == {}
