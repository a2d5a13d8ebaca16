"""Items by key: they are written, read, listed, deleted, versioned, and expire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput, VersionConflict
from locus_mysql.families.memories.puts import Put

from .conftest import EACH_WAY, Make, side_name

pytestmark = pytest.mark.kept_tables("memories")

ADA = ("users", "ada")

#: Namespaces that differ by case, accents, wildcards of LIKE or blanks, or whose parts join to equal texts.
SIBLINGS = [
    ("foo",),
    ("foobar",),
    ("foo", "bar"),
    ("f_o",),
    ("f%o",),
    ("Foo",),
    ("fóo",),
    ("foo ",),
    ("foo.bar",),
    ("foo/bar",),
    ("fo", "obar"),
    ("foo\x01",),
    ("\U0001d523oo",),
]


@pytest.mark.parametrize("side", EACH_WAY, ids=side_name)
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


async def test_reads_of_missing_items_return_nothing(memories: Any) -> None:
    assert await memories.get(ADA, "k") is None
    assert await memories.get(ADA, "k", 7) == 7
    assert await memories.get_item(ADA, "k") is None
    assert not await memories.exists(ADA, "k")
    assert not await memories.delete(ADA, "k")
    assert await memories.get_batch([(ADA, "k")]) == {}
    assert await memories.get_batch([]) == {}
    assert await memories.delete_batch([]) == 0
    assert await memories.list_keys(ADA) == []
    assert await memories.list_namespaces() == []
    assert await memories.search(ADA) == []
    assert await memories.count() == 0
    assert await memories.clear_namespace(ADA) == 0


async def test_a_deleted_item_is_not_found_and_starts_at_version_one_again(memories: Any) -> None:
    await memories.put(ADA, "k", 1)
    await memories.put(ADA, "k", 2)
    assert await memories.delete(ADA, "k")
    assert not await memories.delete(ADA, "k")
    assert await memories.get_item(ADA, "k") is None
    assert await memories.put(ADA, "k", 3) == 1


async def test_namespaces_and_keys_compare_by_code_point(memories: Any) -> None:
    for number, namespace in enumerate(SIBLINGS):
        for key in ("k", "K", "ḱ", "k "):
            await memories.put(namespace, key, [number, key])
    for number, namespace in enumerate(SIBLINGS):
        assert await memories.list_keys(namespace) == sorted(("k", "K", "ḱ", "k "))
        assert await memories.get(namespace, "K") == [number, "K"]
        found = await memories.search(namespace, limit=100)
        below = [ns for ns in SIBLINGS if ns[: len(namespace)] == namespace]
        assert {hit.item.namespace for hit in found} == set(below)
        assert len(found) == 4 * len(below)
        assert await memories.count(namespace) == 4 * len(below)
        assert {hit.item.namespace for hit in await memories.search(namespace, limit=100, only_here=True)} == {
            namespace
        }
    assert await memories.list_namespaces() == sorted(SIBLINGS)
    assert await memories.clear_namespace(("foo",)) == 4
    assert await memories.list_namespaces() == sorted(ns for ns in SIBLINGS if ns != ("foo",))


async def test_namespaces_by_prefix_suffix_wildcard_and_depth(memories: Any) -> None:
    for namespace in [("a", "x", "1"), ("a", "y", "1"), ("a", "y", "2"), ("b", "x", "1"), ("a",), ("*", "x", "1")]:
        await memories.put(namespace, "k", 1)
    listed = memories.list_namespaces
    assert await listed(("a",)) == [("a",), ("a", "x", "1"), ("a", "y", "1"), ("a", "y", "2")]
    assert await listed(("*", "x")) == [("*", "x", "1"), ("a", "x", "1"), ("b", "x", "1")]
    assert await listed(suffix=("1",)) == [("*", "x", "1"), ("a", "x", "1"), ("a", "y", "1"), ("b", "x", "1")]
    assert await listed(suffix=("y", "*")) == [("a", "y", "1"), ("a", "y", "2")]
    assert await listed(max_depth=2) == [("*", "x"), ("a",), ("a", "x"), ("a", "y"), ("b", "x")]
    assert await listed(max_depth=1, limit=2, offset=1) == [("a",), ("b",)]
    assert await listed(("a",), suffix=("1",), max_depth=2) == [("a", "x"), ("a", "y")]
    assert await listed(("a", "x", "1", "q")) == []
    await memories.delete(("b", "x", "1"), "k")
    assert ("b", "x", "1") not in await listed()


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


async def test_of_several_writes_of_one_key_the_last_counts(memories: Any) -> None:
    await memories.put_batch([Put(ADA, "k", 1), Put(ADA, "l", 1), Put(ADA, "k", 2)])
    item = await memories.get_item(ADA, "k")
    assert (item.value, item.version) == (2, 1)


async def test_a_batch_may_write_and_delete(memories: Any) -> None:
    await memories.put(ADA, "old", 1)
    assert await memories.write_batch([Put(ADA, "new", 2), Put(ADA, "old", 3)], [(ADA, "old"), (ADA, "no")]) == 1
    assert await memories.list_keys(ADA) == ["new"]


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


async def test_an_expired_item_is_not_found_by_any_read(memories: Any, expire: Callable[[str], None], sql: Any) -> None:
    await memories.put(ADA, "k", {"text": "apples"}, ttl_s=60, embedding=[1, 0, 0])
    await memories.put(ADA, "l", {"text": "apples"}, embedding=[1, 0, 0])
    assert (await memories.get_item(ADA, "k")).expires_at is not None
    expire("k")
    assert await memories.get(ADA, "k") is None
    assert await memories.get_batch([(ADA, "k")]) == {}
    assert await memories.list_keys(ADA) == ["l"]
    assert await memories.count() == 1
    assert [hit.item.key for hit in await memories.search()] == ["l"]
    assert [hit.item.key for hit in await memories.search(query="apples")] == ["l"]
    assert [hit.item.key for hit in await memories.search(embedding=[1, 0, 0])] == ["l"]
    assert [hit.item.key for hit in await memories.search(embedding=[1, 0, 0], exact=True)] == ["l"]
    assert await memories.get_embeddings(ADA, "k") == []
    assert not await memories.delete(ADA, "k")
    assert await memories.put(ADA, "k", 2, if_version=0) == 1
    await memories.put(("x",), "k2", 1, ttl_s=60)
    expire("k2")
    assert await memories.list_namespaces() == [ADA]
    assert await memories.sweep() == 1
    assert sql("SELECT COUNT(*) FROM locus_memory_items") == ((2,),)


async def test_sweeping_removes_what_expired_with_its_embeddings(
    memories: Any, expire: Callable[[str], None], sql: Any
) -> None:
    await memories.put_batch([Put(ADA, f"k{n}", n, ttl_s=60, embedding=[1, n, 0]) for n in range(5)])
    await memories.put(ADA, "stays", 1, embedding=[1, 1, 1])
    for n in range(4):
        expire(f"k{n}")
    assert await memories.sweep() == 4
    assert sql("SELECT item_key FROM locus_memory_vectors WHERE removed = 0") == ((b"k4",), (b"stays",))
    assert sql("SELECT item_key FROM locus_memory_signs ORDER BY item_key") == ((b"k4",), (b"stays",))


async def test_reading_may_refresh(memories: Any, sql: Any) -> None:
    await memories.put(ADA, "k", 1, ttl_s=100)
    await memories.put(ADA, "l", 1)
    sql("UPDATE locus_memory_items SET expires_at = expires_at - INTERVAL 50 SECOND")
    before = (await memories.get_item(ADA, "k")).expires_at
    after = (await memories.get_item(ADA, "k", refresh=True)).expires_at
    assert (after - before).total_seconds() == pytest.approx(50, abs=30)
    assert (await memories.get_item(ADA, "l", refresh=True)).expires_at is None


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


@pytest.fixture
def expire(sql: Any) -> Callable[[str], None]:
    """Return ``expire(key)``, which makes all items with a key expire immediately."""

    def run_out(key: str) -> None:
        sql(
            "UPDATE locus_memory_items SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE item_key = %s",
            key.encode(),
        )

    return run_out
