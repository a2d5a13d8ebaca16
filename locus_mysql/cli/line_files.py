"""Runs exports to a file or the standard output (``-``), and imports from a file or the standard input."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias

from ..config import MySQLConfig
from ..errors import UsageError
from ..runtime.checksummed_jsonl import Head
from ..runtime.database import Database
from ..runtime.transfer import Source, Target, TransferReport
from ..transfer.engine import transfer
from ..transfer.family_pages import FamilyPages, FamilyWriter
from ..transfer.jsonl import LineReader, LineWriter, limited_lines
from ..transfer.part_file import PartFile
from .arguments import FAILED, OK, notify
from .progress import Progress

STANDARD_STREAM = "-"


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
            _export(config, source, writer, report, writer.resume(file))
            file.finish()
    else:
        refuse_terminal(name)
        _export(config, source, LineWriter(source, _StandardOutput(), report), report)
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


def _export(
    config: MySQLConfig, source: Source, writer: LineWriter, report: TransferReport, after: object = None
) -> None:
    async def run() -> None:
        async with Database(config) as database:
            with Progress(f"{report.noun}s") as progress:
                report.notify = progress.notify
                await transfer(FamilyPages(source, database, after), writer, report, advance=progress.advance)
        writer.finish()

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
