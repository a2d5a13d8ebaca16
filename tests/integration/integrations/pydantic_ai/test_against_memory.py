"""Random calls of the conversation store, compared with the framework's own in-memory store."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from pydantic_ai import Conversation, ModelRequest, ModelResponse, TextPart, UserError, UserPromptPart
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)

from locus_mysql.integrations.pydantic_ai import PydanticConversationStore

from .conftest import Make

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("transcripts")]

IDS = ("a", "A", "b/c", "é")
SCOPES = (None, "ada", "Ada")
STEPS = 60


class Both(ConversationStore):
    """Calls two stores, and compares their results.

    Args:
        tested: Returns the tested store: that of one of several processes.
    """

    def __init__(self, tested: Callable[[], PydanticConversationStore]) -> None:
        self.tested = tested
        self.memory = InMemoryConversationStore()
        self.entries: list[str] = []

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        return await self._both("read_record", conversation_id)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        return await self._both("read_records", scope=scope, limit=limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        self.entries += [entry.id for entry in new_entries]
        await self._both("write_record", record, new_entries=new_entries, expected_revision=expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        await self._both("delete_record", conversation_id, expected_revision=expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        return await self._both("read_entry", entry_id)

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        return await self._both("read_history", head_id, limit=limit)

    async def check_entries(self) -> None:
        """Compare every entry that was ever stored: deleted ones must be deleted in both."""
        for entry_id in self.entries:
            with contextlib.suppress(KeyError):
                await self.read_entry(entry_id)

    async def _both(self, method: str, *args: Any, **kwargs: Any) -> Any:
        expected = await _outcome(getattr(self.memory, method)(*args, **kwargs))
        found = await _outcome(getattr(self.tested(), method)(*args, **kwargs))
        if isinstance(expected, Exception):
            assert (type(found), str(found)) == (type(expected), str(expected)), method
            raise found
        assert found == expected, method
        return found


async def _outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except (LookupError, UserError) as error:
        return error


def said(number: int) -> list[Any]:
    return [
        ModelRequest(parts=[UserPromptPart(content=f"question {number}")]),
        ModelResponse(parts=[TextPart(content=f"answer {number}")]),
    ]


class Client:
    """A client that calls the store at random, and keeps conversations that may have become stale."""

    def __init__(self, store: Both, chosen: random.Random) -> None:
        self._store = store
        self._chosen = chosen
        self._held: list[Conversation] = []

    async def step(self, number: int) -> None:
        action = self._chosen.choice(
            (self._load, self._turn, self._turn, self._turn, self._rewrite, self._branch, self._fork, self._delete)
        )
        with contextlib.suppress(ConversationConflict, UserError):
            await action(number)
        await self._store.list_conversations(scope=self._chosen.choice(SCOPES), limit=self._chosen.choice((None, 2)))

    async def _load(self, number: int) -> None:
        loaded = await self._store.load(self._chosen.choice(IDS), limit=self._chosen.choice((None, 0, 1, 3)))
        self._held += [] if loaded is None else [loaded]

    async def _turn(self, number: int) -> None:
        conversation = self._any()
        conversation.messages += said(number)
        conversation.usage.requests += 1
        await self._store.save(conversation, scope=self._chosen.choice(SCOPES))
        self._held.append(conversation)

    async def _rewrite(self, number: int) -> None:
        loaded = await self._store.load(self._chosen.choice(IDS))
        if loaded is not None and loaded.messages:
            loaded.messages[self._chosen.randrange(len(loaded.messages))] = said(number)[0]
            await self._store.save(loaded)

    async def _branch(self, number: int) -> None:
        conversation_id = self._chosen.choice(IDS)
        record = await self._store.read_record(conversation_id)
        if record is None:
            return
        where: dict[str, Any] = {"at": self._chosen.randrange(4)}
        if record.branches and self._chosen.random() < 0.6:
            where = {"from_entry": self._chosen.choice(record.branches)}
        self._held.append(await self._store.branch(conversation_id, expected_revision=record.revision, **where))

    async def _fork(self, number: int) -> None:
        source, new = self._chosen.choice(IDS), self._chosen.choice(IDS)
        at = self._chosen.choice((None, 0, 1, 2))
        self._held.append(await self._store.fork(source, at=at, new_conversation_id=new))

    async def _delete(self, number: int) -> None:
        await self._store.delete(self._chosen.choice(IDS), scope=self._chosen.choice(SCOPES))
        await self._store.check_entries()

    def _any(self) -> Conversation:
        if self._held and self._chosen.random() < 0.8:
            return self._chosen.choice(self._held)
        return Conversation(conversation_id=self._chosen.choice(IDS))


@pytest.mark.parametrize("seed", range(4))
async def test_random_calls_have_the_results_of_the_store_in_memory(make_store: Make, seed: int) -> None:
    chosen = random.Random(seed)
    processes = (make_store(), make_store())
    both = Both(lambda: chosen.choice(processes))
    client = Client(both, chosen)
    for number in range(STEPS):
        await client.step(number)
    await both.check_entries()
    for conversation_id in IDS:
        await both.load_entries(conversation_id)
        await both.delete(conversation_id)
    await both.check_entries()
