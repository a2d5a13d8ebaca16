"""The memory service of Google ADK, `AdkMemoryService`, and its operations, which do no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.platform import uuid as platform_uuid
from google.adk.sessions.session import Session
from google.genai.types import Content

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...engine.retry import Backoff
from ...errors import VersionConflict
from ...families.memories.embedding import VECTOR_CACHE_BYTES, EmbeddingOptions, EmbedFunction, Procedure
from ...families.memories.operations import FrameworkMemories, MemoryOperations
from ...families.memories.puts import Put
from ...families.memories.records import MemoryHit, MemoryItem, Namespace
from ...families.memories.store import AsyncMemories
from ...families.memories.vectors.coding import Metric
from ...runtime.arguments import check_limit
from ...runtime.database import Where, share
from ...runtime.stores import awaited_method

#: The first label of the namespaces of memories, and of the namespace of deleted ids. App, user and session follow.
LABEL, DELETED_LABEL = "google-adk", "google-adk-deleted"

#: The labels of memories without a session, and of memories added by `add_memory`. They are no valid session ids.
WITHOUT_SESSION, ADDED_DIRECTLY = "~none", "~direct"

#: The maximum number of memories whose keys a call reads, that a call deletes, and that a transaction writes.
KEYS_LIMIT, AT_ONCE = 1_000_000, 1_000


class _Memories(MemoryOperations):
    """Items whose texts are those of ADK's memories."""

    root = (LABEL,)

    def stored_texts(self, value: Any, text: str | None, index: bool | Sequence[str]) -> list[str]:
        """Return the texts of a stored item that are embedded."""
        found = _text_of(Content.model_validate(value["content"])) if isinstance(value, dict) else ""
        return [found] if found else []


