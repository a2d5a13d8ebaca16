"""Broken connections and late packets: a write of graphs is carried out exactly once."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from locus_mysql.engine.operation import Batch, Operation, Undone

from ...conftest import ONE_OF_EACH, AnyStore, MakeConfig
from ...proxy import WireProxy
from .conftest import OpenSaver
from .turns import ids, put_turns, put_turns_after, state_of

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("graphs")]

one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


async def carry_out(saver: AnyStore, batch: Batch) -> Any:
    """Return the results of a batch, or None if it was rolled back."""

    def carried_out() -> Operation[Any]:
        try:
            return (yield batch)
        except Undone:
            return None

    running = saver.store._run(carried_out())
    return await running if inspect.isawaitable(running) else running


@one_of_each
@pytest.mark.parametrize("fault", ["drop_before", "drop_after_send"])
@pytest.mark.parametrize("pipeline", [True, False])
async def test_a_put_whose_connection_breaks_is_carried_out_exactly_once(
    open_saver: OpenSaver, through_proxy: MakeConfig, proxy: WireProxy, side: str, fault: str, pipeline: bool
) -> None:
    saver = open_saver(side, config=through_proxy(pipeline=pipeline))
    await put_turns(saver, 9)
    with proxy.counting() as undisturbed:
        await put_turns_after(saver, 9, 10)
    last = 10
    for packet in range(1, undisturbed.commands + 1):
        getattr(proxy, fault)(packet)
        await put_turns_after(saver, last, last + 1)
        last += 1
        assert await ids(saver, thread_id="thread") == [f"c{turn}" for turn in range(last, 0, -1)], packet
        assert (await saver.get(thread_id="thread"))["checkpoint"] == state_of(last)


@one_of_each
@pytest.mark.parametrize("fault", ["drop_before", "drop_after_send"])
@pytest.mark.parametrize("pipeline", [True, False])
async def test_a_removal_or_copy_whose_connection_breaks_is_carried_out_once(
    open_saver: OpenSaver, through_proxy: MakeConfig, proxy: WireProxy, side: str, fault: str, pipeline: bool
) -> None:
    saver = open_saver(side, config=through_proxy(pipeline=pipeline))
    await put_turns(saver, 4)
    with proxy.counting() as undisturbed:
        assert await saver.copy_thread("thread", "undisturbed")
    for packet in range(1, undisturbed.commands + 1):
        getattr(proxy, fault)(packet)
        assert await saver.copy_thread("thread", "copy"), packet
        getattr(proxy, fault)(1 if pipeline else packet)
        assert await saver.prune(thread_id="copy", keep=2) == 2, packet
        getattr(proxy, fault)(1 if pipeline else packet)
        assert await saver.delete_checkpoint(thread_id="copy", checkpoint_id="c3"), packet
        assert await ids(saver, thread_id="copy") == ["c4"], packet
        getattr(proxy, fault)(1)
        assert await saver.delete_thread("copy"), packet
        assert not await saver.delete_thread("copy"), packet
    assert await ids(saver, thread_id="thread") == ["c4", "c3", "c2", "c1"]


REMOVALS = {
    "delete_thread": {"thread_id": "thread"},
    "delete_checkpoint": {"thread_id": "thread", "checkpoint_id": "c2"},
    "prune": {"thread_id": "thread", "keep": 1},
    "vacuum": {"older_than_days": 0},
}


@one_of_each
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("method", REMOVALS)
async def test_a_put_that_is_repeated_or_comes_late_brings_back_nothing_that_was_removed(
    open_saver: OpenSaver, side: str, method: str, known: bool
) -> None:
    slow, quick = open_saver(side), open_saver(side)
    await put_turns(slow if known else quick, 1)
    putting = slow.store._operations.put(
        thread_id="thread", checkpoint_id="c2", checkpoint_data=state_of(2), parent_checkpoint_id="c1"
    )
    batch = next(putting)
    if not known:  # the checkpoint's base is read first
        batch = putting.send(await carry_out(slow, batch))
    assert not (await carry_out(slow, Batch.of(batch.outcome_query)))[0].rows
    await carry_out(slow, Batch(batch.statements))
    if method == "prune":
        await quick.put(thread_id="thread", checkpoint_id="c3", checkpoint_data=state_of(3))
    await getattr(quick, method)(**REMOVALS[method])
    before = await ids(quick, thread_id="thread")
    assert "c2" not in before
    assert (await carry_out(slow, Batch.of(batch.outcome_query)))[0].rows, (
        "a repeat would not know that it was carried out"
    )
    late = await carry_out(slow, Batch(batch.statements))
    assert late is None or [result.affected for result in late] == [0]
    assert await ids(quick, thread_id="thread") == before
