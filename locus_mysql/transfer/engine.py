"""The engine of all transfers, `transfer`, and its result, `TransferReport`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from ..errors import UsageError
from ..wording import counted

T = TypeVar("T")
U = TypeVar("U")

#: Receives a message about a record that is not transferred exactly.
Notify: TypeAlias = Callable[[str], None]


@dataclass(slots=True)
class TransferReport:
    """The result of a transfer, or of its dry run.

    Attributes:
        noun: The singular noun for a record.
        action: The action on the records, as a participle.
        dry_run: Whether nothing was written.
        threads: Threads that were read; 0 if records do not belong to threads.
        copied: Records that were written, or would be.
        present: Records that the target already had, identical.
        left_out: Records that could not be read or stored.
        left_alone: Threads with newer checkpoints in the target, which were not changed.
        failed: Threads whose transfer failed.
        missing: Threads that were named and have no checkpoints in the source.
        verified: Records that were loaded on both sides and are identical.
        differing: Records, and orders of threads, that differ in the target.
        changed: Threads of the source that were created, deleted, or written to during the transfer; 1 if only the
            number of records changed. Run the transfer again.
        kinds: Number of records of each kind in the source, where there are several kinds.
        ids: Ids that records have in the target, by their ids in the source, where they differ.
        not_given: Descriptions of data that the source could not provide.
        notify: Receives a message about each record or thread that is not transferred exactly.
    """

    noun: str = "checkpoint"
    action: str = "copied"
    dry_run: bool = False
    threads: int = 0
    copied: int = 0
    present: int = 0
    left_out: int = 0
    left_alone: int = 0
    failed: int = 0
    missing: int = 0
    verified: int = 0
    differing: int = 0
    changed: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    not_given: set[str] = field(default_factory=set)
    notify: Notify = field(default=lambda _: None, repr=False, compare=False)

    @property
    def complete(self) -> bool:
        """Return whether the target has, or would have, everything that the source had at the end."""
        return not (self.left_out or self.left_alone or self.failed or self.missing or self.differing or self.changed)

    @property
    def records(self) -> int:
        """Return the number of records processed so far."""
        return self.copied + self.present + self.left_out + self.differing

    def leave_out(self, message: str) -> None:
        """Count a record that could not be read or stored."""
        self.left_out += 1
        self.notify(message)

    def differ(self, message: str) -> None:
        """Count a record that differs in the target."""
        self.differing += 1
        self.notify(message)

    def __str__(self) -> str:
        records = counted(self.copied, self.noun)
        if self.threads:
            begin = f"{counted(self.threads, 'thread')}: {records} {'to copy' if self.dry_run else self.action}"
        else:
            begin = f"{'To copy:' if self.dry_run else self.action.capitalize()} {records}"
        records_and_words = (
            (self.present, "already present"),
            (self.left_out, "left out"),
            (self.verified, "identical on both sides"),
            (self.differing, "different in the target"),
        )
        threads_and_words = (
            (self.left_alone, "left alone"),
            (self.failed, "failed"),
            (self.missing, "without checkpoints in the source"),
            (self.changed, "changed in the source meanwhile"),
        )
        noun = "thread" if self.threads else self.noun
        parts = [begin, *(f"{number:,} {words}" for number, words in records_and_words if number)]
        parts += [f"{counted(number, noun)} {words}" for number, words in threads_and_words if number]
        lines = [f"{', '.join(parts)}."]
        lines += [f"The source does not give {gap}." for gap in sorted(self.not_given)]
        return "\n".join(lines)


#: Called after each unit, with the report so far and the approximate number of records or threads, if known.
Advance: TypeAlias = Callable[[TransferReport, "int | None"], None]


class UnitSource(ABC, Generic[U]):
    """Source of a transfer. Its units are written one by one; a unit is a page of records, or a thread.

    Attributes:
        gaps: Descriptions of data that the source cannot provide, as far as is known by now.
    """

    gaps: Collection[str] = ()

    async def open(self) -> int | None:
        """Check that the source can be read; return the number of its records or threads, if known.

        Raises:
            LocusMySQLError: It cannot be read.
        """
        return None

    @abstractmethod
    def units(self) -> AsyncGenerator[U, None]:
        """Read the units."""

    async def changed(self) -> int:
        """Return how many threads or records changed since they were read; 0 if that is not known."""
        return 0


class UnitTarget(ABC, Generic[U]):
    """Target of a transfer. Writing a unit again must be safe: existing records are skipped."""

    async def open(self) -> None:
        """Prepare the target to be written.

        Raises:
            LocusMySQLError: It cannot be written.
        """

    @abstractmethod
    async def write(self, unit: U, report: TransferReport) -> None:
        """Write a unit, and count its records in the report."""

    async def finish(self) -> None:
        """Write what is left after the last unit."""


async def transfer(
    source: UnitSource[U],
    target: UnitTarget[U],
    report: TransferReport,
    *,
    at_once: int = 1,
    advance: Advance = lambda *_: None,
) -> TransferReport:
    """Write each unit of a source to a target.

    Args:
        source: The source.
        target: The target.
        report: Filled during the transfer, for callers that need it even if the transfer fails.
        at_once: Number of units that are written concurrently.
        advance: Called after each unit.

    Raises:
        LocusMySQLError: A side cannot be used. Run the transfer again: it continues.
    """
    if at_once < 1:
        raise UsageError("at_once must be at least 1.")
    total = await source.open()
    await target.open()

    async def write(unit: U) -> None:
        await target.write(unit, report)
        advance(report, total)

    async with aclosing(source.units()) as units:
        if at_once == 1:
            async for unit in units:
                await write(unit)
        else:
            await _concurrently(units, write, at_once)
    await target.finish()
    report.changed = await source.changed()
    report.not_given |= set(source.gaps)
    return report


def run_blocking(running: Coroutine[Any, Any, T]) -> T:
    """Run a transfer whose two sides block, so that it never awaits and needs no event loop."""
    try:
        running.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        running.close()
    raise RuntimeError("A blocking transfer waited.")


async def _concurrently(
    units: AsyncGenerator[U, None], write: Callable[[U], Coroutine[Any, Any, None]], n: int
) -> None:
    """Write units in several tasks. The first error ends all of them."""
    turn = asyncio.Lock()

    async def work() -> None:
        while True:
            async with turn:
                try:
                    unit = await anext(units)
                except StopAsyncIteration:
                    return
            await write(unit)

    workers = [asyncio.create_task(work()) for _ in range(n)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
