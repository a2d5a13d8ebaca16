"""Files of checksummed lines of JSON as the two ends of a transfer: `LineWriter` and `LineReader`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Any, BinaryIO, Protocol

from ..errors import InvalidInput, UsageError
from ..runtime.checksummed_jsonl import End, Head, content_of, end_line
from ..runtime.counting import counted
from ..runtime.transfer import RecordPage, Source, Target, TransferReport
from . import family_pages
from .engine import UnitSource, UnitTarget
from .part_file import PartFile

#: The longest line. MySQL takes no larger packet, so no exported line is longer.
MAX_LINE_BYTES = 1 << 30

_CUT_OFF = "The file ends without its last line; it was cut off."


class Output(Protocol):
    """File-like object to which an export is written."""

    def write(self, data: bytes) -> None:
        """Append data."""


class LineWriter(UnitTarget[RecordPage]):
    """Writes the lines of a family's source to a file.

    Args:
        source: The source of the lines.
        output: The file.
        report: Its ``copied`` is the number of lines between the first and the last line of the file.
    """

    def __init__(self, source: Source, output: Output, report: TransferReport) -> None:
        self._source = source
        self._output = output
        self._report = report
        self._begun = False

    def resume(self, file: PartFile) -> Any:
        """Keep the intact lines of a partially written file; return the position of the last one.

        Raises:
            UsageError: The file belongs to another export.
        """
        size = 0
        last: Any = None
        lines = iter(limited_lines(file.read_from_start()))
        for number, line in enumerate(lines, 1):
            if number == 1 and line.endswith(b"\n") and line != self._source.head:
                if next(lines, None) is None:  # that export failed before it wrote an item
                    break
                raise UsageError(f"{file.part} was left by another export, of other items. Remove it.")
            try:
                content = content_of(line, number)
                if isinstance(content, End):
                    break
                if isinstance(content, dict):
                    last = self._source.position_of(content)
                    self._report.copied += 1
            except InvalidInput:  # the process was killed while it wrote this line
                break
            size += len(line)
        file.truncate(size)
        self._begun = size > 0
        if self._report.copied:
            self._report.notify(f"Continuing {file.part} after {counted(self._report.copied, self._report.noun)}.")
        return last

    async def open(self) -> None:
        """Write the first line. The engine has opened the source by then, so its tables exist."""
        if not self._begun:
            self._output.write(self._source.head)

    async def write(self, page: RecordPage, report: TransferReport) -> None:
        """Append the lines of a page."""
        for damage in page.damaged:
            report.leave_out(f"Left out: {damage}")
        self._output.write(b"".join(page.records))
        report.copied += len(page.records)

    async def finish(self) -> None:
        """Write the last line."""
        self._output.write(end_line(self._report.copied))


class LineReader(UnitSource[RecordPage]):
    """Reads the records in the lines of a file, in batches.

    Args:
        lines: The lines of the file. The first one is read at once.
        find_target: Returns the target for a first line, and the singular noun for a record. Raises `InvalidInput` if
            there is no target.

    Raises:
        InvalidInput: The first line is damaged or missing.
    """

    def __init__(self, lines: Iterable[bytes], find_target: Callable[[Head], tuple[Target, str]]) -> None:
        self._lines = iter(lines)
        self._number = 1
        with self._numbered():
            first = next(self._lines, None)
            if first is None:
                raise InvalidInput(_CUT_OFF)
            head = content_of(first, 1)
            assert isinstance(head, Head)  # noqa: S101 - a first line is a head, or was refused
            self.target, self.noun = find_target(head)

    async def units(self) -> AsyncGenerator[RecordPage, None]:
        """Read the batches.

        Raises:
            InvalidInput: A line is damaged; the message has its number. Its batch is not returned.
        """
        page, size = RecordPage(), 0
        for line in self._lines:
            self._number += 1
            with self._numbered():
                content = content_of(line, self._number)
                if isinstance(content, End):
                    self._check_end(content)
                    yield page
                    return
                assert isinstance(content, dict)  # noqa: S101 - only the first line is a head
                page.records.append(self.target.read(content))
            size += len(line)
            if len(page.records) >= family_pages.MAX_RECORDS or size >= family_pages.MAX_BYTES:
                yield page
                page, size = RecordPage(), 0
        raise InvalidInput(f"Line {self._number + 1}: {_CUT_OFF}")

    def _check_end(self, end: End) -> None:
        read = self._number - 2
        if end.items != read:
            had = counted(end.items, self.noun)
            raise InvalidInput(f"The file had {had} when it was written, and has {read}.")
        if next(self._lines, None) is not None:
            self._number += 1
            raise InvalidInput("The file continues after its last line.")

    @contextlib.contextmanager
    def _numbered(self) -> Iterator[None]:
        """Add the line's number to errors."""
        try:
            yield
        except InvalidInput as error:
            raise InvalidInput(f"Line {self._number}: {error}") from None


def limited_lines(file: BinaryIO) -> Iterator[bytes]:
    """Read the lines of a file that may hold anything. The last line may have no line feed.

    Raises:
        InvalidInput: A line is longer than `MAX_LINE_BYTES`, or than the free memory.
    """
    number = 0
    while True:
        number += 1
        try:
            line = file.readline(MAX_LINE_BYTES + 1)
        except MemoryError:
            raise InvalidInput(
                f"Line {number} does not end within the free memory, and the limit of a line is {MAX_LINE_BYTES:,} "
                "bytes. Is this the file of an export?"
            ) from None
        if len(line) > MAX_LINE_BYTES:
            raise InvalidInput(
                f"Line {number} is longer than {MAX_LINE_BYTES:,} bytes, the limit of a line. Is this the file of an "
                "export?"
            )
        if not line:
            return
        yield line
