"""What every family promises of its upkeep: counts, expiry, vacuum, and tenants apart."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from locus.core.state import AgentState

from locus_mysql import Database, MySQLConfig, SyncMySQLCheckpointer
from locus_mysql.cli.main import main
from locus_mysql.families.registry import families, find_family, register_family, unregister_family
from locus_mysql.integrations.memu import MemuDatabase

from ..cli.test_main import dsn_of
from ..conftest import MakeConfig
from ..encryption.samples import SAMPLES
from ..families import toys

RunSql = Callable[..., tuple[Any, ...]]
Run = Callable[..., str]

#: Families of owners and parts; and memU's records, which never expire.
DECLARED = ("agents", "graphs", "dicts", "current", "memories", "working", "transcripts", "toys")
FAMILIES = (*DECLARED, "memu")

#: Tables that say only when was written, and columns of the search, which later writes of others may fill.
DERIVED = ("ledger", "scopes")


@pytest.fixture(autouse=True)
def toy_family() -> Iterator[None]:
    """Register the family that exists only in the tests."""
    register_family(toys.ToyFamily())
    yield
    unregister_family("toys")


@pytest.fixture(params=DECLARED)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def config(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> MySQLConfig:
    config = make_config(driver="pymysql", search=False)
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    monkeypatch.setenv("LOCUS_MYSQL_DRIVER", "aiomysql")
    monkeypatch.setenv("LOCUS_MYSQL_SEARCH", "false")
    return config


@pytest.fixture
def run(config: MySQLConfig, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command, which must succeed, and returns its output."""

    def run(*arguments: str) -> str:
        assert main(arguments) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


def test_every_family_is_covered() -> None:
    assert {*FAMILIES} == {family.name for family in families()}


def fill(config: MySQLConfig, family: str, tenant: str, *names: str) -> None:
    """Store content under some names, with several rows each."""
    config = config.model_copy(update={"tenant": tenant})
    if family == "toys":
        operations = toys.ToyOperations(config)
        with Database(config) as database:
            for name in names:
                database.synchronous.run(operations.put(name, wheels=[b"1", b"2"]), operations.schema, "create")
    elif family == "agents":
        with SyncMySQLCheckpointer(config) as store:
            for name in names:
                for _ in range(2):
                    store.save(AgentState(run_id=name), name)
    elif family == "memu":
        with MemuDatabase(config) as memu:
            for name in names:
                memu.memory_item_repo.create_item(
                    memory_type="event", summary=name, embedding=None, user_data={"user_id": name}
                )
    else:
        asyncio.run(_fill(config, family, names))


async def _fill(config: MySQLConfig, family: str, names: tuple[str, ...]) -> None:
    store = SAMPLES[family].open(config, "pymysql-sync")
    for name in names:
        await SAMPLES[family].fill(store, name)
    await store.close()


def rows(run_sql: RunSql, config: MySQLConfig, family: str, tenant: str) -> Counter[str]:
    """Return all rows of a tenant."""
    found: Counter[str] = Counter()
    for table in find_family(family).schema(config).names:
        if table.rpartition("_")[2] in DERIVED:
            continue
        where = "tenant = %s AND removed = 0" if table.endswith("vectors") else "tenant = %s"
        if table.endswith("signs"):
            where = "SUBSTRING_INDEX(owner, 0x00, 1) = %s"
        if family == "memu":
            where = "locus_tenant = %s"
        found.update(
            f"{table} {row}" for row in run_sql(f"SELECT * FROM {config.database}.`{table}` WHERE {where}", tenant)
        )
    return found


def owners(run_sql: RunSql, config: MySQLConfig, family: str) -> set[tuple[Any, ...]]:
    """Return the keys of all owners, with their tenants."""
    if family == "memu":
        return set()
    tables = find_family(family).tables(config)  # type: ignore[attr-defined]
    key = ", ".join(("tenant", *tables.owner.key))
    return set(run_sql(f"SELECT {key} FROM {config.database}.`{tables.names[tables.owner.role]}`"))


def expire(run_sql: RunSql, config: MySQLConfig, family: str, keys: set[tuple[Any, ...]]) -> int:
    """Let owners expire; return the number of those of the tenant ``default``."""
    if family != "memu":
        tables = find_family(family).tables(config)  # type: ignore[attr-defined]
        where = " AND ".join(f"{one} = %s" for one in ("tenant", *tables.owner.key))
        table = f"{config.database}.`{tables.names[tables.owner.role]}`"
        for key in keys:
            run_sql(f"UPDATE {table} SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR WHERE {where}", *key)
    return sum(key[0] == "default" for key in keys)


