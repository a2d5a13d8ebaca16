"""Files of rows as the two ends of a transfer: `FileTarget` and `FileSource`.

A line is a row: ``{"owner": [values]}``, or ``{"part": table, "row": [values]}`` of the owner before it. If a family
has several tables of owners, ``"of"`` names that of an owner. The first line names the family, its layout, the tenant
and the selection. Bytes are in base 64. Of sealed bytes, a line has the content, so a file is clear text, and may be
imported for another tenant and with other keys.
"""

from __future__ import annotations

import contextlib
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ..errors import InvalidInput, UsageError
from ..runtime.arguments import check_text
from ..transfer.engine import TransferReport, UnitSource, UnitTarget
from ..transfer.files import End, Head, PartFile, checksummed, content_of, end_line, limited_lines
from ..wording import counted
from .moving import Moving, OwnerRecord, Page, PartRecord, Position, Record, Restart
from .transfer import Place, RowPage, RowSource, RowTarget

#: The format in the first line.
FORMAT = "locus-mysql rows 1"

#: Limits of the lines that are imported at once: records, and bytes.
MAX_RECORDS, MAX_BYTES = 500, 4_000_000

_CUT_OFF = "The file ends without its last line; it was cut off."

_RESTART = {"restart": True}


class Output(Protocol):
    """File-like object to which an export is written."""

    def write(self, data: bytes) -> None:
        """Append data."""


def first_line(source: RowSource) -> bytes:
    """Return the first line of a file with the rows of a source."""
    return checksummed({"format": FORMAT, **source.head})


class FileTarget(UnitTarget[RowPage]):
    """Writes rows to a file.

    Args:
        source: The source of the rows.
        output: The file.
        report: Its ``copied`` includes the lines between the first and the last line of the file.
    """

    def __init__(self, source: RowSource, output: Output, report: TransferReport) -> None:
        self._lines = Lines(source.moving)
        self._source = source
        self._head = first_line(source)
        self._output = output
        self._report = report
        self._begun, self._before = False, report.copied

    def resume(self, file: PartFile) -> None:
        """Keep the intact lines of a partially written file, and let the source begin after the last one.

        Raises:
            UsageError: The file belongs to another export.
        """
        size, report = 0, self._report
        lines = iter(limited_lines(file.read_from_start()))
        for number, line in enumerate(lines, 1):
            if number == 1 and line.endswith(b"\n") and line != self._head:
                if next(lines, None) is None:  # that export failed before it wrote an item
                    break
                raise UsageError(f"{file.part} was left by another export, of other items. Remove it.")
            try:
                content = content_of(line, number)
                if isinstance(content, End):
                    break
                if isinstance(content, dict):
                    self._source.start = self._lines.place_of(content)
                    report.copied += 1
            except InvalidInput:  # the process was killed while it wrote this line
                break
            size += len(line)
        file.truncate(size)
        self._begun = size > 0
        if done := report.copied - self._before:
            report.notify(f"Continuing {file.part} after {counted(done, report.noun)}.")

    async def write(self, unit: RowPage, report: TransferReport) -> None:
        """Append the lines of a page."""
        for damage in unit.page.damaged:
            report.leave_out(f"Left out: {damage}")
        self._begin()
        self._output.write(b"".join(self._lines.line_of(unit.table, record) for record in unit.page.records))
        report.copied += len(unit.page.records)

    async def finish(self) -> None:
        """Write the last line."""
        self._begin()
        self._output.write(end_line(self._report.copied - self._before))

    def _begin(self) -> None:
        """Write the first line, once something was read."""
        if not self._begun:
            self._output.write(self._head)
            self._begun = True


