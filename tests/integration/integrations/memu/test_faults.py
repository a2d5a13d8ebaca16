"""Lost answers: no write takes effect twice, and no completed write is reported as failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from locus_mysql.engine import retry
from locus_mysql.errors import NotFound
from locus_mysql.integrations.memu import AsyncMemuDatabase, MemuDatabase

from ...conftest import MakeConfig
from ...proxy import WireProxy
from .conftest import ADA, AnyMemu, Make, UserModel


@pytest.fixture
async def far(make_config: MakeConfig, proxy: WireProxy, side: tuple[str, bool]) -> AsyncIterator[AnyMemu]:
    """Yield a database behind the proxy, with existing tables and an open connection."""
    config = make_config(driver=side[0], host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    memu = AnyMemu((AsyncMemuDatabase if side[1] else MemuDatabase)(config, user_model=UserModel))
    await memu.load_existing()
    await memu.items.copy()
    yield memu
    await memu.close()


async def test_one_call_is_one_round_trip(far: AnyMemu, proxy: WireProxy) -> None:
    async def trips(call: Any) -> tuple[int, Any]:
        with proxy.counting() as count:
            outcome = await call
        return count.round_trips, outcome

    one, item = await trips(far.remember("a", ADA, reinforce=True))
    assert one == 1
    one, category = await trips(far.categorize("N", ADA))
    assert one == 1
    for call in (
        far.remember("a", ADA, reinforce=True),
        far.remember("b", ADA),
        far.resource("u", ADA),
        far.memory_item_repo.update_item(item_id=item.id, extra={"a": 1}),
        far.memory_category_repo.update_category(category_id=category.id, summary="s"),
        far.link(item, category, ADA),
        far.memory_item_repo.list_items(ADA),
        far.memory_item_repo.vector_search_items([1.0, 0.0], 5, ADA),
        far.memory_item_repo.vector_search_items([1.0, 0.5], 5, ADA, ranking="salience"),
        far.category_item_repo.unlink_item_category(item.id, category.id),
        far.memory_item_repo.delete_item(item.id),
    ):
        assert (await trips(call))[0] == 1
    assert (await trips(far.memory_item_repo.clear_items()))[0] == 2
    assert (await trips(far.restore(items=[item], categories=[category])))[0] == 2


async def test_a_write_whose_answer_is_lost_is_carried_out_once(far: AnyMemu, proxy: WireProxy) -> None:
    proxy.drop_after_send()
    plain = await far.remember("a", ADA)
    assert await far.items.copy() == {plain.id: plain}
    proxy.drop_after_send()
    item = await far.remember("b", ADA, reinforce=True)
    assert item.extra["reinforcement_count"] == 1
    proxy.drop_after_send()
    assert (await far.remember("b", ADA, reinforce=True)).extra["reinforcement_count"] == 2
    proxy.drop_after_send()
    category = await far.categorize("N", ADA)
    proxy.drop_after_send()
    relation = await far.link(item, category, ADA)
    assert await far.category_item_repo.list_relations() == [relation]
    proxy.drop_after_send()
    changed = await far.memory_item_repo.update_item(item_id=item.id, summary="c")
    assert changed.summary == "c"
    proxy.drop_after_send()
    assert (await far.memory_category_repo.update_category(category_id=category.id, name="M")).name == "M"
    proxy.drop_after_send()
    resource = await far.resource("u", ADA)
    assert list(await far.resource_repo.list_resources()) == [resource.id]
    proxy.drop_after_send()
    await far.category_item_repo.unlink_item_category(item.id, category.id)
    proxy.drop_after_send()
    await far.memory_item_repo.delete_item(item.id)
    assert await far.items.copy() == {plain.id: plain}


async def test_a_repeated_delete_leaves_records_restored_since_alone(
    far: AnyMemu, proxy: WireProxy, make_memu: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = make_memu()
    item = await far.remember("a", ADA)
    restored: list[str] = []
    original = retry.Retry.wait_after

    def wait_after(self: Any, error: Any) -> float:
        if not restored:
            restored.append(item.id)
            with MemuDatabase(near.wrapped.config.model_copy(update={"driver": "pymysql"}), user_model=UserModel) as db:
                assert db.memory_item_repo.get_item(item.id) is None
                db.restore(items=[item])
        return original(self, error)

    monkeypatch.setattr(retry.Retry, "wait_after", wait_after)
    proxy.drop_after_send()
    await far.memory_item_repo.delete_item(item.id)
    assert restored == [item.id]
    assert await near.memory_item_repo.get_item(item.id) == item


async def test_a_write_that_never_arrived_is_done(far: AnyMemu, proxy: WireProxy) -> None:
    proxy.drop_before()
    item = await far.remember("a", ADA, reinforce=True)
    proxy.drop_before()
    assert (await far.remember("a", ADA, reinforce=True)).extra["reinforcement_count"] == 2
    proxy.drop_before()
    assert (await far.memory_item_repo.update_item(item_id=item.id, summary="b")).summary == "b"
    proxy.drop_before()
    with pytest.raises(NotFound):
        await far.memory_item_repo.update_item(item_id="none", summary="b")


async def test_a_clear_whose_answer_was_lost_returns_the_cleared_records(far: AnyMemu, proxy: WireProxy) -> None:
    item = await far.remember("a", ADA)
    proxy.drop_after_send(2)
    assert await far.memory_item_repo.clear_items(ADA) == {item.id: item}
    assert await far.items.copy() == {}
