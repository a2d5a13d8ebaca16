"""States that grow by a turn, turns of either side, and another process that has one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection
from typing import Any

from ...test_concurrent_writers import DEADLINE_S, PROCESSES

#: A lease, in seconds, that runs out during a test.
SHORT_S = 0.5


def state_of(*turns: str) -> dict[str, Any]:
    """Return a state large enough to be stored as a delta of the one before it."""
    return {"messages": [turn * 400 for turn in turns]}


class Held:
    """A turn of either side, awaited here.

    Args:
        block: What a method ``turn`` returned.
    """

    def __init__(self, block: Any) -> None:
        self._block = block
        self._blocking = isinstance(block, AbstractContextManager)

    async def __aenter__(self) -> Any:
        return self._block.__enter__() if self._blocking else await self._block.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        if self._blocking:
            self._block.__exit__(*error)
        else:
            await self._block.__aexit__(*error)


def held(store: Any, *args: Any, **options: Any) -> Held:
    """Return a turn of a store of either side, to be awaited."""
    return Held(store.store.turn(*args, **options))


@contextmanager
def another_process(work: Callable[..., None], *args: Any) -> Any:
    """Yield the connection to a child process, which is killed at the end."""
    here, there = PROCESSES.Pipe()
    process = PROCESSES.Process(target=work, args=(there, *args))
    process.start()
    there.close()
    try:
        yield process, here
    finally:
        process.kill()
        process.join(DEADLINE_S)


def receive(line: Connection) -> Any:
    assert line.poll(DEADLINE_S), "the other process sent nothing"
    return line.recv()
