"""How far something is: a bar where somebody watches and rich is installed, else a line now and then: `Progress`."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .arguments import tell
from .sanitize import sanitize

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

#: Seconds between two lines.
EVERY_S = 5.0


class Progress:
    """Shows how many threads of how many are done, and how long the rest may take; on the standard error output."""

    def __init__(self) -> None:
        self._begun_at = self._told_at = time.monotonic()
        self._bar: Bar | None = _bar() if sys.stderr.isatty() else None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._task = self._bar.add_task("threads", total=None, what="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def advance(self, done: int, total: int | None, what: str) -> None:
        """So many are done.

        Args:
            done: How many.
            total: Of about how many; None if nobody knows.
            what: What else to show.
        """
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=None if total is None else max(done, total), what=what)
            return
        now = time.monotonic()
        if now - self._told_at >= EVERY_S and done != total:  # what comes after the last one tells that it was
            self._told_at = now
            tell(line(done, total, what, now - self._begun_at))

    def tell(self, text: str) -> None:
        """Say something, above the bar. It may hold what is stored."""
        if self._bar is not None:
            self._bar.console.print(sanitize(text), markup=False, highlight=False, soft_wrap=True)
        else:
            tell(text)

    def close(self) -> None:
        """Show nothing any more."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def line(done: int, total: int | None, what: str, elapsed_s: float) -> str:
    """How far it is, in words."""
    if total is None or total < done:
        return f"{done:,} threads, {what} …"
    left_s = elapsed_s * (total - done) / done if done else None
    rest = "" if left_s is None else f", about {duration(left_s)} left"
    return f"{done:,} of about {total:,} threads, {what}{rest} …"


def duration(seconds: float) -> str:
    """A time in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5_400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.1f} h"


def _bar() -> Bar | None:
    """A bar; None if rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
    except ImportError:
        return None
    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[what]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
