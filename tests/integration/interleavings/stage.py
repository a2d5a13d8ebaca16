"""A stage: runs calls of real stores packet by packet, in the order that a test chooses.

Stores, drivers and the server are real. Only between a store's driver and its library does each packet wait until the
test lets the server carry it out, and each answer wait until the test delivers or loses it. One call runs at a time,
so a test is deterministic.

    with Stage(make_config, run_sql, "pymysql-sync") as stage:
        one, other = stage.store(), stage.store()  # like the stores of two processes
        loading = one.begin("load", "thread", "c1")
        loading.carry_out()  # the server has answered
        other.delete("thread", "c1")  # from beginning to end
        assert loading.finish() == state  # the answer arrives
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Literal, Self

import pymysql

from locus_mysql import (
    CheckpointStore,
    MemoryStore,
    MySQLBackend,
    MySQLCheckpointSaver,
    MySQLConfig,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLBackend,
    SyncMySQLCheckpointSaver,
)
from locus_mysql.dialect import Statement
from locus_mysql.drivers.interface import ConnectionLost, DriverError, Result, find_driver, register_driver
from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore

from ..conftest import MakeConfig
from ..engines import LOCK_WAITS, PROCESSLIST

DEADLINE_S = 180.0

AWAITED: dict[str, Any] = {
    "store": CheckpointStore,
    "backend": MySQLBackend,
    "saver": MySQLCheckpointSaver,
    "memories": MemoryStore,
    "transcripts": TranscriptStore,
}
BLOCKING: dict[str, Any] = {
    "store": SyncCheckpointStore,
    "backend": SyncMySQLBackend,
    "saver": SyncMySQLCheckpointSaver,
    "memories": SyncMemoryStore,
    "transcripts": SyncTranscriptStore,
}

#: running: in progress. asks: a packet is about to be sent. answered: the server's answer is held back. done: ended.
CallState = Literal["running", "asks", "answered", "done"]

_current: ContextVar[Call | None] = ContextVar("_current", default=None)


class LeftTheStage(BaseException):
    """The test ended while a call was in progress."""


class Call:
    """One call of a store's method.

    Args:
        stage: The stage that controls it.
        title: Its description in failure messages.
    """

    def __init__(self, stage: Stage, title: str) -> None:
        self.state: CallState = "running"
        self.packet: Sequence[Statement] = ()
        self.connection_id = 0
        self.outcome: Future[Any] = Future()
        self._stage = stage
        self._title = title
        self._decision: Future[None] = Future()
        self._left = False

    def __repr__(self) -> str:
        return f"<{self._title}: {self.state}>"

    @property
    def done(self) -> bool:
        """Whether the call has ended."""
        return self.state == "done"

    @property
    def waits(self) -> bool:
        """Whether the call waits in the server for a lock of another call."""
        return self.state == "running"

    def look(self) -> None:
        """Wait up to 10 ms for a call's state to change."""
        with self._stage.changed:
            self._stage.changed.wait(0.01)

    def carry_out(self) -> Self:
        """Let the server carry out the packet; the answer is held back. The call may then wait for a lock."""
        assert self.state == "asks", self
        self._go_on()
        return self

    def deliver(self) -> Self:
        """Deliver the answer; the call continues to its next packet, or ends."""
        assert self.state == "answered", self
        self._go_on()
        return self

    def step(self) -> Self:
        """Carry out a packet and deliver its answer; only the packet if it waits for a lock."""
        if self.state == "asks":
            self.carry_out()
        if self.state == "answered":
            self.deliver()
        return self

    def lose_request(self) -> Self:
        """Break the connection; the server never gets the packet."""
        assert self.state == "asks", self
        self._break()
        return self

    def delay_request(self) -> Callable[[], None]:
        """Break the connection before the packet arrives. Return a function that lets the server receive it."""
        arrive = self.keep_request()
        self.lose_request()
        return arrive

    def keep_request(self) -> Callable[[], None]:
        """Return a function that lets the server receive the packet later."""
        packet = self.packet
        return lambda: self._stage.carry_out_late(packet)

    def lose_answer(self) -> Self:
        """Let the server carry out the packet, unless it has, and break the connection before its answer."""
        if self.state == "asks":
            self.carry_out()
        assert self.state == "answered", self
        self._break()
        return self

    def kill(self) -> None:
        """End the call as SIGKILL ends its process: the connection breaks, and nothing is repeated."""
        assert self.state in ("asks", "answered"), self
        self._stage.end_connection(self.connection_id)
        self.leave()
        self._stage.settle()
        assert self.done, self

    def run(self) -> Self:
        """Continue until the call ends or waits for a lock."""
        while self.state in ("asks", "answered"):
            self._go_on()
        return self

    def finish(self) -> Any:
        """Run to the end; return the call's result, or raise its error.

        A wait of which no stopped call is the reason soon ends: OceanBase releases the locks of a transaction some
        milliseconds after it has acknowledged the commit.
        """
        end = time.monotonic() + DEADLINE_S
        while not self.run().done and not self._stage.has_stopped_calls() and time.monotonic() < end:
            self.look()
        assert self.done, f"{self} waits for a lock that another call has"
        return self.outcome.result(0)

    # Used by the staged connections

    def parked(self, state: CallState, packet: Sequence[Statement], connection_id: int) -> Future[None]:
        """Return a future that is done when the call may continue, with an error if the connection breaks."""
        with self._stage.changed:
            self.state, self.packet, self.connection_id = state, packet, connection_id
            self._decision = Future()
            if self._left:  # a process that was killed sends nothing more
                self.state = "running"
                self._decision.set_exception(LeftTheStage())
            self._stage.changed.notify_all()
            return self._decision

    def ended(self, outcome: Callable[[], Any]) -> None:
        """Record the call's result or error."""
        try:
            self.outcome.set_result(outcome())
        except BaseException as error:
            self.outcome.set_exception(error)
        with self._stage.changed:
            self.state = "done"
            self._stage.changed.notify_all()

    def leave(self) -> None:
        """End the call if it waits for the test."""
        if self.state in ("asks", "answered"):
            self.state, self._left = "running", True
            self._decision.set_exception(LeftTheStage())

    def _go_on(self) -> None:
        self.state = "running"
        self._decision.set_result(None)
        self._stage.settle()

    def _break(self) -> None:
        self._stage.end_connection(
            self.connection_id
        )  # returns after an open transaction is rolled back and its locks are released
        self.state = "running"
        self._decision.set_exception(ConnectionLost("The stage broke the connection."))
        self._stage.settle()


