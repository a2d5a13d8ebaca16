"""Every fault of the network or the server, during every kind of call, with every driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import pymysql
import pytest

from locus_mysql import MySQLConfig, SyncCheckpointStore
from locus_mysql.errors import Unavailable

from ..integration.conftest import EVERY_SIDE, ONE_OF_EACH, AnyStore, MakeConfig, OpenStore
from ..integration.connecting import connect
from ..integration.proxy import WireProxy
from ..thoroughness import FULL
from .table import Row

#: Rounds of calls for each fault and driver.
ROUNDS = 6 if FULL else 2

#: Read timeout in seconds; twice that on the asynchronous side.
READ_TIMEOUT_S = 0.5
#: Deadline of a call in seconds; the timeout of its last attempt may exceed it.
RETRY_DEADLINE_S = 10.0


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


#: The result of an unacknowledged call.
UNKNOWN = object()


class Witness:
    """Counts the outcomes of calls."""

    def __init__(self, fault: str, side: str) -> None:
        self.row = Row(fault, side, 0, 0, 0, 0, 0.0)

    async def watch(self, call: Awaitable[Any]) -> Any:
        """Return the result of a call; `UNKNOWN` if the server could not be reached within the deadline."""
        self.count(attempts=1)
        began = time.monotonic()
        try:
            outcome = await call
        except Unavailable:
            return UNKNOWN
        finally:
            self.row = self.row._replace(longest_s=max(self.row.longest_s, time.monotonic() - began))
        self.count(acknowledged=1)
        return outcome

    def expect(self, found: object, expected: object) -> None:
        """Count an acknowledged call as wrong unless it returned this."""
        self.count(wrong=int(found is not UNKNOWN and found != expected))

    def count(self, **more: int) -> None:
        """Add to counters of the row."""
        self.row = self.row._replace(**{name: getattr(self.row, name) + number for name, number in more.items()})


@contextmanager
def connected(dsn: str) -> Iterator[pymysql.Connection[Any]]:
    """An administrator's connection."""
    with connect(MySQLConfig(dsn=dsn)) as connection:
        yield connection


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("side", EVERY_SIDE if FULL else ONE_OF_EACH)
async def test_no_fault_loses_a_save_or_returns_a_wrong_result(
    open_store: OpenStore,
    make_config: MakeConfig,
    through_proxy: MakeConfig,
    proxy: WireProxy,
    server_dsn: str,
    database: str,
    record_property: Callable[[str, object], None],
    fault: str,
    side: str,
) -> None:
    options = {
        "read_timeout_s": READ_TIMEOUT_S,
        "write_timeout_s": READ_TIMEOUT_S,
        "connect_timeout_s": 5,
        "retry_deadline_s": RETRY_DEADLINE_S,
    }
    witness = Witness(fault, side)
    with SyncCheckpointStore(make_config(driver="pymysql")) as observer, connected(server_dsn) as administrator:
        observer.health_check()
        trouble = Trouble(proxy, administrator, database)
        store = open_store(side, config=through_proxy(**options))
        await store.health_check()
        for number in range(ROUNDS):
            await _one_round(store, observer, witness, trouble, number)
    record_property("faults", (list(FAULTS).index(fault), *witness.row))
    assert witness.row.lost == 0
    assert witness.row.wrong == 0
    assert witness.row.acknowledged == witness.row.attempts
    assert witness.row.longest_s < RETRY_DEADLINE_S + READ_TIMEOUT_S


async def _one_round(
    store: AnyStore, observer: SyncCheckpointStore, witness: Witness, trouble: Trouble, number: int
) -> None:
    """Save twice, load, list and delete with a fault in each call, and check the results."""
    calls = iter(range(5 * number, 5 * number + 5))

    async def disturbed(method: str, *arguments: Any) -> Any:
        FAULTS[witness.row.fault](trouble, next(calls))
        outcome = await witness.watch(getattr(store, method)(*arguments))
        trouble.over()
        return outcome

    first = {"notes": ["a first word " * 200]}
    second = {"notes": [*first["notes"], "and another " * 20]}
    for state, name in ((first, "first"), (second, None)):
        saved = await disturbed("save", "thread", state, name)
        if saved is not UNKNOWN:
            witness.count(lost=int(observer.load("thread", saved) != state))
            witness.expect(observer.load("thread"), state)
    witness.expect(await disturbed("load", "thread"), second)
    listed = observer.list_checkpoints("thread", 100)
    witness.expect(len(listed), 2)
    witness.expect(await disturbed("list_checkpoints", "thread", 100), listed)
    witness.expect(await disturbed("delete", "thread"), True)
    witness.expect(observer.load("thread"), None)


def test_the_document_shows_every_fault_with_every_driver() -> None:
    document = (Path(__file__).resolve().parents[2] / "docs/faults.md").read_text(encoding="utf-8")
    for fault in FAULTS:
        for side in EVERY_SIDE:
            assert f"\n| {fault} | {side} |" in document
