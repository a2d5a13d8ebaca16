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
from locus_mysql.drivers.interface import ConnectionLost
from locus_mysql.engine import connection_slots
from locus_mysql.engine.commands import Command, CommandGenerator, Execute
from locus_mysql.engine.execution import Execution
from locus_mysql.engine.logs import Counters, PoolState
from locus_mysql.engine.loops import run_awaited, run_blocking
from locus_mysql.engine.operation import Batch
from locus_mysql.engine.pool import Pool, abort_all
from locus_mysql.engine.sides import AwaitedSide, BlockingSide

from . import scripted

#: The modules in which the signal arrives.
MODULES = ("pool.py", "connection_slots.py", "group_commit.py", "execution.py")

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


READ, WRITE = Batch((Statement("SELECT 1"),)), Batch((Statement("UPDATE t"),), lock=("t",))


def one_command(command: Command) -> CommandGenerator[Any]:
    return (yield command)


def run_until_sent(call: CommandGenerator[Any]) -> None:
    """Run a call until its packet is sent; before, it may open a connection, or wait until that was done."""
    command = next(call)
    while not isinstance(command, Execute):
        command = call.send(run_blocking(one_command(command)))


#: The pools are not freed while an alarm is set.
_cases: list[Case] = []


class Case:
    """Calls on a pool of one of the sides with two connections, one of which is idle."""

    def __init__(self, side: Any, *, hosts: tuple[str, ...] = ("a", "b"), size: int = 2) -> None:
        self.driver: Any = scripted.Driver()
        config = MySQLConfig(hosts=hosts, pool_size=size, pool_timeout_s=60)
        self.execution = Execution(config, Counters())
        self.pool: Any = Pool(config, side, scripted.Servers(config, self.driver))
        side.call_later = lambda work, wait_s: None
        _cases.append(self)

    def call(self, batch: Batch = READ, *, tested: bool = False) -> CommandGenerator[Any]:
        return self.execution._send(self.pool, batch, tested=tested)

    def fail(self, *_: object) -> Any:
        """Answer with an error that is none of the server's."""
        return ValueError()

    def outdate(self, *_: object) -> Any:
        """Close the pool before the answer."""
        abort_all(self.pool.outdate())
        return []

    def call_twice_at_once(self) -> None:
        """Lend all connections at once."""
        first, second = self.call(), self.call()
        run_until_sent(first)
        assert self.pool.state().in_use == 1
        run_until_sent(second)
        for one in (first, second):
            with pytest.raises(StopIteration):
                one.send([])

    def check(self) -> None:
        """Check that no connection is still lent, idle twice, or idle though closed."""
        state = self.pool.state()
        assert (state.in_use, state.waiting) == (0, 0)
        idle = [one.connection for one in self.pool._idle]
        assert len(set(map(id, idle))) == len(idle), "a connection is idle twice"
        assert not [one for one in idle if one.closed], "a dropped connection is kept"


@pytest.fixture(autouse=True)
def no_cases() -> None:
    _cases.clear()


@pytest.mark.parametrize(("answer", "tested"), [(None, False), (None, True), ("fail", False), ("outdate", False)])
@pytest.mark.parametrize("idle", [True, False], ids=["idle", "new"])
def test_after_any_signal_the_pool_lends_all_its_connections(answer: str | None, tested: bool, idle: bool) -> None:
    for point in points():
        case = Case(BlockingSide())
        if idle:
            run_blocking(case.call())
        usual = case.driver.answers
        if answer is not None:
            case.driver.answers = lambda _, statements, case=case: getattr(case, answer)() if statements else []

        def call(case: Case = case) -> None:
            try:
                run_blocking(case.call(tested=tested))
            except ValueError:
                assert answer == "fail"

        interrupted = is_interrupted(point, call)
        case.check()
        case.driver.answers = usual
        case.call_twice_at_once()
        case.check()
        if is_behind_all(point, interrupted):
            return


