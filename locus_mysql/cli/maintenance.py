"""``vacuum`` and ``health``: what an operator needs."""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass
from typing import Protocol

from ..config import MySQLConfig
from ..dialect import Schema
from ..dialect.checkpoints.tables import INFIXES
from ..dialect.memories.filters import Condition
from ..dialect.memories.ranges import Range
from ..engine.bootstrap import has_own_tables, has_tables
from ..engine.operation import Operation
from ..errors import SchemaMismatch
from ..families.checkpoints.store import StoreOperations
from ..families.graphs.saver import SaverOperations
from ..families.memories.maintenance import Waste
from ..families.memories.store import MemoryProcedures
from ..families.working import maintenance as sessions
from ..families.working.maintenance import WorkingCare
from ..integrations.counting import counted
from ..integrations.memu.maintenance import MemuCaring
from ..runtime.database import Database
from .arguments import (
    FAILED,
    OK,
    add_connection,
    add_prefix,
    add_tenant,
    options_of,
)
from .tables import THREADED, add_family

#: The families that have no checkpoints of threads.
MEMORIES, WORKING, MEMU = THREADLESS = "memories", "working", "memu"


class Store(Protocol):
    """What every family of checkpoints offers to an operator, whatever its rows hold."""

    @property
    def schema(self) -> Schema:
        """The tables."""

    def count(self) -> Operation[int]:
        """How many threads there are."""

    def vacuum(self, older_than_days: float) -> Operation[int]:
        """Remove checkpoints that are older; returns how many."""


def add_vacuum(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``vacuum``."""
    parser.add_argument(
        "--older-than-days",
        type=float,
        metavar="DAYS",
        help="of checkpoints; not needed with --family memories, working or memu",
    )
    parser.set_defaults(complain=parser.error)
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser, "locus_; none for memu")
    add_family(parser, (*THREADED, *THREADLESS), scoped=False)


def add_health(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``health``."""
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser, "locus_; none for memu")
    add_family(parser, (*THREADED, *THREADLESS), scoped=False)


@dataclass(frozen=True, slots=True)
class There:
    """The operations of the families whose tables are there.

    Args:
        stores: Of checkpoints.
        memories: Of long-term memory.
        working: Of working memory.
        memu: Of memU's records.
    """

    stores: list[Store]
    memories: MemoryProcedures | None
    working: WorkingCare | None
    memu: MemuCaring | None


def vacuum(arguments: argparse.Namespace) -> int:
    """Remove old checkpoints, and what nobody needs of long-term and working memory; makes no tables."""
    if arguments.older_than_days is None and arguments.family not in THREADLESS:
        arguments.complain("the following arguments are required: --older-than-days")
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")

    async def run() -> tuple[int, list[str], Waste | None, sessions.Waste | None, int | None]:
        async with Database(config) as database:
            engine = database.asynchronous
            removed = 0
            there = await _there(database, arguments.family)
            for store in there.stores:
                vacuuming = store.vacuum(arguments.older_than_days)
                removed += await engine.run(vacuuming, store.schema, config.ddl_mode)
            waste, swept, tokens = None, None, None
            if (memories := there.memories) is not None:
                waste = await engine.run(memories.caring.vacuum(config.tenant), memories.schema, config.ddl_mode)
            if (working := there.working) is not None:
                swept = await engine.run(working.vacuum(), working.schema, config.ddl_mode)
            if (memu := there.memu) is not None:
                tokens = await engine.run(memu.vacuum(), memu.schema, config.ddl_mode)
            return removed, [store.schema.family for store in there.stores], waste, swept, tokens

    removed, families, waste, swept, tokens = asyncio.run(run())
    if families:
        print(f"Removed {counted(removed, 'checkpoint')} of {', '.join(families)}.")
    if waste is not None:
        print(f"Removed {_told(waste)} of {MEMORIES}.")
    if swept is not None:
        print(f"Removed {_swept(swept)} of {WORKING}.")
    if tokens is not None:
        print(f"Removed {counted(tokens, 'token')} of writes of {MEMU}.")
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
            there = await _there(database, arguments.family)
            print(f"tables   in database {config.database}, prefix {config.table_prefix!r}")
            for store in there.stores:
                threads = await engine.run(store.count(), store.schema, config.ddl_mode)
                print(f"threads  {threads} of tenant {config.tenant!r}, family {store.schema.family}")
            if (memories := there.memories) is not None:
                counting = memories.reading.count(config.tenant, Range(b""), Condition())
                items = await engine.run(counting, memories.schema, config.ddl_mode)
                waste = await engine.run(memories.caring.waste(config.tenant))
                print(f"items    {items} of tenant {config.tenant!r}, family {memories.schema.family}")
                print(f"waste    {_told(waste)}")
            if (working := there.working) is not None:
                held = await engine.run(working.held(config.tenant), working.schema, config.ddl_mode)
                swept = await engine.run(working.waste())
                told = f"{held.sessions} of tenant {config.tenant!r} with {counted(held.size_bytes, 'byte')}"
                print(f"sessions {told}, family {WORKING}")
                print(f"waste    {_swept(swept)}")
            if (memu := there.memu) is not None:
                records = await engine.run(memu.count(), memu.schema, config.ddl_mode)
                tokens = await engine.run(memu.tokens())
                print(f"records  {records} of tenant {config.tenant!r}, family {MEMU}")
                print(f"waste    {counted(tokens, 'token')} of writes")
            return FAILED if found["read_only"] else OK

    return asyncio.run(run())


async def _there(database: Database, family: str | None) -> There:
    """The operations of the families whose tables are there. Those of memU have names that others may have given too.

    Raises:
        SchemaMismatch: There are none.
    """
    stores: list[Store] = [StoreOperations(database.config, kind) for kind in INFIXES]
    stores.append(SaverOperations(database.config))
    memories, working = MemoryProcedures(database.config), WorkingCare(database.config)
    memu = MemuCaring(database.config)
    schemas = [*(store.schema for store in stores), memories.schema, working.schema, memu.schema]
    asked = [schema for schema in schemas if family in {None, schema.family}]
    there = []
    for schema in asked:
        inspection = has_own_tables(schema) if schema == memu.schema and family is None else has_tables(schema)
        if await database.asynchronous.run(inspection):
            there.append(schema)
    if not there:
        missing = " and no ".join(map(repr, asked[0].names))
        raise SchemaMismatch(
            f"Database {database.config.database!r} has no table {missing}: nothing was saved there yet, or with "
            "another --prefix. The first save makes the tables; so do the statements of "
            f"`python -m locus_mysql {'schema' if family is None else asked[0].command}`."
        )
    return There(
        [store for store in stores if store.schema in there],
        memories if memories.schema in there else None,
        working if working.schema in there else None,
        memu if memu.schema in there else None,
    )


def _told(waste: Waste) -> str:
    """What nobody needs, in words."""
    return (
        f"{counted(waste.expired, 'expired item')}, embeddings of {counted(waste.loose, 'missing item')}, "
        f"{counted(waste.removed, 'mark')} of removed embeddings and {counted(waste.tokens, 'token')} of writes"
    )


def _swept(waste: sessions.Waste) -> str:
    """What nobody needs of sessions, in words."""
    return f"{counted(waste.expired, 'expired session')} and {counted(waste.tokens, 'token')} of writes"
