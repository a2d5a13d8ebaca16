"""Searches by field or word, and hybrid ones, return the same as a scan of all items in Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import log
from typing import Any

import pytest

from locus_mysql.errors import CorruptCheckpoint, InvalidInput
from locus_mysql.families.memories.puts import Put
from locus_mysql.families.memories.vectors import coding, matrix

from ...conftest import EACH_WAY
from .conftest import Make

HERE = ("docs", "here")

VALUES: list[Any] = [
    {"n": 1},
    {"n": 1.0},
    {"n": True},
    {"n": "1"},
    {"n": None},
    {},
    {"n": 10},
    {"n": 9},
    {"n": -2.5},
    {"n": "abc"},
    {"n": "abd"},
    {"n": "ABC"},
    {"n": [1, 2]},
    {"n": [1.0, 2]},
    {"n": {"m": 1, "o": "x"}},
    {"n": {"m": 2}},
    {"n": {}},
    {"n": 2**53 + 1},
    {"n": 2.0**53},
    {"n": False},
    {"n.m": 1},
    {'n"]': "quote"},
    [1],
    "n",
]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return bool(one == other)


def fulfils(value: Any, filter: dict[str, Any]) -> bool:
    """Return whether a value matches a filter."""
    for name, wanted in filter.items():
        there = isinstance(value, dict) and name in value
        field = value[name] if there else None
        if not isinstance(wanted, dict):
            fits = same(field, wanted)
        elif any(key.startswith("$") for key in wanted):
            fits = all(holds(field, there, operator, operand) for operator, operand in wanted.items())
        else:
            fits = isinstance(field, dict) and fulfils(field, wanted)
        if not fits:
            return False
    return True


def holds(field: Any, there: bool, operator: str, operand: Any) -> bool:
    if operator == "$eq":
        return same(field, operand)
    if operator == "$ne":
        return not same(field, operand)
    if operator == "$in":
        return any(same(field, one) for one in operand)
    if operator == "$exists":
        return there is operand
    comparable = isinstance(field, str) if isinstance(operand, str) else isinstance(field, int | float)
    if not comparable or isinstance(field, bool):
        return False
    return bool(
        {"$gt": field > operand, "$gte": field >= operand, "$lt": field < operand, "$lte": field <= operand}[operator]
    )


FILTERS: list[dict[str, Any]] = [
    {},
    {"n": 1},
    {"n": 1.0},
    {"n": True},
    {"n": "1"},
    {"n": None},
    {"n": "abc"},
    {"n": [1, 2]},
    {"n": {"m": 1}},
    {"n": {}},
    {"n": {"$eq": {"m": 1, "o": "x"}}},
    {"n": {"m": {"$gte": 2}}},
    {"n": {"o": "x", "m": 1}},
    {"n": {"$gt": 1}},
    {"n": {"$gte": 9}},
    {"n": {"$lt": 10, "$gte": 1}},
    {"n": {"$lte": -2}},
    {"n": {"$gt": "abc"}},
    {"n": {"$lte": "abc"}},
    {"n": {"$ne": 1}},
    {"n": {"$ne": None}},
    {"n": {"$in": [1, "abc", None]}},
    {"n": {"$in": []}},
    *({"n": {"$in": [wanted["n"], "none"]}} for wanted in VALUES if isinstance(wanted, dict) and "n" in wanted),
    {"n": {"$in": [[2], {"m": 2}, [1, 2], 2**53]}},
    {"n": {"$exists": True}},
    {"n": {"$exists": False}},
    {"n": 2**53 + 1},
    {"n": 2**53},
    {"n.m": 1},
    {'n"]': "quote"},
    {"n": 9, "x": None},
    {"x' OR TRUE -- ": {"$exists": True}},
]


async def test_filters_compare_as_json_does(memories: Any) -> None:
    await memories.put_batch([Put(HERE, f"{n:02}", value) for n, value in enumerate(VALUES)])
    for filter in FILTERS:
        expected = {f"{n:02}" for n, value in enumerate(VALUES) if fulfils(value, filter)}
        found = await memories.search(HERE, filter=filter, limit=100)
        assert {hit.item.key for hit in found} == expected, filter
        assert await memories.count(HERE, filter=filter) == len(expected)


NUMBERS: list[Any] = [
    *(0, -0.0, 1, 1.0, 1e0, True, -1, 0.1, 1e-320, 2**53, 2**53 + 1, 2.0**53, 2**63 - 1, 2**63, 2.0**63, 2**63 + 1),
    *(-(2**63), -(2**63) - 1, -(2.0**63), 2**64 - 1, 2**64, 2**64 + 1, 2.0**64, 2**64 + 4096, 10**19, 1e19),
    *(10**20, 1e20, 10**20 + 1, 10**300, 1e300, 10**300 + 1, 1e308, 2**1000, "1", "18446744073709551616", None),
]


async def test_numbers_beyond_64_bits_are_compared_exactly(memories: Any) -> None:
    """Checks all ways of searching, counting and paging; MySQL's JSON would convert such numbers to floats."""
    puts = [Put(HERE, f"{n:02}", {"n": number, "t": "tea"}, embedding=[1, n, 0]) for n, number in enumerate(NUMBERS)]
    await memories.put_batch(puts)
    for number in NUMBERS:
        orderings = () if number is None or isinstance(number, bool) else ("$gt", "$gte", "$lt", "$lte")
        for operator in ("$eq", "$ne", *orderings):
            filter = {"n": {operator: number}}
            expected = [f"{n:02}" for n, value in enumerate(NUMBERS) if fulfils({"n": value}, filter)]
            found = await memories.search(HERE, filter=filter, limit=100)
            assert [hit.item.key for hit in found] == expected, filter
    for filter in (
        {"n": 2**64},
        {"n": {"$in": [2**64 + 1, 1, None]}},
        {"n": {"$ne": 2.0**64, "$gt": 10**18, "$exists": True}},
        {"n": {"$gte": 2**64, "$lt": 10**20 + 1}, "t": "tea"},
    ):
        expected = [f"{n:02}" for n, value in enumerate(NUMBERS) if fulfils({"n": value, "t": "tea"}, filter)]
        assert await memories.count(HERE, filter=filter) == len(expected), filter
        for asked in ({}, {"query": "tea"}, {"embedding": [1, 0, 0]}, {"query": "tea", "embedding": [1, 0, 0]}):
            pages = [await memories.search(HERE, filter=filter, limit=3, offset=n, **asked) for n in range(0, 40, 3)]
            assert [hit.item.key for hits in pages for hit in hits] == expected, (filter, asked)


