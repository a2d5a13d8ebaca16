"""Upgrades of a toy family's tables from layout 1 to 3, on a real server: every step may be the last one."""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import alembic.command
import alembic.config
import pytest

from locus_mysql import Database, MySQLConfig
from locus_mysql.cli import main as cli
from locus_mysql.dialect import Schema
from locus_mysql.dialect.schema import Step, Table, Upgrade, add_column, add_index, backfill
from locus_mysql.engine.bootstrap import describe, ensure_schema
from locus_mysql.errors import NewerLayout, OlderLayout, PrivilegeMissing, SchemaMismatch, Unavailable
from locus_mysql.families.migrating import migrate
from locus_mysql.families.registry import register_family, unregister_family
from locus_mysql.records import ledger as ledgers

from ..commands import dsn_of
from ..conftest import MakeConfig
from .toys import TOYS, ToyFamily, table_names

RunSQL = Callable[..., tuple[Any, ...]]

#: Number of toys, and of those that one transaction of the backfill looks at.
TOY_COUNT, AT_ONCE = 25, 4


def toys_of_layout(number: int, table_prefix: str) -> Schema:
    """Return the toys' tables: layout 2 has a column and an index more, layout 3 another column, which is filled.

    Layout 2 also has a table more, to which layout 3 adds a column.
    """
    names = table_names(table_prefix)
    toys, key = names["toys"], ("tenant", "name")
    definition = TOYS
    if number > 1:
        definition = definition.replace("  PRIMARY KEY", "  shelf INT NULL,\n  PRIMARY KEY")
        definition = definition.replace("updated_at)\n)", "updated_at),\n  KEY by_shelf (tenant, shelf)\n)")
    if number > 2:
        definition = definition.replace("  PRIMARY KEY", "  label VARCHAR(128) NULL,\n  PRIMARY KEY")
    fill = backfill(
        toys, key, assignments="label = CONCAT('a ', name)", condition="label IS NULL", words="fill label", rows=AT_ONCE
    )
    shelves = f"{table_prefix}toy_shelves"
    label = "  label INT NULL,\n" if number > 2 else ""
    added = Table(shelves, f"(\n  shelf INT NOT NULL,\n{label}  PRIMARY KEY (shelf)\n)")
    upgrades = (
        Upgrade(2, 1, (add_column(toys, "shelf", "INT NULL"), add_index(toys, "by_shelf", "tenant, shelf"))),
        Upgrade(3, 2, (add_column(toys, "label", "VARCHAR(128) NULL"), fill, add_column(shelves, "label", "INT NULL"))),
    )
    tables = (Table(toys, definition), ledgers.table(names["ledger"]), *([added] if number > 1 else []))
    return Schema("toys", number, tables, upgrades=upgrades[: number - 1])


class UpgradedToys(ToyFamily):
    """The family of a version with another layout."""

    def __init__(self, number: int) -> None:
        self.number = number

    def schema(self, config: MySQLConfig) -> Schema:
        return toys_of_layout(self.number, config.table_prefix)


class Killed(Exception):
    """Ends a migration before a step."""


@pytest.fixture
def config(make_config: MakeConfig, run_sql: RunSQL, monkeypatch: pytest.MonkeyPatch) -> Iterator[MySQLConfig]:
    """Yield the configuration of a schema with toys of layout 1; the registered family has layout 3."""
    config = make_config(driver="pymysql", retry_deadline_s=8)
    with Database(config) as database:
        database.synchronous.run(ensure_schema(config, toys_of_layout(1, "locus_"), "create"))
    rows = ", ".join(f"('t', 'toy{index:03}', 0, UUID_TO_BIN(UUID()), {index})" for index in range(TOY_COUNT))
    run_sql(f"INSERT INTO {config.database}.locus_toys (tenant, name, broken, version, crc) VALUES {rows}")
    register_family(UpgradedToys(3))
    yield config
    unregister_family("toys")


