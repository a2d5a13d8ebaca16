"""What the stores of all frameworks promise alike, on every driver: what is saved is loaded, listed, kept apart,
deleted and expires. Their own suites and contracts are in the folders beside this file."""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pytest
from google.adk.sessions.session import Session as AdkSession
from langgraph.checkpoint.base import empty_checkpoint
from locus.core.messages import Message
from locus.core.state import AgentState
from pydantic_ai import Conversation, ModelRequest, UserPromptPart
from strands.types.session import Session, SessionAgent, SessionType

from locus_mysql import Database, MySQLCheckpointer, MySQLConfig, MySQLMemory, SyncMySQLCheckpointer, SyncMySQLMemory
from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore
from locus_mysql.integrations.google_adk import AdkSessionService
from locus_mysql.integrations.langgraph import AsyncMySQLSaver, AsyncMySQLStore, MySQLSaver, MySQLStore
from locus_mysql.integrations.memu import AsyncMemuDatabase, AsyncRecallDatabase, MemuDatabase, RecallDatabase
from locus_mysql.integrations.openai_agents import OpenAISession
from locus_mysql.integrations.py_key_value import KeyValueStore
from locus_mysql.integrations.pydantic_ai import PydanticConversationStore
from locus_mysql.integrations.strands import StrandsSessionRepository, StrandsStorage
from locus_mysql.transcripts import TranscriptStore

from ...either_side import AnyStore
from ..conftest import EVERY_ASYNC, EVERY_SYNC, Opening

pytestmark = pytest.mark.kept_tables("transcripts", "dicts", "graphs", "memories", "agents")

#: Names that a database might take for each other, for a pattern, a path or SQL.
NAMES = (
    "a",
    "A",
    "a ",
    "é",
    "e\u0301",
    "%",
    "_",
    "*",
    "a/b",
    "a/b/c",
    "..",
    "'; DROP TABLE x; --",
    "\U0001f600",
    "x" * 200,
)


class Kind(NamedTuple):
    """A framework's store.

    Args:
        sides: Its class on each side.
        save: Saves a text under a name.
        load: Returns the text under a name; None without one.
        names: Returns all names.
        delete: Deletes a name.
        table: The table whose rows expire; None if they never do.
        names_left_out: The names that its framework takes for others.
    """

    sides: Mapping[str, Callable[[MySQLConfig], Any]]
    save: Callable[[Any, str, str], Awaitable[Any]]
    load: Callable[[Any, str], Awaitable[str | None]]
    names: Callable[[Any], Awaitable[Sequence[str]]]
    delete: Callable[[Any, str], Awaitable[Any]]
    table: str | None = "locus_transcripts"
    names_left_out: frozenset[str] = frozenset()


def claude() -> Kind:
    def key(name: str) -> Any:
        return {"project_key": "p", "session_id": name}

    async def load(store: Any, name: str) -> str | None:
        entries = await store.load(key(name))
        return None if entries is None else "".join(entry["text"] for entry in entries)

    async def names(store: Any) -> list[str]:
        return [one["session_id"] for one in await store.list_sessions("p")]

    return Kind(
        {"async": ClaudeSessionStore},
        lambda store, name, text: store.append(key(name), [{"type": "n", "text": text}]),
        load,
        names,
        lambda store, name: store.delete(key(name)),
    )


def openai() -> Kind:
    class Sessions:
        """The sessions of one database."""

        def __init__(self, config: MySQLConfig) -> None:
            self.database = Database(config)

        def of(self, name: str) -> OpenAISession:
            return OpenAISession(name, self.database)

        async def close(self) -> None:
            await self.database.aclose()

    async def load(store: Any, name: str) -> str | None:
        return "".join(item["content"] for item in await store.store.of(name).get_items()) or None

    async def names(store: Any) -> list[str]:
        return [one.key.name for one in await TranscriptStore(store.database).list_transcripts("openai-agents")]

    return Kind(
        {"async": Sessions},
        lambda store, name, text: store.store.of(name).add_items([{"role": "user", "content": text}]),
        load,
        names,
        lambda store, name: store.store.of(name).clear_session(),
    )


def pydantic_ai() -> Kind:
    def asked(text: str) -> ModelRequest:
        return ModelRequest(parts=[UserPromptPart(content=text)])

    async def load(store: Any, name: str) -> str | None:
        loaded = await store.load(name)
        return None if loaded is None else str(loaded.messages[0].parts[0].content)

    async def names(store: Any) -> list[str]:
        return [one.conversation_id for one in await store.list_conversations()]

    return Kind(
        {"async": PydanticConversationStore},
        lambda store, name, text: store.save(Conversation(conversation_id=name, messages=[asked(text)])),
        load,
        names,
        lambda store, name: store.delete(name),
    )


