"""`GUESTS`: how a test writes, reads and deletes a conversation by the classes of frameworks that have turns."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from google.adk.events.event import Event
from langgraph.checkpoint.base import empty_checkpoint
from pydantic_ai import Conversation, ModelRequest, UserPromptPart
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from locus_mysql import Database, MySQLConfig
from locus_mysql.families.registry import find_family
from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore
from locus_mysql.integrations.google_adk import AdkSessionService
from locus_mysql.integrations.langgraph import AsyncMySQLSaver, MySQLSaver
from locus_mysql.integrations.openai_agents import OpenAIBranchingSession
from locus_mysql.integrations.pydantic_ai import PydanticConversationStore
from locus_mysql.integrations.strands import StrandsSessionRepository, StrandsStorage
from locus_mysql.records.tables import Tables

from ...either_side import AnyStore


class Guest(ABC):
    """A framework's class; the methods are those of `Sample`."""

    family: ClassVar[str] = "transcripts"
    awaited: ClassVar[Callable[..., Any] | None] = None
    blocking: ClassVar[Callable[..., Any] | None] = None

    def __repr__(self) -> str:
        return type(self).__name__.strip("_").lower()

    def has(self, side: str) -> bool:
        """Return whether there is a class of a side."""
        return (self.blocking if side.endswith("-sync") else self.awaited) is not None

    def open(self, where: MySQLConfig | Database, side: str) -> AnyStore:
        driver, _, way = side.rpartition("-")
        given = where if isinstance(where, Database) else where.model_copy(update={"driver": driver})
        make = self.blocking if way == "sync" else self.awaited
        assert make is not None
        return AnyStore(make(given))

    def tables(self, config: MySQLConfig) -> Tables:
        return next(iter(find_family(self.family).tables(config)))

    def turn(self, store: AnyStore, name: str, **options: Any) -> Any:
        return store.store.turn(name, **options)

    @abstractmethod
    async def write(self, store: AnyStore, name: str, step: int) -> None: ...

    @abstractmethod
    async def steps(self, store: AnyStore, name: str) -> list[int]: ...

    @abstractmethod
    async def delete(self, store: AnyStore, name: str) -> None: ...


class _LangGraph(Guest):
    family = "graphs"
    awaited, blocking = AsyncMySQLSaver, MySQLSaver

    def _method(self, store: AnyStore, name: str) -> Any:
        return getattr(store, f"a{name}" if isinstance(store.store, AsyncMySQLSaver) else name)

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        before: Any = {"configurable": {"thread_id": name, "checkpoint_ns": "", "checkpoint_id": f"{step - 1:06}"}}
        if not step:
            del before["configurable"]["checkpoint_id"]
        await self._method(store, "put")(before, {**empty_checkpoint(), "id": f"{step:06}"}, {"step": step}, {})

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        found = store.store.alist if isinstance(store.store, AsyncMySQLSaver) else store.store.list
        listed = found({"configurable": {"thread_id": name}})
        every = [one async for one in listed] if hasattr(listed, "__aiter__") else list(listed)
        return [one.metadata["step"] for one in reversed(every)]

    async def delete(self, store: AnyStore, name: str) -> None:
        await self._method(store, "delete_thread")(name)


class _Claude(Guest):
    awaited = ClaudeSessionStore

    @staticmethod
    def _key(name: str, **part: str) -> Any:
        return {"project_key": "p", "session_id": name, **part}

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        # A subagent's transcript belongs to the turn of its session.
        part = {"subpath": "subagents/one"} if step else {}
        await store.append(self._key(name, **part), [{"type": "user", "uuid": f"u-{step}", "step": step}])

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        found = [await store.load(key) for key in (self._key(name), self._key(name, subpath="subagents/one"))]
        return [entry["step"] for entries in found for entry in entries or ()]

    async def delete(self, store: AnyStore, name: str) -> None:
        await store.delete(self._key(name))

    def turn(self, store: AnyStore, name: str, **options: Any) -> Any:
        return store.store.turn(self._key(name), **options)


