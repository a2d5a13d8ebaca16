"""The engine of all transfers: `transfer`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine
from contextlib import aclosing
from typing import Any, Generic, TypeAlias, TypeVar

from ..errors import UsageError
from ..runtime.transfer import TransferReport

T = TypeVar("T")
U = TypeVar("U")

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
