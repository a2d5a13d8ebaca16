"""Copies of threads from any Locus checkpointer into this package's tables: `copy_threads`.

A module for each kind of source, over the engine in `locus_mysql.transfer`. Begin with `locations`, which opens them
by name; `checkpointers` reads any checkpointer by its public methods.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

from ....runtime.transfer import Notify, TransferReport
from ....transfer.engine import Advance
from .locations import CheckpointerOrName, Location, open_source, open_target, refuse_same
from .sources import CopySource
from .tables import TablesTarget
from .threads import copy_in_order


async def copy_threads(
    source: CheckpointerOrName | Location,
    target: CheckpointerOrName | Location,
    *,
    threads: Sequence[str] | None = None,
    pattern: str = "*",
    at_once: int = 4,
    verify: bool = False,
    dry_run: bool = False,
    notify: Notify = lambda _: None,
    advance: Advance = lambda *_: None,
    report: TransferReport | None = None,
) -> TransferReport:
    """Copy threads with all their checkpoints, in their order, from any Locus checkpointer into this package's tables.

    The source is only read. May be repeated, and continues after an interruption: present checkpoints are skipped, a
    partially copied thread is completed, and one with newer checkpoints in the target is left unchanged. Ids, order,
    metadata, times and branches are kept as far as the source has them.

    Args:
        source: A checkpointer, or its name: ``file:PATH``, ``redis://…``, ``postgresql://…``, ``http://…``,
            ``mysql://…`` for this package's tables, ``builtin-mysql://…`` for Locus' own, ``package.module:function``
            for a function that returns one, or a name in Locus' registry. Only its public methods are used.
        target: A `MySQLCheckpointer`, or ``mysql://…``.
        threads: Ids of the threads to copy; None means all.
        pattern: Only threads whose ids match this glob, in which only ``*`` and ``?`` are special.
        at_once: Number of threads that are copied concurrently.
        verify: Whether each checkpoint is loaded on both sides and compared, also those that were present.
        dry_run: Only report what would be copied: nothing is written, and no tables are created.
        notify: Receives a message about each thread and checkpoint that is not copied exactly.
        advance: Called after each thread, with the report and the approximate number of threads.
        report: Filled during the copy, for callers that need it even if the copy fails.

    Returns:
        The report; its ``complete`` is true if the target has everything that the source had.

    Raises:
        UsageError: A side cannot be opened, or both are the same.
        SetupError: A library that a side needs is not installed, or its server refuses the connection.
        LocusMySQLError: A side failed. Run the copy again: it continues.

    Example:
        ```python
        from uuid import uuid4

        from locus.memory.backends import MemoryCheckpointer

        old = MemoryCheckpointer()
        thread_id = f"support/{uuid4()}"
        await Agent(model=model, checkpointer=old).arun("Hello", thread_id=thread_id)
        report = await copy_threads(old, "mysql://user:password@localhost/app", verify=True)
        assert report.complete, report
        ```
    """
    report = TransferReport() if report is None else report
    report.dry_run, report.notify = dry_run, notify
    async with _opened(source, target, report) as (reading, writing):
        return await copy_in_order(
            reading, writing, report, threads=threads, pattern=pattern, at_once=at_once, verify=verify, advance=advance
        )


@contextlib.asynccontextmanager
async def _opened(
    source: CheckpointerOrName | Location, target: CheckpointerOrName | Location, report: TransferReport
) -> AsyncIterator[tuple[CopySource, TablesTarget]]:
    """Open both sides of a copy, which must not be the same, and close them at the end."""
    async with contextlib.AsyncExitStack() as opened:
        reading = open_source(source, report.notify)
        opened.push_async_callback(reading.close)
        writing = open_target(target, dry_run=report.dry_run)
        opened.push_async_callback(writing.close)
        refuse_same(reading, writing)
        yield reading, writing
