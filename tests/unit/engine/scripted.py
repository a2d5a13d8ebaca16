"""Connections with scripted answers, for both sides."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from locus_mysql.config import Endpoint
from locus_mysql.dialect import Statement
from locus_mysql.drivers.interface import ConnectionLost, Result, Traffic
from locus_mysql.engine.cluster.topology import LeadsToSecondary
from locus_mysql.engine.commands import CommandGenerator, Connect
from locus_mysql.engine.connection_slots import Slot
from locus_mysql.engine.loops import run_awaited, run_blocking
from locus_mysql.engine.pool import Pool, ServerConnection

T = TypeVar("T")


class Connection:
    """An open connection of either side."""

    max_allowed_packet = 1_000_000
    supports_group_commit = True

    def __init__(self, driver: Driver, endpoint: Endpoint) -> None:
        self.driver = driver
        self.endpoint = endpoint
        self.server_version, self.read_only = driver.greeting
        self.closed = False
        self.ended = ""
        self.pings = 0
        self.dead = False
        self.traffic = Traffic(round_trips=1, sent_bytes=10, received_bytes=100)

    def end(self, how: str) -> None:
        self.ended, self.closed = self.ended or how, True

    def run(self, statements: Sequence[Statement]) -> list[Result]:
        self.driver.asked.append((self.endpoint.host, tuple(statements)))
        answer = self.driver.answers(self.endpoint, tuple(statements))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def try_ping(self) -> None:
        self.pings += 1
        if self.dead:
            raise ConnectionLost("It does not answer.")

    def abort(self) -> None:
        self.end("aborted")


class Blocking(Connection):
    """A blocking connection."""

    def execute(self, statements: Sequence[Statement]) -> list[Result]:
        return self.run(statements)

    def ping(self) -> None:
        self.try_ping()

    def close(self) -> None:
        self.end("closed")

    def interrupt(self) -> None:
        self.end("interrupted")


class Awaited(Connection):
    """An asynchronous connection."""

    async def execute(self, statements: Sequence[Statement]) -> list[Result]:
        return self.run(statements)

    async def ping(self) -> None:
        self.try_ping()

    async def close(self) -> None:
        self.end("closed")


class Driver:
    """Opens connections and records them.

    Args:
        answers: Returns a server's answer to statements, or its error; without statements, the error of connecting.
    """

    name = "scripted"

    def __init__(self, answers: Callable[[Endpoint, tuple[Statement, ...]], Any] = lambda *_: []) -> None:
        self.answers = answers
        self.opened: list[Any] = []
        self.asked: list[tuple[str, tuple[Statement, ...]]] = []
        self.limits: list[float] = []
        #: The version in the greeting of a server, and whether it takes no writes.
        self.greeting = ("9.7.4", False)

    def connect(self, config: Any, endpoint: Endpoint) -> Blocking:
        return self._open(config, endpoint, Blocking)

    async def connect_async(self, config: Any, endpoint: Endpoint) -> Awaited:
        return self._open(config, endpoint, Awaited)

    def _open(self, config: Any, endpoint: Endpoint, kind: Any) -> Any:
        self.limits.append(config.connect_timeout_s)
        answer = self.answers(endpoint, ())
        if isinstance(answer, BaseException):
            raise answer
        self.opened.append(kind(self, endpoint))
        return self.opened[-1]


async def run(steps: CommandGenerator[T], *, awaited: bool) -> T:
    """Run a generator of the engine on the loop of one side, and return its result."""
    return await run_awaited(steps) if awaited else run_blocking(steps)


class Servers:
    """The servers of a pool in a test, the first of which is used.

    Args:
        config: Names them.
        driver: Opens connections.
    """

    def __init__(self, config: Any, driver: Any) -> None:
        self.config, self.driver = config, driver
        self.several = len(config.endpoints) > 1
        #: What calls found out about servers.
        self.failures: list[tuple[Endpoint, Exception]] = []

    @property
    def current(self) -> Endpoint:
        return self.config.endpoints[0]

    def connect(self, pool: Pool) -> CommandGenerator[ServerConnection]:
        return ServerConnection((yield Connect(self.driver, self.config, self.current)), self.current)

    def left(self, endpoint: Endpoint, error: Exception) -> bool:
        self.failures.append((endpoint, error))
        return self.several or isinstance(error, LeadsToSecondary)


_slots: dict[ServerConnection, Slot] = {}


def borrow(pool: Pool, *, tested: bool = False) -> CommandGenerator[ServerConnection]:
    """Borrow a connection as `Pool.lend` does."""
    slot = Slot()
    try:
        lent = None if tested else pool.borrow_at_once(slot)
        lent = lent or (yield from pool.borrow(slot, tested=tested))
        assert lent is not None
    except BaseException as error:
        pool.give_back_after(slot, error)
        raise
    _slots[lent] = slot
    return lent


def give_back(pool: Pool, lent: ServerConnection, error: BaseException | None = None) -> CommandGenerator[None]:
    """Give a connection back as `Pool.lend` does."""
    slot = _slots.pop(lent)
    if error is not None:
        pool.give_back_after(slot, error)
    elif not pool.give_back_at_once(slot, lent):
        yield from pool.close_outdated(slot, lent)


async def result_of(outcome: Any) -> Any:
    """Return the result of a call of either side."""
    return await outcome if inspect.isawaitable(outcome) else outcome
