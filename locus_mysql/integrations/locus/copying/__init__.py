"""Copying threads from any Locus checkpointer to any other: `copy_threads`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from .copying import ThreadCopy
from .places import Place, Side, open_source, open_target, refuse_same
from .report import CopyReport
from .sides import Tell


async def copy_threads(
    source: Side | Place,
    target: Side | Place,
    *,
    threads: Sequence[str] | None = None,
    pattern: str = "*",
    at_once: int = 4,
    verify: bool = False,
    dry_run: bool = False,
    tell: Tell = lambda _: None,
    advance: Callable[[CopyReport, int | None], None] = lambda *_: None,
    report: CopyReport | None = None,
) -> CopyReport:
    """Copy threads with all their checkpoints, in their order, from any Locus checkpointer to any other.

    The source is only read. May be repeated, and goes on where it was stopped: what is there already is passed over, a
    thread that was copied in part is completed, and one that went on in the target is left alone. `MySQLCheckpointer`
    as target keeps ids, order, metadata, times and branches as the source tells them.

    Args:
        source: A checkpointer, or its name: ``file:PATH``, ``redis://…``, ``postgresql://…``, ``http://…``,
            ``mysql://…`` for this package's tables, ``builtin-mysql://…`` for Locus' own, ``package.module:function``
            for a function that makes one, or what Locus' registry knows.
        target: The same.
        threads: Ids of those to copy; None means all.
        pattern: Only threads whose ids match this glob, in which ``*`` and ``?`` have a meaning.
        at_once: How many threads are copied side by side.
        verify: Whether each checkpoint is loaded on both sides and compared, also what was there already.
        dry_run: Only see what would be copied: nothing is written, and no tables are made.
        tell: Told, in a sentence, of each thing that is not copied as it is.
        advance: Called after each thread, with what was done by then and about how many threads there are.
        report: Filled while the copy runs, for who wants to see it although the copy breaks off.

    Returns:
        What was done; ``complete`` says whether all that was found is in the target now.

    Raises:
        UsageError: A side cannot be what it is to be.
        SetupError: What a side needs is not installed, or its server refuses.
        LocusMySQLError: A side broke down. Copy again, and it goes on where it stopped.

    Example:
        ```python
        from locus.memory.backends import MemoryCheckpointer

        old = MemoryCheckpointer()
        await Agent(model=model, checkpointer=old).arun("Hello", thread_id="support/42")
        report = await copy_threads(old, "mysql://user:password@localhost/app", verify=True)
        assert report.complete, report
        ```
    """
    async with contextlib.AsyncExitStack() as opened:
        reading = open_source(source, tell)
        opened.push_async_callback(reading.close)
        writing = open_target(target, dry_run=dry_run)
        opened.push_async_callback(writing.close)
        refuse_same(reading, writing)
        copying = ThreadCopy(
            reading,
            writing,
            threads=threads,
            pattern=pattern,
            at_once=at_once,
            verify=verify,
            dry_run=dry_run,
            tell=tell,
            advance=advance,
            report=report,
        )
        return await copying.run()
