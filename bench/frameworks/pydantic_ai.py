"""Pydantic AI: its conversation store in memory, as it has none for SQL."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic_ai import Conversation, ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.conversation_store import ConversationStore, InMemoryConversationStore
from pydantic_ai.messages import ModelMessagesTypeAdapter

from locus_mysql import MySQLConfig
from locus_mysql.integrations.pydantic_ai import PydanticConversationStore

from .contestants import CONVERSATION, Contestant, Entrant, Framework, Turn

MESSAGES_PER_TURN = 2
WHEN = datetime(2026, 11, 1, tzinfo=UTC)


class InStore(Contestant):
    """A `ConversationStore`."""

    def __init__(self, config: MySQLConfig, store: ConversationStore) -> None:
        super().__init__(config)
        self._store = store
        self.conversation = Conversation(conversation_id=CONVERSATION)

    async def append(self, turn: Turn) -> None:
        """See `Contestant.append`."""
        self.conversation.messages += messages(turn)
        await self._store.save(self.conversation)

    async def load(self) -> int:
        """See `Contestant.load`."""
        loaded = await self._store.load(CONVERSATION)
        if loaded is None:
            return 0
        self.conversation = loaded
        return len(loaded.messages) // MESSAGES_PER_TURN

    async def close(self) -> None:
        """See `Contestant.close`."""
        if isinstance(self._store, PydanticConversationStore):
            await self._store.close()


class InMemory(InStore):
    """The framework's own store."""

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config, InMemoryConversationStore())

    def stored_bytes(self) -> int:
        """See `Contestant.stored_bytes`: the JSON of the messages."""
        return len(ModelMessagesTypeAdapter.dump_json(self.conversation.messages))


def ours(config: MySQLConfig) -> InStore:
    """Return this package's store."""
    return InStore(config, PydanticConversationStore(config))


def messages(turn: Turn) -> list[ModelMessage]:
    """Return a turn as the messages of an agent's run."""
    return [
        ModelRequest(parts=[UserPromptPart(content=turn.question, timestamp=WHEN)], timestamp=WHEN),
        ModelResponse(parts=[TextPart(content=turn.answer)], timestamp=WHEN),
    ]


FRAMEWORK = Framework(
    title="Pydantic AI 2.68.0",
    entrants=(
        Entrant("locus-mysql, aiomysql", ours),
        Entrant("locus-mysql, mysql-connector", ours, "mysql-connector"),
        Entrant("InMemoryConversationStore", InMemory),
    ),
    remark="An append is a save, after a load that is measured by itself. The framework has no store for SQL.",
)