class AdkMemoryOperations(FrameworkMemories):
    """Stores ADK's memories of one tenant.

    Args:
        config: The options.
        options: The options about embeddings.
        limit: The maximum number of memories that a search returns.
    """

    def __init__(self, config: MySQLConfig, options: EmbeddingOptions, limit: int) -> None:
        super().__init__(_Memories(config, options))
        self._limit = check_limit(limit, "limit", 1)

    def add_session_to_memory(self, session: Session) -> Procedure[None]:
        """Synchronise a session's memories with its events with text: add missing memories, remove all others.

        Args:
            session: The session with its events.

        Raises:
            InvalidInput: A memory cannot be stored exactly; nothing was changed by its transaction.
        """
        scope, namespace = _scope(session.app_name, session.user_id), _of_session(session)
        stored = set((yield from self.items.list_keys(namespace, KEYS_LIMIT)))
        kept = {event.id: event for event in session.events if _text_of(event.content)}
        yield from self._write(
            scope,
            [_put_of_event(namespace, event, None) for key, event in kept.items() if key not in stored],
            [(namespace, key) for key in stored if key not in kept],
        )
        yield from self.items.embed_stored([(namespace, key) for key in kept if key in stored])

    def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> Procedure[None]:
        """Add events with text to the memories of a session, except those that it has already.

        Args:
            app_name: The app.
            user_id: The user; app, user and session have at most 980 bytes together.
            events: The events.
            session_id: The session; None for memories without a session.
            custom_metadata: JSON values, which are stored with the new memories.

        Raises:
            InvalidInput: A memory cannot be stored exactly.
        """
        scope = _scope(app_name, user_id)
        namespace = (LABEL, *scope, _label(session_id) if session_id else WITHOUT_SESSION)
        added = {event.id: event for event in reversed(events) if _text_of(event.content)}
        found = yield from self.items.get_batch([(namespace, key) for key in added])
        stored = {key for _, key in found}
        puts = [_put_of_event(namespace, event, custom_metadata) for key, event in added.items() if key not in stored]
        yield from self._write(scope, puts[::-1], [])
        yield from self.items.embed_stored(list(found))

    def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> Procedure[None]:
        """Add memories, all or none. A memory with an id replaces an earlier one that was added here with the same id.

        Args:
            app_name: The app.
            user_id: The user.
            memories: The memories, at most 10,000. A memory without an id gets a new one.
            custom_metadata: JSON values for all of them; a memory's own values take precedence.

        Raises:
            InvalidInput: A memory cannot be stored exactly; nothing was changed.
        """
        scope = _scope(app_name, user_id)
        puts = []
        for memory in memories:
            memory_id = memory.id or platform_uuid.new_uuid()
            value = {
                "id": memory_id,
                "content": _json_of(memory.content),
                "author": memory.author,
                "timestamp": memory.timestamp,
            }
            metadata = {**(custom_metadata or {}), **memory.custom_metadata}
            namespace = (LABEL, *scope, ADDED_DIRECTLY)
            puts.append(Put(namespace, memory_id, value, metadata, text=_text_of(memory.content)))
        if puts:
            yield from self.items.write_batch(puts, [(_deleted(scope), put.key) for put in puts])

    def search_memory(self, *, app_name: str, user_id: str, query: str) -> Procedure[SearchMemoryResponse]:
        """Return the user's memories that match a query best: by word; with an embed function, by word and meaning.

        Args:
            app_name: The app.
            user_id: The user.
            query: A text.
        """
        hits = yield from self.items.search_text((LABEL, *_scope(app_name, user_id)), query, self._limit)
        return SearchMemoryResponse(memories=[_entry(hit.item) for hit in hits])

    def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> Procedure[None]:
        """Delete the memories with an id in all sessions; events with this id never become memories again.

        Args:
            app_name: The app.
            user_id: The user.
            memory_id: The id, as `search_memory` returned it; None: nothing is deleted.
        """
        if not memory_id:
            return
        scope = _scope(app_name, user_id)
        tombstone = Put(_deleted(scope), memory_id, True, ttl_s=None, index=False)
        # Repeated until none is found: a memory may have been added between a search and the first tombstone.
        backoff = Backoff("Memories of a deleted id were found again")
        while found := (yield from self._with_id(scope, memory_id)):
            backoff.compare(found)
            yield from self.items.write_batch([tombstone], [(hit.item.namespace, hit.item.key) for hit in found])

    def _with_id(self, scope: Namespace, memory_id: str) -> Procedure[Sequence[MemoryHit]]:
        """Return up to `AT_ONCE` memories with an id. Encrypted ones are all read, and compared in this process."""
        if not self.items.sealed.is_on:
            return (yield from self.items.search((LABEL, *scope), filter={"id": memory_id}, limit=AT_ONCE))
        found: list[MemoryHit] = []
        offset = 0
        while page := (yield from self.items.search((LABEL, *scope), limit=AT_ONCE, offset=offset)):
            values = [(hit, hit.item.value) for hit in page]
            found += [hit for hit, value in values if isinstance(value, dict) and value.get("id") == memory_id]
            offset += AT_ONCE
        return found[:AT_ONCE]

    def _write(self, scope: Namespace, puts: Sequence[Put], gone: Sequence[tuple[Namespace, str]]) -> Procedure[None]:
        """Write memories that were not deleted before, and delete others."""
        for start in range(0, max(len(puts), len(gone)), AT_ONCE):
            end = start + AT_ONCE
            yield from self._write_some(scope, puts[start:end], gone[start:end])

    def _write_some(
        self, scope: Namespace, puts: Sequence[Put], gone: Sequence[tuple[Namespace, str]]
    ) -> Procedure[None]:
        """Write memories and delete others, in one transaction."""
        backoff = Backoff("Memories were deleted while others were written")
        while True:
            deleted = yield from self._deleted_of(scope, puts)
            puts = [put for put in puts if put.key not in deleted]
            try:
                # The server checks again, so that one that is deleted meanwhile does not come back.
                yield from self.items.write_batch(puts, gone, absent=[(_deleted(scope), put.key) for put in puts])
            except VersionConflict:
                backoff.check()
            else:
                return

    def _deleted_of(self, scope: Namespace, puts: Sequence[Put]) -> Procedure[set[str]]:
        """Return the keys of the memories that were deleted."""
        found = yield from self.items.get_batch([(_deleted(scope), put.key) for put in puts])
        return {key for _, key in found}


