"""The two loops that execute the commands of the engine's generators: `run_blocking` and `run_awaited`.

And `settled`, by which what must be released is released although the task is cancelled.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from .commands import (
    AskPassword,
    Close,
    CommandGenerator,
    Compute,
    Connect,
    Execute,
    Ping,
    Shielded,
    Sleep,
    StartServer,
    Wait,
)
from .passwords import ask_password, ask_password_async

T = TypeVar("T")


class BoundedExecutor:
    """Dedicated threads for long work, so that it blocks neither the event loop nor other users' threads.

    Args:
        name: The prefix of the threads' names.
        threads: The number of threads per event loop; further work waits.
    """

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self.threads = threads
        #: By event loop. A forked child has other loops, so it does not use its parent's threads.
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = WeakKeyDictionary()

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Call a function with these arguments in a thread, unless the caller is cancelled before it begins."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = ThreadPoolExecutor(self.threads, self.name)
        return await loop.run_in_executor(pool, work, *arguments)


#: Runs long computations beside event loops.
COMPUTING = BoundedExecutor("locus-mysql decoding", threads=2)

#: An event loop itself does not keep its tasks.
_shielded: set[asyncio.Task[None]] = set()


def run_blocking(steps: CommandGenerator[T]) -> T:
    """Run a generator to its end in this thread, and return what it returns."""
    outcome: Any
    try:
        command = next(steps)
        while True:
            try:
                match command:
                    case Execute():
                        outcome = command.connection.execute(command.statements)
                    case Connect():
                        outcome = command.driver.connect(command.config, command.endpoint)
                    case AskPassword():
                        outcome = ask_password(command.config)
                    case StartServer():
                        from .embedded import start_server

                        outcome = start_server(command.config)
                    case Ping():
                        outcome = command.connection.ping()
                    case Close():
                        outcome = command.connection.close()
                    case Sleep():
                        outcome = None
                        time.sleep(command.seconds)
                    case Wait():
                        outcome = command.call()
                    case Compute():
                        outcome = None
                        command.work()
                    case Shielded():
                        outcome = None
                        run_blocking(command.steps)
            except BaseException as error:
                command = steps.throw(error)
            else:
                command = steps.send(outcome)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()  # ends the generator also if this loop itself was interrupted


async def run_awaited(steps: CommandGenerator[T]) -> T:
    """Run a generator to its end in this task, and return what it returns."""
    outcome: Any
    try:
        command = next(steps)
        while True:
            try:
                match command:
                    case Execute():
                        outcome = await command.connection.execute(command.statements)
                    case Connect():
                        outcome = await command.driver.connect_async(command.config, command.endpoint)
                    case AskPassword():
                        outcome = await ask_password_async(command.config)
                    case StartServer():
                        from .embedded import start_server_async

                        outcome = await start_server_async(command.config)
                    case Ping():
                        outcome = await command.connection.ping()
                    case Close():
                        outcome = await command.connection.close()
                    case Sleep():
                        outcome = None
                        await asyncio.sleep(command.seconds)
                    case Wait():
                        outcome = await command.call()
                    case Compute():
                        outcome = None
                        await COMPUTING.run(command.work)
                    case Shielded():
                        outcome = None
                        await _run_shielded(command)
            except BaseException as error:
                command = steps.throw(error)
            else:
                command = steps.send(outcome)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()  # ends the generator also if this loop itself was interrupted


async def settled(call: Coroutine[Any, Any, T]) -> T:
    """Await a call that must complete, such as a release; only then raise a cancellation that arrived meanwhile.

    A cancelled scope of anyio, as Starlette has when a client leaves, cancels its task again and again, and so would
    keep the event loop busy until the call ends. A shielded scope prevents that.
    """
    task, anyio = asyncio.ensure_future(call), sys.modules.get("anyio")
    cancelled: asyncio.CancelledError | None = None
    with nullcontext() if anyio is None else anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = cancelled or error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it
    raise cancelled


async def _run_shielded(command: Shielded) -> None:
    task = asyncio.create_task(run_awaited(command.steps))
    command.continues = True
    _shielded.add(task)
    task.add_done_callback(_shielded.discard)
    await asyncio.shield(task)
