"""``memory export`` and ``memory import``: what is in long-term memory as lines of JSON, and back."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from ..config import MySQLConfig
from ..database.database import Database
from ..dialect.memories.filters import Condition
from ..dialect.memories.ranges import Range
from ..errors import CorruptCheckpoint, InvalidInput, UsageError
from ..memories.lines import End, end_line, head_line, item_line, parse_line
from ..memories.moving import KeptItem, Restored
from ..memories.namespaces import labels_of, path_of
from ..memories.restoring import write_whole
from ..memories.store import MemoryProcedures
from ..memories.writing import ItemKey
from .arguments import FAILED, OK, add_connection, add_prefix, add_tenant, options_of
from .imports import tell
from .part_file import PartFile

#: Items between two lines of progress.
_PROGRESS_EVERY = 10_000

#: What is read or written at a time: at most so many items, and about so many bytes.
_ITEMS_AT_ONCE, _BYTES_AT_ONCE = 500, 4_000_000

STANDARD_STREAM = "-"


class Output(Protocol):
    """Where an export is written to."""

    def write(self, data: bytes) -> None:
        """Add to it."""


def add_memory(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``memory``."""
    ways = parser.add_subparsers(title="commands", required=True, metavar="export|import")
    export = ways.add_parser("export", help="write items to a file", allow_abbrev=False)
    export.set_defaults(memory=export_items)
    export.add_argument("file", metavar="FILE", help="where to write to; - for the standard output")
    export.add_argument(
        "--namespace", nargs="+", default=[], metavar="LABEL", help="only what is in this namespace and below (all)"
    )
    taking = ways.add_parser("import", help="write the items of a file into the tables", allow_abbrev=False)
    taking.set_defaults(memory=import_items)
    taking.add_argument("file", metavar="FILE", help="where to read from; - for the standard input")
    taking.add_argument(
        "--overwrite", action="store_true", help="write over items that are there as something else (leave them alone)"
    )
    for one in (export, taking):
        add_connection(one)
        add_tenant(one)
        add_prefix(one)


def memory(arguments: argparse.Namespace) -> int:
    """Export or import."""
    return int(arguments.memory(arguments))


def export_items(arguments: argparse.Namespace) -> int:
    """Write a tenant's items to a file. Killed and started again, it goes on where it stopped."""
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")
    where = Range(path_of(arguments.namespace, empty=True))
    if arguments.file == STANDARD_STREAM:
        exporting = Export(config, where, _StandardOutput())
        exporting.begin()
        complete = asyncio.run(exporting.run(None))
    else:
        with PartFile(Path(arguments.file)) as file:
            exporting = Export(config, where, file)
            complete = asyncio.run(exporting.run(exporting.go_on(file)))
            file.finish()
    tell(f"Exported {_counted(exporting.items)}.")
    return OK if complete else FAILED


def import_items(arguments: argparse.Namespace) -> int:
    """Write a file's items into the tables. Killed and started again, it passes over what is there already."""
    config = MySQLConfig.from_env(**options_of(arguments))
    if arguments.file == STANDARD_STREAM:
        done = asyncio.run(Import(config, overwrite=arguments.overwrite).run(sys.stdin.buffer))
    else:
        with _opened(arguments.file) as file:
            done = asyncio.run(Import(config, overwrite=arguments.overwrite).run(file))
    parts = [f"Imported {_counted(done.written)}"]
    if done.present:
        parts.append(f"{done.present} there already")
    if done.differing:
        parts.append(f"{len(done.differing)} left alone, as they are there as something else (--overwrite)")
    print(f"{', '.join(parts)}.")
    return FAILED if done.differing else OK


