"""Common mistakes with long-term memory are refused with advice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.store.base import PutOp, SearchOp

from locus_mysql import MySQLMemory, SyncMySQLMemory
from locus_mysql.errors import ConfigError, InvalidInput
from locus_mysql.integrations.langgraph import AsyncMySQLStore, MySQLStore, store_options
from locus_mysql.integrations.memu import AsyncMemuDatabase, MemuDatabase
from locus_mysql.memory import HashingEmbedder, MemoryStore, SyncMemoryStore

#: No server listens there; these tests need none.
DSN = "mysql://nobody@127.0.0.1:1/none"


def embed(texts: list[str]) -> list[list[float]]:
    return [[1.0, 0.0, 0.0] for _ in texts]


@pytest.mark.parametrize("store", [AsyncMySQLStore, MySQLStore])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"index": {"embed": HashingEmbedder()}}, "index has no 'dims'. Its keys are dims, embed, fields"),
        ({"index": {"dims": 3}}, "index has no 'embed'. Its keys are dims, embed, fields"),
        ({"index": HashingEmbedder()}, "index must be a dict, not HashingEmbedder"),
        ({"index": {"dims": 3, "embed": embed, "field": ["text"]}}, "index has the unknown key 'field'. Its keys are"),
        ({"index": {"dims": 3, "embed": embed, "field": ["text"]}}, "Did you mean fields?"),
        (
            {"index": {"dims": 3, "embed": embed, "distance": "l2"}},
            "index has the unknown key 'distance'. Its keys are",
        ),
        ({"ttl": {"default_tll": 5}}, "Did you mean default_ttl?"),
        (
            {"index": {"dims": 3, "embed": embed, "fields": "text"}},
            "must be a list of paths, not one text; write ['text']",
        ),
        ({"index": {"dims": 3, "embed": embed, "fields": [5]}}, "index['fields'] must be a list of paths"),
        ({"index": {"dims": 3, "embed": embed, "distance_type": "cos"}}, "distance_type must be one of cosine"),
        ({"index": {"dims": 3, "embed": 5}}, "index['embed'] must be a function from a list of texts"),
        ({"index": {"dims": "3", "embed": embed}}, "dims must be a whole number"),
        ({"ttl": 5}, "ttl must be a dict, not int. Its keys are default_ttl"),
        ({"ttl": {"default_tll": 5}}, "ttl has the unknown key 'default_tll'. Its keys are default_ttl"),
        ({"ttl": {"default_ttl": "5"}}, "default_ttl must be a number of minutes above 0, or None, not '5'"),
        ({"ttl": {"default_ttl": 0}}, "default_ttl must be a number of minutes above 0"),
        ({"ttl": {"refresh_on_read": "no"}}, "refresh_on_read must be True or False, not 'no'"),
        ({"ttl": {"sweep_interval_minutes": "5"}}, "sweep_interval_minutes must be a number above 0, not '5'"),
        ({"ttl": {"sweep_interval_minutes": 0}}, "sweep_interval_minutes must be a number above 0, not 0"),
    ],
)
def test_langgraph_stores_name_the_keys(store: Callable[..., Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        store(DSN, **options)
    assert message in str(error.value)


@pytest.mark.parametrize("store", [AsyncMySQLStore, MySQLStore])
def test_keys_of_other_langgraph_stores_are_accepted_and_logged_once(
    store: Callable[..., Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_options, "_LOGGED", set())
    index = {
        "dims": 3,
        "embed": embed,
        "fields": ["text"],
        "text_fields": ["text"],
        "ann_index_config": {"kind": "hnsw", "m": 16, "ef_construction": 64, "vector_type": "halfvec"},
        "pool": {"min_size": 1},
        "distance_type": "l2",
        "vector_storage_type": "hash",
    }
    for _ in range(2):
        store(DSN, index=index, ttl={"default_ttl": 5, "sweep_interval": 3})
    words = [record.getMessage() for record in caplog.records if record.name == "locus_mysql.options"]
    assert sorted(words) == [
        "index['ann_index_config'] has no effect here: there is no index to configure.",
        "index['pool'] has no effect here: the option 'pool_size' sets the number of connections.",
        "index['text_fields'] has no effect here: 'fields' names the embedded fields.",
        "index['vector_storage_type'] has no effect here: embeddings are kept as 32-bit floats.",
        "ttl['sweep_interval'] has no effect here: 'sweep_interval_minutes' sets how often expired items are deleted.",
    ]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (PutOp(("users",), "k", {"text": "tea"}, ttl=-1), "ttl must be a number of minutes above 0 and up to 52596000"),
        (PutOp(("users",), "k", {"text": "tea"}, ttl="5"), "ttl must be a number of minutes above 0"),
        (PutOp(("users",), "k", {"text": "tea"}, index="text"), r"not one text; write \['text'\]"),
        (PutOp(("users",), "k", {"text": "tea"}, index=[5]), "index must be False or a list of paths"),
        (PutOp(("users",), "k", ["tea"]), "value of an item must be a dict, not list"),
        (SearchOp(("users",), query=5), "The query must be text, not int"),
    ],
)
@pytest.mark.parametrize("index", [None, {"dims": 3, "embed": embed}], ids=["words", "meaning"])
async def test_langgraph_stores_explain_invalid_operations(op: Any, message: str, index: Any) -> None:
    with pytest.raises(InvalidInput, match=message), MySQLStore(DSN, index=index) as sync:
        sync.batch([op])
    async with AsyncMySQLStore(DSN, index=index) as store:
        with pytest.raises(InvalidInput, match=message):
            await store.abatch([op])


@pytest.mark.parametrize("memory", [MySQLMemory, SyncMySQLMemory])
def test_locus_memory_explains_invalid_embedders(memory: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="one of Locus' embedders, with a dimension, not function"):
        memory(DSN, embedder=lambda texts: [[1.0] for _ in texts])


@pytest.mark.parametrize("store", [MemoryStore, SyncMemoryStore])
def test_an_embedder_must_be_callable(store: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="embed must be a function from a list of texts"):
        store(DSN, dims=3, embed=object())


@pytest.mark.parametrize("store", [MemoryStore, SyncMemoryStore, MemuDatabase, AsyncMemuDatabase])
@pytest.mark.parametrize("size", ["1 GB", -1, 1.5, None, True])
def test_memory_for_searches_is_a_number_of_bytes(store: Callable[..., Any], size: Any) -> None:
    with pytest.raises(ConfigError, match="vector_cache_bytes must be a whole number of bytes, 0 or more, not"):
        store(DSN, vector_cache_bytes=size)


@pytest.mark.parametrize("store", [MemoryStore, SyncMemoryStore])
def test_a_model_has_a_name(store: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="model must be text, the name of the embed function's model, not int"):
        store(DSN, model=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.put(("users",), "k", 1, "note"), "Metadata must be a dict, not str"),
        (
            lambda m: m.put_batch([(("users",), "k", 1)]),
            "tuples of namespace, key, value and metadata, not a tuple of 3",
        ),
        (lambda m: m.put_batch([5]), "tuples of namespace, key, value and metadata, not int"),
        (lambda m: m.put_with_embedding(("users",), "k", 1, None), "put stores a value without one"),
        (lambda m: m.search_by_embedding(("users",), [1, 2], threshold=float("nan")), "threshold must be a number"),
        (lambda m: m.get_batch([("users", "k", "more")]), "pairs of namespace and key"),
    ],
)
async def test_locus_memory_explains_invalid_arguments(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message), SyncMySQLMemory(DSN, dimension=2) as sync:
        call(sync)
    memory = MySQLMemory(DSN, dimension=2)
    with pytest.raises(InvalidInput, match=message):
        await call(memory)
    await memory.close()


async def test_a_batch_takes_puts() -> None:
    wrong: list[Any] = [(("users", "ada"), "tea", {"likes": "tea"})]
    with (
        pytest.raises(InvalidInput, match=r"takes Put\(namespace, key, value\), not tuple"),
        SyncMemoryStore(DSN) as sync,
    ):
        sync.put_batch(wrong)
    async with MemoryStore(DSN) as store:
        for call in (store.put_batch(wrong), store.write_batch(wrong, [])):
            with pytest.raises(InvalidInput, match=r"takes Put\(namespace, key, value\), not tuple"):
                await call
