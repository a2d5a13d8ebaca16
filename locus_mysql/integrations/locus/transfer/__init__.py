"""Copies of threads from any Locus checkpointer into this package's tables: `copy_threads`.

A module for each kind of source, over the engine in `locus_mysql.transfer`. Begin with `locations`, which opens them
by name; `checkpointers` reads any checkpointer by its public methods, and `threads` makes rows of what they return.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from ....records.transfer import RowSource, RowTarget, copy_rows
from ....transfer.engine import Advance, Notify, TransferReport, transfer
from ..agent_states import AGENTS
from .locations import CheckpointerOrName, Location, open_source, open_target
from .threads import AgentTables, ThreadTarget, ThreadUnits


async def copy_threads(
    source: CheckpointerOrName | Location,
    target: CheckpointerOrName | Location,
    *,
    threads: Sequence[str] | None = None,
    pattern: str = "*",
    at_once: int = 4,
    verify: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    notify: Notify = lambda _: None,
    advance: Advance = lambda *_: None,
    report: TransferReport | None = None,
) -> TransferReport:
    """Copy threads with all their checkpoints, in their order, from any Locus checkpointer into this package's tables.

    The source is only read. A thread is copied as a whole, or not at all. May be repeated, and continues after an
    interruption: equal threads are skipped, one that nobody has written to in the target since it was copied is
    replaced by what the source has now, and another one is left unchanged. Ids, order, metadata and times are kept as
    far as the source has them. From other tables of this package, all rows are copied as they are.

    Args:
        source: A checkpointer, or its name: ``file:PATH``, ``redis://…``, ``postgresql://…``, ``http://…``,
            ``builtin-mysql://…`` for Locus' own table, ``package.module:function`` for a function that returns one, or
            a name in Locus' registry; only its public methods are used. A `MySQLCheckpointer` or ``mysql://…`` stands
            for tables of this package.
        target: A `MySQLCheckpointer`, or ``mysql://…``.
        threads: Ids of the threads to copy; None means all.
        pattern: Only threads whose ids match this glob, in which only ``*`` and ``?`` are special.
        at_once: Number of threads that are copied concurrently.
        verify: Whether each checkpoint is loaded on both sides and compared, also those that were present.
        overwrite: Whether threads are replaced that others wrote to in the target.
        dry_run: Only count what the source has: nothing is written, and no tables are created.
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
    async with contextlib.AsyncExitStack() as opened:
        reading = open_source(source, report.notify)
        opened.push_async_callback(reading.close)
        writing = open_target(target)
        opened.push_async_callback(writing.close)
        if isinstance(reading, AgentTables):
            report.noun = "row"
            read, write = reading.config.model_copy(update={"ddl_mode": "validate"}), writing.config
            rows = RowSource(AGENTS.tables(read), read, reading.database, threads=threads, pattern=pattern)
            goal = RowTarget(AGENTS.tables(write), write, writing.database, overwrite=overwrite, verify=verify)
            return await copy_rows(rows, goal, report, advance)
        units = ThreadUnits(reading, threads, pattern)
        return await transfer(
            units,
            ThreadTarget(units, writing, verify=verify, overwrite=overwrite, dry_run=dry_run),
            report,
            at_once=at_once,
            advance=advance,
        )