def check(config: MySQLConfig, number: int, mode: Any = "validate") -> None:
    """Use the tables as a program of a layout."""
    with Database(config) as database:
        database.synchronous.run(ensure_schema(config, toys_of_layout(number, "locus_"), mode))


def check_migrated(config: MySQLConfig, run_sql: RunSQL) -> None:
    check(config, 3)
    with Database(config) as database:
        assert database.synchronous.run(describe(toys_of_layout(3, "locus_"))).differences == ((), ())
    right = "COUNT(label = CONCAT('a ', name) OR NULL)"
    assert run_sql(f"SELECT COUNT(*), {right} FROM {config.database}.locus_toys") == ((TOY_COUNT, TOY_COUNT),)


def words(steps: list[Step]) -> list[str]:
    return [step.words for step in steps]


ALL = [
    "create table locus_toy_shelves",
    "add column shelf to locus_toys",
    "add index by_shelf to locus_toys",
    "add column label to locus_toys",
    "fill label",
]


def test_tables_are_upgraded_over_two_layouts_and_then_current(config: MySQLConfig, run_sql: RunSQL) -> None:
    for mode in ("create", "validate"):
        with pytest.raises(OlderLayout, match="migrate --family toys"):
            check(config, 3, mode)
    steps: list[Step] = []
    (found,) = migrate(config, family="toys", report=steps.append)
    assert (found.layout, found.wanted) == (1, 3)
    assert words(steps) == ALL
    check_migrated(config, run_sql)
    check(config, 2)  # the comment says that these can still use the tables
    with pytest.raises(NewerLayout, match="too old"):
        check(config, 1)
    (found,) = migrate(config, family="toys", report=steps.append)
    assert (found.pending, found.steps, len(steps)) == (False, (), len(ALL))


@pytest.mark.parametrize("last", range(len(ALL)))
def test_a_migration_that_was_ended_before_any_step_is_continued(
    config: MySQLConfig, run_sql: RunSQL, last: int
) -> None:
    done: list[Step] = []

    def report(step: Step) -> None:
        if len(done) == last:
            raise Killed
        done.append(step)

    with pytest.raises(Killed):
        migrate(config, family="toys", report=report)
    with pytest.raises(OlderLayout):
        check(config, 3)
    later: list[Step] = []
    migrate(config, family="toys", report=later.append)
    assert words(later) == ALL[last:]
    check_migrated(config, run_sql)


def test_one_that_was_ended_between_the_comments_of_two_tables_is_continued(
    config: MySQLConfig, run_sql: RunSQL
) -> None:
    migrate(config, family="toys")
    run_sql(f"ALTER TABLE {config.database}.locus_toy_ledger COMMENT = 'locus-mysql: toys layout 2, usable from 1'")
    run_sql(f"UPDATE {config.database}.locus_toys SET label = NULL WHERE name > 'toy010'")  # as if it was half filled
    with pytest.raises(OlderLayout, match="locus_toy_ledger"):
        check(config, 3)
    migrate(config, family="toys")
    check_migrated(config, run_sql)


def test_a_transaction_that_keeps_a_table_ends_the_migration_which_is_continued_later(
    config: MySQLConfig, run_sql: RunSQL
) -> None:
    short = config.model_copy(update={"retry_deadline_s": 1.0})
    run_sql("START TRANSACTION")
    run_sql(f"SELECT COUNT(*) FROM {config.database}.locus_toys")
    try:
        began = time.monotonic()
        with pytest.raises(Unavailable, match=r"add column shelf .*metadata_locks .*run the migration again"):
            migrate(short, family="toys")
        assert time.monotonic() - began < 60
    finally:
        run_sql("ROLLBACK")
    migrate(config, family="toys")
    check_migrated(config, run_sql)


