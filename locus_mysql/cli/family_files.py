"""``export`` writes the rows of a family to a file of JSON lines, and ``import`` reads such a file."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from ..config import MySQLConfig
from ..errors import InvalidInput, SchemaMismatch, UsageError
from ..families.family import Family, HasUserModel
from ..families.registry import families, find_family
from ..records.files import FORMAT, FileSource, FileTarget, first_line
from ..records.transfer import RowSource, RowTarget
from ..runtime.database import Database
from ..transfer.engine import Advance, TransferReport, transfer
from ..transfer.files import Head, PartFile, limited_lines, make_folder
from .arguments import (
    FAILED,
    OK,
    SCOPE_HELP,
    add_connection,
    add_prefix,
    add_tenant,
    add_tenants,
    add_which_threads,
    fields_of,
    notify,
    options_of,
)
from .progress import Progress
from .tables import existing_families, family_name, tenants_of

#: The name of a file that stands for the standard output or input.
STANDARD_STREAM = "-"


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``export``."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="where to write to; - for the standard output; with --all-tenants, a folder for a file of each tenant",
    )
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
    add_tenants(parser)
    add_prefix(parser, "locus_; none for memu")


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``import``."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="where to read from: a file, a folder that --all-tenants wrote, or - for the standard input",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace threads, items and others that differ in the tables (leave them)",
    )
    add_connection(parser)
    add_tenant(parser)
    add_prefix(parser, "locus_; none for memu")


def export_records(arguments: argparse.Namespace) -> int:
    """Write the rows of a tenant, or of each tenant, to a file. A killed export continues when it is started again."""
    refuse_terminal(arguments.file)
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")
    selection = {
        "threads": arguments.thread,
        "pattern": arguments.pattern,
        "since": arguments.since,
        "namespace": arguments.namespace,
        "where": None if arguments.where is None else dict(arguments.where),
    }
    selection = {name: value for name, value in selection.items() if value is not None}
    if arguments.all_tenants:
        return _export_all(arguments, config, selection)
    name = arguments.family or first_existing(config, "Exporting")
    try:
        return export_rows(
            with_scope(find_family(name), arguments.scope),
            config,
            arguments.file,
            **selection,
        )
    except SchemaMismatch:
        first_existing(config, "Exporting", name)  # if the tables do not exist, raises an error with those that do
        raise


def first_existing(config: MySQLConfig, doing: str, name: str | None = None) -> str:
    """Return the first family whose tables exist; name the others, whose rows are left out.

    Args:
        config: The server.
        doing: What is done with the first family.
        name: The only family to look for.

    Raises:
        SchemaMismatch: None exist.
    """

    async def find() -> list[Family]:
        async with Database(config) as database:
            return await existing_families(database, name)

    first, *others = asyncio.run(find())
    if others:
        left = ", ".join(family.name for family in others)
        notify(f"{doing} {first.name}. These families have tables too, each named by --family: {left}.")
    return first.name


def with_scope(family: Family, scope: list[str] | None) -> Family:
    """Return a family with the columns that the user chose.

    Raises:
        UsageError: It has no such columns, or a column cannot have the name.
    """
    if scope is None:
        return family
    if not isinstance(family, HasUserModel):
        raise UsageError(f"An export of {family.name} cannot be limited by scope.")
    return family.with_fields(scope)


def export_rows(family: Family, config: MySQLConfig, name: str, **selection: Any) -> int:
    """Write the rows of a family to a file. A killed export continues when it is started again.

    Args:
        family: The family.
        config: The server and the tenant.
        name: The name of the file.
        selection: The selection of rows; see `RowSource`.

    Returns:
        The exit code: `FAILED` if some rows could not be read.

    Raises:
        UsageError: The file cannot be written, or the family does not support the selection.
    """
    report = TransferReport("row", "exported", notify=notify)

    async def export() -> None:
        async with Database(config) as database:
            source = RowSource(family.tables(config), config, database, **selection)
            with Progress("rows") as progress:
                if name == STANDARD_STREAM:
                    target = FileTarget(source, _StandardOutput(), report)
                    await transfer(source, target, report, advance=progress.advance)
                else:
                    await _write(source, Path(name), report, progress.advance)

    asyncio.run(export())
    notify(str(report))
    return OK if report.complete else FAILED


async def _write(source: RowSource, path: Path, report: TransferReport, advance: Advance) -> None:
    """Write rows to a file; continue one that was partially written."""
    with PartFile(path) as file:
        target = FileTarget(source, file, report)
        target.resume(file)
        await transfer(source, target, report, advance=advance)
        file.finish()


def _export_all(arguments: argparse.Namespace, config: MySQLConfig, selection: Mapping[str, Any]) -> int:
    """Write the rows of each tenant and family to a file in a folder, which has ``.part`` after its name until the end.

    Raises:
        UsageError: The folder exists or cannot be written, or a part was left by an export of other rows.
    """
    folder = Path(arguments.file)
    part = folder.with_name(f"{folder.name}.part")
    if arguments.file == STANDARD_STREAM or folder.exists():
        raise UsageError(f"{folder} cannot be the folder of an export, because it exists. Name one that does not.")
    report = TransferReport("row", "exported")

    async def export() -> None:
        async with Database(config) as database:
            found = await existing_families(database, arguments.family)
            make_folder(part)
            with Progress("rows") as progress:
                report.notify = progress.notify
                for one in found:
                    family = one if not isinstance(one, HasUserModel) else with_scope(one, arguments.scope)
                    async for tenant in tenants_of(database, family):
                        own = config.for_store(tenant=tenant)
                        source = RowSource(family.tables(own), own, database, **selection)
                        path = part / _file_name(tenant, family.name)
                        if not path.exists():
                            await _write(source, path, report, lambda report, _: progress.advance(report, None))
                        elif next(limited_lines(path.open("rb"))) != first_line(source):
                            raise UsageError(f"{part} was left by another export, of other rows. Remove it.")
            part.rename(folder)

    asyncio.run(export())
    notify(str(report))
    return OK if report.complete else FAILED


def _file_name(tenant: str, family: str) -> str:
    """Return the name of a tenant's file, which is short and differs in more than case from those of others."""
    return f"{quote(tenant, safe='')[:100]}-{hashlib.sha256(tenant.encode()).hexdigest()[:12]}.{family}.jsonl"


