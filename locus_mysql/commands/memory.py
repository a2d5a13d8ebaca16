"""``memory export`` and ``memory import``: what is in long-term memory as lines of JSON, and back."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ..config import MySQLConfig
from ..database.database import Database
from ..dialect.memories.ranges import Range
from ..errors import InvalidInput, UsageError
from ..integrations.memu.exporting import FORMAT as MEMU_FORMAT
from ..integrations.memu.exporting import MemuSource, MemuTarget
from ..memories.exporting import ItemSource, ItemTarget, Source, Target
from ..memories.lines import FORMAT
from ..memories.namespaces import path_of
from ..memories.restoring import Tally
from ..memories.sealing import End, Head, content_of, end_line
from .arguments import FAILED, OK, SCOPE_HELP, add_connection, add_prefix, add_tenant, fields_of, options_of
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
    export.add_argument("--memu", action="store_true", help="memU's records, not items; see --scope and --where")
    export.add_argument(
        "--scope",
        default="user_id",
        metavar="FIELDS",
        help=f"{SCOPE_HELP} (user_id)",
    )
    export.add_argument(
        "--where", nargs="+", default=[], metavar="FIELD=VALUE", help="only memU's records of this scope (all)"
    )
    taking = ways.add_parser("import", help="write the items of a file into the tables", allow_abbrev=False)
    taking.set_defaults(memory=import_items)
    taking.add_argument("file", metavar="FILE", help="where to read from; - for the standard input")
    taking.add_argument(
        "--overwrite", action="store_true", help="write over items that are there as something else (leave them alone)"
    )
    for one in (export, taking):
        add_connection(one)
        add_tenant(one, "memories")
        add_prefix(one, "locus_; none for memU's records")


def memory(arguments: argparse.Namespace) -> int:
    """Export or import."""
    return int(arguments.memory(arguments))


def export_items(arguments: argparse.Namespace) -> int:
    """Write a tenant's items to a file. Killed and started again, it goes on where it stopped."""
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")
    source = _source(config, arguments)
    if arguments.file == STANDARD_STREAM:
        exporting = Export(config, source, _StandardOutput())
        exporting.begin()
        complete = asyncio.run(exporting.run(None))
    else:
        with PartFile(Path(arguments.file)) as file:
            exporting = Export(config, source, file)
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
        parts.append(f"{done.differing} left alone, as they are there as something else (--overwrite)")
    print(f"{', '.join(parts)}.")
    return FAILED if done.differing else OK


def _source(config: MySQLConfig, arguments: argparse.Namespace) -> Source:
    """What is to be exported."""
    if not arguments.memu:
        if arguments.where:
            raise UsageError("--where is of memU's records; give --memu too, or --namespace for items.")
        return ItemSource(config, Range(path_of(arguments.namespace, empty=True)))
    if arguments.namespace:
        raise UsageError("memU's records are in no namespace; give --where FIELD=VALUE.")
    if wrong := [one for one in arguments.where if "=" not in one]:
        raise UsageError(f"--where must be FIELD=VALUE, not {wrong[0][:80]!r}.")
    where = dict(one.split("=", 1) for one in arguments.where)
    return MemuSource(config, fields_of(arguments.scope), where)


