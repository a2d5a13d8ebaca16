"""Values that an engine must keep distinct, and calls that it must refuse."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from locus_mysql import Database, SyncCheckpointStore, SyncMemoryStore
from locus_mysql.cli import main as cli
from locus_mysql.dialect import Statement
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.drivers.interface import ServerError, find_driver
from locus_mysql.engine.failures import leaves_fate_unknown, may_pass
from locus_mysql.engine.operation import Batch
from locus_mysql.errors import LocusMySQLError, UnsupportedServer
from locus_mysql.families.migrating import migrate
from locus_mysql.families.registry import register_family, unregister_family
from locus_mysql.integrations.langgraph import MySQLSaver
from locus_mysql.memory import Put

from .commands import dsn_of
from .conftest import MakeConfig
from .engines import ENGINE
from .families.test_migrating import UpgradedToys, check
from .families.toys import ToyOperations

#: Ids that a collation may treat as equal, in the order of their code points.
ALIKE = ("A", "a", "a\t", "a ", "a  ", "\u00e4", "a\u0308")


def test_the_items_of_one_write_have_one_time_and_later_writes_a_later_one(make_config: MakeConfig) -> None:
    with SyncMemoryStore(make_config()) as store:
        for turn in range(5):
            store.put_batch([Put((name,), f"{turn}-{n}", n, ttl_s=60) for name in "ab" for n in (2, 0, 1)])
        found = store.search((), limit=100)
        assert [hit.item.key for hit in found] == [f"{turn}-{n}" for turn in range(4, -1, -1) for n in (0, 1, 2) * 2]
        times = [(hit.item.created_at, hit.item.updated_at, hit.item.expires_at) for hit in found]
        assert len({*times}) == 5
        assert all(created == updated for created, updated, _ in times)


if ENGINE == "oceanbase":

    def test_a_family_that_does_not_hold_there_is_refused_before_a_table_is_created(
        make_config: MakeConfig, run_sql: Callable[..., tuple[Any, ...]], database: str
    ) -> None:
        config = make_config()
        toys = ToyOperations(config)
        with Database(config) as db:
            with pytest.raises(UnsupportedServer, match=r"'toys' are not supported on OceanBase"):
                db.synchronous.run(toys.put("bear"), toys.schema, "create")
            with pytest.raises(UnsupportedServer):
                db.synchronous.run(toys.find(["bear"]), toys.schema, "off")
        assert run_sql(f"SHOW TABLES FROM {database}") == ()

    def test_migrations_are_refused_and_their_printed_statements_upgrade_the_tables(
        make_config: MakeConfig,
        run_sql: Callable[..., tuple[Any, ...]],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setattr(OCEANBASE, "families", OCEANBASE.families | {"toys"})
        config = make_config(driver="pymysql")
        check(config, 1, "create")
        run_sql(
            f"INSERT INTO {config.database}.locus_toys (tenant, name, broken, version, crc)"
            " VALUES ('t', 'bear', 0, RANDOM_BYTES(16), 0)"
        )
        register_family(UpgradedToys(3))
        try:
            with pytest.raises(UnsupportedServer, match=r"changes nothing there.*migrate --sql --family toys"):
                migrate(config, family="toys")
            command = ["migrate", "--sql", "--family", "toys", "--dsn", dsn_of(config), "--driver", "pymysql"]
            assert cli.main(command) == 0
            printed = capsys.readouterr().out
            for statement in re.sub(r"^--.*$", "", printed, flags=re.MULTILINE).split(";")[:-1]:
                run_sql(statement.replace("`locus_", f"`{config.database}`.`locus_"))
            assert cli.main(["migrate", *command[2:]]) == 0
            assert capsys.readouterr().out == "current  toys, layout 3\n"
        finally:
            unregister_family("toys")
        check(config, 3)
        assert run_sql(f"SELECT label = 'a bear' FROM {config.database}.locus_toys") == ((1,),)

    def test_a_statement_that_takes_longer_than_the_limit_is_ended(make_config: MakeConfig) -> None:
        with (
            SyncCheckpointStore(make_config(select_timeout_s=0.2, retry_deadline_s=1)) as store,
            pytest.raises(LocusMySQLError, match="ob_query_timeout"),
        ):
            store.database.synchronous.run(_slow(), None, "off")

    def test_the_plan_of_a_load_of_a_graph_is_cached(
        make_config: MakeConfig, run_sql: Callable[..., tuple[Any, ...]], database: str
    ) -> None:
        config: Any = {"configurable": {"thread_id": database, "checkpoint_ns": ""}}
        with Database(make_config(cache_bytes=0)) as db:
            saver = MySQLSaver(db)
            saved = saver.put(config, empty_checkpoint(), {"source": "loop", "step": 0, "parents": {}}, {})
            for _ in range(10):  # the server drops plans when other tests fill its cache
                assert all(MySQLSaver(db).get_tuple(saved) for _ in range(3))
                ((hits,),) = run_sql(
                    "SELECT SUM(hit_count) FROM oceanbase.V$OB_PLAN_CACHE_PLAN_STAT WHERE query_sql LIKE %s",
                    f"WITH%{database}%",
                )
                if hits:
                    break
        assert hits >= 2

    def test_a_transaction_that_was_rolled_back_is_repeated_and_its_fate_asked(make_config: MakeConfig) -> None:
        """The error (6002) is the one of a change of the partition's leader; here, a timeout comes before it."""
        config = make_config()
        with closing(find_driver("pymysql").connect(config, config.endpoints[0])) as connection:
            connection.execute(
                (Statement("SET @@SESSION.ob_trx_timeout = 300000"), Statement("CREATE TABLE t (a INT)"))
            )
            connection.execute((Statement("BEGIN"), Statement("INSERT INTO t VALUES (1)")))
            time.sleep(1)
            with pytest.raises(ServerError, match="timeout"):
                connection.execute((Statement("INSERT INTO t VALUES (2)"),))
            with pytest.raises(ServerError, match="rollbacked") as raised:
                connection.execute((Statement("COMMIT"),))
        assert may_pass(raised.value, config)
        assert leaves_fate_unknown(raised.value)


def _slow() -> Any:
    yield Batch((Statement("SELECT SLEEP(5)"),))
