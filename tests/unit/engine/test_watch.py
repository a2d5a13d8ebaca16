"""Detection of calls that wait too long for an answer, by a thread or a timer of the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from locus_mysql.engine.cluster import watch
from locus_mysql.engine.cluster.watch import REST_AFTER_S, SUSPICION_S, Calls, ThreadWatch, TimerWatch
from locus_mysql.engine.commands import CommandGenerator, Sleep, Wait

from .conftest import Clock

PATIENCE_S = 60.0


@pytest.fixture
def calls(clock: Clock) -> Any:
    return Calls(clock)


def test_only_a_long_wait_makes_a_server_suspect(calls: Any, clock: Clock) -> None:
    calls.begin("slow")
    assert calls.suspect() is None
    clock.now += SUSPICION_S + 0.1
    calls.begin("quick")
    assert calls.suspect() == "slow"
    assert calls.waiting() == ["slow", "quick"]
    calls.end("slow")
    assert calls.suspect() is None
    assert calls.waiting() == ["quick"]


def test_the_wait_restarts_when_a_connection_makes_another_call(calls: Any, clock: Clock) -> None:
    calls.begin("one")
    clock.now += SUSPICION_S
    calls.end("one")
    calls.begin("one")
    clock.now += SUSPICION_S - 0.1
    assert calls.suspect() is None


def test_the_watch_is_at_rest_after_a_while_without_calls(calls: Any, clock: Clock) -> None:
    calls.begin("one")
    clock.now += REST_AFTER_S + 1
    assert not calls.at_rest()
    calls.end("one")
    assert calls.at_rest()
    calls.begin("two")
    calls.end("two")
    assert not calls.at_rest()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every call as waiting too long, and inspect calls often."""
    monkeypatch.setattr(watch, "SUSPICION_S", -1.0)
    monkeypatch.setattr(watch, "INSPECT_EVERY_S", 0.001)
    monkeypatch.setattr(watch, "REST_AFTER_S", -1.0)


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "locus-mysql watch"}


def ended(thread: threading.Thread) -> bool:
    thread.join(PATIENCE_S)
    return not thread.is_alive()


@pytest.mark.usefixtures("soon")
def test_a_thread_handles_a_silent_server_repeatedly_and_ends_without_calls() -> None:
    before, seen, third = threads(), [], threading.Event()

    def look(connection: Any) -> CommandGenerator[None]:
        yield Sleep(0)
        seen.append(connection)
        if len(seen) == 3:
            third.set()

    inspection, silent, other = ThreadWatch(look), object(), object()
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


@pytest.mark.usefixtures("soon")
def test_a_thread_handles_nothing_while_no_call_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "SUSPICION_S", 1_000.0)
    before, rounds, seen = threads(), threading.Semaphore(0), []
    sleep = time.sleep

    def counted(seconds: float) -> None:
        if threading.current_thread().name == "locus-mysql watch":
            assert seconds == watch.INSPECT_EVERY_S
            rounds.release()
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", counted)

    def look(connection: Any) -> CommandGenerator[None]:
        yield Sleep(0)
        seen.append(connection)

    inspection = ThreadWatch(look)
    inspection.begin(object())  # type: ignore[arg-type]
    (thread,) = threads() - before
    for _ in range(3):
        assert rounds.acquire(timeout=PATIENCE_S)
    assert thread.is_alive()
    assert seen == []
    for connection in inspection.calls.waiting():
        inspection.end(connection)
    assert ended(thread)


@pytest.mark.usefixtures("soon")
def test_a_thread_that_fails_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    before, twice, seen = threads(), threading.Event(), []

    def look(connection: Any) -> CommandGenerator[None]:
        yield Sleep(0)
        seen.append(connection)
        if len(seen) > 1:
            twice.set()
            return
        raise OSError("of a driver from outside")

    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    inspection, silent = ThreadWatch(look), object()
    inspection.begin(silent)  # type: ignore[arg-type]
    for thread in threads() - before:
        assert ended(thread)
    inspection.begin(silent)  # type: ignore[arg-type]
    assert twice.wait(PATIENCE_S)
    assert len(reported) == 1
    inspection.end(silent)  # type: ignore[arg-type]


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.001)


@pytest.mark.usefixtures("soon")
async def test_a_timer_handles_a_silent_server_repeatedly_once_at_a_time_and_ends_without_calls() -> None:
    seen: list[Any] = []
    going_on = asyncio.Event()

    def look(connection: Any) -> CommandGenerator[None]:
        seen.append(connection)
        yield Wait(going_on.wait)

    inspection: Any = TimerWatch(look)
    silent = object()
    inspection.begin(silent)
    timer = inspection._timer
    inspection.begin(object())
    assert inspection._timer is timer  # the same timer is used again
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


@pytest.mark.usefixtures("soon")
async def test_a_timer_handles_nothing_while_no_call_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "SUSPICION_S", 1_000.0)
    seen: list[Any] = []

    def look(connection: Any) -> CommandGenerator[None]:
        yield Sleep(0)
        seen.append(connection)

    inspection: Any = TimerWatch(look)
    inspection.begin(object())
    timers = set()
    await until(lambda: timers.add(inspection._timer) or len(timers) > 5)
    assert seen == []
    assert inspection._task is None
