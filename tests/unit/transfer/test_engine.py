"""The engine: every unit is written once, an error ends the transfer, and blocking sides need no event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from locus_mysql.transfer.engine import TransferReport, run_blocking, transfer


class Numbers:
    """Numbers as units."""

    gaps = frozenset({"letters"})

    def __init__(self, count: int, changed: int = 0) -> None:
        self.count = count
        self._changed = changed
        self.closed = False

    async def open(self) -> int:
        return self.count

    async def units(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(self.count):
                yield number
        finally:
            self.closed = True

    async def changed(self) -> int:
        return self._changed


class Written:
    """Keeps the units; fails at the given one, if any."""

    def __init__(self, fails_at: int | None = None, *, waits: bool = False) -> None:
        self.units: list[int] = []
        self.most_at_once = 0
        self._at_once = 0
        self._fails_at = fails_at
        self._waits = waits

    async def open(self) -> None: ...

    async def finish(self) -> None: ...

    async def write(self, unit: int, report: TransferReport) -> None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        if self._waits:
            await asyncio.sleep(0)
        if unit == self._fails_at:
            raise ConnectionError("gone")
        self._at_once -= 1
        self.units.append(unit)
        report.copied += 1


@pytest.mark.parametrize("at_once", [1, 3])
def test_every_unit_is_written_once_and_reported(at_once: int) -> None:
    source, target, progress = Numbers(10, changed=2), Written(waits=True), list[tuple[int, int | None]]()
    report = asyncio.run(
        transfer(
            source,
            target,
            TransferReport("number"),
            at_once=at_once,
            advance=lambda report, total: progress.append((report.copied, total)),
        )
    )
    assert sorted(target.units) == list(range(10))
    assert target.most_at_once == at_once
    assert (report.copied, report.changed, report.complete) == (10, 2, False)
    assert report.not_given == {"letters"}
    assert [total for _, total in progress] == [10] * 10


@pytest.mark.parametrize("at_once", [1, 3])
def test_an_error_ends_the_transfer_and_closes_the_source(at_once: int) -> None:
    source, target, report = Numbers(100), Written(fails_at=5, waits=True), TransferReport("number")
    with pytest.raises(ConnectionError, match="gone"):
        asyncio.run(transfer(source, target, report, at_once=at_once))
    assert source.closed
    assert 5 not in target.units
    assert report.copied == len(target.units) < 10


def test_sides_that_block_need_no_event_loop() -> None:
    target = Written()

    async def within_a_loop() -> TransferReport:
        return run_blocking(transfer(Numbers(5), target, TransferReport("number")))

    assert run_blocking(transfer(Numbers(5), target, TransferReport("number"))).copied == 5
    assert asyncio.run(within_a_loop()).copied == 5
