"""Lost answers and concurrent writers: no write takes effect twice or in part."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from locus_mysql.errors import VersionConflict
from locus_mysql.families.memories.puts import Put

from ...proxy import WireProxy
from .conftest import Make

pytestmark = pytest.mark.kept_tables("memories")

ADA = ("users", "ada")


@pytest.fixture
async def far(make_memories: Make, proxy: WireProxy) -> Any:
    """Return a store whose server is behind the proxy, with existing tables and an open connection."""
    store = make_memories(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", dims=2)
    await store.put(ADA, "first", 0)
    return store


async def test_one_call_is_one_round_trip(far: Any, proxy: WireProxy) -> None:
    async def trips(call: Any) -> int:
        with proxy.counting() as count:
            await call
        return count.round_trips

    assert await trips(far.put(ADA, "k", {"a": "b"}, embedding=[1, 2], ttl_s=60, if_version=0)) == 1
    assert await trips(far.get(ADA, "k")) == 1
    assert await trips(far.get_item(ADA, "k", refresh=True)) == 1
    assert await trips(far.exists(ADA, "k")) == 1
    assert await trips(far.list_keys(ADA)) == 1
    assert await trips(far.list_namespaces()) == 1
    assert await trips(far.search(ADA, filter={"a": "b"})) == 1
    assert await trips(far.search(ADA, query="b")) == 1
    assert await trips(far.search_many([ADA, ("x",)], query="b")) == 1
    assert await trips(far.search(ADA, embedding=[1, 1])) == 2
    assert await trips(far.search_many([ADA, ("x",)], embedding=[1, 1])) == 2
    await far.search(ADA, embedding=[1, 1], exact=True)
    assert await trips(far.search(ADA, embedding=[1, 1])) == 1
    assert await trips(far.count()) == 1
    assert await trips(far.delete(ADA, "k")) == 1
    assert await trips(far.put_batch([Put(ADA, str(n), n, embedding=[n, 1]) for n in range(1_000)])) == 1
    assert await trips(far.get_batch([(ADA, str(n)) for n in range(1_000)])) == 1
    assert await trips(far.delete_batch([(ADA, str(n)) for n in range(500)])) == 1
    assert await trips(far.clear_namespace(ADA)) == 1


async def test_a_conflict_is_reported_even_after_a_lost_connection(far: Any, proxy: WireProxy) -> None:
    await far.put(ADA, "k", 1)
    proxy.drop_before()
    with pytest.raises(VersionConflict):
        await far.put(ADA, "k", 2, if_version=7)
    assert await far.get(ADA, "k") == 1


async def test_writers_of_the_same_items_do_not_wait_for_each_other_for_ever(make_memories: Make) -> None:
    stores = [make_memories(dims=2) for _ in range(4)]

    async def write(store: Any, number: int) -> None:
        for turn in range(5):
            spaces = [("n", str((number + turn + n) % 5)) for n in range(5)]
            await store.put_batch([Put(space, "k", [number, turn], embedding=[number + 1, turn]) for space in spaces])
            await store.delete(spaces[0], "k")

    await asyncio.gather(*(write(store, number) for number, store in enumerate(stores)))
    for n in range(5):
        item = await stores[0].get_item(("n", str(n)), "k")
        embeddings = await stores[0].get_embeddings(("n", str(n)), "k")
        assert embeddings == ([[item.value[0] + 1, item.value[1]]] if item else [])
