"""The two loops that run a generator's commands, and interruptions of them."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import pytest

from locus_mysql.config import Endpoint, MySQLConfig
from locus_mysql.dialect import Statement
from locus_mysql.drivers.interface import Result, ServerError
from locus_mysql.engine.commands import Close, CommandGenerator, Connect, Execute, Ping, Sleep, Wait
from locus_mysql.engine.loops import run_awaited, run_blocking

from .scripted import Driver, run

BOTH = pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
HERE = Endpoint("a", 3306)
SELECT = Statement("SELECT 1")


@BOTH
async def test_each_command_is_carried_out_and_its_outcome_sent_back(awaited: bool) -> None:
    driver: Any = Driver(lambda endpoint, statements: [Result(((len(statements),),))])
    waited: list[str] = []

    async def wait() -> str:
        waited.append("awaited")
        return "outcome"

    def block() -> str:
        waited.append("blocked")
        return "outcome"

    def steps() -> CommandGenerator[tuple[Any, ...]]:
        connection = yield Connect(driver, MySQLConfig(), HERE)
        results = yield Execute(connection, (SELECT, SELECT))
        outcomes = [(yield Ping(connection)), (yield Sleep(0)), (yield Close(connection))]
        return results[0].rows, outcomes, (yield Wait(wait if awaited else block))

    assert await run(steps(), awaited=awaited) == (((2,),), [None, None, None], "outcome")
    (connection,) = driver.opened
    assert (connection.pings, connection.ended) == (1, "closed")
    assert driver.asked == [("a", (SELECT, SELECT))]
    assert waited == ["awaited" if awaited else "blocked"]


@BOTH
@pytest.mark.parametrize("error", [ServerError(1213, "Deadlock"), KeyboardInterrupt(), OSError("of a driver")])
async def test_an_exception_of_a_command_is_raised_at_its_yield(awaited: bool, error: BaseException) -> None:
    driver: Any = Driver(lambda endpoint, statements: error if statements else [])
    ends: list[object] = []

    def steps(*, expecting: bool) -> CommandGenerator[str]:
        connection = yield Connect(driver, MySQLConfig(), HERE)
        try:
            yield Execute(connection, (SELECT,))
        except BaseException as caught:
            ends.append(caught)
            connection.abort()
            if not expecting:
                raise
        return "went on"

    assert await run(steps(expecting=True), awaited=awaited) == "went on"
    with pytest.raises(type(error)) as raised:
        await run(steps(expecting=False), awaited=awaited)
    assert raised.value is error
    assert ends == [error, error]
    assert [one.ended for one in driver.opened] == ["aborted", "aborted"]


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


async def test_a_cancelled_task_raises_in_the_generator_and_ends_cancelled() -> None:
    begun, ends = asyncio.Event(), []

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    def steps() -> CommandGenerator[None]:
        try:
            yield Wait(wait)
        except BaseException as error:
            ends.append(type(error))
            raise

    task = asyncio.create_task(run_awaited(steps()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ends == [asyncio.CancelledError]


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
