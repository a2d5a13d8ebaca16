"""Items by key: they are written, read, listed, deleted, versioned, and expire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput, VersionConflict
from locus_mysql.families.memories.puts import Put

from ...conftest import EACH_WAY
from .conftest import Make

pytestmark = pytest.mark.kept_tables("memories")

ADA = ("users", "ada")


@pytest.mark.parametrize("side", EACH_WAY)
async def test_items_that_were_put_are_read_back(memories: Any) -> None:
    value = {"z": 1, "a": [1.5, None, True, "ü\0'\\\"% %s {x} \U0001d518"], "big": 2**64 + 1, "": {"n": -0.0}}
    assert await memories.put(ADA, "k'%s\\", value, metadata={"m": [1]}) == 1
    item = await memories.get_item(ADA, "k'%s\\")
    assert (item.namespace, item.key, item.version, item.metadata) == (ADA, "k'%s\\", 1, {"m": [1]})
    assert repr(item.value) == repr(value)
    assert item.expires_at is None
    assert item.created_at == item.updated_at
    assert item.created_at.utcoffset().total_seconds() == 0
    assert await memories.put(ADA, "k'%s\\", "other") == 2
    assert await memories.get(ADA, "k'%s\\") == "other"
    again = await memories.get_item(ADA, "k'%s\\")
    assert again.metadata == {}
    assert again.created_at == item.created_at
    assert again.updated_at > item.updated_at


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, 1e308, "x" * 100_000])
async def test_any_json_value_is_an_item(memories: Any, value: Any) -> None:
    await memories.put(ADA, "k", value)
    assert await memories.exists(ADA, "k")
    assert await memories.get(ADA, "k", default="none") == value


async def test_keys_are_listed_in_pages(memories: Any) -> None:
    await memories.put_batch([Put(ADA, f"{n:03}", n) for n in range(250)])
    assert await memories.list_keys(ADA, limit=3) == ["000", "001", "002"]
    assert await memories.list_keys(ADA, limit=3, offset=248) == ["248", "249"]
    assert len(await memories.list_keys(ADA)) == 100


async def test_a_batch_is_written_and_read_whole(memories: Any) -> None:
    await memories.put(ADA, "5", "old")
    await memories.put_batch([*(Put(("n", str(n % 7)), str(n), {"n": n}) for n in range(1_000)), Put(ADA, "5", "new")])
    found = await memories.get_batch([*((("n", str(n % 7)), str(n)) for n in range(1_000)), (ADA, "5"), (ADA, "no")])
    assert len(found) == 1_001
    assert found[(ADA, "5")].version == 2
    assert all(found[(("n", str(n % 7)), str(n))].value == {"n": n} for n in range(1_000))
    assert await memories.count(("n",)) == 1_000
    assert await memories.delete_batch([*((("n", str(n % 7)), str(n)) for n in range(500)), (ADA, "no")]) == 500
    assert await memories.count() == 501


async def test_a_write_may_rely_on_a_version(memories: Any) -> None:
    assert await memories.put(ADA, "k", 1, if_version=0) == 1
    with pytest.raises(
        VersionConflict, match=r"'k' in \('users', 'ada'\) has version 1; the write relied on no such item"
    ):
        await memories.put(ADA, "k", 2, if_version=0)
    assert await memories.put(ADA, "k", 2, if_version=1) == 2
    with pytest.raises(VersionConflict, match="has version 2; the write relied on version 1"):
        await memories.put(ADA, "k", 3, if_version=1)
    with pytest.raises(VersionConflict, match="does not exist; the write relied on version 4"):
        await memories.put(ADA, "l", 3, if_version=4)
    with pytest.raises(VersionConflict):
        await memories.put_batch([Put(ADA, "m", 1), Put(ADA, "k", 9, if_version=1)])
    assert await memories.get(ADA, "k") == 2
    assert await memories.list_keys(ADA) == ["k"]


async def test_of_writers_that_rely_on_one_version_one_succeeds(make_memories: Make) -> None:
    store = make_memories()
    await store.put(ADA, "n", 0)

    async def add() -> None:
        while True:
            item = await store.get_item(ADA, "n")
            try:
                await store.put(ADA, "n", item.value + 1, if_version=item.version)
                return
            except VersionConflict:
                continue

    await asyncio.gather(*(add() for _ in range(12)))
    item = await store.get_item(ADA, "n")
    assert (item.value, item.version) == (12, 13)


async def test_a_store_may_have_a_default_time_to_live(make_memories: Make) -> None:
    store = make_memories(ttl_s=60)
    await store.put(ADA, "k", 1)
    await store.put(ADA, "l", 1, ttl_s=None)
    assert (await store.get_item(ADA, "k")).expires_at is not None
    assert (await store.get_item(ADA, "l")).expires_at is None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.put((), "k", 1), "Namespace is empty"),
        (lambda s: s.put("users", "k", 1), "must be a tuple of texts, not str"),
        (lambda s: s.put(("a", ""), "k", 1), "is empty"),
        (lambda s: s.put(("a\0b",), "k", 1), "NUL"),
        (lambda s: s.put((1,), "k", 1), "must be text, not int"),
        (lambda s: s.put(("\ud800",), "k", 1), "lone surrogate"),
        (lambda s: s.put(("x" * 1_000,), "k", 1), "takes 1001 bytes, with one for each label; the limit is 1000"),
        (lambda s: s.put(ADA, "", 1), "Key is empty"),
        (lambda s: s.put(ADA, "ü" * 501, 1), "Key takes 1002 bytes of UTF-8; the limit is 1000"),
        (lambda s: s.put(ADA, None, 1), "Key must be text, not NoneType"),
        (lambda s: s.put(ADA, "k", float("nan")), "NaN"),
        (lambda s: s.put(ADA, "k", {"a": {1: 2}}), "with a key of type int; keys must be text"),
        (lambda s: s.put(ADA, "k", (1, 2)), "a value of type tuple"),
        (lambda s: s.put(ADA, "k", {"a": b"x"}), "a value of type bytes"),
        (lambda s: s.put(ADA, "k", "\udfff"), "lone surrogate"),
        (lambda s: s.put(ADA, "k", 10**400), "more than 1023 bits"),
        (lambda s: s.put(ADA, "k", 1, metadata=[1]), "Metadata must be a dict, not list"),
        (lambda s: s.put(ADA, "k", 1, metadata=["ab"]), "Metadata must be a dict, not list"),
        (lambda s: s.put(ADA, "k", 1, metadata="m"), "Metadata must be a dict, not str"),
        (lambda s: s.put(ADA, "k", 1, metadata=5), "Metadata must be a dict, not int"),
        (lambda s: s.put(ADA, "k", 1, embeddings=5), "embeddings must be a list of embeddings, not int"),
        (lambda s: s.put(ADA, "k", 1, index=5), "index must be True, False or a list of paths, not int"),
        (lambda s: s.put(ADA, "k", 1, index="text"), "index must be a list of paths, not one text"),
        (lambda s: s.put(ADA, "k", 1, index=["a..b"]), "cannot be read"),
        (lambda s: s.put(ADA, "k", 1, metadata={"m": "x" * 70_000}), "the limit is 65536"),
        (lambda s: s.put(ADA, "k", 1, ttl_s=0), "ttl_s must be"),
        (lambda s: s.put(ADA, "k", 1, ttl_s=float("nan")), "ttl_s must be"),
        (lambda s: s.put(ADA, "k", 1, if_version=-1), "if_version must be"),
        (lambda s: s.list_keys(ADA, limit=-1), "limit must be"),
        (lambda s: s.search(ADA, limit="3"), "limit must be"),
        (lambda s: s.search(ADA, offset=-1), "offset must be"),
        (lambda s: s.search("users"), "must be a tuple of texts"),
        (lambda s: s.search(ADA, filter={"a": {"$near": 1}}), r"Unknown filter operator '\$near'"),
        (lambda s: s.search(ADA, filter={"$or": []}), "stands where a field must"),
        (lambda s: s.search(ADA, filter={"a": {"$gt": None}}), "compares numbers or texts"),
        (lambda s: s.search(ADA, filter={"a": {"$in": "abc"}}), "needs a list"),
        (lambda s: s.search(ADA, filter={"a": float("inf")}), "cannot be held exactly by JSON"),
        (lambda s: s.search(ADA, query="x", way="sound"), "way must be"),
        (lambda s: s.search(ADA, way="word"), "needs a query"),
        (lambda s: s.search(ADA, query="x", way="meaning"), "needs an embedding"),
        (lambda s: s.search(ADA, query="x", min_score=float("nan")), "min_score must be a number, not nan"),
        (lambda s: s.search(ADA, query="x", min_score="1"), "min_score must be a number, not '1'"),
        (lambda s: s.get_batch([("users",)]), "pairs of namespace and key"),
        (lambda s: s.delete_batch([(ADA, "k", 1)]), "pairs of namespace and key"),
        (lambda s: s.delete_batch(["ab"]), "pairs of namespace and key"),
        (lambda s: s.write_batch([], [5]), "pairs of namespace and key"),
    ],
)
async def test_bad_input_is_refused_before_anything_is_sent(
    memories: Any, call: Callable[[Any], Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        await call(memories)
    assert await memories.count() == 0


async def test_values_may_be_nested_90_deep(memories: Any) -> None:
    value: Any = 1
    for _ in range(90):
        value = [value]
    await memories.put(ADA, "k", value)
    assert await memories.get(ADA, "k") == value
    assert await memories.search(filter={"v": None})
    with pytest.raises(InvalidInput, match="nested more than 90 deep"):
        await memories.put(ADA, "k", [value])
