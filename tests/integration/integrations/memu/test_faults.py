"""Lost answers: no write takes effect twice, and no completed write is reported as failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ...proxy import WireProxy
from .conftest import ADA, AnyMemu, Make


@pytest.fixture
async def far(make_memu: Make, proxy: WireProxy) -> AsyncIterator[AnyMemu]:
    """Yield a database behind the proxy, with existing tables and an open connection."""
    memu: AnyMemu = make_memu(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
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
