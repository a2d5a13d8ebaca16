"""Every fault that the wire or the server can have, met by every kind of call, with every driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest

from locus_mysql import SyncCheckpointStore
from locus_mysql.errors import Unavailable

from ..integration.conftest import EVERY_SIDE, ONE_OF_EACH, AnyStore, MakeConfig, OpenStore
from ..integration.proxy import WireProxy
from ..thoroughness import FULL
from .table import Row

#: Rounds of calls for each fault and driver.
ROUNDS = 12 if FULL else 3

#: An answer that takes longer is given up.
READ_TIMEOUT_S = 1.0
#: A call that takes longer is given up, but for the time-out of its last try.
RETRY_DEADLINE_S = 10.0

RunSQL: TypeAlias = Callable[..., tuple[Any, ...]]


class Trouble:
    """What faults are made with: the proxy, and a way to end connections and statements at the server."""

    def __init__(self, proxy: WireProxy, run_sql: RunSQL, database: str) -> None:
        self.proxy = proxy
        self._run_sql = run_sql
        self._database = database
        self._timers: list[threading.Timer] = []

    def kill(self, what: str = "") -> None:
        """End every connection of the test's, or the statement it runs."""
        for (number,) in self._run_sql(
            "SELECT processlist_id FROM performance_schema.threads WHERE processlist_db = %s", self._database
        ):
            try:
                self._run_sql(f"KILL {what} {number}")
            except Exception as error:  # it has just gone by itself
                if "1094" not in str(error):
                    raise

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Do something while the next call is on its way."""
        self._timers.append(threading.Timer(seconds, act))
        self._timers[-1].start()

    def end(self) -> None:
        """Wait for what is still to be done."""
        for timer in self._timers:
            timer.join()
        self.proxy.resume()


def silence(trouble: Trouble, _: int) -> None:
    trouble.proxy.black_hole()
    trouble.later(0.2, trouble.proxy.resume)


def drip(trouble: Trouble, _: int) -> None:
    trouble.proxy.drip(interval_s=0.0005)


#: What goes wrong, and how it is brought about before a call; the number is another one each time.
FAULTS: dict[str, Callable[[Trouble, int], object]] = {
    "nothing": lambda trouble, _: None,
    "cut before the server gets the command": lambda trouble, _: trouble.proxy.drop_before(),
    "cut before the answer": lambda trouble, _: trouble.proxy.drop_after_send(),
    "cut before the answer, twice": lambda trouble, _: [trouble.proxy.drop_after_send(n) for n in (1, 3)],
    "cut within the answer": lambda trouble, number: trouble.proxy.cut_answer(1 + 7 * number % 90),
    "the answer never comes": lambda trouble, _: trouble.proxy.swallow_answer(),
    "the answer is late": lambda trouble, _: trouble.proxy.delay_answer(0.2),
    "the answer is later than is waited for": lambda trouble, _: trouble.proxy.delay_answer(1.5 * READ_TIMEOUT_S),
    "the answer drips": drip,
    "the answer comes twice": lambda trouble, _: trouble.proxy.repeat_answer(),
    "silence for a while": silence,
    "all connections are cut": lambda trouble, _: trouble.proxy.drop_all(),
    "all connections are killed": lambda trouble, _: trouble.kill(),
    "a statement is killed": lambda trouble, number: trouble.later(
        0.0005 * (number % 5), lambda: trouble.kill("QUERY")
    ),
}


class Witness:
    """Makes calls that meet a fault, and counts how they come off."""

    def __init__(self, fault: str, side: str) -> None:
        self.row = Row(fault, side, 0, 0, 0, 0, 0.0)

    def count(self, **more: int) -> None:
        self.row = self.row._replace(**{name: getattr(self.row, name) + number for name, number in more.items()})

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around one call."""
        self.count(attempts=1)
        began = time.monotonic()
        try:
            yield
            self.count(acknowledged=1)
        except Unavailable:
            pass
        finally:
            self.row = self.row._replace(longest_s=max(self.row.longest_s, time.monotonic() - began))

    def expect(self, found: object, *expected: object) -> None:
        """What an acknowledged call returned must be one of these."""
        self.count(wrong=int(found not in expected))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("side", EVERY_SIDE if FULL else ONE_OF_EACH)
async def test_a_fault_loses_nothing_and_brings_no_wrong_answer(
    open_store: OpenStore,
    make_config: MakeConfig,
    through_proxy: MakeConfig,
    proxy: WireProxy,
    run_sql: RunSQL,
    database: str,
    record_property: Callable[[str, object], None],
    fault: str,
    side: str,
) -> None:
    options = {
        "read_timeout_s": READ_TIMEOUT_S,
        "write_timeout_s": 1,
        "connect_timeout_s": 5,
        "retry_deadline_s": RETRY_DEADLINE_S,
    }
    store = open_store(side, config=through_proxy(**options))
    await store.health_check()
    witness = Witness(fault, side)
    trouble = Trouble(proxy, run_sql, database)
    with SyncCheckpointStore(make_config(driver="pymysql")) as observer:
        for number in range(ROUNDS):
            await _one_round(store, observer, witness, lambda place, n=number: FAULTS[fault](trouble, 5 * n + place))
    trouble.end()
    record_property("faults", tuple(witness.row))
    assert witness.row.lost == 0
    assert witness.row.wrong == 0
    assert witness.row.acknowledged == witness.row.attempts
    assert witness.row.longest_s < RETRY_DEADLINE_S + READ_TIMEOUT_S


async def _one_round(
    store: AnyStore, observer: SyncCheckpointStore, witness: Witness, disturb: Callable[[int], object]
) -> None:
    """Save twice, load, list, and delete, each call disturbed; and look whether all is as it must be."""
    before = {"said": ["a first word " * 200]}
    after = {"said": [*before["said"], "and another " * 20]}
    for place, (state, name) in enumerate(((before, "first"), (after, None))):
        disturb(place)
        with witness.call():
            saved = await store.save("thread", state, name)
            witness.count(lost=int(observer.load("thread", saved) != state))
            witness.expect(observer.load("thread"), state)
    disturb(2)
    with witness.call():
        witness.expect(await store.load("thread"), after)
    disturb(3)
    with witness.call():
        listed = await store.list_checkpoints("thread", 100)
        witness.expect(listed, observer.list_checkpoints("thread", 100))
        witness.expect(len(listed), 2)
    disturb(4)
    with witness.call():
        witness.expect(await store.delete("thread"), True)
        witness.expect(observer.load("thread"), None)
