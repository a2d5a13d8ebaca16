"""Inspection of one thread: its history, earlier states, differences and turns, also when rows are damaged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import CheckpointStore, MySQLCheckpointer
from locus_mysql.errors import CorruptCheckpoint, NotFound
from locus_mysql.families.inspection.records import CheckpointRow
from locus_mysql.families.inspection.turns import first_saved
from locus_mysql.inspection import Inspector

from ....conftest import MakeConfig
from .conftest import RunSQL

pytestmark = pytest.mark.kept_tables("agents", "dicts", "current")


def messages(count: int) -> list[dict[str, Any]]:
    """Return a number of messages."""
    return [{"role": "user", "content": f"message number {number} " + "x" * 100} for number in range(count)]


async def all_of(inspector: Inspector, thread_id: str, limit: int) -> list[CheckpointRow]:
    """Read a thread's history page by page."""
    rows: list[CheckpointRow] = []
    cursor = None
    while True:
        page = await inspector.history("dicts", thread_id, limit=limit, cursor=cursor)
        assert len(page.items) <= limit
        rows += page.items
        cursor = page.cursor
        if cursor is None:
            return rows


async def test_a_history_is_read_page_by_page(store: CheckpointStore, inspector: Inspector) -> None:
    for number in range(12):
        await store.save("t", {"messages": messages(number * 3)}, f"c{number}", {"n": number})
    await store.delete("t", "c6")
    expected = await store.history("t")
    for limit in (1, 3, 11, 100):
        rows = await all_of(inspector, "t", limit)
        assert [
            {
                "checkpoint_id": row.checkpoint_id,
                "parent_id": row.parent_id,
                "created_at": row.created_at,
                "metadata": row.metadata,
            }
            for row in rows
        ] == [{key: value for key, value in entry.items() if key != "size_bytes"} for entry in expected]
    assert rows[4].parent_id == "c5"  # the parent of c7, whose own parent c6 was deleted
    assert list((await inspector.history("dicts", "nobody")).items) == []


async def test_any_state_is_shown_as_it_was(store: CheckpointStore, inspector: Inspector) -> None:
    states = {f"c{number}": {"messages": messages(number * 5), "n": number} for number in range(40)}
    for name, state in states.items():
        await store.save("t", state, name)
    for name, state in states.items():
        view = await inspector.state("dicts", "t", name)
        assert view is not None
        assert (view.state, view.checkpoint.checkpoint_id, view.damage) == (state, name, None)
        assert [message.raw for message in view.messages] == state["messages"]
    newest = await inspector.state("dicts", "t")
    assert newest is not None
    assert newest.checkpoint.checkpoint_id == "c39"
    assert newest.checkpoint.parent_id == "c38"
    assert await inspector.state("dicts", "t", "nothing") is None
    assert await inspector.state("dicts", "nobody") is None
    assert await inspector.state("dicts", "t", "c1", namespace="inner") is None


async def test_each_message_is_of_the_checkpoint_that_first_had_it(
    store: CheckpointStore, inspector: Inspector
) -> None:
    for number in range(1, 30):  # many deltas, some of which change no message
        await store.save("t", {"messages": messages(number - number % 3), "other": [number], "n": number}, f"c{number}")
    view = await inspector.state("dicts", "t")
    assert view is not None
    turns = await inspector.states("dicts", "t")
    saved_at = {turn.checkpoint_id: turn.created_at for turn in turns}
    assert first_saved(view, turns) == {at: saved_at[f"c{at // 3 * 3 + 3}"] for at in range(27)}
    newest = await inspector.states("dicts", "t", limit=5)
    assert set(first_saved(view, newest)) == {24, 25, 26}
    await store.load("t", "c12")
    await store.save("t", {"messages": [*messages(12), "another"], "other": [], "n": 0}, "branch")
    view = await inspector.state("dicts", "t")
    assert view is not None
    turns = await inspector.states("dicts", "t")
    assert first_saved(view, turns) == {
        **{at: saved_at[f"c{at // 3 * 3 + 3}"] for at in range(12)},
        12: view.checkpoint.created_at,
    }


async def test_the_state_at_a_time_is_the_newest_one_saved_by_then(
    store: CheckpointStore, inspector: Inspector, sql: RunSQL
) -> None:
    for hour in (1, 2, 3):
        await store.save("t", {"hour": hour}, f"at {hour}")
        sql("UPDATE locus_store_checkpoints SET created_at = %s WHERE checkpoint_id = %s",
            f"2026-01-01 0{hour}:00:00", f"at {hour}")  # fmt: skip

    async def known_at(moment: datetime) -> Any:
        view = await inspector.state("dicts", "t", at=moment)
        return view and view.state["hour"]

    midnight = datetime(2026, 1, 1, tzinfo=UTC)
    assert await known_at(midnight + timedelta(hours=2)) == 2
    assert await known_at(midnight + timedelta(hours=3, minutes=-1)) == 2
    assert await known_at(midnight + timedelta(hours=30)) == 3
    assert await known_at(midnight) is None


