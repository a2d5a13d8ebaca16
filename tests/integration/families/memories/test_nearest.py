"""Searches by meaning find the items that a scan of all embeddings finds, and their cache follows every write."""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable
from operator import mul
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput
from locus_mysql.families.memories import nearest
from locus_mysql.families.memories.puts import Put
from locus_mysql.families.memories.vectors import coding

from ...proxy import WireProxy
from .conftest import Make

HERE = ("docs", "here")


async def test_a_cold_search_finds_as_many_as_are_wanted(make_memories: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES", 5)
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES_PER_HIT", 1)
    writer = make_memories(dims=3)
    await writer.put_batch([Put(HERE, f"{n:02}", n, embedding=[1, n, 0]) for n in range(30)])
    for limit in (5, 6, 20, 30):
        assert len(await make_memories(dims=3).search(HERE, embedding=[1, 0, 0], limit=limit)) == limit
    await writer.put(HERE, "many", 0, embeddings=[[1, 0, n + 1] for n in range(40)])
    assert len(await make_memories(dims=3).search(HERE, embedding=[1, 0, 1], limit=2)) == 2


async def test_look_ups_of_cached_embeddings_are_counted(make_memories: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES", 5)
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES_PER_HIT", 1)
    store = make_memories(dims=3)

    def counted() -> tuple[int, int]:
        stats = store.store.database.stats()
        return stats.vector_cache_hits, stats.vector_cache_misses

    await store.put_batch([Put(HERE, str(n), n, embedding=[1, n, 0]) for n in range(9)])
    await store.put(("few",), "k", 1, embedding=[1, 0, 0])
    await store.search(("few",), embedding=[1, 0, 0], limit=2)
    assert counted() == (0, 0)
    for hits, misses in ((0, 1), (0, 2), (1, 2), (2, 2)):  # the second search loads the embeddings
        await store.search(HERE, embedding=[1, 0, 0], limit=1)
        assert counted() == (hits, misses)


async def test_repeated_searches_read_no_embeddings_but_what_changed(
    make_memories: Make, proxy: WireProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES", 5)
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES_PER_HIT", 1)
    dims = 500
    writer = make_memories(dims=dims)
    reader = make_memories(dims=dims, host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    random_ = random.Random(5)
    stored = {f"{n:02}": [random_.gauss(0, 1) for _ in range(dims)] for n in range(30)}
    await writer.put_batch([Put(HERE, key, 0, embedding=values) for key, values in stored.items()])

    async def search() -> tuple[int, int]:
        asked = [random_.gauss(0, 1) for _ in range(dims)]
        ranked = sorted(stored, key=lambda key: -sum(map(mul, asked, stored[key])) / math.hypot(*stored[key]))
        with proxy.counting() as count:
            found = await reader.search(HERE, embedding=asked, limit=3)
        assert found.exact
        assert [hit.item.key for hit in found] == ranked[:3]
        return count.round_trips, count.bytes_received // (4 * dims)

    for _ in range(3):
        await reader.search(HERE, embedding=stored["00"], limit=3)
    assert await search() == (1, 0)
    stored["07"] = [*stored["08"][:-1], 9.0]
    await writer.put(HERE, "07", 0, embedding=stored["07"])
    await writer.delete(HERE, "09")
    del stored["09"]
    assert (await search())[0] == 2
    assert await search() == (1, 0)
    stored["09"] = [1.0] * dims
    await writer.put(HERE, "09", 0, embedding=stored["09"])
    for _ in range(2):
        await search()
    assert await search() == (1, 0)


@pytest.mark.parametrize("filter", [None, {"even": True}])
async def test_a_range_that_does_not_fit_into_memory_is_searched_exactly_only_on_demand(
    make_memories: Make, filter: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES", 5)
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES_PER_HIT", 1)
    monkeypatch.setattr(nearest, "PAGE_BYTES", 4_000)
    random_ = random.Random(5)
    stored = {f"{n:02}": [random_.gauss(0, 1) for _ in range(20)] for n in range(60)}
    store = make_memories(dims=20, vector_cache_bytes=59 * 480)
    await store.put_batch(
        [Put(("docs", key[0]), key, {"even": int(key) % 2 == 0}, embedding=stored[key]) for key in stored]
    )
    for _ in range(3):
        asked = [random_.gauss(0, 1) for _ in range(20)]
        ranked = sorted(stored, key=lambda key: -sum(map(mul, asked, stored[key])) / math.hypot(*stored[key]))
        found = await store.search(("docs",), embedding=asked, limit=3, filter=filter)
        assert (len(found), found.exact) == (3, False)
        found = await store.search(("docs",), embedding=asked, limit=3, filter=filter, exact=True)
        assert found.exact
        assert [hit.item.key for hit in found] == [key for key in ranked if not filter or int(key) % 2 == 0][:3]
    assert store.store.database.stats().vector_cache_hits == 0


async def test_a_search_is_not_called_exact_because_somebody_deleted_embeddings(
    make_memories: Make, sql: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES", 5)
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES_PER_HIT", 1)
    store = make_memories(dims=3)
    await store.put_batch([Put(HERE, str(n), n, embedding=[1, n, 0]) for n in range(9)])
    sql("DELETE FROM locus_memory_vectors WHERE item_key = '0'")
    found = await store.search(HERE, embedding=[1, 0, 0], limit=1)
    assert not found.exact
    assert len(found) == 1


@pytest.mark.parametrize("exact", [False, True])
async def test_an_embedding_whose_first_bytes_look_encrypted_is_found(make_memories: Make, exact: bool) -> None:
    values = list(coding.decode_vector(b"\xfe\x02ab" + bytes(36) + b"\x00\x00\x80?"))
    store = make_memories(dims=11)
    await store.put(HERE, "k", 1, embedding=values)
    (hit,) = await store.search(HERE, embedding=values, exact=exact)
    assert (hit.item.key, hit.score) == ("k", 1.0)
    assert await store.get_embeddings(HERE, "k") == [values]


async def test_signs_of_another_width_do_not_displace_others(
    make_memories: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six to eight dimensions need one byte of signs."""
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES", 20)
    before, after = make_memories(dims=6), make_memories(dims=8)
    await before.put_batch([Put(HERE, f"a{n:02}", n, embedding=[1, 1, 1, 1, 1, 1]) for n in range(30)])
    await after.put_batch([Put(HERE, f"b{n}", n, embedding=[-1, 1, 1, 1, 1, 1, -1, -1]) for n in range(5)])
    asked = [1, 1, 1, 1, 1, 1, -1, -1]
    for _ in range(2):
        hits = await after.search(HERE, embedding=asked, limit=5)
        assert ([hit.item.key for hit in hits], hits.exact) == (["b0", "b1", "b2", "b3", "b4"], True)


async def test_a_range_is_searched_in_memory_from_the_second_search_on(make_memories: Make, proxy: WireProxy) -> None:
    store = make_memories(dims=3, host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    await store.put_batch([Put(HERE, str(n), n, embedding=[1, n, 0]) for n in range(6)])

    async def trips() -> int:
        with proxy.counting() as count:
            found = await store.search(HERE, embedding=[1, 0, 0], limit=2)
        assert found.exact
        assert [hit.item.key for hit in found] == ["0", "1"]
        return int(count.round_trips)

    assert [await trips() for _ in range(4)] == [2, 2, 1, 1]


@pytest.mark.parametrize(
    ("vector", "words"),
    [
        ([1, 2], "has 2 dimensions; the store's have 3"),
        ([0, 0, 0], "all zeros"),
        ([1e-60, 0, 0], "all zeros"),
        ([1, float("nan"), 0], "NaN or an infinity"),
        ([1, float("inf"), 0], "NaN or an infinity"),
        ([1, 1e300, 0], None),
        (["a", 1, 2], "not a number"),
        ("abc", "must be a list of numbers, not str"),
        (7, "must be a list of numbers, not int"),
    ],
)
async def test_an_embedding_that_cannot_be_compared_is_refused(memories: Any, vector: Any, words: str | None) -> None:
    with pytest.raises(InvalidInput, match=words):
        await memories.put(HERE, "k", 1, embedding=vector)
    with pytest.raises(InvalidInput, match=words):
        await memories.search(embedding=vector)
    assert await memories.count() == 0


async def test_extreme_embeddings_are_compared(memories: Any) -> None:
    for key, vector in {"tiny": [1e-45, 0, 0], "huge": [0, 3e38, 3e38], "mixed": [1e-30, 1e30, 0]}.items():
        await memories.put(HERE, key, 1, embedding=vector)
    for exact in (False, True):
        assert [hit.item.key for hit in await memories.search(embedding=[0, 1, 1], exact=exact)] == [
            "huge",
            "mixed",
            "tiny",
        ]


async def test_a_cache_older_than_the_marks_of_removed_embeddings_is_reloaded(make_memories: Make, sql: Any) -> None:
    writer, reader = make_memories(dims=3), make_memories(dims=3)
    await writer.put_batch([Put(HERE, str(n), n, embedding=[1, n, 0]) for n in range(4)])
    assert len(await reader.search(embedding=[1, 0, 0], exact=True)) == 4
    await writer.delete(HERE, "0")
    await writer.put(HERE, "1", 1)
    operations = writer.store._operations.writing
    outcome = writer.store._run_step(operations.purge_removed("default", age_us=-1_000_000))
    assert (await outcome if inspect.isawaitable(outcome) else outcome) == 2
    assert sql("SELECT COUNT(*) FROM locus_memory_vectors") == ((2,),)
    for _ in range(2):
        assert [hit.item.key for hit in await reader.search(embedding=[1, 0, 0])] == ["2", "3"]
    await writer.put(HERE, "0", 0, embedding=[1, 0, 0])
    assert [hit.item.key for hit in await reader.search(embedding=[1, 0, 0])] == ["0", "2", "3"]
