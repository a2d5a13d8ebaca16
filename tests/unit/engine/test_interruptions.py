"""A signal's handler may raise an exception at many points of the pool: no slot and no connection may be lost."""

from __future__ import annotations

import asyncio
import dis
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType
from typing import Any

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Statement
from locus_mysql.engine import connection_slots
from locus_mysql.engine.commands import CommandGenerator, Connect, Execute
from locus_mysql.engine.counters import PoolState
from locus_mysql.engine.group_commit import QueuedWrite
from locus_mysql.engine.loops import run_awaited, run_blocking
from locus_mysql.engine.operation import Batch
from locus_mysql.engine.pool import Pool
from locus_mysql.engine.servers import Role, ServerConnection
from locus_mysql.engine.sides import AwaitedSide, BlockingSide
from locus_mysql.engine.topology import Topology
from locus_mysql.engine.watch import ThreadWatch

from . import scripted

#: The modules in which the signal arrives.
MODULES = ("pool.py", "connection_slots.py", "group_commit.py", "idle.py", "counters.py")

#: More points than any function under test has.
MOST_POINTS = 500

#: A point after all others. Python 3.12 reports only some operations of code that is traced for the first time.
WARM_UP = 100_000


class Alarm(BaseException):
    """The exception that the signal's handler raises."""


@contextmanager
def alarm_at(point: int) -> Iterator[None]:
    """Raise `Alarm` at the point with this number, of those in `MODULES` at which Python runs handlers of signals.

    These are the beginnings of functions, the ends of calls, and jumps backward.
    """
    left = point

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.replace("\\", "/").endswith(tuple(f"/engine/{name}" for name in MODULES)):
            return None
        frame.f_trace_opcodes = True
        code, last = frame.f_code.co_code, ""

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal left, last
            frame.f_trace_opcodes = True  # here too, else Python 3.13.0 leaves out most operations
            if event == "opcode":
                before, last = last, dis.opname[code[frame.f_lasti]]
                left -= before.startswith(("RESUME", "CALL", "JUMP_BACKWARD"))
                if left < 0:
                    sys.settrace(None)
                    raise Alarm
            return step

        return step

    before = sys.gettrace()
    gc.disable()  # else pools of other tests may be freed here
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        gc.enable()


def is_interrupted(point: int, work: Callable[[], object]) -> bool:
    """Run a function with an alarm at a point; False if it ends before that."""
    try:
        with alarm_at(point):
            work()
    except Alarm:
        return True
    return False


def connect(config: Any, driver: Any, topology: Any) -> CommandGenerator[ServerConnection]:
    endpoint = topology.order()[0]
    return ServerConnection((yield Connect(driver, config, endpoint)), endpoint, None)


def is_gone(*_: Any) -> CommandGenerator[bool]:
    yield from ()
    return False


def points() -> Iterator[int]:
    """Return a point that is never reached, and then each point."""
    yield WARM_UP
    yield from count()


def is_behind_all(point: int, interrupted: bool) -> bool:
    """Return whether a point is the first that was not reached; check that there are some, and not too many."""
    if point == WARM_UP:
        assert not interrupted
        return False
    assert point < MOST_POINTS if interrupted else point > 10
    return not interrupted


#: The pools are not freed while an alarm is set.
_cases: list[Case] = []


