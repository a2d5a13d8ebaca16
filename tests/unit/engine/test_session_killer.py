"""Ending the statements of dropped connections, when the garbage collector or the end of the interpreter interferes."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from locus_mysql.config import Endpoint, MySQLConfig
from locus_mysql.drivers.interface import Result, ServerSession
from locus_mysql.engine.counters import Counters
from locus_mysql.engine.gtid_tracker import GtidTracker
from locus_mysql.engine.servers import ServerConnection
from locus_mysql.engine.session_killer import SessionKiller

from .scripted import Driver

HERE = Endpoint("a", 3306)


def _driver(answer: Any = None) -> Any:
    return Driver(lambda endpoint, statements: answer or [Result((("uuid",),))])


def _dropped(driver: Any, number: int) -> ServerConnection:
    connection = driver.connect(MySQLConfig(), HERE)
    connection.session = ServerSession(number, "uuid")
    return ServerConnection(connection, HERE, None)


def test_a_call_that_is_collected_while_the_thread_starts_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector may end abandoned calls at any allocation, as within `Thread.start`."""
    driver = _driver()
    killer = SessionKiller(MySQLConfig(), driver)
    started = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == "locus-mysql session killer":
            killer.end(_dropped(driver, 2))
        started(thread)

    caller = threading.Thread(target=lambda: killer.end(_dropped(driver, 1)), daemon=True)
    caller_start = caller.start
    monkeypatch.setattr(threading.Thread, "start", start)
    caller_start()
    caller.join(5)
    assert not caller.is_alive()
    killer.finish()
    killed = [one.sql for _, statements in driver.asked for one in statements if one.sql.startswith("KILL")]
    assert killed == ["KILL 1", "KILL 2"]


def test_no_thread_is_started_when_the_interpreter_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread would never run, and Python 3.11 would wait for it."""
    driver = _driver()
    killer = SessionKiller(MySQLConfig(), driver)
    started: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: started.append(thread.name))
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    killer.end(_dropped(driver, 1))
    assert started == []


def test_a_thread_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = _driver()
    killer = SessionKiller(MySQLConfig(), driver)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        killer.end(_dropped(driver, 1))
    killer.end(_dropped(driver, 2))
    killer.finish()
    killed = [one.sql for _, statements in driver.asked for one in statements if one.sql.startswith("KILL")]
    assert killed == ["KILL 1", "KILL 2"]


def test_counting_goes_on_in_a_thread_that_is_counting() -> None:
    """For example, the collector may end an abandoned call, whose traffic is counted, during a counted look-up."""
    counters, driver = Counters(), _driver()

    def count_within() -> None:
        with counters._lock:
            counters.add(_dropped(driver, 1).connection)

    thread = threading.Thread(target=count_within, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    assert counters.total.round_trips == 1


def test_a_doubt_may_come_up_in_a_thread_that_learns() -> None:
    """For example, the collector may end an abandoned call whose answer from the primary is missing."""
    tracker = GtidTracker()

    def doubt_within() -> None:
        with tracker._lock:
            tracker.record_incomplete()

    thread = threading.Thread(target=doubt_within, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    assert tracker.required_set() is None