def _label(text: str) -> str:
    """Return an id as a label; labels must not be empty."""
    return text.replace("~", "~0") or "~"


def _scope(app_name: str, user_id: str) -> Namespace:
    return _label(app_name), _label(user_id)


def _of_session(session: Session) -> Namespace:
    return LABEL, *_scope(session.app_name, session.user_id), _label(session.id)


def _deleted(scope: Namespace) -> Namespace:
    return DELETED_LABEL, *scope


def _put_of_event(namespace: Namespace, event: Event, metadata: Mapping[str, object] | None) -> Put:
    value = {"id": event.id, "content": _json_of(event.content), "author": event.author, "at": event.timestamp}
    return Put(namespace, event.id, value, metadata, text=_text_of(event.content))


def _json_of(content: Content | None) -> Any:
    return None if content is None else content.model_dump(mode="json", by_alias=True, exclude_none=True)


def _text_of(content: Content | None) -> str:
    """Return the text by which a memory is found; empty for none."""
    parts = content.parts if content is not None else None
    return " ".join(part.text for part in parts or () if part.text)


def _entry(item: MemoryItem) -> MemoryEntry:
    value = item.value
    at = value.get("at")
    timestamp = value.get("timestamp") if at is None else _time_text(at)
    return MemoryEntry(
        id=value["id"],
        content=Content.model_validate(value["content"]),
        author=value["author"],
        timestamp=timestamp,
        custom_metadata=item.metadata,
    )


def _time_text(at: float) -> str | None:
    """Return the time of an event as ADK writes it; None for a number that is no time."""
    try:
        return datetime.fromtimestamp(at).isoformat()
    except (OverflowError, OSError, ValueError):
        return None


class AdkMemoryService(AsyncMemories[AdkMemoryOperations], BaseMemoryService):
    """Long-term memory for Google ADK in MySQL: a `google.adk.memory.BaseMemoryService` with all its methods.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        dims: The width of embeddings, 1 to 16,383; without it, memories are searched by word.
        embed: A function that embeds a list of texts; sync (run in a thread) or async. With it, memories are searched
            by word and by meaning.
        metric: How embeddings are compared: ``cosine``, ``dot`` or ``euclidean``.
        model: The name of the model; by default that which ``embed`` has. Embeddings of other models are not compared.
        vector_cache_bytes: Memory for the cache of repeated searches by meaning.
        limit: The maximum number of memories that a search returns.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``search_parser`` apply to memories.

    Example:
        ```python
        async with AdkMemoryService("mysql://user:password@localhost/app") as memory:
            event = Event(author="user", invocation_id="1", message="I live in Lisbon.")
            await memory.add_events_to_memory(app_name="shop", user_id="ada", events=[event])
            found = await memory.search_memory(app_name="shop", user_id="ada", query="Who lives in Lisbon?")
            assert found.memories[0].id == event.id
        ```
    """

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        dims: int | None = None,
        embed: EmbedFunction | None = None,
        metric: Metric = "cosine",
        model: str = "",
        vector_cache_bytes: int = VECTOR_CACHE_BYTES,
        limit: int = 10,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        embedding = EmbeddingOptions(dims, embed, metric=metric, model=model, vector_cache_bytes=vector_cache_bytes)
        super().__init__(AdkMemoryOperations(config, embedding, limit), database, owned=owned)

    add_session_to_memory = awaited_method(AdkMemoryOperations.add_session_to_memory)
    add_events_to_memory = awaited_method(AdkMemoryOperations.add_events_to_memory)
    add_memory = awaited_method(AdkMemoryOperations.add_memory)
    search_memory = awaited_method(AdkMemoryOperations.search_memory)
    delete_memory = awaited_method(AdkMemoryOperations.delete_memory)