class Case:
    """A pool of one of the sides with two connections, one of which is idle."""

    def __init__(self, side: Any, *, hosts: tuple[str, ...] = ("a", "b"), size: int = 2) -> None:
        self.driver: Any = scripted.Driver()
        config = MySQLConfig(hosts=hosts, pool_size=size, pool_timeout_s=60)
        self.pool: Any = Pool(config, self.driver, side, Topology(config.endpoints), role=Role(connect, is_gone))
        self.pool._side.reap_in = lambda pool, wait_s: None
        _cases.append(self)

    def use(self, lent: ServerConnection) -> CommandGenerator[Any]:
        return (yield Execute(lent.connection, ()))

    def fail(self, lent: ServerConnection) -> CommandGenerator[Any]:
        yield from self.use(lent)
        raise ValueError

    def outdate(self, lent: ServerConnection) -> CommandGenerator[Any]:
        yield from self.pool.close()

    def nested(self, lent: ServerConnection) -> CommandGenerator[Any]:
        """Lend all connections at once."""
        assert self.pool.state().in_use == 1
        yield from self.pool.lend(self.use)
        return (yield from self.use(lent))

    def check(self) -> None:
        """Check that no connection is still lent, idle twice, or idle though closed, and that no call is watched."""
        state = self.pool.state()
        assert (state.in_use, state.waiting) == (0, 0)
        assert self.pool._watch.calls.waiting() == []
        idle = [one.connection for one in self.pool._idle._kept]
        assert len(set(map(id, idle))) == len(idle), "a connection is idle twice"
        assert not [one for one in idle if one.closed], "a dropped connection is kept"


@pytest.fixture(autouse=True)
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreadWatch, "_run", lambda self: None)
    _cases.clear()


@pytest.mark.parametrize(("use", "tested"), [("use", False), ("use", True), ("fail", False), ("outdate", False)])
@pytest.mark.parametrize("idle", [True, False], ids=["idle", "new"])
def test_after_any_signal_the_pool_lends_all_its_connections(use: str, tested: bool, idle: bool) -> None:
    for point in points():
        case = Case(BlockingSide())
        if idle:
            run_blocking(case.pool.lend(case.use))

        def lend(case: Case = case) -> None:
            try:
                run_blocking(case.pool.lend(getattr(case, use), tested=tested))
            except ValueError:
                assert use == "fail"

        interrupted = is_interrupted(point, lend)
        case.check()
        run_blocking(case.pool.lend(case.nested))
        case.check()
        if is_behind_all(point, interrupted):
            return


@contextmanager
def all_lent(case: Case) -> Iterator[Callable[[], None]]:
    """Lend the only connection, which is idle, in a generator; yields a function that gives it back."""
    holding = case.pool.lend(case.use)
    assert isinstance(next(holding), Execute)

    def give_back() -> None:
        with pytest.raises(StopIteration):
            holding.send([])

    yield give_back
    holding.close()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.0001)


def test_a_thread_that_is_interrupted_while_it_waits_takes_no_slot() -> None:
    for point in points():
        case = Case(BlockingSide(), size=1)
        run_blocking(case.pool.lend(case.use))
        outcomes: list[bool] = []

        def lend(case: Case = case, outcomes: list[bool] = outcomes, point: int = point) -> None:
            outcomes.append(is_interrupted(point, lambda: run_blocking(case.pool.lend(case.use))))

        with all_lent(case) as give_back:
            thread = threading.Thread(target=lend, daemon=True)
            thread.start()
            wait_until(lambda case=case, outcomes=outcomes: bool(case.pool.state().waiting or outcomes))  # type: ignore[misc]
            give_back()
            thread.join(5)
        case.check()
        run_blocking(case.pool.lend(case.use))
        case.check()
        if is_behind_all(point, outcomes != [False]):
            return


def test_a_thread_that_waits_gets_its_slot_although_a_signal_interrupts_who_gives_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_slots, "RECHECK_S", 0.001)
    for point in points():
        case = Case(BlockingSide(), size=1)
        run_blocking(case.pool.lend(case.use))
        with all_lent(case) as give_back:
            thread = threading.Thread(target=lambda case=case: run_blocking(case.pool.lend(case.use)), daemon=True)  # type: ignore[misc]
            thread.start()
            wait_until(lambda case=case: bool(case.pool.state().waiting))  # type: ignore[misc]
            interrupted = is_interrupted(point, give_back)
        thread.join(5)
        assert not thread.is_alive()
        case.check()
        if is_behind_all(point, interrupted):
            return


