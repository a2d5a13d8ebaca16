"""`KeyValueStore` keeps the contract of `AsyncKeyValue`, also under the package's own wrappers and adapters.

The package ships no tests. These have all the promises of its repository's ``tests/stores/base.py``.
"""

from __future__ import annotations

import asyncio
import datetime
import uuid
from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

import pytest
from key_value.aio.adapters.pydantic import PydanticAdapter
from key_value.aio.adapters.raise_on_missing import RaiseOnMissingAdapter
from key_value.aio.errors import InvalidTTLError, MissingKeyError, SerializationError
from key_value.aio.protocols import key_value as protocols
from key_value.aio.stores.memory import MemoryStore
from key_value.aio.wrappers.encryption import FernetEncryptionWrapper
from key_value.aio.wrappers.passthrough_cache import PassthroughCacheWrapper
from key_value.aio.wrappers.prefix_collections import PrefixCollectionsWrapper
from key_value.aio.wrappers.ttl_clamp import TTLClampWrapper
from pydantic import BaseModel

from locus_mysql.errors import InvalidInput
from locus_mysql.integrations.py_key_value import KeyValueStore
from locus_mysql.memory import MemoryStore as Memories

from ..conftest import Opened

pytestmark = pytest.mark.kept_tables("memories")

MakeStore = Callable[..., KeyValueStore]

#: Names that MySQL, or long-term memory, cannot store as they are, among others.
NAMES = (
    *("a", "A", "a ", "é", "e\u0301", "", "nul\0", "%", "../x", "'; --", "\U0001f600"),
    *("x" * 900, "x" * 901, "x" * 902, "é" * 10_000, "sha256:", f"sha256:{'0' * 64}"),
)


@pytest.fixture
def make_store(opened: Opened, driver: str) -> MakeStore:
    """Return ``make_store(**options)``."""
    return partial(opened, KeyValueStore, driver=driver)


def test_it_has_every_protocol_of_the_package(make_store: MakeStore) -> None:
    store = make_store()
    for name in ("", "Protocol"):
        assert isinstance(store, getattr(protocols, f"AsyncKeyValue{name}"))
    for name in ("Cull", "EnumerateKeys", "EnumerateCollections", "DestroyStore", "DestroyCollection"):
        assert isinstance(store, getattr(protocols, f"Async{name}Protocol"))


async def test_a_value_is_returned_replaced_and_deleted_in_its_collection_only(make_store: MakeStore) -> None:
    store, other = make_store(), make_store()
    assert await store.get("k", collection="c") is None
    assert await store.ttl("k", collection="c") == (None, None)
    assert await store.delete("k", collection="c") is False
    await store.put("k", {"v": 1}, collection="c")
    await store.put("k", {"v": 2}, collection="d")
    await store.put("k", {"v": 3})
    assert await other.get("k", collection="c") == {"v": 1}
    assert await other.ttl("k", collection="c") == ({"v": 1}, None)
    await other.put("k", {"w": [2]}, collection="c")
    assert await store.get("k", collection="c") == {"w": [2]}
    assert await store.delete("k", collection="c") is True
    assert await store.delete("k", collection="c") is False
    assert await other.get("k", collection="c") is None
    assert await other.get("k", collection="d") == {"v": 2}
    assert await make_store(default_collection="d").get("k") == {"v": 2}
    assert await other.get("k", collection="default_collection") == await other.get("k") == {"v": 3}


async def test_several_values_are_stored_read_and_deleted_in_a_round_trip_each(make_store: MakeStore) -> None:
    store = make_store()
    await store.put("other", {"v": 0}, collection="c")
    keys, values = [f"k{number}" for number in range(200)], [{"v": number} for number in range(200)]

    async def round_trips(call: Any) -> Any:
        before = store.database.stats().round_trips
        result = await call
        assert store.database.stats().round_trips == before + 1
        return result

    await round_trips(store.put_many(keys, tuple(values), collection="c", ttl=60))
    assert await round_trips(store.get_many([*keys, "none", "k0"], collection="c")) == [*values, None, {"v": 0}]
    timed = await round_trips(store.ttl_many(["none", *keys, "other"], collection="c"))
    assert (timed[0], timed[-1]) == ((None, None), ({"v": 0}, None))
    assert [value for value, _ in timed[1:-1]] == values
    assert all(50 < seconds <= 60 for _, seconds in timed[1:-1])
    assert await round_trips(store.delete_many([*keys[1:], "none", "k1"], collection="c")) == 199
    assert await store.delete_many(keys, collection="c") == 1
    assert await store.get_many(keys, collection="c") == [None] * 200
    assert (await store.get_many([]), await store.ttl_many([]), await store.delete_many([])) == ([], [], 0)
    await store.put_many([], [])
    await store.put_many(["twice", "twice"], [{"v": 1}, {"v": 2}])
    assert await store.get("twice") == {"v": 2}
    with pytest.raises(ValueError, match="2 keys and 1 values"):
        await store.put_many(["a", "b"], [{}])


