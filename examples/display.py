"""The output of the demo: short lines, in colour on a terminal, and the results of checks."""

from __future__ import annotations

import os
from typing import TextIO

_RESET, _BOLD, _DIM, _RED, _GREEN, _CYAN = "\033[0m", "\033[1m", "\033[2m", "\033[1;31m", "\033[32m", "\033[36m"
_LABEL_WIDTH = 11


class Screen:
    """Writes the output and counts the checks that held.

    Args:
        stream: The output.
        colour: None means colour if the stream is a terminal and ``NO_COLOR`` is unset (https://no-color.org).
    """

    def __init__(self, stream: TextIO, *, colour: bool | None = None) -> None:
        self._stream = stream
        self._colour = _wants_colour(stream) if colour is None else colour
        self._scenes = 0
        self.held = 0
        self.failed = 0

    def title(self, text: str) -> None:
        """Write the first line."""
        self._write(self._paint(_BOLD, text))

    def section(self, text: str) -> None:
        """Write the numbered heading of the next section."""
        self._scenes += 1
        self._write("")
        self._write(self._paint(_BOLD, f"{self._scenes}  {text}"))

    def line(self, label: str, text: str) -> None:
        """Write one message or event, with its subject."""
        self._write(f"   {label:{_LABEL_WIDTH}}{text}")

    def database(self, text: str) -> None:
        """Write the content of the database."""
        self._write(self._paint(_CYAN, f"   {'database':{_LABEL_WIDTH}}{text}"))

    def check(self, held: bool, claim: str) -> bool:
        """Write and count the result of a check; return ``held``."""
        self.held += held
        self.failed += not held
        verdict = (
            self._paint(_GREEN, "ok".ljust(_LABEL_WIDTH)) if held else self._paint(_RED, "FAILED".ljust(_LABEL_WIDTH))
        )
        self._write(f"   {verdict}{claim}")
        return held

    def verdict(self, seconds: float) -> None:
        """Write the last line."""
        self._write("")
        if self.failed:
            text = f"{self.failed} of {self.held + self.failed} checks FAILED"
            self._write(self._paint(_RED, text))
        else:
            self._write(self._paint(_GREEN, f"All {self.held} checks held") + f", in {seconds:.1f} s.")

    def _paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_RESET}" if self._colour else text

    def _write(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


def size(count: float) -> str:
    """Format a number of bytes: ``540 B``, ``1.9 KB``, ``67 MB``."""
    for unit in ("B", "KB", "MB"):
        if count < 1000 or unit == "MB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def _wants_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
