"""The watch of a call is asked in the thread of the call only, whatever opens the connection."""

from __future__ import annotations

import threading

import pytest

from locus_mysql import Database, MySQLConfig, SyncCheckpointStore
from locus_mysql.drivers.interface import WATCH
from locus_mysql.server.dispatching import LARGE_BYTES, LargeWork
from locus_mysql.working import SyncWorkingMemory

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


def test_large_writes_to_one_session_do_not_wait_for_each_other_for_ever(make_config: MakeConfig) -> None:
    """One waits for the session's lock, the other one, which has it, for its turn to use the processor."""
    turn = threading.Lock()
    with Database(make_config(driver="pymysql", pool_size=4)) as database:

        def write() -> None:
            memory = SyncWorkingMemory("s", database)
            for number in range(20):
                with LargeWork(turn, 1_000_000) as work:
                    work.go_on(LARGE_BYTES + 1)
                    memory.set("k", number)

        threads = [threading.Thread(target=write, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