async def test_more_values_than_fit_into_a_transaction_are_stored_and_deleted(make_store: MakeStore) -> None:
    store, keys = make_store(), [f"{number:05}" for number in range(10_001)]
    await store.put_many(keys, [{"v": key} for key in keys])
    assert await store.keys() == keys
    assert await store.get("10000") == {"v": "10000"}
    assert await store.delete_many(keys) == 10_001


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"null": None, "no": False, "n": [1, -42, 10**18, 1.0, 1.23456789012345e10, None], "": ""},
        {"deep": {"a": {"b": [{"c": {"d": "e"}}]}}, "z": 1, "a": 2},
        {"text": "Hello 世界 \U0001f30d\nLine2\t\0'\"\\", "é": "a" * 10_000, "null": "null", "1": "1.0"},
        {"large": list(range(100_000))},
    ],
)
async def test_a_value_comes_back_equal(make_store: MakeStore, value: dict[str, Any]) -> None:
    await make_store().put("k", MappingProxyType(value))
    found = await make_store().get("k")
    assert found == value
    assert list(found or {}) == list(value)


async def test_what_json_changes_comes_back_as_the_packages_stores_return_it(make_store: MakeStore) -> None:
    store, reference = make_store(), MemoryStore()
    for one in (store, reference):
        await one.put("k", {"tuple": (1, "two", (3.0,)), "keys": {1: "a", 2: "b"}})
    assert (
        await store.get("k") == {"tuple": [1, "two", [3.0]], "keys": {"1": "a", "2": "b"}} == await reference.get("k")
    )


@pytest.mark.parametrize(
    "value",
    [
        *({"v": datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)}, {"v": datetime.date(2025, 1, 1)}),
        *({"v": uuid.UUID(int=7)}, {"v": b"bytes"}, {"v": {1}}, {"v": float("nan")}, {"v": "\ud800"}, [1], None),
    ],
    ids=str,
)
async def test_what_is_no_json_is_refused_and_the_value_before_stays(make_store: MakeStore, value: Any) -> None:
    store = make_store()
    await store.put("k", {"v": 1})
    with pytest.raises(SerializationError):
        await store.put_many(["other", "k"], [{"v": 2}, value])
    assert await store.get_many(["k", "other"]) == [{"v": 1}, None]


async def test_names_of_any_characters_and_lengths_are_kept_apart_and_listed(make_store: MakeStore) -> None:
    store, other = make_store(), make_store()
    for number, name in enumerate(NAMES):
        await store.put(name, {"key": number}, collection="c")
        await store.put("k", {"collection": number}, collection=name)
    assert await other.get_many(NAMES, collection="c") == [{"key": number} for number in range(len(NAMES))]
    assert sorted(await other.keys("c")) == sorted(NAMES)
    for number, name in enumerate(NAMES):
        assert await other.get("k", collection=name) == {"collection": number}
    named = {name or "default_collection" for name in NAMES}
    assert sorted(await other.collections()) == sorted(named | {"c"})
    assert len(await other.keys("c", limit=3)) == len(await other.collections(limit=3)) == 3
    for name in named:
        assert await other.keys(name) == ["k"]
        assert await other.destroy_collection(name) is True
        assert await other.destroy_collection(name) is False
    assert await store.collections() == ["c"]
    assert await store.delete_many(NAMES, collection="c") == len(NAMES)
    assert (await store.collections(), await store.keys("c")) == ([], [])


@pytest.mark.parametrize("name", ["\ud800", "x" * 32_000, 7], ids=["surrogate", "long", "number"])
async def test_a_name_that_cannot_be_stored_is_refused(make_store: MakeStore, name: Any) -> None:
    store = make_store()
    for call in (store.get(name), store.put("k", {}, collection=name), store.keys(name)):
        with pytest.raises(InvalidInput, match=r"^The (key|collection)"):
            await call


@pytest.mark.parametrize("ttl", [0, -100, True, "5", float("nan"), float("inf"), []], ids=str)
async def test_a_time_to_live_that_is_none_is_refused(make_store: MakeStore, ttl: Any) -> None:
    store = make_store()
    for put in (store.put("k", {}, ttl=ttl), store.put_many(["k"], [{}], ttl=ttl)):
        with pytest.raises(InvalidTTLError):
            await put
    assert await store.get("k") is None


