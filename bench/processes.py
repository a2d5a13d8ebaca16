"""Processes that load what another process wrote, as behind a load balancer.

For this project, a process is a checkpointer, as the cache of threads belongs to it. The built-in backend and the
floors have no cache; they use other connections in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle

from locus.core.state import AgentState

from .contestants import Contestant, built_in, ours, ours_blocking
from .floor import ConnectorFloor, PyMySQLFloor

#: Three processes serve the thread's turns one after the other; each has seen an earlier state of it.
IN_TURN = "in turn"
#: A process that has never seen the thread, but has an open connection, does each load.
COLD = "cold"

PROCESSES = 3


class InTurn:
    """Processes that serve a thread in turn: each loads the state that the previous one saved, and saves the next."""

    def __init__(self, processes: Sequence[Contestant]) -> None:
        self.name = f"{processes[0].name}, {IN_TURN}"
        self._processes = processes
        self._order = cycle(processes)
        self._serving = next(self._order)

    async def connect(self) -> None:
        """See `Contestant.connect`."""
        await self._serving.connect()

    async def save(self, state: AgentState, thread_id: str) -> None:
        """See `Contestant.save`."""
        await self._serving.save(state, thread_id)

    async def prepare_load(self, state: AgentState) -> None:
        """See `Contestant.prepare_load`."""
        await self._serving.prepare_load(state)
        self._serving = next(self._order)

    async def load(self, thread_id: str) -> AgentState | None:
        """See `Contestant.load`."""
        return await self._serving.load(thread_id)

    async def close(self) -> None:
        """See `Contestant.close`."""
        for process in self._processes:
            await process.close()


class Cold:
    """A new process for each load, which also does the next save."""

    def __init__(self, start: Callable[[], Contestant]) -> None:
        self._start = start
        self._serving = start()
        self.name = f"{self._serving.name}, {COLD}"

    async def connect(self) -> None:
        """See `Contestant.connect`."""
        await self._serving.connect()

    async def save(self, state: AgentState, thread_id: str) -> None:
        """See `Contestant.save`."""
        await self._serving.save(state, thread_id)

    async def prepare_load(self, state: AgentState) -> None:
        """See `Contestant.prepare_load`."""
        await self._serving.prepare_load(state)
        await self._serving.close()
        self._serving = self._start()
        await self._serving.connect()

    async def load(self, thread_id: str) -> AgentState | None:
        """See `Contestant.load`."""
        return await self._serving.load(thread_id)

    async def close(self) -> None:
        """See `Contestant.close`."""
        await self._serving.close()


def in_other_processes(dsn: str) -> Iterator[Contestant]:
    """Return both kinds of this project, on Connector/Python and on PyMySQL."""
    yield from _both_kinds(lambda: ours(dsn, "mysql-connector"))
    yield from _both_kinds(lambda: ours_blocking(dsn, "pymysql"))


def built_in_in_other_processes(dsn: str) -> Iterator[Contestant]:
    """Return both kinds of Locus' own backend."""
    yield from _both_kinds(lambda: built_in(dsn))


def floors_in_other_processes(dsn: str) -> Iterator[Contestant]:
    """Return both kinds of the floors of this project's contestants."""
    yield from _both_kinds(lambda: ConnectorFloor(dsn))
    yield from _both_kinds(lambda: PyMySQLFloor(dsn))


def _both_kinds(start: Callable[[], Contestant]) -> Iterator[Contestant]:
    yield InTurn([start() for _ in range(PROCESSES)])
    yield Cold(start)