def test_the_error_for_an_account_without_alter_has_the_grants_and_with_them_it_succeeds(
    make_config: MakeConfig, config: MySQLConfig, run_sql: RunSQL, capsys: pytest.CaptureFixture[str]
) -> None:
    name, database = f"migrates_{secrets.token_hex(6)}", config.database
    account = f"'{name}'@'%'"
    run_sql(f"CREATE USER {account} IDENTIFIED BY 'Its-secret-1'")
    run_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.* TO {account}")
    own = make_config(driver="pymysql", user=name, password="Its-secret-1", retry_deadline_s=8)
    try:
        with pytest.raises(PrivilegeMissing, match="grants --migrate"):
            migrate(own, family="toys")
        run_sql(f"REVOKE ALL ON {database}.* FROM {account}")
        options = ["--family", "toys", "--database", str(database), "--account", account]
        assert cli.main(["grants", "--migrate", *options]) == 0
        for grant in capsys.readouterr().out.splitlines():
            run_sql(grant.rstrip(";"))
        migrate(own, family="toys")
    finally:
        run_sql(f"DROP USER {account}")
    check_migrated(config, run_sql)


def test_the_command_shows_prints_and_carries_out_the_steps(
    config: MySQLConfig, run_sql: RunSQL, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    assert cli.main(["migrate", "--check"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("older    toys, layout 1; this version needs layout 3:\n")
    assert all(f"step     {one}\n" in shown for one in ALL)
    assert cli.main(["migrate", "--sql", "--family", "toys"]) == 0
    printed = capsys.readouterr().out
    assert "ADD KEY `by_shelf` (tenant, shelf), ALGORITHM=INPLACE, LOCK=NONE;" in printed
    for statement in re.sub(r"^--.*$", "", printed, flags=re.MULTILINE).split(";")[:-1]:
        run_sql(statement.replace("`locus_", f"`{config.database}`.`locus_").replace(f"LIMIT {AT_ONCE}", ""))
    check_migrated(config, run_sql)
    assert cli.main(["migrate"]) == 0
    assert capsys.readouterr().out == "current  toys, layout 3\n"


@pytest.mark.parametrize("options", [[], ["--check"], ["--sql"], ["--family", "toys"], ["--family", "toys", "--check"]])
def test_without_tables_the_command_succeeds_and_names_the_prefix_and_tables_with_another(
    options: list[str], config: MySQLConfig, run_sql: RunSQL, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["migrate", *options, "--dsn", dsn_of(config), "--driver", "pymysql", "--table-prefix", "wrong_"]
    found = f"Database {config.database!r} has no tables{' of family ' if '--family' in options else ' '}"
    assert cli.main(command) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{'-- ' if '--sql' in options else ''}Nothing to migrate. {found}")
    assert "with prefix 'wrong_'" in printed
    assert printed.endswith(" Existing tables of locus-mysql in this database: toys with prefix 'locus_'.\n")
    run_sql(f"DROP TABLE {config.database}.locus_toys, {config.database}.locus_toy_ledger")
    assert cli.main(command) == 0
    assert "Existing tables" not in capsys.readouterr().out
    assert run_sql(f"SHOW TABLES FROM {config.database}") == ()


def test_tables_of_two_prefixes_are_upgraded_one_by_one(config: MySQLConfig, run_sql: RunSQL) -> None:
    other = config.model_copy(update={"table_prefix": "other_"})
    with Database(other) as database:
        database.synchronous.run(ensure_schema(other, toys_of_layout(1, "other_"), "create"))
    migrate(config, family="toys")
    check_migrated(config, run_sql)
    with Database(other) as database, pytest.raises(OlderLayout, match="other_toys"):
        database.synchronous.run(ensure_schema(other, toys_of_layout(3, "other_"), "create"))


def test_a_layout_without_steps_and_foreign_tables_are_refused(config: MySQLConfig, run_sql: RunSQL) -> None:
    for comment, said in (("locus-mysql: toys layout 0", "has no steps"), ("of the shop", "not made by locus-mysql")):
        run_sql(f"ALTER TABLE {config.database}.locus_toys COMMENT = '{comment}'")
        with pytest.raises(SchemaMismatch, match=said):
            migrate(config, family="toys")


#: The environment of a project that uses Alembic.
ALEMBIC_ENV = """
from alembic import context
from sqlalchemy import create_engine

with create_engine(context.config.get_main_option("sqlalchemy.url")).connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
"""


def test_a_revision_of_alembic_runs_the_same_steps(
    config: MySQLConfig, run_sql: RunSQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "versions").mkdir()
    (tmp_path / "env.py").write_text(ALEMBIC_ENV)
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
    (revision,) = re.findall(r"```python\n(\"{3}Upgrade the tables.*?)```", page, flags=re.DOTALL)
    (tmp_path / "versions" / "4c1f0e8a7b21_upgrade.py").write_text(revision)
    monkeypatch.setenv("LOCUS_MYSQL_DSN", f"{dsn_of(config)}?driver=pymysql")
    project = alembic.config.Config()
    project.set_main_option("script_location", str(tmp_path))
    project.set_main_option("path_separator", "os")
    url = dsn_of(config).split("?")[0].replace("mysql://", "mysql+pymysql://")
    project.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    alembic.command.upgrade(project, "head")
    check_migrated(config, run_sql)
    assert run_sql(f"SELECT version_num FROM {config.database}.alembic_version") == (("4c1f0e8a7b21",),)


#: Rows that make InnoDB build an index for a while.
MANY_ROWS = """
INSERT INTO {database}.locus_toys (tenant, name, broken, version, crc)
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
SELECT 'extra', CONCAT(a.i, '/', b.i), 0, UUID_TO_BIN(UUID()), 0 FROM n a, n b
"""


def running_alter(config: MySQLConfig, run_sql: RunSQL) -> int:
    """Wait until the server builds the index; return the id of its connection."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = run_sql(
            "SELECT PROCESSLIST_ID FROM performance_schema.threads WHERE PROCESSLIST_DB = %s"
            " AND PROCESSLIST_INFO LIKE 'ALTER TABLE%%ADD KEY%%' AND PROCESSLIST_STATE LIKE 'alter%%'",
            config.database,
        )
        if found:
            return int(found[0][0])
    raise AssertionError("The index was not built.")


def test_a_migration_that_lost_its_lock_with_its_connection_waits_for_the_one_that_has_it(
    config: MySQLConfig, run_sql: RunSQL
) -> None:
    others_turn, first_steps, second_steps = threading.Event(), list[Step](), list[Step]()
    connections = "SELECT id FROM information_schema.processlist WHERE db = %s"

    def lose_the_lock(step: Step) -> None:
        first_steps.append(step)
        if len(first_steps) == 1:
            ((connection,),) = run_sql(connections, config.database)
            run_sql(f"KILL {connection}")
            others_turn.set()
            assert second_has_the_lock.wait(60)

    def wait_for_the_first(step: Step) -> None:
        second_steps.append(step)
        if len(second_steps) == 1:
            second_has_the_lock.set()
            assert wait([first], timeout=2).not_done  # without the lock, it ends within milliseconds
            assert words(first_steps) == ALL[:1]

    second_has_the_lock = threading.Event()
    with ThreadPoolExecutor(2) as executor:
        first = executor.submit(migrate, config, family="toys", report=lose_the_lock)
        assert others_turn.wait(60)
        second = executor.submit(migrate, config, family="toys", report=wait_for_the_first)
        second.result(timeout=90)
        first.result(timeout=90)
    assert words(second_steps) == ALL
    assert words(first_steps) == ALL[:1]  # the other had carried out all steps
    check_migrated(config, run_sql)


@pytest.mark.slow
def test_a_migration_whose_connection_is_killed_while_the_server_alters_a_table_is_completed(
    config: MySQLConfig, run_sql: RunSQL
) -> None:
    run_sql(MANY_ROWS.format(database=config.database))
    with ThreadPoolExecutor(1) as executor:
        running = executor.submit(migrate, config, family="toys")
        killed = running_alter(config, run_sql)
        run_sql(f"KILL {killed}")
        run_sql(f"DELETE FROM {config.database}.locus_toys WHERE tenant = 'extra'")
        running.result(timeout=60)
    check_migrated(config, run_sql)
