"""The inspector, exports and rewrites of encrypted threads."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from locus_mysql import Database
from locus_mysql.errors import InvalidInput
from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.records import EncodedCheckpoint, NewCheckpoint
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.inspection.inspector import Inspector

from ..conftest import MakeConfig, OpenStore
from .conftest import keys
from .test_thread_states import fill, state


async def test_the_inspector_shows_states_without_figures_from_their_beginnings(
    open_store: OpenStore, make_config: MakeConfig
) -> None:
    await fill(open_store(encryption=keys()))
    async with Inspector(make_config(encryption=keys())) as inspector:
        (thread,) = (await inspector.threads("dicts")).items
        assert thread.checkpoints == 8
        view = await inspector.state("dicts", "t", "5")
        assert view is not None
        assert (view.state["step"], view.damage) == (5, None)
        turns = await inspector.states("dicts", "t")
        assert [(turn.checkpoint_id, turn.iterations) for turn in turns] == [(str(n), None) for n in range(1, 9)]
        assert (await inspector.statistics("dicts")).threads == 1
        with pytest.raises(InvalidInput, match="Search by word is off"):
            await inspector.search("word3", family="dicts")


async def test_a_rewrite_encrypts_again(
    open_store: OpenStore, make_config: MakeConfig, columns_with: Callable[..., list[str]]
) -> None:
    await fill(open_store(encryption=keys("2026-10"), compression="none"))
    config = make_config(encryption=keys("2026-11"), compression="none")
    operations = StoreOperations(config)

    def change(checkpoint_id: str, text: bytes) -> NewCheckpoint:
        encoded = EncodedCheckpoint(encode({**json.loads(text), "rewritten": True}))
        return NewCheckpoint(lambda _: encoded, lambda _: ("", False), checkpoint_id)

    async with Database(config) as database:
        rewrite = operations.checkpoints.whole_threads.rewrite(config.tenant, "t", change)
        await database.asynchronous.run(rewrite, operations.schema)
    assert columns_with() == []
    only_new = open_store(encryption=keys("2026-11", "2026-11"), cache_bytes=0)
    for turn in range(1, 9):
        assert await only_new.load("t", str(turn)) == {**state(turn), "rewritten": True}
