"""Calls that wait too long for an answer are detected, on either side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from locus_mysql.engine.cluster import primary
from locus_mysql.engine.cluster.primary import INSPECT_EVERY_S, SUSPICION_S, Watch
from locus_mysql.engine.commands import CommandGenerator, Sleep, Wait
from locus_mysql.engine.loops import run_blocking
from locus_mysql.engine.sides import AwaitedSide, BlockingSide

from .conftest import Clock

PATIENCE_S = 60.0


class Scripted:
    """Inspections of a watch, which the test runs when it likes."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.scheduled: list[float] = []
        self.suspects: list[object] = []
        self.fails = False
        side: Any = self
        self.watch: Any = Watch(side, self.suspect, clock)

    def call_later(self, work: object, wait_s: float) -> None:
        assert work == self.watch.inspect
        self.scheduled.append(wait_s)

    def start(self, work: Callable[[], CommandGenerator[None]]) -> None:
        """Run steps as a thread does, to whose starter their error is nothing."""
        with suppress(OSError):
            run_blocking(work())

    def suspect(self, connection: object) -> CommandGenerator[None]:
        yield Sleep(0)
        self.suspects.append(connection)
        if self.fails:
            raise OSError("of a driver from outside")

    def inspect(self) -> list[object]:
        """Run the inspection that is scheduled; return the connections that were suspected."""
        assert self.scheduled.pop() == INSPECT_EVERY_S
        assert self.scheduled == []
        self.suspects.clear()
        run_blocking(self.watch.inspect())
        return self.suspects


def test_only_a_long_wait_makes_a_server_suspect(clock: Clock) -> None:
    one = Scripted(clock)
    one.watch.begin("slow")
    assert one.inspect() == []
    clock.now += SUSPICION_S + 0.1
    one.watch.begin("quick")
    assert one.inspect() == ["slow"]
    assert one.inspect() == ["slow"]
    assert one.watch.waiting() == ["slow", "quick"]
    one.watch.end("slow")
    assert one.inspect() == []
    assert one.watch.waiting() == ["quick"]


def test_calls_are_inspected_also_after_a_failure(clock: Clock) -> None:
    one = Scripted(clock)
    one.fails = True
    one.watch.begin("one")
    clock.now += SUSPICION_S + 0.1
    for fails in (True, False):
        one.fails = fails
        assert one.inspect() == ["one"]


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
async def test_a_silent_server_is_handled_repeatedly_once_at_a_time(
    awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(primary, "SUSPICION_S", -1.0)
    monkeypatch.setattr(primary, "INSPECT_EVERY_S", 0.001)
    running, most, seen = 0, 0, list[object]()

    async def pause() -> None:
        await asyncio.sleep(0.002)

    def suspect(connection: object) -> CommandGenerator[None]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        yield Wait(pause) if awaited else Sleep(0.002)
        seen.append(connection)
        running -= 1

    inspected: Any = Watch(AwaitedSide() if awaited else BlockingSide(), suspect)
    inspected.begin("silent")
    async with asyncio.timeout(PATIENCE_S):
        while len(seen) < 5:
            inspected.begin("silent")
            await asyncio.sleep(0.001)
    inspected.end("silent")
    assert (set(seen), most) == ({"silent"}, 1)
