"""Every family works while other sessions use up the server's memory for temporary tables (MySQL bug 112704)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pymysql
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from pymysql.cursors import SSCursor

from examples.year.memory import read_everything, work
from locus_mysql import MySQLConfig, SyncMemoryStore
from locus_mysql.cli import main as cli
from locus_mysql.families.registry import families
from locus_mysql.inspection.inspector import Inspector
from locus_mysql.integrations.langgraph import MySQLSaver

from ..commands import dsn_of
from ..conftest import ONE_OF_EACH, MakeConfig, OpenStore
from ..connecting import connect

OwnSQL = Callable[..., tuple[Any, ...]]

NUMBERS = "JSON_TABLE(CONCAT('[0', REPEAT(',0', 199), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) AS {}"
# Holds a temporary table in memory until all of its rows are read.
LARGE = (
    f"SELECT DISTINCT CONCAT(a.n, '-', b.n, REPEAT('x', 200))  FROM {NUMBERS.format('a')} JOIN {NUMBERS.format('b')}"
)
RECURSIVE = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r"


@pytest.fixture
def config(own_config: MakeConfig, own_sql: OwnSQL) -> Iterator[MySQLConfig]:
    """Yield the configuration of an ordinary account, on a server without memory for temporary tables."""
    made = own_config()
    own_sql("CREATE USER ordinary IDENTIFIED BY 'a'")
    own_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, REFERENCES ON {made.database}.* TO ordinary")
    ((before,),) = own_sql("SELECT @@GLOBAL.temptable_max_ram")
    own_sql("SET GLOBAL temptable_max_ram = 2097152")
    with ExitStack() as held:
        for _ in range(3):
            connection = connect(made)
            held.callback(connection._force_close)
            cursor = connection.cursor(SSCursor)
            cursor.execute(LARGE)  # the server sends rows while it finds them, until the client reads no more
            held.callback(setattr, cursor._result, "unbuffered_active", False)  # else PyMySQL reads them at the end
        with pytest.raises(pymysql.err.ProgrammingError, match="#sql"):
            own_sql(RECURSIVE)
        yield made.model_copy(update={"user": "ordinary", "password": type(made.password)("a")})
    own_sql(f"SET GLOBAL temptable_max_ram = {before}")
    own_sql("DROP USER ordinary")


def test_every_family_writes_reads_and_is_inspected(config: MySQLConfig, capsys: pytest.CaptureFixture[str]) -> None:
    names = {family.name for family in families() if not family.on_request}
    asyncio.run(work(config, "May"))
    assert {name for name, *_ in asyncio.run(read_everything(config))} == names

    async def inspect() -> int:
        async with Inspector(config) as inspector:
            threads = 0
            assert set(await inspector.families()) == names
            for family in ("agents", "graphs", "dicts", "current", "transcripts"):
                await inspector.statistics(family)
                await inspector.growth(family)
                for thread in (await inspector.threads(family)).items:
                    assert await inspector.history(family, thread.thread_id)
                    assert await inspector.state(family, thread.thread_id) is not None
                    threads += 1
            await inspector.search("parcel")
            await inspector.by_metadata("step", 1, family="dicts")
            return threads

    assert asyncio.run(inspect()) > 3
    assert cli.main(["vacuum", "--older-than-days", "30", "--dsn", dsn_of(config)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_a_store_saves_finds_and_removes(config: MySQLConfig, open_store: OpenStore, side: str) -> None:
    store = open_store(side, config=config, keep_checkpoints=3, pool_size=2)
    names = [f"t{number}" for number in range(8)]
    for step in range(12):  # the saves of a step wait for two connections, and so share transactions
        await asyncio.gather(*(store.save(name, {"log": ["plum"] * step}, metadata={"kind": "a"}) for name in names))
    for name in names:
        assert len(await store.list_checkpoints(name)) == 3
        assert await open_store(side, config=config).load(name) == {"log": ["plum"] * 11}
        assert len(await store.history(name)) == 3
    assert {hit["thread_id"] for hit in await store.search("plum", 100)} == set(names)
    assert len(await store.query_by_metadata("kind", "a")) == 24
    assert len(await store.list_threads()) == len(await store.list_with_metadata()) == 8
    assert len(await store.search_data("log", ["plum"] * 11)) == 8
    assert await store.vacuum(0) == 24


def test_graphs_are_read_listed_and_pruned(config: MySQLConfig) -> None:
    thread: dict[str, Any] = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with MySQLSaver(config) as saver:
        written: Any = thread
        for step in range(4):
            saved = {**empty_checkpoint(), "channel_values": {"a": step}, "channel_versions": {"a": step + 1}}
            written = saver.put(written, saved, {"source": "loop", "step": step}, {"a": step + 1})
        assert saver.get_tuple(thread).checkpoint["channel_values"] == {"a": 3}  # type: ignore[union-attr]
        assert [found.checkpoint["channel_values"]["a"] for found in saver.list(thread)] == [3, 2, 1, 0]
        saver.prune(["t"])
        assert len(list(saver.list(thread))) == 1


def test_memories_are_searched(config: MySQLConfig) -> None:
    with SyncMemoryStore(config, dims=2) as memories:
        memories.put(("users",), "tea", {"text": "Ada likes tea"}, embedding=[0.5, 0.25])
        assert [hit.item.key for hit in memories.search(("users",), query="tea")] == ["tea"]
        assert [hit.item.key for hit in memories.search(("users",), embedding=[0.5, 0.25])] == ["tea"]
