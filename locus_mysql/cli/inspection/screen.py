"""`Screen`: prints lines, blocks of text and tables to a terminal or a pipe, or JSON for programs.

This module sanitizes every text, so no command can forget it. Output to a pipe has no colours, and is neither wrapped
nor truncated.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ...errors import SetupError
from ...extras import install_command
from ..arguments import PIPE_CLOSED, cut, discard, sanitize, sanitize_json, sanitize_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: Width of a line in a pipe.
_WIDE = 1_000_000

#: Characters of a cell of a table on a terminal, and those of its end if it is longer.
CELL_CHARACTERS, CELL_END = 64, 16

#: Characters written by one call.
_AT_ONCE = 32_768


class Segment(NamedTuple):
    """A piece of a line with its style; an empty style for none."""

    text: str
    style: str = ""


class Column(NamedTuple):
    """A column of a table.

    Args:
        title: Its heading.
        cell: Returns the cell of a row.
        style: The style of its cells.
        right: Whether it is right-aligned.
        whole: Whether its cells are never wrapped.

    On a terminal, cells longer than `CELL_CHARACTERS` show their beginning and their end; a pipe and ``--json`` get all
    of them.
    """

    title: str
    cell: Callable[[Any], str]
    style: str = ""
    right: bool = False
    whole: bool = False


def number(title: str, cell: Callable[[Any], str]) -> Column:
    """Return a column of numbers."""
    return Column(title, cell, right=True, whole=True)


def need_rich() -> None:
    """Check that rich is installed."""
    if find_spec("rich") is None:
        raise SetupError(
            f"This command prints with rich, which is not installed. Run {install_command('cli')}; or give --json, "
            "which needs no library."
        )


class Screen:
    """Prints results of commands.

    Args:
        stream: The stream; by default the standard output.
        terminal: Whether the stream is a terminal; by default, detected.
        width: Width of the terminal; by default, detected.
    """

    def __init__(
        self, stream: IO[str] | None = None, *, terminal: bool | None = None, width: int | None = None
    ) -> None:
        need_rich()
        from rich.console import Console

        self._stream = stream or sys.stdout
        self.terminal = self._stream.isatty() if terminal is None else terminal
        self._console: Console = Console(
            file=self._stream,
            force_terminal=self.terminal,
            width=width if self.terminal else _WIDE,
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=not self.terminal,
        )

    @property
    def width(self) -> int:
        """Width of a line in characters."""
        return self._console.width

    @property
    def unicode(self) -> bool:
        """Whether the stream's encoding has characters beyond ASCII."""
        return self._console.encoding.lower().startswith("utf")

    def line(self, *parts: Segment | str) -> None:
        """Print a line, wrapped to the width of the terminal."""
        self._print(_text(parts))

    def block(self, text: str, style: str = "", *, indent: int = 2, limit: int | None = None) -> None:
        """Show a text of several lines.

        Args:
            text: The text.
            style: Its style.
            indent: Spaces before each line.
            limit: The maximum number of characters to show on a terminal.
        """
        from rich.padding import Padding
        from rich.text import Text

        shown = sanitize(cut(text, limit if self.terminal else None))
        if self.terminal:
            self._print(Padding(Text(shown, style, overflow="fold"), (0, 0, 0, indent), expand=False))
        else:
            self._print(Text("\n".join(" " * indent + line if line else "" for line in shown.split("\n"))))

    def table(self, columns: Sequence[Column], rows: Sequence[Any]) -> None:
        """Show a table with a line for each of the rows."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for column in columns:
            justify = "right" if column.right else "left"
            table.add_column(
                Text(column.title),
                style=column.style,
                justify=justify,  # type: ignore[arg-type]  # one of rich's words
                overflow="fold",
                no_wrap=column.whole,
            )
        for row in rows:
            table.add_row(*(Text(self._cell(column.cell(row))) for column in columns))
        self._print(table)

    def _cell(self, text: str) -> str:
        """Return the text of a cell, shortened in its middle on a terminal."""
        shown = sanitize_line(text)
        if not self.terminal or len(shown) <= CELL_CHARACTERS:
            return shown
        return f"{shown[: CELL_CHARACTERS - CELL_END - 1]}…{shown[-CELL_END:]}"

    def _print(self, renderable: Any) -> None:
        with self._console.capture() as captured:
            self._console.print(renderable)
        text = captured.get()
        if not self.terminal:
            text = "".join(f"{line.rstrip(' ')}\n" for line in text.splitlines())
        write(text, self._stream)


def write_json(value: Any, stream: IO[str] | None = None) -> None:
    """Show a value as JSON."""
    text = json.dumps(as_json(value), indent=2, ensure_ascii=False, allow_nan=True)
    write(sanitize_json(text) + "\n", stream or sys.stdout)


def as_json(value: Any) -> Any:
    """Return a value with records as dicts, and times as ISO text in UTC."""
    if is_dataclass(value) and not isinstance(value, type):
        shown = [field.name for field in fields(value) if field.metadata.get("shown", True)]
        return {name: as_json(getattr(value, name)) for name in shown}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): as_json(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [as_json(part) for part in value]
    return value


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a JSON value as indented text."""
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)


def write(text: str, stream: IO[str]) -> None:
    """Write a text, with escapes for characters that the stream's encoding lacks.

    Raises:
        SystemExit: The process that read the stream has ended, such as ``head``.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        # Unbuffered (PYTHONUNBUFFERED), Python reports an incomplete write only at the next write.
        for start in range(0, len(shown), _AT_ONCE):
            stream.write(shown[start : start + _AT_ONCE])
        stream.flush()
    except BrokenPipeError:
        discard(stream)
        raise SystemExit(PIPE_CLOSED) from None


def _text(parts: Sequence[Segment | str]) -> Text:
    from rich.text import Text

    line = Text(overflow="fold")
    for part in parts:
        piece = Segment(part) if isinstance(part, str) else part
        line.append(sanitize_line(piece.text), piece.style or None)
    return line
