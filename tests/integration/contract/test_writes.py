"""Each packet of a write is lost, late, repeated or the last one of a killed process: the write is done once or not."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from ...either_side import AnyStore
from ..conftest import MakeConfig
from ..interleavings.conftest import stage  # noqa: F401 - a fixture
from ..interleavings.stage import Call, Stage
from .conftest import Open
from .samples import Sample, every_family

pytestmark = pytest.mark.slow

#: What happens to a packet. Returns what delivers it later.
Fate = Callable[[Call], Callable[[], None] | None]


def lost(call: Call) -> None:
    call.lose_request()


def answer_lost(call: Call) -> None:
    call.lose_answer()


def late(call: Call) -> Callable[[], None]:
    return call.delay_request()


def killed_before(call: Call) -> None:
    call.kill()


def killed_after(call: Call) -> None:
    call.carry_out().kill()


KILLS: tuple[Fate, ...] = (killed_before, killed_after)
FATES: tuple[Fate, ...] = (lost, answer_lost, late, *KILLS)


@every_family(kept=False)
async def test_a_write_is_carried_out_once_whatever_becomes_of_a_packet(
    sample: Sample,
    open_sample: Open,
    make_config: MakeConfig,
    stage: Stage,  # noqa: F811 - the fixture
) -> None:
    near = open_sample()
    await sample.write(near, "first", 0)
    config = make_config(ssl_mode="DISABLED", ddl_mode="off", compression="none")
    whole = sample.open(config, stage.side)
    # One packet for each statement, so that there is a middle of a write.
    split = sample.open(config.model_copy(update={"pipeline": False}), stage.side)

    async def prepare(name: str, steps: int) -> None:
        for step in range(steps):
            await sample.write(near, name, step)

    for fate, begins in itertools.product(FATES, (0, 2)):
        before, outcomes = [*range(begins)], []
        async for name, arrive in packets(
            stage, fate, prepare, begins, sample.write, whole if fate is late else split, begins
        ):
            found = await sample.steps(near, name)
            outcomes.append(found == [*before, begins])
            assert outcomes[-1] or (found == before and fate in KILLS)
            await sample.write(near, name, len(found))
            if arrive is not None:
                arrive()
            assert await sample.steps(near, name) == [*range(len(found) + 1)]
        assert any(outcomes) == (fate is not killed_before)
    for fate in FATES:
        async for name, arrive in packets(stage, fate, prepare, 2, sample.delete, whole if fate is late else split):
            found = await sample.steps(near, name)
            assert found == [] or (found == [0, 1] and fate in KILLS)
            if arrive is not None:
                await sample.write(near, name, 0)
                arrive()
                assert await sample.steps(near, name) == [0]
    for far in (whole, split):
        stage.perform(far.close).finish()


async def packets(
    stage: Stage,  # noqa: F811 - the fixture
    fate: Fate,
    prepare: Callable[[str, int], Awaitable[None]],
    steps: int,
    function: Callable[..., Any],
    store: AnyStore,
    *args: object,
) -> AsyncIterator[tuple[str, Callable[[], None] | None]]:
    """Begin a call again and again, and let a fate meet its first packet, its second, and so on to its last.

    Yields:
        The name that the ended call wrote to, and what delivers the packet that is late.
    """
    for number in range(60):
        name = f"{fate.__name__} {function.__name__} {steps} {number}"
        await prepare(name, steps)
        call = stage.perform(function, store, name, *args)
        for _ in range(number):
            if not call.done:
                call.step()
        if call.done:
            call.finish()
            assert number, "the call sent nothing"
            return
        arrive = fate(call)
        if fate not in KILLS:
            call.finish()
        yield name, arrive
    raise AssertionError("The call never ended.")
