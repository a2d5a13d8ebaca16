"""Locus' store of long-term memory: its contract, a graph that uses it, and Locus' memory manager over it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

import pytest
from locus.memory.manager import LLMMemoryManager, Memory, MemoryType
from locus.memory.store import BaseStore, StoreCapabilityError, StoreItem
from locus.multiagent.graph import END, StateGraph
from locus.rag.embeddings.base import BaseEmbedding, EmbeddingConfig, EmbeddingResult

from locus_mysql import MySQLMemory, SyncMySQLMemory
from locus_mysql.errors import ConfigError, InvalidInput

from ...conftest import EACH_WAY, MakeConfig, Opening, parts

pytestmark = pytest.mark.kept_tables("memories")

Make: TypeAlias = Callable[..., Any]
ADA = ("users", "ada")


class LetterEmbedding(BaseEmbedding):
    """An embedder that counts letters, in batches of two texts."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.queries: list[str] = []

    @property
    def config(self) -> EmbeddingConfig:
        return EmbeddingConfig(dimension=26, batch_size=2)

    async def embed(self, text: str) -> EmbeddingResult:
        counts = [text.lower().count(chr(97 + n)) + 0.01 for n in range(26)]
        return EmbeddingResult(embedding=counts, text=text, model="letters")

    async def embed_batch(self, texts: list[str]) -> list[EmbeddingResult]:
        self.batches.append(texts)
        return [await self.embed(text) for text in texts]

    async def embed_query(self, query: str) -> EmbeddingResult:
        self.queries.append(query)
        return await self.embed(query)


@pytest.fixture
def make_memory(opening: Opening, side: str) -> Make:
    return partial(opening, side, (MySQLMemory, SyncMySQLMemory))


@pytest.fixture
def memory(make_memory: Make) -> Any:
    return make_memory(dimension=2)


@pytest.mark.parametrize("side", EACH_WAY)
async def test_items_that_were_put_are_read_back(memory: Any) -> None:
    await memory.put(ADA, "k", {"a": [1, None]}, {"kind": "fact"})
    assert await memory.get(ADA, "k") == {"a": [1, None]}
    assert await memory.get(ADA, "none") is None
    item = await memory.get_item(ADA, "k")
    assert isinstance(item, StoreItem)
    assert (item.namespace, item.key, item.metadata, item.version) == (ADA, "k", {"kind": "fact"}, 1)
    assert item.created_at.utcoffset() == timedelta(0)
    assert StoreItem.from_dict(item.to_dict()) == item
    await memory.put(ADA, "k", 2)
    assert (await memory.get_item(ADA, "k")).version == 2
    assert await memory.exists(ADA, "k")
    assert await memory.list_keys(ADA) == ["k"]
    assert await memory.delete(ADA, "k")
    assert not await memory.delete(ADA, "k")
    assert await memory.get_item(ADA, "k") is None


async def test_the_checkpointer_has_every_capability(make_memory: Make, side: str) -> None:
    capabilities = make_memory(embedder=LetterEmbedding()).store.capabilities
    assert capabilities.embedding_dimension == 26
    assert all(vars(capabilities).values())
    assert not make_memory().store.capabilities.semantic_search
    assert isinstance(make_memory().store, BaseStore) is parts(side)[1]
    with pytest.raises(ConfigError, match="26 dimensions, not 3"):
        make_memory(embedder=LetterEmbedding(), dimension=3)


async def test_search_is_by_meaning_with_an_embedder(make_memory: Make) -> None:
    embedder = LetterEmbedding()
    memory = make_memory(embedder=embedder)
    await memory.put_batch([(ADA, word, {"text": word}, None) for word in ("cat", "dog", "zebra")])
    assert embedder.batches == [["cat", "dog"], ["zebra"]]
    assert [item.key for item in await memory.search(ADA, "tac", limit=1)] == ["cat"]
    assert embedder.queries == ["tac"]
    assert len(await memory.get_embedding(ADA, "cat")) == 26
    found = await memory.search_many([ADA, ("none",)], "god", limit=1)
    assert [[item.key for item in items] for items in found] == [["dog"], []]


