"""Housekeeping in the background: when it is done, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from locus_mysql.engine import background
from locus_mysql.engine.background import MAX_WAITING, WRITES_BEFORE, AwaitedBackground, BlockingBackground
from locus_mysql.engine.commands import CommandGenerator, Sleep, Wait

#: Maximum time that a test waits for anything, in seconds.
SOON_S = 10.0


class Work:
    """Pieces of work that wait for the test, for both sides."""

    def __init__(self) -> None:
        self.begun = 0
        self.done = 0
        self.gate = threading.Event()

    def steps(self) -> CommandGenerator[None]:
        self.begun += 1
        while not self.gate.is_set():
            yield Sleep(0.001)
        self.done += 1


def fails() -> CommandGenerator[None]:
    yield Sleep(0)
    raise ValueError("broken")


def wait_until(condition: Any) -> None:
    end = threading.Event()
    for _ in range(int(SOON_S * 1_000)):
        if condition():
            return
        end.wait(0.001)
    raise AssertionError("it did not come")


@pytest.mark.parametrize("kind", [AwaitedBackground, BlockingBackground])
def test_it_is_ready_after_some_writes(kind: Any) -> None:
    one = kind()
    one.writes = WRITES_BEFORE - 1
    assert not one.ready
    one.writes += 1
    assert one.ready


def test_a_thread_does_one_piece_at_a_time_and_forgets_what_is_too_much() -> None:
    one, work = BlockingBackground(), Work()
    one.start(work.steps())
    wait_until(lambda: work.begun == 1)
    for _ in range(MAX_WAITING + 3):
        one.start(work.steps())
    assert work.begun == 1
    work.gate.set()
    wait_until(lambda: one._thread is None)
    assert work.done == 1 + MAX_WAITING
    one.start(work.steps())
    wait_until(lambda: work.done == 2 + MAX_WAITING)


async def test_a_task_does_one_piece_at_a_time_and_forgets_what_is_too_much() -> None:
    one, work = AwaitedBackground(), Work()
    one.start(work.steps())
    await asyncio.sleep(0.01)
    for _ in range(MAX_WAITING + 3):
        one.start(work.steps())
    await asyncio.sleep(0.01)
    assert work.begun == 1
    work.gate.set()
    assert one._task is not None
    await asyncio.wait_for(one._task, SOON_S)
    assert work.done == 1 + MAX_WAITING
    one.start(work.steps())
    await asyncio.wait_for(one._task, SOON_S)
    assert work.done == 2 + MAX_WAITING


def test_closing_waits_for_the_thread_and_forgets_the_rest() -> None:
    one, work = BlockingBackground(), Work()
    one.start(work.steps())
    one.start(work.steps())
    wait_until(lambda: work.begun == 1)
    threading.Timer(0.05, work.gate.set).start()
    one.finish()
    assert (work.begun, work.done) == (1, 1)


async def test_closing_waits_for_the_task_and_forgets_the_rest() -> None:
    one, work = AwaitedBackground(), Work()
    one.start(work.steps())
    one.start(work.steps())
    await asyncio.sleep(0.01)
    asyncio.get_running_loop().call_later(0.05, work.gate.set)
    await one.finish()
    assert (work.begun, work.done) == (1, 1)


async def test_closing_cancels_a_task_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FINISH_S", 0.01)
    one, work = AwaitedBackground(), Work()
    one.start(work.steps())
    await asyncio.sleep(0.01)
    await one.finish()
    assert one._task is not None
    await asyncio.wait([one._task], timeout=SOON_S)
    assert one._task.cancelled()


def test_closing_does_not_wait_long_for_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FINISH_S", 0.01)
    one, work = BlockingBackground(), Work()
    one.start(work.steps())
    wait_until(lambda: work.begun == 1)
    one.finish()
    assert work.done == 0
    work.gate.set()


def test_the_thread_itself_may_close_the_pool() -> None:
    one, closed = BlockingBackground(), threading.Event()

    def close() -> CommandGenerator[None]:
        yield Wait(one.finish)
        closed.set()

    one.start(close())
    assert closed.wait(SOON_S)


@pytest.mark.parametrize("side", ["async", "sync"])
async def test_after_an_unexpected_error_the_rest_is_done(side: str, caplog: pytest.LogCaptureFixture) -> None:
    one: Any = AwaitedBackground() if side == "async" else BlockingBackground()
    work = Work()
    work.gate.set()
    with caplog.at_level(logging.ERROR, "locus_mysql.housekeeping"):
        one.start(fails())
        one.start(work.steps())
        await asyncio.to_thread(wait_until, lambda: work.done)
    assert "broken" in caplog.text


def test_an_event_loop_may_end_or_be_dropped_while_it_works(caplog: pytest.LogCaptureFixture) -> None:
    work, ended = Work(), AwaitedBackground()

    async def begin(one: AwaitedBackground) -> None:
        one.start(work.steps())
        await asyncio.sleep(0.01)

    asyncio.run(begin(ended))
    assert ended._task is not None
    assert ended._task.cancelled()
    ended.cancel()  # the pool of a closed loop is dropped later
    dropped, loop = AwaitedBackground(), asyncio.new_event_loop()
    loop.run_until_complete(begin(dropped))
    loop.close()
    dropped.cancel()
    del dropped, loop
    gc.collect()
    assert caplog.text == ""


async def test_the_work_belongs_to_no_trace_of_a_call() -> None:
    current: ContextVar[str] = ContextVar("current", default="nothing")
    seen: list[str] = []

    def look() -> CommandGenerator[None]:
        yield Sleep(0)
        seen.append(current.get())

    current.set("a call")
    one = AwaitedBackground()
    one.start(look())
    assert one._task is not None
    await one._task
    assert seen == ["nothing"]
