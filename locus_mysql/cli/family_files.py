"""``export`` writes the records of a family as lines of JSON; ``import`` reads them back."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from ..config import MySQLConfig
from ..errors import InvalidInput, SchemaMismatch, UsageError
from ..families.family import Family
from ..families.registry import families, find_family
from ..runtime.checksummed_jsonl import Head
from ..runtime.database import Database
from ..runtime.sealing import refuse_clear_tables
from ..runtime.transfer import Target
from .arguments import (
    SCOPE_HELP,
    add_connection,
    add_prefix,
    add_tenant,
    add_which_threads,
    fields_of,
    notify,
    options_of,
)
from .existing import existing_families
from .line_files import export_lines, import_lines, refuse_terminal
from .tables import family_name


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``export``."""
    parser.add_argument("file", metavar="FILE", help="where to write to; - for the standard output")
    add_which_threads(parser)
    parser.add_argument(
        "--since",
        type=_time,
        metavar="TIME",
        help="only checkpoints saved since, as 2026-01-31 or 2026-01-31T12:00; without a zone, in UTC",
    )
    names = [family.name for family in families()]
    parser.add_argument(
        "--family",
        type=family_name,
        choices=names,
        metavar="NAME",
        help=f"which tables (the first of these that exist): {', '.join(names)}",
    )
    parser.add_argument(
        "--namespace", nargs="+", metavar="LABEL", help="with --family memories: only items in this namespace and below"
    )
    parser.add_argument("--scope", metavar="FIELDS", type=fields_of, help=f"with --family memu: {SCOPE_HELP} (user_id)")
    parser.add_argument(
        "--where", nargs="+", metavar="FIELD=VALUE", type=_pair, help="with --family memu: only records in this scope"
    )
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser, "locus_; none for memu")


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``import``."""
    parser.add_argument("file", metavar="FILE", help="where to read from; - for the standard input")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace items of memory that differ in the tables (leave them alone)"
    )
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser, "locus_; none for memu")


def export_records(arguments: argparse.Namespace) -> int:
    """Write a tenant's records to a file. A killed export continues when it is started again."""
    refuse_terminal(arguments.file)
    selection = {
        "threads": arguments.thread,
        "pattern": arguments.pattern,
        "since": arguments.since,
        "namespace": arguments.namespace,
        "scope": arguments.scope,
        "where": None if arguments.where is None else dict(arguments.where),
    }
    given = {name: value for name, value in selection.items() if value not in (None, "*")}
    return _export(arguments, arguments.family, **given)


def _existing(arguments: argparse.Namespace, name: str | None) -> str:
    """Return the first family whose tables exist; name the others, whose records the export does not have.

    Args:
        arguments: The arguments of the command.
        name: The only family to look for.

    Raises:
        SchemaMismatch: None exist.
    """
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")

    async def find() -> list[Family]:
        async with Database(config) as database:
            return await existing_families(database, name)

    first, *others = asyncio.run(find())
    if others:
        left = ", ".join(family.name for family in others)
        notify(f"Exporting {first.name}. These families have tables too, each exported by --family: {left}.")
    return first.name


def _export(arguments: argparse.Namespace, name: str | None, **selection: object) -> int:
    """Write the records of a family to a file.

    Args:
        arguments: The arguments of the command.
        name: The name of the family; None for the first whose tables exist.
        selection: The selection of records; see `Transfer.source`.

    Raises:
        SchemaMismatch: The tables do not exist.
        UsageError: The family cannot be exported, or does not support the selection.
    """
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")
    found = name or _existing(arguments, None)
    transfer = find_family(found).transfer(config)
    if transfer is None:
        raise UsageError(f"The tables of {found!r} cannot be exported.")
    try:
        return export_lines(config, transfer.source(**selection), arguments.file, transfer.noun)
    except SchemaMismatch:
        _existing(arguments, found)  # if the tables do not exist, raises an error with those that do
        raise


def import_file(arguments: argparse.Namespace) -> int:
    """Write a file's records into the tables of their family. A repeated import skips existing records."""
    config = MySQLConfig.from_env(**options_of(arguments))
    return import_lines(config, target_finder(config, overwrite=arguments.overwrite), arguments.file)


def target_finder(config: MySQLConfig, *, overwrite: bool = False) -> Callable[[Head], tuple[Target, str]]:
    """Return a function that returns the target for a first line, and the noun for a record.

    The function raises `EncryptionError` for a family that does not encrypt, if the configuration has keys.
    """

    def find(head: Head) -> tuple[Target, str]:
        for family in families():
            transfer = family.transfer(config)
            if transfer is not None and transfer.accepts(head):
                refuse_clear_tables(config, family.schema(config))
                return transfer.target(head, overwrite=overwrite), transfer.noun
        raise InvalidInput(f"The file holds {head.format[:50]!r}, which this command cannot import.")

    return find


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"must be FIELD=VALUE, not {text[:80]!r}")
    return name, value


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.min
    if moment.year < 1000:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is no date. Write 2026-01-31, or 2026-01-31T15:00+02:00.")
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
