"""The two loops that run a generator's commands, and interruptions of them."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import pytest

from locus_mysql.dialect import Statement
from locus_mysql.engine.commands import CommandGenerator, Sleep, Wait
from locus_mysql.engine.loops import run_awaited, run_blocking

from .scripted import run

BOTH = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
SELECT = Statement("SELECT 1")


@BOTH
async def test_a_generator_is_closed_if_its_loop_is_interrupted(awaited: bool) -> None:
    class Interrupted:
        """A generator whose loop is interrupted before it sends the outcome of a command."""

        closed = False

        def __next__(self) -> Sleep:
            return Sleep(0)

        def send(self, outcome: object) -> Sleep:
            raise KeyboardInterrupt

        def close(self) -> None:
            self.closed = True

    steps: Any = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        await run(steps, awaited=awaited)
    assert steps.closed


async def test_a_task_that_is_dropped_ends_its_generator() -> None:
    ends: list[type[BaseException]] = []

    def steps() -> CommandGenerator[None]:
        try:
            yield Wait(asyncio.Event().wait)
        except BaseException as error:
            ends.append(type(error))
            raise

    dropped = run_awaited(steps())
    dropped.send(None)
    dropped.close()
    assert ends == [GeneratorExit]


def test_a_signal_while_a_thread_waits_raises_in_the_generator() -> None:
    ends: list[type[BaseException]] = []

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def block() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        threading.Event().wait(60)

    def steps() -> CommandGenerator[None]:
        try:
            yield Wait(block)
        except BaseException as error:
            ends.append(type(error))
            raise

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_blocking(steps())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert ends == [KeyboardInterrupt]
