"""Turns of several processes: a holder that was frozen, and forks. `contract/test_turns.py` kills holders."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import pytest

from locus_mysql import MySQLConfig, SyncCheckpointStore
from locus_mysql.errors import ThreadBusy, TurnLost

from ...conftest import MakeConfig
from ...drivers.sides import wait_until
from ...test_concurrent_writers import DEADLINE_S, PROCESSES
from .conftest import RunSQL
from .turns import SHORT_S, state_of

pytestmark = [pytest.mark.kept_tables("dicts"), pytest.mark.both_sides]


@contextmanager
def another_process(work: Callable[..., None], *args: Any) -> Any:
    """Yield the connection to a child process, which is killed at the end."""
    here, there = PROCESSES.Pipe()
    process = PROCESSES.Process(target=work, args=(there, *args))
    process.start()
    there.close()
    try:
        yield process, here
    finally:
        process.kill()
        process.join(DEADLINE_S)


def receive(line: Connection) -> Any:
    assert line.poll(DEADLINE_S), "the other process sent nothing"
    return line.recv()


def hold_a_turn(line: Connection, config: MySQLConfig, lease_s: float) -> None:
    """Take a turn and save; on each request, save again and send the outcome."""
    with SyncCheckpointStore(config) as store, store.turn("t", lease_s=lease_s):
        store.save("t", state_of("a"))
        line.send("has it")
        line.recv()
        try:
            store.save("t", state_of("a", "late"))
        except TurnLost:
            line.send("lost it")
        else:
            line.send("saved")


@pytest.mark.slow
def test_a_frozen_holder_whose_lease_ran_out_saves_nothing_when_it_wakes(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with SyncCheckpointStore(config) as store, another_process(hold_a_turn, config, 1.0) as (process, line):
        assert receive(line) == "has it"
        os.kill(process.pid, signal.SIGSTOP)
        with store.turn("t", wait_s=DEADLINE_S):
            store.save("t", state_of("a", "b"))
            os.kill(process.pid, signal.SIGCONT)
            line.send("save")
            assert receive(line) == "lost it"
        assert store.load("t") == state_of("a", "b")


@pytest.mark.slow
def test_a_frozen_holder_whose_turn_nobody_took_saves_nothing_either(make_config: MakeConfig, sql: RunSQL) -> None:
    config = make_config(driver="pymysql")
    with SyncCheckpointStore(config) as store, another_process(hold_a_turn, config, SHORT_S) as (process, line):
        assert receive(line) == "has it"
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: sql("SELECT MAX(recorded_at) < UTC_TIMESTAMP(6) FROM locus_store_ledger") == ((1,),))
        os.kill(process.pid, signal.SIGCONT)
        line.send("save")
        assert receive(line) == "lost it"
        assert store.load("t") == state_of("a")


def take_nine_turns(config: MySQLConfig, name: str, start: Any) -> None:
    with SyncCheckpointStore(config) as store:
        start.wait(DEADLINE_S)
        for _ in range(9):
            with store.turn("t", wait_s=DEADLINE_S):
                state = store.load("t") or {"turns": []}
                store.save("t", {"turns": [*state["turns"], name]})


def test_turns_of_two_processes_follow_each_other(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with SyncCheckpointStore(config) as store:
        start = PROCESSES.Barrier(2)
        processes = [PROCESSES.Process(target=take_nine_turns, args=(config, name, start)) for name in "ab"]
        for process in processes:
            process.start()
        for process in processes:
            process.join(DEADLINE_S)
            assert process.exitcode == 0
        state = store.load("t")
        assert state is not None
        assert sorted(state["turns"]) == ["a"] * 9 + ["b"] * 9


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_have_the_turn_of_its_parent(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with SyncCheckpointStore(config) as store, SyncCheckpointStore(config) as other:
        with store.turn("t"):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    try:
                        store.save("t", state_of("child"))
                    except TurnLost:
                        code = 2
                    with store.turn("t", wait_s=0):
                        code = 3
                except ThreadBusy:
                    code = 0 if code == 2 else 4
                finally:
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            with pytest.raises(ThreadBusy), other.turn("t", wait_s=0):
                raise AssertionError
            store.save("t", state_of("parent"))
        assert store.load("t") == state_of("parent")
