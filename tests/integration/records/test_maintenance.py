"""What every family promises of its upkeep: counts, expiry, vacuum, and tenants apart."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pymysql
import pytest

from locus_mysql import CheckpointStore, Database, MySQLConfig
from locus_mysql.cli.main import main
from locus_mysql.errors import InvalidInput
from locus_mysql.families.registry import families, find_family
from locus_mysql.records.maintenance import Maintenance

from ..commands import Succeed, dsn_of
from ..conftest import MakeConfig
from ..contract.samples import SAMPLES
from ..killed_commands import killed
from ..rows_read import rows_read

pytestmark = pytest.mark.usefixtures("toy_family")

RunSql = Callable[..., tuple[Any, ...]]

#: Families of owners and parts; and memU's records, which never expire.
DECLARED = ("agents", "graphs", "dicts", "current", "memories", "working", "transcripts", "toys")
FAMILIES = (*DECLARED, "memu")

#: Tables that say only when was written, and columns of the search, which later writes of others may fill.
DERIVED = ("ledger", "scopes")


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


def test_every_family_is_covered() -> None:
    assert {*FAMILIES} == {family.name for family in families()}


def fill(config: MySQLConfig, family: str, tenant: str, *names: str) -> None:
    """Store content under some names, with several rows each."""

    async def filling() -> None:
        store = SAMPLES[family].open(config.model_copy(update={"tenant": tenant}), "pymysql-sync")
        for name in names:
            await SAMPLES[family].fill(store, name)
        await store.close()

    asyncio.run(filling())


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
    tables = find_family(family).tables(config)[0]
    key = ", ".join(("tenant", *tables.owner.key))
    return set(run_sql(f"SELECT {key} FROM {config.database}.`{tables.names[tables.owner.role]}`"))


def expire(run_sql: RunSql, config: MySQLConfig, family: str, keys: set[tuple[Any, ...]]) -> int:
    """Let owners expire; return the number of those of the tenant ``default``."""
    if family != "memu":
        tables = find_family(family).tables(config)[0]
        where = " AND ".join(f"{one} = %s" for one in ("tenant", *tables.owner.key))
        table = f"{config.database}.`{tables.names[tables.owner.role]}`"
        for key in keys:
            run_sql(f"UPDATE {table} SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR WHERE {where}", *key)
    return sum(key[0] == "default" for key in keys)


def counts(printed: str) -> dict[str, int]:
    """Return the numbers in a sentence by their nouns."""
    return {noun.rstrip("s"): int(number) for number, noun in re.findall(r"(\d+) (\w+(?: \w+)?)", printed)}


def test_vacuum_removes_what_has_expired_of_the_tenant_and_nothing_else(
    family: str, config: MySQLConfig, succeed: Succeed, run_sql: RunSql
) -> None:
    fill(config, family, "default", "stays")
    stays, kept = rows(run_sql, config, family, "default"), owners(run_sql, config, family)
    for tenant in ("default", "acme"):
        fill(config, family, tenant, "gone", "gone too")
    number = expire(run_sql, config, family, owners(run_sql, config, family) - kept)
    expired = rows(run_sql, config, family, "default") - stays
    others = rows(run_sql, config, family, "acme")
    noun = find_family(family).tables(config)[0].owner.noun
    shown = succeed("health", "--family", family)
    assert f" {number} expired {noun}s" in shown
    planned = succeed("vacuum", "--older-than-days", "30", "--family", family, "--dry-run")
    assert f" {number} expired {noun}s" in planned
    assert rows(run_sql, config, family, "default") == expired + stays
    removed = succeed("vacuum", "--older-than-days", "30", "--family", family)
    assert next(iter(counts(removed).values())) >= number
    assert rows(run_sql, config, family, "default") == stays != Counter()
    assert rows(run_sql, config, family, "acme") == others
    assert " 0 expired" in succeed("health", "--family", family)


@pytest.mark.parametrize("family", FAMILIES)
def test_vacuum_forgets_old_tokens_and_no_others(
    family: str, config: MySQLConfig, succeed: Succeed, run_sql: RunSql
) -> None:
    fill(config, family, "default", "one", "two")
    ledger = f"{config.database}.`{find_family(family).schema(config).names[-1]}`"
    run_sql(f"INSERT INTO {ledger} VALUES ('acme', REPEAT('o', 16), NULL, UTC_TIMESTAMP(6) - INTERVAL 16 MINUTE)")
    run_sql(f"INSERT INTO {ledger} VALUES ('acme', REPEAT('n', 16), NULL, UTC_TIMESTAMP(6) - INTERVAL 14 MINUTE)")
    before = run_sql(f"SELECT * FROM {ledger}")
    succeed("vacuum", "--older-than-days", "30", "--family", family)
    after = run_sql(f"SELECT * FROM {ledger}")
    assert {row[1] for row in before} - {row[1] for row in after} == {b"o" * 16}


@pytest.mark.parametrize("family", FAMILIES)
def test_health_and_stats_count_what_is_live_of_the_tenant(
    family: str, config: MySQLConfig, succeed: Succeed, run_sql: RunSql
) -> None:
    fill(config, family, "default", "one", "two")
    fill(config, family, "acme", "one")
    kept = owners(run_sql, config, family)
    if family != "memu":
        fill(config, family, "default", "gone")
    expire(run_sql, config, family, owners(run_sql, config, family) - kept)
    found = json.loads(succeed("health", "--family", family, "--json"))["families"][0]["stored"][0]["number"]
    acme = json.loads(succeed("health", "--family", family, "--json", "--tenant", "acme"))["families"][0]["stored"][0]
    assert found == 2 * acme["number"] > 0
    assert succeed("stats", "--family", family)


def test_parts_without_an_owner_are_removed_and_no_others(
    config: MySQLConfig, succeed: Succeed, run_sql: RunSql
) -> None:
    fill(config, "toys", "default", "ball", "car", "doll")
    run_sql(f"DELETE FROM {config.database}.locus_toys WHERE name = 'car'")
    succeed("vacuum", "--family", "toys")
    left = run_sql(f"SELECT name, COUNT(*) FROM {config.database}.locus_toy_wheels GROUP BY name ORDER BY name")
    assert left == (("ball", 4), ("doll", 4))


def test_vacuum_needs_an_age_if_a_family_removes_by_age(
    config: MySQLConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["vacuum"])
    assert "required: --older-than-days" in capsys.readouterr().err


def test_vacuum_of_several_families_names_each(config: MySQLConfig, succeed: Succeed) -> None:
    for one in ("dicts", "memories", "working", "toys"):
        fill(config, one, "default", "one")
    lines = succeed("vacuum", "--older-than-days", "1").splitlines()
    assert [line.split()[-1] for line in lines] == ["dicts.", "memories.", "working.", "toys."]
    assert lines[0] == "Removed nothing of dicts."
    assert lines[2] == "Removed nothing of working."


def named_tenants(succeed: Succeed, family: str) -> dict[str, int]:
    """Return what ``tenants`` prints of a family: the rows by tenant."""
    found = json.loads(succeed("tenants", "--family", family, "--json"))["tenants"]
    return {one["tenant"]: one["rows"] for one in found}


@pytest.mark.parametrize("family", FAMILIES)
def test_tenants_are_listed_with_rows_bytes_and_last_write(
    family: str, config: MySQLConfig, succeed: Succeed, run_sql: RunSql
) -> None:
    fill(config, family, "default", "one", "two")
    fill(config, family, "acme", "one")
    for table in find_family(family).schema(config).names:
        run_sql(f"ANALYZE TABLE {config.database}.`{table}`")
    found = json.loads(succeed("tenants", "--family", family, "--json"))["tenants"]
    assert [one["tenant"] for one in found] == ["acme", "default"]
    assert found[1]["rows"] == 2 * found[0]["rows"] > 0
    assert 0 < found[0]["bytes"] <= found[1]["bytes"]
    assert found[0]["written_at"] is not None
    if family != "toys":
        age = datetime.now(UTC) - datetime.fromisoformat(found[0]["written_at"]).replace(tzinfo=UTC)
        assert abs(age) < timedelta(hours=1)
    together = json.loads(succeed("stats", "--family", family, "--all-tenants", "--json"))["all_tenants"][family]
    assert (together["tenants"], together["rows"]) == (2, found[0]["rows"] + found[1]["rows"])
    shown = succeed("tenants", "--family", family, "--after", "acme", "-n", "1")
    assert shown.startswith(f"default: {family}, {found[1]['rows']} rows, about ")
    first = json.loads(succeed("tenants", "--family", family, "-n", "1", "--json"))
    assert first == {"tenants": found[:1], "cursor": "acme"}
    assert json.loads(succeed("tenants", "--after", "acme", "-n", "1", "--json"))["cursor"] is None


def test_a_list_of_tenants_reads_only_their_rows(
    config: MySQLConfig, server: pymysql.Connection[Any], run_sql: RunSql
) -> None:
    fill(config, "toys", "t", "one", "two")
    declared = find_family("toys").tables(config)[0]
    table = f"{config.database}.`{declared.names[declared.owner.role]}`"
    columns = ", ".join(f"`{name}`" for name in declared.kinds(declared.owner) if name != "tenant")
    for _ in range(8):
        run_sql(
            f"INSERT INTO {table} (tenant, {columns}) "
            f"SELECT CONCAT(tenant, LPAD((SELECT COUNT(*) FROM {table}), 5, '0')), {columns} FROM {table}"
        )
    run_sql(f"USE {config.database}")
    found, read = rows_read(server, Maintenance(declared).tenants())
    assert len(found) == 256
    assert read <= 2 * 256 + 2


def test_vacuum_of_all_tenants_is_completed_after_it_was_killed(
    family: str, config: MySQLConfig, succeed: Succeed, run_sql: RunSql
) -> None:
    fill(config, family, "acme", "stays")
    stays, kept = rows(run_sql, config, family, "acme"), owners(run_sql, config, family)
    for tenant in ("acme", "default", "umbrella"):
        fill(config, family, tenant, "gone")
    expire(run_sql, config, family, owners(run_sql, config, family) - kept)
    command = ("vacuum", "--older-than-days", "30", "--family", family, "--all-tenants")
    planned = json.loads(succeed(*command, "--dry-run", "--json"))["removed"][family]
    assert killed("removal", 2, *command, items=2)
    ledger = find_family(family).schema(config).names[-1]
    run_sql(f"UPDATE {config.database}.`{ledger}` SET recorded_at = '2026-01-01' WHERE tenant = ''")
    left = json.loads(succeed(*command, "--dry-run", "--json"))["removed"][family]
    assert 0 < left[0]["number"] < planned[0]["number"]
    succeed(*command)
    assert rows(run_sql, config, family, "acme") == stays
    assert rows(run_sql, config, family, "default") == rows(run_sql, config, family, "umbrella") == Counter()
    assert " of all tenants" in succeed("health", "--family", family, "--all-tenants")
    assert named_tenants(succeed, family).keys() == {"acme"}


@pytest.mark.parametrize("family", ["working", "transcripts", "toys"])
def test_vacuum_removes_what_a_killed_import_left(
    family: str, config: MySQLConfig, succeed: Succeed, run_sql: RunSql, tmp_path: Path
) -> None:
    fill(config, family, "default", "one")
    fill(config, family, "acme", "another")
    kept, file = rows(run_sql, config, family, "acme"), str(tmp_path / "rows")
    succeed("export", file, "--family", family)
    assert killed("transaction", 3, "import", file, "--tenant", "acme", items=2)
    assert rows(run_sql, config, family, "acme") > kept
    succeed("vacuum", "--family", family, "--all-tenants")
    assert rows(run_sql, config, family, "acme") == kept


@pytest.mark.parametrize("family", FAMILIES)
def test_one_job_at_a_time_is_claimed_until_it_ends(family: str, config: MySQLConfig, run_sql: RunSql) -> None:
    fill(config, family, "default", "one")
    maintenance, ledger = find_family(family).maintenance(config), find_family(family).schema(config).names[-1]
    with Database(config) as database:

        def claim(holder: int) -> bool:
            return database.synchronous.run(maintenance.claim("vacuum", holder))

        assert [claim(one) for one in (1, 2, 1, 2)] == [True, False, True, False]
        run_sql(
            f"UPDATE {config.database}.`{ledger}` SET recorded_at = recorded_at - INTERVAL 31 SECOND WHERE tenant = ''"
        )
        assert [claim(one) for one in (2, 1)] == [True, False]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tenant_is_forgotten_whole_after_a_kill_too_and_no_other(
    family: str, config: MySQLConfig, succeed: Succeed, run_sql: RunSql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(config, family, "default", "one", "two", "three")
    fill(config, family, "acme", "one")
    others = rows(run_sql, config, family, "acme")
    mine = sorted(key for key in owners(run_sql, config, family) if key[0] == "default")
    expire(run_sql, config, family, set(mine[:1]))
    listed = json.loads(succeed("forget", "--tenant", "default", "--dry-run"))["families"][family]
    file = tmp_path / "receipt"
    command = ("forget", "--tenant", "default", "--yes", "--receipt", str(file), "--by", "ticket 1")
    assert killed("removal", 1 if family in ("memories", "memu") else 2, *command, items=2)
    monkeypatch.setattr(Maintenance.named, "__defaults__", ("*", None, 2))  # several pages
    receipt = json.loads(succeed(*command))
    assert receipt["families"][family]["owners"] == listed["owners"] > 0
    assert len(listed["names"]) >= listed["owners"]
    assert receipt["by"].startswith("ticket 1 as ")
    assert json.loads(file.read_text()) == receipt
    assert receipt["ended_at"] >= receipt["began_at"]
    assert rows(run_sql, config, family, "default") == Counter()
    assert rows(run_sql, config, family, "acme") == others
    if family == "memories":
        assert run_sql(f"SELECT DISTINCT tenant FROM {config.database}.locus_memory_scopes") == (("acme",),)
    assert named_tenants(succeed, family).keys() == {"acme"}
    assert main(command) == 1  # the receipt is finished


@pytest.mark.parametrize("family", FAMILIES)
def test_owners_are_forgotten_by_their_names_and_no_others(
    family: str,
    config: MySQLConfig,
    succeed: Succeed,
    run_sql: RunSql,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(config, family, "default", "two")
    others = rows(run_sql, config, family, "default")
    fill(config, family, "default", "one")
    mapping = tmp_path / "owners"
    mapping.write_text(json.dumps({family: ["*one*", "*none*"]}))
    receipt = json.loads(succeed("forget", "--owners", str(mapping), "--yes"))
    assert receipt["families"][family]["owners"] > 0
    assert rows(run_sql, config, family, "default") == others
    assert main(["forget", "--owner", "*one*", "--owner", "*none*", "--yes"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["families"][family]["owners"] == 0
    assert printed.err == "Nothing is stored of tenant 'default', under such names.\n"


async def test_code_forgets_too_and_empties_the_caches(config: MySQLConfig) -> None:
    async with Database(config.model_copy(update={"driver": "aiomysql"})) as database:
        store = CheckpointStore(database)
        for name in ("u-1/a", "u-2/a"):
            await store.save(name, {"secret": name})
        receipt = await database.forget(owners={"dicts": "u-1/*"}, by="me")
        assert receipt.families["dicts"].owners == receipt.families["dicts"].parts == 1
        assert await store.list_threads() == ["u-2/a"]
        assert await store.load("u-1/a") is None
        assert await store.load("u-2/a") == {"secret": "u-2/a"}
        with pytest.raises(InvalidInput, match="Name the customer"):
            await database.forget()
        with pytest.raises(InvalidInput, match="no family"):
            await database.forget(owners={"cars": "*"})
    with Database(config) as blocking:
        assert blocking.forget_blocking(owners="u-2/*").families["dicts"].owners == 1
