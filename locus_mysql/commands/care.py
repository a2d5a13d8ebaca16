"""``vacuum``, ``health`` and ``import-locus``: what an operator needs."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from ..checkpoints.store import StoreOperations
from ..config import MySQLConfig
from ..database.database import Database
from ..dialect.checkpoints.tables import INFIXES
from ..engine.bootstrap import has_tables
from ..errors import SchemaMismatch
from ..integrations.sdk import need_locus
from .arguments import FAILED, OK, add_connection, add_prefix, add_tenant, options_of
from .tables import add_family


def add_import(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``import-locus``."""
    add_connection(parser, "; where to copy to")
    parser.add_argument("--source-dsn", metavar="DSN", help="where to copy from (the same database)")
    parser.add_argument("--table", default="checkpoints", help="the built-in backend's table (checkpoints)")
    add_tenant(parser)
    add_prefix(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be copied")


def add_vacuum(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``vacuum``."""
    parser.add_argument("--older-than-days", type=float, required=True, metavar="DAYS")
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser)
    add_family(parser)


def add_health(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``health``."""
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser)
    add_family(parser)


def import_locus(arguments: argparse.Namespace) -> int:
    """Copy the threads and checkpoints of Locus' built-in MySQL backend."""
    need_locus("The import")
    from ..integrations.locus.importing import LocusImport

    target = MySQLConfig.from_env(**options_of(arguments))
    source = MySQLConfig(dsn=arguments.source_dsn, driver=target.driver) if arguments.source_dsn else target

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    copying = LocusImport(source, target, table=arguments.table, dry_run=arguments.dry_run, tell=tell)
    summary = asyncio.run(copying.run())
    print(summary)
    return OK if summary.complete else FAILED


def vacuum(arguments: argparse.Namespace) -> int:
    """Remove old checkpoints; makes no tables."""
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")

    async def run() -> int:
        async with Database(config) as database:
            removed = 0
            for store in await _stores_there(database, arguments.family):
                vacuuming = store.vacuum(arguments.older_than_days)
                removed += await database.asynchronous.run(vacuuming, store.schema, config.ddl_mode)
            return removed

    removed = asyncio.run(run())
    print(f"Removed {removed} checkpoint{'' if removed == 1 else 's'}.")
    return OK


def health(arguments: argparse.Namespace) -> int:
    """Say whether the server answers, takes writes and has the tables; changes nothing."""
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")

    async def run() -> int:
        async with Database(config) as database:
            engine = database.asynchronous
            asking = StoreOperations(config)
            found = await engine.run(asking.health_check())
            began = time.monotonic()
            await engine.run(asking.health_check())
            answer_ms = (time.monotonic() - began) * 1000
            where = ", ".join(map(str, config.endpoints))
            print(f"server   MySQL {found['server_version']} at {where}, through {config.driver}")
            print(f"answers  in {answer_ms:.1f} ms")
            print(f"writes   {'refused: the server is read-only' if found['read_only'] else 'accepted'}")
            there = await _stores_there(database, arguments.family)
            print(f"tables   in database {config.database}, prefix {config.table_prefix!r}")
            for store in there:
                threads = await engine.run(store.count(), store.schema, config.ddl_mode)
                print(f"threads  {threads} of tenant {config.tenant!r}, family {store.schema.family}")
            return FAILED if found["read_only"] else OK

    return asyncio.run(run())


async def _stores_there(database: Database, family: str | None) -> list[StoreOperations]:
    """The families whose tables are there, as stores of plain dicts.

    Raises:
        SchemaMismatch: There are none.
    """
    stores = [StoreOperations(database.config, kind) for kind in INFIXES if family in {None, kind}]
    there = [store for store in stores if await database.asynchronous.run(has_tables(store.schema))]
    if not there:
        missing = " and no ".join(map(repr, stores[0].schema.names))
        raise SchemaMismatch(
            f"Database {database.config.database!r} has no table {missing}: nothing was saved there yet, or with "
            "another --prefix. The first save makes the tables; so do the statements of `python -m locus_mysql schema`."
        )
    return there
