"""Processes that serve one thread in turn: each loads the others' newest state and continues from it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from locus_mysql.dialect.checkpoints.loading import CHAIN_ROWS, SINCE_ROWS

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


@pytest.mark.parametrize("seed", range(4))
async def test_each_process_loads_the_newest_whatever_the_others_did(make_store: Make, seed: int) -> None:
    source = random.Random(seed)
    processes = [make_store() for _ in range(3)]
    kept: list[tuple[str, dict[str, Any]]] = []  # in the order in which they were saved
    for turn in range(80):
        process, other = source.sample(processes, 2)
        deed = source.random()
        before = kept[-1][1] if kept else BEGUN
        if deed < 0.15 and kept:
            name, _ = kept.pop(source.choice([-1, source.randrange(len(kept))]))
            assert await process.delete("t", name)
        elif deed < 0.25 and kept:
            name, _ = kept.pop(source.randrange(len(kept)))
            kept.append((name, grown(before, turn)))
            await process.save("t", kept[-1][1], name)
        elif deed < 0.28:
            kept.clear()
            await process.delete("t")
        else:
            if source.random() < 0.8:
                assert await process.load("t") == (before if kept else None)
            kept.append((f"c{turn}", grown(before, turn)))
            await process.save("t", kept[-1][1], f"c{turn}")
        for reader in (process, other):
            for name, saved in (kept[-1], source.choice(kept)) if kept else ():
                assert await reader.load("t", name) == saved
            assert await reader.load("t") == (kept[-1][1] if kept else None)


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


async def test_a_thread_made_anew_is_not_taken_for_the_one_that_was_known(make_store: Make) -> None:
    away, here = make_store(), make_store()
    for turn in (1, 2):
        await here.save("t", grown(BEGUN, turn), str(turn))
        assert await away.load("t") == grown(BEGUN, turn)
    await here.delete("t")
    state = BEGUN
    for turn in range(5, 9):
        state = grown(state, turn)
        await here.save("t", state, str(turn))
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


async def test_the_newest_checkpoint_is_found_where_the_one_saved_last_was_deleted(make_store: Make) -> None:
    store, states = make_store(), [BEGUN]
    for turn in range(1, 5):
        states.append(grown(states[-1], turn))
        await store.save("t", states[-1], str(turn))
    for turn in (4, 3):
        await store.delete("t", str(turn))
        assert await make_store().load("t") == states[turn - 1]
    assert await make_store().load("t", "4") is None