def pauses(begin: Callable[[], Call]) -> Iterator[Call]:
    """Begin a call repeatedly, and yield it paused before its first packet, its second, and so on to its last."""
    for packets in range(1_000):
        call = begin()
        for _ in range(packets):
            call.step()
        if call.done:
            call.finish()
            assert packets, "there was nothing to pause before"
            return
        yield call


def finish_all(*calls: Call) -> None:
    """Run calls to their end. Some may wait for locks; of those in a deadlock, the server soon ends one."""
    end = time.monotonic() + DEADLINE_S
    while not all(call.done for call in calls):
        if all(call.waits or call.done for call in calls):
            assert time.monotonic() < end, f"{calls}: they wait for each other"
            calls[0].look()
            continue
        for call in calls:
            call.run()


class Process:
    """A store with its own caches, like that of another process. Its methods run from beginning to end.

    Args:
        stage: The stage that controls its calls.
        store: The store.
    """

    def __init__(self, stage: Stage, store: Any) -> None:
        self._stage = stage
        self.store = store

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *args, **options: self.begin(method, *args, **options).finish()

    def begin(self, method: str, *args: Any, **options: Any) -> Call:
        """Begin a call; it stops before its first packet."""
        shown = ", ".join(
            [*(f"{arg!r:.30}" for arg in args), *(f"{name}={value!r}" for name, value in options.items())]
        )
        return self._stage.begin(f"{method}({shown})", getattr(self.store, method), args, options)


