"""Long-term memory: items, the memories of ADK, those of Strands, and the values of py-key-value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai.types import Content, Part

from locus_mysql.integrations.google_adk import AdkMemoryService
from locus_mysql.integrations.py_key_value import KeyValueStore
from locus_mysql.integrations.strands import StrandsMemoryStore
from locus_mysql.memory import MemoryStore, Put, SyncMemoryStore

from .workload import Call, Stores, Workload, taken

PLACE = ("users", "ada")


class Memories(Workload):
    """Items of two namespaces."""

    title, family = "long-term memory", "memories"
    stores = Stores(MemoryStore, SyncMemoryStore)

    def calls(self) -> Sequence[Call]:
        batch = [Put((*PLACE, "food"), f"{number}", {"n": number}) for number in range(20)]
        return [
            lambda: self.store.put(PLACE, "drink", {"text": "tea"}),
            lambda: self.store.put(PLACE, "drink", {"text": "coffee"}, if_version=1),
            lambda: self.store.put_batch(batch),
            lambda: self.store.get(PLACE, "drink"),
            lambda: self.store.write_batch([Put(PLACE, "town", {"text": "Lisbon"})], [((*PLACE, "food"), "0")]),
            lambda: taken(
                self.store.search(PLACE, query="Lisbon"), lambda found: [getattr(one, "key", None) for one in found]
            ),
            lambda: self.store.delete(PLACE, "drink"),
            lambda: self.store.put(("users", "bob"), "a", {"n": 1}),
            lambda: self.store.clear_namespace(("users", "bob")),
        ]

    async def stored(self) -> Any:
        namespaces = [PLACE, (*PLACE, "food"), ("users", "bob")]
        return [
            (namespace, key, await self.store.get(namespace, key))
            for namespace in namespaces
            for key in sorted(await self.store.list_keys(namespace))
        ]


ADA = {"app_name": "shop", "user_id": "ada"}


def _said(event_id: str, text: str) -> Event:
    content = Content(role="user", parts=[Part(text=text)])
    return Event(id=event_id, author="user", invocation_id="i", content=content, timestamp=1_763_900_000.0)


class AdkMemories(Workload):
    """The memory service of Google ADK."""

    title, family = "Google ADK: memories", "memories"
    stores = Stores(AdkMemoryService)

    def calls(self) -> Sequence[Call]:
        lisbon, tea = _said("e1", "Ada lives in Lisbon."), _said("e2", "She drinks green tea.")
        parcel = _said("e3", "Where is the parcel?")
        return [
            lambda: self.store.add_session_to_memory(Session(id="s1", **ADA, events=[lisbon, tea])),
            lambda: self.store.add_events_to_memory(**ADA, session_id="s1", events=[parcel, tea]),
            lambda: self._found("tea"),
            lambda: self.store.add_session_to_memory(Session(id="s2", **ADA, events=[_said("e4", "Lisbon again")])),
            lambda: self.store.delete_memory(**ADA, memory_id="e1"),
            lambda: self.store.add_session_to_memory(Session(id="s1", **ADA, events=[tea])),
        ]

    async def stored(self) -> Any:
        return await self._found("Lisbon tea parcel again")

    async def _found(self, query: str) -> Any:
        found = await self.store.search_memory(**ADA, query=query)
        return sorted((one.id, one.content.parts[0].text) for one in found.memories)


class StrandsMemories(Workload):
    """The memory store of Strands Agents."""

    title, family = "Strands Agents: memories", "memories"
    stores = Stores(lambda config: StrandsMemoryStore(config, name="facts"))

    def calls(self) -> Sequence[Call]:
        return [
            lambda: self.store.add("Ada lives in Lisbon.", {"source": "chat"}),
            lambda: self.store.add("The lamp blinks."),
            lambda: self.store.add(" Ada lives in Lisbon.\n", {"source": "again"}),
            lambda: self._found("Lisbon"),
        ]

    async def stored(self) -> Any:
        return await self._found("Lisbon lamp")

    async def _found(self, query: str) -> Any:
        return sorted((one.content, repr(one.metadata)) for one in await self.store.search(query))


class KeyValues(Workload):
    """Values of py-key-value in two collections, one under a name that is stored as its digest."""

    title, family = "py-key-value: values", "memories"
    stores = Stores(KeyValueStore)

    def calls(self) -> Sequence[Call]:
        many = [f"{number}" for number in range(20)]
        return [
            lambda: self.store.put("ada", {"token": "t-1"}, ttl=3_600),
            lambda: self.store.put("ada", {"token": "t-2"}),
            lambda: self.store.put_many(many, [{"n": one} for one in many], collection="numbers " * 200),
            lambda: self.store.ttl("ada"),
            lambda: self.store.delete_many(many[:3], collection="numbers " * 200),
            lambda: self.store.put("gone", {"n": 1}, collection="other"),
            lambda: self.store.destroy_collection("other"),
            lambda: self.store.get_many(["ada", "bob"]),
        ]

    async def stored(self) -> Any:
        names = sorted(await self.store.collections())
        keys = [(name, sorted(await self.store.keys(name))) for name in names]
        return [(name, key, await self.store.get(key, collection=name)) for name, some in keys for key in some]
