"""Connections that give the answers they are told to, for tests of what becomes of connections; both sides."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from locus_mysql.config import Endpoint
from locus_mysql.dialect import Statement
from locus_mysql.drivers.interface import ConnectionLost, Result, Traffic


class Connection:
    """An open connection, awaited or not."""

    server_version, max_allowed_packet = "9.7.4", 1_000_000

    def __init__(self, driver: Driver, endpoint: Endpoint) -> None:
        self.driver = driver
        self.endpoint = endpoint
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
    """One that blocks."""

    def execute(self, statements: Sequence[Statement]) -> list[Result]:
        return self.run(statements)

    def ping(self) -> None:
        self.try_ping()

    def close(self) -> None:
        self.end("closed")

    def interrupt(self) -> None:
        self.end("interrupted")


class Awaited(Connection):
    """One that is awaited."""

    async def execute(self, statements: Sequence[Statement]) -> list[Result]:
        return self.run(statements)

    async def ping(self) -> None:
        self.try_ping()

    async def close(self) -> None:
        self.end("closed")


class Driver:
    """Opens connections, and remembers them.

    Args:
        answers: What a server says to statements, or by which error it, or connecting to it (to no statements), fails.
    """

    name = "scripted"

    def __init__(self, answers: Callable[[Endpoint, tuple[Statement, ...]], Any] = lambda *_: []) -> None:
        self.answers = answers
        self.opened: list[Any] = []
        self.asked: list[tuple[str, tuple[Statement, ...]]] = []
        self.limits: list[float] = []

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


async def result_of(outcome: Any) -> Any:
    """What a call of either side returned."""
    return await outcome if inspect.isawaitable(outcome) else outcome
