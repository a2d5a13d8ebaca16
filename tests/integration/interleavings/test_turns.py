"""Turns of three processes, with packets and answers in any order or lost, and leases that expire at any moment.

Each turn loads the thread, adds its number, and saves. If no two turns ran concurrently, the newest state has the
numbers of exactly the turns that succeeded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from locus_mysql import CheckpointStore, SyncCheckpointStore
from locus_mysql.errors import ThreadBusy, TurnLost

from ...thoroughness import FULL
from .stage import Call, Process, Stage, finish_all, pauses

pytestmark = pytest.mark.both_sides

PROCESSES = 3

#: Long enough that no lease is renewed automatically.
LEASE_S = 3_600


def sync_turn(store: SyncCheckpointStore, number: int) -> int:
    with store.turn("t", wait_s=0, lease_s=LEASE_S):
        state = store.load("t") or {"said": []}
        store.save("t", {"said": [*state["said"], number, "word " * 600]})
    return number


async def async_turn(store: CheckpointStore, number: int) -> int:
    async with store.turn("t", wait_s=0, lease_s=LEASE_S):
        state = await store.load("t") or {"said": []}
        await store.save("t", {"said": [*state["said"], number, "word " * 600]})
    return number


def begin_turn(stage: Stage, process: Process, number: int) -> Call:
    turn: Callable[..., Any] = async_turn if inspect.iscoroutinefunction(process.store.save) else sync_turn
    return stage.begin(f"turn {number}", turn, (process.store, number), {})


def outcome(call: Call) -> int | None:
    """Return the number of a turn that succeeded, else None."""
    try:
        number: int = call.finish()
    except (ThreadBusy, TurnLost):
        return None
    return number


def numbers_saved(stage: Stage) -> list[int]:
    state = stage.afresh("load", "t")
    return [] if state is None else [one for one in state["said"] if isinstance(one, int)]


def let_leases_run_out(run_sql: Callable[..., Any], database: str) -> None:
    run_sql(
        f"UPDATE {database}.locus_store_ledger SET recorded_at = UTC_TIMESTAMP(6) WHERE recorded_at > UTC_TIMESTAMP(6)"
    )


@pytest.mark.parametrize("begun", [False, True], ids=["new", "begun"])
def test_a_turn_that_is_taken_over_at_any_moment_overwrites_nothing(
    stage: Stage, check_tables: Callable[[], None], run_sql: Callable[..., Any], database: str, begun: bool
) -> None:
    one, other = stage.store(), stage.store()
    if begun:
        one.save("t", {"said": [0]})
    expected = [0] if begun else []
    numbers = count(1)
    for call in pauses(lambda: begin_turn(stage, one, next(numbers))):
        let_leases_run_out(run_sql, database)
        theirs = begin_turn(stage, other, next(numbers)).run()
        expected += [number for number in (outcome(theirs), outcome(call)) if number is not None]
        assert sorted(numbers_saved(stage)) == sorted(expected)
        check_tables()
        if not begun:
            one.delete("t")
            expected = []
    assert next(numbers) > 7


@pytest.mark.slow
def test_turns_in_any_order_follow_each_other(
    stage: Stage, check_tables: Callable[[], None], run_sql: Callable[..., Any], database: str
) -> None:
    which = st.integers(0, PROCESSES - 1)
    actions = st.lists(
        st.one_of(
            st.tuples(st.just("begin"), which),
            st.tuples(st.just("go on"), which),
            st.tuples(st.just("go on"), which),
            st.tuples(st.sampled_from(["to the end", "lose the request", "lose the answer", "run out"]), which),
        ),
        min_size=5,
        max_size=30,
    )

    @settings(
        max_examples=200 if FULL else 40,
        phases=[Phase.generate, *([Phase.shrink] if FULL else [])],
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(actions)
    def play(script: list[tuple[str, int]]) -> None:
        run_sql(f"DELETE FROM {database}.locus_store_checkpoints")
        run_sql(f"DELETE FROM {database}.locus_store_threads")
        processes = [stage.store() for _ in range(PROCESSES)]
        calls: dict[int, Call] = {}
        ended: list[Call] = []
        losses = 0
        for number, (action, index) in enumerate(script):
            call = calls.get(index)
            if action == "begin" and (call is None or call.done):
                ended += [] if call is None else [call]
                calls[index] = begin_turn(stage, processes[index], number)
            elif action == "run out":
                if not any(one.waits for one in calls.values()):
                    let_leases_run_out(run_sql, database)
            elif call is None or call.done:
                continue
            elif action == "go on":
                if call.state == "asks":
                    call.carry_out()
                elif call.state == "answered":
                    call.deliver()
            elif action == "to the end":
                call.run()
            elif losses < 2 and call.state == "asks":
                losses += 1
                if action == "lose the request":
                    call.lose_request()
                elif call.carry_out().state == "answered":
                    call.lose_answer()
        finish_all(*calls.values())
        well = [number for number in map(outcome, [*ended, *calls.values()]) if number is not None]
        assert sorted(numbers_saved(stage)) == sorted(well)
        check_tables()
        stage.clear()

    play()
