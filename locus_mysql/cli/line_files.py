"""Exports and imports to and from a file by its name, or the standard output and input: ``-``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import BinaryIO

from ..config import MySQLConfig
from ..errors import UsageError
from ..integrations.counting import counted
from ..runtime.exporting import Source, Tally
from .arguments import tell
from .line_limit import limited_lines
from .line_reader import Import
from .line_writer import Export
from .part_file import PartFile

STANDARD_STREAM = "-"


def write_lines(config: MySQLConfig, source: Source, name: str, noun: str) -> bool:
    """Write what a source has to a file. Killed and started again, it goes on where it stopped.

    Args:
        config: Where from.
        source: What is written.
        name: The file's.
        noun: What the source has, for messages.

    Returns:
        Whether all of it could be read.

    Raises:
        UsageError: The file cannot be written, or the standard output is a terminal.
    """
    if name == STANDARD_STREAM:
        if sys.stdout.isatty():
            raise UsageError(
                "The standard output is a terminal, which would obey control characters in what is exported. Name a "
                "file, or send the output to a file or a program: export - | less"
            )
        exporting = Export(config, source, _StandardOutput(), noun)
        complete = asyncio.run(exporting.run())
    else:
        with PartFile(Path(name)) as file:
            exporting = Export(config, source, file, noun)
            complete = asyncio.run(exporting.run(exporting.go_on(file)))
            file.finish()
    tell(f"Exported {counted(exporting.items, noun)}.")
    return complete


def read_lines(importing: Import, name: str) -> Tally:
    """Import the lines of a file; what became of them."""
    if name == STANDARD_STREAM:
        return asyncio.run(importing.run(limited_lines(sys.stdin.buffer)))
    with _opened(name) as file:
        return asyncio.run(importing.run(limited_lines(file)))


class _StandardOutput:
    """The standard output, as an output of an export."""

    def write(self, data: bytes) -> None:
        """Add to it.

        Raises:
            UsageError: Whoever read it has gone.
        """
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except OSError as error:
            raise UsageError(f"The standard output cannot be written: {error.strerror}.") from None


def _opened(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.") from None
