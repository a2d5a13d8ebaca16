"""What every family promises of exports, imports and copies: rows as they are, complete or not at all, resumable."""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from locus_mysql import Database, MemoryStore, MySQLConfig, SyncCheckpointStore
from locus_mysql.families.registry import find_family
from locus_mysql.memory import Put
from locus_mysql.records.moving import Moving
from locus_mysql.records.owner_reader import OwnerReader
from locus_mysql.records.tables import Tables
from locus_mysql.records.transfer import RowSource, RowTarget, copy_rows
from locus_mysql.transfer.engine import TransferReport

from ...thoroughness import FULL
from ..commands import Run, dsn_of
from ..conftest import MakeConfig
from ..contract.samples import SAMPLES
from ..encryption.conftest import keys
from ..killed_commands import killed

pytestmark = pytest.mark.usefixtures("toy_family")

RunSql = Callable[..., tuple[Any, ...]]

FAMILIES = ("dicts", "current", "graphs", "memories", "transcripts", "working", "toys")

#: The family whose records have no parts, are not encrypted, and have ids that are unique among all tenants.
MEMU = "memu"

#: Columns that are made anew, or that tell who uses the owner or whether words are indexed.
ANEW = {
    *("locus_tenant", "locus_seals", "locus_scope"),
    *("tenant", "sid", "epoch", "seal", "checksum", "crc", "removed", "stamp"),
    *("search_text", "pending_text", "unindexed"),
}
SEALED = {"payload", "chunk", "content", "state", "value", "embedding"}

#: Tables that other tables determine, or that say only when was written.
DERIVED = {"ledger", "signs", "scopes"}


def declared(config: MySQLConfig, family: str) -> Tables:
    """Return the declaration of a family; of memU, that of its items."""
    return next(one for one in find_family(family).tables(config) if family != "memu" or one.owner.role == "items")


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=(*FAMILIES, MEMU))
def any_family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def elsewhere(family: str) -> tuple[str, ...]:
    """Return the arguments of an import that name a place without rows."""
    return ("--tenant", "acme", *(("--table-prefix", "other_") if family == MEMU else ()))


def config_elsewhere(config: MySQLConfig, family: str) -> MySQLConfig:
    """Return the configuration of that place."""
    prefix = {"table_prefix": "other_"} if family == MEMU else {}
    return config.model_copy(update={"tenant": "acme", **prefix})


