"""``vacuum`` and ``health``: what an operator needs."""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Protocol

from ..checkpoints.store import StoreOperations
from ..config import MySQLConfig
from ..database.database import Database
from ..dialect import Schema
from ..dialect.checkpoints.tables import INFIXES
from ..engine.bootstrap import has_tables
from ..engine.operation import Operation
from ..errors import SchemaMismatch
from ..versions.saver import SaverOperations
from .arguments import FAILED, OK, add_connection, add_prefix, add_tenant, options_of
from .tables import THREADED, add_family


class Store(Protocol):
    """What every family offers to an operator, whatever its rows hold."""

    @property
    def schema(self) -> Schema:
        """The tables."""

    def count(self) -> Operation[int]:
        """How many threads there are."""

    def vacuum(self, older_than_days: float) -> Operation[int]:
        """Remove checkpoints that are older; returns how many."""


def add_vacuum(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``vacuum``."""
    parser.add_argument("--older-than-days", type=float, required=True, metavar="DAYS")
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser)
    add_family(parser, THREADED)


def add_health(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``health``."""
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser)
    add_family(parser, THREADED)


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


async def _stores_there(database: Database, family: str | None) -> list[Store]:
    """The operations of the families whose tables are there.

    Raises:
        SchemaMismatch: There are none.
    """
    stores: list[Store] = [StoreOperations(database.config, kind) for kind in INFIXES]
    stores.append(SaverOperations(database.config))
    asked = [store for store in stores if family in {None, store.schema.family}]
    there = [store for store in asked if await database.asynchronous.run(has_tables(store.schema))]
    if not there:
        missing = " and no ".join(map(repr, asked[0].schema.names))
        raise SchemaMismatch(
            f"Database {database.config.database!r} has no table {missing}: nothing was saved there yet, or with "
            "another --prefix. The first save makes the tables; so do the statements of `python -m locus_mysql schema`."
        )
    return there
