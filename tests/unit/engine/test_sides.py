"""The reaper thread: its schedule, and the references that it keeps."""

from __future__ import annotations

import gc
import threading
import weakref

from locus_mysql.engine.commands import CommandGenerator, Sleep
from locus_mysql.engine.sides import Reaper

SOON_S, LATER_S, PATIENCE_S = 0.01, 1000.0, 10.0


class Pool:
    """Counts its calls; each but the last requests another."""

    def __init__(self, calls: int = 1, reaper: Reaper | None = None) -> None:
        self.left = calls
        self.reaper = reaper
        self.finished = threading.Event()

    def reap(self) -> CommandGenerator[None]:
        yield Sleep(0)
        self.left -= 1
        if self.reaper is not None and self.left:
            self.reaper.call(self, SOON_S)
        else:
            self.finished.set()


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "locus-mysql reaper"]


def test_pools_are_called_when_due_as_often_as_they_ask_and_then_the_thread_ends() -> None:
    reaper, before = Reaper(), threads()
    later, often = Pool(), Pool(3, reaper)
    reaper.call(later, LATER_S)
    reaper.call(often, SOON_S)
    (thread,) = set(threads()) - set(before)
    assert thread.daemon
    assert often.finished.wait(PATIENCE_S)
    assert not later.finished.is_set()
    reaper.call(later, 0)
    assert later.finished.wait(PATIENCE_S)
    reaper.pause()
    assert not thread.is_alive()


def test_a_pool_is_not_kept() -> None:
    reaper, pool = Reaper(), Pool()
    reaper.call(pool, LATER_S)
    gone = weakref.ref(pool)
    del pool
    gc.collect()
    assert gone() is None
    reaper.pause()


def test_a_pool_that_is_gone_when_it_is_due_keeps_no_other_from_being_called() -> None:
    reaper, gone, pool = Reaper(), Pool(), Pool()
    reaper.call(gone, 0.05)
    reaper.call(pool, 0.1)
    del gone
    assert pool.finished.wait(PATIENCE_S)


def test_the_thread_ends_before_a_fork_and_restarts_in_the_parent() -> None:
    reaper, before, pool = Reaper(), threads(), Pool()
    reaper.call(pool, 0.2)
    reaper.pause()
    assert threads() == before
    reaper.call(Pool(), SOON_S)
    assert threads() == before
    reaper.resume()
    assert pool.finished.wait(PATIENCE_S)


def test_a_child_knows_no_pool_of_its_parent_s() -> None:
    reaper, before, pool = Reaper(), threads(), Pool()
    reaper.call(pool, LATER_S)
    reaper.pause()
    reaper.reset_in_child()
    reaper.resume()
    assert threads() == before
    reaper.call(pool, SOON_S)
    assert pool.finished.wait(PATIENCE_S)


def test_a_pool_that_fails_keeps_no_other_from_being_called() -> None:
    class Broken(Pool):
        def reap(self) -> float | None:
            raise OSError("broken")

    reported: list[object] = []
    hook, threading.excepthook = threading.excepthook, reported.append
    try:
        reaper, broken, pool = Reaper(), Broken(), Pool()
        reaper.call(broken, SOON_S)
        reaper.call(pool, 0.1)
        assert pool.finished.wait(PATIENCE_S)
    finally:
        threading.excepthook = hook
    assert len(reported) == 1
