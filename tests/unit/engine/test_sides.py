"""The scheduler's thread: when it runs work, and the references that it keeps."""

from __future__ import annotations

import gc
import threading
import weakref

from locus_mysql.engine.commands import CommandGenerator, Sleep
from locus_mysql.engine.sides import Scheduler

PATIENCE_S = 10.0


class Pool:
    """Waits for its call."""

    def __init__(self) -> None:
        self.finished = threading.Event()

    def work(self) -> CommandGenerator[None]:
        yield Sleep(0)
        self.finished.set()


def test_a_pool_is_not_kept_and_one_that_is_freed_keeps_no_other_from_its_work() -> None:
    scheduler, freed, pool = Scheduler(), Pool(), Pool()
    scheduler.call(freed.work, 0.05)
    scheduler.call(pool.work, 0.1)
    reference = weakref.ref(freed)
    del freed
    gc.collect()
    assert reference() is None
    assert pool.finished.wait(PATIENCE_S)


def test_work_that_fails_keeps_no_other_from_being_done() -> None:
    class Broken(Pool):
        def work(self) -> CommandGenerator[None]:
            raise OSError("broken")

    reported: list[object] = []
    hook, threading.excepthook = threading.excepthook, reported.append
    try:
        scheduler, broken, pool = Scheduler(), Broken(), Pool()
        scheduler.call(broken.work, 0.01)
        scheduler.call(pool.work, 0.1)
        assert pool.finished.wait(PATIENCE_S)
    finally:
        threading.excepthook = hook
    assert len(reported) == 1