async def test_numbers_beyond_64_bits_are_compared_exactly_within_values_and_metadata(memories: Any) -> None:
    for n in range(3):
        value = {"a": {"b": 2**64 + n}, "c": [1, {"d": 2**64 + n}]}
        await memories.put(HERE, str(n), value, metadata={"m": 2**64 + n}, embedding=[1, n, 0])
    for n in range(3):
        for asked in (
            {"filter": {"a": {"b": 2**64 + n}}},
            {"filter": {"a": {"$eq": {"b": 2**64 + n}}}},
            {"filter": {"c": [1, {"d": 2**64 + n}]}},
            {"metadata_filter": {"m": 2**64 + n}},
            {"metadata_filter": {"m": 2**64 + n}, "filter": {"a": {"b": {"$gte": 2**64 + n}}}},
        ):
            assert [hit.item.key for hit in await memories.search(HERE, **asked)] == [str(n)], asked


async def test_metadata_is_filtered_by_itself(memories: Any) -> None:
    await memories.put(HERE, "a", {"n": 1}, metadata={"n": 2})
    await memories.put(HERE, "b", {"n": 2})
    assert [hit.item.key for hit in await memories.search(metadata_filter={"n": 2})] == ["a"]
    assert [hit.item.key for hit in await memories.search(metadata_filter={"n": None})] == ["b"]
    assert await memories.search(filter={"n": 2}, metadata_filter={"n": 2}) == []


@pytest.mark.parametrize("side", EACH_WAY)
async def test_words_are_found_at_once_and_scored_by_their_weight(memories: Any, make_memories: Make) -> None:
    await memories.put(HERE, "both", {"a": "green", "b": ["tea"]})
    await memories.put(HERE, "one", {"a": "green apples"})
    await memories.put(HERE, "none", {"green": "water"})
    other = make_memories()
    found = await other.search(("docs",), query="Green tea")
    assert [(hit.item.key, hit.score) for hit in found] == [("both", 1.0), ("one", log(2) / (log(2) + log(3)))]
    assert [hit.item.key for hit in await other.search(query="green tea", min_score=0.9)] == ["both"]
    assert [hit.item.key for hit in await other.search(query="green tea", offset=1)] == ["one"]
    assert [hit.item.key for hit in await other.search(query="green", filter={"a": "green"})] == ["both"]
    assert await other.search(("doc",), query="green") == []
    assert await other.search(query="' OR 1 --") == []
    assert await other.search(query="") == []
    await memories.put(HERE, "both", {"a": "blue"})
    assert [hit.item.key for hit in await other.search(query="green")] == ["one"]
    await memories.put(HERE, "both", {"a": "blue"}, text="yellow submarine")
    assert [hit.item.key for hit in await other.search(query="submarine")] == ["both"]
    assert await other.search(query="blue") == []


