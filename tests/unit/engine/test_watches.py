"""When servers whose calls wait are looked at: by a thread, and by a timer of the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from locus_mysql.engine import watch
from locus_mysql.engine.watch import AsyncWatch, SyncWatch

PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call waits too long at once, and is looked at often."""
    monkeypatch.setattr(watch, "SUSPICION_S", -1.0)
    monkeypatch.setattr(watch, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(watch, "REST_AFTER_S", -1.0)


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "locus-mysql watch"}


def ended(thread: threading.Thread) -> bool:
    thread.join(PATIENCE_S)
    return not thread.is_alive()


def test_a_thread_looks_again_and_again_at_a_server_that_is_silent_and_ends_when_nothing_is_called() -> None:
    before, seen, third = threads(), [], threading.Event()

    def look(connection: Any) -> None:
        seen.append(connection)
        if len(seen) == 3:
            third.set()

    inspection, silent, other = SyncWatch(look), object(), object()
    inspection.begin(silent)  # type: ignore[arg-type]
    (thread,) = threads() - before
    inspection.begin(other)  # type: ignore[arg-type]
    assert threads() - before == {thread}
    assert thread.daemon
    assert third.wait(PATIENCE_S)
    assert set(seen) == {silent}
    inspection.end(other)  # type: ignore[arg-type]
    inspection.end(silent)  # type: ignore[arg-type]
    assert ended(thread)
    third.clear()
    seen.clear()
    inspection.begin(other)  # type: ignore[arg-type]
    assert third.wait(PATIENCE_S)
    assert set(seen) == {other}
    inspection.end(other)  # type: ignore[arg-type]


def test_a_thread_does_not_look_where_nobody_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "SUSPICION_S", 1_000.0)
    before, rounds, seen = threads(), threading.Semaphore(0), []
    sleep = time.sleep

    def counted(seconds: float) -> None:
        if threading.current_thread().name == "locus-mysql watch":
            assert seconds == watch.LOOK_EVERY_S
            rounds.release()
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", counted)
    inspection = SyncWatch(seen.append)
    inspection.begin(object())  # type: ignore[arg-type]
    (thread,) = threads() - before
    for _ in range(3):
        assert rounds.acquire(timeout=PATIENCE_S)
    assert thread.is_alive()
    assert seen == []
    for connection in inspection.calls.waiting():
        inspection.end(connection)
    assert ended(thread)


def test_a_thread_that_fails_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    before, twice, seen = threads(), threading.Event(), []

    def look(connection: Any) -> None:
        seen.append(connection)
        if len(seen) > 1:
            twice.set()
            return
        raise OSError("of a driver from outside")

    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    inspection, silent = SyncWatch(look), object()
    inspection.begin(silent)  # type: ignore[arg-type]
    for thread in threads() - before:
        assert ended(thread)
    inspection.begin(silent)  # type: ignore[arg-type]
    assert twice.wait(PATIENCE_S)
    assert len(reported) == 1
    inspection.end(silent)  # type: ignore[arg-type]


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.001)


async def test_a_timer_looks_again_and_again_one_look_at_a_time_and_ends_when_nothing_is_called() -> None:
    seen: list[Any] = []
    going_on = asyncio.Event()

    async def look(connection: Any) -> None:
        seen.append(connection)
        await going_on.wait()

    inspection: Any = AsyncWatch(look)
    silent = object()
    inspection.begin(silent)
    timer = inspection._timer
    inspection.begin(object())
    assert inspection._timer is timer  # one is enough
    await until(lambda: seen)
    timers = set()
    await until(lambda: timers.add(inspection._timer) or len(timers) > 5)
    assert seen == [silent]
    going_on.set()
    await until(lambda: len(seen) > 3)
    for connection in inspection.calls.waiting():
        inspection.end(connection)
    await until(lambda: inspection._timer is None)
    inspection.begin(silent)
    assert inspection._timer is not None
    inspection.stop()


async def test_a_timer_does_not_look_where_nobody_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "SUSPICION_S", 1_000.0)
    seen: list[Any] = []

    async def look(connection: Any) -> None:
        seen.append(connection)

    inspection: Any = AsyncWatch(look)
    inspection.stop()  # nothing to stop
    inspection.begin(object())
    timers = set()
    await until(lambda: timers.add(inspection._timer) or len(timers) > 5)
    assert seen == []
    assert inspection._task is None
    inspection.stop()
    assert inspection._timer is None
    inspection.begin(object())
    assert inspection._timer is not None
    inspection.stop()


async def test_who_stops_ends_the_look_as_well() -> None:
    async def look(connection: Any) -> None:
        await asyncio.Event().wait()

    inspection: Any = AsyncWatch(look)
    inspection.begin(object())
    await until(lambda: inspection._task is not None)
    inspection.stop()
    await until(inspection._task.done)
    assert inspection._task.cancelled()
