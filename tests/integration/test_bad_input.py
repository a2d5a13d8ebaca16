"""Unusual ids, metadata, SQL in texts and wrong arguments: each is returned exactly, or refused before a write."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput

from .conftest import ONE_OF_EACH, AnyStore, OpenStore

pytestmark = pytest.mark.kept_tables("current", "dicts")

Contents = Callable[[], Any]

KINDS = ("store", "backend")
both_kinds = pytest.mark.parametrize("kind", KINDS)
one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


BAD_IDS: list[Any] = [None, "", 5, b"bytes", ["list"], True, "a\0b", "\0", "\ud800", "x\udfff"]


@one_of_each
async def test_the_longest_thread_id_is_512_characters_of_any_kind(open_store: OpenStore, side: str) -> None:
    store = open_store(side)
    for letter in ("x", "é", "東", "😀"):
        await store.save(letter * 512, {"l": letter})
        assert await store.load(letter * 512) == {"l": letter}


def calls_with_thread_id(store: AnyStore, kind: str) -> dict[str, Callable[[Any], Any]]:
    calls: dict[str, Callable[[Any], Any]] = {
        "save": lambda bad: store.save(bad, {"a": 1}),
        "load": lambda bad: store.load(bad),
        "exists": lambda bad: store.exists(bad),
        "delete": lambda bad: store.delete(bad),
        "get_metadata": lambda bad: store.get_metadata(bad),
        "copy from": lambda bad: store.copy_thread(bad, "copy"),
        "copy to": lambda bad: store.copy_thread("thread", bad),
    }
    if kind == "store":
        calls |= {
            "list_checkpoints": lambda bad: store.list_checkpoints(bad),
            "history": lambda bad: store.history(bad),
        }
    return calls


@both_kinds
@one_of_each
async def test_a_thread_id_that_cannot_be_stored_is_refused_by_every_call(
    open_store: OpenStore, table_contents: Contents, side: str, kind: str
) -> None:
    store = open_store(side, kind)
    await store.save("thread", {"a": 1}, "c1", {"k": 1})
    before = table_contents()
    for what, call in calls_with_thread_id(store, kind).items():
        for bad in [*BAD_IDS, "x" * 513]:
            with pytest.raises(InvalidInput, match="Thread id"):
                await call(bad)
            assert what
    assert table_contents() == before


@one_of_each
async def test_a_checkpoint_id_that_cannot_be_stored_is_refused_by_every_call(
    open_store: OpenStore, table_contents: Contents, side: str
) -> None:
    store = open_store(side)
    await store.save("thread", {"a": 1}, "c1")
    before = table_contents()
    for bad in [bad for bad in BAD_IDS if bad is not None] + ["x" * 129]:
        for call in (store.load, store.exists, store.delete, store.get_metadata):
            with pytest.raises(InvalidInput, match="Checkpoint id"):
                await call("thread", bad)
        with pytest.raises(InvalidInput, match="Checkpoint id"):
            await store.save("thread", {"a": 2}, bad)
    assert table_contents() == before


async def test_the_error_of_an_id_that_is_too_long_names_its_length_and_the_limit(open_store: OpenStore) -> None:
    with pytest.raises(InvalidInput, match=r"600 characters.*512"):
        await open_store().save("x" * 600, {})
    with pytest.raises(InvalidInput, match=r"200 characters.*128"):
        await open_store().save("x", {}, "y" * 200)


GOOD_METADATA: list[dict[str, Any]] = [
    {},
    {"": ""},
    {"a": None, "b": [1, 2.5, {"c": [True, False]}], "é": "東京 😀"},
    {"big": 10**99, "small": -(10**99), "float": 1e308, "tiny": 5e-324, "minus": -0.5},
    {"lone": "\ud800", "nul": "\0", "quote": "'\"\\`", "\0key": 1, "'; DROP TABLE locus_store_threads; -- ": 1},
    {str(n): n for n in range(3000)},
    {"deep": json.loads("[" * 100 + "]" * 100)},
    {"long": "x" * 65_525},
]
BAD_METADATA: list[Any] = [
    {"a": math.nan},
    {"a": [math.inf]},
    {"a": {"b": -math.inf}},
    {"a": object()},
    {"a": {1, 2}},
    {"a": (1, 2)},
    {"a": b"bytes"},
    {1: "a"},
    {"a": {1: 2}},
    {"long": "x" * 65_526},
    {"long": "東" * 30_000},
    "text",
    ["list"],
    5,
    {"deep": json.loads("[" * 900 + "]" * 900)},
]


@both_kinds
@one_of_each
async def test_metadata_comes_back_exactly(open_store: OpenStore, side: str, kind: str) -> None:
    store = open_store(side, kind)
    for number, metadata in enumerate(GOOD_METADATA):
        await store.save(f"thread {number}", {"n": number}, metadata=metadata)
    for number, metadata in enumerate(GOOD_METADATA):
        found = (await store.get_metadata(f"thread {number}"))["metadata"]
        assert found == metadata
        assert list(found) == list(metadata)
        for key in list(metadata)[:3]:
            assert f"thread {number}" in [hit["thread_id"] for hit in await store.query_by_metadata(key, metadata[key])]


@both_kinds
@one_of_each
async def test_metadata_that_is_no_json_object_is_refused_before_anything_is_written(
    open_store: OpenStore, table_contents: Contents, side: str, kind: str
) -> None:
    store = open_store(side, kind)
    await store.save("thread", {"a": 1}, "c1")
    before = table_contents()
    for metadata in BAD_METADATA:
        with pytest.raises(InvalidInput, match="Metadata"):
            await store.save("thread", {"a": 2}, "c1", metadata)
        assert table_contents() == before, repr(metadata)[:50]
    assert await store.load("thread") == {"a": 1}


@one_of_each
async def test_arguments_of_the_wrong_kind_are_refused(open_store: OpenStore, side: str) -> None:
    store = open_store(side)
    await store.save("thread", {"a": 1})
    wrong: tuple[Any, ...] = (-1, 2**31 + 1, True, 1.5, "1", None)
    limited: list[Callable[[Any], Any]] = [
        lambda limit: store.list_checkpoints("thread", limit),
        lambda limit: store.history("thread", limit),
        lambda limit: store.list_threads(limit),
        lambda limit: store.search("word", limit),
        lambda limit: store.search_data("a", 1, limit),
        lambda limit: store.query_by_metadata("a", 1, limit),
        lambda limit: store.list_with_metadata(limit),
    ]
    calls: list[Callable[[], Any]] = [
        *(partial(call, limit) for call in limited for limit in wrong),
        lambda: store.list_threads(pattern=None),
        lambda: store.list_threads(pattern="\ud800"),
        lambda: store.list_threads(offset=-1),
        lambda: store.count(5),
        lambda: store.search(5),
        lambda: store.search("\ud800"),
        lambda: store.query_by_metadata(5, 1),
        lambda: store.query_by_metadata("a", object()),
        lambda: store.query_by_metadata("a", math.nan),
        lambda: store.search_data(5, 1),
        lambda: store.search_data(["a"], 1),
        lambda: store.vacuum(-1),
        lambda: store.vacuum("30"),
        lambda: store.vacuum(math.nan),
        lambda: store.vacuum(10**9),
        lambda: store.copy_thread("thread", "thread"),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(InvalidInput):
            print(number, await call())
    assert await store.load("thread") == {"a": 1}
