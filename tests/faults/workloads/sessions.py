"""Conversations of frameworks as transcripts: Claude Agent SDK, Pydantic AI, OpenAI Agents SDK, Google ADK, Strands."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from agents.usage import Usage
from google.adk.events.event import Event
from google.genai.types import Content, Part
from pydantic_ai import Conversation, ModelRequest, UserPromptPart
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore
from locus_mysql.integrations.google_adk import AdkSessionService
from locus_mysql.integrations.openai_agents import OpenAIBranchingSession, OpenAISession
from locus_mysql.integrations.pydantic_ai import PydanticConversationStore
from locus_mysql.integrations.strands import StrandsSessionRepository

from .workload import Call, Stores, Workload, taken

KEY: Any = {"project_key": "p", "session_id": "s"}
SUB: Any = {**KEY, "subpath": "subagents/one"}


def _entry(number: int, *, uuid: bool = True) -> Any:
    named = {"uuid": f"5c1f0000-0000-4000-8000-{number:012}"} if uuid else {}
    message = {"role": "user", "content": f"{number} " * 20}
    return {"type": "user", **named, "timestamp": "2026-11-23T09:00:00.000Z", "message": message}


class ClaudeSessions(Workload):
    """A session with a subagent. The entries without a uuid would be added again by a repeated packet."""

    title, family = "Claude Agent SDK: sessions", "transcripts"
    stores = Stores(ClaudeSessionStore)

    def calls(self) -> Sequence[Call]:
        return [
            lambda: self.store.append(KEY, [_entry(1), _entry(2, uuid=False)]),
            lambda: self.store.append(KEY, [_entry(1), _entry(3)]),
            lambda: self.store.append(SUB, [_entry(4, uuid=False)]),
            lambda: self.store.load(KEY),
            lambda: self._summaries("p"),
            lambda: self.store.append({**KEY, "session_id": "t"}, [_entry(5)]),
            lambda: self.store.delete({**KEY, "session_id": "t"}),
            lambda: self.store.list_subkeys(KEY),
        ]

    async def stored(self) -> Any:
        entries = [await self.store.load(key) for key in (KEY, SUB, {**KEY, "session_id": "t"})]
        return entries, await self._summaries("p")

    def _summaries(self, project: str) -> Any:
        return taken(
            self.store.list_session_summaries(project),
            lambda found: [(one["session_id"], one["data"]) for one in found],
        )


def _asked(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content=text)])


class Conversations(Workload):
    """Pydantic AI's conversations: saved, forked, deleted."""

    title, family = "Pydantic AI: conversations", "transcripts"
    stores = Stores(PydanticConversationStore)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.conversation = Conversation(conversation_id="a")

    def calls(self) -> Sequence[Call]:
        return [
            lambda: self._say("one"),
            lambda: self._say("two"),
            lambda: self._history("a"),
            self._fork,
            lambda: self.store.delete("b"),
            lambda: self._say("three"),
            lambda: taken(
                self.store.list_conversations(scope="ada"), lambda found: [one.conversation_id for one in found]
            ),
        ]

    async def stored(self) -> Any:
        return [(name, await self._history(name)) for name in ("a", "b")]

    async def _say(self, text: str) -> None:
        self.conversation.messages.append(_asked(text))
        await self.store.save(self.conversation, scope="ada")

    async def _listed(self) -> Any:
        return [one.conversation_id for one in await self.store.list_conversations(scope="ada")]

    async def _fork(self) -> None:
        fork = Conversation(conversation_id="b", messages=[*self.conversation.messages, _asked("other")])
        await self.store.save(fork)

    async def _history(self, conversation_id: str) -> Any:
        found = await self.store.load(conversation_id)
        return None if found is None else [message.parts[0].content for message in found.messages]


def _items(*texts: str) -> Any:
    return [{"role": "user", "content": text} for text in texts]


class OpenAISessions(Workload):
    """A session of the OpenAI Agents SDK: its items have no ids, so a repeated packet would add them again."""

    title, family = "OpenAI Agents SDK: sessions", "transcripts"
    stores = Stores(lambda config: OpenAISession("s", config))

    def calls(self) -> Sequence[Call]:
        return [
            lambda: self.store.add_items(_items("one", "two")),
            lambda: self.store.add_items(_items("three", "three")),
            lambda: self.store.get_items(limit=2),
            lambda: self.store.pop_item(),
            lambda: self.store.clear_session(),
            lambda: self.store.add_items(_items("four")),
        ]

    async def stored(self) -> Any:
        return await self.store.get_items()


