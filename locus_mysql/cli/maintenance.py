"""``vacuum`` removes old data; ``health`` reports the state of the server and the tables."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ..config import MySQLConfig
from ..dialect import Schema
from ..dialect.server_roles import GROUP, GROUP_CONSISTENCY
from ..engine.bootstrap import check_layouts, describe, missing_tables, no_tables
from ..engine.logs import warning_about
from ..engine.operation import fetch
from ..errors import SchemaMismatch
from ..families.checkpoints.store import StoreOperations
from ..families.family import Count, Counts, Family, in_words
from ..families.inspection.records import Page, ThreadRow
from ..families.inspection.sources import PAGE_LIMIT, ThreadFilter
from ..families.registry import families, find_family
from ..families.word_indexes import warn_of_clear_words
from ..runtime.database import Database
from .arguments import (
    FAILED,
    OK,
    add_connection,
    add_prefix,
    add_tenant,
    options_of,
    sanitize,
)
from .inspection.command import pages
from .tables import add_family, existing_families


def add_vacuum(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``vacuum``."""
    ageless = ", ".join(family.name for family in families() if not family.vacuumed_by_age)
    parser.add_argument(
        "--older-than-days",
        type=float,
        metavar="DAYS",
        help=f"remove checkpoints older than this many days; not needed for these values of --family: {ageless}",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="only report the rows that are not needed, and the threads and checkpoints that are old enough",
    )
    add_json(parser)
    parser.set_defaults(complain=parser.error)
    _add_which_tables(parser)


