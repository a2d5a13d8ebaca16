"""`Progress` of a transfer: a bar on a terminal if rich is installed, else a line every few seconds."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..transfer.engine import TransferReport
from ..wording import counted
from .arguments import notify, sanitize

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

#: Seconds between two lines.
EVERY_S = 5.0


class Progress:
    """Shows the number of transferred threads or records, and the remaining time, on the standard error output.

    Args:
        noun: The noun for the counted things: ``threads``, or the noun for records.
    """

    def __init__(self, noun: str = "threads") -> None:
        self._noun = noun
        self._begun_at = self._shown_at = time.monotonic()
        # A program that shows the standard output may write to the same terminal.
        self._silent = sys.stderr.isatty() and not sys.stdout.isatty()
        self._bar: Bar | None = _bar() if sys.stderr.isatty() and not self._silent else None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._task = self._bar.add_task(self._noun, total=None, what="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def advance(self, report: TransferReport, total: int | None) -> None:
        """Show the current progress.

        Args:
            report: The report of the transfer.
            total: Expected number of threads or records, if known.
        """
        done, what = report.records, ""
        if self._noun == "threads":
            done, what = report.threads, counted(report.copied + report.present, report.noun)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=None if total is None else max(done, total), what=what)
            return
        now = time.monotonic()
        if self._silent or done == total or now - self._shown_at < EVERY_S:  # the report at the end shows the end
            return
        self._shown_at = now
        notify(line(self._noun, done, total, what, now - self._begun_at))

    def notify(self, text: str) -> None:
        """Show a message above the bar. It may contain stored text."""
        if self._bar is not None:
            self._bar.console.print(sanitize(text), markup=False, highlight=False, soft_wrap=True)
        else:
            notify(text)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def line(noun: str, done: int, total: int | None, what: str, elapsed_s: float) -> str:
    """Return the progress in words: ``50 of about 1,200 threads, 3,400 checkpoints, about 4 min left …``."""
    known = total is not None and total >= done
    parts = [f"{done:,} of about {total:,} {noun}" if known else f"{done:,} {noun}"]
    if what:
        parts.append(what)
    if total is not None and known and done:
        parts.append(f"about {duration(elapsed_s * (total - done) / done)} left")
    return f"{', '.join(parts)} …"


def duration(seconds: float) -> str:
    """Return a duration in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5_400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.1f} h"


def _bar() -> Bar | None:
    """Return a bar; None if rich is not installed."""
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
