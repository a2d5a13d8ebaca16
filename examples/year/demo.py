"""The chapter on a team's year: from tables of layout 1 to another server, and everything is read at each step."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from ci.local_server import LocalServer, find_mysqld
from locus_mysql import Encryption, MySQLConfig
from locus_mysql.dialect.statement import Statement
from locus_mysql.engine.execution import AsyncEngine
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.errors import EncryptionError, SetupError
from locus_mysql.families.registry import families

from ..database import own_tables
from ..display import Screen
from ..shell import Shell
from .memory import Contents, read_everything, work

#: All families but memU's, which refuses encryption.
FAMILIES = tuple(family for family in families() if not family.on_request)


@dataclass
class Team:
    """A team, its database, and what its agents should remember.

    Args:
        screen: Where the year is shown.
        config: The database; after a move, the other one.
        keys: The text of `Encryption.from_text`, with the active key first; empty before encryption.
        expected: Everything stored, as it was read last.
    """

    screen: Screen
    config: MySQLConfig
    keys: str = ""
    expected: Contents = field(default_factory=dict)

    async def check_nothing_lost(self, where: str) -> None:
        """Read everything, and compare it with what was read before."""
        found = await read_everything(self.config)
        counted = len({family for family, *_ in found})
        claim = f"{where}: all {len(self.expected)} entries of {counted} families are as they were"
        self.screen.check(found == self.expected and counted == len(FAMILIES), claim)

    async def work(self, month: str) -> None:
        """Let agents work for a month, which adds to every family and changes nothing that exists."""
        await work(self.config, month)
        found = await read_everything(self.config)
        kept = {key: found.get(key) for key in self.expected} == self.expected
        added = {family for family, *_ in found.keys() - self.expected.keys()}
        self.screen.check(kept and len(added) == len(FAMILIES), f"agents work in {month}: every family has more")
        self.expected = found

    def use_keys(self, *names: str) -> None:
        """Deploy keys, the active one first; those of new names are made."""
        known = dict(pair.split("=", 1) for pair in self.keys.split())
        made = {name: base64.b64encode(secrets.token_bytes(32)).decode() for name in names if name not in known}
        self.keys = " ".join(f"{name}={(known | made)[name]}" for name in names)
        self.config = with_keys(self.config, self.keys)

    def shell(self, *program: str) -> Shell:
        """Return a shell with the team's database and keys."""
        plain = self.config.model_copy(update={"encryption": None})
        return Shell(self.screen, plain, program or ("locus_mysql",), {"LOCUS_MYSQL_ENCRYPTION": self.keys})


async def run_demo(config: MySQLConfig, stream: TextIO) -> bool:
    """Run the chapter in separate tables, which are dropped at the end; return True if every check held.

    Args:
        config: The server, the database, the driver.
        stream: The output.

    Raises:
        SetupError: There is no program of a second server, or no mysqldump beside it.
        LocusMySQLError: The database cannot be used.
    """
    logging.getLogger("locus").setLevel(logging.ERROR)
    began = time.monotonic()
    screen = Screen(stream)
    first = own_tables(config)
    team = Team(screen, first)
    screen.title(f"A team's year: two upgrades, new keys, a backup, another server, through {config.driver}")
    with tempfile.TemporaryDirectory(prefix="year-") as folder:
        try:
            await january(team)
            await upgraded(team, "March", 2)
            await keys_rotated(team)
            await backed_up(team, Path(folder))
            with LocalServer(None, mysqld=find_mysqld()) as other:
                await moved(team, Path(folder), other.dsn)
                await upgraded(team, "December", 3)
        finally:
            await run(first, *(family.schema(first).drop() for family in FAMILIES))
    screen.verdict(time.monotonic() - began)
    return not screen.failed


async def january(team: Team) -> None:
    """Begin to work with the tables of layout 1."""
    team.screen.section("January: the tables have layout 1")
    await team.work("January")


async def upgraded(team: Team, month: str, layout: int) -> None:
    """Upgrade the tables to a layout of a version to come, while agents of this version go on."""
    team.screen.section(f"{month}: the tables are upgraded to layout {layout}")
    next_version = team.shell("examples.year.commands", str(layout))
    planned = await next_version.run("migrate", "--check", shown=3)
    team.screen.check(planned.code == 1 and planned.out.count("older ") == len(FAMILIES), "every family has steps")
    printed = await next_version.run("migrate", "--sql", shown=2)
    team.screen.check(printed.out.count("ALTER TABLE") >= len(FAMILIES), "a DBA can read the statements first")
    done, _ = await asyncio.gather(next_version.run("migrate", shown=0), team.work(f"{month}, meanwhile"))
    again = await next_version.run("migrate", "--check", shown=1)
    team.screen.check((done.code, again.code) == (0, 0), "all steps are done")
    await team.check_nothing_lost(f"in layout {layout}")
    await team.work(month)