def add_health(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``health``."""
    _add_which_tables(parser)
    add_json(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


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

    async def run() -> dict[str, list[dict[str, Any]]]:
        done = {}
        async with Database(config) as database:
            for family in await existing_families(database, arguments.family):
                maintenance = family.maintenance(config)
                running = maintenance.waste() if arguments.dry_run else maintenance.vacuum(*age)
                counts = await database.asynchronous.run(running, family.schema(config), config.ddl_mode)
                old = []
                if arguments.dry_run and days is not None and family.holds_threads and family.vacuumed_by_age:
                    old = [await _old_threads(database, family, days)]
                done[family.name] = _as_json(counts) + old
                if not arguments.json:
                    _print_vacuum(family, [*counts, *(Count(one["number"], one["what"]) for one in old)], arguments)
        return done

    found = asyncio.run(run())
    if arguments.json:
        _print_json({"dry_run": arguments.dry_run, "removed": found})
    return OK


def _print_vacuum(family: Family, counts: Sequence[Count], arguments: argparse.Namespace) -> None:
    removed = [count for count in counts if count.number]
    verb = "Would remove" if arguments.dry_run else "Removed"
    print(f"{verb} {in_words(removed)} of {family.name}." if removed else f"{family.name}: nothing to remove.")


async def _old_threads(database: Database, family: Family, days: float) -> dict[str, Any]:
    """Return the number of threads without a save for some days, which a vacuum deletes whole."""
    source = family.inspection(database.config)
    assert source is not None  # noqa: S101 - the family holds threads
    before = datetime.now(UTC) - timedelta(days=days)

    def read(cursor: str | None) -> Awaitable[Page[ThreadRow]]:
        reading = source.threads(ThreadFilter(saved_before=before), PAGE_LIMIT, cursor)
        return database.asynchronous.run(reading, source.schema, "validate")

    number = sum([len(page.items) async for page in pages(read)])
    return {"number": number, "what": "{thread} without a save for that long"}


def _as_json(counts: Counts) -> list[dict[str, Any]]:
    """Return counts as JSON. The noun of each phrase is in the singular and in braces; see `Count`."""
    return [{"number": one.number, "what": one.phrase} for one in counts]


def health(arguments: argparse.Namespace) -> int:
    """Report whether the server responds, accepts writes and has the tables; changes nothing."""
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")

    async def run() -> dict[str, Any]:
        async with Database(config) as database:
            server = await _server(database)
            found = await existing_families(database, arguments.family)
            return {
                "server": server,
                "database": config.database,
                "prefix": config.table_prefix,
                "tenant": config.tenant,
                "families": [await _of_family(database, family) for family in found],
            }

    found = asyncio.run(run())
    if arguments.json:
        _print_json(found)
    else:
        _print_health(found)
    problems = any(family["problems"] for family in found["families"])
    return FAILED if problems or found["server"]["read_only"] else OK


async def _server(database: Database) -> dict[str, Any]:
    """Return the server's version, response time and state."""
    config, engine = database.config, database.asynchronous
    operations = StoreOperations(config)
    found = await engine.run(operations.health_check())
    began = time.monotonic()
    await engine.run(operations.health_check())
    answer_ms = (time.monotonic() - began) * 1000
    grouped = any(row[0] for row in await engine.run(fetch(GROUP)))  # else the plugin is only installed
    groups = [row.consistency for row in await engine.run(fetch(GROUP_CONSISTENCY))] if grouped else []
    return {
        "version": str(found["server_version"]),
        "endpoints": list(map(str, config.endpoints)),
        "driver": config.driver,
        "warning": warning_about(str(found["server_version"])),
        "answer_ms": round(answer_ms, 3),
        "read_only": bool(found["read_only"]),
        "group_consistency": next(iter(groups), None),
    }


def _print_health(found: Mapping[str, Any]) -> None:
    server = found["server"]
    nouns = [_counts(family["stored"])[0].noun for family in found["families"] if family["stored"]]
    width = max(8, *map(len, nouns), 0)
    print(
        f"{'server':<{width}} MySQL {server['version']} at {', '.join(server['endpoints'])}, through {server['driver']}"
    )
    if server["warning"]:
        print(f"{'warning':<{width}} {server['warning']}")
    print(f"{'answers':<{width}} in {server['answer_ms']:.1f} ms")
    print(f"{'writes':<{width}} {'refused: the server is read-only' if server['read_only'] else 'accepted'}")
    if (consistency := server["group_consistency"]) is not None:
        print(f"{'group':<{width}} group_replication_consistency is {consistency}{_failover_advice(consistency)}")
    print(f"{'tables':<{width}} in database {found['database']}, prefix {found['prefix']!r}")
    for family in found["families"]:
        for kind, sentences in (("problem", family["problems"]), ("note", family["notes"])):
            for sentence in sentences:
                print(f"{kind:<{width}} {sanitize(sentence)}")
        if not family["stored"]:
            continue
        unit, *more = _counts(family["stored"])
        beside = f" with {in_words(more)}" if more else ""
        print(f"{unit.noun:<{width}} {unit.number} of tenant {found['tenant']!r}{beside}, family {family['family']}")
        if family["unneeded"]:
            print(f"{'vacuum':<{width}} removes now, or within an hour: {in_words(_counts(family['unneeded']))}")


def _print_json(found: Mapping[str, Any]) -> None:
    """Print JSON; the braces around the nouns of counts are left out."""

    def plain(one: Any) -> Any:
        if isinstance(one, dict):
            return {name: re.sub(r"[{}]", "", part) if name == "what" else plain(part) for name, part in one.items()}
        return [plain(part) for part in one] if isinstance(one, list) else one

    print(json.dumps(plain(dict(found)), indent=2))


def _counts(found: Sequence[Mapping[str, Any]]) -> list[Count]:
    return [Count(one["number"], one["what"]) for one in found]


def _failover_advice(consistency: str) -> str:
    """Return advice if a new primary may answer before it has applied all writes that the previous one acknowledged."""
    if consistency != "EVENTUAL":
        return ""
    return (
        ": after a failover, the new primary may serve calls before it has applied all that the previous one "
        "acknowledged. On each member: SET PERSIST group_replication_consistency = 'BEFORE_ON_PRIMARY_FAILOVER'"
    )


async def _of_family(database: Database, family: Family) -> dict[str, Any]:
    """Return how the tables of a family differ from this version's, and what a tenant has stored in them."""
    config, engine = database.config, database.asynchronous
    found: dict[str, Any] = {"family": family.name, "problems": [], "notes": [], "stored": [], "unneeded": []}
    usable, found["problems"], found["notes"] = await _layout(database, family.schema(config))
    if not usable:
        return found
    maintenance = family.maintenance(config)
    try:
        found["stored"] = _as_json(await engine.run(maintenance.stored()))
        found["unneeded"] = _as_json(await engine.run(maintenance.waste()))
    except SchemaMismatch:
        if not found["problems"]:  # else the reported problems explain this error
            raise
    return found


async def _layout(database: Database, schema: Schema) -> tuple[bool, list[str], list[str]]:
    """Return whether tables can be used, what must be corrected, and additional columns and indexes."""
    config, engine = database.config, database.asynchronous
    found = await engine.run(describe(schema))
    try:
        check_layouts(config, schema, found.tables)
        if missing := missing_tables(schema, found.tables):
            raise no_tables(config, schema, missing)
    except SchemaMismatch as error:
        return False, [str(error)], []
    clear = () if config.encryption is None else warn_of_clear_words(schema, found.tables.values())
    return True, list(found.differences.wrong), [*clear, *found.differences.extra]