def import_file(arguments: argparse.Namespace) -> int:
    """Write the rows of a file, or of the files in a folder, into the tables. A repeated import skips existing rows."""
    config = MySQLConfig.from_env(**options_of(arguments))
    folder = Path(arguments.file)
    names, of_file = [arguments.file], folder.is_dir()
    if of_file:
        names = sorted(str(one) for one in folder.glob("*.jsonl"))
        if not names or arguments.tenant is not None:
            why = "no export of all tenants" if not names else "one of all tenants, each of which is kept: no --tenant"
            raise UsageError(f"{folder} is {why}.")
    report = TransferReport("row", "imported")

    async def run() -> None:
        options = {"overwrite": arguments.overwrite, "of_file": of_file}
        async with Database(config) as database:
            with Progress("rows") as progress:
                report.notify = progress.notify
                for name in names:
                    with _opened(name) as file:
                        try:
                            await import_lines(database, limited_lines(file), report, progress.advance, **options)
                        except InvalidInput as error:
                            raise (InvalidInput(f"{name}: {error}") if of_file else error) from None

    asyncio.run(run())
    print(report)
    return OK if report.complete else FAILED


async def import_lines(
    database: Database,
    lines: Iterable[bytes],
    report: TransferReport,
    advance: Advance = lambda *_: None,
    *,
    overwrite: bool = False,
    of_file: bool = False,
) -> None:
    """Write the rows in the lines of a file into the tables of their family.

    Args:
        database: The database, with the tenant.
        lines: The lines.
        report: Counts the rows.
        advance: Called after each page.
        overwrite: See `RowTarget`.
        of_file: Whether the tenant is that of the first line.
    """

    def target(head: Head) -> RowTarget:
        names = {family.name: family for family in families()}
        if head.format != FORMAT:
            raise InvalidInput(f"The file holds {head.format[:50]!r}, which this command cannot import.")
        family = names.get(name := str(head.content.get("family")))
        if family is None:
            raise InvalidInput(f"The file holds rows of {name[:50]!r}, a family that this program has not registered.")
        if isinstance(family, HasUserModel):
            scope = head.content.get("scope")
            if not isinstance(scope, list) or not all(isinstance(name, str) for name in scope):
                raise InvalidInput("The file does not name the fields of the user model (scope).")
            family = family.with_fields(scope)
        config = database.config.for_store(tenant=str(head.content.get("tenant"))) if of_file else database.config
        found, stored = head.content.get("layout"), family.schema(config).layout_version
        if found != stored:
            raise InvalidInput(
                f"The rows have layout {found!s:.20}, and the tables have layout {stored}. Export them again after "
                "migrating the tables."
            )
        return RowTarget(family.tables(config), config, database, overwrite=overwrite)

    reader = FileSource(lines, target)
    await transfer(reader, reader.target, report, advance=advance)


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


def refuse_terminal(name: str) -> None:
    """Raise `UsageError` if a file is the standard output, and that is a terminal."""
    if name == STANDARD_STREAM and sys.stdout.isatty():
        raise UsageError(
            "The standard output is a terminal, which would interpret control characters in the exported data. Name a "
            "file, or send the output to a file or a program: export - | less"
        )


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