class OpenAIBranches(Workload):
    """A session with branches and usage."""

    title, family = "OpenAI Agents SDK: branches", "transcripts"
    stores = Stores(lambda config: OpenAIBranchingSession("s", config))

    def calls(self) -> Sequence[Call]:
        usage = Usage(requests=1, input_tokens=3, output_tokens=1, total_tokens=4)
        run = SimpleNamespace(context_wrapper=SimpleNamespace(usage=usage))
        return [
            lambda: self.store.add_items(_items("one")),
            lambda: self.store.add_items(_items("two")),
            lambda: self.store.store_run_usage(run),
            lambda: self.store.create_branch_from_turn(2, "north"),
            lambda: self.store.add_items(_items("three")),
            lambda: self.store.pop_item(),
            lambda: self.store.switch_to_branch("main"),
            lambda: self.store.create_branch_from_turn(2, "south"),
            lambda: self.store.delete_branch("south", force=True),
        ]

    async def stored(self) -> Any:
        branches = sorted((one["branch_id"], one["message_count"]) for one in await self.store.list_branches())
        items = [await self.store.get_items(branch_id=branch) for branch, _ in branches]
        usage = await self.store.get_session_usage()
        return branches, items, None if usage is None else usage["total_tokens"]


ADA = {"app_name": "shop", "user_id": "ada"}


class AdkSessions(Workload):
    """Sessions of Google ADK with app's, user's and session's state."""

    title, family = "Google ADK: sessions", "transcripts"
    stores = Stores(AdkSessionService)

    def calls(self) -> Sequence[Call]:
        return [
            lambda: self._create("s", {"step": 1, "app:name": "Shop", "user:name": "Ada"}),
            lambda: self._say("one", {"step": 2, "user:name": "Ada L."}),
            lambda: self._say("two", {"app:count": 1}),
            lambda: self._create("t", {}),
            lambda: self._seen("s"),
            lambda: self.store.delete_session(**ADA, session_id="t"),
            lambda: self.store.get_user_state(**ADA),
        ]

    async def stored(self) -> Any:
        return [await self._seen(name) for name in ("s", "t")]

    async def _create(self, session_id: str, state: dict[str, Any]) -> Any:
        made = await self.store.create_session(**ADA, session_id=session_id, state=state)
        if session_id == "s":
            self.session = made
        return dict(made.state)  # a later event changes it

    async def _say(self, text: str, state: dict[str, Any]) -> None:
        content = Content(role="user", parts=[Part(text=text)])
        event = Event(id=text, author="user", invocation_id="i", content=content, timestamp=1.5, **{"state": state})
        await self.store.append_event(self.session, event)

    async def _seen(self, session_id: str) -> Any:
        found = await self.store.get_session(**ADA, session_id=session_id)
        return None if found is None else (found.state, [event.content.parts[0].text for event in found.events])


class StrandsSessions(Workload):
    """Sessions of Strands Agents; the contract is blocking."""

    title, family = "Strands Agents: sessions", "transcripts"
    stores = Stores(blocking=StrandsSessionRepository)

    def calls(self) -> Sequence[Call]:
        return [
            lambda: taken(self.store.create_session(Session("s", SessionType.AGENT)), lambda made: made.session_id),
            lambda: self.store.create_agent("s", SessionAgent("a", {"step": 0}, {})),
            lambda: self.store.create_message("s", "a", self._message(0, "one")),
            lambda: self.store.create_message("s", "a", self._message(1, "two")),
            lambda: self.store.update_agent("s", SessionAgent("a", {"step": 1}, {})),
            lambda: self.store.update_message("s", "a", self._message(1, "changed")),
            lambda: taken(self.store.create_session(Session("t", SessionType.AGENT)), lambda made: made.session_id),
            lambda: self.store.delete_session("t"),
        ]

    async def stored(self) -> Any:
        sessions = [await self.store.read_session(name) is not None for name in ("s", "t")]
        agent = await self.store.read_agent("s", "a")
        messages = await self.store.list_messages("s", "a")
        return sessions, agent and agent.state, [one.message["content"] for one in messages]

    def _message(self, number: int, text: str) -> SessionMessage:
        return SessionMessage.from_message({"role": "user", "content": [{"text": text}]}, number)
