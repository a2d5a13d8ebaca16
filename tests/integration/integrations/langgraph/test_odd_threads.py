"""Unusual metadata, threads and filters: where they are accepted, other checkpoints can still be listed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from locus_mysql.errors import CorruptCheckpoint, InvalidInput
from locus_mysql.families.graphs.store import SyncMySQLCheckpointSaver
from locus_mysql.inspection import Inspector

from ...conftest import EACH_WAY, ONE_OF_EACH, MakeConfig
from .conftest import OpenSaver
from .test_contract import checkpoint, listed

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("graphs")]

RunSQL = Callable[..., tuple[Any, ...]]

each_way = pytest.mark.parametrize("side", EACH_WAY)
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


def config_of(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


@one_of_each
@pytest.mark.parametrize("levels", [300, 3_000])
async def test_metadata_nested_beyond_any_serialiser_is_refused(open_saver: OpenSaver, side: str, levels: int) -> None:
    saver = open_saver(side)
    with pytest.raises(InvalidInput, match="nested too deeply"):
        await saver.aput(config_of("deep"), checkpoint({}), {"odd": nested(levels)}, {})
    assert await saver.aget_tuple(config_of("deep")) is None


@one_of_each
@pytest.mark.parametrize("value", [nested(101), 2**1024, float("nan"), "\ud800", object(), nested(3_000)])
async def test_a_filter_that_fits_nothing_searchable_is_refused(open_saver: OpenSaver, side: str, value: Any) -> None:
    saver = open_saver(side)
    await saver.aput(config_of("t"), checkpoint({}), {"step": 1}, {})
    with pytest.raises(InvalidInput, match="filter on metadata"):
        await listed(saver, None, filter={"odd": value})


@one_of_each
async def test_whole_numbers_beyond_64_bits_are_distinguished(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    for number in (2**64, 2**64 + 1, 2**200, 2**200 + 1):
        await saver.aput(config_of(str(number)), checkpoint({}), {"n": number}, {})
    for number in (2**64, 2**64 + 1, 2**200, 2**200 + 1):
        found = await listed(saver, None, filter={"n": number})
        assert [one.metadata["n"] for one in found] == [number]


@one_of_each
@pytest.mark.parametrize("odd", ['{"n": ', "[" * 150 + "]" * 150, '{"n": 1e999}', "null", "[]", '"text"', ""])
async def test_metadata_damaged_by_hand_breaks_no_filtered_list(
    open_saver: OpenSaver, make_config: MakeConfig, run_sql: RunSQL, database: str, side: str, odd: str
) -> None:
    saver = open_saver(side)
    for number in range(3):
        for step in range(3):
            await saver.aput(config_of(f"t{number}"), checkpoint({}), {"step": step}, {})
    run_sql(
        f"UPDATE {database}.locus_graph_checkpoints SET metadata = %s WHERE thread_id = 't1' ORDER BY seq LIMIT 1", odd
    )
    found: list[str] = []
    if odd in ("null", "[]", '"text"'):  # the server's filter skips these rows
        await list_into(found, open_saver(side), filter={"step": 1})
        assert found == ["t2", "t1", "t0"]
    else:
        with pytest.raises(CorruptCheckpoint, match="'t1'"):
            await list_into(found, open_saver(side), filter={"step": 1})
        assert found == ["t2", "t0"]
    async with Inspector(make_config()) as inspector:
        tagged = await inspector.by_metadata("step", 1, family="graphs")
        assert sorted(one.thread_id for one in tagged) == ["t0", "t1", "t2"]


async def list_into(seen: list[str], saver: Any, **options: Any) -> None:
    """Append the threads of a listing to ``seen``; the listing may fail."""
    async for found in saver.alist(None, **options):
        seen.append(found.config["configurable"]["thread_id"])


class OtherSerialiser(JsonPlusSerializer):
    """The serialiser of another saver."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        return f"{kind}+other", data


@each_way
async def test_threads_of_another_serialiser_are_named_behind_all_others(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    for thread_id, one in (("a", saver), ("b", open_saver(side, serde=OtherSerialiser())), ("c", saver)):
        await one.aput(config_of(thread_id), checkpoint({"x": {1, 2}}), {"step": 1}, {"x": 1})
    seen: list[str] = []
    with pytest.raises(CorruptCheckpoint, match="of thread 'b' cannot be read with this saver's serialiser"):
        await list_into(seen, saver)
    assert seen == ["c", "a"]
    assert len(await listed(saver, None, limit=2)) == 2
    with pytest.raises(CorruptCheckpoint, match=r"thread 'b'.*Use the serde with which it was written"):
        await saver.aget_tuple(config_of("b"))
    with pytest.raises(CorruptCheckpoint, match="thread 'b'"):
        await listed(saver, config_of("b"))


@one_of_each
async def test_damaged_and_foreign_checkpoints_are_reported_after_all_others(
    open_saver: OpenSaver, make_config: MakeConfig, run_sql: RunSQL, database: str, side: str
) -> None:
    saver = open_saver(side)
    for thread_id in ("a", "b", "c", "d"):
        await saver.aput(config_of(thread_id), checkpoint({"x": "y" * 5_000}), {"step": 1}, {"x": 1})
    with SyncMySQLCheckpointSaver(make_config(driver="pymysql")) as other:
        other.put(thread_id="e", checkpoint_id="1", checkpoint_data={"a": 1}, metadata={"step": 1, "odd": nested(150)})
        assert other.get(thread_id="e")["metadata"] == {"step": 1, "odd": nested(150)}  # type: ignore[index]
        other.put(thread_id="e", checkpoint_id="1", checkpoint_data={"a": 1}, metadata={"step": 1, "odd": nested(150)})
    run_sql(f"UPDATE {database}.locus_graph_checkpoints SET payload = 'x' WHERE thread_id = 'b'")
    for options in ({}, {"filter": {"step": 1}}):
        seen: list[str] = []
        with pytest.raises(CorruptCheckpoint, match="2 threads cannot be read; all others were listed"):
            await list_into(seen, open_saver(side), **options)
        assert seen == ["d", "c", "a"]
