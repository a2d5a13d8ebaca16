"""The faults of the network and the server that `test_every_fault` injects: `FAULTS`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import pymysql

from ..integration.proxy import WireProxy

#: Read timeout in seconds; twice that on the asynchronous side.
READ_TIMEOUT_S = 0.5


class Trouble:
    """Injects faults with the proxy, and with an administrator who kills connections and statements.

    Args:
        proxy: The proxy before the server.
        administrator: A connection that nothing else uses.
        database: Connections to it are killed, except those that exist now.
    """

    def __init__(self, proxy: WireProxy, administrator: pymysql.Connection[Any], database: str) -> None:
        self.proxy = proxy
        self._administrator = administrator
        self._database = database
        self._spared = self._connections()
        self._meanwhile: list[threading.Thread] = []

    def kill(self, what: Literal["CONNECTION", "QUERY"], for_s: float = 0) -> None:
        """Repeatedly kill every connection, or its running statement, for this time."""
        end = time.monotonic() + for_s
        while True:
            for number in self._connections() - self._spared:
                with suppress(pymysql.err.OperationalError), self._administrator.cursor() as cursor:
                    cursor.execute(f"KILL {what} {number}")  # the connection may have ended already
            if time.monotonic() >= end:
                return

    def meanwhile(self, act: Callable[[], object]) -> None:
        """Run something during the next call."""
        self._meanwhile.append(threading.Thread(target=act))
        self._meanwhile[-1].start()

    def over(self) -> None:
        """Wait for everything still running."""
        while self._meanwhile:
            self._meanwhile.pop().join()

    def _connections(self) -> set[int]:
        with self._administrator.cursor() as cursor:
            cursor.execute(
                "SELECT processlist_id FROM performance_schema.threads WHERE processlist_db = %s", (self._database,)
            )
            return {number for (number,) in cursor.fetchall()}


def silence(trouble: Trouble, _: int) -> None:
    trouble.proxy.black_hole()
    resuming = threading.Timer(0.2, trouble.proxy.resume)
    trouble.meanwhile(resuming.run)


def drip(trouble: Trouble, _: int) -> None:
    trouble.proxy.drip(interval_s=0.0005)


#: Each fault, and the function that injects it before a call; the number differs each time.
FAULTS: dict[str, Callable[[Trouble, int], object]] = {
    "nothing": lambda trouble, _: None,
    "cut before the server gets the command": lambda trouble, _: trouble.proxy.drop_before(),
    "cut before the answer": lambda trouble, _: trouble.proxy.drop_after_send(),
    "cut before the answer, twice": lambda trouble, _: [trouble.proxy.drop_after_send(n) for n in (1, 3)],
    "cut within the answer": lambda trouble, number: trouble.proxy.cut_answer(1 + 7 * number % 90),
    "the answer never comes": lambda trouble, _: trouble.proxy.swallow_answer(),
    "the answer is late": lambda trouble, _: trouble.proxy.delay_answer(0.1),
    "the answer is later than is waited for": lambda trouble, _: trouble.proxy.delay_answer(2.5 * READ_TIMEOUT_S),
    "the answer drips": drip,
    "the answer comes twice": lambda trouble, _: trouble.proxy.repeat_answer(),
    "silence for a while": silence,
    "all connections are cut": lambda trouble, _: trouble.proxy.drop_all(),
    "all connections are killed": lambda trouble, _: trouble.kill("CONNECTION"),
    "statements are killed for a while": lambda trouble, _: trouble.meanwhile(lambda: trouble.kill("QUERY", 0.03)),
}


def timeout_of(fault: str) -> float:
    """Return the read timeout with which a fault is tried, in seconds: 1 to 2 KB a second drip."""
    return 8 * READ_TIMEOUT_S if fault == "the answer drips" else READ_TIMEOUT_S