async def test_search_by_embedding(memory: Any) -> None:
    await memory.put_with_embedding(ADA, "east", "e", [1.0, 0.0], {"kind": "a", "n": 1})
    await memory.put_with_embedding(ADA, "north", "n", [0.0, 2.0], {"kind": "b", "n": 10})
    await memory.put_with_embedding(ADA, "west", "w", [-1.0, 0.0], {"kind": "a", "n": 9})
    await memory.put(ADA, "plain", "p")
    found = await memory.search_by_embedding(ADA, [1.0, 0.0])
    assert [(hit.item.key, hit.score, hit.distance) for hit in found] == [
        ("east", 1.0, 0.0),
        ("north", 0.5, 1.0),
        ("west", 0.0, 2.0),
    ]
    assert [hit.item.key for hit in await memory.search_by_embedding(ADA, [1.0, 0.0], threshold=0.4)] == [
        "east",
        "north",
    ]
    assert [hit.item.key for hit in await memory.search_by_embedding(ADA, [1.0, 0.0], limit=1)] == ["east"]
    for metadata_filter, keys in (({"kind": "a"}, ["east", "west"]), ({"n": {"$gte": 9}}, ["north", "west"])):
        hits = await memory.search_by_embedding(ADA, [1.0, 0.0], metadata_filter=metadata_filter)
        assert [hit.item.key for hit in hits] == keys
    assert await memory.get_embedding(ADA, "north") == [0.0, 2.0]
    assert await memory.get_embedding(ADA, "plain") is None
    assert await memory.search_by_embedding(("users",), [1.0, 0.0]) == []
    with pytest.raises(InvalidInput, match="has 3 dimensions; the store's have 2"):
        await memory.put_with_embedding(ADA, "wide", 1, [1.0, 2.0, 3.0])


async def test_the_memory_manager_keeps_and_recalls(make_config: MakeConfig) -> None:
    async with MySQLMemory(make_config(), embedder=LetterEmbedding()) as store, MySQLMemory(make_config()) as plain:
        for memory in (store, plain):
            manager = LLMMemoryManager(store=memory, namespace_prefix=("users", "ada", str(memory is plain)))
            facts = [
                Memory(MemoryType.USER, f"fact-{n}", text) for n, text in enumerate(["drinks green tea", "has a dog"])
            ]
            await manager.save(facts)
            await manager.save([Memory(MemoryType.USER, "fact-0", "drinks black tea")])
            recalled = await manager.retrieve(query="black tea")
            assert recalled[0].content == "drinks black tea"
            assert {fact.content for fact in recalled} == {"drinks black tea", "has a dog"}
            assert {fact.key for fact in await manager.retrieve()} == {"fact-0", "fact-1"}
            small = LLMMemoryManager(store=memory, namespace_prefix=manager.namespace_prefix, max_memories=1)
            await small.save([Memory(MemoryType.USER, "fact-2", "moved to Bonn")])
            assert [fact.key for fact in await small.retrieve()] == ["fact-2"]


async def test_a_graph_is_compiled_with_the_store(make_config: MakeConfig) -> None:
    async with MySQLMemory(make_config()) as store:
        graph = StateGraph()

        async def remember(inputs: dict[str, Any]) -> dict[str, Any]:
            memory: BaseStore = graph.config.store
            await memory.put(ADA, "said", {"text": inputs["said"]})
            return {"found": [item.value["text"] for item in await memory.search(ADA, "tea")]}

        graph.add_node("remember", remember)
        graph.set_entry_point("remember")
        graph.add_edge("remember", END)
        result = await graph.compile(store=store).execute({"said": "I like green tea"})
        assert result.success
        assert result.final_state["found"] == ["I like green tea"]


async def test_without_dimensions_embeddings_are_refused_as_the_contract_requires(make_config: MakeConfig) -> None:
    async with MySQLMemory(make_config()) as memory:
        assert not memory.capabilities.semantic_search
        for refused in (
            memory.put_with_embedding(ADA, "k", 1, [1.0, 0.0]),
            memory.search_by_embedding(ADA, [1.0, 0.0]),
        ):
            with pytest.raises(StoreCapabilityError, match="does not support 'semantic_search'") as raised:
                await refused
            assert (raised.value.capability, raised.value.store_class) == ("semantic_search", "MySQLMemory")
            assert isinstance(raised.value, InvalidInput)
