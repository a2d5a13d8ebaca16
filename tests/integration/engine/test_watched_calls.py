"""The watch of a call is asked in the thread of the call only, whatever opens the connection."""

from __future__ import annotations

import threading

import pytest

from locus_mysql import MySQLConfig, SyncCheckpointStore
from locus_mysql.drivers.interface import WATCH

from ..conftest import MakeConfig
from ..drivers_under_test import SYNC_DRIVERS


class Watch:
    """Records the threads that ask it; see `CallWatch`."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def begin(self) -> None:
        self.threads.append(threading.get_ident())

    def received(self, size: int) -> None:
        self.threads.append(threading.get_ident())

    def end(self) -> None:
        self.threads.append(threading.get_ident())


@pytest.mark.parametrize("driver", SYNC_DRIVERS)
def test_a_connection_that_is_opened_for_a_call_has_no_part_in_its_watch(make_config: MakeConfig, driver: str) -> None:
    """Its thread may go on after the call has ended with another connection, and take what nobody gives back."""
    config: MySQLConfig = make_config(driver=driver, pool_size=8)
    callers = 8
    together = threading.Barrier(callers)
    watches: list[tuple[int, Watch]] = []

    def call() -> None:
        watch = Watch()
        WATCH.set(watch)
        watches.append((threading.get_ident(), watch))
        together.wait(30)
        for _ in range(20):
            assert store.load("t") == {"n": 1}

    with SyncCheckpointStore(config) as store:
        store.save("t", {"n": 1})
        threads = [threading.Thread(target=call) for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stats = store.database.stats()
    assert stats.opened > 1
    assert [{*watch.threads} for _, watch in watches] == [{caller} for caller, _ in watches]