class Export:
    """Writes lines, in the order of their source.

    Args:
        config: Where from.
        source: What is read.
        output: Where to.
    """

    def __init__(self, config: MySQLConfig, source: Source, output: Output) -> None:
        self._config = config
        self._source = source
        self._output = output
        self.items = 0

    def begin(self) -> None:
        """Write the first line."""
        self._output.write(self._source.head)

    def go_on(self, file: PartFile) -> Any:
        """Keep what is whole of a file that is there; the position of what stands last in it.

        Raises:
            UsageError: It is of another export.
        """
        size = 0
        last: Any = None
        lines = iter(file.lines())
        for number, line in enumerate(lines, 1):
            if number == 1 and line.endswith(b"\n") and line != self._source.head:
                if next(lines, None) is None:  # that one failed before it wrote an item
                    break
                raise UsageError(f"{file.part} was left by another export, of other items. Remove it.")
            try:
                content = content_of(line, number)
                if isinstance(content, End):
                    break
                if isinstance(content, dict):
                    last = self._source.position_of(content)
                    self.items += 1
            except InvalidInput:  # it was being written when the process was killed
                break
            size += len(line)
        file.cut(size)
        if size == 0:
            self.begin()
        if self.items:
            tell(f"Going on with {file.part}, behind {_counted(self.items)}.")
        return last

    async def run(self, after: Any) -> bool:
        """Write what stands behind a position, and the last line; False if something could not be read."""
        complete, limit = True, 100
        async with Database(self._config) as database:
            count = await self._source.count(database)
            while True:
                page = await self._source.page(database, after, limit)
                if page.last is None:
                    break
                for damage in page.damaged:
                    tell(f"Left out: {damage}")
                    complete = False
                self._output.write(b"".join(page.lines))
                if self.items // _PROGRESS_EVERY < (self.items + len(page.lines)) // _PROGRESS_EVERY:
                    tell(f"{self.items + len(page.lines)} of {count} items …")
                self.items += len(page.lines)
                after = page.last
                size = sum(map(len, page.lines))
                limit = max(1, limit // 4) if size > _BYTES_AT_ONCE else min(_ITEMS_AT_ONCE, 2 * limit)
        self._output.write(end_line(self.items))
        return complete


class Import:
    """Writes what lines say, many at a time: all of them or none.

    Args:
        config: Where to, and whose it will be.
        overwrite: Whether items that are there as something else are written over.
    """

    def __init__(self, config: MySQLConfig, *, overwrite: bool = False) -> None:
        self._config = config
        self._overwrite = overwrite

    async def run(self, lines: Iterable[bytes]) -> Tally:
        """Write what the lines say; what became of it.

        Raises:
            InvalidInput: A line is damaged; the message has its number. Nothing of it, nor of the lines that would
                have been written together with it, was written.
        """
        done = Tally()
        async with Database(self._config) as database:
            read, number, size = 0, 0, 0
            batch: list[Any] = []
            target: Target | None = None
            ended = False
            for number, line in enumerate(lines, 1):
                with _numbered(number):
                    if ended:
                        raise InvalidInput("The file goes on behind its end.")
                    content = content_of(line, number)
                    if isinstance(content, Head):
                        target = self._target(content)
                        continue
                    assert target is not None  # noqa: S101 - the first line is a head, or was refused
                    if isinstance(content, End):
                        ended = True
                        if content.items != read:
                            raise InvalidInput(
                                f"The file had {content.items} items when it was written, and has {read}."
                            )
                        continue
                    batch.append(target.read(content))
                read += 1
                size += len(line)
                if len(batch) == _ITEMS_AT_ONCE or size >= _BYTES_AT_ONCE:
                    await target.write(database, batch, done)
                    batch, size = [], 0
                if read % _PROGRESS_EVERY == 0:
                    tell(f"{read} items …")
            with _numbered(number + 1):
                if not ended:
                    raise InvalidInput("The file ends without its last line; it was cut off.")
            if batch and target is not None:
                await target.write(database, batch, done)
        return done

    def _target(self, head: Head) -> Target:
        """What takes the lines behind a first one."""
        if head.format == FORMAT:
            return ItemTarget(self._config, tell, overwrite=self._overwrite)
        if head.format == MEMU_FORMAT:
            if self._overwrite:
                raise InvalidInput("The file holds memU's records, which are not written over (--overwrite).")
            scope = head.content.get("scope")
            if not isinstance(scope, list) or not all(isinstance(name, str) for name in scope):
                raise InvalidInput("The file does not say which fields memU's user model has (scope).")
            return MemuTarget(self._config, scope, tell)
        raise InvalidInput(f"The file holds {head.format[:50]!r}, which this version does not know.")


@contextlib.contextmanager
def _numbered(number: int) -> Iterator[None]:
    """Put the number of a line into what is said of it."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"Line {number}: {error}") from None


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