@contextmanager
def all_lent(case: Case) -> Iterator[Callable[[], None]]:
    """Lend the only connection, which is idle, in a generator; yields a function that gives it back."""
    holding = case.call()
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
        run_blocking(case.call())
        outcomes: list[bool] = []

        def lend(case: Case = case, outcomes: list[bool] = outcomes, point: int = point) -> None:
            outcomes.append(is_interrupted(point, lambda: run_blocking(case.call())))

        with all_lent(case) as give_back:
            thread = threading.Thread(target=lend, daemon=True)
            thread.start()
            wait_until(lambda case=case, outcomes=outcomes: bool(case.pool.state().waiting or outcomes))  # type: ignore[misc]
            give_back()
            thread.join(5)
        case.check()
        run_blocking(case.call())
        case.check()
        if is_behind_all(point, outcomes != [False]):
            return


def test_a_thread_that_waits_gets_its_slot_although_a_signal_interrupts_who_gives_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_slots, "RECHECK_S", 0.001)
    for point in points():
        case = Case(BlockingSide(), size=1)
        run_blocking(case.call())
        with all_lent(case) as give_back:
            thread = threading.Thread(target=lambda case=case: run_blocking(case.call()), daemon=True)  # type: ignore[misc]
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
        await run_awaited(case.call())
        with all_lent(case) as give_back:
            tasks = [asyncio.create_task(run_awaited(case.call())) for _ in range(2)]
            await asyncio.sleep(0)
            assert case.pool.state() == PoolState(1, 1, 2)
            interrupted = is_interrupted(point, give_back)
        await asyncio.wait_for(asyncio.gather(*tasks), 5)
        case.check()
        case.pool.abort()
        if is_behind_all(point, interrupted):
            return


def test_threads_get_an_outcome_although_a_signal_interrupts_the_one_that_sends_their_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_slots, "RECHECK_S", 0.001)
    sent_together = 0
    for point in points():
        case = Case(BlockingSide(), size=1)
        run_blocking(case.call())
        outcomes: list[bool] = []
        others: list[Any] = []

        def send(case: Case = case, outcomes: list[bool] = outcomes, point: int = point) -> None:
            outcomes.append(is_interrupted(point, lambda: run_blocking(case.call(WRITE))))

        def send_other(case: Case = case, others: list[Any] = others) -> None:
            try:
                others.append(run_blocking(case.call(WRITE)))
            except ConnectionLost as error:  # it cannot know whether its write was carried out
                others.append(error)

        with all_lent(case) as give_back:
            threads = [threading.Thread(target=send, daemon=True)]
            threads[0].start()
            wait_until(lambda case=case, outcomes=outcomes: bool(case.pool.state().waiting or outcomes))  # type: ignore[misc]
            threads += [threading.Thread(target=send_other, daemon=True) for _ in range(2)]
            for thread in threads[1:]:
                thread.start()
            wait_until(lambda case=case, outcomes=outcomes: case.pool.state().waiting + len(outcomes) == 3)  # type: ignore[misc]
            give_back()
            for thread in threads:
                thread.join(5)
                assert not thread.is_alive()
        assert len(others) == 2
        sent_together += any(len(statements) > 3 for _, statements in case.driver.asked)
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
        await run_awaited(case.call())
        with all_lent(case) as give_back:
            tasks = [asyncio.create_task(run_awaited(case.call(WRITE))) for _ in range(3)]
            await asyncio.sleep(0)
            assert case.pool.state() == PoolState(1, 1, 3)
            give_back()
        with alarm_at(point):
            done, _ = await asyncio.wait(tasks, timeout=5)
        assert len(done) == 3
        errors = [one.exception() for one in tasks]
        interrupted = any(isinstance(error, Alarm) for error in errors)
        assert {type(error) for error in errors if error is not None} <= {Alarm, ConnectionLost}
        case.check()
        case.pool.abort()
        if is_behind_all(point, interrupted):
            return