async def test_a_task_that_waits_gets_its_slot_although_a_signal_interrupts_who_gives_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_slots, "RECHECK_S", 0.001)
    for point in points():
        case = Case(AwaitedSide(), size=1)
        await run_awaited(case.pool.lend(case.use))
        with all_lent(case) as give_back:
            tasks = [asyncio.create_task(run_awaited(case.pool.lend(case.use))) for _ in range(2)]
            await asyncio.sleep(0)
            assert case.pool.state() == PoolState(1, 1, 2)
            interrupted = is_interrupted(point, give_back)
        await asyncio.wait_for(asyncio.gather(*tasks), 5)
        case.check()
        case.pool.abort()
        if is_behind_all(point, interrupted):
            return


class Writer:
    """A call whose write may be sent by another one."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.write = QueuedWrite(Batch((Statement("UPDATE t"),), lock=("t",)))
        self.used = False

    def lend(self) -> CommandGenerator[Any]:
        return self.case.pool.lend(self.use, write=self.write)

    def use(self, lent: ServerConnection) -> CommandGenerator[Any]:
        self.used = True
        return self.case.use(lent)

    @property
    def answered(self) -> bool:
        """Whether the call was sent by itself or in a group."""
        return self.used or self.write.outcome is not None


def test_threads_get_an_outcome_although_a_signal_interrupts_the_one_that_sends_their_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_slots, "RECHECK_S", 0.001)
    sent_together = 0
    for point in points():
        case = Case(BlockingSide(), size=1)
        run_blocking(case.pool.lend(case.use))
        first, *others = (Writer(case) for _ in range(3))
        outcomes: list[bool] = []

        def send(first: Writer = first, outcomes: list[bool] = outcomes, point: int = point) -> None:
            outcomes.append(is_interrupted(point, lambda: run_blocking(first.lend())))

        with all_lent(case) as give_back:
            threads = [threading.Thread(target=send, daemon=True)]
            threads[0].start()
            wait_until(lambda case=case, outcomes=outcomes: bool(case.pool.state().waiting or outcomes))  # type: ignore[misc]
            threads += [
                threading.Thread(target=lambda one=one: run_blocking(one.lend()), daemon=True) for one in others
            ]  # type: ignore[misc]
            for thread in threads[1:]:
                thread.start()
            wait_until(lambda case=case, outcomes=outcomes: case.pool.state().waiting + len(outcomes) == 3)  # type: ignore[misc]
            give_back()
            for thread in threads:
                thread.join(5)
                assert not thread.is_alive()
        assert all(one.answered for one in others)
        sent_together += others[0].write.outcome is not None
        case.check()
        if is_behind_all(point, outcomes != [False]):
            break
    assert sent_together > 10, "the signal also arrived while the first one sent the writes of the others"


# Python itself forgets a coroutine of `asyncio.timeout` if a signal arrives while it is created.
@pytest.mark.filterwarnings("ignore:coroutine 'Timeout:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_tasks_get_an_outcome_although_a_signal_interrupts_the_one_that_sends_their_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_slots, "RECHECK_S", 600)
    for point in points():
        case = Case(AwaitedSide(), size=1)
        await run_awaited(case.pool.lend(case.use))
        writers = [Writer(case) for _ in range(3)]
        with all_lent(case) as give_back:
            tasks = [asyncio.create_task(run_awaited(one.lend())) for one in writers]
            await asyncio.sleep(0)
            assert case.pool.state() == PoolState(1, 1, 3)
            give_back()
        with alarm_at(point):
            done, _ = await asyncio.wait(tasks, timeout=5)
        assert len(done) == 3
        errors = [one.exception() for one in tasks]
        interrupted = any(isinstance(error, Alarm) for error in errors)
        assert [type(error) for error in errors if error is not None] == [Alarm] * interrupted
        assert all(one.answered for one, error in zip(writers, errors, strict=True) if error is None)
        case.check()
        case.pool.abort()
        if is_behind_all(point, interrupted):
            return
