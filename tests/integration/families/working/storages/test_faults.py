"""Lost answers and lost packets: no write takes effect twice, and none is lost."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.engine import retry
from locus_mysql.working import SyncWorkingMemory

from ....proxy import WireProxy
from ..conftest import AnyMemory, Open

pytestmark = pytest.mark.kept_tables("working")


async def test_a_write_whose_answer_is_lost_is_carried_out_once(far: AnyMemory, proxy: WireProxy) -> None:
    await far.set("n", 1)

    async def losing(call: Any) -> Any:
        proxy.drop_after_send()
        return await call

    assert await losing(far.increment("n")) == 2
    assert await far.get("n") == 2
    assert await losing(far.compare_and_set("n", 2, 3)) is True
    assert await losing(far.compare_and_set("n", 2, 4)) is False
    await losing(far.append_scratchpad("one"))
    assert await far.get_scratchpad() == ["one"]
    assert await losing(far.delete("n")) is True
    assert await losing(far.clear_scratchpad()) == 1
    checkpoint_id = await losing(far.create_checkpoint())
    assert [info.checkpoint_id for info in await far.list_checkpoints()] == [checkpoint_id]
    await far.set("n", 5)
    undo = await losing(far.restore_checkpoint(checkpoint_id))
    assert await far.get_all() == {}
    await losing(far.restore_checkpoint(undo))
    assert await far.get_all() == {"n": 5}
    assert await losing(far.delete_checkpoint(undo)) is True
    assert await losing(far.clear()) == 1
    assert await losing(far.end()) is True
    assert await far.end() is False


async def test_a_write_that_never_arrived_is_done(far: AnyMemory, proxy: WireProxy) -> None:
    await far.set("n", 1)
    proxy.drop_before()
    assert await far.increment("n") == 2
    proxy.drop_before()
    await far.append_scratchpad("one")
    assert (await far.get("n"), await far.get_scratchpad()) == (2, ["one"])


async def test_a_repeat_does_not_overwrite_what_was_written_since(
    far: AnyMemory, proxy: WireProxy, open_memory: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    await far.set("key", "first")
    near = open_memory("far")
    wrote: list[int] = []
    original = retry.Retry.wait_after

    def wait_after(self: Any, error: Any) -> float:
        if not wrote:
            wrote.append(1)
            config = near.store.storage.config.model_copy(update={"driver": "pymysql"})
            with SyncWorkingMemory("far", config) as other:
                other.set("key", "later")
        return original(self, error)

    monkeypatch.setattr(retry.Retry, "wait_after", wait_after)
    proxy.drop_after_send()
    await far.set("key", "earlier")
    assert wrote
    assert await near.get("key") == "later"