async def test_a_search_by_words_without_full_text_index_raises_an_error(make_memories: Make) -> None:
    store = make_memories(search=False, table_prefix="plain_")
    await store.put(HERE, "k", {"a": "green"})
    with pytest.raises(InvalidInput, match="no full-text index"):
        await store.search(query="green")


async def test_pages_of_a_search_by_word_and_meaning_meet(make_memories: Make) -> None:
    """At any depth, the items before a page are exactly those of the previous pages."""
    store = make_memories(dims=2)
    await store.put_batch(
        [Put(HERE, f"{n:03}", "tea " * (n % 7 > 0), embedding=[1, (n * 37) % 400]) for n in range(400)]
    )
    whole = await store.search(HERE, query="tea", embedding=[1, 0], limit=400, exact=True)
    pages = [
        hit.item.key
        for offset in range(0, 400, 80)
        for hit in await store.search(HERE, query="tea", embedding=[1, 0], limit=80, offset=offset, exact=True)
    ]
    assert pages == [hit.item.key for hit in whole]
    assert len(set(pages)) == 400
    assert [hit.score for hit in whole] == sorted([hit.score for hit in whole], reverse=True)


async def test_texts_are_embedded_once(make_memories: Make, side: str) -> None:
    asked: list[list[str]] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return [[text.count("a") + 0.1, text.count("b") + 0.1] for text in texts]

    async def embed_async(texts: list[str]) -> list[list[float]]:
        return embed(texts)

    for function in (embed, embed_async):
        asked.clear()
        store = make_memories(dims=2, embed=function, fields=["facts[*].text", "title"], tenant=function.__name__)
        value = {"title": "aa", "facts": [{"text": "bb"}, {"other": 1}, {"text": "ab"}]}
        await store.put(HERE, "k", value)
        assert asked == [["bb", "ab", "aa"]]
        await store.put(HERE, "k", {**value, "title": "aab"})
        assert asked[1:] == [["aab"]]
        await store.put_batch([Put(HERE, "l", {"title": "b"}), Put(HERE, "m", {"title": "b"}), Put(HERE, "n", 1)])
        assert asked[2:] == [["b"]]
        found = await store.search(query="bbb", limit=2)
        assert asked[3:] == [["bbb"]]
        assert {hit.item.key for hit in found} <= {"k", "l", "m"}
        await store.put(HERE, "k", value, index=False)
        assert await store.get_embeddings(HERE, "k") == []
        await store.put(HERE, "k", value, index=["title"])
        assert len(await store.get_embeddings(HERE, "k")) == 1


async def test_an_embed_function_that_fails_writes_nothing(make_memories: Make) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        if "fail" in texts[0]:
            raise RuntimeError("no model")
        return [[1.0, 2.0, 3.0]] * len(texts) if "wide" in texts[0] else [[1.0, 2.0]] * (len(texts) + 1)

    store = make_memories(dims=2, embed=embed)
    with pytest.raises(RuntimeError, match="no model"):
        await store.put(HERE, "k", "fail")
    with pytest.raises(InvalidInput, match="returned has 3 dimensions; the store's have 2"):
        await store.put(HERE, "k", "wide")
    with pytest.raises(InvalidInput, match="returned 2 embeddings for 1 texts"):
        await store.put(HERE, "k", "more")
    assert await store.count() == 0


async def test_several_namespaces_are_searched_in_one_call(memories: Any) -> None:
    for n in range(3):
        await memories.put(("n", str(n)), "k", f"green {n}", embedding=[1, n, 0])
    for options in ({}, {"query": "green"}, {"embedding": [1, 0, 0]}, {"query": "green", "embedding": [1, 0, 0]}):
        found = await memories.search_many([("n", "0"), ("n", "9"), ("n",)], **options)
        assert [len(hits) for hits in found] == [1, 0, 3], options
    assert await memories.search_many([]) == []


#: All zeros, a NaN, an infinity, another dimension, an incomplete float, an empty value.
DAMAGED = ("00" * 12, "0000C07F0000803F0000803F", "0000807F0000803F0000803F", "0000803F", "00", "")