@pytest.fixture(params=["at once", "in several transactions"] if FULL else ["one of both"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let owners fit into one transaction, or not; in short runs the name of a test decides, so of its family."""
    if request.param == "in several transactions" or (not FULL and random.Random(request.node.name).random() < 0.5):
        monkeypatch.setattr(Moving, "max_rows", 2)


@pytest.fixture
def config(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> MySQLConfig:
    config = make_config(driver="pymysql")
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    monkeypatch.setenv("LOCUS_MYSQL_DRIVER", "pymysql")
    return config


def fill(config: MySQLConfig, family: str, *names: str) -> None:
    async def filling() -> None:
        store = SAMPLES[family].open(config, "pymysql-sync")
        for name in names:
            await SAMPLES[family].fill(store, name)
        await store.close()

    asyncio.run(filling())


def as_async(config: MySQLConfig) -> MySQLConfig:
    return config.model_copy(update={"driver": "aiomysql"})


def read(config: MySQLConfig, family: str, name: str) -> object:
    async def reading() -> object:
        store = SAMPLES[family].open(config, "pymysql-sync")
        found = await SAMPLES[family].read(store, name)
        await store.close()
        return found

    return asyncio.run(reading())


def stored(run_sql: RunSql, config: MySQLConfig, family: str) -> dict[str, list[Any]]:
    """Return the rows of the tenant with all columns but `ANEW`, and without the bytes of seals."""
    found = {}
    for table in find_family(family).schema(config).names:
        if table.rpartition("_")[2] in DERIVED:
            continue
        columns = [
            name
            for (name,) in run_sql(
                "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
                " AND EXTRA NOT LIKE '%%GENERATED%%' ORDER BY ORDINAL_POSITION",
                config.database,
                table,
            )
            if name not in ANEW
        ]
        valid = f"{'locus_' if family == MEMU else ''}tenant = %s"
        valid += " AND removed = 0" if table.endswith("vectors") else ""
        rows = run_sql(f"SELECT {', '.join(columns)} FROM {config.database}.`{table}` WHERE {valid}", config.tenant)
        without_seals = [
            tuple(
                value[:1] + value[5:] if name in SEALED and isinstance(value, bytes) else value
                for name, value in zip(columns, row, strict=True)
            )
            for row in rows
        ]
        found[table.removeprefix(config.table_prefix)] = sorted(without_seals, key=repr)
    return found


def owners_in(file: Path) -> dict[str, list[Any]]:
    """Return the complete owners in a file of rows, each with its rows."""
    owners: dict[str, list[Any]] = {}
    name = ""
    for line in map(json.loads, file.read_bytes().splitlines()[1:-1]):
        if "owner" in line:
            name = json.dumps(line["owner"])
            owners[name] = []
        elif "part" in line:
            owners[name].append((line["part"], line["row"]))
        else:
            del owners[name]
    return owners


def test_all_tenants_are_exported_after_a_kill_too_and_imported_each_as_it_was(
    config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path
) -> None:
    tenants = ("acme", "Acme", "\N{SNOWMAN}/" * 64)
    configs = [config.model_copy(update={"tenant": tenant}) for tenant in tenants]
    for own in configs:
        fill(own, "dicts", "one", "two")
        fill(own, "working", "one")
    folder = tmp_path / "all"
    export = ("export", str(folder), "--all-tenants")
    assert killed("write", 30, *export, items=2)
    assert not folder.exists()
    code, _, error = run(*export, "--family", "dicts", "--thread", "one")
    assert (code, "was left by another export, of other rows" in error) == (1, True), error
    assert run(*export)[0] == 0
    assert len([*folder.iterdir()]) == 6
    assert run(*export)[0] == run("import", str(folder), "--tenant", "acme")[0] == 1
    for _ in range(2):  # the second import compares with what is stored
        code, out, error = run("import", str(folder), "--table-prefix", "other_")
        assert code == 0, error
    assert out.startswith("Imported 0 rows, ")
    for own in configs:
        for family in ("dicts", "working"):
            copied = stored(run_sql, own.model_copy(update={"table_prefix": "other_"}), family)
            assert copied == stored(run_sql, own, family) != {}
    file = next(folder.glob("acme-*.dicts.jsonl"))
    file.write_bytes(file.read_bytes()[:-9])
    assert f"{file}: Line " in run("import", str(folder))[2]


async def copy(source: MySQLConfig, target: MySQLConfig, family: str, **options: Any) -> TransferReport:
    found, report, messages = find_family(family), TransferReport("row"), list[str]()
    report.notify = messages.append
    async with Database(source) as reading, Database(target) as writing:
        rows = RowSource(found.tables(source), source, reading)
        await copy_rows(rows, RowTarget(found.tables(target), target, writing, **options), report)
    report.not_given = {*messages}
    return report


def damage(run_sql: RunSql, config: MySQLConfig, family: str) -> str:
    """Change a byte of one sealed value of a part, and return the table."""
    tables = declared(config, family)
    column = next(
        one
        for one in tables.encrypted_columns()
        if one.table != tables.names[tables.owner.role]
        and run_sql(f"SELECT 1 FROM {config.database}.`{one.table}` WHERE LENGTH({one.column}) > 10")
    )
    where = f"LENGTH({column.column}) > 10 ORDER BY {', '.join(column.key)} DESC LIMIT 1"
    changed = f"{column.column} = INSERT({column.column}, 10, 1, '#')"
    run_sql(f"UPDATE {config.database}.`{column.table}` SET {changed} WHERE {where}")
    return str(column.table)


def change(run_sql: RunSql, config: MySQLConfig, family: str, name: str) -> None:
    """Change an owner as a write does, of memories the last item of the name, and remove its last part."""
    tables = declared(config, family)
    owner, part = tables.owner, tables.parts[0]
    column = (owner.version or owner.epoch)[0]
    database = config.database
    named = f"{owner.named or 'name'} = %s"
    value = f"{column} + 1" if column in ("revision", "stamp") else f"RANDOM_BYTES({8 if column == 'epoch' else 16})"
    if family == "memories":
        named, value = "item_key = '5' AND path LIKE CONCAT(%s, '%%')", "version + 1"
    run_sql(f"UPDATE {database}.`{tables.names[owner.role]}` SET {column} = {value} WHERE {named}", name)
    link = ", ".join(tables.link)
    run_sql(
        f"DELETE FROM {database}.`{tables.names[part.role]}` WHERE ({link}) IN (SELECT {link} FROM"
        f" {database}.`{tables.names[owner.role]}` WHERE {named}) ORDER BY {', '.join(part.key)} DESC LIMIT 1",
        name,
    )


def test_every_column_is_imported_under_another_prefix_and_tenant(
    any_family: str, size: None, config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path
) -> None:
    family = any_family
    fill(config, family, "one", "two")
    file = str(tmp_path / "rows")
    assert run("export", file, "--family", family)[0] == 0
    before = stored(run_sql, config, family)
    assert sum(map(len, before.values())) > 2
    to = ("--table-prefix", "other_", "--tenant", "acme")
    code, out, errors = run("import", file, *to)
    assert (code, errors) == (0, "")
    other = config.model_copy(update={"table_prefix": "other_", "tenant": "acme"})
    assert stored(run_sql, other, family) == before
    for name in ("one", "two"):
        assert read(other, family, name) == read(config, family, name)
    code, out, _ = run("import", file, *to)
    assert code == 0
    assert "Imported 0 rows" in out
    assert f"{sum(map(len, before.values())):,} already present" in out
    assert stored(run_sql, other, family) == before


@pytest.mark.parametrize(("before", "after"), [(None, "2026-11"), ("2026-10", None), ("2026-10", "2026-11")])
def test_a_copy_is_sealed_anew(
    family: str, size: None, make_config: MakeConfig, before: str | None, after: str | None
) -> None:
    source, target = (
        make_config(driver="pymysql", table_prefix=prefix, encryption=key and keys(key, key), search=False)
        for prefix, key in (("locus_", before), ("other_", after))
    )
    fill(source, family, "one")
    report = asyncio.run(copy(as_async(source), as_async(target), family, verify=True))
    assert report.complete, report
    assert report.verified == report.copied > 1
    assert read(target, family, "one") == read(source, family, "one")
    again = asyncio.run(copy(as_async(source), as_async(target), family))
    assert (again.copied, again.present) == (0, report.copied)


def test_a_damaged_row_is_named_and_left_out(
    family: str, size: None, config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path
) -> None:
    fill(config, family, "one", "two")
    assert run("export", str(tmp_path / "all"), "--family", family)[0] == 0
    damage(run_sql, config, family)
    code, _, errors = run("export", str(tmp_path / "rows"), "--family", family)
    assert code == 1
    assert "cannot be read back" in errors
    every, rest = owners_in(tmp_path / "all"), owners_in(tmp_path / "rows")
    assert rest.keys() == every.keys()
    assert [len(every[name]) - len(rest[name]) for name in every if every[name] != rest[name]] == [1]
    assert run("import", str(tmp_path / "rows"), "--tenant", "acme")[0] == 0


def test_a_killed_export_continues(any_family: str, config: MySQLConfig, run: Run, tmp_path: Path) -> None:
    family = any_family
    fill(config, family, *(f"name {number}" for number in range(6)))
    whole, file = tmp_path / "whole", tmp_path / "rows"
    assert run("export", str(whole), "--family", family)[0] == 0
    for at in (3, 2, 4) if FULL else (3, 2):
        assert killed("write", at, "export", str(file), "--family", family, items=2)
    code, _, errors = run("export", str(file), "--family", family)
    assert code == 0
    assert "Continuing" in errors
    assert owners_in(file) == owners_in(whole)
    file.rename(tmp_path / "rows.part")  # as if it had been killed before it gave the file its name
    assert run("export", str(file), "--family", family)[0] == 0
    assert owners_in(file) == owners_in(whole)


@pytest.mark.parametrize("what", ["read", "transaction"])
def test_a_killed_import_leaves_no_part_of_an_owner_and_is_completed(
    any_family: str, what: str, config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path
) -> None:
    family = any_family
    fill(config, family, "one", "two", "three")
    file, seen = tmp_path / "rows", tmp_path / "seen"
    assert run("export", str(file), "--family", family)[0] == 0
    other = elsewhere(family)
    for at in (2, 3, 4) if FULL else (2, 4):
        assert killed(what, at, "import", str(file), *other, items=2)
        if run("export", str(seen), "--family", family, *other)[0] == 0:
            assert same_owners(owners_in(seen), family) <= same_owners(owners_in(file), family)
    assert run("import", str(file), *other)[0] == 0
    assert stored(run_sql, config_elsewhere(config, family), family) == stored(run_sql, config, family)


@pytest.mark.parametrize("family", [one for one in FAMILIES if one != "current"])  # which has one row an owner
def test_rows_of_a_killed_import_do_not_stay_beside_those_of_the_next(
    family: str, config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path
) -> None:
    fill(config, family, "one")
    older, newer = str(tmp_path / "older"), str(tmp_path / "newer")
    assert run("export", older, "--family", family)[0] == 0
    assert killed("transaction", 3, "import", older, "--tenant", "acme", items=2)
    change(run_sql, config, family, "one")
    assert run("export", newer, "--family", family)[0] == 0
    for _ in range(2):  # the first one may find these rows at its end, and removes them
        run("import", newer, "--tenant", "acme", "--overwrite")
    assert stored(run_sql, config.model_copy(update={"tenant": "acme"}), family) == stored(run_sql, config, family)


def same_owners(owners: dict[str, list[Any]], family: str) -> set[str]:
    """Return owners with their rows as texts; of graphs without the epoch, which is made anew."""
    return {json.dumps([] if family == "graphs" else name) + json.dumps(rows) for name, rows in owners.items()}


def test_an_owner_that_is_written_to_meanwhile_is_read_again(
    family: str, config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Moving, "max_rows", 1)
    fill(config, family, "one")
    pages = OwnerReader._continue
    calls = 0

    def changed(self: Any, reading: Any) -> Any:
        nonlocal calls
        calls += family != "memories" or reading.owner["item_key"] == b"5"
        if calls == 2:
            change(run_sql, config, family, "one")
        return (yield from pages(self, reading))

    monkeypatch.setattr(OwnerReader, "_continue", changed)
    file = tmp_path / "rows"
    assert run("export", str(file), "--family", family)[0] == 0
    assert file.read_text().count('"restart"') == 1
    assert run("import", str(file), "--tenant", "acme")[0] == 0
    assert stored(run_sql, config.model_copy(update={"tenant": "acme"}), family) == stored(run_sql, config, family)


def test_an_owner_that_is_written_to_whenever_it_is_read_is_left_out(
    family: str, config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Moving, "max_rows", 1)
    fill(config, family, "one", "two")
    begin = OwnerReader._begin

    def changed(self: Any, owner: Any, tries: int = 1, **options: Any) -> Any:
        page = yield from begin(self, owner, tries, **options)
        if family != "memories" or owner["item_key"] == b"5":
            change(run_sql, config, family, "one")
        return page

    monkeypatch.setattr(OwnerReader, "_begin", changed)
    code, _, errors = run("export", str(tmp_path / "rows"), "--family", family)
    assert code == 1
    assert "was written to whenever it was read" in errors
    assert run("import", str(tmp_path / "rows"), "--tenant", "acme")[0] == 0
    acme = config.model_copy(update={"tenant": "acme"})
    assert read(acme, family, "two") == read(config, family, "two")


def test_another_owner_of_the_name_is_replaced_only_if_asked(
    family: str, size: None, config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path
) -> None:
    fill(config, family, "one", "two")
    acme = config.model_copy(update={"tenant": "acme"})
    fill(acme, family, "one")
    own = stored(run_sql, acme, family)
    command = ["copy", "--family", family, "--from", "mysql", "--to", f"{dsn_of(config)}?tenant=acme"]
    code, _, errors = run(*command)
    assert code == 1
    assert re.search("one'.* differs in the tables. --overwrite replaces it.", errors)
    left = stored(run_sql, acme, family)
    assert all(row in left[table] for table, rows in own.items() for row in rows)
    assert run(*command, "--overwrite")[0] == 0
    assert stored(run_sql, acme, family) == stored(run_sql, config, family)


def test_a_dry_run_counts_and_makes_nothing(any_family: str, config: MySQLConfig, run: Run, run_sql: RunSql) -> None:
    family = any_family
    fill(config, family, "one")
    rows = sum(map(len, stored(run_sql, config, family).values()))
    tables = run_sql(f"SHOW TABLES FROM {config.database}")
    to = f"{dsn_of(config)}?table_prefix=other_"
    code, out, _ = run("copy", "--family", family, "--from", "mysql", "--to", to, "--dry-run")
    assert (code, out) == (0, f"To copy: {rows} rows.\n")
    assert run_sql(f"SHOW TABLES FROM {config.database}") == tables


@pytest.mark.slow
@pytest.mark.parametrize("family", (*FAMILIES, MEMU) if FULL else ("dicts", "memories", MEMU))
def test_imports_side_by_side_double_and_lose_nothing(
    family: str, config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path
) -> None:
    fill(config, family, *(f"name {number}" for number in range(6)))
    file = str(tmp_path / "rows")
    assert run("export", file, "--family", family)[0] == 0
    with ThreadPoolExecutor(3) as threads:
        ended = [
            threads.submit(killed, "transaction", 10**6, "import", file, *elsewhere(family), items=2) for _ in range(3)
        ]
        assert [one.result() for one in ended] == [False] * 3
    assert stored(run_sql, config_elsewhere(config, family), family) == stored(run_sql, config, family)


HEAD = '{"format":"locus-mysql rows 1","family":"toys","layout":1,"tenant":"default"}\n'
TIMES = '"2026-01-01 00:00:00.000000","2026-01-01 00:00:00.000000",null'
TOY = f'{{"owner":["ball",0,{{"b":"AAAAAAAAAAAAAAAAAAAAAA=="}},{TIMES}]}}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + TOY, "was cut off"),
        (HEAD + TOY[:10], "Line 2"),
        (HEAD + "not JSON\n", "Line 2: It is damaged"),
        (HEAD + "[" * 100_000 + "]" * 100_000 + "\n", "Line 2: It is damaged"),
        (HEAD + TOY.replace("0,", "1e999,"), "Line 2: It is damaged"),
        (HEAD + TOY.replace("0,", "9" * 5_000 + ","), "Line 2: It is damaged"),
        (HEAD + TOY.replace("0,", "true,"), "Line 2: A value is null, a whole number"),
        (HEAD + TOY.replace('"ball"', '"\\ud800"'), "Line 2: A value"),
        (HEAD + TOY.replace("ball", "b" * 129) + '{"end":{"items":1}}\n', "Data too long"),
        (HEAD + '{"owner":["ball"]}\n', "Line 2: The row must have 6 values"),
        (HEAD + '{"part":"none","row":[]}\n', "Line 2: A line is a row of a table"),
        (HEAD + TOY + '{"part":"wheels","row":[1,{"b":"?"}]}\n', "Line 3: Bytes must be in base 64"),
        (HEAD + TOY + '{"end":{"items":2}}\n', "had 2 rows when it was written, and has 1"),
        (HEAD + TOY + '{"end":{"items":1}}\n' + TOY, "continues after its last line"),
        (HEAD.replace('"layout":1', '"layout":9'), "have layout 9, and the tables have layout 1"),
        ('{"format":"locus-mysql threads 1","family":"dicts"}\n', "cannot import"),
        ("", "Line 1"),
        (HEAD + TOY.replace("]}\n", '],"crc32":"00000000"}\n'), "checksum"),
    ],
)
def test_damage_in_a_file_is_reported_with_its_line_and_imports_nothing(
    config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "damaged"
    file.write_text(text)
    code, _, errors = run("import", str(file))
    assert code == 1
    assert words in errors
    assert "Traceback" not in errors
    made = run_sql(f"SHOW TABLES FROM {config.database} LIKE '%%toys'")
    assert not made or not stored(run_sql, config, "toys")["toys"]


@pytest.mark.slow
def test_rows_go_through_a_pipe(config: MySQLConfig) -> None:
    fill(config, "dicts", "one")
    exported = subprocess.run(
        [sys.executable, "-m", "locus_mysql", "export", "-", "--family", "dicts"], capture_output=True, check=True
    )
    taken = subprocess.run(
        [sys.executable, "-m", "locus_mysql", "import", "-", "--tenant", "acme"],
        input=exported.stdout,
        capture_output=True,
    )
    assert (taken.returncode, taken.stdout) == (0, b"Imported 5 rows.\n")


async def test_an_export_of_small_owners_needs_few_round_trips(make_config: MakeConfig) -> None:
    config = make_config(driver="aiomysql")
    async with Database(config) as database, MemoryStore(database, dims=2) as store:
        await store.put_batch([Put(("n", str(n % 3)), f"k{n}", {"n": n}, embedding=[n + 1, 2]) for n in range(2_000)])
        before = database.stats().round_trips
        source = RowSource(find_family("memories").tables(config), config, database)
        rows = sum([len(unit.page.records) async for unit in source.units()])
        assert rows == 4_000
        assert database.stats().round_trips - before <= 12


async def test_an_export_of_large_owners_reads_pages_of_bounded_size(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Moving, "max_bytes", 20_000)
    config = make_config(driver="aiomysql", search=False)
    async with Database(config) as database, MemoryStore(database) as store:
        await store.put_batch([Put(("n",), f"k{n:03}", "x" * (n * 100)) for n in range(100)])
        source = RowSource(find_family("memories").tables(config), config, database)
        pages = [[len(record.values[2]) for record in unit.page.records] async for unit in source.units()]
    assert sum(map(len, pages)) == 100
    assert max(sum(page[:-1]) for page in pages) <= 20_000


def named(file: Path) -> set[str]:
    return {json.loads(name)[0] for name in owners_in(file)}


def test_some_owners_are_exported(config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path) -> None:
    fill(config, "dicts", "a", "b/ü:*", "b2")
    file = tmp_path / "rows"

    def exported(*arguments: str) -> set[str]:
        assert run("export", str(file), "--family", "dicts", *arguments)[0] == 0
        return named(file)

    assert exported("--thread", "a", "--thread", "none") == {"a"}
    assert exported("--pattern", "b*") == {"b/ü:*", "b2"}
    assert exported("--pattern", "b/ü:*") == {"b/ü:*"}
    assert exported("--since", "2999-01-01") == set()
    run_sql(f"UPDATE {config.database}.locus_store_threads SET updated_at = '2026-01-01' WHERE thread_id = 'a'")
    assert exported("--since", "2026-01-02") == {"b/ü:*", "b2"}
    assert exported("--tenant", "nobody") == set()
    code, _, errors = run("export", str(file), "--family", "transcripts", "--pattern", "b*")
    assert code == 1
    assert "An export of transcripts cannot be limited by pattern" in errors


def test_an_export_of_other_owners_does_not_continue_this_one(config: MySQLConfig, run: Run, tmp_path: Path) -> None:
    fill(config, "dicts", "a", "b")
    export = ["export", str(tmp_path / "rows"), "--family", "dicts"]
    assert killed("write", 3, *export, "--thread", "b", items=2)
    for others in ([], ["--thread", "a"], ["--pattern", "b*"], ["--thread", "b", "--since", "2000-01-01"]):
        code, _, errors = run(*export, *others)
        assert code == 1
        assert "was left by another export" in errors
    assert run(*export, "--thread", "b")[0] == 0
    assert named(tmp_path / "rows") == {"b"}


def test_an_export_without_tables_writes_nothing(config: MySQLConfig, run: Run, tmp_path: Path) -> None:
    for arguments in (["-"], ["-", "--thread", "t"], [str(tmp_path / "rows")]):
        code, out, errors = run("export", *arguments)
        assert (code, out) == (1, "")
        assert "has no tables with prefix 'locus_'" in errors
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("family", [one for one in FAMILIES if one != "toys"])  # toys do not expire
def test_an_expired_owner_is_left_out_and_makes_room(
    family: str, size: None, config: MySQLConfig, run: Run, run_sql: RunSql, tmp_path: Path
) -> None:
    fill(config, family, "one")
    file = tmp_path / "rows"
    assert run("export", str(file), "--family", family)[0] == 0
    before = stored(run_sql, config, family)
    owner = declared(config, family)
    table = f"{config.database}.`{owner.names[owner.owner.role]}`"
    run_sql(f"UPDATE {table} SET expires_at = '2026-01-01'")
    assert run("import", str(file))[0] == 0
    assert stored(run_sql, config, family) == before
    run_sql(f"UPDATE {table} SET expires_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR")
    assert run("export", str(file), "--family", family)[0] == 0
    ((expires_at,),) = run_sql(f"SELECT CAST(MAX(expires_at) AS CHAR) FROM {table}")
    text = re.sub(r',"crc32":"[0-9a-f]{8}"', "", file.read_text())
    file.write_text(re.sub(f'"{expires_at[:13]}[^"]*"(?=[],])', '"2026-01-01"', text))
    code, _, errors = run("import", str(file), "--tenant", "acme")
    assert code == 1
    assert "was left out: it has expired" in errors


def test_words_of_imported_states_are_found(config: MySQLConfig, run: Run, tmp_path: Path) -> None:
    fill(config, "dicts", "one")
    file = str(tmp_path / "rows")
    assert run("export", file, "--family", "dicts")[0] == 0
    assert run("import", file, "--tenant", "acme")[0] == 0
    with SyncCheckpointStore(config.model_copy(update={"tenant": "acme"})) as store:
        assert {hit["thread_id"] for hit in store.search("Zanzibar", 20)} == {"one"}