class Export:
    """Writes items line by line, in the order of their namespaces and keys.

    Args:
        config: Whose, and where from.
        where: Of which namespaces.
        output: Where to.
    """

    def __init__(self, config: MySQLConfig, where: Range, output: Output) -> None:
        self._config = config
        self._where = where
        self._output = output
        self._head = head_line(config.tenant, labels_of(where.path))
        self.items = 0

    def begin(self) -> None:
        """Write the first line."""
        self._output.write(self._head)

    def go_on(self, file: PartFile) -> ItemKey | None:
        """Keep what is whole of a file that is there; the key of the last item in it.

        Raises:
            UsageError: It is of another export.
        """
        size = 0
        last: ItemKey | None = None
        for number, line in enumerate(file.lines(), 1):
            if number == 1 and line.endswith(b"\n") and line != self._head:
                raise UsageError(f"{file.part} was left by another export, of other items. Remove it.")
            try:
                content = parse_line(line, number)
            except InvalidInput:  # it was being written when the process was killed
                break
            if isinstance(content, End):
                break
            if isinstance(content, KeptItem):
                last = content.key
                self.items += 1
            size += len(line)
        file.cut(size)
        if size == 0:
            self.begin()
        if self.items:
            tell(f"Going on with {file.part}, behind {_counted(self.items)}.")
        return last

    async def run(self, after: ItemKey | None) -> bool:
        """Write the items behind one, and the last line; False if some could not be read."""
        complete, limit = True, 100
        async with Database(self._config) as database:
            procedures = MemoryProcedures(self._config)
            engine, schema, tenant = database.asynchronous, procedures.schema, self._config.tenant
            count = await engine.run(
                procedures.reading.count(tenant, self._where, Condition()), schema, self._config.ddl_mode
            )
            while page := await engine.run(procedures.moving.page(tenant, self._where, after, limit)):
                lines = []
                for item in page:
                    try:
                        lines.append(item_line(item, searched=self._config.search))
                    except CorruptCheckpoint as error:
                        tell(f"Left out: {error}")
                        complete = False
                self._output.write(b"".join(lines))
                if self.items // _PROGRESS_EVERY < (self.items + len(lines)) // _PROGRESS_EVERY:
                    tell(f"{self.items + len(lines)} of {count} items …")
                self.items += len(lines)
                after = page[-1].key
                size = sum(map(len, lines))
                limit = max(1, limit // 4) if size > _BYTES_AT_ONCE else min(_ITEMS_AT_ONCE, 2 * limit)
        self._output.write(end_line(self.items))
        return complete


class Import:
    """Writes the items of lines, many at a time: all of them or none.

    Args:
        config: Where to, and whose they will be.
        overwrite: Whether items that are there as something else are written over.
    """

    def __init__(self, config: MySQLConfig, *, overwrite: bool = False) -> None:
        self._config = config
        self._overwrite = overwrite
        self._done = Restored()

    async def run(self, lines: Iterable[bytes]) -> Restored:
        """Write what the lines say; what became of it.

        Raises:
            InvalidInput: A line is damaged; the message has its number. Nothing of it, nor of the lines that would
                have been written together with it, was written.
        """
        async with Database(self._config) as database:
            procedures = MemoryProcedures(self._config)
            read, number = 0, 0
            batch: list[KeptItem] = []
            size = 0
            ended = False
            for number, line in enumerate(lines, 1):
                if ended:
                    raise InvalidInput(f"Line {number}: The file goes on behind its end.")
                content = parse_line(line, number)
                if isinstance(content, KeptItem):
                    batch.append(content)
                    read += 1
                    size += content.size_bytes
                elif isinstance(content, End):
                    ended = True
                    if content.items != read:
                        raise InvalidInput(
                            f"Line {number}: The file had {content.items} items when it was written, and has {read}."
                        )
                if len(batch) == _ITEMS_AT_ONCE or size >= _BYTES_AT_ONCE:
                    await self._write(database, procedures, batch)
                    batch, size = [], 0
                if read and read % _PROGRESS_EVERY == 0 and not batch:
                    tell(f"{read} items …")
            if not ended:
                raise InvalidInput(f"Line {number + 1}: The file ends without its last line; it was cut off.")
            await self._write(database, procedures, batch)
        return self._done

    async def _write(self, database: Database, procedures: MemoryProcedures, items: Sequence[KeptItem]) -> None:
        await write_whole(database, procedures, items, self._done, tell, overwrite=self._overwrite)


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


def _counted(count: int) -> str:
    return f"{count} item{'' if count == 1 else 's'}"
