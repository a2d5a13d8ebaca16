"""``migrate``: upgrade the tables of an older version."""

from __future__ import annotations

import argparse
import asyncio

from ..config import MySQLConfig
from ..dialect.upgrades import Step
from ..engine.migration import Plan, plan
from ..engine.migration import migrate as migrate_tables
from ..families.migrating import asked, exists, migrating
from ..families.registry import families
from ..runtime.database import Database
from .arguments import FAILED, OK, add_connection, add_prefix, options_of
from .existing import without_tables
from .tables import add_family


def add_migrate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``migrate``."""
    add_connection(parser)
    add_prefix(parser, "locus_; none for memu")
    add_family(parser, families())
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="only show the steps; exit with 1 if there are any")
    mode.add_argument("--sql", action="store_true", help="only print the statements that are still to be run")


def migrate(arguments: argparse.Namespace) -> int:
    """Show, print or carry out the steps from the tables' layouts to this version's."""
    config = migrating(MySQLConfig.from_env(**options_of(arguments)))
    look = arguments.check or arguments.sql

    async def run() -> list[Plan]:
        plans = []
        async with Database(config) as database:
            engine = database.asynchronous
            for family in asked(arguments.family):
                schema = family.schema(config)
                if await engine.run(exists(family, schema, named=arguments.family is not None)):
                    operation = plan(config, schema) if look else migrate_tables(config, schema, _report)
                    found = await engine.run(operation)
                    if found.layout is not None:
                        _print(found, sql=arguments.sql, done=not look)
                        plans.append(found)
            if not plans:
                # The first deployment of a program runs this before the program creates its tables.
                message = f"Nothing to migrate. {await without_tables(database, arguments.family)}"
                print(f"-- {message}" if arguments.sql else message)
        return plans

    plans = asyncio.run(run())
    return FAILED if arguments.check and any(one.pending for one in plans) else OK


def _report(step: Step) -> None:
    print(f"step     {_described(step)}", flush=True)


def _described(step: Step) -> str:
    return f"{step.words} ({step.blocks} wait)" if step.blocks else step.words


def _print(found: Plan, *, sql: bool, done: bool) -> None:
    """Print the layout of a family, and the steps that are still to be done; or only their statements."""
    if sql:
        for step in found.steps:
            print(f"-- {_described(step)}\n{step.sql};")
    elif not found.pending:
        print(f"current  {found.family}, layout {found.layout}")
    elif done:
        print(f"migrated {found.family} from layout {found.layout} to {found.wanted}")
    else:
        print(f"older    {found.family}, layout {found.layout}; this version needs layout {found.wanted}:")
        for step in found.steps:
            print(f"step     {_described(step)}")