class _OpenAISessions:
    """Opens sessions by their ids.

    Args:
        where: The options.
    """

    def __init__(self, where: MySQLConfig) -> None:
        self._database = Database(where)

    def session(self, name: str) -> OpenAIBranchingSession:
        return OpenAIBranchingSession(name, self._database)

    async def close(self) -> None:
        await self._database.aclose()


class _OpenAI(Guest):
    awaited = _OpenAISessions

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        await store.store.session(name).add_items([{"role": "user", "content": f"{step}"}])

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        return [int(item["content"]) for item in await store.store.session(name).get_items()]

    async def delete(self, store: AnyStore, name: str) -> None:
        await store.store.session(name).clear_session()

    def turn(self, store: AnyStore, name: str, **options: Any) -> Any:
        return store.store.session(name).turn(**options)


class _Adk(Guest):
    awaited = AdkSessionService

    @staticmethod
    def _place(name: str) -> dict[str, str]:
        return {"app_name": "shop", "user_id": "ada", "session_id": name}

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        place = self._place(name)
        session = await store.get_session(**place) or await store.create_session(**place)
        event = Event(id=f"{step}", author="user", invocation_id="i", **{"state": {"step": step, f"user:{name}": step}})
        await store.append_event(session, event)

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        session = await store.get_session(**self._place(name))
        steps = [int(event.id) for event in session.events] if session else []
        if steps:  # the state that the user's sessions share was not written without the event
            assert session.state["step"] == session.state[f"user:{name}"] == steps[-1]
        return steps

    async def delete(self, store: AnyStore, name: str) -> None:
        await store.delete_session(**self._place(name))

    def turn(self, store: AnyStore, name: str, **options: Any) -> Any:
        return store.store.turn(**self._place(name), **options)


class _Pydantic(Guest):
    awaited = PydanticConversationStore

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        conversation = await store.load(name) or Conversation(conversation_id=name)
        conversation.messages.append(ModelRequest(parts=[UserPromptPart(content=f"{step}")]))
        await store.save(conversation)

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        found = await store.load(name)
        return [] if found is None else [int(one.parts[0].content) for one in found.messages]

    async def delete(self, store: AnyStore, name: str) -> None:
        await store.delete(name)


class _StrandsSessions(Guest):
    blocking = StrandsSessionRepository

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        if await store.read_session(name) is None:
            await store.create_session(Session(name, SessionType.AGENT))
            await store.create_agent(name, SessionAgent("a", {}, {}))
        message = SessionMessage.from_message({"role": "user", "content": [{"text": f"{step}"}]}, step)
        await store.create_message(name, "a", message)

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        return [int(one.message["content"][0]["text"]) for one in await store.list_messages(name, "a")]

    async def delete(self, store: AnyStore, name: str) -> None:
        await store.delete_session(name)


class _StrandsStorage(Guest):
    """The bytes under a key, which each write replaces."""

    family = "dicts"
    awaited = StrandsStorage

    @staticmethod
    def _key(name: str) -> str:
        return f"notes/{name}.json"

    async def write(self, store: AnyStore, name: str, step: int) -> None:
        await store.write(self._key(name), json.dumps([*range(step + 1)]).encode())

    async def steps(self, store: AnyStore, name: str) -> list[int]:
        found = await store.read(self._key(name))
        return [] if found is None else json.loads(found)

    async def delete(self, store: AnyStore, name: str) -> None:
        await store.delete(self._key(name))

    def turn(self, store: AnyStore, name: str, **options: Any) -> Any:
        return store.store.turn(self._key(name), **options)


GUESTS: tuple[Guest, ...] = (
    *(_LangGraph(), _Claude(), _OpenAI(), _Adk(), _Pydantic(), _StrandsSessions(), _StrandsStorage()),
)
