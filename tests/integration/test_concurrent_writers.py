"""Several writers of one thread, some of which are killed: no data is lost, mixed up or partially written."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import MySQLConfig, SyncCheckpointStore

from .conftest import MakeConfig

pytestmark = pytest.mark.slow

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "pymysql", "mysql.connector", "tests.integration.test_concurrent_writers"])
DEADLINE_S = 180.0

State = dict[str, Any]


def state_of(*turns: str) -> State:
    """Return a state that is large enough to be stored as a delta of the previous one."""
    return {"turns": len(turns), "messages": [{"role": "user", "content": turn * 400} for turn in turns]}


def grown(state: State, turn: str) -> State:
    return state_of(*(message["content"][: len(turn)] for message in state["messages"]), turn)


def run_in_processes(*jobs: tuple[Callable[..., None], tuple[Any, ...]]) -> None:
    """Run all jobs concurrently, each in a separate process; fail if one fails."""
    processes = [PROCESSES.Process(target=target, args=args) for target, args in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join(DEADLINE_S)
        assert process.exitcode == 0


def save_eight(config: MySQLConfig, thread_id: str, name: str, start: Any) -> None:
    with SyncCheckpointStore(config) as store:
        state = store.load(thread_id) or state_of()
        start.wait(DEADLINE_S)
        for turn in range(8):
            state = grown(state, f"{name}{turn}")
            store.save(thread_id, state, f"{name}{turn}")


def test_four_processes_with_eight_saves_each_lose_nothing(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with SyncCheckpointStore(config) as store:
        base = state_of("x0", "x1")
        store.save("thread", base, "base")
        start = PROCESSES.Barrier(4)
        run_in_processes(*((save_eight, (config, "thread", name, start)) for name in "abcd"))
        listed = store.list_checkpoints("thread", 100)
        expected = {}
        for name in "abcd":
            state = base
            for turn in range(8):
                state = grown(state, f"{name}{turn}")
                expected[f"{name}{turn}"] = state
        assert sorted(listed) == sorted([*expected, "base"])
        assert {checkpoint: store.load("thread", checkpoint) for checkpoint in expected} == expected
        assert store.load("thread") == expected[listed[0]]
        committed = [entry["created_at"] for entry in store.history("thread")]
        assert committed == sorted(committed, reverse=True)
        for name in "abcd":
            assert [one for one in reversed(listed) if one[0] == name] == [
                *(["base"] if name == "b" else []),
                *(f"{name}{turn}" for turn in range(8)),
            ]
