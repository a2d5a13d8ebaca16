"""Vacuum of graphs: old checkpoints, expired threads, and writes and tokens that nothing needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.records import ledger

from ...conftest import ONE_OF_EACH
from .conftest import OpenSaver
from .turns import ids, put_turns, put_turns_after, state_of

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("graphs")]

RunSQL = Callable[..., tuple[Any, ...]]
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


@one_of_each
async def test_vacuum_leaves_a_thread_that_was_saved_to_since_its_row_was_locked(
    open_saver: OpenSaver, side: str, run_sql: RunSQL, database: str
) -> None:
    saver = open_saver(side)
    await put_turns(saver, 2)
    run_sql(f"UPDATE {database}.locus_graph_threads SET updated_at = updated_at - INTERVAL 40 SECOND")
    run_sql(f"UPDATE {database}.locus_graph_checkpoints SET created_at = created_at - INTERVAL 40 SECOND")
    await put_turns_after(saver, 2, 4)
    assert await saver.vacuum(38 / 86_400) == 2  # 38 seconds, in days
    assert await ids(saver, thread_id="thread") == ["c4", "c3"]
    assert (await open_saver(side).get(thread_id="thread"))["checkpoint"] == state_of(4)


@one_of_each
async def test_vacuum_removes_old_checkpoints_but_never_the_newest_of_a_live_thread(
    open_saver: OpenSaver, run_sql: RunSQL, database: str, side: str
) -> None:
    saver = open_saver(side)
    await put_turns(saver, 6)
    await put_turns(saver, 3, ns="quiet")
    await put_turns(saver, 4, "idle")
    run_sql(
        f"UPDATE {database}.locus_graph_threads SET updated_at = updated_at - INTERVAL 9 DAY WHERE thread_id = 'idle'"
    )
    run_sql(
        f"UPDATE {database}.locus_graph_checkpoints SET created_at = created_at - INTERVAL 9 DAY"
        " WHERE checkpoint_id <> 'c6'"
    )
    assert await saver.vacuum(10) == 0
    assert await saver.vacuum(8.5) == 4 + 5 + 2
    assert await saver.list_threads() == ["thread"]
    assert await saver.count() == 1
    assert await ids(saver, thread_id="thread", checkpoint_ns="default") == ["c6"]
    assert await ids(saver, thread_id="thread", checkpoint_ns="quiet") == ["c3"]
    for reader in (saver, open_saver(side)):
        assert (await reader.get(thread_id="thread"))["checkpoint"] == state_of(6)
    assert await saver.vacuum(8.5) == 0


@one_of_each
async def test_vacuum_removes_old_writes_whose_checkpoint_never_came(
    open_saver: OpenSaver, side: str, run_sql: RunSQL, database: str
) -> None:
    saver = open_saver(side)
    await put_turns(saver, 1)
    for checkpoint_id in ("c1", "never"):
        await saver.put_writes(thread_id="thread", checkpoint_id=checkpoint_id, task_id="t", writes=[("x", 1)])
    assert await saver.vacuum(older_than_days=1) == 0
    assert await saver.get_writes(thread_id="thread", checkpoint_id="never")
    run_sql(f"UPDATE {database}.locus_graph_writes SET created_at = created_at - INTERVAL 2 DAY")
    assert await saver.vacuum(older_than_days=1) == 0
    assert not await saver.get_writes(thread_id="thread", checkpoint_id="never")
    assert len(await saver.get_writes(thread_id="thread", checkpoint_id="c1")) == 1


@one_of_each
@pytest.mark.parametrize("by", ["vacuum", "a later call"])
async def test_tokens_of_writes_are_forgotten_when_nobody_repeats_the_call_any_more(
    open_saver: OpenSaver, side: str, run_sql: RunSQL, database: str, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    saver = open_saver(side)
    tokens = f"FROM {database}.locus_graph_writes WHERE tenant = ''"
    for number in range(3):
        await saver.put_writes(thread_id="thread", checkpoint_id="c1", task_id=f"t{number}", writes=[("x", 1)])
    assert run_sql(f"SELECT COUNT(*) {tokens}") == ((3,),)
    run_sql(
        f"UPDATE {database}.locus_graph_writes SET created_at = created_at - INTERVAL 1 HOUR,"
        " checkpoint_key = CONCAT(UNHEX('0000000000000001'), RIGHT(checkpoint_key, 8)) WHERE tenant = ''"
    )
    monkeypatch.setattr(ledger, "one_in", lambda every: True)
    if by == "vacuum":
        await saver.vacuum()
    else:
        await saver.put_writes(thread_id="thread", checkpoint_id="c1", task_id="t3", writes=[("x", 1)])
    assert run_sql(f"SELECT COUNT(*) {tokens}") == ((0 if by == "vacuum" else 1,),)
    assert len(await saver.get_writes(thread_id="thread", checkpoint_id="c1")) == (3 if by == "vacuum" else 4)