async def test_two_checkpoints_are_compared(store: CheckpointStore, inspector: Inspector) -> None:
    await store.save("t", {"messages": messages(2), "goal": "a"}, "first")
    await store.save("t", {"messages": messages(3), "goal": "b"}, "second")
    found = await inspector.differences("dicts", "t", "first", "second")
    assert [change.change for change in found.messages] == ["same", "same", "added"]
    assert [(change.path, change.before, change.after) for change in found.fields] == [("goal", "a", "b")]
    assert (found.before.checkpoint_id, found.after.checkpoint_id) == ("first", "second")
    with pytest.raises(NotFound, match="'third'"):
        await inspector.differences("dicts", "t", "first", "third")


async def test_an_agents_turns_contain_its_confidence(make_config: MakeConfig, inspector: Inspector) -> None:
    state = AgentState(messages=(Message.user("x" * 3_000),))
    async with MySQLCheckpointer(make_config()) as checkpointer:
        for turn in range(1, 8):
            state = state.model_copy(
                update={"confidence": turn / 10, "total_tokens_used": turn * 100, "iteration": turn}
            ).with_message(Message.assistant("answer " * 40))
            await checkpointer.save(state, "t", f"c{turn}")
    turns = await inspector.states("agents", "t", limit=5)
    assert [(turn.checkpoint_id, turn.confidence, turn.tokens, turn.iterations) for turn in turns] == [
        (f"c{turn}", turn / 10, turn * 100, turn) for turn in range(3, 8)
    ]
    assert await inspector.states("agents", "nobody") == []


async def test_a_state_without_numbers_has_none(store: CheckpointStore, inspector: Inspector) -> None:
    await store.save("t", {"confidence": "high", "tokens": True, "iteration": [1]}, "c")
    await store.save("t", {"padding": "x" * 100_000, "iteration": 2}, "long")  # after the part that is read
    assert [(one.confidence, one.tokens, one.iterations) for one in await inspector.states("dicts", "t")] == [
        (None, None, None)
    ] * 2


async def test_all_viewers_cost_one_round_trip(store: CheckpointStore, inspector: Inspector) -> None:
    await store.save("t", {})
    watched: Any = [(family, "t") for family in ("agents", "dicts", "current")]
    await inspector.changed(watched)
    before = inspector.database.stats().round_trips
    await inspector.changed(watched)
    assert inspector.database.stats().round_trips == before + 1


DAMAGE: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "payload cut": ("payload = LEFT(payload, 30)", lambda view: view.damage is not None),
    "payload empty": ("payload = ''", lambda view: view.damage is not None),
    "payload of a later version": ("payload = CONCAT(X'7F', payload)", lambda view: view.damage is not None),
    "another token": ("token = REPEAT(X'00', 16)", lambda view: view.damage is not None),
    "base gone": ("base_seq = 1000", lambda view: view.damage is not None),
    "its own parent": ("parent_seq = seq", lambda view: view.checkpoint.parent_id is None),
    "metadata": ("metadata = '{\"a\": '", lambda view: view.checkpoint.damage is not None),
    "metadata a list": ("metadata = '[]'", lambda view: view.checkpoint.damage is not None),
}


@pytest.mark.parametrize("name", DAMAGE)
async def test_damaged_rows_are_shown_as_damaged_and_break_no_list(
    store: CheckpointStore, inspector: Inspector, sql: RunSQL, name: str
) -> None:
    damage, is_shown = DAMAGE[name]
    for thread_id in ("a", "b", "c"):
        for number in range(3):
            await store.save(thread_id, {"messages": messages(30 + number), "n": number}, f"c{number}", {"n": number})
    sql(f"UPDATE locus_store_checkpoints SET {damage} WHERE thread_id = 'b' AND checkpoint_id = 'c2'")
    rows = {row.thread_id: row for row in (await inspector.threads("dicts")).items}
    assert rows.keys() == {"a", "b", "c"}
    assert len((await inspector.threads("dicts", metadata=("n", 2))).items) == 3
    assert rows["a"].damage is None
    assert (rows["b"].damage is not None) == name.startswith(("metadata", "another token"))
    assert [row.checkpoint_id for row in (await inspector.history("dicts", "b")).items] == ["c2", "c1", "c0"]
    view = await inspector.state("dicts", "b")
    assert view is not None
    assert is_shown(view)
    whole = await inspector.state("dicts", "b", "c1")
    assert whole is not None
    assert whole.state["n"] == 1
    assert len(await inspector.states("dicts", "b")) == 3
    if view.damage is not None:
        assert "row 3 of thread 'b' cannot be read back" in view.damage
        assert (view.state, list(view.messages)) == ({}, [])
        with pytest.raises(CorruptCheckpoint):
            await inspector.differences("dicts", "b", "c1", "c2")
    statistics = await inspector.statistics("dicts")
    assert (statistics.threads, statistics.checkpoints) == (3, 9)


async def test_a_thread_without_any_checkpoint_is_shown_as_damaged(
    store: CheckpointStore, inspector: Inspector, sql: RunSQL
) -> None:
    await store.save("t", {})
    sql("DELETE FROM locus_store_checkpoints")
    (row,) = (await inspector.threads("dicts")).items
    assert (row.checkpoints, row.size_bytes, row.checkpoint_id) == (0, 0, None)
    assert row.damage is not None
    assert "delete the thread" in row.damage
