"""The scheduler's thread: when it runs work, and the references that it keeps."""

from __future__ import annotations

import gc
import threading
import weakref

from locus_mysql.engine.commands import CommandGenerator, Sleep
from locus_mysql.engine.sides import Scheduler

SOON_S, LATER_S, PATIENCE_S = 0.01, 1000.0, 10.0


class Pool:
    """Counts its calls; each but the last requests another."""

    def __init__(self, calls: int = 1, scheduler: Scheduler | None = None) -> None:
        self.left = calls
        self.scheduler = scheduler
        self.finished = threading.Event()

    def work(self) -> CommandGenerator[None]:
        yield Sleep(0)
        self.left -= 1
        if self.scheduler is not None and self.left:
            self.scheduler.call(self.work, SOON_S)
        else:
            self.finished.set()


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "locus-mysql scheduler"]


def test_work_is_done_when_due_as_often_as_requested_and_then_the_thread_ends() -> None:
    scheduler, before = Scheduler(), threads()
    later, often = Pool(), Pool(3, scheduler)
    scheduler.call(later.work, LATER_S)
    scheduler.call(often.work, SOON_S)
    (thread,) = set(threads()) - set(before)
    assert thread.daemon
    assert often.finished.wait(PATIENCE_S)
    assert not later.finished.is_set()
    scheduler.call(later.work, 0)
    assert later.finished.wait(PATIENCE_S)
    scheduler.pause()
    assert not thread.is_alive()


def test_a_pool_is_not_kept_and_one_that_is_freed_keeps_no_other_from_its_work() -> None:
    scheduler, freed, pool = Scheduler(), Pool(), Pool()
    scheduler.call(freed.work, 0.05)
    scheduler.call(pool.work, 0.1)
    reference = weakref.ref(freed)
    del freed
    gc.collect()
    assert reference() is None
    assert pool.finished.wait(PATIENCE_S)


def test_the_thread_ends_before_a_fork_and_restarts_in_the_parent() -> None:
    scheduler, before, pool = Scheduler(), threads(), Pool()
    scheduler.call(pool.work, 0.2)
    scheduler.pause()
    assert threads() == before
    scheduler.call(Pool().work, SOON_S)
    assert threads() == before
    scheduler.resume()
    assert pool.finished.wait(PATIENCE_S)


def test_a_child_has_no_work_of_its_parent_s() -> None:
    scheduler, before, pool = Scheduler(), threads(), Pool()
    scheduler.call(pool.work, LATER_S)
    scheduler.pause()
    scheduler.reset_in_child()
    scheduler.resume()
    assert threads() == before
    scheduler.call(pool.work, SOON_S)
    assert pool.finished.wait(PATIENCE_S)


def test_work_that_fails_keeps_no_other_from_being_done() -> None:
    class Broken(Pool):
        def work(self) -> CommandGenerator[None]:
            raise OSError("broken")

    reported: list[object] = []
    hook, threading.excepthook = threading.excepthook, reported.append
    try:
        scheduler, broken, pool = Scheduler(), Broken(), Pool()
        scheduler.call(broken.work, SOON_S)
        scheduler.call(pool.work, 0.1)
        assert pool.finished.wait(PATIENCE_S)
    finally:
        threading.excepthook = hook
    assert len(reported) == 1
