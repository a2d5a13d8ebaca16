"""``vacuum`` removes old data; ``health`` reports the state of the server and the tables."""

from __future__ import annotations

import argparse
import asyncio
import time

from ..config import MySQLConfig
from ..dialect import Schema
from ..dialect.differences import Differences
from ..dialect.server_roles import GROUP_CONSISTENCY
from ..drivers.wire.session import warning_about
from ..engine.bootstrap import check_layouts, describe, missing_tables, no_tables
from ..engine.operation import fetch
from ..errors import SchemaMismatch
from ..families.checkpoints.store import StoreOperations
from ..families.family import Counts, Family, in_words
from ..families.registry import families, find_family
from ..runtime.database import Database
from .arguments import (
    FAILED,
    OK,
    add_connection,
    add_prefix,
    add_tenant,
    options_of,
)
from .existing import existing_families
from .sanitize import sanitize
from .tables import add_family


def add_vacuum(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``vacuum``."""
    ageless = ", ".join(family.name for family in families() if not family.vacuumed_by_age)
    parser.add_argument(
        "--older-than-days",
        type=float,
        metavar="DAYS",
        help=f"remove checkpoints older than this many days; not needed for these values of --family: {ageless}",
    )
    parser.set_defaults(complain=parser.error)
    _add_which_tables(parser)


def add_health(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``health``."""
    _add_which_tables(parser)


def _add_which_tables(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser, "locus_; none for memu")
    add_family(parser, families())


def vacuum(arguments: argparse.Namespace) -> int:
    """Remove old checkpoints and the unneeded rows of any family; creates no tables."""
    days: float | None = arguments.older_than_days
    if days is None and (arguments.family is None or find_family(arguments.family).vacuumed_by_age):
        arguments.complain("the following arguments are required: --older-than-days")
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")
    age = () if days is None else (days,)

    async def run() -> None:
        async with Database(config) as database:
            for family in await existing_families(database, arguments.family):
                vacuuming = family.maintenance(config).vacuum(*age)
                removed = await database.asynchronous.run(vacuuming, family.schema(config), config.ddl_mode)
                print(f"Removed {in_words(removed)} of {family.name}.")

    asyncio.run(run())
    return OK


def health(arguments: argparse.Namespace) -> int:
    """Report whether the server responds, accepts writes and has the tables; changes nothing."""
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")

    async def run() -> int:
        async with Database(config) as database:
            read_only = await _report_server(database)
            found = await existing_families(database, arguments.family)
            print(f"tables   in database {config.database}, prefix {config.table_prefix!r}")
            sound = [await _report_family(database, family) for family in found]
            return OK if all(sound) and not read_only else FAILED

    return asyncio.run(run())


async def _report_server(database: Database) -> bool:
    """Print the server's version and response time; return whether it is read-only."""
    config, engine = database.config, database.asynchronous
    operations = StoreOperations(config)
    found = await engine.run(operations.health_check())
    began = time.monotonic()
    await engine.run(operations.health_check())
    answer_ms = (time.monotonic() - began) * 1000
    where = ", ".join(map(str, config.endpoints))
    print(f"server   MySQL {found['server_version']} at {where}, through {config.driver}")
    if warning := warning_about(str(found["server_version"])):
        print(f"warning  {warning}")
    print(f"answers  in {answer_ms:.1f} ms")
    print(f"writes   {'refused: the server is read-only' if found['read_only'] else 'accepted'}")
    for group in await engine.run(fetch(GROUP_CONSISTENCY)):
        print(f"group    group_replication_consistency is {group.consistency}{_failover_advice(group.consistency)}")
    return bool(found["read_only"])


def _failover_advice(consistency: str) -> str:
    """Return advice if a new primary may answer before it has applied all writes that the previous one acknowledged."""
    if consistency != "EVENTUAL":
        return ""
    return (
        ": after a failover, the new primary may serve calls before it has applied all that the previous one "
        "acknowledged. On each member: SET PERSIST group_replication_consistency = 'BEFORE_ON_PRIMARY_FAILOVER'"
    )


async def _report_family(database: Database, family: Family) -> bool:
    """Print what a tenant has stored in the tables of a family, and its unneeded rows.

    First print in what the tables differ from those that this version creates; return whether they do not.
    """
    config, engine = database.config, database.asynchronous
    found = await _report_layout(database, family.schema(config))
    if found is None:
        return False
    maintenance = family.maintenance(config)
    try:
        unit, *more = await engine.run(maintenance.stored())
        waste: Counts = await engine.run(maintenance.waste())
    except SchemaMismatch:
        if found.wrong:  # the reason, which was printed
            return False
        raise
    beside = f" with {in_words(more)}" if more else ""
    print(f"{unit.noun:<8} {unit.number} of tenant {config.tenant!r}{beside}, family {family.name}")
    if waste:
        print(f"waste    {in_words(waste)}")
    return not found.wrong


async def _report_layout(database: Database, schema: Schema) -> Differences | None:
    """Print the differences of the tables, and return them; None if the tables cannot be used."""
    config, engine = database.config, database.asynchronous
    found = await engine.run(describe(schema))
    try:
        check_layouts(config, schema, found.tables)
        if missing := missing_tables(schema, found.tables):
            raise no_tables(config, schema, missing)
    except SchemaMismatch as error:
        print(f"problem  {sanitize(str(error))}")
        return None
    for sentence in found.differences.wrong:
        print(f"problem  {sanitize(sentence)}")
    for sentence in found.differences.extra:
        print(f"note     {sanitize(sentence)}")
    return found.differences
