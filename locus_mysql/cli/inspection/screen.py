"""What commands show: lines, blocks of text and tables on a terminal or in a pipe; or JSON, for programs.

Every text that comes in is made harmless here, so no command can forget it. In a pipe there are no colours, nothing is
wrapped, and nothing is cut off.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ...errors import SetupError
from ..sanitize import cut, harmless_json, harmless_line, sanitize

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: What stands in for the width of a pipe.
_WIDE = 1_000_000

#: Characters that are written at once.
_AT_ONCE = 32_768

#: What a shell tells of a process that SIGPIPE ended.
PIPE_CLOSED = 128 + 13


class Said(NamedTuple):
    """A piece of a line, with its style; an empty one for none."""

    text: str
    style: str = ""


class Column(NamedTuple):
    """A column of a table.

    Args:
        title: Stands above it.
        style: Of its cells.
        right: Whether it is set to the right.
        whole: Whether it is never broken.
    """

    title: str
    style: str = ""
    right: bool = False
    whole: bool = False


def need_rich() -> None:
    """Refuse to show anything where rich is not installed."""
    if find_spec("rich") is None:
        raise SetupError(
            "Showing this in the terminal needs rich, which is not installed. Run pip install 'locus-mysql[cli]'; or "
            "give --json, which needs nothing."
        )


class Screen:
    """Shows what commands found.

    Args:
        stream: Where; the standard output if absent.
        terminal: Whether that is a terminal; if absent, it is asked.
        width: Of the terminal; if absent, it is asked.
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
        """How many characters a line may have."""
        return self._console.width

    @property
    def unicode(self) -> bool:
        """Whether more than ASCII can be shown."""
        return self._console.encoding.lower().startswith("utf")

    def line(self, *parts: Said | str) -> None:
        """Show a line; what is too long for the terminal goes on below."""
        self._print(_text(parts))

    def block(self, text: str, style: str = "", *, indent: int = 2, limit: int | None = None) -> None:
        """Show a text of several lines.

        Args:
            text: The text.
            style: Of all of it.
            indent: How many blanks stand before each line.
            limit: Of how many characters at most, on a terminal.
        """
        from rich.padding import Padding
        from rich.text import Text

        shown = sanitize(cut(text, limit if self.terminal else None))
        if self.terminal:
            self._print(Padding(Text(shown, style, overflow="fold"), (0, 0, 0, indent), expand=False))
        else:
            self._print(Text("\n".join(" " * indent + line if line else "" for line in shown.split("\n"))))

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
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
            table.add_row(*(Text(harmless_line(cell)) for cell in row))
        self._print(table)

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
    write(harmless_json(text) + "\n", stream or sys.stdout)


def as_json(value: Any) -> Any:
    """Records as dicts, and times as ISO text in UTC."""
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
    """A JSON value as text to read."""
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)


def write(text: str, stream: IO[str]) -> None:
    """Write a text; characters that the stream's encoding lacks as their escapes.

    Raises:
        SystemExit: Whoever read the stream has gone, as ``head`` does.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        # Unbuffered (PYTHONUNBUFFERED), Python does not say when it could write only a part, but at the next write.
        for start in range(0, len(shown), _AT_ONCE):
            stream.write(shown[start : start + _AT_ONCE])
        stream.flush()
    except BrokenPipeError:
        _forget(stream)
        raise SystemExit(PIPE_CLOSED) from None


def _forget(stream: IO[str]) -> None:
    """Let nothing more be written to a stream, nor complained of when the process ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, io.UnsupportedOperation):
        return


def _text(parts: Sequence[Said | str]) -> Text:
    from rich.text import Text

    line = Text(overflow="fold")
    for part in parts:
        said = Said(part) if isinstance(part, str) else part
        line.append(harmless_line(said.text), said.style or None)
    return line
