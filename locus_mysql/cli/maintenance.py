"""``vacuum`` removes old data; ``health`` reports the state of the server and the tables."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import secrets
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ..config import MySQLConfig
from ..dialect import Schema
from ..dialect.server_roles import GROUP, GROUP_CONSISTENCY
from ..engine.bootstrap import check_layouts, describe, missing_tables, no_tables
from ..engine.logs import warning_about
from ..engine.operation import Operation, fetch
from ..errors import SchemaMismatch
from ..families.family import Family
from ..families.reencryption import warn_of_clear_words
from ..families.registry import families, find_family
from ..records.ledger import CLAIMED_S
from ..records.maintenance import Count, Counts, in_words
from ..runtime.arguments import tenant_of
from ..runtime.database import Database
from ..wording import counted
from .arguments import (
    FAILED,
    OK,
    add_connection,
    add_prefix,
    add_tenants,
    notify,
    options_of,
    sanitize,
)
from .progress import EVERY_S
from .tables import add_family, existing_families, tenants_of

T = TypeVar("T")

#: Expired owners of all tenants that are removed between two claims of the job.
EXPIRED_AT_ONCE = 500


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
    parser.add_argument(
        "--after", metavar="TENANT", default="", help="with --all-tenants: continue after this tenant, in their order"
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
    add_tenants(parser)
    add_prefix(parser, "locus_; none for memu")
    add_family(parser, families())


def vacuum(arguments: argparse.Namespace) -> int:
    """Remove old checkpoints and the unneeded rows of any family; creates no tables."""
    days: float | None = arguments.older_than_days
    if days is None and (arguments.family is None or find_family(arguments.family).vacuumed_by_age):
        arguments.complain("the following arguments are required: --older-than-days")
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")

    async def run() -> dict[str, list[dict[str, Any]]]:
        done = {}
        async with Database(config) as database:
            for family in await existing_families(database, arguments.family):
                job = _Job(database, family, arguments)
                counts = await (_of_all_tenants(job) if arguments.all_tenants else job.of(tenant_of(config)))
                done[family.name] = _as_json(counts)
                if not arguments.json:
                    _print_vacuum(family, counts, arguments)
        return done

    found = asyncio.run(run())
    if arguments.json:
        _print_json({"dry_run": arguments.dry_run, "removed": found})
    return OK


async def _of_all_tenants(job: _Job) -> Counts:
    """Vacuum a family, tenant by tenant, or count what a vacuum would remove; return the sums.

    If another process vacuums it, this one waits until that has ended or was killed.
    """
    after = job.arguments.after
    totals, last = Counter[str](), after
    expired = number = 0
    try:
        # Those of all tenants together: found one tenant at a time, each look-up would pass over those of others.
        await job.claim()
        while not job.counts_only and (some := await job.run(job.maintenance.remove_expired(EXPIRED_AT_ONCE))):
            expired += some
            await job.claim()
        async for tenant in tenants_of(job.database, job.family, last):
            await job.claim()
            for one in await job.of(tenant):
                totals[one.phrase] += one.number
            last, number = tenant, number + 1
            job.show(number)
    except BaseException:
        if last != after:
            notify(f"Stopped. Continue with: --all-tenants --family {job.family.name} --after {shlex.quote(last)}")
        raise
    if not totals:  # no tenant is left
        totals.update({one.phrase: one.number for one in await job.of(tenant_of(job.database.config))})
    first, *others = totals
    return Count(totals[first] + expired, first), *(Count(totals[one], one) for one in others)


class _Job:
    """The vacuum of a family. That of all tenants is claimed, so that two jobs do not do the same work.

    Args:
        database: The database.
        family: The family.
        arguments: Those of the command.
    """

    def __init__(self, database: Database, family: Family, arguments: argparse.Namespace) -> None:
        self.database, self.family, self.arguments = database, family, arguments
        self.maintenance = family.maintenance(database.config)
        self.counts_only: bool = arguments.dry_run
        self._holder, self._claimed_at, self._shown_at = secrets.randbits(62), -math.inf, time.monotonic()

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation on existing tables."""
        return await self.database.asynchronous.run(operation, self.family.schema(self.database.config), "validate")

    async def of(self, tenant: str) -> Counts:
        """Vacuum a tenant's rows, or count what a vacuum would remove."""
        days = self.arguments.older_than_days
        if self.counts_only:
            return await self.run(self.maintenance.waste(tenant, days))
        return await self.run(self.maintenance.vacuum(tenant, *(() if days is None else (days,))))

    async def claim(self) -> None:
        """Claim a job that removes rows from time to time; wait as long as another process has claimed it."""
        told = False
        while not self.counts_only and time.monotonic() - self._claimed_at > CLAIMED_S / 3:
            if await self.run(self.maintenance.claim("vacuum", self._holder)):
                self._claimed_at = time.monotonic()
                return
            if not told:
                notify(f"{self.family.name}: another process vacuums these tables. Waiting until it has ended.")
            told = True
            await asyncio.sleep(1)

    def show(self, tenants: int) -> None:
        """Show the progress every few seconds."""
        if time.monotonic() - self._shown_at > EVERY_S:
            self._shown_at = time.monotonic()
            notify(f"{self.family.name}: {counted(tenants, 'tenant')} …")


def _print_vacuum(family: Family, counts: Sequence[Count], arguments: argparse.Namespace) -> None:
    removed = [count for count in counts if count.number]
    verb = "Would remove now, or within an hour:" if arguments.dry_run else "Removed"
    print(f"{verb} {in_words(removed) if removed else 'nothing'} of {family.name}.")


def _as_json(counts: Sequence[Count]) -> list[dict[str, Any]]:
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
                "tenant": None if arguments.all_tenants else config.tenant,
                "families": [await _of_family(database, one, all_tenants=arguments.all_tenants) for one in found],
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
    found = await database.health_check()
    began = time.monotonic()
    await database.health_check()
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
        whose = "all tenants" if found["tenant"] is None else f"tenant {found['tenant']!r}"
        unit, *more = _counts(family["stored"])
        beside = f" with {in_words(more)}" if more else ""
        print(f"{unit.noun:<{width}} {unit.number} of {whose}{beside}, family {family['family']}")
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


async def _of_family(database: Database, family: Family, *, all_tenants: bool) -> dict[str, Any]:
    """Return how the tables of a family differ from this version's, and what a tenant or all have stored in them."""
    config, engine = database.config, database.asynchronous
    found: dict[str, Any] = {"family": family.name, "problems": [], "notes": [], "stored": [], "unneeded": []}
    usable, found["problems"], found["notes"] = await _layout(database, family.schema(config))
    if not usable:
        return found
    maintenance = family.maintenance(config)
    stored, unneeded = dict[str, int](), dict[str, int]()
    try:
        tenants = [one async for one in tenants_of(database, family)] if all_tenants else [tenant_of(config)]
        for tenant in tenants:
            for sums, operation in ((stored, maintenance.stored), (unneeded, maintenance.waste)):
                for one in await engine.run(operation(tenant)):
                    sums[one.phrase] = sums.get(one.phrase, 0) + one.number
        found["stored"] = _as_json([Count(number, phrase) for phrase, number in stored.items()])
        found["unneeded"] = _as_json([Count(number, phrase) for phrase, number in unneeded.items()])
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