def adk() -> Kind:
    ada = {"app_name": "shop", "user_id": "ada"}

    async def load(store: Any, name: str) -> str | None:
        found: AdkSession | None = await store.get_session(**ada, session_id=name)
        return None if found is None else found.state["text"]

    async def names(store: Any) -> list[str]:
        return [one.id for one in (await store.list_sessions(**ada)).sessions]

    return Kind(
        {"async": AdkSessionService},
        lambda store, name, text: store.create_session(**ada, session_id=name, state={"text": text}),
        load,
        names,
        lambda store, name: store.delete_session(**ada, session_id=name),
        names_left_out=frozenset({"a "}),
    )


def strands_sessions() -> Kind:
    async def save(store: Any, name: str, text: str) -> None:
        await store.create_session(Session(name, SessionType.AGENT))
        await store.create_agent(name, SessionAgent("agent", {"text": text}, {}))

    async def load(store: Any, name: str) -> str | None:
        agent = await store.read_agent(name, "agent")
        return None if agent is None else agent.state["text"]

    async def names(store: Any) -> list[str]:
        async with TranscriptStore(store.config) as transcripts:
            return [one.key.name for one in await transcripts.list_transcripts("strands")]

    return Kind({"sync": StrandsSessionRepository}, save, load, names, lambda store, name: store.delete_session(name))


def strands_storage() -> Kind:
    async def load(store: Any, name: str) -> str | None:
        data = await store.read(name)
        return None if data is None else data.decode()

    return Kind(
        {"async": StrandsStorage},
        lambda store, name, text: store.write(name, text.encode()),
        load,
        lambda store: store.list(),
        lambda store, name: store.delete(name),
        "locus_store_threads",
        frozenset({".."}),
    )


def langgraph_saver() -> Kind:
    def config(name: str) -> Any:
        return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}

    async def save(store: Any, name: str, text: str) -> None:
        checkpoint = {**empty_checkpoint(), "channel_values": {"text": text}, "channel_versions": {"text": "1"}}
        await store.aput(config(name), checkpoint, {}, {"text": "1"})

    async def load(store: Any, name: str) -> str | None:
        found = await store.aget_tuple(config(name))
        return None if found is None else found.checkpoint["channel_values"]["text"]

    async def names(store: Any) -> list[str]:
        return [found.config["configurable"]["thread_id"] async for found in store.store.alist(None)]

    sides = {"async": AsyncMySQLSaver, "sync": MySQLSaver}
    return Kind(sides, save, load, names, lambda store, name: store.adelete_thread(name), "locus_graph_threads")


def langgraph_store() -> Kind:
    async def load(store: Any, name: str) -> str | None:
        item = await store.aget(("n",), name)
        return None if item is None else item.value["text"]

    async def names(store: Any) -> list[str]:
        return [item.key for item in await store.asearch(("n",), limit=100)]

    def making(kind: Any) -> Callable[[MySQLConfig], Any]:
        return lambda config: kind(config, ttl=None if config.ttl_s is None else {"default_ttl": config.ttl_s / 60})

    return Kind(
        {"async": making(AsyncMySQLStore), "sync": making(MySQLStore)},
        lambda store, name, text: store.aput(("n",), name, {"text": text}),
        load,
        names,
        lambda store, name: store.adelete(("n",), name),
        "locus_memory_items",
    )


def key_value() -> Kind:
    async def load(store: Any, name: str) -> str | None:
        value = await store.get(name)
        return None if value is None else value["text"]

    return Kind(
        {"async": KeyValueStore},
        lambda store, name, text: store.put(name, {"text": text}),
        load,
        lambda store: store.keys(),
        lambda store, name: store.delete(name),
        "locus_memory_items",
    )


def locus_checkpointer() -> Kind:
    async def load(store: Any, name: str) -> str | None:
        state = await store.load(name)
        return None if state is None else state.messages[0].content

    return Kind(
        {"async": MySQLCheckpointer, "sync": SyncMySQLCheckpointer},
        lambda store, name, text: store.save(AgentState().with_message(Message.user(text)), name),
        load,
        lambda store: store.list_threads(limit=100),
        lambda store, name: store.delete(name),
        "locus_threads",
    )


def locus_memory() -> Kind:
    return Kind(
        {"async": MySQLMemory, "sync": SyncMySQLMemory},
        lambda store, name, text: store.put(("n",), name, text),
        lambda store, name: store.get(("n",), name),
        lambda store: store.list_keys(("n",)),
        lambda store, name: store.delete(("n",), name),
        "locus_memory_items",
    )


def memu() -> Kind:
    def items(store: Any) -> Any:
        return AnyStore(store.store.memory_item_repo)

    async def load(store: Any, name: str) -> str | None:
        found = await items(store).list_items({"user_id": name})
        return next((item.summary for item in found.values()), None)

    async def names(store: Any) -> list[str]:
        return [item.user_id for item in (await items(store).list_items()).values()]

    return Kind(
        {"async": AsyncMemuDatabase, "sync": MemuDatabase},
        lambda store, name, text: items(store).create_item(
            memory_type="event", summary=text, embedding=None, user_data={"user_id": name}
        ),
        load,
        names,
        lambda store, name: items(store).clear_items({"user_id": name}),
        None,
    )


