"""Several writers of one thread, some of which are killed: no data is lost, mixed up or partially written."""

from __future__ import annotations

import multiprocessing
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from typing import Any, Self

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


@pytest.mark.parametrize("driver", ["mysql-connector", "pymysql"])
def test_four_processes_with_eight_saves_each_lose_nothing(make_config: MakeConfig, driver: str) -> None:
    config = make_config(driver=driver)
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


def test_processes_that_make_a_thread_at_once_all_save_to_it(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    start = PROCESSES.Barrier(4)
    run_in_processes(*((save_eight, (config, "new", name, start)) for name in "abcd"))
    with SyncCheckpointStore(config) as store:
        listed = store.list_checkpoints("new", 100)
        assert len(listed) == 32
        assert all(store.load("new", checkpoint) for checkpoint in listed)
        assert store.list_threads() == ["new"]


# Two writers with separate caches, one after the other


# A writer that is killed


class Gate:
    """A proxy that forwards the client's first commands, then all or half of the n-th, and then nothing."""

    def __init__(self, port: int, held: int, part: str) -> None:
        self.reached = threading.Event()
        self._held = held
        self._part = part
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(DEADLINE_S)
        for sock in self._sockets:
            sock.close()

    def _serve(self) -> None:
        with suppress(OSError, EOFError):
            client, _ = self._listener.accept()
            server = socket.create_connection(("127.0.0.1", self._target))
            self._sockets += [client, server]
            downstream = threading.Thread(target=self._downstream, args=(server, client))
            self._threads.append(downstream)
            downstream.start()
            try:
                self._upstream(client, server)
            finally:  # the client has ended, and so has its connection
                server.shutdown(socket.SHUT_RDWR)

    def _upstream(self, client: socket.socket, server: socket.socket) -> None:
        commands = 0
        while packet := _packet(client):
            commands += packet[3] == 0
            if commands < self._held:
                server.sendall(packet)
                continue
            server.sendall(packet if self._part == "whole" else packet[: len(packet) // 2])
            self.reached.set()
            while client.recv(65536):
                pass
            return

    def _downstream(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if not self.reached.is_set():
                    client.sendall(data)


def _packet(sock: socket.socket) -> bytes:
    header = sock.recv(4, socket.MSG_WAITALL)
    return header + sock.recv(int.from_bytes(header[:3], "little"), socket.MSG_WAITALL) if len(header) == 4 else b""


def go_on(config: MySQLConfig) -> None:
    with SyncCheckpointStore(config) as store:
        state = store.load("thread")
        assert state is not None
        store.save("thread", grown(state, "t6"), "again")


def wait_for(process: ForkServerProcess, event: threading.Event) -> bool:
    """Wait until the event is set and return True, or return False if the process ends first."""
    while not event.wait(0.005):
        if not process.is_alive():
            return event.is_set()
    return True


def kills(config: MySQLConfig, port: int) -> Iterator[str]:
    """Kill the process at each of its commands: in the middle of it, and after it, which is before the next one."""
    for part in ("half", "whole"):
        for held in range(1, 100):
            with Gate(port, held, part) as gate:
                process = PROCESSES.Process(target=go_on, args=(config.model_copy(update={"port": gate.port}),))
                process.start()
                if not wait_for(process, gate.reached):
                    assert process.exitcode == 0
                    break
                process.kill()
                process.join(DEADLINE_S)
            yield f"{part} of command {held}"
        assert held > 3


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", [True, False])
def test_a_process_killed_between_any_two_packets_leaves_a_thread_that_loads(
    make_config: MakeConfig, server_dsn: str, pipeline: bool
) -> None:
    """The save replaces a checkpoint, prunes and checks the tables: no other save has as many statements."""
    (endpoint, *_) = MySQLConfig(dsn=server_dsn).endpoints
    config = make_config(driver="pymysql", pipeline=pipeline, keep_checkpoints=3, ssl_mode="DISABLED")
    old = state_of(*(f"t{turn}" for turn in range(6)))
    new = grown(old, "t6")
    through = make_config(
        driver="pymysql", pipeline=pipeline, keep_checkpoints=3, ssl_mode="DISABLED", host="127.0.0.1", port=1
    )
    with SyncCheckpointStore(config) as store:

        def prepare() -> None:
            store.delete("thread")
            for turn in range(1, 6):
                store.save("thread", state_of(*(f"t{n}" for n in range(turn))), "again" if turn == 4 else f"c{turn}")
            store.save("thread", old, "newest")

        prepare()
        before = store.list_checkpoints("thread")
        outcomes = set()
        for killed_at in kills(through, endpoint.port):
            # The lock of the killed client is released when this save returns.
            store.save("thread", {"mark": killed_at}, "mark")
            assert store.delete("thread", "mark"), killed_at
            found = store.load("thread")
            assert found in (old, new), killed_at
            names = store.list_checkpoints("thread")
            for name in names:
                assert store.load("thread", name) is not None, killed_at
            if found == new:
                assert names[0] == "again", killed_at
                assert names.count("again") == 1, killed_at
            outcomes.add(found == new)
            prepare()
        assert outcomes == {True, False}
        assert before[0] == "newest"
