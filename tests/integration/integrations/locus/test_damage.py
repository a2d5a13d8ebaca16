"""The checkpointer with unusual or damaged data: NaN, states stored twice, unreadable rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from locus.core.messages import Message, ToolCall
from locus.core.state import AgentState, ToolExecution
from locus.memory.retention import MESSAGE_TIME_KEY

from locus_mysql import CheckpointStore, MySQLCheckpointer, SyncMySQLCheckpointer
from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.checkpoints.coding.codec import encode, hash_logs
from locus_mysql.families.checkpoints.coding.delta import encode_delta, seal_payload
from locus_mysql.runtime.sealing import Sealing

from ...conftest import MakeConfig, Opening

pytestmark = pytest.mark.kept_tables("agents")

MONTH = timedelta(days=30)


@pytest.fixture
def make(opening: Opening, side: str) -> Callable[..., Any]:
    """Return ``make(**options)``: a checkpointer of either side, like that of another process; methods are awaited."""
    return partial(opening, side, (MySQLCheckpointer, SyncMySQLCheckpointer))


@pytest.fixture
def sql(run_sql: Callable[..., Any], database: str) -> Callable[..., Any]:
    """Run a statement in which ``{rows}`` stands for the table of checkpoints."""
    return lambda text, *params: run_sql(text.replace("{rows}", f"{database}.locus_checkpoints"), *params)


def old(content: str) -> Message:
    saved = datetime.now(UTC) - timedelta(days=31)
    return Message(role="user", content=content, metadata={MESSAGE_TIME_KEY: saved.isoformat()})


def comparable(value: Any) -> Any:
    """Return a value that compares equal exactly if the contents are equal, including NaN."""
    if isinstance(value, dict):
        return {name: comparable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    return repr(value) if isinstance(value, float) else value


async def test_nan_and_infinities_come_back(make: Callable[..., Any]) -> None:
    odd = {"nan": float("nan"), "more": [float("inf"), {"less": float("-inf")}, 1.5]}
    call = ToolCall(id="c", name="measure", arguments=odd)
    state = AgentState(
        messages=(
            Message.user("measure"),
            Message.assistant(None, tool_calls=[call]),
            Message(role="tool", content="NaN", tool_call_id="c", metadata=odd),
        ),
        tool_executions=(ToolExecution(tool_name="measure", tool_call_id="c", arguments=odd, result="NaN"),),
        metadata=odd,
        provider_state=odd,
        confidence_history=(float("nan"),),
    )
    checkpointer = make()
    for turn in range(3):
        await checkpointer.save(state, "t", str(turn))
        for reader in (checkpointer, make()):
            assert comparable((await reader.load("t")).model_dump()) == comparable(state.model_dump())
        state = state.with_message(Message(role="user", content="again " * 300, metadata=odd))


@pytest.mark.parametrize(
    "damage",
    [
        "payload = CONCAT(payload, 'x')",
        "base_seq = IF(seq = 2, 3, base_seq)",
        "base_seq = seq % 3 + 1",
        "base_seq = IF(seq = 2, 99, base_seq)",
        "payload = ''",
    ],
)
async def test_purging_skips_a_damaged_thread_and_reports_it(
    make: Callable[..., Any], sql: Callable[..., Any], damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    checkpointer = make(stamp_messages=True)
    for thread_id in ("a", "b", "c"):
        state = AgentState(messages=(old("sesame " + "x" * 3_000),))
        for turn in range(3):
            state = state.with_message(Message.user(f"turn {turn} " + "x" * 500))
            await checkpointer.save(state, thread_id)
    sql(f"UPDATE {{rows}} SET {damage} WHERE thread_id = 'b'")
    before = sql("SELECT * FROM {rows} WHERE thread_id = 'b' ORDER BY seq")
    caplog.set_level(logging.DEBUG, "locus_mysql.damage")

    assert await make().purge_messages(MONTH) == 6
    assert "of thread 'b'" in caplog.text
    assert "sesame" not in caplog.text
    with pytest.raises(CorruptCheckpoint, match="of thread 'b'"):
        await make().purge_messages(MONTH, thread_id="b")
    assert sql("SELECT * FROM {rows} WHERE thread_id = 'b' ORDER BY seq") == before
    assert [len((await make().load(thread_id)).messages) for thread_id in ("a", "c")] == [3, 3]


@pytest.mark.parametrize("circle", ["parent_seq = seq % 4 + 1", "parent_seq = seq", "parent_seq = IF(seq = 1, 4, seq)"])
async def test_purging_ends_where_rows_follow_each_other_in_a_circle(
    make: Callable[..., Any], sql: Callable[..., Any], circle: str
) -> None:
    checkpointer = make(stamp_messages=True)
    state = AgentState(messages=(old("x" * 3_000),))
    for turn in range(4):
        state = state.with_message(Message.user(f"turn {turn} " + "x" * 500))
        await checkpointer.save(state, "t", str(turn))
    await checkpointer.delete("t", "0")
    await checkpointer.delete("t", "1")
    sql(f"UPDATE {{rows}} SET {circle}")
    assert await make().purge_messages(MONTH) == 2
    reader = make()
    assert [len((await reader.load("t", name)).messages) for name in "23"] == [3, 4]
    assert [entry["checkpoint_id"] for entry in await reader.history("t")] == ["3", "2"]


async def test_loading_a_value_that_is_not_an_agent_state_raises_an_error_that_names_the_thread(
    make: Callable[..., Any], sql: Callable[..., Any], make_config: MakeConfig
) -> None:
    await make().save(AgentState(), "t")
    ((token,),) = sql("SELECT token FROM {rows}")
    encoded = encode({"messages": ["sesame"]})
    sealing = Sealing(None, "agents").of("default", "t")
    payload = seal_payload(sealing, encode_delta(encoded, hash_logs(encoded, {}), ()), token)
    sql("UPDATE {rows} SET payload = %s", payload)
    with pytest.raises(CorruptCheckpoint, match="thread 't' is not the state of an agent") as caught:
        await make().load("t")
    async with CheckpointStore(make_config()) as store:
        await store.save("t", {"messages": ["sesame"]})
    with pytest.raises(CorruptCheckpoint, match="row 1 of thread 't' cannot be read back"):
        await make(table_prefix="locus_store_", ddl_mode="off").load("t")
    assert "sesame" not in str(caught.value)
