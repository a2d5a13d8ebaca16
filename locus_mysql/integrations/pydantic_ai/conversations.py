"""The conversation store of Pydantic AI: `PydanticConversationStore`."""

from __future__ import annotations

from typing import Unpack

from pydantic import SecretStr
from pydantic_ai.conversation_store import ConversationStore

from ...config import Keywords, MySQLConfig
from ...runtime.database import Database, share
from ...runtime.stores import AsyncStore, awaited
from .conversation_operations import ConversationOperations


class PydanticConversationStore(AsyncStore[ConversationOperations], ConversationStore):
    """Keeps conversations of Pydantic AI in MySQL: a `pydantic_ai.conversation_store.ConversationStore`.

    Each message is stored once. The server checks revisions, so no writer overwrites the turn of another one. Deleting
    a conversation deletes the entries that no other conversation's history uses.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to conversations.

    Example:
        ```python
        async with PydanticConversationStore("mysql://user:password@localhost/app") as store:
            conversation = await store.load("support-7") or Conversation(conversation_id="support-7")
            result = await agent.run("Hello", conversation=conversation)
            await store.save(result, scope="ada")
            assert [one.conversation_id for one in await store.list_conversations(scope="ada")] == ["support-7"]
        ```
    """

    def __init__(
        self, where: str | SecretStr | MySQLConfig | Database | None = None, **options: Unpack[Keywords]
    ) -> None:
        database, config, owned = share(where, options)
        super().__init__(ConversationOperations(config), database, owned=owned)

    @awaited(ConversationOperations.read_record)
    def read_record(self) -> None: ...
    @awaited(ConversationOperations.read_records)
    def read_records(self) -> None: ...
    @awaited(ConversationOperations.write_record)
    def write_record(self) -> None: ...
    @awaited(ConversationOperations.delete_record)
    def delete_record(self) -> None: ...
    @awaited(ConversationOperations.read_entry)
    def read_entry(self) -> None: ...
    @awaited(ConversationOperations.read_history)
    def read_history(self) -> None: ...