class FileSource(UnitSource[RowPage]):
    """Reads the rows in the lines of a file, in batches.

    Args:
        lines: The lines of the file. The first one is read at once.
        find_target: Returns the target for a first line. Raises `InvalidInput` if there is no target.

    Raises:
        InvalidInput: The first line is damaged or missing.
    """

    def __init__(self, lines: Iterable[bytes], find_target: Callable[[Head], RowTarget]) -> None:
        self._input = iter(lines)
        self._number = 1
        with self._numbered():
            first = next(self._input, None)
            if first is None:
                raise InvalidInput(_CUT_OFF)
            head = content_of(first, 1)
            assert isinstance(head, Head)  # noqa: S101 - a first line is a head, or was refused
            self.target = find_target(head)
        self._lines = Lines(self.target.moving)

    async def units(self) -> AsyncGenerator[RowPage, None]:
        """Read the batches.

        Raises:
            InvalidInput: A line is damaged; the message has its number. Its batch is not returned.
        """
        page, size = RowPage(0, Page([], [], None)), 0
        for line in self._input:
            self._number += 1
            with self._numbered():
                content = content_of(line, self._number)
                if isinstance(content, End):
                    self._check_end(content)
                    yield page
                    return
                assert isinstance(content, dict)  # noqa: S101 - only the first line is a head
                table, record = self._lines.record_of(content)
            if table != page.table or len(page.page.records) >= MAX_RECORDS or size >= MAX_BYTES:
                yield page
                page, size = RowPage(table, Page([], [], None)), 0
            page.page.records.append(record)
            size += len(line)
        raise InvalidInput(f"Line {self._number + 1}: {_CUT_OFF}")

    def _check_end(self, end: End) -> None:
        read = self._number - 2
        if end.items != read:
            raise InvalidInput(f"The file had {counted(end.items, 'row')} when it was written, and has {read}.")
        if next(self._input, None) is not None:
            self._number += 1
            raise InvalidInput("The file continues after its last line.")

    @contextlib.contextmanager
    def _numbered(self) -> Iterator[None]:
        """Add the line's number to errors."""
        try:
            yield
        except InvalidInput as error:
            raise InvalidInput(f"Line {self._number}: {error}") from None


class Lines:
    """The lines of a family's rows.

    Args:
        moving: What moving the rows of each table of owners needs.
    """

    def __init__(self, moving: Sequence[Moving]) -> None:
        self._moving = moving
        self._roles = [one.tables.owner.role for one in moving]
        self._table = 0
        self._owner: OwnerRecord | None = None

    def line_of(self, table: int, record: Record) -> bytes:
        """Return the line of a record."""
        if isinstance(record, Restart):
            return checksummed(_RESTART)
        values = [{"b": b64encode(one).decode()} if isinstance(one, bytes) else one for one in record.values]
        if isinstance(record, PartRecord):
            return checksummed({"part": record.role, "row": values})
        of = {"of": self._roles[table]} if len(self._roles) > 1 else {}
        return checksummed({**of, "owner": values})

    def record_of(self, content: Mapping[str, Any]) -> tuple[int, Record]:
        """Return the number of the table of owners, and the record in a line. Call it for each line in its order.

        Raises:
            InvalidInput: It is none of the family.
        """
        if content == _RESTART:
            return self._table, Restart()
        role = content.get("of", self._roles[0] if len(self._roles) == 1 else None)
        if content.keys() - {"of"} == {"owner"} and role in self._roles:
            self._table = self._roles.index(role)
            sql = self._moving[self._table].sql
            self._owner = OwnerRecord(_values_of(content["owner"], len(sql.owners.columns)))
            return self._table, self._owner
        parts = self._moving[self._table].sql.parts
        name = content.get("part")
        if content.keys() != {"part", "row"} or not isinstance(name, str) or name not in parts:
            raise InvalidInput("A line is a row of a table of the family, or the owner of the rows after it.")
        return self._table, PartRecord(
            name, _values_of(content["row"], len(parts[name].columns) + len(parts[name].bases))
        )

    def place_of(self, content: Mapping[str, Any]) -> Place:
        """Return the place of the record in a line. Call it for each line in its order.

        Raises:
            InvalidInput: The line has none.
        """
        table, record = self.record_of(content)
        if self._owner is None:
            raise InvalidInput("The line belongs to no owner.")
        if isinstance(record, PartRecord):
            return Place(table, Position(self._owner.values, record.role, record.values))
        return Place(table, Position(self._owner.values, void=isinstance(record, Restart)))


def _values_of(values: Any, number: int) -> tuple[Any, ...]:
    if not isinstance(values, list) or len(values) != number:
        raise InvalidInput(f"The row must have {number} values.")
    return tuple(map(_value_of, values))


def _value_of(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"b"} and isinstance(value["b"], str):
        try:
            return b64decode(value["b"], validate=True)
        except ValueError:
            raise InvalidInput("Bytes must be in base 64.") from None
    if isinstance(value, str):
        return check_text(value, "A value")
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise InvalidInput("A value is null, a whole number, text, or bytes in base 64.")
