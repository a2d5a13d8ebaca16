"""Processes that serve one thread in turn: each loads the others' newest state and continues from it."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.families.checkpoints.statements.loading import CHAIN_ROWS

from .conftest import Make, RunSQL

pytestmark = [pytest.mark.kept_tables("dicts"), pytest.mark.slow]


def grown(state: dict[str, Any], turn: int) -> dict[str, Any]:
    """Return an agent's state one turn later: messages are appended, and steps are replaced."""
    added = [{"role": role, "content": f"turn {turn} " + "x" * 300} for role in ("user", "assistant")]
    return {"messages": [*state["messages"], *added], "steps": [{"turn": turn}] * (turn % 3), "turn": turn}


BEGUN: dict[str, Any] = {"messages": [{"role": "system", "content": "y" * 3_000}], "steps": [], "turn": 0}


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