def counts(printed: str) -> dict[str, int]:
    """Return the numbers in a sentence by their nouns."""
    return {noun.rstrip("s"): int(number) for number, noun in re.findall(r"(\d+) (\w+(?: \w+)?)", printed)}


def test_vacuum_removes_what_has_expired_of_the_tenant_and_nothing_else(
    family: str, config: MySQLConfig, run: Run, run_sql: RunSql
) -> None:
    fill(config, family, "default", "stays")
    stays, kept = rows(run_sql, config, family, "default"), owners(run_sql, config, family)
    for tenant in ("default", "acme"):
        fill(config, family, tenant, "gone", "gone too")
    number = expire(run_sql, config, family, owners(run_sql, config, family) - kept)
    expired = rows(run_sql, config, family, "default") - stays
    others = rows(run_sql, config, family, "acme")
    noun = find_family(family).tables(config).owner.noun  # type: ignore[attr-defined]
    shown = run("health", "--family", family)
    assert f" {number} expired {noun}s" in shown
    planned = run("vacuum", "--older-than-days", "30", "--family", family, "--dry-run")
    assert f" {number} expired {noun}s" in planned
    assert rows(run_sql, config, family, "default") == expired + stays
    removed = run("vacuum", "--older-than-days", "30", "--family", family)
    assert next(iter(counts(removed).values())) >= number
    assert rows(run_sql, config, family, "default") == stays != Counter()
    assert rows(run_sql, config, family, "acme") == others
    assert " 0 expired" in run("health", "--family", family)


def test_vacuum_forgets_old_tokens_and_no_others(family: str, config: MySQLConfig, run: Run, run_sql: RunSql) -> None:
    fill(config, family, "default", "one", "two")
    ledger = f"{config.database}.`{find_family(family).schema(config).names[-1]}`"
    run_sql(f"INSERT INTO {ledger} VALUES ('acme', REPEAT('o', 16), NULL, UTC_TIMESTAMP(6) - INTERVAL 16 MINUTE)")
    run_sql(f"INSERT INTO {ledger} VALUES ('acme', REPEAT('n', 16), NULL, UTC_TIMESTAMP(6) - INTERVAL 14 MINUTE)")
    before = run_sql(f"SELECT * FROM {ledger}")
    run("vacuum", "--older-than-days", "30", "--family", family)
    after = run_sql(f"SELECT * FROM {ledger}")
    assert {row[1] for row in before} - {row[1] for row in after} == {b"o" * 16}


@pytest.mark.parametrize("family", FAMILIES)
def test_health_and_stats_count_what_is_live_of_the_tenant(
    family: str, config: MySQLConfig, run: Run, run_sql: RunSql
) -> None:
    fill(config, family, "default", "one", "two")
    fill(config, family, "acme", "one")
    kept = owners(run_sql, config, family)
    if family != "memu":
        fill(config, family, "default", "gone")
    expire(run_sql, config, family, owners(run_sql, config, family) - kept)
    found = json.loads(run("health", "--family", family, "--json"))["families"][0]["stored"][0]["number"]
    acme = json.loads(run("health", "--family", family, "--json", "--tenant", "acme"))["families"][0]["stored"][0]
    assert found == 2 * acme["number"] > 0
    assert run("stats", "--family", family)


def test_parts_without_an_owner_are_removed_and_no_others(config: MySQLConfig, run: Run, run_sql: RunSql) -> None:
    fill(config, "toys", "default", "ball", "car", "doll")
    run_sql(f"DELETE FROM {config.database}.locus_toys WHERE name = 'car'")
    run("vacuum", "--family", "toys")
    left = run_sql(f"SELECT name, COUNT(*) FROM {config.database}.locus_toy_wheels GROUP BY name ORDER BY name")
    assert left == (("ball", 2), ("doll", 2))


def test_vacuum_needs_an_age_if_a_family_removes_by_age(
    config: MySQLConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["vacuum"])
    assert "required: --older-than-days" in capsys.readouterr().err


def test_vacuum_of_several_families_names_each(config: MySQLConfig, run: Run) -> None:
    for one in ("dicts", "memories", "working", "toys"):
        fill(config, one, "default", "one")
    lines = run("vacuum", "--older-than-days", "1").splitlines()
    assert [line.split()[-1] for line in lines] == ["dicts.", "memories.", "working.", "toys."]
    assert lines[0] == "Removed 0 checkpoints of dicts."
    assert lines[2] == "Removed 0 expired sessions and 0 records of recent writes of working."