def memu_recall() -> Kind:
    def files(store: Any) -> Any:
        return AnyStore(store.store.recall_file_repo)

    async def load(store: Any, name: str) -> str | None:
        found = await files(store).list_recall_files({"name": name})
        return next((file.description for file in found.values()), None)

    async def names(store: Any) -> list[str]:
        return [file.name for file in (await files(store).list_recall_files()).values()]

    return Kind(
        {"async": AsyncRecallDatabase, "sync": RecallDatabase},
        lambda store, name, text: files(store).get_or_create_recall_file(
            name=name, description=text, embedding=[], user_data={}
        ),
        load,
        names,
        lambda store, name: files(store).clear_recall_files({"name": name}),
        None,
    )


def crew_memory() -> Kind:
    from locus_mysql.integrations.crewai import CrewMemoryStorage

    async def load(store: Any, name: str) -> str | None:
        record = await store.get_record(name)
        return None if record is None else record.content

    async def names(store: Any) -> list[str]:
        return [record.id for record in await store.list_records()]

    return Kind(
        {"sync": CrewMemoryStorage},
        save_record,
        load,
        names,
        lambda store, name: store.delete(record_ids=[name]),
        "locus_memory_items",
    )


def save_record(store: Any, name: str, text: str) -> Any:
    from crewai.memory.types import MemoryRecord

    return store.save([MemoryRecord(id=name, content=text)])


#: CrewAI cannot be installed beside the other frameworks; see `crewai/test_in_its_environment.py`.
HAS_CREWAI = importlib.util.find_spec("crewai") is not None

KINDS = {
    make.__name__: make()
    for make in (
        *(claude, openai, pydantic_ai, adk, strands_sessions, strands_storage, langgraph_saver, langgraph_store),
        *(key_value, locus_checkpointer, locus_memory, memu, memu_recall),
        *([crew_memory] if HAS_CREWAI else []),
    )
}

#: Each kind on each driver of its sides; in short runs on one driver of each side, chosen by `rotated`.
EACH = {
    f"{name}_{way}-{side}": (kind, side)
    for name, kind in KINDS.items()
    for way, sides in (("async", EVERY_ASYNC), ("sync", EVERY_SYNC))
    for side in sides
    if way in kind.sides
}

EXPIRING = {name: (kind, side) for name, (kind, side) in EACH.items() if kind.table is not None}

Open = Callable[..., Any]


@pytest.fixture(params=[*EACH.values()], ids=[*EACH])
def kind_and_side(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def kind(kind_and_side: tuple[Kind, str]) -> Kind:
    return kind_and_side[0]


@pytest.fixture
def open_store(kind_and_side: tuple[Kind, str], opening: Opening) -> Open:
    """Return ``open_store(**options)``: another store, like that of another process; its methods are awaited."""
    kind, side = kind_and_side
    return partial(opening, side, (kind.sides.get("async"), kind.sides.get("sync")))


async def test_names_and_tenants_are_kept_apart(kind: Kind, open_store: Open) -> None:
    names = [name for name in NAMES if name not in kind.names_left_out]
    store, other, acme = open_store(), open_store(), open_store(tenant="acme")
    assert [await kind.load(store, name) for name in names] == [None] * len(names)
    for number, name in enumerate(names):
        await kind.save(store, name, f"text {number} é\U0001f600")
    assert [await kind.load(other, name) for name in names] == [f"text {n} é\U0001f600" for n in range(len(names))]
    assert sorted(await kind.names(other)) == sorted(names)
    assert [await kind.load(acme, name) for name in names] == [None] * len(names)
    assert list(await kind.names(acme)) == []
    await kind.save(acme, "a", "of another tenant")
    await kind.delete(other, "a")
    for reader in (store, other, open_store()):
        assert [await kind.load(reader, name) is None for name in names] == [name == "a" for name in names]
        assert sorted(await kind.names(reader)) == sorted(names[1:])
    assert await kind.load(acme, "a") == "of another tenant"
    await kind.save(other, "a", "again")
    assert await kind.load(store, "a") == "again"


@pytest.mark.parametrize("kind_and_side", [*EXPIRING.values()], ids=[*EXPIRING])
async def test_what_expired_is_gone_and_a_new_one_begins_anew(
    kind: Kind, open_store: Open, run_sql: Callable[..., Any], database: str
) -> None:
    store, other = open_store(ttl_s=3_600), open_store(ttl_s=3_600)
    await kind.save(store, "a", "before")
    await kind.save(open_store(), "stays", "for ever")
    assert await kind.load(other, "a") == "before"
    run_sql(f"UPDATE {database}.{kind.table} SET expires_at = UTC_TIMESTAMP(6) WHERE expires_at IS NOT NULL")
    for reader in (store, other):
        assert await kind.load(reader, "a") is None
        assert list(await kind.names(reader)) == ["stays"]
    await kind.save(store, "a", "after")
    assert await kind.load(other, "a") == "after"
