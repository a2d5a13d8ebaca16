"""``export`` writes the records of a family as lines of JSON, to a file or ``-``; ``import`` reads them back."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TypeAlias

from ..config import MySQLConfig
from ..errors import InvalidInput, SchemaMismatch, UsageError
from ..families.family import Family
from ..families.registry import families, find_family
from ..runtime.checksummed_jsonl import Head
from ..runtime.database import Database
from ..runtime.sealing import refuse_clear_tables
from ..runtime.transfer import Source, Target, TransferReport
from ..transfer.engine import transfer
from ..transfer.family_pages import FamilyPages, FamilyWriter
from ..transfer.jsonl import LineReader, LineWriter, limited_lines
from ..transfer.part_file import PartFile
from .arguments import (
    FAILED,
    OK,
    SCOPE_HELP,
    add_connection,
    add_prefix,
    add_tenant,
    add_which_threads,
    fields_of,
    notify,
    options_of,
)
from .progress import Progress
from .tables import existing_families, family_name

#: The name of a file that stands for the standard output or input.
STANDARD_STREAM = "-"


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``export``."""
    parser.add_argument("file", metavar="FILE", help="where to write to; - for the standard output")
    add_which_threads(parser)
    parser.add_argument(
        "--since",
        type=_time,
        metavar="TIME",
        help="only threads saved to since, as 2026-01-31 or 2026-01-31T12:00; without a zone, in UTC",
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
        "--overwrite",
        action="store_true",
        help="replace threads, items and others that differ in the tables (leave them)",
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


def export_lines(config: MySQLConfig, source: Source, name: str, noun: str) -> int:
    """Write the records of a source to a file. A killed export continues when it is started again.

    Args:
        config: The server and the tenant.
        source: The source.
        name: The name of the file.
        noun: The noun for a record, in messages.

    Returns:
        The exit code: `FAILED` if some records could not be read.

    Raises:
        UsageError: The file cannot be written, or the standard output is a terminal.
    """
    report = TransferReport(noun, "exported", notify=notify)
    if name != STANDARD_STREAM:
        with PartFile(Path(name)) as file:
            writer = LineWriter(source, file, report)
            _write_lines(config, source, writer, report, writer.resume(file))
            file.finish()
    else:
        refuse_terminal(name)
        _write_lines(config, source, LineWriter(source, _StandardOutput(), report), report)
    notify(str(report))
    return OK if report.complete else FAILED


def refuse_terminal(name: str) -> None:
    """Raise `UsageError` if a file is the standard output, and that is a terminal."""
    if name == STANDARD_STREAM and sys.stdout.isatty():
        raise UsageError(
            "The standard output is a terminal, which would interpret control characters in the exported data. Name a "
            "file, or send the output to a file or a program: export - | less"
        )


#: Returns the target for the first line of a file, and the noun for a record.
FindTarget: TypeAlias = Callable[[Head], tuple[Target, str]]


def import_lines(config: MySQLConfig, find_target: FindTarget, name: str) -> int:
    """Write the records of a file into the tables. A killed import skips existing records when it is repeated.

    Args:
        config: The server and the tenant.
        find_target: Returns the target.
        name: The name of the file.

    Returns:
        The exit code: `FAILED` if some records were not imported.
    """
    with _opened(name) as file:
        report = asyncio.run(read_lines(config, find_target, limited_lines(file)))
    print(report)
    return OK if report.complete else FAILED


async def read_lines(config: MySQLConfig, find_target: FindTarget, lines: Iterable[bytes]) -> TransferReport:
    """Write records, given as lines, into the tables."""
    reader = LineReader(lines, find_target)
    report = TransferReport(reader.noun, "imported")
    async with Database(config) as database:
        with Progress(f"{reader.noun}s") as progress:
            report.notify = progress.notify
            return await transfer(reader, FamilyWriter(reader.target, database), report, advance=progress.advance)


def _write_lines(
    config: MySQLConfig, source: Source, writer: LineWriter, report: TransferReport, after: object = None
) -> None:
    async def run() -> None:
        async with Database(config) as database:
            with Progress(f"{report.noun}s") as progress:
                report.notify = progress.notify
                await transfer(FamilyPages(source, database, after), writer, report, advance=progress.advance)

    asyncio.run(run())


class _StandardOutput:
    """The standard output as the output of an export."""

    def write(self, data: bytes) -> None:
        """Append data.

        Raises:
            BrokenPipeError: The process that read it has ended.
            UsageError: It cannot be written.
        """
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UsageError(f"The standard output cannot be written: {error.strerror}.") from None


@contextlib.contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == STANDARD_STREAM:
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 - errors of reading it are of another kind
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.") from None
    with file:
        yield file