async def test_a_value_expires_on_the_servers_clock(
    make_store: MakeStore, run_sql: Callable[..., Any], database: str
) -> None:
    store = make_store()
    await store.put("k", {"v": 1}, ttl=100)
    value, seconds = await store.ttl("k")
    assert value == {"v": 1}
    assert seconds is not None
    assert 90 < seconds <= 100
    await store.put("k", {"v": 2})
    assert await store.ttl("k") == ({"v": 2}, None)
    await store.put("short", {"v": 3}, ttl=0.000_001)
    assert await store.get("short") is None
    expired = f"UPDATE {database}.locus_memory_items SET expires_at = UTC_TIMESTAMP(6)"
    for collection in ("c", "d"):
        await store.put_many(["x", "y"], [{}, {}], collection=collection, ttl=100)
    run_sql(f"{expired} WHERE ttl_us IS NOT NULL")
    assert await store.get_many(["x", "y"], collection="c") == [None, None]
    assert await store.ttl_many(["x"], collection="c") == [(None, None)]
    assert await store.delete_many(["x", "y"], collection="c") == 0
    assert (await store.keys("c"), await store.collections()) == ([], ["default_collection"])
    await store.cull()
    assert list(run_sql(f"SELECT COUNT(*) FROM {database}.locus_memory_items")) == [(1,)]


async def test_the_time_to_live_of_the_store_is_the_default(make_store: MakeStore) -> None:
    store = make_store(ttl_s=3_600)
    await store.put("k", {})
    await store.put("own", {}, ttl=60)
    (_, default), (_, own) = await store.ttl_many(["k", "own"])
    assert default is not None
    assert own is not None
    assert 3_500 < default <= 3_600
    assert 50 < own <= 60


async def test_destroy_deletes_all_values_of_the_tenant_and_nothing_else(
    make_store: MakeStore, opened: Opened, driver: str
) -> None:
    store, acme, memories = make_store(), make_store(tenant="acme"), opened(Memories, driver=driver)
    await memories.put(("notes",), "n", {"v": 1})
    for one in (store, acme):
        await one.put_many(["a", "b"], [{}, {}], collection="c")
        await one.put("a", {}, collection="long" * 1_000)
    assert await store.destroy() is True
    assert await store.destroy() is True
    assert await store.collections() == []
    assert sorted(await acme.collections()) == ["c", "long" * 1_000]
    assert await memories.get(("notes",), "n") == {"v": 1}


async def test_concurrent_calls_of_several_stores_each_take_effect(make_store: MakeStore) -> None:
    async def work(store: KeyValueStore, worker: int) -> None:
        for number in range(5):
            key = f"{worker}-{number}"
            assert await store.get(key) is None
            for value in ({"v": number}, {"v": [number]}):
                await store.put(key, value)
                await store.put("shared", {"worker": worker})
                assert await store.get(key) == value
            assert await store.delete(key)
            assert await store.get(key) is None

    stores = [make_store() for _ in range(3)]
    await asyncio.gather(*(work(store, 3 * worker + n) for worker, store in enumerate(stores) for n in range(3)))
    assert await stores[0].keys() == ["shared"]


async def test_no_word_of_a_value_is_indexed(make_store: MakeStore, run_sql: Callable[..., Any], database: str) -> None:
    await make_store().put("k", {"token": "secret"})
    found = run_sql(f"SELECT search_text, pending_text, unindexed FROM {database}.locus_memory_items")
    assert list(found) == [(None, None, None)]


class Profile(BaseModel):
    """What an application keeps."""

    name: str
    tags: list[str] = []


async def test_the_packages_wrappers_and_adapters_work_on_it(make_store: MakeStore) -> None:
    store = make_store()
    profiles = PydanticAdapter[Profile](key_value=store, pydantic_model=Profile, default_collection="profiles")
    await profiles.put("ada", Profile(name="Ada", tags=["x"]))
    assert await profiles.get("ada") == Profile(name="Ada", tags=["x"])
    with pytest.raises(MissingKeyError):
        await RaiseOnMissingAdapter(key_value=store).get("none", raise_on_missing=True)

    secret = FernetEncryptionWrapper(store, source_material="material", salt="salt")
    await secret.put("token", {"access": "a-1"}, ttl=60)
    assert await secret.get("token") == {"access": "a-1"}
    assert "a-1" not in str(await store.get("token"))

    prefixed = PrefixCollectionsWrapper(TTLClampWrapper(store, min_ttl=10, max_ttl=20), prefix="p")
    await prefixed.put("k", {"v": 1}, collection="c", ttl=1_000)
    _, seconds = await prefixed.ttl("k", collection="c")
    assert seconds is not None
    assert 5 < seconds <= 20

    cached = PassthroughCacheWrapper(primary_key_value=store, cache_key_value=MemoryStore())
    await cached.put("cached", {"v": 1}, ttl=60)
    assert [await cached.get("cached") for _ in range(2)] == [{"v": 1}] * 2