@pytest.mark.parametrize("numpy", [True, False], ids=["numpy", "python"])
async def test_damaged_embeddings_are_passed_over(
    make_memories: Make, sql: Callable[..., Any], numpy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not numpy:
        for module in (coding, matrix):
            monkeypatch.setattr(module, "np", None)
    await make_memories(dims=3).put_batch([Put(("n",), str(n), n, embedding=[1, n, 0]) for n in range(8)])
    for key, damage in enumerate(DAMAGED):
        sql("UPDATE locus_memory_vectors SET embedding = UNHEX(%s) WHERE item_key = %s", damage, str(key))
    for metric in ("cosine", "dot", "euclidean"):
        memories = make_memories(dims=3, metric=metric)
        for exact in (False, True, True):
            found = await memories.search(("n",), embedding=[1, 7, 0], exact=exact)
            assert [hit.item.key for hit in found] == ["7", "6"]


async def test_an_item_whose_embedding_was_deleted_by_hand_is_written_again(
    memories: Any, sql: Callable[..., Any]
) -> None:
    await memories.put(("n",), "k", 1, embedding=[1, 0, 0])
    sql("DELETE FROM locus_memory_vectors")
    assert await memories.put(("n",), "k", 2, embedding=[0, 1, 0]) == 2
    (found,) = await memories.search(("n",), embedding=[0, 1, 0])
    assert (found.item.value, found.score) == (2, 1.0)


async def test_an_item_whose_name_is_damaged_is_left_out_of_lists(memories: Any, sql: Callable[..., Any]) -> None:
    await memories.put_batch([Put(("n",), key, {"a": key}, embedding=[1, 0, 0]) for key in "abc"])
    await memories.put(("o",), "d", {"a": "d"})
    sql("UPDATE locus_memory_items SET item_key = x'FF' WHERE item_key = 'b'")
    assert [hit.item.key for hit in await memories.search(("n",))] == ["a", "c"]
    assert [hit.item.key for hit in await memories.search(("n",), filter={"a": {"$gte": "a"}})] == ["a", "c"]
    assert await memories.list_keys(("n",)) == ["a", "c"]
    sql("UPDATE locus_memory_items SET path = x'FE00' WHERE path = x'6E00'")
    sql("UPDATE locus_memory_scopes SET path = x'FE00' WHERE path = x'6E00'")
    assert await memories.list_namespaces() == [("o",)]
    assert [hit.item.key for hit in await memories.search(())] == ["d"]


@pytest.mark.parametrize("column", ["value", "metadata"])
async def test_an_item_that_is_no_json_breaks_no_search_and_is_named_itself(
    make_memories: Make, sql: Callable[..., Any], column: str
) -> None:
    memories = make_memories(dims=2)
    await memories.put_batch([Put(("n",), str(n), {"a": n}, {"a": n}, embedding=[1, n]) for n in range(3)])
    await memories.put(("other",), "k", {"a": 2}, metadata={"a": 2}, embedding=[1, 0])
    sql(f"UPDATE locus_memory_items SET {column} = '{{no json' WHERE item_key = '1'")
    asked: dict[str, Any] = {"filter" if column == "value" else "metadata_filter": {"a": 2}}
    assert [hit.item.key for hit in await memories.search(("n",), **asked)] == ["2"]
    assert [hit.item.key for hit in await memories.search(("n",), embedding=[1, 0], **asked)] == ["2"]
    other, mine = await memories.search_many([("other",), ("n",)], **asked)
    assert ([hit.item.key for hit in other], [hit.item.key for hit in mine]) == (["k"], ["2"])
    if column == "value":
        assert await memories.count(("n",), filter={"a": 2}) == 1
    assert [hit.item.key for hit in await memories.search(("n",))] == ["0", "2"]
    assert [hit.item.key for hit in await memories.search(("n",), embedding=[1, 0])] == ["0", "2"]
    with pytest.raises(CorruptCheckpoint, match=r"Item '1' in \('n',\) cannot be read back: its bytes were changed"):
        await memories.get(("n",), "1")
    await memories.delete(("n",), "1")
    assert [hit.item.key for hit in await memories.search(("n",), **asked)] == ["2"]


@pytest.mark.parametrize(
    "wanted",
    [10**400, {"$gt": -(10**400)}, {"$in": [1, 10**400]}, json.loads("[" * 99 + "]" * 99)],
    ids=["equal", "above", "among", "deep"],
)
async def test_invalid_filters_are_refused(memories: Any, wanted: Any) -> None:
    with pytest.raises(InvalidInput, match=r"more than (90 deep|1023 bits)"):
        await memories.search(("n",), filter={"a": wanted})
