"""`StrandsMemoryStore`: the contract of the framework's `MemoryStore` on every driver."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from strands import Agent
from strands.memory import MemoryManager
from strands.memory.types import MemoryStore, _has_method

from locus_mysql.errors import InvalidInput

from ...proxy import WireProxy
from .conftest import MakeMemory
from .scripted_model import ScriptedModel

pytestmark = pytest.mark.kept_tables("memories")


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Return embeddings in which `canal` and `water` are near."""
    return [[float("canal" in text or "water" in text), float("lamp" in text), 0.1] for text in texts]


async def test_memories_are_found_by_word_with_their_metadata(make_memory: MakeMemory) -> None:
    memory, other = make_memory(), make_memory()
    store: MemoryStore = memory
    assert (store.name, store.writable, store.description, store.extraction) == ("facts", True, None, None)
    await memory.add("Ada lives in Lisbon.", {"source": "chat", "n": [1, None]})
    await memory.add("The lamp blinks é\U0001f600.")
    (found,) = await other.search("Who lives in Lisbon?")
    assert (found.content, found.metadata) == ("Ada lives in Lisbon.", {"source": "chat", "n": [1, None]})
    (found,) = await other.search("lamp")
    assert (found.content, found.metadata) == ("The lamp blinks é\U0001f600.", None)
    for nothing in ("", "?!", '"', "nothing like it"):
        assert await other.search(nothing) == []


async def test_the_same_content_is_stored_once(make_memory: MakeMemory, proxy: WireProxy) -> None:
    stores = [make_memory() for _ in range(3)]
    keys = await asyncio.gather(*(store.add("Ada lives in Lisbon.") for store in stores))
    assert set(keys) == {await stores[0].add("  Ada lives in Lisbon.\n")}
    assert len(await stores[0].search("Lisbon")) == 1


async def test_stores_names_and_tenants_are_apart(make_memory: MakeMemory) -> None:
    stores = [
        make_memory("a"),
        make_memory("A"),
        make_memory("a", tenant="acme"),
        make_memory("a", namespace=("users", "ada")),
        make_memory("b", namespace=("users", "bob")),
    ]
    for number, store in enumerate(stores):
        await store.add(f"Lisbon {number}")
    for number, store in enumerate(stores):
        assert [found.content for found in await store.search("Lisbon")] == [f"Lisbon {number}"]


async def test_numbers_of_results_are_the_calls_or_the_stores(make_memory: MakeMemory) -> None:
    memory, few = make_memory(), make_memory(max_search_results=2)
    for number in range(8):
        await memory.add(f"Lisbon fact {number}")
    assert len(await memory.search("Lisbon")) == 5
    assert len(await memory.search("Lisbon", {"max_search_results": 7})) == 7
    assert len(await few.search("Lisbon")) == 2
    for bad in (0, -1):
        with pytest.raises(ValueError, match="max_search_results"):
            await memory.search("Lisbon", {"max_search_results": bad})
        with pytest.raises(ValueError, match="max_search_results"):
            make_memory(max_search_results=bad)


async def test_what_cannot_be_stored_is_refused(make_memory: MakeMemory) -> None:
    memory, closed = make_memory(), make_memory(writable=False)
    with pytest.raises(InvalidInput, match="not writable"):
        await closed.add("x")
    for bad in ("", " \n"):
        with pytest.raises(ValueError, match="must not be empty"):
            await memory.add(bad)
    with pytest.raises(InvalidInput):
        await memory.add("x", {"bad": object()})
    assert not _has_method(memory, "add_messages")


async def test_an_embed_function_finds_by_meaning(make_memory: MakeMemory) -> None:
    memory = make_memory(dims=3, embed=embed)
    await memory.add("The office is at the canal.")
    await memory.add("The lamp blinks.")
    found = await memory.search("water")
    assert found[0].content == "The office is at the canal."


async def test_an_agent_remembers_in_another_conversation(make_memory: MakeMemory) -> None:
    memory = make_memory()
    manager = MemoryManager(stores=[memory], add_tool_config=True)
    call = {"name": "add_memory", "input": {"entries": ["Ada lives in Lisbon."]}}
    model = ScriptedModel([call, "I will remember it."])
    await Agent(model, memory_manager=manager, callback_handler=None).invoke_async("I am Ada, I live in Lisbon.")
    assert [found.content for found in await make_memory().search("Lisbon")] == ["Ada lives in Lisbon."]

    model = ScriptedModel(["In Lisbon."])
    manager = MemoryManager(stores=[make_memory()])
    await Agent(model, memory_manager=manager, callback_handler=None).invoke_async("Where is Lisbon?")
    received: Any = model.received[0]
    assert "Ada lives in Lisbon." in str(received)
