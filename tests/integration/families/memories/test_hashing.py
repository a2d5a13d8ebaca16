"""The embedder without a model, under each of the three contracts."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from locus_mysql import MySQLMemory, SyncMySQLMemory
from locus_mysql.integrations.langgraph import AsyncMySQLStore, MySQLStore
from locus_mysql.memory import HashingEmbedder

from ...conftest import MakeConfig
from .conftest import Make

ADA = ("users", "ada")
FACTS = {
    "drink": "Ada drinks green tea in the morning.",
    "home": "Ada lives in Lisbon, in a flat near the river.",
    "work": "Ada repairs violins.",
}
ASKED = {"drink": "What does she like to drink?", "home": "Where does she live?", "work": "Who can repair my violin?"}


async def awaited(outcome: Any) -> Any:
    return await outcome if inspect.isawaitable(outcome) else outcome


async def test_a_store_finds_by_shared_pieces_of_words(make_memories: Make) -> None:
    embedder = HashingEmbedder(128)
    store = make_memories(dims=embedder.dims, embed=embedder, model=embedder.model)
    for key, fact in FACTS.items():
        await store.put(ADA, key, fact)
    for key, query in ASKED.items():
        assert [hit.item.key for hit in await store.search(ADA, query=query, limit=1)] == [key]


@pytest.mark.parametrize("kind", [MySQLMemory, SyncMySQLMemory])
async def test_hashing_embedder_works_in_locus_stores(kind: Any, make_config: MakeConfig) -> None:
    memory = kind(make_config(driver="pymysql"), embedder=HashingEmbedder())
    for key, fact in FACTS.items():
        await awaited(memory.put(ADA, key, fact))
    for key, query in ASKED.items():
        found = await awaited(memory.search(ADA, query, limit=1))
        assert [item.key for item in found] == [key]
    assert memory.capabilities.embedding_dimension == 256
    await awaited(memory.close())


@pytest.mark.parametrize("kind", [AsyncMySQLStore, MySQLStore])
async def test_hashing_embedder_works_in_langgraph_stores(kind: Any, make_config: MakeConfig) -> None:
    embedder = HashingEmbedder()
    index = {"dims": embedder.dims, "embed": embedder, "fields": ["text"]}
    store = kind(make_config(driver="pymysql"), index=index)
    for key, fact in FACTS.items():
        await store.aput(ADA, key, {"text": fact})
    for key, query in ASKED.items():
        assert [item.key for item in await store.asearch(ADA, query=query, limit=1)] == [key]
    await awaited(store.close())
