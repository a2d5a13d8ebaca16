"""``tenants`` lists what tenants have stored; ``forget`` removes all that is stored of a customer."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import json
import shlex
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..config import MySQLConfig
from ..dialect.schema import table_sizes
from ..engine.operation import fetch
from ..errors import UsageError
from ..families.family import Family
from ..families.forgetting import Receipt
from ..families.forgetting import forget as forget_owners
from ..families.registry import families
from ..runtime.database import Database
from ..wording import counted
from .arguments import (
    FAILED,
    OK,
    WrongArgument,
    add_connection,
    add_limit,
    add_prefix,
    add_tenant,
    notify,
    options_of,
    sanitize_line,
)
from .inspection.command import confirm, format_size
from .maintenance import add_json
from .progress import EVERY_S
from .tables import add_family, existing_families, family_name

#: Tenants whose rows are counted in one round trip.
AT_ONCE = 20


def add_tenants(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``tenants``."""
    add_limit(parser, 100, " of tenants of each family")
    parser.add_argument("--after", metavar="TENANT", default="", help="only tenants after this one, in their order")
    add_json(parser)
    add_connection(parser)
    add_prefix(parser, "locus_; none for memu")
    add_family(parser, families())


def tenants(arguments: argparse.Namespace) -> int:
    """List tenants with the rows, bytes and last write of each family."""
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")

    async def run() -> list[list[dict[str, Any]]]:
        async with Database(config) as database:
            existing = await existing_families(database, arguments.family)
            return [await _of_family(database, one, arguments.after, arguments.limit + 1) for one in existing]

    pages = asyncio.run(run())
    # The next page begins where the first of the lists ends, so that no family's tenants are passed over.
    ends = [page[arguments.limit - 1]["tenant"] for page in pages if len(page) > arguments.limit]
    cursor = min(ends, default=None)
    found = [one for page in pages for one in page if cursor is None or one["tenant"] <= cursor]
    if cursor is not None:
        notify(f"There are more tenants: --after {shlex.quote(cursor)} lists the next ones, -n more at once.")
    if arguments.json:
        print(json.dumps({"tenants": found, "cursor": cursor}, indent=2))
        return OK
    for one in found:
        print(f"{sanitize_line(one['tenant'])}: {one['family']}, {_in_words(one)}")
    return OK


async def _of_family(database: Database, family: Family, after: str, limit: int) -> list[dict[str, Any]]:
    """Return what tenants have in a family.

    Bytes are estimated from the average sizes of the tables' rows in MySQL's statistics, which may be a day old.
    """
    config, engine = database.config, database.asynchronous
    maintenance, schema = family.maintenance(config), family.schema(config)
    known = await engine.run(fetch(table_sizes(schema.names)))
    sizes = {one.table: one.size_bytes / one.rows for one in known if one.rows}
    found: list[dict[str, Any]] = []
    while len(found) < limit:
        page = await engine.run(maintenance.tenants(after, min(AT_ONCE, limit - len(found))), schema, "validate")
        if not page:
            break
        after = page[-1]
        for tenant, usage in (await engine.run(maintenance.usage(page), schema, "validate")).items():
            size = sum(number * sizes.get(table, 0) for table, number in usage.rows_of.items())
            at: datetime | None = usage.written_at
            found.append(
                {
                    "tenant": tenant,
                    "family": family.name,
                    "rows": usage.rows,
                    "more": usage.more,
                    "bytes": round(size),
                    "written_at": None if at is None else at.isoformat(" ", "seconds"),
                }
            )
    return found


def stats_of_all(arguments: argparse.Namespace) -> int:
    """Show the numbers of tenants and rows, bytes and last write of each family: ``stats --all-tenants``."""
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")

    async def run() -> dict[str, dict[str, Any]]:
        async with Database(config) as database:
            found = {}
            for family in await existing_families(database, arguments.family):
                each = await _of_family(database, family, "", sys.maxsize)
                found[family.name] = {
                    "tenants": len(each),
                    **{name: sum(one[name] for one in each) for name in ("rows", "bytes")},
                    "more": any(one["more"] for one in each),
                    "written_at": max((one["written_at"] for one in each if one["written_at"]), default=None),
                }
            return found

    found = asyncio.run(run())
    if arguments.json:
        print(json.dumps({"all_tenants": found}, indent=2))
        return OK
    for name, one in found.items():
        print(f"{name}: {counted(one['tenants'], 'tenant')}, {_in_words(one)}")
    return OK


