"""The contract of ADK's memory service: search by word as in ADK's in-memory service, and by word and meaning."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from locus_mysql.errors import InvalidInput
from locus_mysql.memory import HashingEmbedder

from .conftest import MakeMemory

pytestmark = pytest.mark.kept_tables  # new schemas: full-text indexes without rows of other tests

ADA = {"app_name": "shop", "user_id": "ada"}


def said(event_id: str, text: str, at: float = 1_763_900_000.0, author: str = "user") -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(id=event_id, author=author, invocation_id="i", content=content, timestamp=at)


def session(session_id: str, *events: Event, **names: str) -> Session:
    return Session(id=session_id, **{**ADA, **names}, events=list(events))


async def found(service: BaseMemoryService, query: str, **names: str) -> list[Any]:
    response = await service.search_memory(**{**ADA, **names}, query=query)
    parts = [(one.id, one.author, one.timestamp, one.content) for one in response.memories]
    return sorted(parts, key=repr)


QUERIES = ("Lisbon", "lisbon weather", "tea", "parcel", "nothing known", "", "?!", 'her "green tea" parcel')


async def outcomes(service: BaseMemoryService) -> list[Any]:
    """Use every feature of the in-memory service, and return the results."""
    seen: list[Any] = []

    async def look() -> None:
        for query in QUERIES:
            seen.append((query, await found(service, query)))
        for names in ({"user_id": "Ada"}, {"app_name": "SHOP"}, {"user_id": ""}, {"user_id": "~"}):
            seen.append((names, await found(service, "Lisbon", **names)))

    lisbon, tea = said("e1", "Ada lives in Lisbon."), said("e2", "She drinks green tea.", 1_763_900_001.5, "agent")
    parcel, weather = said("e3", "Where is the parcel?"), said("e4", "The weather in Lisbon is fine.")
    call = Event(id="e5", author="agent", content=types.Content(role="model", parts=[types.Part()]))
    await service.add_session_to_memory(session("s1", lisbon, tea, call, Event(id="e6", author="agent")))
    await service.add_session_to_memory(session("s1", lisbon, tea))
    await look()
    await service.add_events_to_memory(**ADA, session_id="s1", events=[parcel, tea])
    await service.add_events_to_memory(**ADA, session_id="s/2", events=[weather])
    await service.add_events_to_memory(**ADA, events=[said("e7", "A parcel without a session.")])
    for names in ({"user_id": "Ada"}, {"app_name": "SHOP"}, {"user_id": ""}):
        await service.add_session_to_memory(session("s1", said("e1", "Another one lives in Lisbon."), **names))
    await look()
    await service.add_session_to_memory(session("s1", lisbon, parcel))  # replaces the session's events
    await look()
    await service.delete_memory(**ADA, memory_id="e1")
    await service.delete_memory(**ADA, memory_id="unknown")
    await service.delete_memory(**ADA)
    await service.add_session_to_memory(session("s1", lisbon, parcel))
    await service.add_events_to_memory(**ADA, session_id="s3", events=[lisbon, said("unknown", "Lisbon again")])
    await look()
    return seen


async def test_it_finds_what_adks_service_in_memory_finds(make_memory: MakeMemory) -> None:
    mine, reference = await outcomes(make_memory()), await outcomes(InMemoryMemoryService())
    for number, (ours, theirs) in enumerate(zip(mine, reference, strict=True)):
        assert ours == theirs, f"outcome {number}"


async def test_the_best_come_first_and_no_more_than_wanted(make_memory: MakeMemory) -> None:
    memory = make_memory(limit=3)
    events = [said(f"e{number}", f"parcel number {number}") for number in range(20)]
    await memory.add_events_to_memory(**ADA, session_id="s", events=[*events, said("best", "The red parcel of Bonn")])
    response = await memory.search_memory(**ADA, query="Where is my red parcel from Bonn?")
    assert len(response.memories) == 3
    assert response.memories[0].id == "best"


async def test_memories_are_found_by_meaning(make_memory: MakeMemory) -> None:
    embedder = HashingEmbedder()
    texts: list[str] = []

    async def embed(batch: Sequence[str]) -> Any:
        texts.extend(batch)
        return embedder(batch)

    memory = make_memory(dims=embedder.dims, embed=embed)
    drinks, home = said("e1", "She is drinking green tea."), said("e2", "A house in Porto.")
    await memory.add_session_to_memory(session("s1", drinks, home))
    await memory.add_session_to_memory(session("s1", drinks, home))
    assert sorted(texts) == ["A house in Porto.", "She is drinking green tea."]  # each text is embedded once
    response = await memory.search_memory(**ADA, query="drinks?")  # no memory contains this word
    assert response.memories[0].id == "e1"


async def test_memories_are_added_directly(make_memory: MakeMemory) -> None:
    memory = make_memory()
    content = types.Content(role="user", parts=[types.Part(text="Ada likes blue.")])
    entry = MemoryEntry(content=content, author="user", timestamp="2026-01-01", custom_metadata={"kind": "colour"})
    await memory.add_memory(**ADA, memories=[entry, entry], custom_metadata={"kind": "any", "by": "hand"})
    first, second = (await memory.search_memory(**ADA, query="blue")).memories
    assert first.id != second.id
    for one in (first, second):
        assert one.model_copy(update={"id": None}) == entry.model_copy(
            update={"custom_metadata": {"kind": "colour", "by": "hand"}}
        )
    await memory.add_memory(**ADA, memories=[entry.model_copy(update={"id": "m1"})] * 2)
    await memory.delete_memory(**ADA, memory_id=first.id)
    await memory.delete_memory(**ADA, memory_id=second.id)
    assert [one.id for one in (await memory.search_memory(**ADA, query="blue")).memories] == ["m1"]
    await memory.delete_memory(**ADA, memory_id="m1")
    assert await found(memory, "blue") == []
    await memory.add_memory(**ADA, memories=[entry.model_copy(update={"id": "m1"})])  # adds a memory with the same id
    assert [one.id for one in (await memory.search_memory(**ADA, query="blue")).memories] == ["m1"]
    assert await found(make_memory(tenant="acme"), "blue") == []


async def test_processes_that_add_one_session_store_each_event_once(make_memory: MakeMemory) -> None:
    services = [make_memory() for _ in range(4)]
    events = [said(f"e{number}", f"parcel {number}") for number in range(8)]
    await asyncio.gather(*(one.add_session_to_memory(session("s", *events)) for one in services))
    response = await services[0].search_memory(**ADA, query="parcel")
    assert sorted(one.id or "" for one in response.memories) == [event.id for event in events]


async def test_what_cannot_be_stored_is_refused(make_memory: MakeMemory) -> None:
    memory = make_memory()
    for bad in (said("\0", "text"), said("e", "\ud800"), said("e" * 1_001, "text")):
        with pytest.raises(InvalidInput):
            await memory.add_events_to_memory(**ADA, events=[said("good", "text"), bad])
    assert await found(memory, "text") == []


async def test_one_event_with_an_impossible_time_does_not_hide_the_others(make_memory: MakeMemory) -> None:
    memory = make_memory()
    times = (1_763_900_000_000.0, -1e18, 1e300, 1_763_900_000.0)  # the first is in milliseconds, not seconds
    events = [said(f"e{number}", f"parcel {number}", at) for number, at in enumerate(times)]
    await memory.add_session_to_memory(session("s", *events))
    response = await memory.search_memory(**ADA, query="parcel")
    assert sorted(one.id or "" for one in response.memories) == [event.id for event in events]
    stamped = [one.id for one in response.memories if one.timestamp is not None]
    assert stamped == ["e3"]


async def test_a_deletion_finds_a_memory_that_was_added_while_it_looked(
    make_memory: MakeMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleting, adding = make_memory(), make_memory()
    event = said("e1", "Ada lives in Lisbon.")
    await adding.add_events_to_memory(**ADA, session_id="s1", events=[event])
    run, added = deleting._run_step, asyncio.Event()

    async def run_step(step: Any) -> Any:
        result = await run(step)
        if not added.is_set():  # after the deletion has searched for memories
            added.set()
            await adding.add_events_to_memory(**ADA, session_id="s2", events=[event])
        return result

    monkeypatch.setattr(deleting, "_run_step", run_step)
    await deleting.delete_memory(**ADA, memory_id="e1")
    assert await found(adding, "Lisbon") == []


async def test_a_process_that_is_killed_while_it_adds_brings_no_deleted_memory_back(
    make_memory: MakeMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    adding, deleting = make_memory(), make_memory()
    event = said("e1", "Ada lives in Lisbon.")
    await deleting.add_events_to_memory(**ADA, session_id="s1", events=[event])
    run, steps = adding._run_step, itertools.count(1)

    async def run_step(step: Any) -> Any:
        number = next(steps)
        if number == 4:  # after the write
            raise ConnectionAbortedError("killed")
        result = await run(step)
        if number == 2:  # the memory is not deleted yet; then it is written
            await deleting.delete_memory(**ADA, memory_id="e1")
        return result

    monkeypatch.setattr(adding, "_run_step", run_step)
    with pytest.raises(ConnectionAbortedError):
        await adding.add_session_to_memory(session("s2", event))
    assert await found(deleting, "Lisbon") == []


async def test_ids_of_memories_compare_by_code_point(make_memory: MakeMemory) -> None:
    memory = make_memory()
    ids = ["a", "A", "a ", "\u00e1", "a\u0301", '"a"', "%", "a/b", "1"]
    await memory.add_events_to_memory(**ADA, session_id="s", events=[said(one, "a parcel") for one in ids])
    for number, one in enumerate(ids):
        await memory.delete_memory(**ADA, memory_id=one)
        left = [entry.id for entry in (await memory.search_memory(**ADA, query="parcel")).memories]
        assert sorted(map(str, left)) == sorted(ids[number + 1 :])


async def test_hostile_queries_and_empty_memories(make_memory: MakeMemory) -> None:
    memory = make_memory()
    await memory.add_events_to_memory(**ADA, session_id="s", events=[said("e", "a parcel")])
    await memory.add_memory(
        **ADA, memories=[MemoryEntry(content=types.Content(parts=[types.Part()])), MemoryEntry(content=types.Content())]
    )
    for query in (
        "@distance +(",
        "parcel " * 200_000,
        " ".join(f"w{n}" for n in range(20_000)),
        "a\0parcel",
        "%s %(x)s",
    ):
        await memory.search_memory(**ADA, query=query)