async def keys_rotated(team: Team) -> None:
    """Encrypt the rows in clear text, and later all rows with another key; remove the old key."""
    team.screen.section("June: encryption, and in September another key")
    team.use_keys("june")
    done = await team.shell().run("reencrypt", shown=2)
    team.screen.check(done.code == 0 and "clear text" in done.out, "rows in clear text are encrypted")
    await team.check_nothing_lost("with the key of June")
    await team.work("June")
    old = team.keys
    team.use_keys("september", "june")
    await team.work("September")
    done = await team.shell().run("reencrypt", shown=2)
    team.use_keys("september")
    counted = await team.shell().run("reencrypt", "--check", shown=1)
    team.screen.check((done.code, counted.code) == (0, 0), "no row needs the key of June any more")
    await team.check_nothing_lost("without the key of June")
    try:
        await read_everything(with_keys(team.config, old))
    except EncryptionError as error:
        team.screen.check("'september'" in str(error), "with the key of June alone, an error names the missing key")
    else:
        team.screen.check(False, "with the key of June alone, nothing is read")


async def backed_up(team: Team, folder: Path) -> None:
    """Back up as the runbook in docs/operations.md does: the whole tables, and an export of each family."""
    team.screen.section("October: a backup of the tables, and an export of each family")
    tables = [name for family in FAMILIES for name in family.schema(team.config).names]
    options = ("--single-transaction", "--hex-blob", "--set-gtid-purged=OFF", "--no-tablespaces")
    with (folder / "app.sql").open("wb") as dump:
        await client("mysqldump", team.config, (*options, str(team.config.database), *tables), stdout=dump.fileno())
    lines = (folder / "app.sql").read_text().count("INSERT INTO")
    team.screen.check(lines > len(FAMILIES), f"mysqldump wrote {len(tables)} tables")
    shell = team.shell()
    codes = [
        (await shell.run("export", str(folder / f"{one.name}.jsonl"), "--family", one.name, shown=0)).code
        for one in FAMILIES
    ]
    team.screen.check(not any(codes), "each family is exported")


async def moved(team: Team, folder: Path, dsn: str) -> None:
    """Restore the tables on another server, and import the exports beside them."""
    team.screen.section("November: the first server is given up, and another restores the backup")
    mine = team.config
    there = MySQLConfig(dsn=dsn, driver=mine.driver, table_prefix=mine.table_prefix, tenant=mine.tenant)
    team.config = with_keys(there, team.keys)
    with (folder / "app.sql").open("rb") as dump:
        await client("mysql", there, (str(there.database),), stdin=dump.fileno())
    health = await team.shell("examples.year.commands", "2").run("health", shown=1)
    team.screen.check(health.code == 0, "the tables are sound")
    await team.check_nothing_lost("restored by mysql")
    restored = team.config
    team.config = team.config.model_copy(update={"table_prefix": "imported_"})
    shell = team.shell()
    codes = [(await shell.run("import", str(folder / f"{one.name}.jsonl"), shown=0)).code for one in FAMILIES]
    found = await read_everything(team.config)
    same = found == team.expected
    team.screen.check(not any(codes) and same, f"the exports are imported beside them: {len(found)} entries")
    team.config = restored


def with_keys(config: MySQLConfig, keys: str) -> MySQLConfig:
    """Return a configuration with encryption, so without search by word."""
    options = config.model_dump(exclude_unset=True, exclude={"search", "encryption"})
    return MySQLConfig(**options, encryption=Encryption.from_text(keys))


async def client(name: str, config: MySQLConfig, arguments: Sequence[str], stdin: int = -3, stdout: int = -3) -> None:
    """Run a client program of MySQL, with the standard input or output of these descriptors.

    Raises:
        SetupError: It is missing, or failed.
    """
    beside = find_mysqld().parent / name
    program = str(beside) if beside.exists() else shutil.which(name)
    if program is None:
        raise SetupError(f"This chapter needs the program {name}, which is neither beside mysqld nor on the PATH.")
    (endpoint, *_) = config.endpoints
    where = (f"--host={endpoint.host}", f"--port={endpoint.port}", f"--user={config.user}")
    environment = {**os.environ, "MYSQL_PWD": config.password_text}
    process = await asyncio.create_subprocess_exec(
        program, *where, *arguments, stdin=stdin, stdout=stdout, env=environment
    )
    if await process.wait():
        raise SetupError(f"{name} failed with exit code {process.returncode}.")


async def run(config: MySQLConfig, *statements: Statement) -> None:
    """Run statements, each as a transaction of its own."""

    def each() -> Operation[None]:
        for statement in statements:
            yield Batch.of(statement)

    engine = AsyncEngine(config)
    try:
        await engine.run(each())
    finally:
        await engine.close()