def _in_words(one: dict[str, Any]) -> str:
    """Return rows, bytes and last write."""
    written = f", last written {one['written_at']}" if one["written_at"] else ""
    rows = f"{'more than ' if one['more'] else ''}{counted(one['rows'], 'row')}"
    return f"{rows}, about {format_size(one['bytes'])}{written}"


def add_forget(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``forget``."""
    add_tenant(parser, "data; without the next two, all of it")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--owner",
        action="append",
        metavar="GLOB",
        help="only threads, sessions, items … with such names, as 'u-17/*'; may be given more than once, as "
        "for memories of namespace users/u-17 also 'users/u-17/*'",
    )
    which.add_argument(
        "--owners",
        metavar="FILE",
        help='the same by family, as JSON: {"graphs": ["u-17/*"], "memories": ["users/u-17/*"]}',
    )
    add_family(parser, families())
    parser.add_argument("--dry-run", action="store_true", help="only list what would be removed")
    parser.add_argument("--by", metavar="NAME", default="", help="who asks for it, for the receipt (the user)")
    parser.add_argument(
        "--receipt", metavar="FILE", help="where to write the receipt; if it is unfinished, it is continued"
    )
    parser.add_argument("--yes", action="store_true", help="remove without confirmation; required without a terminal")
    add_connection(parser)
    add_prefix(parser, "locus_; none for memu")


def forget(arguments: argparse.Namespace) -> int:
    """Remove all that is stored of a tenant, or of some owners, and print the receipt as JSON."""
    if arguments.tenant is None and arguments.owner is None and arguments.owners is None:
        raise WrongArgument("Name the customer: --tenant, for all that a tenant has stored, or --owner, or --owners.")
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")
    owners = _owners(arguments)
    receipt_file = None if arguments.receipt is None else Path(arguments.receipt)
    earlier = None if receipt_file is None else _earlier(receipt_file)
    what = "all that has been stored" if owners is None else str(owners)
    what = f"{what} of tenant {config.tenant!r}"
    shown_at = time.monotonic()
    if not arguments.dry_run and (refused := confirm(what, agreed=arguments.yes)) is not None:
        return refused

    def keep(receipt: Receipt) -> None:
        nonlocal shown_at
        if receipt_file is not None:
            _write(receipt_file, receipt)
        if time.monotonic() - shown_at > EVERY_S:
            shown_at = time.monotonic()
            notify(counted(sum(one.owners for one in receipt.families.values()), "owner"))

    async def run() -> Receipt:
        async with Database(config) as database:
            await existing_families(database, arguments.family)
            return await forget_owners(
                database,
                tenant=config.tenant,
                owners=owners,
                dry_run=arguments.dry_run,
                by=arguments.by or getpass.getuser(),
                earlier=earlier,
                progress=keep,
            )

    receipt = asyncio.run(run())
    print(json.dumps(receipt.to_json(), indent=2))
    if not any(one.owners or one.names for one in receipt.families.values()):
        which = "" if owners is None else ", under such names"
        notify(f"Nothing is stored of tenant {config.tenant!r}{which}.")
        return FAILED
    return OK


def _owners(arguments: argparse.Namespace) -> dict[str, Sequence[str]] | Sequence[str] | None:
    """Return the globs of owners' names: for all families, or by family; None for all owners."""
    if arguments.owners is not None:
        try:
            found = json.loads(Path(arguments.owners).read_text())
        except (OSError, ValueError) as error:
            raise UsageError(f"{arguments.owners} cannot be read: {error}.") from None
        if not isinstance(found, dict):
            raise UsageError(f"{arguments.owners} must be a JSON object with globs by family.")
        return {family_name(name): globs for name, globs in found.items()}
    if arguments.family is not None:
        return {arguments.family: arguments.owner or ["*"]}
    owner: list[str] | None = arguments.owner
    return owner


def _earlier(file: Path) -> Receipt | None:
    """Return the unfinished receipt in a file; None if there is no file.

    Raises:
        UsageError: The file holds something else, or a finished receipt.
    """
    try:
        found = Receipt.of_json(json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} holds no receipt: {error}. Name another file.") from None
    if found.ended_at is not None:
        raise UsageError(f"{file} holds a finished receipt. Name another file.")
    return found


def _write(file: Path, receipt: Receipt) -> None:
    """Write a receipt, so that a reader sees the earlier one or this one."""
    beside = file.with_name(f"{file.name}.part")
    try:
        beside.write_text(json.dumps(receipt.to_json(), indent=2) + "\n")
        beside.replace(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}.") from None