class Stage:
    """Controls in which order the packets of calls are carried out.

    Args:
        make_config: Makes a configuration for the test's schema.
        run_sql: Runs one statement as the administrator, on a connection that no call uses.
        side: The driver and side, such as ``pymysql-sync``.
    """

    def __init__(self, make_config: MakeConfig, run_sql: Callable[..., tuple[Any, ...]], side: str) -> None:
        self.changed = threading.Condition()
        self._make_config = make_config
        self._run_sql = run_sql
        driver, _, self._way = side.rpartition("-")
        self._classes = BLOCKING if self._way == "sync" else AWAITED
        self._driver = f"staged {driver}"
        self.side = f"{self._driver}-{self._way}"
        register_driver(self._driver, StagedDriver(self._driver, driver))
        self._calls: list[Call] = []
        self._stores: list[Any] = []
        self._threads: list[threading.Thread] = []
        self._loop = asyncio.new_event_loop()
        self._looping = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._looping.start()
        self._kinds: set[str] = set()
        self._looker = self.store().store

    def store(self, kind: str = "store", **options: Any) -> Process:
        """Return the store of a new process.

        Args:
            kind: ``store``, ``backend``, ``saver``, ``memories`` or ``transcripts``.
            options: Options of the configuration. With ``pipeline=False`` each statement is a packet.
        """
        if kind not in self._kinds:
            self._kinds.add(kind)
            self._make_tables(kind)
        config = self._make_config(**{"driver": self._driver, "ssl_mode": "DISABLED", "ddl_mode": "off", **options})
        self._stores.append(self._classes[kind](config))
        return Process(self, self._stores[-1])

    def _make_tables(self, kind: str) -> None:
        config = self._make_config(driver=self._driver, ssl_mode="DISABLED")
        self._stores.append(self._classes[kind](config))
        outcome = self._stores[-1].count()
        if self._way == "async":
            self._await(outcome)

    def afresh(self, method: str, *args: Any, kind: str = "store", **options: Any) -> Any:
        """Return the result of a call in a new process. The stage does not control it, so it must not need a lock."""
        store = self.store(kind).store
        self._stores.remove(store)
        store.database = self._looker.database  # reuses its connections, as opening new ones is slow
        outcome = getattr(store, method)(*args, **options)
        return outcome if self._way == "sync" else self._await(outcome)

    def begin(self, title: str, method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Call:
        """Begin a call; it stops before its first packet."""
        call = Call(self, title)
        self._calls = [other for other in self._calls if not other.done]
        self._calls.append(call)
        if self._way == "sync":
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._threads.append(threading.Thread(target=_play, args=(call, method, args, options), daemon=True))
            self._threads[-1].start()
        else:
            asyncio.run_coroutine_threadsafe(_play_async(call, method, args, options), self._loop)
        self.settle()
        return call

    def perform(self, function: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> Call:
        """Begin an awaitable function, which calls a store; on the blocking side it runs in a thread of its own."""
        if self._way == "sync":
            return self.begin(function.__name__, lambda: asyncio.run(function(*args)), (), {})
        return self.begin(function.__name__, function, args, {})

    def has_stopped_calls(self) -> bool:
        """Return whether a call waits for the test, which may hold locks."""
        return any(call.state in ("asks", "answered") for call in self._calls)

    def settle(self) -> None:
        """Return when each call has stopped, ended, or waits for a lock."""
        end = time.monotonic() + DEADLINE_S
        while True:
            with self.changed:
                self.changed.wait_for(lambda: not self._running(), 0.005)
                running = self._running()
            if len(self._waiting_for_locks([call.connection_id for call in running])) == len(running):
                return
            assert time.monotonic() < end, f"{running}: neither stopped nor ended within {DEADLINE_S:g} s"

    def end_connection(self, connection_id: int) -> None:
        """End a connection, and return when the server has rolled back its transaction."""
        with suppress(pymysql.err.OperationalError):  # it may have ended already
            self._run_sql(f"KILL {connection_id}")
        end = time.monotonic() + DEADLINE_S
        while self._run_sql(f"SELECT 1 FROM {PROCESSLIST} WHERE id = %s", connection_id):
            assert time.monotonic() < end, f"a killed connection is still there after {DEADLINE_S:g} s"
            time.sleep(0.001)

    def carry_out_late(self, packet: Sequence[Statement]) -> None:
        """Let the server carry out a packet whose connection is broken, so that no caller receives the outcome."""
        config = self._make_config(driver="pymysql", ssl_mode="DISABLED")
        connection = find_driver("pymysql").connect(config, config.endpoints[0])
        with suppress(DriverError):
            connection.execute(packet)
        ((number,),) = connection.execute((_ASK_NUMBER,))[0].rows
        connection.abort()
        self.end_connection(int(number))

    def clear(self) -> None:
        """End the running calls, and close the stores."""
        end = time.monotonic() + DEADLINE_S
        while not all(call.done for call in self._calls):
            for call in self._calls:
                call.leave()
            with self.changed:
                self.changed.wait_for(lambda: all(call.done for call in self._calls), 0.005)
            assert time.monotonic() < end, f"{self._calls}: still on their way after {DEADLINE_S:g} s"
        for store in self._stores:
            if self._way == "sync":
                store.close()
            else:
                self._await(store.close())
        self._calls, self._stores = [], [self._looker]

    def close(self) -> None:
        """End all calls, and release the stage's resources."""
        self.clear()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._looping.join(DEADLINE_S)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _await(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(DEADLINE_S)

    def _running(self) -> list[Call]:
        return [call for call in self._calls if call.state == "running"]

    def _waiting_for_locks(self, connection_ids: list[int]) -> set[int]:
        if not connection_ids:
            return set()
        found = self._run_sql(f"{LOCK_WAITS} ({', '.join(map(str, connection_ids))})")
        return {number for (number,) in found}


def _play(call: Call, method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    _current.set(call)
    call.ended(lambda: method(*args, **options))


async def _play_async(call: Call, method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    _current.set(call)
    outcome: Future[Any] = Future()
    try:
        outcome.set_result(await method(*args, **options))
    except BaseException as error:
        outcome.set_exception(error)
    call.ended(outcome.result)


class StagedDriver:
    """A real driver whose connections wait for the stage.

    Args:
        name: The name of this driver.
        real: The name of the real driver.
    """

    def __init__(self, name: str, real: str) -> None:
        self.name = name
        self._real = find_driver(real)

    def connect(self, config: MySQLConfig, *where: Any, **options: Any) -> Any:
        inner = self._real.connect(config, *where, **options)
        ((number,),) = inner.execute((_ASK_NUMBER,))[0].rows
        return SyncStagedConnection(inner, config, number)

    async def connect_async(self, config: MySQLConfig, *where: Any, **options: Any) -> Any:
        inner = await self._real.connect_async(config, *where, **options)
        ((number,),) = (await inner.execute((_ASK_NUMBER,)))[0].rows
        return AsyncStagedConnection(inner, config, number)


_ASK_NUMBER = Statement("SELECT CONNECTION_ID()")


class StagedConnection:
    """A real connection. Packets and answers of the stage's calls wait until the test continues them.

    Args:
        inner: The real connection.
        config: Its ``pipeline`` option decides whether several statements are sent in one packet.
        number: The server's id of the connection.
    """

    def __init__(self, inner: Any, config: MySQLConfig, number: int) -> None:
        self.inner = inner
        self.number = number
        self._together = config.pipeline

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def packets(self, statements: Sequence[Statement]) -> list[Sequence[Statement]]:
        """Return the statements grouped by packet."""
        return [statements] if self._together else [(statement,) for statement in statements]


class SyncStagedConnection(StagedConnection):
    """A staged connection for threads."""

    def execute(self, statements: Sequence[Statement], *args: Any, **options: Any) -> list[Result]:
        call = _current.get()
        if call is None:
            return list(self.inner.execute(statements, *args, **options))
        results: list[Result] = []
        for packet in self.packets(statements):
            answer: list[Result] | DriverError
            try:
                call.parked("asks", packet, self.number).result()
                try:
                    answer = self.inner.execute(packet, *args, **options)
                except DriverError as error:
                    answer = error
                call.parked("answered", packet, self.number).result()
            except (ConnectionLost, LeftTheStage):
                self.inner.abort()
                raise
            if isinstance(answer, DriverError):
                raise answer
            results += answer
        return results


class AsyncStagedConnection(StagedConnection):
    """A staged connection for tasks."""

    async def execute(self, statements: Sequence[Statement], *args: Any, **options: Any) -> list[Result]:
        call = _current.get()
        if call is None:
            return list(await self.inner.execute(statements, *args, **options))
        results: list[Result] = []
        for packet in self.packets(statements):
            answer: list[Result] | DriverError
            try:
                await asyncio.wrap_future(call.parked("asks", packet, self.number))
                try:
                    answer = await self.inner.execute(packet, *args, **options)
                except DriverError as error:
                    answer = error
                await asyncio.wrap_future(call.parked("answered", packet, self.number))
            except (ConnectionLost, LeftTheStage):
                self.inner.abort()
                raise
            if isinstance(answer, DriverError):
                raise answer
            results += answer
        return results
