"""A server loses its newest commits and reuses their numbers: checkpoints acknowledged afterwards load exactly."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ....thoroughness import FULL
from ...conftest import ONE_OF_EACH, AnyStore
from ...lost_tail import Moment, Tables
from .conftest import OpenSaver

pytestmark = pytest.mark.slow

RunSQL = Callable[..., tuple[Any, ...]]
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)

#: Length of every message. With equal lengths, a part with a reused number fits in the place of the lost one.
MESSAGE_CHARACTERS = 400


def message(name: str) -> str:
    return name.ljust(8, ".") * (MESSAGE_CHARACTERS // 8)


async def put(saver: AnyStore, name: str, messages: list[str], parent: str | None) -> None:
    await saver.put(
        thread_id="t", checkpoint_id=name, checkpoint_data={"messages": messages}, parent_checkpoint_id=parent
    )


async def loaded(saver: AnyStore, name: str | None = None) -> list[str] | None:
    found = await saver.get(thread_id="t", checkpoint_id=name)
    return None if found is None else [text[:8].rstrip(".") for text in found["checkpoint"]["messages"]]


@one_of_each
@pytest.mark.parametrize("seed", range(6 if FULL else 2))
async def test_after_lost_commits_every_remaining_checkpoint_loads_exactly(
    open_saver: OpenSaver, run_sql: RunSQL, database: str, side: str, seed: int
) -> None:
    chosen = random.Random(seed)
    savers = [open_saver(side), open_saver(side, cache_bytes=0), open_saver(side)]
    tables = Tables(run_sql, database)
    states: dict[str, list[str]] = {}
    moments: list[tuple[Moment, dict[str, list[str]]]] = []
    await put(savers[0], "c0", [message("c0")], None)
    states["c0"] = ["c0"]
    ever = dict(states)
    for step in range(1, 70):
        saver = chosen.choice(savers)
        match chosen.choices(["put", "load", "list", "note", "lose"], [8, 3, 2, 2, 1])[0]:
            case "put":
                parent = chosen.choice(list(ever)[-4:])  # possibly a checkpoint that was lost
                name = f"c{step}"
                ever[name] = states[name] = [*ever[parent], name]
                await put(saver, name, [message(one) for one in states[name]], parent)
            case "load":
                name = chosen.choice([None, *list(states)[-5:]])
                assert await loaded(saver, name) == states[name or list(states)[-1]]
            case "list":
                found = await saver.list_checkpoints(thread_id="t", limit=4)
                names = [one["checkpoint_id"] for one in found]
                assert names == list(states)[::-1][:4]
                for one in found:
                    assert one["checkpoint"]["messages"] == [message(name) for name in states[one["checkpoint_id"]]]
            case "note":
                moments.append((tables.note(), dict(states)))
            case "lose" if moments:
                moment, states = moments[-1][0], dict(moments[-1][1])
                tables.put_back(moment)
    for reader in (*savers, open_saver(side)):
        for name, lineage in states.items():
            assert await loaded(reader, name) == lineage
