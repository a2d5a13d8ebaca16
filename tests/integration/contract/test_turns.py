"""Turns on owners: one writer at a time, whose writes are refused from the moment at which another one may write.

Each test runs with every family that has turns, and with every framework's class.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.errors import ThreadBusy, TurnLost

from ...either_side import AnyStore
from ..conftest import EACH_WAY, ONE_OF_EACH, MakeConfig
from ..engines import ENGINE
from ..families.checkpoints.turns import Held, another_process, receive
from ..interleavings.conftest import stage  # noqa: F401 - a fixture
from ..interleavings.stage import Stage
from ..test_concurrent_writers import DEADLINE_S
from .conftest import Open
from .guests import GUESTS, Guest
from .samples import SAMPLES, Sample
from .test_writes import killed_late, packets

Owner: TypeAlias = Sample | Guest


def with_turns(sides: Sequence[str]) -> Iterator[tuple[Owner, str]]:
    """Yield each sample and guest that has turns, with each of its sides."""
    for sample in (*(one for one in SAMPLES.values() if one.has_turns), *GUESTS):
        if ENGINE == "mysql" or sample.family in OCEANBASE.families:
            yield from ((sample, side) for side in sides if not isinstance(sample, Guest) or sample.has(side))


def each_with_turns(name: str = "side") -> pytest.MarkDecorator:
    """Parametrise a test with ``sample`` and a side, or a fixture that takes one."""
    params = [pytest.param(sample, side, id=f"{sample!r}-{side}") for sample, side in with_turns(ONE_OF_EACH)]
    return pytest.mark.parametrize(("sample", name), params, indirect=[] if name == "side" else [name])


def held(sample: Owner, store: AnyStore, name: str = "t", **options: Any) -> Held:
    """Return a turn of a family's store, to be awaited."""
    return Held(sample.turn(store, name, **options))


@pytest.fixture
def end_leases(sample: Owner, make_config: MakeConfig, run_sql: Callable[..., Any]) -> Callable[[], None]:
    """Return ``end_leases()``, after which the time of all leases is over."""
    config = make_config()
    tables = sample.tables(config)
    assert tables is not None
    ledger = f"`{config.database}`.`{tables.names['ledger']}`"

    def end() -> None:
        run_sql(f"UPDATE {ledger} SET recorded_at = UTC_TIMESTAMP(6) WHERE recorded_at > UTC_TIMESTAMP(6)")

    return end


@pytest.mark.parametrize("how", ["expired", "taken over", "deleted"])
@each_with_turns()
async def test_a_superseded_writer_is_refused_and_replaced(
    sample: Owner, open_sample: Open, end_leases: Callable[[], None], side: str, how: str
) -> None:
    one, other = open_sample(side=side), open_sample(side=side)
    await sample.write(one, "t", 0)
    async with held(sample, one) as turn:
        with pytest.raises(ThreadBusy):
            async with held(sample, other, wait_s=0):
                raise AssertionError
        async with held(sample, other, "u", wait_s=0):
            await sample.write(other, "u", 0)
        await sample.write(one, "t", 1)
        if how == "expired":
            end_leases()
        elif how == "deleted":
            await sample.delete(other, "t")
        async with held(sample, other, wait_s=0, take_over=how == "taken over"):
            left = [] if how == "deleted" else [0, 1]
            for _ in range(2):
                with pytest.raises(TurnLost):
                    await sample.write(one, "t", 2)
            assert turn.lost
            if left:
                with pytest.raises(TurnLost):
                    await sample.delete(one, "t")
            await sample.write(one, "u", 1)
            assert await sample.steps(other, "t") == left
            await sample.write(other, "t", len(left))
            await sample.delete(other, "t")
            await sample.write(other, "t", 0)
    await sample.write(one, "t", 1)
    assert await sample.steps(other, "t") == [0, 1]


@each_with_turns()
async def test_of_two_writers_at_once_each_builds_on_the_other(sample: Owner, open_sample: Open, side: str) -> None:
    async def take_turns(store: AnyStore) -> None:
        for _ in range(4):
            async with held(sample, store, wait_s=DEADLINE_S):
                await sample.write(store, "t", len(await sample.steps(store, "t")))

    stores = [open_sample(side=side) for _ in range(2)]
    if side.endswith("-sync"):
        await asyncio.gather(*(asyncio.to_thread(asyncio.run, take_turns(store)) for store in stores))
    else:
        await asyncio.gather(*map(take_turns, stores))
    assert await sample.steps(stores[0], "t") == [*range(8)]


@pytest.mark.slow
@pytest.mark.usefixtures("no_housekeeping")
@each_with_turns("stage")
async def test_a_late_packet_of_a_killed_holder_changes_nothing_once_it_is_replaced(
    sample: Owner,
    open_sample: Open,
    make_config: MakeConfig,
    stage: Stage,  # noqa: F811 - the fixture
    end_leases: Callable[[], None],
) -> None:
    near = open_sample(side=stage.side)
    await sample.write(near, "first", 0)
    far = sample.open(make_config(ssl_mode="DISABLED", ddl_mode="off", compression="none"), stage.side)

    async def prepare(name: str, steps: int) -> None:
        for step in range(steps):
            await sample.write(near, name, step)

    async def write_in_turn(store: AnyStore, name: str, step: int) -> None:
        async with held(sample, store, name, lease_s=3_600):
            await sample.write(store, name, step)

    async for name, arrive in packets(stage, killed_late, prepare, 1, write_in_turn, far, 1):
        end_leases()
        async with held(sample, near, name, wait_s=0):
            found = await sample.steps(near, name)
            assert arrive is not None
            arrive()
            assert await sample.steps(near, name) == found
            await sample.write(near, name, len(found))
        assert await sample.steps(near, name) == [*range(len(found) + 1)]
    stage.perform(far.close).finish()


async def hold_all(line: Connection, config: MySQLConfig, side: str) -> None:
    """Take a turn on an owner of everything that has turns, write in it, and wait to be killed."""
    async with AsyncExitStack() as stack:
        for sample, _ in with_turns([side]):
            store = sample.open(config, side)
            await stack.enter_async_context(held(sample, store, repr(sample), lease_s=2.0))
            await sample.write(store, repr(sample), 0)
        line.send("has them")
        await asyncio.Event().wait()


def hold_all_in_a_process(line: Connection, config: MySQLConfig, side: str) -> None:
    asyncio.run(hold_all(line, config, side))


@pytest.mark.slow
@pytest.mark.parametrize("side", EACH_WAY)
async def test_a_killed_holder_blocks_others_no_longer_than_its_lease(make_config: MakeConfig, side: str) -> None:
    config = make_config(driver=side.rpartition("-")[0])
    async with AsyncExitStack() as stack:
        owners = [(sample, sample.open(config, side)) for sample, _ in with_turns([side])]
        for _, store in owners:
            stack.push_async_callback(store.close)
        with another_process(hold_all_in_a_process, config, side) as (process, line):
            assert receive(line) == "has them"
            for sample, store in owners:
                with pytest.raises(ThreadBusy):
                    async with held(sample, store, repr(sample), wait_s=0):
                        raise AssertionError(sample)
            os.kill(process.pid, signal.SIGKILL)
            for sample, store in owners:
                async with held(sample, store, repr(sample), wait_s=DEADLINE_S):
                    await sample.write(store, repr(sample), 1)
                assert await sample.steps(store, repr(sample)) == [0, 1], sample
