"""Processes that serve one thread in turn: each loads the others' newest state and continues from it."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.families.checkpoints.statements.loading import CHAIN_ROWS, SINCE_ROWS

from .conftest import Make, RunSQL

pytestmark = [pytest.mark.kept_tables("dicts"), pytest.mark.slow]


def grown(state: dict[str, Any], turn: int) -> dict[str, Any]:
    """Return an agent's state one turn later: messages are appended, and steps are replaced."""
    added = [{"role": role, "content": f"turn {turn} " + "x" * 300} for role in ("user", "assistant")]
    return {"messages": [*state["messages"], *added], "steps": [{"turn": turn}] * (turn % 3), "turn": turn}


BEGUN: dict[str, Any] = {"messages": [{"role": "system", "content": "y" * 3_000}], "steps": [], "turn": 0}


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
async def test_each_process_loads_what_another_one_saved(make_store: Make, cache_bytes: int) -> None:
    processes = [make_store(cache_bytes=cache_bytes) for _ in range(3)]
    state = BEGUN
    await processes[0].save("t", state, "0")
    for turn in range(1, 50):
        process = processes[turn % 3]
        assert await process.load("t") == state
        state = grown(state, turn)
        await process.save("t", state, str(turn))
        if turn % 7 == 0:
            stranger = make_store()
            assert await stranger.load("t") == state
            assert await stranger.load("t", str(turn // 2)) == await process.load("t", str(turn // 2))


async def test_a_process_that_was_away_for_many_turns_catches_up(make_store: Make) -> None:
    away, here = make_store(), make_store()
    state = BEGUN
    await here.save("t", state, "0")
    assert await away.load("t") == state
    state = grown(state, 1)
    await here.save("t", state, "1")
    assert await away.load("t") == state  # from now on it only fetches later saves
    for turn in range(2, 2 + 3 * SINCE_ROWS):
        state = grown(state, turn)
        await here.save("t", state, str(turn))
        if turn in {4, 4 + SINCE_ROWS - 1, 4 + 2 * SINCE_ROWS}:
            assert await away.load("t") == state


async def test_a_state_on_more_rows_than_one_statement_reads_is_loaded(make_store: Make, sql: RunSQL) -> None:
    store, rows = make_store(), []
    state = {**BEGUN, "messages": [{"role": "system", "content": "y" * 100_000}]}  # later rows are deltas of this one
    for turn in range(2**CHAIN_ROWS):
        state = grown(state, turn)
        await store.save("t", state, str(turn))
        if turn in {2 ** (CHAIN_ROWS - 1) - 1, 2**CHAIN_ROWS - 2, 2**CHAIN_ROWS - 1}:
            assert await make_store().load("t") == state
            assert await make_store().load("t", str(turn)) == state
            bases = dict(sql("SELECT seq, base_seq FROM locus_store_checkpoints WHERE thread_id = 't'"))
            chain = [turn + 1]
            while bases[chain[-1]] != chain[-1]:
                chain.append(bases[chain[-1]])
            rows.append(len(chain))
    assert rows == [CHAIN_ROWS, CHAIN_ROWS, CHAIN_ROWS + 1]
