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
from locus_mysql.families.memories.vectors import coding, matrix, scoring

from ...proxy import WireProxy
from .conftest import Make

HERE = ("docs", "here")


def scored(metric: str, one: list[float], other: list[float]) -> float:
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    if metric == "dot":
        return product
    if metric == "cosine":
        return product / math.hypot(*one) / math.hypot(*other)
    return 1 / (1 + math.dist(one, other))


def rounded(vector: list[float]) -> list[float]:
    return list(coding.floats_of(vector, None))


class Model:
    """The items that are stored, to compare a search by meaning with an exhaustive one.

    Args:
        metric: The metric of the stores.
    """

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self.rng = random.Random(7)
        #: The embedding and the number of each item.
        self.items: dict[tuple[tuple[str, ...], str], tuple[list[float], int]] = {}

    def vector(self) -> list[float]:
        return rounded([self.rng.gauss(0, 1) * self.rng.choice([0.01, 1, 1, 5]) for _ in range(24)])

    def put(self, namespace: tuple[str, ...], key: str, number: int) -> Put:
        """Return the write of an item with a new embedding."""
        self.items[namespace, key] = self.vector(), number
        return Put(namespace, key, {"n": number}, embedding=self.items[namespace, key][0])

    async def change_some(self, writer: Any) -> None:
        for namespace, key in self.rng.sample(sorted(self.items), 3):
            if self.rng.random() < 0.4:
                await writer.delete(namespace, key)
                del self.items[namespace, key]
            elif self.rng.random() < 0.3:
                await writer.put(namespace, key, {"n": 0})
                del self.items[namespace, key]
            else:
                await writer.put_batch([self.put(namespace, key, 3)])
        await writer.put_batch([self.put(("docs", "new"), f"new{self.rng.random()}", 1)])

    async def check(self, store: Any, prefix: tuple[str, ...], filter: dict[str, Any] | None, **options: Any) -> Any:
        asked = self.vector()
        expected = sorted(
            (
                (-scored(self.metric, asked, embedding), namespace, key)
                for (namespace, key), (embedding, n) in self.items.items()
                if namespace[: len(prefix)] == prefix and (filter is None or n == filter["n"])
            )
        )[:10]
        hits = await store.search(prefix, embedding=asked, filter=filter, **options)
        if hits.exact:
            assert [hit.item.key for hit in hits] == [key for _, _, key in expected]
            assert [hit.score for hit in hits] == pytest.approx([-score for score, _, _ in expected], abs=1e-9)
        return hits


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("with_numpy", [True, False], ids=["numpy", "plain"])
async def test_search_by_meaning_equals_exhaustive_search(
    make_memories: Make, metric: str, with_numpy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES", 40)
    if not with_numpy:
        for module in (coding, matrix, scoring):
            monkeypatch.setattr(module, "np", None)
    model = Model(metric)
    writer, reader, cold = (make_memories(dims=24, metric=metric) for _ in range(3))
    for start in range(0, 300, 100):
        namespaces = [("docs", model.rng.choice(["a", "b", "c", "a\x01"])) for _ in range(100)]
        await writer.put_batch([model.put(space, str(start + n), n % 5) for n, space in enumerate(namespaces)])

    for prefix in ((), ("docs",), ("docs", "a"), ("docs", "none")):
        for filter in (None, {"n": 3}):
            assert (await model.check(cold, prefix, filter, exact=True)).exact
    large = await model.check(reader, ("docs",), None)
    assert not large.exact
    assert len(large) == 10
    for _ in range(15):
        await model.change_some(writer)
        assert (await model.check(reader, ("docs",), None)).exact
        assert (await model.check(reader, ("docs",), {"n": 3})).exact
        assert (await model.check(reader, ("docs", "a"), None, exact=True)).exact
    await writer.clear_namespace(("docs", "a"))
    model.items = {key: value for key, value in model.items.items() if key[0] != ("docs", "a")}
    assert (await model.check(reader, ("docs",), None)).exact
    assert await reader.search(("docs", "a"), embedding=model.vector()) == []


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


@pytest.mark.parametrize("limit", [1_500, 100])
async def test_each_of_equal_embeddings_is_given_once(make_memories: Make, limit: int) -> None:
    """In one search or in pages, ordered by key; the first page comes from a process with empty caches."""
    store = make_memories(dims=3)
    await store.put_batch([Put(HERE, f"{n:04}", n, embedding=[1, 2, 3]) for n in range(1_500)])
    keys = []
    for offset in range(0, 1_500, limit):
        hits = await store.search(HERE, embedding=[1, 2, 3], limit=limit, offset=offset)
        assert hits.exact
        keys += [hit.item.key for hit in hits]
    assert keys == [f"{n:04}" for n in range(1_500)]


async def test_each_of_four_tight_clusters_is_found_by_its_own_embedding(make_memories: Make) -> None:
    rng = random.Random(3)
    centres = [[rng.gauss(0, 1) for _ in range(16)] for _ in range(4)]
    stored = {f"{n:03}": rounded([value + 1e-4 * rng.gauss(0, 1) for value in centres[n % 4]]) for n in range(600)}
    writer, warm = make_memories(dims=16), make_memories(dims=16)
    await writer.put_batch([Put(HERE, key, 0, embedding=values) for key, values in stored.items()])
    await warm.search(HERE, embedding=stored["000"])
    for number, (key, values) in list(enumerate(stored.items()))[::15]:  # a sample from every cluster
        for store in (warm, make_memories(dims=16)) if number % 60 == 0 else (warm,):
            (hit,) = await store.search(HERE, embedding=values, limit=1)
            assert (hit.item.key, hit.score) == (key, 1.0)


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


async def test_of_several_embeddings_the_nearest_counts(memories: Any) -> None:
    await memories.put(HERE, "two", "x", embeddings=[[1, 0, 0], [0, 1, 0]])
    await memories.put(HERE, "one", "y", embedding=[1, 1, 0])
    found = await memories.search(embedding=[0, 1, 0])
    assert [(hit.item.key, round(hit.score, 3)) for hit in found] == [("two", 1.0), ("one", 0.707)]
    assert await memories.get_embeddings(HERE, "two") == [[1, 0, 0], [0, 1, 0]]
    await memories.put(HERE, "two", "x")
    assert [hit.item.key for hit in await memories.search(embedding=[0, 1, 0])] == ["one"]
    assert await memories.get_embeddings(HERE, "two") == []
    assert [hit.item.key for hit in await memories.search(embedding=[0, 1, 0], min_score=0.8)] == []


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
