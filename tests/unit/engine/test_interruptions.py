"""A signal's handler may raise an exception at many points of the pool: no place and no connection may be lost."""

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
from locus_mysql.engine import places
from locus_mysql.engine.commands import CommandGenerator, Connect, Execute
from locus_mysql.engine.counters import PoolState
from locus_mysql.engine.loops import run_awaited, run_blocking
from locus_mysql.engine.pool import Pool
from locus_mysql.engine.servers import Role, ServerConnection
from locus_mysql.engine.sides import AwaitedSide, BlockingSide
from locus_mysql.engine.topology import Topology
from locus_mysql.engine.watch import ThreadWatch

from . import scripted

#: The modules in which the signal arrives.
MODULES = ("pool.py", "places.py", "idle.py", "counters.py")

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


def test_a_thread_that_is_interrupted_while_it_waits_takes_no_place() -> None:
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


def test_a_thread_that_waits_gets_its_place_although_a_signal_interrupts_who_gives_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places, "RECHECK_S", 0.001)
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


async def test_a_task_that_waits_gets_its_place_although_a_signal_interrupts_who_gives_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places, "RECHECK_S", 0.001)
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
